//! A receiver whose program does not read what has arrived.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, grouped, human, percent, times};
use super::windows::{Windows, matters};
use crate::diagnosis::ms;
use crate::flow::fact::End;
use crate::ledger::Tally;
use crate::report::{Evidence, Finding, Fix, Severity};

rule! {
    /// The receiver's program reads too slowly, so that its window closes and the sender has to stop.
    ///
    /// ## What it means
    /// What arrives is kept in the receiver's socket buffer until its program reads it. When the program is
    /// slower than the sender the buffer fills, TCP announces a window of zero (or one with no room left for
    /// what the sender has ready), and the sender must wait until the program reads on. Neither the network
    /// nor the sender is at fault, and a larger buffer only moves the moment at which this begins.
    ///
    /// ## How it is detected
    /// The receiver announced a window of zero and data left as soon as it announced room again; or data had
    /// filled the announced window and the ACK that made room came much later than the path's base round
    /// trip (by 10 ms and by half a round trip, on average), or after the window had shrunk to half of its size, as it
    /// does while data lies unread. An ACK for several segments that comes 20 ms late with a smaller window than
    /// before counts as well: Linux delays it only while its window cannot grow. The time between is the cost. A
    /// window that is merely too small keeps its size and makes room again one round trip later, even from zero,
    /// which is another rule's case.
    ///
    /// ## What to do
    /// Look at what the receiving program does between two reads: a lock, a disk, a slow consumer behind a
    /// queue, one thread for reading and working. Read more at a time and work elsewhere. A larger receive
    /// buffer helps only where the program is slow for moments and fast enough on average. Where the program
    /// is meant to be slow this is flow control doing its work, and nothing is wrong.
    ///
    /// ## References
    /// RFC 9293 sections 3.8.6 and 3.8.6.1 (zero-window probing); RFC 1122 section 4.2.2.17.
    ZERO_WINDOW = "zero-window", Severity::Problem, Check::Connection(check)
}

/// One wait could be chance; more show a program that is slow as a habit.
const CONFIDENCE_ONCE: f64 = 0.85;
/// The receiver has said itself that it had no room.
const CONFIDENCE_ZERO: f64 = 0.98;
/// That the window was full and the answer late is seen; that the program was the reason is inferred.
const CONFIDENCE_FULL: f64 = 0.8;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let windows = Windows::of(subject, end);
        let tallies = [windows.zero, windows.unread.as_ref()];
        let cost: i64 = tallies.iter().flatten().map(|tally| tally.total).sum();
        if matters(subject, cost) {
            findings.push(finding(subject, end, tallies, cost));
        }
    }
}

fn finding(subject: &Subject<'_>, end: End, tallies: [Option<&Tally>; 2], cost: i64) -> Finding {
    let receiver = 1 - end;
    let count: u64 = tallies.iter().flatten().map(|tally| tally.count).sum();
    let longest = tallies.iter().flatten().filter_map(|tally| tally.worst().first());
    let worst = longest.map(|case| case.length).max().unwrap_or(0);
    Finding {
        rule: ZERO_WINDOW.name,
        severity: ZERO_WINDOW.severity,
        connection: Some(subject.id),
        blame: subject.blame(receiver),
        count,
        cost_ms: ms(cost),
        worst_ms: ms(worst),
        confidence: confidence(tallies[0], count),
        summary: summary(subject, end, tallies[0], count, cost, worst),
        evidence: evidence(subject, tallies),
        fixes: fixes(subject, receiver),
    }
}

fn confidence(zero: Option<&Tally>, count: u64) -> f64 {
    match (zero, count) {
        (None, _) => CONFIDENCE_FULL,
        (Some(_), 1) => CONFIDENCE_ONCE,
        (Some(_), _) => CONFIDENCE_ZERO,
    }
}

fn summary(
    subject: &Subject<'_>,
    end: End,
    zero: Option<&Tally>,
    count: u64,
    cost: i64,
    worst: i64,
) -> String {
    let closed = match zero.map_or(0, |zero| zero.count) {
        0 => "never to zero, but with no room for what was ready".to_owned(),
        zeros if zeros == count => "to zero".to_owned(),
        zeros => format!("{} of them to zero", grouped(zeros)),
    };
    format!(
        "The program on {} reads too slowly: its window closed {}, {closed}, and {} had to wait {} in all, {} \
         of the connection's life, up to {} at a time.",
        subject.who(1 - end),
        times(count),
        subject.who(end),
        human(cost),
        percent(cost, subject.duration()),
        human(worst),
    )
}

fn evidence(subject: &Subject<'_>, tallies: [Option<&Tally>; 2]) -> Vec<Evidence> {
    let notes =
        |before: &str, after: &str| [before.to_owned(), after.to_owned(), "data flows again".to_owned()];
    let zero = tallies[0].map(|zero| {
        let notes = notes("the last data that the window had room for", "the receiver has room again");
        subject.evidence(zero, |_| notes.clone())
    });
    let unread = tallies[1].map(|full| {
        let notes = notes("this fills the receiver's window", "much later the receiver makes room");
        subject.evidence(full, |_| notes.clone())
    });
    [zero, unread].into_iter().flatten().flatten().collect()
}

fn fixes(subject: &Subject<'_>, receiver: End) -> Vec<Fix> {
    let side = subject.side_name(receiver);
    let unread = counted(u64::from(subject.half(1 - receiver).max_window), "byte");
    vec![
        Fix {
            title: format!("Find what the {side}'s program does between two reads"),
            how: format!(
                "While it happens, `ss -tmi` on the {side}'s host shows unread bytes in Recv-Q. Sample the \
                 program's stack then (gdb, py-spy, jstack, perf): it is computing, or waits for a lock, a disk \
                 or another service, while it should recv()."
            ),
        },
        Fix {
            title: "Read in one thread or task, work in another".to_owned(),
            how: "Put a bounded queue between the two, and read large pieces (64 KB or more a recv()). When the \
                  queue is full as well, the work itself has to become faster."
                .to_owned(),
        },
        Fix {
            title: "A larger receive buffer, for short pauses only".to_owned(),
            how: format!(
                "The largest window here was {unread}. If the program is slow for moments and fast on average, \
                 let Linux size the buffer (no SO_RCVBUF; the maximum in net.ipv4.tcp_rmem). It costs that much \
                 memory a connection and does not help a program that is slow all the time."
            ),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, diagnose, findings};
    use crate::report::{Blamed, Line, Source};

    /// An upload whose server stops reading after two segments; it takes `pause` ms until there is room.
    fn upload(pauses: &[u64], closed: &str) -> String {
        let mut text = "\
            10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460], length 0\n\
            10:00:00.010000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 2920, options [mss 1460], length 0\n\
            10:00:00.010050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n"
            .to_owned();
        let (mut now, mut seq) = (11_000_u64, 1);
        let mut line = |now: u64, rest: String| {
            text += &format!("10:00:{:02}.{:06} IP {rest}\n", now / 1_000_000, now % 1_000_000);
        };
        for pause in pauses {
            for _ in 0..2 {
                let end = seq + 1460;
                line(
                    now,
                    format!(
                        "10.0.0.1.40000 > 10.0.0.2.80: Flags [.], seq {seq}:{end}, ack 1, win 64240, length 1460"
                    ),
                );
                (now, seq) = (now + 10, end);
            }
            let server = "10.0.0.2.80 > 10.0.0.1.40000: Flags [.]";
            line(now + 10_000, format!("{server}, ack {seq}, win {closed}, length 0"));
            now += 10_000 + pause * 1_000;
            line(now, format!("{server}, ack {seq}, win 2920, length 0"));
            now += 50;
        }
        line(
            now,
            format!(
                "10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq {seq}:{}, ack 1, win 64240, length 9",
                seq + 9
            ),
        );
        text
    }

    #[test]
    fn a_server_that_does_not_read_closes_its_window() {
        let found = findings("zero-window", &upload(&[200, 100], "0"));
        assert_eq!(found.len(), 1);
        let finding = &found[0];
        assert_eq!(
            (finding.blame.side, finding.blame.address.as_deref()),
            (Blamed::Server, Some("10.0.0.2:80"))
        );
        assert_eq!(finding.count, 2);
        // From the last segment that had room to the next one: 210.05 ms and 110.06 ms.
        assert!((319.0..=321.0).contains(&finding.cost_ms.0), "{:?}", finding.cost_ms);
        assert!((209.0..=211.0).contains(&finding.worst_ms.0), "{:?}", finding.worst_ms);
        assert!(finding.summary.contains("320 ms"), "{}", finding.summary);
        assert!(findings("small-receive-window", &upload(&[200, 100], "0")).is_empty());
    }

    #[test]
    fn a_window_closed_for_a_moment_in_a_long_life_is_nothing() {
        let mut text = upload(&[1], "0");
        text += "10:00:30.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [F.], seq 2930, ack 1, win 64240, length 0\n";
        assert!(findings("zero-window", &text).is_empty());
    }

    #[test]
    fn a_small_window_that_opens_a_round_trip_later_is_not_a_slow_program() {
        let text = upload(&[0, 0, 0, 0], "2920");
        assert!(findings("zero-window", &text).is_empty());
        assert_eq!(findings("small-receive-window", &text).len(), 1);
    }

    #[test]
    fn a_small_window_that_the_program_leaves_full_once() {
        // Two segments fill the window; half of it is free 10 ms later, all of it at once or, once, after 150 ms.
        let mut pauses = [0; 21];
        pauses[10] = 150;
        let text = upload(&pauses, "1400");
        let found = findings("zero-window", &text);
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.count, 1);
        assert!((160.0..=160.1).contains(&found.cost_ms.0), "{found:?}");
        // The others are the buffer's, but for the last: what leaves then had room.
        let small = findings("small-receive-window", &text);
        assert_eq!(small.iter().map(|finding| finding.count).collect::<Vec<_>>(), [19]);
    }

    #[test]
    fn a_window_that_is_zero_for_a_moment_costs_a_round_trip_and_is_no_slow_program() {
        // The window opens 50 µs after it closed: what the sender waits is the round trip.
        let text = upload(&[0, 0, 0, 0], "0");
        assert!(findings("zero-window", &text).is_empty());
        assert_eq!(findings("small-receive-window", &text).len(), 1);
    }

    /// In the midst of a connection: a server's segment fills the window, which then stays zero. Its probes repeat the byte
    /// before the next one.
    fn dead(probes: &[u64], last: &str) -> String {
        let (server, client) = ("10.0.0.2.80 > 10.0.0.1.40000: Flags", "10.0.0.1.40000 > 10.0.0.2.80: Flags");
        let mut text = format!(
            "10:00:00.000000 IP {server} [{last}], seq 1:1345, ack 1, win 108, length 1344\n\
             10:00:00.000040 IP {client} [.], ack 1345, win 0, length 0\n"
        );
        for second in probes {
            text += &format!(
                "10:00:{second:02}.000000 IP {server} [.], seq 1344, ack 1, win 108, length 0\n\
                 10:00:{second:02}.000030 IP {client} [.], ack 1345, win 0, length 0\n"
            );
        }
        text
    }

    #[test]
    fn a_window_that_never_opens_again_is_told_of_at_the_end() {
        let text = dead(&[3, 9, 21], "P.");
        let found = findings("zero-window", &text);
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.blame.side, found.count), (Blamed::Client, 1));
        assert!((found.cost_ms.0 - 21_000.03).abs() < 0.01, "{:?}", found.cost_ms);
        let lines = diagnose(&text).connections().next().expect("one").ledger_ms;
        assert!((lines.get(Line::Rwnd) - 21_000.03).abs() < 0.01, "{lines:?}");
    }

    #[test]
    fn a_zero_window_that_nobody_asks_about_kept_nobody_waiting() {
        let quiet = dead(&[], "P.")
            + "10:00:21.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [F.], seq 1, ack 1345, win 0, length 0\n";
        assert!(findings("zero-window", &quiet).is_empty());
    }

    #[test]
    fn a_window_that_was_zero_before_any_data_was_seen() {
        let text = "\
            10:00:00.000000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 1, win 2920, length 0\n\
            10:00:00.000400 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 2921, win 0, length 0\n\
            10:00:00.020400 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 2921, win 64240, length 0\n\
            10:00:00.020600 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], seq 2921:4381, ack 1, win 64240, length 1460\n";
        let found = findings("zero-window", text);
        assert_eq!(found.len(), 1);
        assert!((found[0].cost_ms.0 - 20.2).abs() < 0.01, "{:?}", found[0].cost_ms);
    }

    /// An upload with 800 bytes of window left, less than a segment. What leaves 5 s later has so many bytes; the server
    /// never ACKs it.
    fn pressed(len: u64) -> String {
        let mut talk = Talk::near_client(200);
        talk.data(1_000, true, 1_460);
        talk.line(1_200, false, "[.], ack 1461, win 40, length 0");
        talk.flight(1_300, true, 3);
        talk.line(100_000, false, "[.], ack 5841, win 6, length 0");
        for us in [5_000_000, 10_000_000, 20_000_000] {
            talk.line(us, true, &format!("[.], seq 5841:{}, ack 1, win 502, length {len}", 5841 + len));
        }
        talk.text()
    }

    #[test]
    fn a_window_too_small_for_a_segment_is_no_loss() {
        let text = pressed(768);
        let found = findings("zero-window", &text);
        assert_eq!((found.len(), found[0].blame.side), (1, Blamed::Server));
        assert!(found[0].cost_ms.0 > 19_000.0, "{found:?}");
        for other in ["tail-loss", "rto-stall", "fast-recovery", "bufferbloat"] {
            assert!(findings(other, &text).is_empty(), "{other}");
        }
    }

    #[test]
    fn what_leaves_room_in_the_window_was_not_pressed_into_it() {
        let text = pressed(500);
        assert_eq!(findings("rto-stall", &text).len() + findings("tail-loss", &text).len(), 1);
    }
}
