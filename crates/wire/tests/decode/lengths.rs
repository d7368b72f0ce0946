//! Payload lengths, which every later layer builds on.

use tcpwhy_wire::Transport;
use tcpwhy_wire::container::LinkType;
use tcpwhy_wire::decode::Undecoded;

use crate::frames::{
    IPV4, IPV6, TCP, TIMESTAMPS, UDP, concat, decoded, decoded_cut, decoded_tcp, decoded_udp_len, ethernet,
    ipv4, ipv6, tcp, udp,
};

const ETHERNET: LinkType = LinkType::ETHERNET;

/// `bytes` with the two at `at` replaced.
fn with_u16(mut bytes: Vec<u8>, at: usize, value: u16) -> Vec<u8> {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    bytes
}

#[test]
fn padding_is_no_payload() {
    // 14 + 20 + 20 = 54 bytes: Ethernet adds 6 to reach its minimum of 60 (without the checksum).
    let ack = concat(&[&ethernet(IPV4, &ipv4(TCP, &tcp(&[], 0))), &[0; 6]]);
    assert_eq!(ack.len(), 60);
    assert_eq!(decoded_tcp(ETHERNET, &ack).payload_len, 0);

    let datagram = concat(&[&ethernet(IPV4, &ipv4(UDP, &udp(1, 2, b"abc"))), &[0; 15]]);
    assert_eq!(decoded_udp_len(ETHERNET, &datagram), 3);
}

#[test]
fn the_snapshot_length_does_not_shorten_the_payload() {
    let bytes = ethernet(IPV4, &ipv4(TCP, &tcp(&TIMESTAMPS, 1448)));
    let packet = decoded_cut(ETHERNET, &bytes[..96], bytes.len()).expect("the headers are there");
    assert_eq!(packet.frame_len, 1514);
    assert!(matches!(packet.transport, Transport::Tcp(tcp) if tcp.payload_len == 1448));
}

#[test]
fn segments_above_the_mtu_pass() {
    let bytes = ethernet(IPV4, &ipv4(TCP, &tcp(&TIMESTAMPS, 65_483)));
    assert_eq!(decoded_tcp(ETHERNET, &bytes).payload_len, 65_483);
}

/// Where the sending host leaves the length to its network card.
#[test]
fn a_total_length_of_zero_means_the_whole_frame() {
    let v4 = with_u16(ethernet(IPV4, &ipv4(TCP, &tcp(&TIMESTAMPS, 7000))), 16, 0);
    assert_eq!(decoded_tcp(ETHERNET, &v4).payload_len, 7000);

    // BIG TCP: 100,000 bytes in one segment, of which 128 were stored.
    let v6 = with_u16(ethernet(IPV6, &ipv6(TCP, &tcp(&TIMESTAMPS, 42))), 18, 0);
    let packet = decoded_cut(ETHERNET, &v6, 14 + 40 + 32 + 100_000).expect("the headers are there");
    assert!(matches!(packet.transport, Transport::Tcp(tcp) if tcp.payload_len == 100_000));
}

/// RFC 2675: payload length 0, and the real one in a hop-by-hop option.
#[test]
fn a_jumbogram_with_its_option_is_read() {
    let jumbo_option = [TCP, 0, 0xc2, 4, 0, 1, 0x86, 0xc8];
    let bytes = ethernet(IPV6, &ipv6(0, &concat(&[&jumbo_option, &tcp(&TIMESTAMPS, 10)])));
    let packet = decoded_cut(ETHERNET, &with_u16(bytes, 18, 0), 14 + 40 + 8 + 32 + 100_000);
    assert!(
        matches!(packet.map(|packet| packet.transport), Ok(Transport::Tcp(tcp)) if tcp.payload_len == 100_000)
    );
}

#[test]
fn the_udp_header_counts_the_datagram() {
    let surplus = ethernet(IPV4, &ipv4(UDP, &concat(&[&udp(1, 2, b"abc"), b"not counted"])));
    assert_eq!(decoded_udp_len(ETHERNET, &surplus), 3);

    let no_length = with_u16(ethernet(IPV6, &ipv6(UDP, &udp(1, 2, &[0; 100]))), 14 + 40 + 4, 0);
    assert_eq!(decoded_udp_len(ETHERNET, &no_length), 100);
}

/// An IPv4 packet, or more of it, with its header's checksum (RFC 1071).
fn with_checksum(packet: Vec<u8>) -> Vec<u8> {
    let words = packet[..20].as_chunks::<2>().0;
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    with_u16(packet, 10, !(folded as u16))
}

/// A tool kept 120 bytes of each frame and says that these were all: the packet's own length counts.
#[test]
fn a_frame_cut_by_a_tool_has_the_length_that_its_header_says() {
    let whole = ipv4(TCP, &tcp(&TIMESTAMPS, 1448));
    for (name, packet) in [("checksum", with_checksum(whole.clone())), ("left to the card", whole.clone())] {
        assert_eq!(decoded_tcp(ETHERNET, &ethernet(IPV4, &packet)[..120]).payload_len, 1448, "{name}");
    }
    let v6 = ethernet(IPV6, &ipv6(TCP, &tcp(&TIMESTAMPS, 1428)));
    assert_eq!(decoded_tcp(ETHERNET, &v6[..120]).payload_len, 1428);
    let damaged = ethernet(IPV4, &with_u16(whole, 10, 0x1234));
    assert_eq!(decoded(ETHERNET, &damaged[..120]), Err(Undecoded::LongerThanFrame));
}

/// A mirror cuts the packet before it puts it in a tunnel: the outer lengths are those of what is left.
#[test]
fn a_mirrored_packet_that_was_cut_is_no_datagram() {
    let whole = with_checksum(ipv4(TCP, &tcp(&TIMESTAMPS, 1448)));
    let vxlan = |inner: &[u8]| {
        let inside = concat(&[&[0x08, 0, 0, 0, 0, 0, 7, 0], &ethernet(IPV4, &inner[..60])]);
        ethernet(IPV4, &ipv4(UDP, &udp(50_000, 4789, &inside)))
    };
    assert_eq!(decoded_tcp(ETHERNET, &vxlan(&whole)).payload_len, 1448);
    let damaged = with_u16(whole, 10, 0x1234);
    assert_eq!(decoded(ETHERNET, &vxlan(&damaged)), Err(Undecoded::LongerThanFrame));
}

#[test]
fn a_header_that_counts_more_than_its_packet_had_is_refused() {
    let datagram = ethernet(IPV4, &ipv4(UDP, &udp(1, 2, b"abc")));
    assert_eq!(decoded(ETHERNET, &with_u16(datagram, 14 + 20 + 4, 12)), Err(Undecoded::LongerThanFrame));

    // The inner packet of a tunnel is bounded by the outer one, not by the frame, unless its checksum is right.
    let inner = with_u16(ipv4(TCP, &tcp(&[], 0)), 2, 41);
    let padded = concat(&[&ethernet(IPV4, &ipv4(4, &inner)), &[0; 20]]);
    assert_eq!(decoded(ETHERNET, &padded), Err(Undecoded::LongerThanFrame));
}

/// A container that says fewer bytes were on the wire than it stored.
#[test]
fn what_was_stored_was_on_the_wire() {
    let bytes = ethernet(IPV4, &ipv4(TCP, &tcp(&[], 10)));
    let packet = decoded_cut(ETHERNET, &bytes, 0).expect("all is there");
    assert_eq!(packet.frame_len, 64);
    assert!(matches!(packet.transport, Transport::Tcp(tcp) if tcp.payload_len == 10));
}

#[test]
fn lengths_smaller_than_the_header_are_refused() {
    let good = ethernet(IPV4, &ipv4(TCP, &tcp(&[], 0)));
    let refused = [
        ("IPv4 header of 16 bytes", 14, 0x44),
        ("IPv4 header longer than the packet", 14, 0x4f),
        ("version 5", 14, 0x55),
        ("total length 19", 17, 19),
        ("total length 39: no room for TCP", 17, 39),
        ("TCP header of 16 bytes", 14 + 20 + 12, 0x40),
        ("TCP header longer than the packet", 14 + 20 + 12, 0x60),
    ];
    for (name, at, value) in refused {
        let mut bytes = good.clone();
        bytes[at] = value;
        assert_eq!(decoded(ETHERNET, &bytes), Err(Undecoded::Malformed), "{name}");
    }
    let mut one_byte_short = with_u16(ethernet(IPV4, &ipv4(TCP, &tcp(&[0; 4], 0))), 16, 20 + 23);
    assert_eq!(decoded(ETHERNET, &one_byte_short), Err(Undecoded::Malformed));
    one_byte_short[17] += 1;
    assert_eq!(decoded_tcp(ETHERNET, &one_byte_short).payload_len, 0);

    let datagram = ethernet(IPV4, &ipv4(UDP, &udp(1, 2, b"abc")));
    assert_eq!(decoded(ETHERNET, &with_u16(datagram, 14 + 20 + 4, 7)), Err(Undecoded::Malformed));
}
