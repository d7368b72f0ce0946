//! Delayed ACKs that cost time without Nagle's algorithm.

use super::rule::{Check, rule};
use super::subject::{Subject, human, percent, times};
use super::windows::mean;
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::ledger::Tally;
use crate::report::{Evidence, Finding, Fix, Severity};

rule! {
    /// A full segment waits for an ACK that the receiver delays.
    ///
    /// ## What it means
    /// The sender may not have more on its way than its congestion window or its send buffer allows. When that
    /// is an odd number of segments, or a single one, the receiver does not ACK the last of them at once: it
    /// hopes for a second one, or for data to send the ACK with, until its timer runs out (40 ms on Linux, up
    /// to 200 ms elsewhere). Both wait for each other. Nagle's algorithm in its first form, in stacks other
    /// than Linux, holds a short last segment behind a full one as well; packets do not tell that from a full
    /// window.
    ///
    /// ## How it is detected
    /// After a full segment a sender goes on the moment an ACK arrives that covers less than two full segments,
    /// or all that was on its way, and that came at least 20 ms (and half a round trip) later than the base
    /// round trip explains. Twice at least, from 20 ms in all and 2 % of the time in which somebody waited on, and not
    /// where the same sender waits longer for the receiver's window, nor where the ACK covers several segments and
    /// tells of a smaller window: a program that does not read delays the ACK, too.
    ///
    /// ## What to do
    /// At the receiver: `TCP_QUICKACK` after each `recv` (Linux), or the route option `quickack 1`. At the
    /// sender: leave the send buffer to the system (no `SO_SNDBUF` near a few segments), and write large
    /// pieces at once. A larger initial window helps at the start of a connection.
    ///
    /// ## References
    /// RFC 1122 section 4.2.3.2; RFC 5681 section 4.2; RFC 9293 section 3.8.6.3.
    DELAYED_ACK = "delayed-ack", Severity::Problem, Check::Connection(check),
        [QUICKACK]
}

/// A single late ACK may have any reason.
const FEWEST: u64 = 2;
/// Costs below this are nobody's trouble: one delayed ACK of half the usual length. ns.
const SMALLEST_COST: i64 = 20_000_000;
/// …nor are those below one in so many of the time in which somebody waited.
const SHARE_OF_LIFE: i64 = 50;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let Some(tally) = subject.tally(Cause::DelayedAck, end) else { continue };
        if tally.count < FEWEST
            || tally.total < SMALLEST_COST.max(subject.waiting() / SHARE_OF_LIFE)
            || tally.total <= waited_for_window(subject, end)
        {
            continue;
        }
        findings.push(Finding {
            rule: DELAYED_ACK.name,
            severity: DELAYED_ACK.severity,
            connection: Some(subject.id),
            blame: subject.blame(1 - end),
            count: tally.count,
            cost_ms: ms(tally.total),
            worst_ms: ms(tally.worst()[0].length),
            confidence: if tally.count < 5 { 0.6 } else { 0.8 },
            summary: format!(
                "{} could go on behind full segments only when {} sent its delayed ACK: {}, {} later than the \
                 path explains on average, {} in all, {} of the time in which somebody waited.",
                subject.who(end).replacen("the", "The", 1),
                subject.who(1 - end),
                times(tally.count),
                human(mean(tally)),
                human(tally.total),
                percent(tally.total, subject.waiting()),
            ),
            evidence: evidence(subject, tally),
            fixes: fixes(subject, end),
        });
    }
}

/// How long this sender waited for the receiver's window instead.
fn waited_for_window(subject: &Subject<'_>, end: End) -> i64 {
    let waited = |cause| subject.tally(cause, end).map_or(0, |tally| tally.total);
    waited(Cause::ReceiveWindow) + waited(Cause::ZeroWindow) + waited(Cause::Unread)
}

fn evidence(subject: &Subject<'_>, tally: &Tally) -> Vec<Evidence> {
    subject.evidence(tally, |_| {
        [
            "the last segment before the wait".to_owned(),
            "the ACK, later than the path explains".to_owned(),
            "the sender goes on at once".to_owned(),
        ]
    })
}

fn fixes(subject: &Subject<'_>, end: End) -> Vec<Fix> {
    vec![
        Fix {
            title: format!("Ask the {} to ACK at once", subject.side_name(1 - end)),
            how: "setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one) after each recv() on Linux (it does \
                  not last), or `ip route change … quickack 1` for the route. More ACKs are sent."
                .to_owned(),
        },
        Fix {
            title: format!("Let the {} have more on its way", subject.side_name(end)),
            how: "Do not set SO_SNDBUF to a few segments: without it Linux sizes the buffer itself. Where a tail \
                  waits behind one full segment, write the message at once or set TCP_NODELAY (stacks other than \
                  Linux hold such a tail)."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::Blamed;

    const MS: u64 = 1_000;

    /// Eight full segments, one on its way at a time; each is ACKed `ack` µs later, and the next leaves `next`
    /// µs behind the ACK.
    fn upload(ack: u64, next: u64) -> String {
        let mut talk = Talk::near_client(200);
        for number in 0..8 {
            let now = MS + number * (ack + next);
            talk.data(now, true, 1_460);
            talk.ack(now + ack, false);
        }
        talk.text()
    }

    #[test]
    fn a_single_segment_on_its_way_waits_for_the_timer() {
        let found = findings("delayed-ack", &upload(40 * MS, 30));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.blame.side, Blamed::Server);
        assert_eq!(found.blame.address.as_deref(), Some("10.0.0.2:80"));
        // Seven segments waited 40.03 ms each, of which 0.21 ms are the path's.
        assert_eq!(found.count, 7);
        assert!((278.0..=279.5).contains(&found.cost_ms.0), "{found:?}");
        assert!((39.7..=39.9).contains(&found.worst_ms.0), "{found:?}");
        assert!(found.summary.contains("delayed ACK: 7 times"), "{}", found.summary);
        assert!(findings("nagle-delayed-ack", &upload(40 * MS, 30)).is_empty());
    }

    #[test]
    fn prompt_acks_and_a_program_that_pauses() {
        assert!(findings("delayed-ack", &upload(200, 40 * MS)).is_empty());
    }

    #[test]
    fn an_ack_that_releases_nothing_cost_nothing() {
        assert!(findings("delayed-ack", &upload(40 * MS, 30 * MS)).is_empty());
    }

    /// Eight times four full segments, ACKed at once 40 ms later; each time the window is so many times 128 bytes
    /// smaller.
    fn in_fours(shrinks: u64) -> String {
        let mut talk = Talk::near_client(200);
        for round in 0..8 {
            let now = MS + round * (40 * MS + 30);
            (0..4).for_each(|piece| talk.data(now + piece, true, 1_460));
            talk.ack_with(now + 40 * MS, false, 502 - shrinks * (round + 1));
        }
        talk.text()
    }

    #[test]
    fn a_program_that_does_not_read_delays_the_ack() {
        assert_eq!(findings("delayed-ack", &in_fours(0)).len(), 1);
        // 45 x 128 = 5,760 of the 5,840 bytes of each round are still there when the ACK leaves.
        let text = in_fours(45);
        assert!(findings("delayed-ack", &text).is_empty());
        let found = findings("zero-window", &text);
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.blame.side, found.count), (Blamed::Server, 7));
        // Seven times 40.03 ms, less the path's 0.21 ms.
        assert!((278.0..=279.5).contains(&found.cost_ms.0), "{found:?}");
    }
}
