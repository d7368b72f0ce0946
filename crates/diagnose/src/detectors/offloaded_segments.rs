//! Segments larger than the network carries.

use super::affected::Affected;
use super::rule::{Check, rule};
use super::subject::counted;
use crate::diagnosis::Diagnosis;
use crate::flow::Connection;
use crate::flow::half::Half;
use crate::report::{Evidence, Finding, Fix, Severity};

rule! {
    /// The capture shows segments larger than the MSS: sizes and counts are not those on the wire.
    ///
    /// ## What it means
    /// The network card of the capturing host cuts large segments up after the capture has seen them (TSO, GSO),
    /// or puts received ones together before (GRO, LRO). What looks like one packet of 30,000 bytes was twenty
    /// on the wire, and one ACK in the capture may stand for several. Waits of milliseconds are not changed
    /// by it; counts of packets, ACKs per segment and gaps between single segments are.
    ///
    /// ## How it is detected
    /// A segment carries more than the MSS that its receiver announced in the handshake.
    ///
    /// ## What to do
    /// Nothing, as long as counts do not matter. Otherwise capture on another machine (a mirror port), or switch
    /// offloading off while capturing: `ethtool -K DEV tso off gso off gro off lro off`. That costs processor time
    /// and changes the timing a little.
    ///
    /// ## References
    /// RFC 9293 section 3.7.1 (MSS); Linux documentation, networking/segmentation-offloads.
    OFFLOADED_SEGMENTS = "offloaded-segments", Severity::Note, Check::Capture(check)
}

fn check(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    let Some(affected) = Affected::of(diagnosis, measure) else { return };
    let half = affected.worst.halves.iter().max_by_key(|half| oversized(half));
    let Some(half) = half else { return };
    let summary = format!(
        "{} larger than the MSS, the largest seen with {} of data where the MSS is {}, on {}: the capturing host's \
         network card cuts or joins them (TSO, GRO). Sizes and counts of packets are not those on the wire.",
        capital(affected.total),
        counted(u64::from(half.max_len), "byte"),
        half.mss,
        affected.place(),
    );
    let fix = Fix {
        title: "Where counts matter, capture without offloading".to_owned(),
        how:
            "ethtool -K DEV tso off gso off gro off lro off, or a capture on another machine (mirror port). \
              Times and waits in this report hold as they are."
                .to_owned(),
    };
    findings.push(affected.finding(&OFFLOADED_SEGMENTS, summary, evidence(&affected, half), fix));
}

fn capital(count: u64) -> String {
    match count {
        1 => "One segment is".to_owned(),
        count => format!("{} are", counted(count, "segment")),
    }
}

/// The last segment, if it is one of them; no other is remembered.
fn evidence(affected: &Affected<'_>, half: &Half) -> Vec<Evidence> {
    let is_large = half.sent_len > u32::from(half.mss);
    let last =
        is_large.then(|| affected.packet(half.sent_number, half.sent_at, "a segment larger than the MSS"));
    last.into_iter().collect()
}

/// How many segments one connection has that are larger than the MSS.
fn measure(connection: &Connection) -> u64 {
    connection.halves.iter().map(oversized).sum()
}

/// The count is of segments beyond a full one, which a small window makes smaller than the MSS; it says
/// nothing where none was beyond the MSS itself.
fn oversized(half: &Half) -> u64 {
    let is_beyond = half.mss != 0 && half.max_len > u32::from(half.mss);
    if is_beyond { u64::from(half.offloaded) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use crate::report::Blamed;

    /// `connections` that upload one segment of `len` bytes each.
    fn uploads(connections: u64, len: u64) -> String {
        (0..connections).map(|index| upload(40_000 + index, len * (index + 1))).collect()
    }

    fn upload(port: u64, len: u64) -> String {
        let (client, server) = (format!("10.0.0.1.{port}"), "10.0.0.2.80");
        format!(
            "10:00:00.000000 IP {client} > {server}: Flags [S], seq 99, win 64240, options [mss 1460], length 0\n\
             10:00:00.010000 IP {server} > {client}: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460], length 0\n\
             10:00:00.010050 IP {client} > {server}: Flags [.], ack 1, win 64240, length 0\n\
             10:00:00.010100 IP {client} > {server}: Flags [P.], seq 1:{}, ack 1, win 64240, length {len}\n",
            len + 1
        )
    }

    #[test]
    fn a_segment_beyond_the_mss_was_cut_by_the_card() {
        let found = findings("offloaded-segments", &uploads(1, 5_840));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].blame.side, found[0].connection, found[0].count), (Blamed::Capture, Some(0), 1));
        assert!(found[0].summary.contains("5,840 bytes"), "{}", found[0].summary);
        assert_eq!(found[0].evidence[0].packet, 4);
    }

    #[test]
    fn many_connections_make_one_note() {
        let found = findings("offloaded-segments", &uploads(3, 5_000));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].connection, found[0].count), (None, 3));
        assert!(
            found[0].summary.contains("3 connections, most on that from 10.0.0.1:"),
            "{}",
            found[0].summary
        );
    }

    #[test]
    fn full_segments_are_as_they_were_sent() {
        assert!(findings("offloaded-segments", &uploads(1, 1_460)).is_empty());
    }
}
