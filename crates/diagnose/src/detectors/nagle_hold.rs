//! Nagle's algorithm alone: a round trip for each small segment.

use super::holds::{Holds, fixes};
use super::rule::{Check, rule};
use super::subject::{Subject, human, percent, times};
use crate::diagnosis::ms;
use crate::report::{Evidence, Finding, Severity};

rule! {
    /// A small segment waits one round trip for the ACK of the segment before it.
    ///
    /// ## What it means
    /// Nagle's algorithm lets only one small segment be on its way: the next has to wait until the first is
    /// ACKed. The receiver ACKs at once, so the wait is the path's round trip, no more. On a local network
    /// nobody notices; over 50 ms of distance, a message written in two pieces takes 100 ms instead of 50.
    ///
    /// ## How it is detected
    /// As for `nagle-delayed-ack`: a segment smaller than the MSS leaves its sender the moment a pure ACK
    /// arrives that covers the small segment before it (captured at the receiver: one round trip after that
    /// ACK). But that ACK came when the path's base round trip let it come (less than 20 ms, or half the round
    /// trip, later). Tails inside a bulk transfer do not count. Reported from 10 ms in all on: as a problem from
    /// 5 % of the time in which somebody waited on, or where it is felt, 100 ms at
    /// once or 500 ms in all; below 1 % and 50 ms, and fewer than five times, as a note.
    ///
    /// ## What to do
    /// Best, hand the whole message to TCP at once: one `write`, or one `writev`/`sendmsg`, or `MSG_MORE` on
    /// all pieces but the last. Where the messages really are separate, set `TCP_NODELAY` on the socket that
    /// *sends*. Nothing at the receiver helps: it does not delay anything.
    ///
    /// ## References
    /// RFC 896; RFC 1122 section 4.2.3.4; RFC 9293 section 3.7.4.
    NAGLE_HOLD = "nagle-hold", Severity::Problem, Check::Connection(check),
        [ONE_WRITE, NODELAY]
}

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let Some(holds) = Holds::of(subject, end) else { continue };
        let severity = holds.severity(subject, end, holds.plain_cost, holds.plain);
        // A single short one may be chance.
        let is_told = |severity: &Severity| holds.plain > 1 || holds.plain == 1 && *severity > Severity::Note;
        let Some(severity) = severity.filter(is_told) else { continue };
        let worst =
            holds.tally.worst().iter().filter(|case| holds.is_plain(case)).map(|case| case.length).max();
        findings.push(Finding {
            rule: NAGLE_HOLD.name,
            severity,
            connection: Some(subject.id),
            blame: subject.blame(end),
            count: holds.plain,
            cost_ms: ms(holds.plain_cost),
            worst_ms: ms(worst.unwrap_or(holds.plain_typical)),
            confidence: holds.confidence(),
            summary: format!(
                "Nagle's algorithm on {} held a small segment {} for one round trip, typically {}, until the \
                 ACK of the segment before it came: {} in all, {} of the time in which somebody waited. Those ACKs came at \
                 once: {} delays nothing.",
                subject.who(end),
                times(holds.plain),
                human(holds.plain_typical),
                human(holds.plain_cost),
                percent(holds.plain_cost, subject.waiting()),
                subject.who(1 - end),
            ),
            evidence: evidence(subject, &holds),
            fixes: fixes(subject, end, &holds),
        });
    }
}

fn evidence(subject: &Subject<'_>, holds: &Holds) -> Vec<Evidence> {
    subject.evidence(&holds.tally, |case| {
        if !holds.is_plain(case) {
            return Default::default();
        }
        [
            "a small segment leaves; the next has to wait for its ACK".to_owned(),
            "the pure ACK that was waited for, one round trip later".to_owned(),
            "the held segment leaves at once".to_owned(),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::Blamed;

    const MS: u64 = 1_000;

    const SHAKE: &str = "\
        12:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 0, win 64240, options [mss 1460], length 0\n\
        12:00:00.050000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 0, ack 1, win 65160, options [mss 1460], length 0\n\
        12:00:00.050020 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n";

    /// The client's data from `seq` on.
    fn line(ms: f64, seq: u32, len: u32) -> String {
        let (at, end) = (ms / 1e3, seq + len);
        format!(
            "12:00:{at:09.6} IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq {seq}:{end}, ack 1, win 64240, length \
             {len}\n"
        )
    }

    /// The server's pure ACK.
    fn ack(ms: f64, ack: u32) -> String {
        let at = ms / 1e3;
        format!(
            "12:00:{at:09.6} IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack {ack}, win 65160, length 0\n"
        )
    }

    /// Ten requests of 16 and 48 bytes over a round trip of `path` ms; the first piece is ACKed `held` ms
    /// later than that, and the second follows 20 µs behind the ACK.
    fn split_requests(path: u64, held: u64) -> Talk {
        let mut talk = Talk::near_client(path * MS);
        for number in 1..=10 {
            let start = number * 400 * MS;
            talk.data(start, true, 16);
            talk.ack(start + (path + held) * MS, false);
            talk.data(start + (path + held) * MS + 20, true, 48);
            talk.data(start + (2 * path + held) * MS + 40, false, 100);
        }
        talk
    }

    #[test]
    fn a_round_trip_for_each_tail() {
        let found = findings("nagle-hold", &split_requests(50, 0).text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.blame.side, Blamed::Client);
        assert_eq!(found.blame.address.as_deref(), Some("10.0.0.1:40000"));
        assert_eq!(found.count, 10);
        // Ten times 50 ms and 20 µs.
        assert!((500.0..=501.0).contains(&found.cost_ms.0), "{found:?}");
        assert!((50.0..=50.1).contains(&found.worst_ms.0), "{found:?}");
        assert!(found.summary.contains("10 times"), "{}", found.summary);
        assert!(findings("nagle-delayed-ack", &split_requests(50, 0).text()).is_empty());
    }

    #[test]
    fn a_delayed_ack_on_the_same_path_is_another_rule() {
        let text = split_requests(50, 40);
        assert!(findings("nagle-hold", &text.text()).is_empty());
        assert_eq!(findings("nagle-delayed-ack", &text.text()).len(), 1);
    }

    #[test]
    fn a_short_path_costs_nothing_worth_a_finding() {
        // Four holds of 2 ms: half of the time spent in exchanges, but 8 ms in all.
        let mut talk = Talk::near_client(2 * MS);
        for number in 1..=4 {
            let start = number * 400 * MS;
            talk.data(start, true, 16);
            talk.ack(start + 2 * MS, false);
            talk.data(start + 2 * MS + 20, true, 48);
            talk.data(start + 4 * MS, false, 100);
        }
        assert!(findings("nagle-hold", &talk.text()).is_empty());
    }

    /// Ten requests of 16 and 48 bytes, captured at the server 20 ms away: it ACKs the first piece at once, and the
    /// second comes `later` µs after that ACK.
    fn seen_from_the_server(later: u64) -> Talk {
        let mut talk = Talk::near_server(20 * MS);
        for number in 1..=10 {
            let start = number * 400 * MS;
            talk.data(start, true, 16);
            talk.ack(start + 30, false);
            talk.data(start + 30 + later, true, 48);
            talk.data(start + 60 + later, false, 100);
        }
        talk
    }

    #[test]
    fn captured_at_the_receiver_the_tail_follows_its_ack_by_a_round_trip() {
        let found = findings("nagle-hold", &seen_from_the_server(20_050).text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.blame.side, found.count), (Blamed::Client, 10));
        // Ten times 20.08 ms.
        assert!((200.7..=200.9).contains(&found.cost_ms.0), "{found:?}");
        assert!(found.summary.contains("typically 20."), "{}", found.summary);
    }

    #[test]
    fn captured_at_the_receiver_what_comes_sooner_or_later_was_not_held() {
        for later in [15 * MS, 24 * MS, 40 * MS] {
            assert!(findings("nagle-hold", &seen_from_the_server(later).text()).is_empty(), "{later}");
        }
    }

    /// A body of 3,000 bytes behind a header of 200: two full segments leave with the header, and the tail waits for
    /// the header's ACK, not for theirs.
    #[test]
    fn a_tail_behind_full_segments_waits_for_the_ack_of_the_small_one() {
        let mut text = String::from(SHAKE);
        for number in 0..10 {
            let (start, at) = (400.0 * f64::from(number + 1), 3_200 * number + 1);
            text += &line(start, at, 200);
            text += &line(start + 0.01, at + 200, 1_460);
            text += &line(start + 0.02, at + 1_660, 1_460);
            text += &ack(start + 50.0, at + 200);
            text += &line(start + 50.02, at + 3_120, 80);
            text += &ack(start + 50.06, at + 3_120);
            text += &ack(start + 100.1, at + 3_200);
        }
        let found = findings("nagle-hold", &text);
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.blame.side, found.count), (Blamed::Client, 10));
        // From the header to the tail: ten times 50.02 ms.
        assert!((500.1..=500.3).contains(&found.cost_ms.0), "{found:?}");
    }

    /// The same over 100 ms; the receiver ACKs header and first segment at once, and holds the ACK of the odd one, which comes
    /// while the tail is on its way. That is not the pace of the path.
    #[test]
    fn an_odd_segments_delayed_ack_hides_no_tail() {
        let mut talk = Talk::near_client(100 * MS);
        for number in 0..10 {
            let (start, at) = ((number + 1) * 400 * MS, number * 3_200 + 1);
            let mut piece = |us: u64, from: u64, len: u64| {
                let fields =
                    format!("[P.], seq {}:{}, ack 1, win 502, length {len}", at + from, at + from + len);
                talk.line(start + us, true, &fields);
            };
            piece(0, 0, 200);
            piece(10, 200, 1_460);
            piece(20, 1_660, 1_460);
            piece(100 * MS + 30, 3_120, 80);
            talk.ack_of(start + 100 * MS, false, at + 1_659);
            talk.ack_of(start + 141 * MS, false, at + 3_119);
            talk.ack_of(start + 200 * MS + 40, false, at + 3_199);
        }
        let found = findings("nagle-hold", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.blame.side, found.count), (Blamed::Client, 10));
        assert!((1_000.0..=1_001.0).contains(&found.cost_ms.0), "{found:?}");
    }

    #[test]
    fn tails_of_a_bulk_transfer_are_nobodys_trouble() {
        let mut talk = Talk::near_client(20 * MS);
        for number in 1..=20 {
            let start = number * 20 * MS + number * 40;
            for piece in 0..10 {
                talk.data(start + piece, true, 1_460);
            }
            talk.data(start + 10, true, 100);
            talk.ack(start + 20 * MS, false);
        }
        assert!(findings("nagle-hold", &talk.text()).is_empty());
    }

    #[test]
    fn a_tail_that_does_not_wait_for_the_ack_is_not_held() {
        let mut talk = Talk::near_client(50 * MS);
        for number in 1..=10 {
            let start = number * 400 * MS;
            talk.data(start, true, 16);
            talk.data(start + 20, true, 48);
            talk.ack(start + 50 * MS, false);
            talk.data(start + 50 * MS + 40, false, 100);
        }
        assert!(findings("nagle-hold", &talk.text()).is_empty());
    }
}
