//! Segments that were sent again although they had arrived.

use super::loss::{CONFIDENCE_GAPS, Loss, worst};
use super::rule::{Check, rule};
use super::subject::{Subject, counted, human, times};
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::ledger::Tally;
use crate::report::{Blame, Blamed, Finding, Fix, Severity};

rule! {
    /// Segments were sent again that had arrived: a timer was too short, or segments came out of order.
    ///
    /// ## What it means
    /// A sender that believes in a loss sends again, halves its congestion window, or after a timeout begins with one
    /// segment. Where nothing had been lost, that bandwidth and that caution are wasted. Two things mislead it: an ACK
    /// that takes longer than the retransmission timer (a queue that filled quickly, a delayed ACK, a radio link that
    /// stood still), and a path that reorders segments, so that duplicate ACKs pretend a loss. A tail-loss probe that
    /// was not needed costs one segment and nothing else.
    ///
    /// ## How it is detected
    /// The receiver says so: its ACK reports with its first SACK block bytes that came twice (D-SACK), and they had been
    /// sent twice; or the ACK after a timer's retransmission echoes an older timestamp than that one's, that of
    /// the original (Eifel); or the segment had passed the capture with its ACK. Packets that the network itself
    /// delivers twice do not count. How much time the smaller window cost afterwards the packets do not show, so no
    /// cost is given.
    ///
    /// ## What to do
    /// After timers: find out why ACKs take so long (a queue on the way, a receiver that delays), and keep
    /// timestamps, D-SACK and F-RTO on, with which the sender takes its caution back. After duplicate ACKs: find what
    /// reorders (per-packet load balancing, parallel links, offload faults); RACK stands it.
    ///
    /// ## References
    /// RFC 2883 and RFC 3708 (D-SACK); RFC 3522 and RFC 4015 (Eifel); RFC 5682 (F-RTO); RFC 8985 (RACK).
    SPURIOUS_RETRANSMIT = "spurious-retransmit", Severity::Note, Check::Connection(check)
}

/// From so many on…
const MANY: u64 = 5;
/// …and this share of all segments, 1 in so many, they are worth doing something about.
const MANY_SHARE: u64 = 100;
/// The receiver says so.
const CONFIDENCE: f64 = 0.95;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        for cause in [Cause::NeedlessProbe, Cause::NeedlessTimer, Cause::NeedlessRepair] {
            if let Some(tally) = subject.tally(cause, end) {
                findings.push(finding(subject, end, tally));
            }
        }
    }
}

fn finding(subject: &Subject<'_>, end: End, tally: &Tally) -> Finding {
    let loss = Loss::of(subject, end);
    // A probe leaves the congestion window alone (RFC 8985 section 7.3).
    let is_dear = tally.cause != Cause::NeedlessProbe;
    let is_much = is_dear && tally.count >= MANY && tally.count * MANY_SHARE >= loss.segments;
    Finding {
        rule: SPURIOUS_RETRANSMIT.name,
        severity: if is_much { Severity::Advice } else { SPURIOUS_RETRANSMIT.severity },
        connection: Some(subject.id),
        blame: Blame { side: Blamed::Network, address: None },
        count: tally.count,
        cost_ms: ms(0),
        worst_ms: ms(0),
        confidence: if loss.has_gaps { CONFIDENCE_GAPS } else { CONFIDENCE },
        summary: summary(subject, end, tally, &loss),
        evidence: subject.evidence(tally, |case| match tally.cause {
            Cause::NeedlessRepair => [
                "sent again, or the ACK of what is sent again now".to_owned(),
                "shows that it had come before".to_owned(),
                String::new(),
            ],
            _ => [
                "the last packet before the timer ran, or the ACK of what is sent again".to_owned(),
                "sent again".to_owned(),
                format!("shows that it had come before: {} after the first", human(case.length)),
            ],
        }),
        fixes: subject.fixes(|| fixes(subject, end, tally.cause)),
    }
}

fn summary(subject: &Subject<'_>, end: End, tally: &Tally, loss: &Loss) -> String {
    let why = match tally.cause {
        Cause::NeedlessProbe => {
            format!("as a tail-loss probe, before the ACK came, which took up to {}", human(worst(tally)))
        }
        Cause::NeedlessTimer => format!(
            "a timer of the {} ran out before the ACK came, which took up to {}",
            subject.side_name(end),
            human(worst(tally))
        ),
        _ => format!(
            "segments that came out of order, or ACKs that were lost, made the {} believe in a loss",
            subject.side_name(end)
        ),
    };
    format!(
        "{} sent again {} what had arrived, of {} in all: {why}.",
        subject.who(end).replacen("the", "The", 1),
        times(tally.count),
        counted(loss.segments, "segment"),
    )
}

fn fixes(subject: &Subject<'_>, end: End, cause: Cause) -> Vec<Fix> {
    if cause != Cause::NeedlessRepair {
        return vec![
            Fix {
                title: "Find out why the ACK took so long".to_owned(),
                how: "A round trip that grows with the load is a queue (fq_codel or a sensible length there); one ACK \
                      that comes late alone is a receiver that delays it."
                    .to_owned(),
            },
            Fix {
                title: format!("Keep timestamps, D-SACK and F-RTO on at the {}", subject.side_name(end)),
                how: "net.ipv4.tcp_timestamps=1, net.ipv4.tcp_dsack=1, net.ipv4.tcp_frto=2 (Linux's defaults): the \
                      sender then takes back what it did to its window. A route with rto_min below 200 ms makes such \
                      timeouts more frequent."
                    .to_owned(),
            },
        ];
    }
    vec![
        Fix {
            title: "Find what reorders segments".to_owned(),
            how: "Load balancing packet by packet (balance-rr bonding, ECMP without flow hash), parallel queues, or a \
                  capture before and behind each hop."
                .to_owned(),
        },
        Fix {
            title: format!("Keep RACK on at the {}", subject.side_name(end)),
            how: "net.ipv4.tcp_recovery=1 (Linux's default): it waits a little before it believes in a loss, and longer \
                  once it has seen reordering. net.ipv4.tcp_reordering raises the number of duplicate ACKs."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bulk, findings};
    use crate::report::{Blamed, Severity};

    #[test]
    fn a_timer_that_ran_out_before_a_late_ack() {
        let mut talk = Bulk::with_sack(20_000);
        talk.piece(30_000, 0, 100);
        talk.piece(250_000, 0, 100);
        talk.ack_piece(260_000, 0, 100);
        talk.duplicate(270_000, (0, 100));
        let found = findings("spurious-retransmit", &talk.text());
        assert_eq!(found.len(), 1);
        let finding = &found[0];
        assert_eq!(
            (finding.blame.side, finding.severity, finding.count),
            (Blamed::Network, Severity::Note, 1)
        );
        assert_eq!(finding.cost_ms.0, 0.0);
        // The segment, its repetition, and the ACK 10 ms after that, where the path takes 20; the D-SACK says the same.
        assert_eq!(finding.evidence.iter().map(|evidence| evidence.packet).collect::<Vec<_>>(), [4, 5, 6]);
        assert!(finding.summary.contains("a timer of the client") && finding.summary.contains("230 ms"));
        assert!(findings("tail-loss", &talk.text()).is_empty());
    }

    #[test]
    fn a_probe_that_was_not_needed_is_called_one() {
        let mut talk = Bulk::with_sack(20_000);
        talk.segment(30_000, 0);
        talk.piece(30_010, 1, 100);
        talk.piece(80_000, 1, 100);
        talk.ack_piece(99_000, 1, 100);
        talk.duplicate(100_000, (1_460, 1_560));
        let found = findings("spurious-retransmit", &talk.text());
        assert_eq!((found.len(), found[0].count, found[0].severity), (1, 1, Severity::Note));
        assert!(found[0].summary.contains("as a tail-loss probe"), "{}", found[0].summary);
    }

    #[test]
    fn without_sack_the_echoed_timestamp_tells() {
        // Sent at 30 and 250 ms with timestamps of 1 ms; what comes at 271 ms answers the one whose timestamp it has.
        let talk = |echo: u64| {
            let mut talk = Bulk::without_sack(20_000);
            talk.stamped(30_000, 100, 1_030);
            talk.stamped(250_000, 100, 1_250);
            talk.echo(271_000, 100, echo);
            talk.text()
        };
        let found = findings("spurious-retransmit", &talk(1_030));
        assert_eq!((found.len(), found[0].count), (1, 1));
        assert!(findings("tail-loss", &talk(1_030)).is_empty());
        assert!(findings("spurious-retransmit", &talk(1_250)).is_empty(), "the second was answered");
        assert_eq!(findings("tail-loss", &talk(1_250)).len(), 1);
    }

    #[test]
    fn the_echo_and_the_d_sack_of_one_segment_count_once() {
        let mut talk = Bulk::with_sack(20_000);
        talk.stamped(30_000, 100, 1_030);
        talk.stamped(250_000, 100, 1_250);
        talk.echo(255_000, 100, 1_030);
        talk.duplicate(270_000, (0, 100));
        let found = findings("spurious-retransmit", &talk.text());
        assert_eq!((found.len(), found[0].count), (1, 1));
    }

    /// Ten segments, of which the path delivers the first after the fifth; the sender sends it again.
    fn overtaken() -> Bulk {
        let mut talk = Bulk::with_sack(20_000);
        (0..10).for_each(|index| talk.segment(30_000 + 10 * index, index));
        (1..5).for_each(|index| talk.sack(50_000 + 10 * index, 0, (1, index + 1)));
        talk.segment(50_050, 0);
        talk.ack(50_060, 5);
        talk.ack(50_100, 10);
        talk
    }

    #[test]
    fn segments_out_of_order_pretend_a_loss() {
        let mut talk = overtaken();
        talk.duplicate_below(70_050, 10, (0, 1));
        let found = findings("spurious-retransmit", &talk.text());
        assert_eq!((found.len(), found[0].count), (1, 1));
        assert!(found[0].summary.contains("out of order"), "{}", found[0].summary);
    }

    #[test]
    fn a_segment_that_was_lost_is_sent_again_for_a_reason() {
        assert!(findings("spurious-retransmit", &overtaken().text()).is_empty());
    }

    #[test]
    fn what_the_network_delivers_twice_was_sent_once() {
        let mut talk = Bulk::with_sack(20_000);
        (0..4).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.ack(50_030, 4);
        talk.duplicate_below(50_040, 4, (2, 3));
        assert!(findings("spurious-retransmit", &talk.text()).is_empty());
    }

    /// A slow line: each segment's ACK comes 370 ms after it, and the timer has run out 50 ms before. Each copy draws an ACK
    /// of its own, if none was lost; there are no timestamps, and no SACK.
    fn slow_line(has_echoes: bool) -> String {
        let mut talk = Bulk::without_sack(20_000);
        for number in 0..6_u64 {
            let start = 100_000 + 800_000 * number;
            talk.segment(start, number);
            talk.segment(start + 320_000, number);
            talk.ack(start + 370_000, number + 1);
            if has_echoes {
                talk.ack(start + 700_000, number + 1);
            }
        }
        talk.text()
    }

    #[test]
    fn copies_that_drew_an_ack_each_were_not_needed() {
        let text = slow_line(true);
        assert_eq!(findings("spurious-retransmit", &text).first().map(|found| found.count), Some(6));
        for rule in ["rto-stall", "tail-loss", "fast-recovery", "one-hole-per-rtt"] {
            assert!(findings(rule, &text).is_empty(), "{rule}");
        }
    }

    #[test]
    fn copies_that_nothing_answers_twice_were_needed() {
        let text = slow_line(false);
        assert!(findings("spurious-retransmit", &text).is_empty());
        assert_eq!(findings("rto-stall", &text).len(), 1);
    }
}
