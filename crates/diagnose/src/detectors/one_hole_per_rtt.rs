//! Repairs that mend one hole a round trip, for want of SACK.

use super::loss::{CONFIDENCE_GAPS, Loss, severity, worst};
use super::rule::{Check, rule};
use super::subject::{Subject, counted, human, percent};
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::flow::half::NEVER;
use crate::ledger::Tally;
use crate::report::{Blame, Blamed, Finding, Fix, Severity};

rule! {
    /// Several lost segments were mended one a round trip, because SACK was not used.
    ///
    /// ## What it means
    /// Without selective ACKs a sender knows only the first hole. NewReno sends that segment again, waits a round trip
    /// for the partial ACK that tells of the next one, and so on: twenty losses take twenty round trips, which on
    /// a long path, or behind a full queue, are seconds. With SACK all holes are known at once.
    ///
    /// ## How it is detected
    /// In one repair, ACKs moved on to further holes, and between one such ACK and the next exactly one segment was
    /// sent again; no SACK was allowed in the handshake, or no ACK carried any. Every such round but a repair's first
    /// counts, from ACK to ACK, less what `late-hole-ack` tells of. Three such rounds in all are needed.
    ///
    /// ## What to do
    /// Allow SACK on the side that did not, or find the middlebox that strips it. Losing fewer segments at once
    /// helps too: a burst that overflows a queue loses every second segment.
    ///
    /// ## References
    /// RFC 6582 (NewReno); RFC 2018 and RFC 6675 (SACK); RFC 8985 (RACK).
    ONE_HOLE_PER_RTT = "one-hole-per-rtt", Severity::Problem, Check::Connection(check)
}

/// Fewer rounds than this are soon over, and the last of a burst may leave alone with SACK as well.
const FEWEST: u64 = 3;
/// The SYNs tell.
const CONFIDENCE: f64 = 0.95;
/// Both SYNs allowed SACK, or were not captured, and the ACKs carried none.
const CONFIDENCE_UNUSED: f64 = 0.7;

/// Why there were no SACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    /// This end's SYN did not allow them.
    Refused(End),
    /// Both allowed them, and none came.
    Unused,
    /// The handshake was not captured, and none came.
    Unknown,
}

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        if let Some((tally, without, severity)) = judged(subject, end) {
            findings.push(finding(subject, end, tally, without, severity));
        }
    }
}

fn judged<'a>(subject: &'a Subject<'_>, end: End) -> Option<(&'a Tally, Without, Severity)> {
    let tally = subject.tally(Cause::OneHole, end).filter(|tally| tally.count >= FEWEST)?;
    let trouble = subject.half(end).trouble.as_ref().filter(|trouble| trouble.sacked == 0)?;
    let without = match subject.connection.refuses_sack() {
        Some(end) => Without::Refused(end),
        None if subject.connection.syn.is_some() && subject.connection.syn_ack_at != NEVER => Without::Unused,
        None => Without::Unknown,
    };
    // Where sending again was for nothing, nothing was missing.
    let is_real = trouble.needless < trouble.retransmitted && Loss::of(subject, end).is_real();
    severity(subject, tally.total).filter(|_| is_real).map(|severity| (tally, without, severity))
}

/// What further round trips cost `end`'s repairs, ns; 0 where the rule does not speak.
pub(super) fn cost(subject: &Subject<'_>, end: End) -> i64 {
    judged(subject, end).map_or(0, |(tally, ..)| tally.total)
}

fn finding(subject: &Subject<'_>, end: End, tally: &Tally, without: Without, severity: Severity) -> Finding {
    let each = tally.total / i64::try_from(tally.count).unwrap_or(i64::MAX);
    Finding {
        rule: ONE_HOLE_PER_RTT.name,
        severity,
        connection: Some(subject.id),
        blame: match without {
            Without::Refused(end) => subject.blame(end),
            Without::Unused => subject.blame(1 - end),
            Without::Unknown => Blame { side: Blamed::Both, address: None },
        },
        count: tally.count,
        cost_ms: ms(tally.total),
        worst_ms: ms(worst(tally)),
        confidence: match without {
            _ if Loss::of(subject, end).has_gaps => CONFIDENCE_GAPS,
            Without::Refused(_) => CONFIDENCE,
            Without::Unused | Without::Unknown => CONFIDENCE_UNUSED,
        },
        summary: format!(
            "{} After the first, {} took {} each to mend one further hole of what {} had lost: {} in all, {} of the \
             connection's life. With SACK they would have been mended together.",
            why(subject, end, without),
            counted(tally.count, "round"),
            human(each),
            subject.who(end),
            human(tally.total),
            percent(tally.total, subject.waiting()),
        ),
        evidence: subject.evidence(tally, |_| {
            [
                "one segment is sent again".to_owned(),
                "its ACK tells of the next hole, or of none".to_owned(),
                String::new(),
            ]
        }),
        fixes: fixes(subject, end, without),
    }
}

fn why(subject: &Subject<'_>, end: End, without: Without) -> String {
    match without {
        Without::Refused(end) => format!("The SYN of {} did not allow SACK.", subject.who(end)),
        Without::Unused => format!(
            "Both SYNs allowed SACK, but the ACKs of {} carried none: it sends none, or a middlebox strips them.",
            subject.who(1 - end)
        ),
        Without::Unknown => "No ACK carried a SACK; the handshake, which would tell who refused it, was not \
                             captured."
            .to_owned(),
    }
}

fn fixes(subject: &Subject<'_>, end: End, without: Without) -> Vec<Fix> {
    let place = match without {
        Without::Refused(end) => format!(" on {}", subject.address(end)),
        Without::Unused => format!(" on {}", subject.address(1 - end)),
        Without::Unknown => " at both ends".to_owned(),
    };
    vec![
        Fix {
            title: format!("Allow SACK{place}"),
            how: "net.ipv4.tcp_sack=1 on Linux (the default), net.inet.tcp.sack.enable=1 on FreeBSD. If it is on \
                  already, a firewall or load balancer on the way takes the option out: compare the SYN at both \
                  ends."
                .to_owned(),
        },
        Fix {
            title: format!("Lose fewer segments of {} at once", subject.address(end)),
            how: "Pace the sender (fq, or BBR as congestion control), or give the queue that overflows fq_codel or a \
                  sensible length."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bulk, findings};
    use crate::report::Blamed;

    /// Twelve segments of which every second one is lost; they are sent again one a round trip of 20 ms.
    fn repairs(mut talk: Bulk) -> String {
        (0..12).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.ack(50_000, 1);
        [2, 4, 6, 8, 10].iter().for_each(|index| talk.ack(50_000 + 10 * index, 1));
        let mut now = 50_100;
        for lost in [1, 3, 5, 7, 9, 11] {
            talk.segment(now, lost);
            now += 20_000;
            talk.ack(now, (lost + 2).min(12));
            now += 50;
        }
        talk.text()
    }

    #[test]
    fn without_sack_each_hole_takes_a_round_trip() {
        let found = findings("one-hole-per-rtt", &repairs(Bulk::without_sack(20_000)));
        assert_eq!(found.len(), 1);
        let finding = &found[0];
        assert_eq!((finding.blame.side, finding.count), (Blamed::Client, 5));
        // Five further rounds of 20.05 ms from ACK to ACK.
        assert!((finding.cost_ms.0 - 5.0 * 20.05).abs() < 0.01, "{:?}", finding.cost_ms);
        assert!(finding.confidence > 0.9);
        // The first round is fast recovery's, from the first duplicate ACK at 50.02 to the ACK at 70.1.
        let rest = findings("fast-recovery", &repairs(Bulk::without_sack(20_000)));
        assert!((rest[0].cost_ms.0 - 20.08).abs() < 0.01, "{:?}", rest[0].cost_ms);
    }

    #[test]
    fn it_names_the_side_that_refused() {
        let found = findings("one-hole-per-rtt", &repairs(Bulk::server_without_sack(20_000)));
        assert_eq!((found[0].blame.side, found.len()), (Blamed::Server, 1));
    }

    #[test]
    fn an_allowed_sack_that_never_comes_is_the_receivers_or_a_middlebox() {
        let found = findings("one-hole-per-rtt", &repairs(Bulk::with_sack(20_000)));
        assert_eq!((found[0].blame.side, found.len()), (Blamed::Server, 1));
        assert!(found[0].confidence < 0.8);
    }

    #[test]
    fn holes_that_are_mended_together_are_no_case() {
        // The same losses; two segments a round are sent again, as after a timeout.
        let mut talk = Bulk::without_sack(20_000);
        (0..12).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.ack(50_000, 1);
        [2, 4, 6, 8, 10].iter().for_each(|index| talk.ack(50_000 + 10 * index, 1));
        let mut now = 50_100;
        for lost in [1, 5, 9] {
            talk.segment(now, lost);
            talk.segment(now + 10, lost + 2);
            now += 20_000;
            talk.ack(now, (lost + 4).min(12));
            now += 50;
        }
        assert!(findings("one-hole-per-rtt", &talk.text()).is_empty());
    }

    #[test]
    fn with_sack_a_lone_retransmission_now_and_then_is_no_case() {
        let mut talk = Bulk::with_sack(20_000);
        (0..12).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.ack(50_000, 1);
        [2, 4, 6, 8, 10].iter().for_each(|index| talk.sack(50_000 + 10 * index, 1, (*index, index + 1)));
        let mut now = 50_100;
        for lost in [1, 3, 5, 7, 9, 11] {
            talk.segment(now, lost);
            now += 20_000;
            talk.ack(now, (lost + 2).min(12));
            now += 50;
        }
        assert!(findings("one-hole-per-rtt", &talk.text()).is_empty());
    }
}
