//! Windows too small for a segment, and segments cut to fit them.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, grouped, human, percent};
use super::windows::matters;
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::ledger::Tally;
use crate::report::{Finding, Fix, Severity};

rule! {
    /// The receiver offers tiny windows as soon as it has room for a few bytes, and the sender fills them.
    ///
    /// ## What it means
    /// A receiver that tells of every few bytes its program has read, and a sender that uses them at once, fall into a
    /// lasting habit: windows and segments never grow large again, each segment's headers are as long as its data, and
    /// each needs an ACK. Either side can end it, and both are required to: the receiver by not moving its window on by
    /// less than a full segment or half its buffer, the sender by not using less than a full segment or half the
    /// largest window. Only simple stacks (small devices, old systems, programs with a TCP of their own) do it.
    ///
    /// ## How it is detected
    /// The sender had no room in the window and waited; the receiver moved the window's right edge by less than a full
    /// segment and less than half of the largest window it has offered; and what then left filled just that room. At
    /// least three times in a row make a habit. A small rest at a window's edge after full segments, a window that
    /// shrinks because data lies unread, or one smaller than a segment from the beginning, is not meant; nor is a receiver
    /// whose bits a sender such as Linux leaves alone until a segment fits: that costs packets, and no more time than
    /// its program takes to read. Such a wait is
    /// counted here alone, and neither by `small-receive-window` nor by `zero-window`.
    ///
    /// ## What to do
    /// Let the receiving program read more at a time, so that room comes in large pieces; give the receiver a buffer of
    /// several segments; renew its stack (lwIP: `TCP_WND` of at least 4 × `TCP_MSS`, `TCP_WND_UPDATE_THRESHOLD`).
    ///
    /// ## References
    /// RFC 813; RFC 1122 sections 4.2.3.3 (receiver) and 4.2.3.4 (sender); RFC 9293 section 3.8.6.2.
    SILLY_WINDOW = "silly-window", Severity::Problem, Check::Connection(check)
}

/// Fewer tiny windows are the end of a buffer, met by chance.
const FEWEST: u64 = 3;
/// Both ends' part is seen.
const CONFIDENCE: f64 = 0.9;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        if let Some(tally) = subject.tally(Cause::SillyWindow, end)
            && tally.count >= FEWEST
            && matters(subject, tally.total)
        {
            findings.push(finding(subject, end, tally));
        }
    }
}

fn finding(subject: &Subject<'_>, end: End, tally: &Tally) -> Finding {
    Finding {
        rule: SILLY_WINDOW.name,
        severity: SILLY_WINDOW.severity,
        connection: Some(subject.id),
        blame: subject.blame(1 - end),
        count: tally.count,
        cost_ms: ms(tally.total),
        worst_ms: ms(tally.worst().first().map_or(0, |case| case.length)),
        confidence: CONFIDENCE,
        summary: subject.text(|| summary(subject, end, tally)),
        evidence: subject.evidence(tally, |_| {
            [
                "the window is full".to_owned(),
                "the receiver moves it on by less than a segment".to_owned(),
                "the sender fills that at once".to_owned(),
            ]
        }),
        fixes: subject.fixes(|| fixes(subject, end)),
    }
}

fn summary(subject: &Subject<'_>, end: End, tally: &Tally) -> String {
    let half = subject.half(end);
    let mean = half.bytes / u64::from(half.segments.max(1));
    format!(
        "{} moved its full window on by less than a segment {} times, and {} filled each such bit at once, with \
         segments of {} on average where {} would fit: it waited {} in all, {} of the time in which somebody waited.",
        subject.capital(1 - end),
        grouped(tally.count),
        subject.who(end),
        counted(mean, "byte"),
        grouped(u64::from(half.full_size())),
        human(tally.total),
        percent(tally.total, subject.waiting()),
    )
}

fn fixes(subject: &Subject<'_>, end: End) -> Vec<Fix> {
    let (sender, receiver) = (subject.side_name(end), subject.side_name(1 - end));
    vec![
        Fix {
            title: format!("Read more at a time on the {receiver}"),
            how: "A program that reads a few bytes at a time makes room in bits. Read at least a segment, 4 KB or more, a \
                  recv()."
                .to_owned(),
        },
        Fix {
            title: format!("Let the {receiver}'s stack keep small windows to itself"),
            how: "RFC 1122 section 4.2.3.3: no new window until a full segment or half the buffer is free. Linux, the BSDs \
                  and Windows do so; in lwIP it is TCP_WND_UPDATE_THRESHOLD, with a TCP_WND of several TCP_MSS."
                .to_owned(),
        },
        Fix {
            title: format!("Or let the {sender}'s stack wait for room"),
            how: "RFC 1122 section 4.2.3.4: nothing less than a full segment or half the largest window while data is \
                  in flight. Switching TCP_NODELAY off there helps where the stack has no rule of its own."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::Blamed;

    /// An upload fills the server's window; from then on its program reads so many units of 128 bytes every 30 ms, of which
    /// the server tells at once, and the client fills what it is told of.
    fn upload(units: u64) -> String {
        let mut talk = Talk::near_client(10_000);
        talk.flight(11_000, true, 44);
        talk.ack_with(21_500, false, 0);
        for read in 0..10 {
            let now = 50_000 + 30_000 * read;
            talk.ack_with(now, false, units);
            let mut room = units * 128;
            while room > 0 {
                let len = room.min(1_460);
                talk.data(now + 50, true, len);
                room -= len;
            }
            talk.ack_with(now + 10_100, false, 0);
        }
        talk.text()
    }

    #[test]
    fn windows_of_128_bytes_are_filled_with_segments_of_128_bytes() {
        let found = findings("silly-window", &upload(1));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.count, found.blame.side), (10, Blamed::Server));
        assert!(found.summary.contains("where 1,460 would fit"), "{}", found.summary);
        for other in ["zero-window", "small-receive-window"] {
            assert!(findings(other, &upload(1)).is_empty(), "{other}");
        }
    }

    #[test]
    fn a_receiver_that_waits_for_room_for_a_segment_is_only_slow() {
        let text = upload(12);
        assert!(findings("silly-window", &text).is_empty());
        assert_eq!(findings("zero-window", &text).len(), 1);
    }
}
