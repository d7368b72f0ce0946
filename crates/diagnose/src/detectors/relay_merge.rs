//! A proxy that merges what passes through it, seen on both of its sides.

use super::rule::{Check, rule};
use super::subject::{human, percent};
use crate::diagnosis::ms;
use crate::hops::{APART, Arrival, Departure, Passage};
use crate::report::{Blame, Blamed, Evidence, Finding, Fix, Line, Ms, Severity, Vantage};

rule! {
    /// Updates came to a proxy one by one, and left it several at a time and late.
    ///
    /// ## What it means
    /// A sender that sets `TCP_NODELAY` has done its part, but a proxy, a relay or a tunnel in between reads its updates
    /// and writes them to a connection of its own. Where that one still has Nagle's algorithm on, or where the proxy's
    /// program waits for more before it writes, they are merged again, and the oldest of those that leave together is
    /// stale.
    ///
    /// ## How it is detected
    /// `tcpwhy` is given both hops, in two captures or in one, and has found them to be one conversation: as many bytes each
    /// way, every byte left after it came, and the connections began, ended or paused together. Then it is known of each
    /// byte when it came and when it left. Counted is what left in one segment (with full segments right before it) and had
    /// come in several pieces, more than 1 ms apart and more than 1 ms ago. Times are beyond the fastest way through the
    /// proxy, in which the path and the difference between two clocks cancel out. What the departing hop waited for
    /// meanwhile, its own ledger tells: if Nagle's algorithm, the proxy's socket lacks the option; if a window or a repair,
    /// the proxy is not to blame, and nothing is reported; if nothing, the proxy's program kept it.
    ///
    /// ## What to do
    /// Set `TCP_NODELAY` on the proxy's socket on which the updates leave; the other one changes nothing. Programs that gather
    /// before they write have a setting of their own: `proxy_buffering off` (nginx), `option http-no-delay` (haproxy).
    ///
    /// ## References
    /// RFC 896; RFC 1122 section 4.2.3.4.
    RELAY_MERGE = "relay-merge", Severity::Problem, Check::Passage(check),
        [NODELAY]
}

/// Fewer departures that carry several pieces are chance.
const FEWEST: usize = 5;
/// Costs below this are nobody's trouble. ns.
const SMALLEST_COST: i64 = 10_000_000;
/// …nor are those below one in so many of the conversation's life.
const SHARE_OF_LIFE: i64 = 100;
/// A line of the ledger that has this share (in percent) of a wait is its cause.
const MOST_OF_IT: i64 = 50;
/// Merges shown as evidence.
const SHOWN: usize = 3;
/// Nagle's algorithm shows in the departing hop's ledger, and the times are the proxy's own.
const CONFIDENCE: f64 = 0.95;
/// What came was seen far from the proxy: that it came apart is not sure where the path may have held it.
const CONFIDENCE_FAR: f64 = 0.7;

/// Pieces that came apart and left together.
#[derive(Clone, Copy, Debug)]
struct Merge {
    /// The first of them and the last.
    pieces: (Arrival, Arrival),
    /// How many.
    count: u64,
    left: Departure,
    /// How long the first stayed beyond the fastest way through, ns.
    age: i64,
    by: Keeper,
}

/// Who kept them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    /// TCP, by Nagle's algorithm.
    Nagle,
    /// TCP, for want of a window, or while it repaired a loss.
    Path,
    /// The proxy's program.
    Program,
}

fn check(passage: &Passage<'_>, captures: [usize; 2], findings: &mut Vec<Finding>) {
    let arrivals = passage.arrivals();
    let mut merges = merges(passage, &arrivals);
    merges.retain(|merge| merge.by != Keeper::Path);
    let cost = merges.iter().map(|merge| merge.age).fold(0, i64::saturating_add);
    let source = passage.hops[0];
    let life = source.end.saturating_sub(source.start);
    if merges.len() < FEWEST || cost < SMALLEST_COST || cost.saturating_mul(SHARE_OF_LIFE) < life {
        return;
    }
    let is_nagle = merges.iter().filter(|merge| merge.by == Keeper::Nagle).count() * 2 >= merges.len();
    let (side, to) =
        if passage.direction == 0 { (Blamed::Client, "server") } else { (Blamed::Server, "client") };
    let address = passage.hops[1].addresses[passage.direction].clone();
    merges.sort_by_key(|merge| std::cmp::Reverse(merge.age));
    findings.push(Finding {
        rule: RELAY_MERGE.name,
        severity: RELAY_MERGE.severity,
        connection: None,
        count: merges.len() as u64,
        cost_ms: ms(cost),
        worst_ms: ms(merges[0].age),
        confidence: if is_far(passage) { CONFIDENCE_FAR } else { CONFIDENCE },
        summary: summary(passage, &arrivals, &merges, (cost, life), is_nagle),
        evidence: merges.iter().take(SHOWN).flat_map(|merge| evidence(passage, captures, merge)).collect(),
        fixes: fixes(&address, to, is_nagle),
        blame: Blame { side, address: Some(address) },
    });
}

/// Whether what came was seen at its sender's end of a path, not at the proxy's.
fn is_far(passage: &Passage<'_>) -> bool {
    let sender = if passage.direction == 0 { Vantage::Client } else { Vantage::Server };
    passage.hops[0].vantage == sender
}

fn merges(passage: &Passage<'_>, arrivals: &[Arrival]) -> Vec<Merge> {
    let departures = passage.departures();
    departures
        .into_iter()
        .filter(|left| !left.late)
        .filter_map(|left| merge(passage, arrivals, left))
        .collect()
}

/// The pieces that came apart and whose last bytes left with `left`, if they are several, and stayed.
fn merge(passage: &Passage<'_>, arrivals: &[Arrival], left: Departure) -> Option<Merge> {
    let from = arrivals.partition_point(|arrival| arrival.bytes.1 <= left.bytes.0);
    let until = arrivals.partition_point(|arrival| arrival.bytes.1 <= left.bytes.1);
    let [first, .., last] = arrivals.get(from..until)? else { return None };
    let age = passage.age(first.time, left.time);
    (age > APART).then(|| Merge {
        pieces: (*first, *last),
        count: (until - from) as u64,
        left,
        age,
        by: keeper(passage, left.time.saturating_sub(age), left.time),
    })
}

/// What the departing hop waited for between these times of its capture.
fn keeper(passage: &Passage<'_>, from: i64, until: i64) -> Keeper {
    let intervals = &passage.hops[1].bookings.intervals;
    let first = intervals.partition_point(|interval| interval.until <= from);
    let (mut nagle, mut path) = (0, 0);
    for interval in intervals[first..].iter().take_while(|interval| interval.from < until) {
        let length = interval.until.min(until) - interval.from.max(from);
        match interval.line {
            Line::Nagle | Line::DelayedAck => nagle += length,
            Line::Cwnd | Line::Rwnd | Line::Recovery | Line::Rto | Line::Queueing | Line::Transfer => {
                path += length;
            }
            _ => {}
        }
    }
    let is_most = |part: i64| part.saturating_mul(100) >= (until - from).saturating_mul(MOST_OF_IT);
    match () {
        () if is_most(nagle) => Keeper::Nagle,
        () if is_most(path) => Keeper::Path,
        () => Keeper::Program,
    }
}

/// `123 updates came about 100 ms apart and left 2.1 together, up to 211 ms old`.
fn summary(
    passage: &Passage<'_>,
    arrivals: &[Arrival],
    merges: &[Merge],
    (cost, life): (i64, i64),
    is_nagle: bool,
) -> String {
    let mut pauses: Vec<i64> =
        arrivals.windows(2).map(|pair| pair[1].time.saturating_sub(pair[0].time)).collect();
    pauses.sort_unstable();
    let pause = pauses.get(pauses.len() / 2).copied().unwrap_or(0);
    let merged: u64 = merges.iter().map(|merge| merge.count).sum();
    let [from, to] = if passage.direction == 0 { ["client", "server"] } else { ["server", "client"] };
    let why = if is_nagle {
        "Nagle's algorithm held them on the proxy's socket until the ACK of what had left before."
    } else {
        "TCP had nothing to wait for then: the proxy's program kept them."
    };
    let doubt = if is_far(passage) {
        format!(
            " They were seen at the {from}'s end: a capture at the proxy would tell whether they came to it as they left there."
        )
    } else {
        String::new()
    };
    format!(
        "Of {} updates that the {from} sent, about {} apart, {merged} left the proxy {:.1} together, up to {} late. \
         For {} ({} of the conversation) an update for the {to} lay in the proxy. {why}{doubt}",
        arrivals.len(),
        human(pause),
        merged as f64 / merges.len() as f64,
        human(merges[0].age),
        human(cost),
        percent(cost, life),
    )
}

fn evidence(passage: &Passage<'_>, captures: [usize; 2], merge: &Merge) -> [Evidence; 3] {
    let of = |hop: usize, packet: u64, time: i64, note: String| Evidence {
        packet,
        time_ms: Ms(ms(time.saturating_sub(passage.hops[hop].origin)).0.max(0.0)),
        note,
        capture: Some(captures[hop]),
    };
    let (first, last) = merge.pieces;
    [
        of(0, first.packet, first.time, "an update comes to the proxy".to_owned()),
        of(0, last.packet, last.time, format!("the last of {} comes", merge.count)),
        of(
            1,
            merge.left.packet,
            merge.left.time,
            format!("they leave together, the first {} late", human(merge.age)),
        ),
    ]
}

fn fixes(address: &str, to: &str, is_nagle: bool) -> Vec<Fix> {
    let nodelay = Fix {
        title: "Set TCP_NODELAY on the proxy's socket".to_owned(),
        how: format!(
            "setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) on {address}, towards the {to}; on the proxy's other \
             socket it changes nothing. `tcp_nodelay on` (nginx), `option http-no-delay` (haproxy), `nodelay` (socat)."
        ),
    };
    let at_once = Fix {
        title: "Let the proxy write what it has read".to_owned(),
        how: "Its buffering is a setting (`proxy_buffering off` in nginx), or its loop waits before it writes: a timer, a full \
              buffer, a thread that is busy with something else."
            .to_owned(),
    };
    vec![if is_nagle { nodelay } else { at_once }]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, behind, hops};
    use crate::report::{Blamed, Finding};

    const MS: u64 = 1_000;

    /// What the client's hop has, captured at the proxy, of updates that come from the server every 100 ms from 100 ms on:
    /// when how many leave, and when the client ACKs them.
    fn client_side(leave: &[(u64, u64, u64)]) -> Talk {
        let mut talk = Talk::near_server(300);
        for (time, updates, ack) in leave {
            talk.data(*time, false, 12 * updates);
            talk.ack(*ack, true);
        }
        talk.close(5_000 * MS);
        talk
    }

    /// The server's hop: so many updates, every `period` ms, of which each is so many bytes.
    fn server_side(updates: u64, period: u64, bytes: u64) -> String {
        let mut talk = Talk::default();
        talk.connect(400, 41_000, 300);
        for number in 1..=updates {
            talk.data(number * period * MS, false, bytes);
            talk.ack(number * period * MS + 20, true);
        }
        talk.close(5_000 * MS + 100);
        behind(&talk.text())
    }

    fn found(client_side: &Talk, server_side: &str) -> Vec<Finding> {
        let hops = hops(&[&client_side.text(), server_side]);
        assert_eq!((hops.pairs.len(), hops.notes.as_slice()), (1, &[] as &[String]), "{hops:?}");
        hops.pairs.into_iter().flat_map(|pair| pair.findings).collect()
    }

    /// The first leaves at once, and then two whenever the ACK of those before comes, 199.9 ms later.
    fn held() -> Talk {
        let pair = |number: u64| ((100 + 200 * number) * MS + 100, 2, (300 + 200 * number) * MS);
        let first = (100 * MS + 100, 1, 300 * MS);
        client_side(&std::iter::once(first).chain((1..=10).map(pair)).collect::<Vec<_>>())
    }

    #[test]
    fn updates_that_come_apart_leave_two_at_a_time_on_the_acks() {
        let found = found(&held(), &server_side(21, 100, 12));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.rule, found.blame.side), ("relay-merge", Blamed::Server));
        // The proxy's socket towards the client, on which they leave.
        assert_eq!(found.blame.address.as_deref(), Some("10.0.0.2:80"));
        // Ten pairs, whose older update came 100 ms before the newer one, which left after 0.1 ms as the first had.
        assert_eq!((found.count, found.cost_ms.0, found.worst_ms.0), (10, 1_000.0, 100.0));
        let said = "Of 21 updates that the server sent, about 100 ms apart, 20 left the proxy 2.0 together, up to 100 ms late.";
        assert!(found.summary.starts_with(said), "{}", found.summary);
        assert!(found.summary.contains("Nagle"), "{}", found.summary);
        // Updates 2 and 3 of the server's hop: three packets of handshake, then an ACK behind each; and the second segment
        // of the client's.
        let places: Vec<_> = found.evidence.iter().map(|one| (one.capture, one.packet)).collect();
        assert_eq!(places[..3], [(Some(1), 6), (Some(1), 8), (Some(0), 6)]);
    }

    #[test]
    fn a_proxy_that_passes_each_on_merges_nothing() {
        for took in [100, 30 * MS] {
            let leave = |number: u64| (number * 100 * MS + took, 1, number * 100 * MS + took + 300);
            let near = client_side(&(1..=21).map(leave).collect::<Vec<_>>());
            assert_eq!(found(&near, &server_side(21, 100, 12)), []);
        }
    }

    #[test]
    fn a_sender_that_has_merged_them_itself_is_not_the_proxys_fault() {
        let leave = |number: u64| (number * 200 * MS + 100, 2, number * 200 * MS + 400);
        let near = client_side(&(1..=10).map(leave).collect::<Vec<_>>());
        assert_eq!(found(&near, &server_side(10, 200, 24)), []);
    }

    #[test]
    fn a_proxy_whose_program_waits_is_told_from_one_whose_tcp_does() {
        // The client ACKs at once, and yet two leave every 200 ms.
        let leave = |number: u64| (number * 200 * MS + 100, 2, number * 200 * MS + 400);
        let near = client_side(&(1..=10).map(leave).collect::<Vec<_>>());
        let found = found(&near, &server_side(20, 100, 12));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.count, found.cost_ms.0), (10, 1_000.0));
        assert!(found.summary.contains("the proxy's program kept them"), "{}", found.summary);
        assert!(!found.fixes[0].title.contains("NODELAY"), "{:?}", found.fixes);
    }

    #[test]
    fn a_client_without_room_is_not_the_proxys_fault() {
        let mut near = Talk::near_server(300);
        for number in 1..=10 {
            // Two leave when the window opens, and close it again: the client reads every 200 ms.
            near.data(number * 200 * MS + 100, false, 24);
            near.ack_with(number * 200 * MS + 400, true, 0);
            near.ack_with((number + 1) * 200 * MS, true, 502);
        }
        near.close(5_000 * MS);
        assert_eq!(found(&near, &server_side(20, 100, 12)), []);
    }

    #[test]
    fn four_merges_are_chance() {
        let mut leave = vec![];
        for number in 1..=4 {
            leave.push(((100 + 300 * number) * MS + 100, 2, (200 + 300 * number) * MS));
            leave.push(((200 + 300 * number) * MS + 100, 1, (200 + 300 * number) * MS + 400));
        }
        // Three come every 300 ms, from 300 ms on: the first two of them leave together.
        let mut far = Talk::default();
        far.connect(400, 41_000, 300);
        for number in 3..=14 {
            far.data(number * 100 * MS, false, 12);
        }
        far.close(5_000 * MS + 100);
        assert_eq!(found(&client_side(&leave), &behind(&far.text())), []);
    }
}
