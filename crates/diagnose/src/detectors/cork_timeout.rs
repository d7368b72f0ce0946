//! TCP_CORK or MSG_MORE without an end.

use super::rule::{Check, rule};
use super::subject::{Subject, human, percent, times};
use super::windows::mean;
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::ledger::Tally;
use crate::report::{Evidence, Finding, Fix, Severity};

rule! {
    /// The end of each message waits about 200 ms for the timer of a cork that is not taken off.
    ///
    /// ## What it means
    /// `TCP_CORK` (on BSD `TCP_NOPUSH`) and the flag `MSG_MORE` tell Linux that more data follows, so it keeps
    /// a last segment that is not full. If the cork is never taken off, or the last `send` carries `MSG_MORE`
    /// too, only a timer of 200 ms sends it. Neither the network nor the other side has any part in that.
    ///
    /// ## How it is detected
    /// With nothing on its way and no ACK to free it, a small segment leaves 201.5 to 225 ms after the data
    /// before it, at least three times, and that side hardly ever takes long at other times. The timer runs in
    /// the kernel's ticks of 4 ms, so it shows as 204, 208 or 212 ms: either all waits are multiples of 4 ms,
    /// or they differ by up to one tick. A program that sleeps 200 ms ends its sleep within 1.5 ms; one that
    /// sleeps 210 ms does it evenly and off the tick. Streams of messages without answers are not judged: their
    /// program may keep such a beat. A single wait of that length is not reported: it proves nothing.
    ///
    /// ## What to do
    /// Take the cork off at the end of each message (`TCP_CORK` to 0 sends what is left at once), and leave out
    /// `MSG_MORE` on its last piece. Often one `writev`/`sendmsg` makes the cork needless.
    ///
    /// ## References
    /// tcp(7) TCP_CORK; send(2) MSG_MORE; RFC 1122 section 4.2.3.4.
    CORK_TIMEOUT = "cork-timeout", Severity::Problem, Check::Connection(check)
}

/// Fewer waits than this may be a program's.
const FEWEST: u64 = 3;
/// That side's other long pauses before it answers may be one in so many of these.
const OTHER_PAUSES: u64 = 4;
/// One tick of Linux at HZ=250, the usual setting; at 1000 the timer wheel rounds this timer to 8 ms. ns.
const TICK: i64 = 4_000_000;
/// How far from a whole tick a wait may end: the time from the other side's data to the program's write. ns.
const OFF_TICK: i64 = 500_000;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    if !subject.connection.exchanges.is_request_response() {
        return;
    }
    for end in 0..2 {
        let Some(tally) = subject.tally(Cause::CorkTimeout, end) else { continue };
        let Some(confidence) = confidence(subject, end, tally) else { continue };
        findings.push(Finding {
            rule: CORK_TIMEOUT.name,
            severity: CORK_TIMEOUT.severity,
            connection: Some(subject.id),
            blame: subject.blame(end),
            count: tally.count,
            cost_ms: ms(tally.total),
            worst_ms: ms(tally.worst()[0].length),
            confidence,
            summary: format!(
                "The last piece of what {} wrote left {} only after {} on average, freed by nothing but Linux's \
                 200 ms timer for TCP_CORK and MSG_MORE: {} in all, {} of the connection's life.",
                subject.who(end),
                times(tally.count),
                human(mean(tally)),
                human(tally.total),
                percent(tally.total, subject.duration()),
            ),
            evidence: evidence(subject, tally),
            fixes: fixes(subject, end),
        });
    }
}

/// How sure it is that the cork's timer ended these waits and not the program; `None` where it is not.
fn confidence(subject: &Subject<'_>, end: End, tally: &Tally) -> Option<f64> {
    let pauses = subject.tally(Cause::Program, end).map_or(0, |tally| tally.count);
    if tally.count < FEWEST || pauses * OTHER_PAUSES > tally.count {
        return None;
    }
    let spread = tally.worst()[0].length - mean(tally);
    match (is_on_tick(tally), spread) {
        (true, spread) if spread <= TICK => Some(0.9),
        (false, spread) if spread > OFF_TICK && spread <= TICK => Some(0.6),
        _ => None,
    }
}

/// Whether the longest waits are whole ticks.
fn is_on_tick(tally: &Tally) -> bool {
    tally.worst().iter().all(|case| {
        let rest = case.length.rem_euclid(TICK);
        rest.min(TICK - rest) <= OFF_TICK
    })
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
    use crate::report::Blamed;

    /// Requests that leave so many µs after the answer before them, each answered 100 µs later.
    fn requests(waits: &[u64]) -> String {
        let mut talk = Talk::near_client(50);
        talk.data(1_000, true, 64);
        talk.data(1_100, false, 64);
        let mut now = 1_100;
        for wait in waits {
            now += wait;
            talk.data(now, true, 64);
            talk.data(now + 100, false, 64);
            now += 100;
        }
        talk.text()
    }

    #[test]
    fn each_request_waits_for_the_timer() {
        let found = findings("cork-timeout", &requests(&[207_900, 207_890, 207_910, 207_900, 208_010]));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.blame.side, Blamed::Client);
        assert_eq!(found.blame.address.as_deref(), Some("10.0.0.1:40000"));
        assert_eq!(found.count, 5);
        // 207.9 + 207.89 + 207.91 + 207.9 + 208.01 ms.
        assert!((found.cost_ms.0 - 1_039.61).abs() < 0.3, "{found:?}");
        assert!((found.worst_ms.0 - 208.01).abs() < 0.06, "{found:?}");
        assert!(found.summary.contains("5 times only after 208 ms"), "{}", found.summary);
    }

    #[test]
    fn writes_at_any_phase_of_the_tick_are_less_sure() {
        let found = findings("cork-timeout", &requests(&[204_600, 207_300, 205_500, 206_200, 205_100]));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert!(found.confidence < 0.7, "{found:?}");
    }

    #[test]
    fn a_program_that_sleeps_is_no_cork() {
        // 200 ms, which ends within 1.5 ms; and 210 ms, off the tick and too even for the timer.
        assert!(
            findings("cork-timeout", &requests(&[200_060, 200_900, 201_400, 200_070, 200_080])).is_empty()
        );
        assert!(
            findings("cork-timeout", &requests(&[210_060, 210_100, 210_060, 210_070, 210_080])).is_empty()
        );
    }

    #[test]
    fn work_that_takes_about_as_long_now_and_then_is_no_cork() {
        let waits = [180_000, 207_900, 250_000, 208_000, 160_000, 208_100, 300_000];
        assert!(findings("cork-timeout", &requests(&waits)).is_empty());
    }

    #[test]
    fn a_single_wait_proves_nothing() {
        assert!(findings("cork-timeout", &requests(&[300, 208_000, 300, 300])).is_empty());
    }
}
