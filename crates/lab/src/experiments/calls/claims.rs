//! The blog's claims against what was measured.

use std::collections::BTreeMap;

use super::super::figures::time;
use super::super::{Claim, Verdict};
use super::runs::{OverLink, Runs, Spread, more, spread};
use super::{AT_SERVER, Case, NODELAY, PLAIN, POOLED};
use crate::programs::calls::Call;

/// The blog finds a handshake to be a fifth of a call; from here on it is of that order.
const FIFTH: f64 = 0.15;
/// Nagle's algorithm has merged something if it saves this share of the segments.
const MERGED: f64 = 0.02;

pub(super) fn claims(runs: &BTreeMap<Case, Runs>, link: &OverLink) -> Vec<Claim> {
    let mut claims = Vec::new();
    if let (Some(plain), Some(nodelay)) = (runs.get(&PLAIN), runs.get(&NODELAY)) {
        claims.push(nagle_helps(plain, nodelay, link));
        claims.push(connects_faster(plain, nodelay));
        claims.extend(runs.get(&AT_SERVER).map(|server| no_matter(plain, server)));
        claims.extend(runs.get(&POOLED).map(|pooled| pool(plain, pooled)));
        claims.extend(small_buffer(runs));
    }
    claims.push(handshake(&link.alone.calls));
    claims.push(queues(runs));
    claims
}

/// `5060 ± 75`.
fn shown(rate: Spread) -> String {
    format!("{:.0} ± {:.0}", rate.mean, rate.deviation)
}

/// It helped if there are more calls *because* there are fewer segments: rates alone differ by chance.
fn nagle_helps(plain: &Runs, nodelay: &Runs, link: &OverLink) -> Claim {
    let (on, off) = (plain.rate(), nodelay.rate());
    let merged = merges(plain, nodelay);
    let merged_afar = merges(&link.nagle, &link.nodelay);
    let helped = merged && more(on, off) || merged_afar && more(link.nagle.rate(), link.nodelay.rate());
    let why = match (merged, merged_afar) {
        (false, false) => "nothing is merged: every piece is ACKed before the next is written",
        (false, true) => {
            "over loopback every piece is ACKed before the next is written, so nothing is merged; over the link \
             some is, and calls are no more for it"
        }
        (true, _) => "segments are saved, but there are no more calls for it",
    };
    Claim {
        claim: "Nagle's algorithm at the clients lets the server answer more calls",
        seed: "5060 ± 75 against 3884 ± 283 calls/s",
        measured: format!(
            "{} against {} calls/s, {:.1} and {:.1} data segments a call; over the link {} against {}, {:.1} and \
             {:.1}",
            shown(on),
            shown(off),
            plain.segments.a_call(plain.segments.data),
            nodelay.segments.a_call(nodelay.segments.data),
            shown(link.nagle.rate()),
            shown(link.nodelay.rate()),
            link.nagle.segments.a_call(link.nagle.segments.data),
            link.nodelay.segments.a_call(link.nodelay.segments.data)
        ),
        verdict: Verdict::from(helped, why),
    }
}

/// Whether Nagle's algorithm saves segments.
fn merges(nagle: &Runs, nodelay: &Runs) -> bool {
    let data = |runs: &Runs| runs.segments.a_call(runs.segments.data);
    data(nagle) < data(nodelay) * (1.0 - MERGED)
}

/// Thousands of calls have a small error, and yet depend on how busy the machine was: so the segments must
/// differ too.
fn connects_faster(plain: &Runs, nodelay: &Runs) -> Claim {
    let (on, off) = (plain.connect(), nodelay.connect());
    Claim {
        claim: "With it connect() is faster",
        seed: "13 against 20 ms",
        measured: format!("{} against {}", time(on.mean), time(off.mean)),
        verdict: Verdict::from(
            merges(plain, nodelay) && more(off, on),
            "connect() sends no data: it follows the load alone",
        ),
    }
}

fn no_matter(plain: &Runs, server: &Runs) -> Claim {
    let (off, on) = (plain.rate(), server.rate());
    let same = !more(on, off) && !more(off, on);
    Claim {
        claim: "The option on the server makes no difference: two bytes go in one segment",
        seed: "none",
        measured: format!("{} with, {} without, calls/s", shown(on), shown(off)),
        verdict: Verdict::from(same, "it does here, beyond the noise"),
    }
}

fn pool(plain: &Runs, pooled: &Runs) -> Claim {
    let (new, kept) = (plain.rate(), pooled.rate());
    Claim {
        claim: "Keep connections and pool them: calls get faster",
        seed: "a handshake a call less",
        measured: format!("{} pooled, {} new, calls/s", shown(kept), shown(new)),
        verdict: Verdict::from(
            more(kept, new),
            "a new connection starts in quick-ACK mode, which spares split requests the delayed ACK that they \
             meet on a kept one",
        ),
    }
}

fn small_buffer(runs: &BTreeMap<Case, Runs>) -> Option<Claim> {
    let rate = |rcvbuf| runs.get(&Case { rcvbuf, ..PLAIN }).map(Runs::rate);
    let (small, larger, default) = (rate(Some(4096))?, rate(Some(8192))?, rate(None)?);
    Some(Claim {
        claim: "SO_RCVBUF of 4096 at the server cures a low rate of calls; from 8192 on it is low",
        seed: "700 to 2600 calls/s",
        measured: format!("4096: {}, 8192: {}, default: {}", shown(small), shown(larger), shown(default)),
        verdict: Verdict::from(
            more(small, default) && more(small, larger),
            "a small buffer does not help here: the window is then smaller than a request, which waits for the \
             server to read; the queue that the blog suffered from was elsewhere",
        ),
    })
}

fn handshake(calls: &[Call]) -> Claim {
    let connect = spread(calls.iter().filter_map(|call| call.connect)).mean;
    let total = spread(calls.iter().map(|call| call.total)).mean;
    let share = connect / total.max(f64::MIN_POSITIVE);
    Claim {
        claim: "The handshake is a fifth of a call to a server with small buffers, some ms away",
        seed: "7 of 34 ms, 20 %",
        measured: format!("{} of {}, {:.0} %", time(connect), time(total), share * 100.0),
        verdict: match calls.is_empty() {
            true => Verdict::Unknown("no call came back".to_owned()),
            false => Verdict::from(share >= FIFTH, "calls take longer beside it"),
        },
    }
}

fn queues(runs: &BTreeMap<Case, Runs>) -> Claim {
    let most = runs.values().map(|runs| runs.queues).max_by_key(|queues| queues.most).unwrap_or_default();
    Claim {
        claim: "/proc/net/tcp shows whole requests that wait in the server's receive queues",
        seed: "0x271A = 10,010 B",
        measured: format!(
            "{} B on one of {} connections; {} with a whole request; {} not yet accepted",
            most.most, most.established, most.whole, most.backlog
        ),
        verdict: Verdict::from(most.whole > 0, "the server had read everything when it was looked at"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::runs::tests::{calls, runs};
    use super::*;
    use crate::programs::calls::Queues;

    /// The blog's call from afar, and nothing that Nagle's algorithm changes.
    fn link(connect: f64, total: f64) -> OverLink {
        let few = runs(&[900.0, 910.0], 7.0);
        let alone = Runs { calls: calls(connect, total), ..Runs::default() };
        OverLink { alone, nagle: few.clone(), nodelay: few }
    }

    #[test]
    fn claims_follow_the_figures() {
        let mut told = BTreeMap::from([
            (PLAIN, runs(&[5000.0, 5100.0], 13.0)),
            (NODELAY, runs(&[3800.0, 3900.0], 20.0)),
            (AT_SERVER, runs(&[5010.0, 5090.0], 13.0)),
            (POOLED, runs(&[6500.0, 6600.0], 13.0)),
            (Case { rcvbuf: Some(4096), ..PLAIN }, runs(&[7000.0, 7100.0], 13.0)),
            (Case { rcvbuf: Some(8192), ..PLAIN }, runs(&[5000.0, 5100.0], 13.0)),
        ]);
        let queues = Queues { whole: 1, most: 10_010, ..Queues::default() };
        told.entry(PLAIN).and_modify(|runs| {
            runs.queues = queues;
            runs.segments.data = 8;
        });
        let verdicts = |told: &BTreeMap<Case, Runs>, link: &OverLink| {
            claims(told, link).iter().map(|claim| claim.verdict == Verdict::Holds).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(&told, &link(7.0, 34.0)), [true; 7]);

        // More calls without fewer segments are chance; fewer segments over the link without more calls too.
        told.entry(PLAIN).and_modify(|runs| runs.segments.data = 10);
        let mut merged = link(7.0, 34.0);
        merged.nagle.segments.data = 8;
        assert!(!verdicts(&told, &merged)[0]);
        merged.nagle.rates = vec![1900.0, 1910.0];
        assert!(verdicts(&told, &merged)[0]);

        // Nagle's algorithm costs, the buffers do not matter, nothing waits, and the handshake is a tenth.
        told.insert(NODELAY, runs(&[6000.0, 6100.0], 13.0));
        told.insert(Case { rcvbuf: Some(4096), ..PLAIN }, runs(&[5000.0, 5100.0], 13.0));
        told.insert(AT_SERVER, runs(&[2000.0, 2010.0], 13.0));
        told.insert(POOLED, runs(&[2000.0, 2010.0], 13.0));
        told.insert(PLAIN, runs(&[5000.0, 5100.0], 13.0));
        assert_eq!(verdicts(&told, &link(3.4, 34.0)), [false; 7]);
        assert!(matches!(handshake(&[]).verdict, Verdict::Unknown(_)));
    }
}
