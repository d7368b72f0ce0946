//! A congestion window that has to open first.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, grouped, human, percent};
use super::windows::matters;
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::flow::flight::{Flights, Rounds};
use crate::ledger::Tally;
use crate::report::{Finding, Fix, Severity};

rule! {
    /// A new connection's congestion window was still opening, and the transfer waited round trips for it.
    ///
    /// ## What it means
    /// A sender does not know what the path carries. It begins with the initial window, ten segments today, waits
    /// for their ACKs, and doubles the window each round trip. Until the window covers the path most of each round
    /// trip is waiting, however fast the network is: 100 KB take two round trips more than they would on a
    /// connection that has been in use. Where the window begins with ten segments nothing is broken, and this is a
    /// note; a smaller one is an old stack's, or a setting.
    ///
    /// ## How it is detected
    /// From the connection's beginning the sender stopped with room in the receiver's window, went on when an ACK
    /// came about one base round trip later, and each such flight was larger than the one before by a quarter at
    /// least. The second one in a row that does not grow ends it, or a loss; stops for the receiver's window do not count. After a retransmission
    /// timeout slow start begins again; such rounds are counted from the second on, since one alone may be any repair's.
    /// At the sender, segments that it spaces out (pacing) meanwhile count as waiting too; captured elsewhere they
    /// look like the path's own rate. The cost is what the ledger has on `cwnd` for it; it is
    /// told from 50 ms on, or from 5 % of the connection's life. What a larger initial window
    /// saves is reckoned for windows that double.
    ///
    /// Each wait is counted by one rule: with the receiver's window full it is `small-receive-window` or
    /// `zero-window`, after a silence that closed the window `idle-restart`, beyond the base round trip queueing
    /// or `delayed-ack`.
    ///
    /// ## What to do
    /// Use connections again instead of making new ones: an open window is kept, but for `idle-restart`. On long
    /// paths to known clients a larger initial window (`initcwnd` of the route) saves a round trip or two, at the risk of
    /// a burst that the bottleneck drops. Or send less: compress, ask for what is needed first.
    ///
    /// ## References
    /// RFC 5681 section 3.1 (slow start); RFC 6928 (ten segments); ip-route(8), `initcwnd`.
    SLOW_START = "slow-start", Severity::Note, Check::Connection(check),
        [REUSE]
}

/// The initial window of RFC 6928, segments: what stacks have begun with since 2013.
const INITIAL_WINDOW: u64 = 10;
/// A larger one that content networks use, segments.
const LARGER_WINDOW: u64 = 32;
/// Rounds that take so much in all are felt, however long the connection lives. ns.
const FELT: i64 = 50_000_000;
/// One round could be a flight that ended by chance; growth over several is slow start's.
const CONFIDENCE_ONCE: f64 = 0.85;
const CONFIDENCE: f64 = 0.95;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let Some(sending) = subject.connection.sending(end) else { continue };
        if let Some(tally) = subject.tally(Cause::SlowStart, end)
            && is_sure(subject, end, &sending.flights.opening)
            && (tally.total >= FELT || matters(subject, tally.total))
        {
            findings.push(finding(subject, end, tally, &sending.flights));
        }
    }
}

/// Whether it was a window that opened: it grew, or the one flight that it stopped was of full segments, as a window
/// is counted in them, and messages hardly ever.
fn is_sure(subject: &Subject<'_>, end: End, rounds: &Rounds) -> bool {
    let full = u64::from(subject.half(end).full_size());
    rounds.count > 1 || (rounds.count == 1 && rounds.first.is_multiple_of(full))
}

fn finding(subject: &Subject<'_>, end: End, tally: &Tally, flights: &Flights) -> Finding {
    let rounds = &flights.opening;
    let small = first_segments(subject, end, rounds) < INITIAL_WINDOW;
    Finding {
        rule: SLOW_START.name,
        severity: if small && rounds.times > 0 { Severity::Advice } else { SLOW_START.severity },
        connection: Some(subject.id),
        blame: subject.blame(end),
        count: rounds.count,
        cost_ms: ms(tally.total),
        worst_ms: ms(tally.worst().first().map_or(0, |case| case.length)),
        confidence: if rounds.count == 1 { CONFIDENCE_ONCE } else { CONFIDENCE },
        summary: subject.text(|| summary(subject, end, tally, flights)),
        evidence: subject.evidence(tally, |_| {
            [
                "the congestion window allows no more".to_owned(),
                "an ACK lets it open".to_owned(),
                "the next flight begins".to_owned(),
            ]
        }),
        fixes: subject.fixes(|| fixes(subject, end, rounds)),
    }
}

/// The first flight in full segments.
fn first_segments(subject: &Subject<'_>, end: End, rounds: &Rounds) -> u64 {
    rounds.first.div_ceil(u64::from(subject.half(end).full_size()))
}

fn summary(subject: &Subject<'_>, end: End, tally: &Tally, flights: &Flights) -> String {
    let rounds = &flights.opening;
    let waited = format!(
        "waited {} for it to open, {} in all, {} of the time in which somebody waited",
        counted(rounds.count, "round trip"),
        human(tally.total),
        percent(tally.total, subject.waiting()),
    );
    if rounds.times == 0 {
        return format!(
            "A retransmission timeout closed the congestion window of {}, which then {waited}.",
            subject.who(end)
        );
    }
    let again = match flights.after_timeout {
        0 => String::new(),
        after => format!(" {} of them came after a retransmission timeout.", grouped(u64::from(after))),
    };
    format!(
        "The congestion window of {} began with {} ({}), and the transfer {waited}.{again}",
        subject.who(end),
        counted(first_segments(subject, end, rounds), "segment"),
        counted(rounds.first, "byte"),
    )
}

/// Round trips that a transfer of `rounds` would have waited less with an initial window of so many segments, which then
/// doubles: as long as the sender waited, it sent those flights and one more, twice the last, or all there was.
fn saved(subject: &Subject<'_>, end: End, rounds: &Rounds, window: u64) -> u64 {
    let half = subject.half(end);
    let bytes = half.bytes.min(rounds.bytes + 2 * rounds.largest);
    let mut flight = window * u64::from(half.full_size());
    let (mut sent, mut waited) = (flight, 0);
    while sent < bytes && waited < rounds.count {
        flight *= 2;
        sent += flight;
        waited += 1;
    }
    rounds.count - waited
}

fn fixes(subject: &Subject<'_>, end: End, rounds: &Rounds) -> Vec<Fix> {
    let first = first_segments(subject, end, rounds);
    let base = subject.connection.base_round_trip().unwrap_or(0);
    let mut fixes = vec![Fix {
        title: "Use the connection again".to_owned(),
        how: format!(
            "A kept connection (keep-alive, a pool) has an open window: it saves these {} round trips and the \
             handshake. If it rests for longer than a retransmission timeout between uses, set \
             net.ipv4.tcp_slow_start_after_idle=0 on the {}'s host, or the window falls back.",
            grouped(rounds.count),
            subject.side_name(end),
        ),
    }];
    for window in [INITIAL_WINDOW, LARGER_WINDOW] {
        let saved = saved(subject, end, rounds, window);
        if first < window && saved > 0 {
            let time = i64::try_from(saved).unwrap_or(i64::MAX).saturating_mul(base);
            fixes.push(larger_window(subject, end, window, saved, time));
        }
    }
    if first < INITIAL_WINDOW {
        fixes.reverse();
    }
    fixes
}

fn larger_window(subject: &Subject<'_>, end: End, window: u64, saved: u64, time: i64) -> Fix {
    let risk = if window > INITIAL_WINDOW {
        " A bottleneck with a short queue may drop part of the burst."
    } else {
        ""
    };
    Fix {
        title: format!("Begin with {window} segments on the {}", subject.side_name(end)),
        how: format!(
            "`ip route change … initcwnd {window}` on the {}'s host. It saves about {} here, {}, if the \
             receiver's first window has room for it.{risk}",
            subject.side_name(end),
            counted(saved, "round trip"),
            human(time),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::{Blamed, Severity};

    /// An upload on a path of 100 ms in these flights, in segments; each is ACKed as a whole and followed by the next.
    fn upload(flights: &[u64]) -> String {
        let mut talk = Talk::near_client(100_000);
        for (round, segments) in flights.iter().enumerate() {
            let start = 101_000 + 101_000 * round as u64;
            talk.flight(start, true, *segments);
            talk.ack(start + 100_950, false);
        }
        talk.text()
    }

    #[test]
    fn three_flights_that_double_are_three_round_trips_of_slow_start() {
        let found = findings("slow-start", &upload(&[10, 20, 40, 5]));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.severity, found.count), (Severity::Note, 3));
        assert_eq!(
            (found.blame.side, found.blame.address.as_deref()),
            (Blamed::Client, Some("10.0.0.1:40000"))
        );
        // From each flight's last segment (90, 190 and 390 µs after its first) to the next flight: 101 ms less that.
        assert!((found.cost_ms.0 - (303.0 - 0.67)).abs() < 0.001, "{:?}", found.cost_ms);
        assert!(found.summary.contains("began with 10 segments (14,600 bytes)"), "{}", found.summary);
        // 75 segments: with 32 first, then 43.
        assert!(
            found.fixes[1].how.contains("initcwnd 32")
                && found.fixes[1].how.contains("2 round trips here, 200 ms")
        );
    }

    #[test]
    fn a_round_without_growth_does_not_end_slow_start() {
        let found = findings("slow-start", &upload(&[10, 10, 17, 23, 25, 37, 1]));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.count, 5);
        // All but the round that was not larger, of which it was not known yet that more would follow.
        assert!((503.0..=505.0).contains(&found.cost_ms.0), "{found:?}");
    }

    #[test]
    fn rounds_that_are_felt_are_told_however_long_the_connection_lives() {
        let mut text = upload(&[10, 20, 5]);
        text += "11:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [F.], seq 51101, ack 1, win 502, length 0\n";
        assert_eq!(findings("slow-start", &text).len(), 1);
    }

    /// The sender's own MSS is 1,260: its full segments are shorter than the peer's 1,460, and not pushed.
    #[test]
    fn full_segments_below_the_peers_mss_are_full() {
        let mut talk = Talk::near_client(100_000);
        let mut next = 1;
        for (round, segments) in [10, 20, 5].into_iter().enumerate() {
            let start = 101_000 + 101_000 * round as u64;
            for number in 0..segments {
                let end = next + 1_260;
                let fields = format!("[.], seq {next}:{end}, ack 1, win 502, length 1260");
                talk.line(start + 10 * number, true, &fields);
                next = end;
            }
            talk.ack_of(start + 100_950, false, next - 1);
        }
        let found = findings("slow-start", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.count, 2);
        assert!(findings("nagle-hold", &talk.text()).is_empty());
    }

    #[test]
    fn an_initial_window_of_two_is_worth_advice() {
        let found = findings("slow-start", &upload(&[2, 4, 8, 16, 1]));
        assert_eq!((found[0].severity, found[0].count), (Severity::Advice, 4));
        // 31 segments: 10, then 20, then 1.
        assert!(found[0].fixes[0].how.contains("initcwnd 32"), "{:?}", found[0].fixes);
        assert!(found[0].fixes[1].how.contains("2 round trips here"), "{:?}", found[0].fixes);
    }

    #[test]
    fn a_window_that_does_not_open_is_not_slow_start() {
        assert!(findings("slow-start", &upload(&[10, 10, 10, 10])).is_empty());
    }

    #[test]
    fn longer_and_longer_answers_to_requests_that_come_with_the_ack_wait_for_no_window() {
        let mut talk = Talk::near_server(100_000);
        for (exchange, segments) in [10, 20, 40, 40].into_iter().enumerate() {
            let asked = 200_000 + 100_100 * exchange as u64;
            talk.data(asked, true, 100);
            talk.flight(asked + 30, false, segments);
            talk.ack(asked + 100_060, true);
        }
        assert!(findings("slow-start", &talk.text()).is_empty());
    }

    #[test]
    fn what_fits_into_the_first_window_waits_for_nothing() {
        assert!(findings("slow-start", &upload(&[10])).is_empty());
    }

    #[test]
    fn after_a_connections_beginning_flights_may_be_of_any_age() {
        let text: String = upload(&[10, 20, 40, 5]).lines().skip(3).map(|line| format!("{line}\n")).collect();
        assert!(findings("slow-start", &text).is_empty());
    }
}
