//! A congestion window that falls back while nothing is sent.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, human, percent, times};
use super::windows::matters_after_pauses;
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::flow::flight::Rounds;
use crate::ledger::Tally;
use crate::report::{Finding, Fix, Severity};

rule! {
    /// After a pause the sender's congestion window had fallen back and had to open again.
    ///
    /// ## What it means
    /// A sender that has sent nothing for a retransmission timeout no longer trusts its congestion window: it begins
    /// again with its restart window, ten segments at most, and waits round trips until slow start has opened it.
    /// Linux halves the window for each timeout that passes. A pooled connection that rests between two answers pays for
    /// slow start each time, which is what the pool was to avoid.
    ///
    /// ## How it is detected
    /// The sender had been silent for longer than Linux's shortest retransmission timeout (200 ms and the round trip)
    /// with nothing in flight. The first flight after that, ended by a wait for an ACK with room in the receiver's
    /// window, was smaller than three quarters of what had been open before, by the largest flights and their growth;
    /// and each further flight was larger than the one before. Waits count until the window is back
    /// where it was. A program that sends little after a pause never stops, and is not counted; nor are stops for the
    /// receiver's window, which are `small-receive-window`. BBR keeps what it knows of the path, and has no such waits.
    ///
    /// ## What to do
    /// On the sending host: `sysctl -w net.ipv4.tcp_slow_start_after_idle=0` (for all connections of its network
    /// namespace). The risk is a burst into a path that has become narrower, which pacing (the `fq` queueing
    /// discipline) takes the edge off.
    ///
    /// ## References
    /// RFC 5681 section 4.1; RFC 7661; Linux Documentation/networking/ip-sysctl, `tcp_slow_start_after_idle`.
    IDLE_RESTART = "idle-restart", Severity::Problem, Check::Connection(check)
}

/// One pause could have met another reduction of the window; several are the restart's.
const CONFIDENCE_ONCE: f64 = 0.85;
const CONFIDENCE: f64 = 0.95;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let Some(sending) = subject.connection.sending(end) else { continue };
        if let Some(tally) = subject.tally(Cause::IdleRestart, end)
            && matters_after_pauses(subject, tally.total)
        {
            findings.push(finding(subject, end, tally, &sending.flights.reopening));
        }
    }
}

fn finding(subject: &Subject<'_>, end: End, tally: &Tally, rounds: &Rounds) -> Finding {
    Finding {
        rule: IDLE_RESTART.name,
        severity: IDLE_RESTART.severity,
        connection: Some(subject.id),
        blame: subject.blame(end),
        count: rounds.times,
        cost_ms: ms(tally.total),
        worst_ms: ms(tally.worst().first().map_or(0, |case| case.length)),
        confidence: if rounds.times == 1 { CONFIDENCE_ONCE } else { CONFIDENCE },
        summary: subject.text(|| summary(subject, end, tally, rounds)),
        evidence: subject.evidence(tally, |_| {
            [
                "the congestion window, fallen back in a pause, allows no more".to_owned(),
                "an ACK lets it open".to_owned(),
                "the next flight begins".to_owned(),
            ]
        }),
        fixes: subject.fixes(|| fixes(subject, end)),
    }
}

fn summary(subject: &Subject<'_>, end: End, tally: &Tally, rounds: &Rounds) -> String {
    format!(
        "The congestion window of {} fell back {} in a pause, from at least {} to {}, and data waited {} for it to \
         open again, {} in all, {} of the time in which somebody waited.",
        subject.who(end),
        times(rounds.times),
        counted(rounds.before, "byte"),
        counted(rounds.first, "byte"),
        counted(rounds.count, "round trip"),
        human(tally.total),
        percent(tally.total, subject.waiting()),
    )
}

fn fixes(subject: &Subject<'_>, end: End) -> Vec<Fix> {
    let side = subject.side_name(end);
    vec![
        Fix {
            title: format!("Keep the window on the {side}'s host"),
            how: "sysctl -w net.ipv4.tcp_slow_start_after_idle=0, and in /etc/sysctl.d/ for the next boot. It concerns \
                  the host that sends; the other side can do nothing."
                .to_owned(),
        },
        Fix {
            title: format!("Or use BBR on the {side}"),
            how: "net.ipv4.tcp_congestion_control=bbr, or TCP_CONGESTION on the sending socket: it paces what follows a \
                  pause at the rate it has measured."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::Blamed;

    const ROUND: u64 = 51_000;

    /// Flights of one upload on a path of 50 ms, each ACKed as a whole.
    fn send(talk: &mut Talk, start: u64, flights: &[u64]) {
        for (round, segments) in flights.iter().enumerate() {
            talk.flight(start + ROUND * round as u64, true, *segments);
            talk.ack(start + ROUND * (round as u64 + 1) - 50, false);
        }
    }

    /// Four flights, a pause of so many ms, and these.
    fn with_pause(pause: u64, flights: &[u64]) -> String {
        let mut talk = Talk::near_client(50_000);
        send(&mut talk, 51_000, &[10, 20, 40, 30]);
        send(&mut talk, 51_000 + 4 * ROUND + pause * 1_000, flights);
        talk.text()
    }

    #[test]
    fn a_burst_after_a_pause_begins_with_ten_segments_again() {
        let found = findings("idle-restart", &with_pause(1_000, &[10, 20, 40, 3]));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.count, found.blame.side), (1, Blamed::Client));
        // Three stops of a round, less the 90, 190 and 390 µs that the flights took.
        assert!((found.cost_ms.0 - (153.0 - 0.67)).abs() < 0.001, "{:?}", found.cost_ms);
        // 40 segments that were ACKed have opened a window of 80.
        assert!(found.summary.contains("at least 116,800 bytes to 14,600 bytes"), "{}", found.summary);
        assert!(found.summary.contains("3 round trips"), "{}", found.summary);
    }

    #[test]
    fn a_window_that_was_kept_takes_the_whole_burst() {
        assert!(findings("idle-restart", &with_pause(1_000, &[44, 10])).is_empty());
        assert!(findings("idle-restart", &with_pause(1_000, &[44])).is_empty());
    }

    #[test]
    fn a_program_that_sends_little_after_a_pause_waits_for_nothing() {
        assert!(findings("idle-restart", &with_pause(1_000, &[8])).is_empty());
    }

    #[test]
    fn no_timeout_has_passed_in_a_short_pause() {
        assert!(findings("idle-restart", &with_pause(150, &[10, 20, 40, 3])).is_empty());
    }

    #[test]
    fn a_receive_window_that_has_shrunk_in_the_pause_is_the_receivers() {
        let mut talk = Talk::near_client(50_000);
        send(&mut talk, 51_000, &[10, 20, 40, 30]);
        let start = 1_400_000;
        // 114 × 128 bytes: ten segments, less 8 bytes.
        talk.ack_with(start - 700_000, false, 115);
        for round in 0..4 {
            talk.flight(start + ROUND * round, true, 10);
            talk.ack_with(start + ROUND * (round + 1) - 50, false, 115);
        }
        assert!(findings("idle-restart", &talk.text()).is_empty());
    }
}
