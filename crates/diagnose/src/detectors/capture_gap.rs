//! Packets that the capture lost, not the network.

use super::affected::Affected;
use super::rule::{Check, rule};
use super::subject::{counted, percent};
use crate::diagnosis::Diagnosis;
use crate::flow::Connection;
use crate::flow::fact::End;
use crate::flow::half::NEVER;
use crate::report::{Evidence, Finding, Fix, Severity};

rule! {
    /// The capture lacks packets that did arrive: the receiver ACKed data it never shows.
    ///
    /// ## What it means
    /// The capturing machine could not keep up, or packets took another way past it. The network has lost
    /// nothing: the receiver has the data. Gaps make programs look silent and senders blocked when they were
    /// not, so waits beside a gap are less sure.
    ///
    /// ## How it is detected
    /// An ACK covers bytes that no captured segment carried, on a connection of which both directions were
    /// captured. Where the capture began in its middle, only what is missing after the first ACK of captured data
    /// counts: before, it may have been sent earlier. Single bytes (probes of a closed window) do not count.
    ///
    /// ## What to do
    /// Capture less of each packet and with a larger buffer (`tcpdump -s 128 -B 65536`), filter in the kernel,
    /// write to a fast disk, and look at what tcpdump says at its end: "packets dropped by kernel".
    ///
    /// ## References
    /// RFC 9293 section 3.4; tcpdump(1), `-B` and `-s`; Wireshark's "ACKed unseen segment".
    CAPTURE_GAP = "capture-gap", Severity::Note, Check::Capture(check)
}

/// Fewer missing bytes may be zero-window probes that were accepted, a byte each.
const FEWEST_BYTES: u64 = 16;

fn check(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    let Some(affected) =
        Affected::of(diagnosis, |connection| (0..2).map(|end| missing(connection, end)).sum())
    else {
        return;
    };
    let of_worst: u64 = (0..2).map(|end| missing(affected.worst, end)).sum();
    let carried: u64 = affected.worst.halves.iter().map(|half| half.bytes).sum::<u64>() + of_worst;
    let share = percent(signed(of_worst), signed(carried));
    let summary = format!(
        "The capture lacks {} that arrived and were ACKed, on {} ({share} of its data). The capture dropped them, not \
         the network; waits beside such a gap are less sure.",
        counted(affected.total, "byte"),
        affected.place(),
    );
    let fix = Fix {
        title: "Capture again with less per packet and a larger buffer".to_owned(),
        how: "tcpdump -s 128 -B 65536 -w FILE 'host A and port N', on a disk that keeps up; at its end tcpdump says \
              how many packets the kernel dropped."
            .to_owned(),
    };
    findings.push(affected.finding(&CAPTURE_GAP, summary, evidence(&affected), fix));
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn evidence(affected: &Affected<'_>) -> Vec<Evidence> {
    let troubles = affected.worst.halves.iter().filter_map(|half| half.trouble.as_ref());
    let first = troubles.filter(|trouble| trouble.gap_number != 0).min_by_key(|trouble| trouble.gap_number);
    let note = "ACKs data that no captured packet carried";
    first.map(|trouble| affected.packet(trouble.gap_number, trouble.gap_at, note)).into_iter().collect()
}

/// Bytes that `end` sent and the capture does not show, as far as it can be blamed for that.
pub(crate) fn missing(connection: &Connection, end: End) -> u64 {
    let half = &connection.halves[end];
    let unseen = if connection.established == NEVER { half.unseen_since() } else { half.unseen() };
    let has_both = connection.halves.iter().all(|half| half.packets > 0);
    if has_both && unseen >= FEWEST_BYTES { unseen } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bulk, findings};
    use crate::report::Blamed;

    const HANDSHAKE: &str = "\
        10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460], length 0\n\
        10:00:00.010000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460], length 0\n\
        10:00:00.010050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n";
    /// 100 bytes, then a second packet which begins at `from`; all is ACKed.
    fn data(from: u64) -> String {
        format!(
            "10:00:00.010100 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 64240, length 100\n\
             10:00:00.010200 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq {from}:{end}, ack 1, win 64240, length 100\n\
             10:00:00.020200 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack {end}, win 64240, length 0\n",
            end = from + 100
        )
    }

    #[test]
    fn bytes_that_were_acked_and_never_seen() {
        let found = findings("capture-gap", &format!("{HANDSHAKE}{}", data(501)));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].blame.side, found[0].connection), (Blamed::Capture, Some(0)));
        // 400 of 600 bytes.
        assert!(
            found[0].summary.contains("400 bytes") && found[0].summary.contains("67 %"),
            "{}",
            found[0].summary
        );
        assert_eq!(found[0].evidence[0].packet, 6);
    }

    /// A FIN's number tells where the data ended, though no segment of it was captured.
    #[test]
    fn bytes_before_the_end_of_a_connection() {
        let closed = |at: u64| {
            format!(
                "{HANDSHAKE}{}10:00:00.030000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [F.], seq {at}, ack 1, win 64240, \
                 length 0\n10:00:00.040000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack {}, win 64240, length 0\n",
                data(101),
                at + 1
            )
        };
        assert!(findings("capture-gap", &closed(201)).is_empty());
        let found = findings("capture-gap", &closed(3_201));
        assert!(found[0].summary.contains("lacks 3,000 bytes"), "{}", found[0].summary);
    }

    #[test]
    fn nothing_is_missing_where_all_was_seen() {
        assert!(findings("capture-gap", &format!("{HANDSHAKE}{}", data(101))).is_empty());
    }

    #[test]
    fn what_was_on_its_way_when_the_capture_began_is_not_its_fault() {
        assert!(findings("capture-gap", &data(501)).is_empty());
    }

    /// The same in the middle of a connection, after an exchange: data whose ACK is captured, too.
    #[test]
    fn bytes_that_were_sent_while_the_capture_ran() {
        let talk = "\
            10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 502, length 100\n\
            10:00:00.030000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], seq 1:201, ack 101, win 502, length 200\n\
            10:00:00.030100 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 201, win 502, length 0\n";
        let after = |seq: u64, ack: u64| {
            format!(
                "{talk}10:02:00.000000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], seq {seq}:{}, ack {ack}, win 502, \
                 length 200\n10:02:00.000100 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], seq {ack}, ack {}, win 502, \
                 length 0\n",
                seq + 200,
                seq + 200
            )
        };
        assert!(findings("capture-gap", &after(201, 101)).is_empty());
        let found = findings("capture-gap", &after(601, 501));
        assert!(found[0].summary.contains("lacks 800 bytes"), "400 each way: {}", found[0].summary);
    }

    /// Captured at the server: of six segments the 2nd and the 4th are missing at the same time; the 2nd comes a round
    /// trip later, and with it the 4th, if at all.
    fn two_holes(is_fourth_seen: bool) -> String {
        let mut talk = Bulk::at_server(20_000);
        for (order, index) in [0, 2, 4, 5].into_iter().enumerate() {
            let us = 30_000 + 100 * order as u64;
            talk.segment(us, index);
            talk.ack(us + 10, 1);
        }
        talk.segment(51_000, 1);
        talk.ack(51_010, 3);
        if is_fourth_seen {
            talk.segment(51_100, 3);
        }
        talk.ack(51_110, 6);
        talk.text()
    }

    #[test]
    fn several_holes_at_once_are_told_apart() {
        assert!(findings("capture-gap", &two_holes(true)).is_empty());
        let found = findings("capture-gap", &two_holes(false));
        assert!(found[0].summary.contains("lacks 1,460 bytes"), "{}", found[0].summary);
    }
}
