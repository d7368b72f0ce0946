//! A periodic sender whose messages leave several at a time.

use super::holds::{Holds, Pattern, fixes};
use super::rule::{Check, rule};
use super::subject::{Subject, human, percent};
use crate::diagnosis::ms;
use crate::flow::fact::End;
use crate::flow::rhythm::Rhythm;
use crate::report::{Evidence, Finding, Severity};

rule! {
    /// Updates written one by one, at an even pace, leave the sender several at a time and late.
    ///
    /// ## What it means
    /// A program writes small updates at its own pace: a game's state ten times a second, quotes, telemetry.
    /// Nagle's algorithm lets only one small segment be on its way, so the updates written meanwhile are
    /// merged into one segment, which leaves when the ACK comes: after a round trip, or when the receiver's
    /// delayed-ACK timer runs out. What was written every 100 ms then arrives every 200 ms, two at a time,
    /// and the older one is stale.
    ///
    /// ## How it is detected
    /// Most segments of one side leave the moment the ACK of the one before arrives, with no data from the
    /// other side in between, and their lengths are multiples of one unit. The time between two segments,
    /// divided by the units in the second, is the program's period, and has to be about the same for at least
    /// half of them. How old the oldest update in a segment is lies between that interval less one period and
    /// the whole interval; where in between, the last update that left at once and the period tell (of the
    /// periods that fit, the roundest is taken).
    ///
    /// ## What to do
    /// Here `TCP_NODELAY` is the right cure, on the socket that *sends*: each update is a whole message.
    /// Relays and proxies in between need it too, or they merge the updates again. If old updates are
    /// worthless, send them over UDP.
    ///
    /// ## References
    /// RFC 896; RFC 1122 sections 4.2.3.2 and 4.2.3.4.
    MERGED_UPDATES = "merged-updates", Severity::Problem, Check::Connection(check),
        [NODELAY, QUICKACK]
}

/// Fewer held segments than this make no rhythm.
const FEWEST: u64 = 5;
/// Share (in percent) of segments that must carry several updates; below, the ACKs keep pace with the program.
const MERGED: u64 = 30;
/// Share (in percent) of segments that may be no multiple of the unit: a message of another kind now and then.
const ODD: u64 = 20;
/// Share (in percent) of held segments whose updates must have been written within a quarter of the period.
const EVEN: u64 = 50;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let Some(holds) = Holds::of(subject, end).filter(|holds| holds.pattern == Pattern::Stream) else {
            continue;
        };
        let Some(rhythm) = subject.half(end).rhythm.as_deref() else { continue };
        let tally = &holds.tally;
        let severity = holds.severity(subject, end, tally.total, tally.count);
        let Some(severity) = severity.filter(|_| is_merged(rhythm)) else { continue };
        findings.push(Finding {
            rule: MERGED_UPDATES.name,
            severity,
            connection: Some(subject.id),
            blame: subject.blame(end),
            count: u64::from(rhythm.merged),
            cost_ms: ms(tally.total),
            worst_ms: ms(tally.worst()[0].length),
            confidence: holds.confidence().min(0.95),
            summary: summary(subject, end, &holds, rhythm),
            evidence: evidence(subject, &holds),
            fixes: fixes(subject, end, &holds),
        });
    }
}

/// Whether these are the merged updates of a program that writes at an even pace.
fn is_merged(rhythm: &Rhythm) -> bool {
    let (segments, periods) = (rhythm.gaps.count(), &rhythm.periods);
    let period = periods.quantile(0.5);
    let near = periods.between(period - period / 4, period + period / 4);
    periods.count() >= FEWEST
        && u64::from(rhythm.merged) * 100 >= segments * MERGED
        && u64::from(rhythm.odd) * 100 <= segments * ODD
        && near * 100 >= periods.count() * EVEN
}

fn summary(subject: &Subject<'_>, end: End, holds: &Holds, rhythm: &Rhythm) -> String {
    let (wire, period) = (rhythm.gaps.quantile(0.5), rhythm.periods.quantile(0.5));
    let units = wire as f64 / period.max(1) as f64;
    let lag = holds.tally.total / holds.tally.count.max(1) as i64;
    let until = if holds.delayed > holds.plain {
        format!(
            "each has to wait for {}'s delayed ACK, typically {}",
            subject.who(1 - end),
            human(holds.typical)
        )
    } else {
        format!(
            "each has to wait a round trip, typically {}, for the ACK of the one before",
            human(holds.plain_typical)
        )
    };
    format!(
        "{}-byte updates that {} writes about every {} leave about every {}, typically {units:.1} to a segment, \
         the oldest {} late on average, because {until}: {} in all, {} of the time in which somebody waited.",
        rhythm.unit,
        subject.who(end),
        beat(period),
        beat(wire),
        human(lag),
        human(holds.tally.total),
        percent(holds.tally.total, subject.waiting()),
    )
}

/// A period without the digits that the histogram behind it does not know.
fn beat(ns: i64) -> String {
    if ns < 10_000_000 { human(ns) } else { format!("{:.0} ms", ns as f64 / 1e6) }
}

fn evidence(subject: &Subject<'_>, holds: &Holds) -> Vec<Evidence> {
    subject.evidence(&holds.tally, |_| {
        [
            "an update leaves; those written from now on wait for its ACK".to_owned(),
            "the ACK".to_owned(),
            "the updates written meanwhile leave in one segment".to_owned(),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::Blamed;

    const MS: u64 = 1_000;

    /// A server that sends `segments` of so many 12-byte updates, one every `gap` ms, and a client that ACKs
    /// each `ack` ms later. Captured at the server: the handshake's round trip is on the client's side.
    fn updates(segments: &[u64], gap: u64, ack: u64) -> String {
        let mut talk = Talk::near_server(300);
        for (number, units) in segments.iter().enumerate() {
            let now = 10 * MS + number as u64 * gap * MS;
            talk.data(now, false, 12 * units);
            talk.ack(now + ack * MS - 20, true);
        }
        talk.text()
    }

    #[test]
    fn updates_leave_two_at_a_time_on_a_delayed_ack() {
        let text = updates(&[1, 1, 2, 2, 2, 3, 2, 2, 2, 2], 200, 200);
        let found = findings("merged-updates", &text);
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.blame.side, Blamed::Server);
        assert_eq!(found.blame.address.as_deref(), Some("10.0.0.2:80"));
        // Eight segments of more than one update.
        assert_eq!(found.count, 8);
        // Nine waits of 200 ms, of which the oldest update saw all but a period of 100 ms at most.
        assert!((900.0..=1_800.0).contains(&found.cost_ms.0), "{found:?}");
        assert!(found.summary.starts_with("12-byte updates"), "{}", found.summary);
        assert!(found.summary.contains("every 100 ms leave about every 200 ms"), "{}", found.summary);
        assert!(found.fixes[0].title.contains("TCP_NODELAY"), "{:?}", found.fixes);
    }

    #[test]
    fn an_ack_that_releases_nothing_merges_nothing() {
        assert!(findings("merged-updates", &updates(&[1; 10], 200, 160)).is_empty());
        assert!(findings("nagle-delayed-ack", &updates(&[1; 10], 200, 160)).is_empty());
    }

    #[test]
    fn far_from_the_sender_a_beat_may_fall_together_with_the_acks() {
        // The client's delayed ACK after 40 ms, a round trip of 50 ms to the server, and an update every 100
        // ms: 60 ms after the ACK, as if released by it. But nothing was ever merged.
        let mut talk = Talk::near_client(50 * MS);
        for number in 1..=10 {
            talk.data(number * 100 * MS, false, 12);
            talk.ack(number * 100 * MS + 40 * MS, true);
        }
        for rule in ["merged-updates", "nagle-delayed-ack", "nagle-hold", "split-write"] {
            assert!(findings(rule, &talk.text()).is_empty(), "{rule}");
        }
    }

    #[test]
    fn messages_of_many_sizes_show_no_period() {
        let mut talk = Talk::near_server(300);
        for (number, len) in [12, 31, 17, 44, 29, 13, 37, 25, 19, 41].into_iter().enumerate() {
            let now = 10 * MS + number as u64 * 200 * MS;
            talk.data(now, false, len);
            talk.ack(now + 200 * MS - 20, true);
        }
        assert!(findings("merged-updates", &talk.text()).is_empty());
        assert_eq!(findings("nagle-delayed-ack", &talk.text()).len(), 1);
    }
}
