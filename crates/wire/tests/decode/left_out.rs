//! Frames that give no packet, and what the report says of them.

use tcpwhy_wire::container::LinkType;
use tcpwhy_wire::decode::{Tally, Undecoded, decode_onto};

use crate::frames::{IPV4, IPV6, TCP, concat, decoded, ethernet, frame, ipv4, ipv6, segment, tcp, udp};

const ETHERNET: LinkType = LinkType::ETHERNET;

#[test]
fn other_protocols() {
    let cases = [
        ("ARP", ethernet(0x0806, &[0; 46]), Undecoded::NotIp(0x0806)),
        ("spanning tree", ethernet(38, &[0x42; 46]), Undecoded::NotIp(38)),
        ("ICMP", ethernet(IPV4, &ipv4(1, &[0; 8])), Undecoded::OtherIpProtocol(1)),
        ("ICMPv6", ethernet(IPV6, &ipv6(58, &[0; 8])), Undecoded::OtherIpProtocol(58)),
        (
            "ICMPv6 behind hop-by-hop",
            ethernet(IPV6, &ipv6(0, &concat(&[&[58, 0, 5, 2, 0, 0, 1, 0], &[0; 8]]))),
            Undecoded::OtherIpProtocol(58),
        ),
        ("no next header", ethernet(IPV6, &ipv6(59, &[])), Undecoded::OtherIpProtocol(59)),
        (
            "GRE with a source route",
            ethernet(IPV4, &ipv4(47, &[0x40, 0, 0x08, 0, 0, 0, 0, 0])),
            Undecoded::OtherIpProtocol(47),
        ),
        (
            "PPTP",
            ethernet(IPV4, &ipv4(47, &[0x30, 1, 0x88, 0x0b, 0, 0, 0, 0])),
            Undecoded::OtherIpProtocol(47),
        ),
        (
            "LCP over PPPoE",
            ethernet(0x8864, &[0x11, 0, 0, 1, 0, 6, 0xc0, 0x21, 9, 1, 0, 4]),
            Undecoded::NotIp(0x880b),
        ),
        (
            "PPPoE discovery code in a session",
            ethernet(0x8864, &[0x11, 9, 0, 0, 0, 0, 0, 0x21]),
            Undecoded::Malformed,
        ),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(decoded(ETHERNET, &bytes), Err(expected), "{name}");
    }
    assert_eq!(decoded(LinkType(147), &[0; 60]), Err(Undecoded::UnknownLink(147)));
    assert_eq!(decoded(LinkType::NULL, &concat(&[&[7, 0, 0, 0], &[0; 40]])), Err(Undecoded::NotIp(7)));
}

#[test]
fn fragments_first_and_later_of_both_versions() {
    for (name, fragment_field) in [("first", 0x2000_u16), ("middle", 0x20b9), ("last", 0x0172)] {
        let mut bytes = ethernet(IPV4, &ipv4(TCP, &segment()));
        bytes[20..22].copy_from_slice(&fragment_field.to_be_bytes());
        assert_eq!(decoded(ETHERNET, &bytes), Err(Undecoded::Fragment), "IPv4, {name}");
    }
    for (name, offset_and_more) in [("first", 0x0001_u16), ("middle", 0x05a9), ("last", 0x0b50)] {
        let [high, low] = offset_and_more.to_be_bytes();
        let header = [TCP, 0, high, low, 1, 2, 3, 4];
        let bytes = ethernet(IPV6, &ipv6(44, &concat(&[&header, &segment()])));
        assert_eq!(decoded(ETHERNET, &bytes), Err(Undecoded::Fragment), "IPv6, {name}");
    }
}

/// Frames made of nothing but tags, labels or extension headers end the walk, not the program.
#[test]
fn endless_headers_are_given_up() {
    let tags = [0, 1, 0x81, 0].repeat(300);
    assert_eq!(decoded(ETHERNET, &ethernet(0x8100, &tags)), Err(Undecoded::NotIp(0x8100)));
    let labels = [0, 1, 0, 64].repeat(300);
    assert_eq!(decoded(ETHERNET, &ethernet(0x8847, &labels)), Err(Undecoded::NotIp(0x8847)));
    let extensions = [0; 8 * 300];
    assert_eq!(decoded(ETHERNET, &ethernet(IPV6, &ipv6(0, &extensions))), Err(Undecoded::OtherIpProtocol(0)));
}

#[test]
fn only_packets_are_appended() {
    let good = ethernet(IPV4, &ipv4(TCP, &segment()));
    let arp = ethernet(0x0806, &[0; 46]);
    let datagram = ethernet(IPV4, &ipv4(17, &udp(1, 2, b"abc")));
    let mut packets = Vec::new();
    assert_eq!(decode_onto(&frame(ETHERNET, &good), 1, &mut packets), Ok(()));
    assert_eq!(decode_onto(&frame(ETHERNET, &arp), 2, &mut packets), Err(Undecoded::NotIp(0x0806)));
    assert_eq!(decode_onto(&frame(ETHERNET, &datagram), 3, &mut packets), Ok(()));
    assert_eq!(packets.iter().map(|packet| packet.number).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(packets[0], tcpwhy_wire::Packet { number: 1, ..decoded(ETHERNET, &good).expect("TCP") });
    assert_eq!(packets[1], tcpwhy_wire::Packet { number: 3, ..decoded(ETHERNET, &datagram).expect("UDP") });
}

/// Whatever a batch's slot held before must not shine through.
#[test]
fn a_packet_owes_nothing_to_the_one_before() {
    let rich = ethernet(IPV6, &ipv6(TCP, &tcp(&[2, 4, 5, 0xb4, 3, 3, 7, 4, 2, 1, 1, 1], 9)));
    let plain = ethernet(IPV4, &ipv4(TCP, &tcp(&[], 0)));
    let mut packets = Vec::with_capacity(1);
    for bytes in [&rich, &plain] {
        packets.clear();
        assert_eq!(decode_onto(&frame(ETHERNET, bytes), 42, &mut packets), Ok(()));
    }
    assert_eq!(Ok(packets[0]), decoded(ETHERNET, &plain));
}

fn tally(reasons: &[(u64, Undecoded)]) -> Tally {
    let mut tally = Tally::default();
    for (count, reason) in reasons {
        (0..*count).for_each(|_| tally.add(*reason));
    }
    tally
}

#[test]
fn nothing_left_out_says_nothing() {
    assert_eq!(Tally::default().notes(), Vec::<String>::new());
    assert_eq!(Tally::default().total(), 0);
}

#[test]
fn each_reason_has_its_sentence() {
    let tally = tally(&[
        (1, Undecoded::Malformed),
        (12, Undecoded::Fragment),
        (3, Undecoded::CutShort),
        (2, Undecoded::LongerThanFrame),
        (5, Undecoded::OtherIpProtocol(1)),
        (300, Undecoded::NotIp(0x0806)),
        (4, Undecoded::NotIp(0x1234)),
        (7, Undecoded::UnknownLink(147)),
    ]);
    assert_eq!(tally.total(), 334);
    assert_eq!(
        tally.notes(),
        [
            "7 packets left out: tcpwhy cannot read this link layer (link type 147, private use).",
            "2 packets left out: the headers count more bytes than the frame had, and are damaged.",
            "3 packets left out: the snapshot length cut the TCP or UDP header; capture with a larger -s.",
            "1 packet left out: the headers contradict themselves.",
            "12 packets left out: IP fragments; tcpwhy needs whole segments.",
            "309 packets of other protocols left out (300 ARP, 5 ICMP, 4 EtherType 0x1234).",
        ]
    );
}

/// A hostile capture has every protocol there is: the note stays one line, the count stays right.
#[test]
fn a_thousand_kinds_are_still_one_sentence() {
    let mut tally = tally(&[(2, Undecoded::NotIp(0x0806)), (3, Undecoded::OtherIpProtocol(58))]);
    (0x1000..0x13e8).for_each(|kind| tally.add(Undecoded::NotIp(kind)));
    assert_eq!(tally.total(), 1005);
    assert_eq!(
        tally.notes(),
        ["1005 packets of other protocols left out \
          (3 ICMPv6, 2 ARP, 1 EtherType 0x1000, 1 EtherType 0x1001, 998 other)."]
    );
}
