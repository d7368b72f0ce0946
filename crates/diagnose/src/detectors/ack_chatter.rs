//! Many more ACKs than the data needs.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, grouped};
use crate::flow::fact::End;
use crate::report::{Evidence, Finding, Fix, Ms, Severity};

rule! {
    /// The receiver ACKs nearly every segment of a bulk transfer on its own.
    ///
    /// ## What it means
    /// A receiver is asked to ACK at least every second full-sized segment, so a transfer needs about half as
    /// many ACKs as it has segments. This one sends more. It costs packets and the processors' time, on radio
    /// links also air time; the transfer does not wait for it. At the start of a connection, and after a pause,
    /// Linux ACKs up to 16 segments one by one on purpose: the sender's congestion window then opens sooner.
    ///
    /// ## How it is detected
    /// At least 8 segments of data, on average more than half full, drew at least 0.6 pure ACKs each. Streams of
    /// small messages are left out, since each of them may need its ACK, and so are captures in which the
    /// capturing host merged segments, where counts are not those of the wire.
    ///
    /// ## What to do
    /// Usually nothing. A larger receive window lets ACKs cover more segments; generic receive offload (GRO) on
    /// the receiver makes it ACK a batch at once; TCP_QUICKACK set again and again by the program, or the
    /// route option `quickack`, forces single ACKs and can go.
    ///
    /// ## References
    /// RFC 9293 section 3.8.6.3; RFC 5681 section 4.2; RFC 3449 (ACKs on asymmetric paths).
    ACK_CHATTER = "ack-chatter", Severity::Note, Check::Connection(check)
}

/// Fewer segments make no pattern.
const FEWEST_SEGMENTS: u32 = 8;
/// ACKs per segment, in tenths, from which on more than every second segment is ACKed beyond doubt.
const TENTHS: u64 = 6;
/// Segments that are, on average, less than one in so many full are messages, not bulk.
const BULK_SHARE: u64 = 2;
/// Of so many segments one may be larger than the MSS before their count means nothing.
const OFFLOADED_SHARE: u32 = 20;
/// Counts are counts; only whether the capture shows what was on the wire is open.
const CONFIDENCE: f64 = 0.9;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        if is_chatter(subject, end) {
            findings.push(finding(subject, end));
        }
    }
}

/// Whether the data that `end` sends draws more ACKs than it needs.
fn is_chatter(subject: &Subject<'_>, end: End) -> bool {
    let (half, acks) = (subject.half(end), u64::from(subject.half(1 - end).pure_acks));
    let segments = u64::from(half.segments);
    half.segments >= FEWEST_SEGMENTS
        && acks * 10 >= segments * TENTHS
        && half.bytes / segments >= u64::from(half.full_size()) / BULK_SHARE
        && half.offloaded <= half.segments / OFFLOADED_SHARE
        && half.retransmitted() == 0
}

fn finding(subject: &Subject<'_>, end: End) -> Finding {
    let receiver = 1 - end;
    let (half, acks) = (subject.half(end), u64::from(subject.half(receiver).pure_acks));
    Finding {
        rule: ACK_CHATTER.name,
        severity: ACK_CHATTER.severity,
        connection: Some(subject.id),
        blame: subject.blame(receiver),
        count: acks,
        cost_ms: Ms(0.0),
        worst_ms: Ms(0.0),
        confidence: CONFIDENCE,
        summary: format!(
            "{} sent {} that carry nothing else for {} of data from {}: {:.1} for each, where every second \
             segment would do. It costs packets, not time.",
            capitalised(&subject.who(receiver)),
            counted(acks, "ACK"),
            counted(u64::from(half.segments), "segment"),
            subject.who(end),
            acks as f64 / f64::from(half.segments),
        ),
        evidence: evidence(subject, end),
        fixes: vec![Fix {
            title: "Usually nothing to do".to_owned(),
            how: format!(
                "If packets are dear (radio, battery): a larger receive window (at most {} bytes here) lets an ACK cover \
                 more, GRO on the receiver (`ethtool -K DEV gro on`) makes it ACK batches, and TCP_QUICKACK or the \
                 route option `quickack 1`, if somebody set it, forces single ACKs.",
                grouped(u64::from(half.max_window))
            ),
        }],
    }
}

/// The last of the ACKs, as far as it is known.
fn evidence(subject: &Subject<'_>, end: End) -> Vec<Evidence> {
    let half = subject.half(end);
    let last = half
        .freed_pure
        .then(|| subject.packet(half.freed_number, half.freed_at, "the last of these ACKs".to_owned()));
    last.into_iter().collect()
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use crate::report::Blamed;

    #[test]
    fn five_acks_for_eight_segments() {
        let found = findings("ack-chatter", include_str!("../../../../examples/upload-10010.txt"));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].blame.side, found[0].count), (Blamed::Server, 5));
        assert!(
            found[0].summary.contains("5 ACKs") && found[0].summary.contains("8 segments"),
            "{}",
            found[0].summary
        );
        assert!(found[0].summary.starts_with("The server"), "{}", found[0].summary);
        // The ACK of the last byte, packet 16 of the text.
        assert_eq!(found[0].evidence[0].packet, 16);
    }

    /// `count` segments of `len` bytes, an ACK after each `every`.
    fn bulk(count: u64, len: u64, every: u64) -> String {
        let mut text = String::new();
        for index in 0..count {
            let (now, end) = (1_000 * index, 1 + (index + 1) * len);
            text += &format!(
                "10:00:00.{now:06} IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], seq {}:{end}, ack 1, win 999, length {len}\n",
                end - len
            );
            if (index + 1).is_multiple_of(every) {
                text += &format!(
                    "10:00:00.{:06} IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack {end}, win 65000, length 0\n",
                    now + 100
                );
            }
        }
        text
    }

    #[test]
    fn an_ack_for_each_segment_is_chatter_and_for_every_second_one_not() {
        assert_eq!(findings("ack-chatter", &bulk(40, 1_460, 1)).len(), 1);
        assert!(findings("ack-chatter", &bulk(40, 1_460, 2)).is_empty());
    }

    #[test]
    fn a_handful_or_small_messages_are_not() {
        assert!(findings("ack-chatter", &bulk(7, 1_460, 1)).is_empty());
        assert!(findings("ack-chatter", &bulk(40, 100, 1)).is_empty());
        assert!(
            findings("ack-chatter", include_str!("../../../../examples/netrek-patched-10.txt")).is_empty()
        );
    }
}
