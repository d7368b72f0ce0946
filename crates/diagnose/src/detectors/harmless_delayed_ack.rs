//! Delayed ACKs that nobody waited for: said, because they look like the culprit.

use super::rule::{Check, rule};
use super::subject::{Subject, human};
use crate::diagnosis::ms;
use crate::flow::fact::End;
use crate::flow::release::ack_held;
use crate::report::{Finding, Severity};

rule! {
    /// The receiver delays its ACKs, and nothing was waiting for them.
    ///
    /// ## What it means
    /// A pure ACK that comes 40 or 200 ms after the data catches the eye in a packet trace, and is often taken for
    /// the reason of a wait. Here it is not: when it arrived, the sender had nothing to send. It spoke later, when
    /// its program had something to say. Neither Nagle's algorithm nor the delayed ACK cost anything.
    ///
    /// ## How it is detected
    /// At least three times a pure ACK that left nothing in flight came 20 ms or more after the data (beyond the
    /// base round trip, where that is known), and the sender's next segment left on its own, not within a
    /// millisecond of that ACK. The rule is silent where the same sender was also held by such ACKs.
    ///
    /// ## What to do
    /// Nothing: the receiver saves packets, as RFC 1122 asks it to. If something is slow here, look at the program
    /// that speaks next.
    ///
    /// ## References
    /// RFC 1122 section 4.2.3.2; RFC 9293 section 3.8.6.3.
    HARMLESS_DELAYED_ACK = "harmless-delayed-ack", Severity::Note, Check::Connection(check)
}

/// Fewer late ACKs than this nobody notices.
const FEWEST: u16 = 3;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    findings.extend((0..2).filter_map(|sender| finding(subject, sender)));
}

fn finding(subject: &Subject<'_>, sender: End) -> Option<Finding> {
    let half = subject.half(sender);
    let base = subject.connection.base_round_trip().unwrap_or(0);
    if half.idle_acks < FEWEST || subject.holds(sender).is_some() {
        return None;
    }
    let typical = (f64::from(half.idle_acks_late) / f64::from(half.idle_acks)) as i64;
    if typical - base < ack_held(base) {
        return None;
    }
    Some(Finding {
        rule: HARMLESS_DELAYED_ACK.name,
        severity: HARMLESS_DELAYED_ACK.severity,
        connection: Some(subject.id),
        blame: subject.blame(1 - sender),
        count: u64::from(half.idle_acks),
        cost_ms: ms(0),
        worst_ms: ms(0),
        confidence: 0.95,
        summary: format!(
            "The ACKs of {} come late, {} after the data on average ({} of them), and release nothing: {} had \
             nothing to send until its program spoke.",
            subject.who(1 - sender),
            human(typical),
            half.idle_acks,
            subject.who(sender),
        ),
        evidence: Vec::new(),
        fixes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;

    /// Updates every 200 ms, each ACKed 160 ms later; `released` puts the next update on the ACK's heels.
    fn updates(released: bool) -> String {
        let mut text = "12:00:00.000000 a.1033 > b.4566: P 1:13(12) ack 1 win 8760\n".to_owned();
        for update in 0..6 {
            let (seq, at) = (1 + update * 12, 100_000 + update * 200_000);
            let next = if released { 40_000 } else { 0 };
            let at = at - next * update;
            text += &format!(
                "12:00:0{}.{:06} b.4566 > a.1033: P {seq}:{}(12) ack 13 win 8760\n",
                at / 1_000_000,
                at % 1_000_000,
                seq + 12
            );
            let acked = at + 160_000;
            text += &format!(
                "12:00:0{}.{:06} a.1033 > b.4566: . ack {} win 8760\n",
                acked / 1_000_000,
                acked % 1_000_000,
                seq + 12
            );
        }
        text
    }

    #[test]
    fn late_acks_that_release_nothing_are_said_to_be_harmless() {
        let found = findings("harmless-delayed-ack", &updates(false));
        assert_eq!(found.len(), 1);
        // The last of the six ACKs is followed by no segment that could show what it released.
        assert_eq!((found[0].count, found[0].cost_ms.0), (5, 0.0));
        assert_eq!(found[0].blame.address.as_deref(), Some("a:1033"));
        assert!(found[0].summary.contains("160 ms"), "{}", found[0].summary);
    }

    #[test]
    fn acks_that_release_the_next_segment_are_not_harmless() {
        assert!(findings("harmless-delayed-ack", &updates(true)).is_empty());
        assert_eq!(findings("nagle-delayed-ack", &updates(true)).len(), 1);
    }
}
