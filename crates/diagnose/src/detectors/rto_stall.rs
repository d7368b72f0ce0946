//! Waits for a retransmission timer although something came behind what was lost.

use super::loss::{
    CONFIDENCE_GAPS, Loss, SMALLEST_STALL, find_the_drops, how_long, of_timer, smaller_window, told_of_window,
};
use super::rule::{Check, rule};
use super::subject::{Subject, human, percent};
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::ledger::Tally;
use crate::report::{Finding, Fix, Severity};

rule! {
    /// A loss was repaired by a timer, although more than a message's end was lost.
    ///
    /// ## What it means
    /// TCP notices most losses by the ACKs of what was sent after the lost segment. Where a retransmission is
    /// lost too, too little comes behind the hole to draw three duplicate ACKs, or a whole window is lost, only the
    /// retransmission timer is left: at least 200 ms on Linux, 1 s by the RFC, and twice as long each time it
    /// expires again. After it the sender starts with one segment.
    ///
    /// ## How it is detected
    /// A segment was sent again after a silence of both sides of 150 ms and more, keep-alives left out. The silence is the
    /// cost, and what the repair then took beyond a round trip: after a timer a sender begins with one segment. Bytes that
    /// the receiver tells to be missing, and that nobody was seen to send again, count alike until a RST ends the wait, or
    /// an ACK shows that they came, past the capture. Where the
    /// lost segment ended a message and nothing had come behind it, `tail-loss` tells of it; of a SYN, `syn-retry`
    /// does. A retransmission that the receiver reports as needless (D-SACK) is not a loss: its ACK was only
    /// late. Probes of a closed window and keep-alives are no retransmissions.
    ///
    /// ## What to do
    /// Find where segments are dropped (interfaces, queues, a policer, a firewall, an MTU that is smaller than
    /// it says). SACK and RACK with tail-loss probes, on by default on today's Linux, notice also a lost
    /// retransmission within a round trip or two; both ends must allow SACK for it.
    ///
    /// ## References
    /// RFC 6298 (timer); RFC 5681 section 3.2 (three duplicate ACKs); RFC 8985 (RACK-TLP); RFC 2883 (D-SACK).
    RTO_STALL = "rto-stall", Severity::Problem, Check::Connection(check)
}

/// A retransmission after so long a silence leaves no other reading.
const CONFIDENCE: f64 = 0.95;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        if let Some(tally) = subject.tally(Cause::Timeout, end)
            && tally.total >= SMALLEST_STALL
            && Loss::of(subject, end).is_real()
        {
            findings.push(finding(subject, end, tally));
        }
    }
}

fn finding(subject: &Subject<'_>, end: End, tally: &Tally) -> Finding {
    let loss = Loss::of(subject, end);
    let later = smaller_window(subject, end, Cause::Timeout);
    let repair = subject.tally(Cause::TimerRepair, end).map_or(0, |tally| tally.total);
    Finding {
        cost_ms: ms(tally.total + repair + later),
        confidence: if loss.is_in_doubt(subject, end) { CONFIDENCE_GAPS } else { CONFIDENCE },
        summary: format!(
            "The network lost data of {}, and what came later did not tell in time: the {} waited {} for its \
             retransmission timer: {}, {} of the time in which somebody waited.{}{} {} sent again.",
            subject.who(end),
            subject.side_name(end),
            super::subject::times(tally.count),
            how_long(tally),
            percent(tally.total, subject.waiting()),
            if repair > 0 {
                format!(" The repair then took another {}.", human(repair))
            } else {
                String::new()
            },
            told_of_window(later),
            loss.sent_again(),
        ),
        evidence: subject.evidence(tally, |_| {
            [
                "the last packet with data before the silence".to_owned(),
                "the timer has expired: sent again".to_owned(),
                String::new(),
            ]
        }),
        fixes: fixes(subject, end),
        ..of_timer(&RTO_STALL, subject, tally)
    }
}

fn fixes(subject: &Subject<'_>, end: End) -> Vec<Fix> {
    vec![
        find_the_drops(),
        Fix {
            title: format!("Keep SACK and RACK on at the {}", subject.side_name(end)),
            how: "On Linux: net.ipv4.tcp_sack=1, net.ipv4.tcp_recovery=1, net.ipv4.tcp_early_retrans=3 (the defaults). \
                  RACK also notices that a retransmission was lost; without SACK at both ends neither works."
                .to_owned(),
        },
        Fix {
            title: "Within a data centre: a shorter timer".to_owned(),
            how: "`ip route change … rto_min 20ms` on the sending host, at the price of needless retransmissions where \
                  ACKs are delayed."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bulk, diagnose, findings, minute_of_messages};
    use crate::report::{Blamed, Line, Severity, Source};

    /// Four segments, of which the second is lost; what comes behind it draws two duplicate ACKs, too few. It is sent
    /// again 270 ms after the last of them.
    fn too_few() -> Bulk {
        let mut talk = Bulk::without_sack(20_000);
        (0..4).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.ack(50_000, 1);
        talk.ack(50_020, 1);
        talk.ack(50_030, 1);
        talk.segment(320_030, 1);
        talk.ack(340_030, 4);
        talk
    }

    #[test]
    fn too_few_duplicate_acks_leave_the_repair_to_the_timer() {
        let found = findings("rto-stall", &too_few().text());
        assert_eq!(found.len(), 1);
        let finding = &found[0];
        assert_eq!((finding.blame.side, finding.blame.address.as_ref()), (Blamed::Network, None));
        assert_eq!((finding.severity, finding.count), (Severity::Problem, 1));
        // All is ACKed at 340.03 ms; without the loss it had been at 50.03.
        assert!((finding.cost_ms.0 - 290.0).abs() < 0.02, "{:?}", finding.cost_ms);
        assert!(finding.summary.contains("1 of 5 segments was sent again"), "{}", finding.summary);
        for other in ["tail-loss", "fast-recovery"] {
            assert!(findings(other, &too_few().text()).is_empty(), "{other}");
        }
    }

    #[test]
    fn each_timer_has_its_own_silence_and_a_duplicate_ack_is_no_probe() {
        // Three segments are lost out of eight. Duplicate ACKs let new data out, after 300 ms of silence (RFC 3042). Each hole is
        // mended by a timer of its own: 500 ms after the last ACK, and 600 ms after the one that came then.
        let mut talk = Bulk::without_sack(20_000);
        (0..8).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.ack(330_000, 1);
        talk.ack(330_010, 1);
        talk.segment(330_050, 8);
        talk.segment(830_050, 1);
        talk.ack(850_050, 4);
        talk.segment(1_450_050, 4);
        talk.ack(1_470_050, 9);
        let found = findings("rto-stall", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.count, 2, "{found:?}");
        assert!((found.worst_ms.0 - 600.0).abs() < 0.1, "{found:?}");
        assert!(findings("tail-loss", &talk.text()).is_empty());
    }

    #[test]
    fn a_whole_window_that_is_lost_is_more_than_a_tail() {
        let mut talk = Bulk::with_sack(20_000);
        (0..4).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.segment(330_030, 0);
        talk.ack(350_030, 1);
        (1..4).for_each(|index| talk.segment(350_040 + index, index));
        talk.ack(370_050, 4);
        assert_eq!(findings("rto-stall", &talk.text()).len(), 1);
        assert!(findings("tail-loss", &talk.text()).is_empty());
    }

    #[test]
    fn a_program_that_says_more_after_a_pause_has_lost_nothing() {
        let mut talk = Bulk::without_sack(20_000);
        (0..4).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.ack(50_030, 4);
        talk.segment(320_030, 4);
        talk.ack(340_030, 5);
        assert!(findings("rto-stall", &talk.text()).is_empty());
    }

    #[test]
    fn one_timer_in_a_long_life_is_advice() {
        let text = too_few().text() + &minute_of_messages(1 + 4 * 1_460);
        assert_eq!(findings("rto-stall", &text)[0].severity, Severity::Advice);
    }

    fn line_ms(text: &str, line: Line) -> f64 {
        diagnose(text).connections().next().expect("one").ledger_ms.get(line)
    }

    const RESET: &str =
        "10:00:20.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [R.], seq 5841, ack 1, win 0, length 0\n";

    #[test]
    fn a_reset_ends_the_wait_and_does_not_hide_it() {
        let mut talk = Bulk::without_sack(20_000);
        (0..4).for_each(|index| talk.segment(30_000 + 10 * index, index));
        [1_000_000, 3_000_000, 7_000_000].iter().for_each(|us| talk.segment(*us, 0));
        let text = talk.text() + RESET;
        let found = findings("rto-stall", &text);
        assert_eq!(found.len(), 1);
        // From the last segment to the reset: the last timer never expired.
        assert!((found[0].cost_ms.0 - 19_969.97).abs() < 0.01, "{:?}", found[0].cost_ms);
        assert!((line_ms(&text, Line::Rto) - 19_969.97).abs() < 0.01);
        assert!(findings("fast-recovery", &text).is_empty());
    }

    #[test]
    fn bytes_that_stay_missing_until_a_reset() {
        // At the server: the second segment never comes, and the server tells of what is behind it.
        let mut talk = Bulk::at_server(20_000);
        talk.segment(30_000, 0);
        talk.ack(30_010, 1);
        talk.segment(30_100, 2);
        talk.sack(30_110, 1, (2, 3));
        let text = talk.text() + RESET;
        assert_eq!(findings("rto-stall", &text).len(), 1);
        assert!(line_ms(&text, Line::Rto) > 19_900.0);
    }

    #[test]
    fn a_reset_of_a_quiet_connection_ends_no_wait() {
        let mut talk = Bulk::at_server(20_000);
        (0..3).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.ack(30_030, 3);
        let text = talk.text() + RESET;
        assert!(findings("rto-stall", &text).is_empty());
        assert!(line_ms(&text, Line::Rto) < 0.01);
    }

    #[test]
    fn keep_alives_do_not_end_a_silence() {
        let mut talk = Bulk::at_server(20_000);
        talk.segment(30_000, 0);
        talk.segment(30_100, 2);
        talk.sack(30_110, 1, (2, 3));
        // The server, which has sent nothing, keeps the connection alive.
        let alive = "10:00:05.000000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], seq 0:1, ack 1461, win 65160, length 1\n\
                     10:00:05.020000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], seq 4381, ack 1, win 64240, length 0\n";
        let mut end = Bulk::at_server(20_000);
        end.segment(9_000_000, 1);
        end.ack(9_000_010, 3);
        let end: String = end.text().lines().skip(3).map(|line| format!("{line}\n")).collect();
        let found = findings("rto-stall", &(talk.text() + alive + &end));
        assert_eq!((found.len(), found[0].count), (1, 1));
        assert!((found[0].cost_ms.0 - 8_969.89).abs() < 0.02, "{:?}", found[0].cost_ms);
    }
}
