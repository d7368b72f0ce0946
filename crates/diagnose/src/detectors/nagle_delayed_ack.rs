//! Nagle's algorithm against the receiver's delayed ACK.

use super::holds::{Holds, fixes};
use super::rule::{Check, rule};
use super::subject::{Subject, human, percent};
use crate::diagnosis::ms;
use crate::report::{Finding, Severity};

rule! {
    /// A small segment waits for an ACK that the receiver delays.
    ///
    /// ## What it means
    /// The sender has a small piece of data ready and does not send it: Nagle's algorithm lets only one small
    /// segment be on its way, and the next has to wait until the first is ACKed. The receiver, in turn, delays
    /// that ACK in the hope of sending it together with data: 40 ms on Linux, up to 200 ms elsewhere. Both
    /// wait for each other until the receiver's timer runs out. The network has nothing to do with it.
    ///
    /// ## How it is detected
    /// A segment smaller than the MSS leaves its sender the moment a pure ACK arrives that covers the small
    /// segment before it, the receiver's program has not spoken in between, and the ACK came at least 20 ms
    /// later (and half a round trip, on long paths) than the path's base round trip explains. Captured at the
    /// receiver, the moment is one round trip after the ACK. A slow program on the other side shows the same
    /// late ACK, but then the *other* side speaks next. A sender that was seen to push a small segment while
    /// another was in flight has switched the algorithm off and is not suspected, until ACKs release its segments again
    /// and again. Where the distance to the sender is not known, or not yet, three and more segments that follow late ACKs
    /// after the same time are held, too. An ACK that comes more than half a second late is not a delayed one. Weighed as
    /// `nagle-hold` is.
    ///
    /// ## What to do
    /// Best, hand the whole message to TCP at once: one `write`, or one `writev`/`sendmsg` with several
    /// buffers, or `MSG_MORE` on all pieces but the last. Where messages really are written one after the
    /// other (updates of a game, keystrokes), set `TCP_NODELAY` on the socket that *sends*; on the other side
    /// it changes nothing. Where only the receiver can be changed, `TCP_QUICKACK` after each `recv` on Linux.
    ///
    /// ## References
    /// RFC 896; RFC 1122 sections 4.2.3.2 (delayed ACK) and 4.2.3.4 (Nagle); RFC 9293 section 3.7.4.
    NAGLE_DELAYED_ACK = "nagle-delayed-ack", Severity::Problem, Check::Connection(check),
        [ONE_WRITE, NODELAY, QUICKACK]
}

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let Some(holds) = Holds::of(subject, end) else { continue };
        let severity = holds.severity(subject, end, holds.delayed_cost, holds.delayed);
        let Some(severity) = severity.filter(|_| holds.delayed > 0) else { continue };
        let waited = human(holds.typical);
        let evidence = subject.evidence(&holds.tally, |_| {
            [
                "a small segment leaves; the next has to wait for its ACK".to_owned(),
                "the pure ACK that was waited for".to_owned(),
                "the held segment leaves at once".to_owned(),
            ]
        });
        findings.push(Finding {
            rule: NAGLE_DELAYED_ACK.name,
            severity,
            connection: Some(subject.id),
            blame: subject.blame(end),
            count: holds.delayed,
            cost_ms: ms(holds.delayed_cost),
            worst_ms: ms(holds.tally.worst()[0].length.min(holds.delayed_cost)),
            confidence: holds.confidence(),
            summary: format!(
                "Nagle's algorithm on {} held a small segment {} until {} sent its delayed ACK, typically \
                 {waited} later: {} in all, {} of the time in which somebody waited.",
                subject.who(end),
                super::subject::times(holds.delayed),
                subject.who(1 - end),
                human(holds.delayed_cost),
                percent(holds.delayed_cost, subject.waiting()),
            ),
            evidence,
            fixes: fixes(subject, end, &holds),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::Blamed;

    const SHAKE: &str = "\
        12:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 1000, win 64240, options [mss 1460], length 0\n\
        12:00:00.000100 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 5000, ack 1001, win 65160, options [mss 1460], length 0\n\
        12:00:00.000120 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n";

    /// One line of tcpdump's, at `ms` after the hour.
    fn line(ms: f64, from_client: bool, fields: &str) -> String {
        let (from, to) =
            if from_client { ("10.0.0.1.40000", "10.0.0.2.80") } else { ("10.0.0.2.80", "10.0.0.1.40000") };
        format!("12:00:{:09.6} IP {from} > {to}: Flags {fields}\n", ms / 1e3)
    }

    /// Header (`seq 1:17`), then a pure ACK 40 ms later, then the body after `reaction` ms, then the answer.
    fn request(reaction: f64) -> String {
        let body = 50.1 + reaction;
        SHAKE.to_owned()
            + &line(10.0, true, "[P.], seq 1:17, ack 1, win 64240, length 16")
            + &line(50.1, false, "[.], ack 17, win 65160, length 0")
            + &line(body, true, "[P.], seq 17:65, ack 1, win 64240, length 48")
            + &line(body + 0.2, false, "[P.], seq 1:101, ack 65, win 65160, length 100")
    }

    #[test]
    fn a_body_that_leaves_on_the_heels_of_the_delayed_ack_was_held() {
        let found = findings("nagle-delayed-ack", &request(0.02));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].blame.side, found[0].count), (Blamed::Client, 1));
        assert_eq!(found[0].blame.address.as_deref(), Some("10.0.0.1:40000"));
        // From the header at 10.0 ms to the body at 50.12 ms.
        assert!((found[0].cost_ms.0 - 40.12).abs() < 0.001, "{:?}", found[0].cost_ms);
        let packets: Vec<_> = found[0].evidence.iter().map(|shown| (shown.packet, shown.time_ms.0)).collect();
        assert_eq!(packets, [(4, 10.0), (5, 50.1), (6, 50.12)]);
    }

    #[test]
    fn a_program_that_writes_the_body_later_was_not_held() {
        assert!(findings("nagle-delayed-ack", &request(5.0)).is_empty());
    }

    /// The look-alike: the same pure ACK after 40 ms, and then the other side speaks.
    #[test]
    fn a_server_that_thinks_42_ms_is_no_hold() {
        let text = SHAKE.to_owned()
            + &line(10.0, true, "[P.], seq 1:65, ack 1, win 64240, length 64")
            + &line(50.1, false, "[.], ack 65, win 65160, length 0")
            + &line(52.1, false, "[P.], seq 1:101, ack 65, win 65160, length 100")
            + &line(52.12, true, "[P.], seq 65:129, ack 101, win 64240, length 64");
        assert!(findings("nagle-delayed-ack", &text).is_empty());
    }

    /// A sender seen to send one small segment while another was in flight does not hold any.
    #[test]
    fn a_sender_with_nodelay_that_meets_an_ack_by_chance_was_not_held() {
        let text = SHAKE.to_owned()
            + &line(10.0, true, "[P.], seq 1:17, ack 1, win 64240, length 16")
            + &line(12.0, true, "[P.], seq 17:33, ack 1, win 64240, length 16")
            + &line(52.1, false, "[.], ack 33, win 65160, length 0")
            + &line(52.12, true, "[P.], seq 33:49, ack 1, win 64240, length 16");
        assert!(findings("nagle-delayed-ack", &text).is_empty());
    }

    /// Buffers of 1,001 bytes sent one after the other: the small segment at the head makes Minshall's rule hold the
    /// tail although a full one went in between.
    #[test]
    fn a_tail_behind_a_small_and_a_full_segment_was_held() {
        let text = SHAKE.to_owned()
            + &line(10.0, true, "[P.], seq 1:1002, ack 1, win 64240, length 1001")
            + &line(10.01, true, "[.], seq 1002:2462, ack 1, win 64240, length 1460")
            + &line(50.1, false, "[.], ack 2462, win 65160, length 0")
            + &line(50.12, true, "[P.], seq 2462:3003, ack 1, win 64240, length 541");
        let found = findings("nagle-delayed-ack", &text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].blame.side, Blamed::Client);
        assert!(findings("delayed-ack", &text).is_empty());
    }

    const MS: u64 = 1_000;

    /// A server's updates without a handshake, captured at the client, which ACKs each 200 ms later; the next one comes so
    /// many µs behind that ACK.
    fn without_a_handshake(reactions: [u64; 4]) -> String {
        let mut talk = Talk::without_handshake();
        let mut now = MS;
        for reaction in reactions {
            talk.data(now, false, 27);
            talk.ack(now + 200 * MS, true);
            now += 200 * MS + reaction;
        }
        talk.data(now, false, 27);
        talk.text()
    }

    #[test]
    fn what_follows_late_acks_after_the_same_time_again_and_again_was_held() {
        let found = findings("nagle-delayed-ack", &without_a_handshake([1_860, 1_970, 1_730, 1_900]));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.blame.side, found.count), (Blamed::Server, 4));
        // Four times 200 ms and the way to the server at most: a stream's updates may have been written in between.
        assert!((400.0..=808.0).contains(&found.cost_ms.0), "{found:?}");
        assert!(found.confidence <= 0.7);
    }

    #[test]
    fn what_follows_late_acks_at_any_time_was_not_held() {
        let found = findings("nagle-delayed-ack", &without_a_handshake([1_860, 180_000, 90_000, 4_900]));
        assert!(found.is_empty(), "{found:?}");
    }

    /// The client's ACK of the SYN-ACK leaves only after so many ms; then a header, its ACK 40 ms later, the body at once,
    /// and the answer, three times.
    fn after_a_slow_third_packet(late: u64) -> String {
        let mut talk = Talk::with_handshake([0, 100, 100 + late * MS]);
        for number in 1..=3 {
            let start = number * 500 * MS;
            talk.data(start, true, 16);
            talk.ack(start + 40 * MS, false);
            talk.data(start + 40 * MS + 30, true, 48);
            talk.data(start + 40 * MS + 400, false, 100);
        }
        talk.text()
    }

    #[test]
    fn a_slow_third_packet_does_not_move_the_client_away() {
        for late in [0, 60] {
            let found = findings("nagle-delayed-ack", &after_a_slow_third_packet(late));
            let [found] = &found[..] else { panic!("{late} {found:?}") };
            assert_eq!((found.blame.side, found.count), (Blamed::Client, 3), "{late}");
        }
    }

    /// The server's MSS is 1,380, below what the client announced: a full segment and a tail, then an update that waits for
    /// the delayed ACK of the one before it.
    #[test]
    fn a_sender_with_a_smaller_mss_of_its_own_does_not_pass_a_small_segment() {
        let mut talk = Talk::near_client(42 * MS);
        talk.data(100 * MS, true, 50);
        talk.line(145 * MS, false, "[.], seq 1:1381, ack 51, win 502, length 1380");
        talk.ack_of(145 * MS + 23, true, 1_380);
        talk.line(145 * MS + 50, false, "[P.], seq 1381:1923, ack 51, win 502, length 542");
        talk.ack_of(300 * MS, true, 1_922);
        talk.line(900 * MS, false, "[P.], seq 1923:1982, ack 51, win 502, length 59");
        talk.ack_of(1_074 * MS, true, 1_981);
        talk.line(1_117 * MS, false, "[P.], seq 1982:2031, ack 51, win 502, length 49");
        let found = findings("nagle-delayed-ack", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.blame.side, found.count), (Blamed::Server, 1));
    }

    /// The answer comes in the same microsecond as the ACK, and the next request behind both.
    #[test]
    fn what_follows_an_answer_is_not_held() {
        let mut talk = Talk::near_client(100 * MS);
        talk.data(200 * MS, true, 517);
        talk.ack(340 * MS, false);
        talk.data(340 * MS, false, 99);
        talk.data(340 * MS + 800, true, 523);
        assert!(findings("nagle-delayed-ack", &talk.text()).is_empty());
        assert!(findings("nagle-hold", &talk.text()).is_empty());
    }

    /// No receiver delays an ACK for more than half a second.
    #[test]
    fn an_ack_that_comes_after_a_second_was_not_delayed() {
        let mut talk = Talk::near_client(MS);
        talk.data(100 * MS, true, 16);
        talk.ack(1_200 * MS, false);
        talk.data(1_200 * MS + 20, true, 48);
        assert!(findings("nagle-delayed-ack", &talk.text()).is_empty());
    }
}
