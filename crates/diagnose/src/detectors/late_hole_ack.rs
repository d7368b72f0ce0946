//! Receivers that delay the ACK of what fills a hole.

use super::loss::{CONFIDENCE_GAPS, Loss, severity, worst};
use super::rule::{Check, rule};
use super::subject::{Subject, counted, human, percent};
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::ledger::Tally;
use crate::report::{Finding, Fix, Severity, Side, Vantage};

rule! {
    /// The receiver delays the ACK of a retransmission that fills a hole.
    ///
    /// ## What it means
    /// A sender that repairs several losses without SACK learns of the next hole only by the ACK of the repair
    /// before. A receiver that treats the segment which fills a hole like any other in order waits with that ACK
    /// for a second segment or its timer, up to 200 ms and more, and the sender stands still: a second's transfer
    /// takes five. RFC 5681 asks for an ACK at once whenever a segment fills all or part of a gap.
    ///
    /// ## How it is detected
    /// During a repair, an ACK that moves over a retransmission and over data behind it, which the receiver thus
    /// had, came late: 20 ms and half a base round trip after it was due, and later than the path takes for one
    /// segment more. It is due a base round trip after the retransmission, or right after the ACK before, plus what
    /// the path takes for one segment, which duplicate ACKs in a row show by their distance. Two such ACKs are
    /// needed, or one seen at the receiver. What lies beyond the due time is the cost.
    ///
    /// ## What to do
    /// Bring the receiver's system up to date: every common one has ACKed such segments at once since about 2000.
    /// Where that cannot be done, allow SACK at both ends, so that the sender need not wait for these ACKs, and
    /// lose less.
    ///
    /// ## References
    /// RFC 5681 section 4.2 (ACK at once what fills a gap); RFC 2581 section 4.2; RFC 6582 (NewReno); Neal Cardwell
    /// to the tcp-impl list, November 1998, "delayed ACKs for retransmitted packets: ouch!".
    LATE_HOLE_ACK = "late-hole-ack", Severity::Problem, Check::Connection(check)
}

/// Away from the receiver one late ACK may have had another reason: it was lost, or the path stood still.
const FEWEST: u64 = 2;
/// From so many on, chance is out of the question.
const SEVERAL: u64 = 3;
const CONFIDENCE_AT_RECEIVER: f64 = 0.95;
const CONFIDENCE: f64 = 0.85;
const CONFIDENCE_FEW: f64 = 0.6;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        if let Some((tally, severity)) = judged(subject, end) {
            findings.push(finding(subject, end, tally, severity));
        }
    }
}

/// The late ACKs of what `end` sent again, and how much they matter, if they do.
fn judged<'a>(subject: &'a Subject<'_>, end: End) -> Option<(&'a Tally, Severity)> {
    let tally = subject.tally(Cause::LateRepairAck, end)?;
    let is_sure = tally.count >= FEWEST || is_at_receiver(subject, end);
    severity(subject, tally.total).filter(|_| is_sure).map(|severity| (tally, severity))
}

/// What late ACKs of `end`'s repairs cost, ns; 0 where the rule does not speak.
pub(super) fn cost(subject: &Subject<'_>, end: End) -> i64 {
    judged(subject, end).map_or(0, |(tally, _)| tally.total)
}

fn is_at_receiver(subject: &Subject<'_>, end: End) -> bool {
    matches!(
        (subject.side(1 - end), subject.vantage()),
        (Side::Client, Vantage::Client) | (Side::Server, Vantage::Server)
    )
}

fn finding(subject: &Subject<'_>, end: End, tally: &Tally, severity: Severity) -> Finding {
    let receiver = 1 - end;
    Finding {
        rule: LATE_HOLE_ACK.name,
        severity,
        connection: Some(subject.id),
        blame: subject.blame(receiver),
        count: tally.count,
        cost_ms: ms(tally.total),
        worst_ms: ms(worst(tally)),
        confidence: confidence(subject, end, tally),
        summary: format!(
            "When {} sent lost segments again, {} did not ACK at once what filled the hole, as it should: {} came {} \
             late on average, {} in all, {} of the time in which somebody waited. Without {} the sender does not learn what else \
             is missing.",
            subject.who(end),
            subject.who(receiver),
            counted(tally.count, "ACK"),
            human(tally.total / i64::try_from(tally.count).unwrap_or(i64::MAX)),
            human(tally.total),
            percent(tally.total, subject.waiting()),
            if tally.count == 1 { "it" } else { "them" },
        ),
        evidence: subject.evidence(tally, |case| {
            [
                "sent again: it fills the hole".to_owned(),
                format!("its ACK, {} after it was due", human(case.length)),
                String::new(),
            ]
        }),
        fixes: fixes(subject, receiver),
    }
}

fn confidence(subject: &Subject<'_>, end: End, tally: &Tally) -> f64 {
    match tally.count {
        _ if Loss::of(subject, end).has_gaps => CONFIDENCE_GAPS,
        _ if is_at_receiver(subject, end) => CONFIDENCE_AT_RECEIVER,
        SEVERAL.. => CONFIDENCE,
        _ => CONFIDENCE_FEW,
    }
}

fn fixes(subject: &Subject<'_>, receiver: End) -> Vec<Fix> {
    vec![
        Fix {
            title: format!("Bring the TCP of {} up to date", subject.address(receiver)),
            how: "Systems since about 2000 ACK at once what fills a hole (Linux 2.2, FreeBSD 4). Small embedded stacks \
                  may have a setting for delayed ACKs: switch them off there."
                .to_owned(),
        },
        Fix {
            title: "Allow SACK at both ends".to_owned(),
            how: "net.ipv4.tcp_sack=1 on Linux; no middlebox may strip the option. The sender then mends all holes at \
                  once and waits for none of these ACKs."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bulk, findings};
    use crate::report::Blamed;

    /// Twelve segments of which the 2nd, 5th and 8th are lost; they are sent again one a round trip of 20 ms, each ACK
    /// of them `late` µs later than it could be. Without SACK. Then the sender has more to send.
    fn repairs(late: u64) -> String {
        repairs_of(late, true)
    }

    /// The same, or it has no more.
    fn repairs_of(late: u64, goes_on: bool) -> String {
        let mut talk = Bulk::without_sack(20_000);
        (0..12).for_each(|index| talk.segment(30_000 + 1_000 * index, index));
        talk.ack(50_000, 1);
        // Each of the eight that arrive behind the first hole draws a duplicate, 1 ms apart but for the lost ones.
        [2, 3, 5, 6, 8, 9, 10, 11].iter().for_each(|index| talk.ack(50_000 + 1_000 * index, 1));
        let mut now = 61_100;
        for (lost, upto) in [(1, 4), (4, 7), (7, 12)] {
            talk.segment(now, lost);
            now += 21_000 + late;
            talk.ack(now, upto);
            now += 100;
        }
        if goes_on {
            talk.segment(now, 12);
        }
        talk.text()
    }

    #[test]
    fn the_last_ack_of_all_keeps_nobody_waiting() {
        let found = findings("late-hole-ack", &repairs_of(200_000, false));
        assert_eq!((found.len(), found[0].count), (1, 2));
    }

    #[test]
    fn each_repair_is_acked_200_ms_late() {
        let found = findings("late-hole-ack", &repairs(200_000));
        assert_eq!(found.len(), 1);
        let finding = &found[0];
        assert_eq!(
            (finding.blame.side, finding.blame.address.as_deref(), finding.count),
            (Blamed::Server, Some("10.0.0.2:80"), 3)
        );
        // Each is due 20 ms after its segment plus 9/7 ms, the mean distance of the duplicates, and comes at 221.
        assert!((finding.cost_ms.0 - 3.0 * (201.0 - 9.0 / 7.0)).abs() < 0.01, "{:?}", finding.cost_ms);
        let total: f64 = ["late-hole-ack", "one-hole-per-rtt", "fast-recovery"]
            .iter()
            .flat_map(|rule| findings(rule, &repairs(200_000)))
            .map(|finding| finding.cost_ms.0)
            .sum();
        // From the first duplicate at 52 ms to the last ACK at 724.3: nothing counts twice.
        assert!((total - 672.3).abs() < 0.01, "{total}");
    }

    #[test]
    fn acks_that_come_when_they_can_are_not_late() {
        assert!(findings("late-hole-ack", &repairs(0)).is_empty());
        assert!(findings("late-hole-ack", &repairs(15_000)).is_empty());
    }

    #[test]
    fn a_line_that_takes_long_for_a_segment_is_not_a_receiver_that_waits() {
        // 60 ms a segment: so far apart come the duplicates, and 60 ms after a round trip the ACKs of the repairs.
        let mut talk = Bulk::without_sack(20_000);
        (0..12).for_each(|index| talk.segment(30_000 + 100 * index, index));
        talk.ack(110_000, 1);
        [2, 3, 5, 6, 8, 9, 10, 11].iter().for_each(|index| talk.ack(110_000 + 60_000 * index, 1));
        let mut now = 770_100;
        for (lost, upto) in [(1, 4), (4, 7), (7, 12)] {
            talk.segment(now, lost);
            now += 80_000;
            talk.ack(now, upto);
            now += 100;
        }
        assert!(findings("late-hole-ack", &talk.text()).is_empty());
    }

    #[test]
    fn a_repair_with_nothing_behind_it_may_be_acked_late() {
        // The last three are lost: what is sent again is in order, and RFC 1122 lets its ACK wait.
        let mut talk = Bulk::without_sack(20_000);
        (0..12).for_each(|index| talk.segment(30_000 + 1_000 * index, index));
        talk.ack(50_000, 1);
        (2..9).for_each(|index| talk.ack(50_000 + 1_000 * index, 1));
        talk.segment(58_100, 1);
        talk.ack(79_200, 9);
        let mut now = 79_300;
        for lost in 9..12 {
            talk.segment(now, lost);
            now += 221_000;
            talk.ack(now, lost + 1);
            now += 100;
        }
        assert!(findings("late-hole-ack", &talk.text()).is_empty());
    }
}
