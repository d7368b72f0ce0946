//! Frames that the capture has twice.

use super::affected::Affected;
use super::rule::{Check, rule};
use super::subject::{counted, percent};
use crate::diagnosis::Diagnosis;
use crate::report::{Blame, Blamed, Evidence, Finding, Fix, Ms, Severity};

rule! {
    /// The capture has the same frames more than once; copies are left out, and nothing was sent twice.
    ///
    /// ## What it means
    /// The capture was made on several interfaces at once, on both sides of a router or firewall, or at a mirror
    /// port that copies a frame when it comes in and when it goes out. Tools that take copies for retransmissions
    /// and duplicate ACKs then speak of a lossy network. tcpwhy counts each packet once, at its first place, so
    /// waits and findings hold; times between two places mix, by what the way from one to the other takes.
    ///
    /// ## How it is detected
    /// A packet with the identification, sequence and acknowledgment number, flags, window, length, timestamps and
    /// SACK of one before it, at most 20 ms later: hosts number what they send again anew. Where the
    /// identification is zero, absent (IPv6) or the same in all packets, only what carries data, SYN or FIN
    /// counts, at most 1 ms later and before the other side has said anything; equal ACKs without data, and what comes
    /// when the other side has said something, only where at least half of their direction's data is there twice. A packet with the identification of the one before and numbers
    /// far beyond any window is the same on the other side of a device that rewrites them. The same packets with other addresses are a connection seen
    /// before and behind a translator (NAT): nothing is told of the second of the two but this.
    ///
    /// ## What to do
    /// Nothing for this report. For the next capture: one interface instead of `any`, one side of the router, or
    /// a mirror port that copies one direction of each port; `editcap -D 10 IN OUT` takes equal frames out of
    /// a file (not those that a router has changed).
    ///
    /// ## References
    /// RFC 791 section 3.2 and RFC 6864 section 4 (identification); editcap(1), `-D`; Wireshark wiki, "Duplicate packets".
    DUPLICATED_FRAMES = "duplicated-frames", Severity::Note, Check::Capture(check)
}

fn check(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    if let Some(affected) = Affected::numbered(diagnosis, |id, _| diagnosis.copies_of(id)) {
        findings.push(affected.finding(
            &DUPLICATED_FRAMES,
            summary(&affected),
            evidence(diagnosis, &affected),
            fix(),
        ));
    }
    let second: Vec<(u64, u64)> = diagnosis.twins().collect();
    if let Some(&(connection, _)) = second.first() {
        findings.push(twins(connection, &second));
    }
}

fn summary(affected: &Affected<'_>) -> String {
    let of_worst = affected.worst_size;
    let passed: u64 = affected.worst.halves.iter().map(|half| u64::from(half.packets)).sum();
    let share = percent(signed(of_worst), signed(of_worst + passed));
    let is = if affected.total == 1 { "is a copy" } else { "are copies" };
    format!(
        "{} {is} of others in the capture, on {} ({share} of its frames): recorded at two places, not sent twice. They \
         are left out.",
        counted(affected.total, "frame"),
        affected.place(),
    )
}

fn evidence(diagnosis: &Diagnosis, affected: &Affected<'_>) -> Vec<Evidence> {
    let (packet, time) = diagnosis.first_copy();
    let first = (packet != 0).then(|| affected.packet(packet, time, "the first that is a copy of another"));
    first.into_iter().collect()
}

/// The note on connections that are copies of others with other addresses.
fn twins(connection: u64, second: &[(u64, u64)]) -> Finding {
    let count = second.len() as u64;
    let verb = if count == 1 { "is" } else { "are" };
    Finding {
        rule: DUPLICATED_FRAMES.name,
        severity: DUPLICATED_FRAMES.severity,
        connection: (count == 1).then_some(connection),
        blame: Blame { side: Blamed::Capture, address: None },
        count,
        cost_ms: Ms(0.0),
        worst_ms: Ms(0.0),
        confidence: CONFIDENCE,
        summary: format!(
            "{} {verb} the same packets as another one with other addresses: recorded before and behind a translator \
             (NAT). What is found is told on the first of the two.",
            counted(count, "connection"),
        ),
        evidence: Vec::new(),
        fixes: vec![fix()],
    }
}

/// Identifications, sequence numbers and lengths all agree, packet for packet.
const CONFIDENCE: f64 = 0.95;

fn fix() -> Fix {
    Fix {
        title: "Capture at one place".to_owned(),
        how: "One interface instead of `any`, one side of the router or firewall, one direction of each mirrored port. \
              `editcap -D 10 IN OUT` takes equal frames out of a file."
            .to_owned(),
    }
}

fn signed(frames: u64) -> i64 {
    i64::try_from(frames).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::text::{Item, Reader};
    use tcpwhy_wire::{Address, Packet, Transport};

    use super::super::testing::Talk;
    use crate::report::{Blamed, Finding, Severity, Source};
    use crate::{Analyzer, CaptureInfo, Diagnosis};

    /// µs in the times of packets.
    const US: i64 = 1_000;

    /// A handshake, then a request of 200 bytes and its answer of 300, three times, one every second.
    fn talk() -> Vec<Packet> {
        let mut talk = Talk::near_client(20_000);
        for second in 1..4 {
            let us = second * 1_000_000;
            talk.data(us, true, 200);
            talk.data(us + 30_000, false, 300);
            talk.ack(us + 30_050, true);
        }
        packets(&talk.text())
    }

    fn packets(text: &str) -> Vec<Packet> {
        let items = Reader::new(text.as_bytes());
        items.filter_map(|item| if let Item::Packet(packet) = item { Some(packet) } else { None }).collect()
    }

    /// Each side numbers its packets from 1,000 times its address's last digit on.
    fn numbered(mut packets: Vec<Packet>) -> Vec<Packet> {
        let mut next = [1_000, 2_000];
        for packet in &mut packets {
            let next = &mut next[usize::from(packet.source.port == 80)];
            packet.ip_id = Some(*next);
            *next += 1;
        }
        packets
    }

    /// Each packet, and `us` later what `copy` makes of it.
    fn twice(packets: &[Packet], us: i64, copy: impl Fn(Packet) -> Packet) -> Vec<Packet> {
        let later = |packet: &Packet| copy(Packet { time: packet.time + us * US, ..*packet });
        let mut all: Vec<Packet> = packets.iter().flat_map(|packet| [*packet, later(packet)]).collect();
        all.sort_by_key(|packet| packet.time);
        for (packet, number) in all.iter_mut().zip(1..) {
            packet.number = number;
        }
        all
    }

    fn diagnose(packets: &[Packet]) -> Diagnosis {
        let mut analyzer = Analyzer::new();
        analyzer.push(packets);
        let span = packets.first().zip(packets.last()).map(|(first, last)| (first.time, last.time));
        analyzer.finish(CaptureInfo { frames: packets.len() as u64, span, ..CaptureInfo::default() })
    }

    fn told(packets: &[Packet]) -> Vec<Finding> {
        diagnose(packets).findings().filter(|finding| finding.rule == "duplicated-frames").collect()
    }

    /// What is found, and how many packets are counted, is the same as without the copies.
    fn assert_counted_once(once: &[Packet], twice: &[Packet]) {
        let (once, twice) = (diagnose(once), diagnose(twice));
        let counts = |diagnosis: &Diagnosis| {
            diagnosis.connections().map(|one| (one.packets, one.bytes, one.ledger_ms)).collect::<Vec<_>>()
        };
        assert_eq!(counts(&once), counts(&twice));
        let rules = |diagnosis: &Diagnosis| diagnosis.findings().map(|one| one.rule).collect::<Vec<_>>();
        let rest: Vec<_> = rules(&twice).into_iter().filter(|rule| *rule != "duplicated-frames").collect();
        assert_eq!(rules(&once), rest);
    }

    #[test]
    fn a_mirror_port_that_copies_each_frame_twice() {
        let once = numbered(talk());
        let all = twice(&once, 300, |packet| packet);
        assert_counted_once(&once, &all);
        let found = told(&all);
        assert_eq!((found.len(), found[0].blame.side, found[0].connection), (1, Blamed::Capture, Some(0)));
        assert!(found[0].summary.starts_with("12 frames are copies of others"), "{}", found[0].summary);
        assert!(found[0].summary.contains("50 % of its frames"), "{}", found[0].summary);
        assert_eq!(found[0].evidence[0].packet, 2);
    }

    /// Before and behind a router: the copy of a request comes when its answer has passed the first place.
    #[test]
    fn a_copy_may_come_behind_what_the_other_side_said() {
        let mut talk = Talk::near_client(2_000);
        talk.data(10_000, true, 200);
        talk.data(12_000, false, 300);
        talk.ack(12_100, true);
        let once = numbered(packets(&talk.text()));
        assert_counted_once(&once, &twice(&once, 5_000, |packet| packet));
    }

    #[test]
    fn without_identifications_what_comes_twice_at_once_is_a_copy() {
        for id in [None, Some(0), Some(7)] {
            let once: Vec<_> = talk().into_iter().map(|packet| Packet { ip_id: id, ..packet }).collect();
            let all = twice(&once, 3, |packet| packet);
            assert_counted_once(&once, &all);
            assert!(told(&all)[0].summary.starts_with("12 frames"), "{id:?}: {}", told(&all)[0].summary);
        }
    }

    /// A download: flights of so many segments 10 µs apart, each segment ACKed 5 µs after it.
    fn download(segments: u64) -> Vec<Packet> {
        let mut talk = Talk::near_client(20_000);
        talk.data(100_000, true, 200);
        for flight in 0..10 {
            let us = 120_000 + 40_000 * flight;
            for number in 0..segments {
                talk.data(us + 10 * number, false, 1_460);
                talk.ack(us + 10 * number + 5, true);
            }
        }
        packets(&talk.text())
    }

    #[test]
    fn a_copy_may_come_behind_many_other_frames() {
        let once = numbered(download(60));
        assert_counted_once(&once, &twice(&once, 500, |packet| packet));
    }

    /// The copy of a segment comes when it has been ACKed and others have passed, and the client sends hardly anything
    /// but ACKs.
    #[test]
    fn without_identifications_a_copy_may_come_behind_what_the_other_side_said() {
        for id in [None, Some(0)] {
            let once: Vec<_> =
                download(60).into_iter().map(|packet| Packet { ip_id: id, ..packet }).collect();
            assert_counted_once(&once, &twice(&once, 23, |packet| packet));
        }
    }

    /// The same segment again at once, when the other side has asked for it by duplicate ACKs, in a capture that has each
    /// frame once.
    #[test]
    fn without_identifications_what_was_asked_for_again_is_no_copy() {
        let mut talk = Talk::near_client(200);
        talk.data(100_000, true, 200);
        talk.data(100_250, false, 300);
        talk.data(200_000, true, 1_460);
        talk.flight(200_010, true, 4);
        for number in 0..4 {
            talk.line(200_220 + number, false, "[.], ack 201, win 502, length 0");
        }
        talk.line(200_230, true, "[P.], seq 201:1661, ack 301, win 502, length 1460");
        let all: Vec<_> =
            packets(&talk.text()).into_iter().map(|one| Packet { ip_id: None, ..one }).collect();
        assert!(told(&all).is_empty());
        // Where each frame is there twice, what is sent again still is.
        let sent_again = |packets: &[Packet]| diagnose(packets).connections().map(|one| one.packets).next();
        assert_eq!(sent_again(&all), sent_again(&twice(&all, 3, |packet| packet)));
    }

    #[test]
    fn equal_duplicate_acks_are_no_copies() {
        let mut talk = Talk::near_client(20_000);
        talk.flight(1_000_000, true, 5);
        for number in 0..4 {
            talk.ack_of(1_020_000 + 10 * number, false, 1_460);
        }
        for id in [None, Some(0)] {
            let all: Vec<_> =
                packets(&talk.text()).into_iter().map(|packet| Packet { ip_id: id, ..packet }).collect();
            assert!(told(&all).is_empty(), "{id:?}");
        }
        assert!(told(&numbered(packets(&talk.text()))).is_empty());
    }

    /// The first request is sent again, `us` later, with this identification.
    fn sent_again(us: i64, id: u16) -> Vec<Packet> {
        let mut all = numbered(talk());
        let request = Packet { ip_id: Some(id), time: all[3].time + us * US, ..all[3] };
        all.insert(4, request);
        all
    }

    #[test]
    fn a_retransmission_has_a_number_of_its_own_or_comes_after_a_timer() {
        assert_eq!(told(&sent_again(300, 1_002)).len(), 1, "the request's own number");
        assert!(told(&sent_again(12_000, 1_050)).is_empty(), "a new one");
        assert!(told(&sent_again(25_000, 1_002)).is_empty(), "an old stack's timer");
    }

    #[test]
    fn segments_cut_from_one_have_one_identification_and_are_no_copies() {
        let mut talk = Talk::near_client(20_000);
        talk.flight(1_000_000, true, 4);
        let once = |packet| Packet { ip_id: Some(9), ..packet };
        assert!(told(&packets(&talk.text()).into_iter().map(once).collect::<Vec<_>>()).is_empty());
    }

    /// The addresses as they are behind a translator.
    fn translated(mut packet: Packet) -> Packet {
        let outside = |address| {
            if address == Address::v4([10, 0, 0, 1]) { Address::v4([192, 0, 2, 9]) } else { address }
        };
        packet.source.address = outside(packet.source.address);
        packet.destination.address = outside(packet.destination.address);
        packet
    }

    #[test]
    fn a_connection_before_and_behind_a_translator_of_addresses() {
        let mut talk = Talk::near_server(20_000);
        talk.data(1_000_000, true, 200);
        talk.line(1_320_000, true, "[P.], seq 1:201, ack 1, win 502, length 200");
        talk.ack(1_320_010, false);
        talk.data(1_320_500, false, 300);
        talk.ack(1_340_000, true);
        let once = numbered(packets(&talk.text()));
        let all = twice(&once, 100, translated);
        let found = told(&all);
        assert_eq!((found.len(), found[0].connection), (1, Some(1)), "{found:?}");
        assert!(found[0].summary.contains("1 connection is the same packets"), "{}", found[0].summary);
        let problems = |packets: &[Packet]| {
            diagnose(packets).findings().filter(|finding| finding.severity == Severity::Problem).count()
        };
        assert_eq!((problems(&once), problems(&all)), (1, 1));
        // Two connections that are alike, each with packets of its own.
        let other = |packet: Packet| Packet { ip_id: packet.ip_id.map(|id| id + 500), ..translated(packet) };
        assert!(told(&twice(&once, 100, other)).is_empty());
    }

    /// Outside a firewall the server's numbers are others, in what it sends and in what it is told to have come.
    fn renumbered(mut packet: Packet) -> Packet {
        const OFFSET: u32 = 1_234_567_890;
        let is_from_server = packet.source.port == 80;
        if let Transport::Tcp(tcp) = &mut packet.transport {
            let number = if is_from_server { &mut tcp.seq } else { &mut tcp.ack };
            *number = number.wrapping_add(OFFSET);
        }
        packet
    }

    #[test]
    fn both_sides_of_a_firewall_that_rewrites_sequence_numbers() {
        let once = numbered(talk());
        let all = twice(&once[1..], 100, renumbered);
        let all = [&once[..1], &all].concat();
        assert_counted_once(&once, &all);
        assert!(told(&all)[0].summary.starts_with("11 frames"), "{}", told(&all)[0].summary);
    }

    /// Nothing else is there: what was taken for the connection's numbers were not.
    #[test]
    fn numbers_that_all_segments_have_are_the_connections() {
        let mut all = numbered(talk());
        all[3..].iter_mut().for_each(|packet| *packet = renumbered(*packet));
        assert!(told(&all).is_empty());
        let counted = diagnose(&all).connections().next().map(|one| one.packets);
        assert!(
            counted.is_some_and(|packets| packets.to_server >= 4 && packets.to_client >= 2),
            "{counted:?}"
        );
    }
}
