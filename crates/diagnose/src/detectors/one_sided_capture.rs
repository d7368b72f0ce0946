//! Connections of which one direction is missing.

use super::affected::Affected;
use super::rule::{Check, rule};
use crate::diagnosis::Diagnosis;
use crate::flow::Connection;
use crate::flow::fact::End;
use crate::flow::half::NEVER;
use crate::report::{Evidence, Finding, Fix, Severity};

rule! {
    /// Only one direction of the conversation was captured, so most waits cannot be judged.
    ///
    /// ## What it means
    /// Why a sender waited shows in what reached it just before it went on: an ACK, a larger window, or
    /// nothing. Where one direction is missing there are no round trips, no holds, no windows and no think
    /// times; what is left are rhythms, retransmissions, and what the ACKs of the visible side claim.
    ///
    /// ## How it is detected
    /// At least three packets with data or ACKs from one side, and not a single one from the other. SYNs that
    /// nobody answered, and UDP, which may rightly go one way, do not count.
    ///
    /// ## What to do
    /// Capture both directions at one place: on one of the two hosts, with a filter that names no source or
    /// destination (`host`, not `src host`). On routers and taps, traffic may come back another way, or the mirror
    /// port may copy only what is received.
    ///
    /// ## References
    /// pcap-filter(7), direction qualifiers; RFC 9293 section 3.4.
    ONE_SIDED_CAPTURE = "one-sided-capture", Severity::Note, Check::Capture(check)
}

/// Fewer packets are the edge of a capture rather than half a conversation.
const FEWEST_PACKETS: u64 = 3;

fn check(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    let Some(affected) = Affected::of(diagnosis, measure) else { return };
    let summary = format!(
        "Only one direction was captured of {}. Round trips, holds, windows and the programs' own time cannot be \
         judged there.",
        affected.place(),
    );
    let fix = Fix {
        title: "Capture both directions in one place".to_owned(),
        how: "On one of the two hosts, with a filter such as `host A and port N` (not `src` or `dst`). On a router \
              or tap make sure that both ways pass it and that the mirror port copies both."
            .to_owned(),
    };
    findings.push(affected.finding(&ONE_SIDED_CAPTURE, summary, evidence(&affected), fix));
}

fn evidence(affected: &Affected<'_>) -> Vec<Evidence> {
    let sent = affected.worst.halves.iter().find(|half| half.sent_at != NEVER && half.sent_number != 0);
    let note = "its last segment with data; none from the other side is in the capture";
    sent.map(|half| affected.packet(half.sent_number, half.sent_at, note)).into_iter().collect()
}

/// Packets of the only side seen, where only one was.
fn measure(connection: &Connection) -> u64 {
    if connection.is_udp {
        return 0;
    }
    (0..2).map(|end| alone(connection, end)).find(|packets| *packets >= FEWEST_PACKETS).unwrap_or(0)
}

/// Packets of `end` that only somebody who hears the other side sends, if the capture shows nothing of it.
fn alone(connection: &Connection, end: End) -> u64 {
    let half = &connection.halves[end];
    if connection.halves[1 - end].packets > 0 {
        0
    } else {
        u64::from(half.segments) + u64::from(half.pure_acks)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use crate::report::Blamed;

    const HALF: &str = "\
        10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 500, length 100\n\
        10:00:00.050000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 301, win 500, length 0\n\
        10:00:00.060000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 101:201, ack 301, win 500, length 100\n";

    #[test]
    fn a_conversation_with_half_of_it_missing() {
        let found = findings("one-sided-capture", HALF);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].blame.side, found[0].connection), (Blamed::Capture, Some(0)));
        assert_eq!(found[0].evidence[0].packet, 3);
    }

    #[test]
    fn one_packet_back_is_enough() {
        let answer =
            "10:00:00.070000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 201, win 500, length 0\n";
        assert!(findings("one-sided-capture", &format!("{HALF}{answer}")).is_empty());
    }

    #[test]
    fn unanswered_syns_are_not_half_a_capture() {
        let syns: String = [0, 1, 3, 7, 15]
            .iter()
            .map(|s| format!("10:00:{s:02}.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 9, win 64240, options [mss 1460], length 0\n"))
            .collect();
        assert!(findings("one-sided-capture", &syns).is_empty());
    }
}
