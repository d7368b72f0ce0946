//! TCP_CORK or MSG_MORE without an end.

use super::rule::{Check, rule};
use super::subject::{Subject, human, percent, times};
use super::windows::mean;
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::ledger::{Ended, Tally};
use crate::report::{Evidence, Finding, Fix, Severity};

rule! {
    /// The end of each message waits 200 ms or more for the timer of a cork that is not taken off.
    ///
    /// ## What it means
    /// `TCP_CORK` (on BSD `TCP_NOPUSH`) and the flag `MSG_MORE` tell Linux that more data follows, so it keeps
    /// a last segment that is not full. If the cork is never taken off, or the last `send` carries `MSG_MORE`
    /// too, only a timer sends it: that of zero-window probes, one retransmission timeout, which is the round
    /// trip and 200 ms. Neither the network nor the other side has any part in that.
    ///
    /// ## How it is detected
    /// With nothing on its way and no ACK to free it, a small segment leaves one retransmission timeout after the
    /// data before it (the round trip and 200 ms, and up to an eighth more by the rounding of Linux's timers), at
    /// least three times, and that side hardly ever takes long at other times. A program that sleeps as long looks
    /// the same but for one thing: the kernel's timers end on its clock tick, so that the times at which these
    /// segments leave all lie on one spot of the tick (4 ms, 10 ms or a third of that), within some 0.2 ms; a sleeping
    /// program wakes at any moment and drifts. Eight such times on one spot prove the timer; scattered ones are the
    /// program's, which other rules report. Where there are fewer, or the path to a capture far away smears them,
    /// the finding is a note that names both. Streams of messages without answers are not judged: their program may
    /// keep such a beat.
    ///
    /// ## What to do
    /// Take the cork off at the end of each message (`TCP_CORK` to 0 sends what is left at once), and leave out
    /// `MSG_MORE` on its last piece. Often one `writev`/`sendmsg` makes the cork needless.
    ///
    /// ## References
    /// tcp(7) TCP_CORK; send(2) MSG_MORE; RFC 1122 section 4.2.3.4.
    CORK_TIMEOUT = "cork-timeout", Severity::Problem, Check::Connection(check),
        [UNCORK, ONE_WRITE]
}

/// Confidence where the waits end on the kernel's tick.
const CONFIDENCE_TICK: f64 = 0.95;
/// Confidence where that cannot be told.
const CONFIDENCE_UNCLEAR: f64 = 0.4;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    if !subject.connection.exchanges.is_request_response() {
        return;
    }
    for end in 0..2 {
        let Some(tally) = subject.tally(Cause::CorkTimeout, end) else { continue };
        let (severity, confidence, summary) = match subject.ledger.corked(subject.connection, end) {
            Ended::ByTick => (CORK_TIMEOUT.severity, CONFIDENCE_TICK, sure(subject, end, tally)),
            Ended::Unclear => (Severity::Note, CONFIDENCE_UNCLEAR, unclear(subject, end, tally)),
            Ended::AnyTime => continue,
        };
        findings.push(Finding {
            rule: CORK_TIMEOUT.name,
            severity,
            connection: Some(subject.id),
            blame: subject.blame(end),
            count: tally.count,
            cost_ms: ms(tally.total),
            worst_ms: ms(tally.worst()[0].length),
            confidence,
            summary,
            evidence: evidence(subject, tally),
            fixes: fixes(subject, end),
        });
    }
}

fn sure(subject: &Subject<'_>, end: End, tally: &Tally) -> String {
    format!(
        "The last piece of what {} wrote left {} only after {} on average, freed by nothing but Linux's timer for \
         TCP_CORK and MSG_MORE, on the kernel's tick: {} in all, {} of the time in which somebody waited.",
        subject.who(end),
        times(tally.count),
        human(mean(tally)),
        human(tally.total),
        percent(tally.total, subject.waiting()),
    )
}

fn unclear(subject: &Subject<'_>, end: End, tally: &Tally) -> String {
    format!(
        "What {} wrote left {} only after {} on average, {} in all: the length of Linux's timer for TCP_CORK and \
         MSG_MORE, but its program may as well have taken that long. A longer capture on its own host, or `strace \
         -e trace=network`, would tell.",
        subject.who(end),
        times(tally.count),
        human(mean(tally)),
        human(tally.total),
    )
}

fn evidence(subject: &Subject<'_>, tally: &Tally) -> Vec<Evidence> {
    subject.evidence(tally, |case| {
        [
            "the data before it".to_owned(),
            String::new(),
            format!("a small segment leaves, {} later, freed by nothing", human(case.length)),
        ]
    })
}

fn fixes(subject: &Subject<'_>, end: End) -> Vec<Fix> {
    vec![
        Fix {
            title: "Take the cork off at the end of each message".to_owned(),
            how: format!(
                "On {}: setsockopt(fd, IPPROTO_TCP, TCP_CORK, &zero, sizeof zero) after the last write, which sends \
                 the rest at once; or leave MSG_MORE out of the last send(). Costs nothing.",
                subject.address(end)
            ),
        },
        Fix {
            title: "Write each message at once, without a cork".to_owned(),
            how: "One buffer, or writev()/sendmsg() with all pieces.".to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::{Blamed, Severity};

    /// Requests that leave at these times in µs, each answered 100 µs later.
    fn requests(times: impl IntoIterator<Item = u64>) -> String {
        let mut talk = Talk::near_client(50);
        talk.data(1_000, true, 64);
        talk.data(1_100, false, 64);
        for now in times {
            talk.data(now, true, 64);
            talk.data(now + 100, false, 64);
        }
        talk.text()
    }

    /// Requests so many µs after the answer before them.
    fn after(waits: &[u64]) -> String {
        let mut now = 1_100;
        requests(waits.iter().map(|wait| {
            now += wait;
            let sent = now;
            now += 100;
            sent
        }))
    }

    #[test]
    fn each_request_waits_for_the_timer() {
        // Whole ticks of 4 ms after 3.4 ms, give or take 40 µs, as Linux sends them: 204 or 208 ms apart.
        let times =
            [207_400, 411_440, 619_400, 823_380, 1_027_400, 1_235_420, 1_439_400, 1_643_400, 1_851_400];
        let found = findings("cork-timeout", &requests(times));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.severity, found.blame.side), (Severity::Problem, Blamed::Client));
        assert_eq!(found.blame.address.as_deref(), Some("10.0.0.1:40000"));
        assert_eq!(found.count, 9);
        // From 1.1 ms to 1851.4 ms, less eight exchanges of 0.1 ms: 205.5 ms on average, which reads as even.
        assert!((found.cost_ms.0 - 1_849.5).abs() < 0.1, "{found:?}");
        assert!((found.worst_ms.0 - 207.92).abs() < 0.06, "{found:?}");
        assert!(found.summary.contains("9 times only after 205 ms"), "{}", found.summary);
        assert!(findings("slow-client", &requests(times)).is_empty());
    }

    #[test]
    fn the_timer_is_one_round_trip_longer_on_a_long_path() {
        // Captured at the client, 100 ms from the server: 300 ms, rounded up to the timer wheel's step of 32 ms.
        let mut talk = Talk::near_client(100_000);
        talk.data(120_000, true, 64);
        talk.data(220_100, false, 64);
        for number in 1..=9 {
            let now = 123_400 + number * 416_000;
            talk.data(now, true, 64);
            talk.data(now + 100_100, false, 64);
        }
        let found = findings("cork-timeout", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        // 416 ms less the 100.1 ms until the answer; 3.3 ms more the first time.
        assert!((found.cost_ms.0 - (9.0 * 315.9 + 3.3)).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn a_few_waits_on_the_tick_may_be_either() {
        let found = findings("cork-timeout", &requests([207_400, 411_440, 619_400, 823_380]));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.severity, Severity::Note);
        assert!(found.confidence < 0.5, "{found:?}");
        assert!(found.summary.contains("may as well"), "{}", found.summary);
    }

    #[test]
    fn a_program_that_sleeps_is_no_cork() {
        // 204 ms, a whole number of ticks, and 0.16 ms of its own each round; 210 ms; 200 ms.
        for sleep in [204_060, 210_060, 200_060] {
            let text = after(&[sleep; 15]);
            assert!(findings("cork-timeout", &text).is_empty(), "{sleep}");
            let found = findings("slow-client", &text);
            let [found] = &found[..] else { panic!("{found:?}") };
            assert_eq!(found.count, 15);
        }
    }

    #[test]
    fn work_that_takes_about_as_long_now_and_then_is_no_cork() {
        let waits = [180_000, 207_900, 250_000, 208_000, 160_000, 208_100, 300_000];
        assert!(findings("cork-timeout", &after(&waits)).is_empty());
    }

    #[test]
    fn a_single_wait_proves_nothing() {
        assert!(findings("cork-timeout", &after(&[300, 208_000, 300, 300])).is_empty());
    }
}
