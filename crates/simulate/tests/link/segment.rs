//! Reading segments off packets, beside etherparse; marking CE.

use etherparse::{PacketBuilder, TcpHeader, TcpOptionElement};
use proptest::prelude::*;
use tcpwhy_simulate::link::{Segment, Tcp, mark_ce};

/// A TCP segment over IPv4 or IPv6, with an ECN field.
fn built(six: bool, ecn: u8, tcp: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    let ip = if six {
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
    } else {
        PacketBuilder::ipv4([1, 1, 1, 1], [2, 2, 2, 2], 64)
    };
    let mut bytes = Vec::new();
    ip.tcp_header(tcp.clone()).write(&mut bytes, payload).unwrap();
    bytes[1] |= if six { ecn << 4 } else { ecn };
    if !six {
        let (mut header, rest) = etherparse::Ipv4Header::from_slice(&bytes).unwrap();
        header.header_checksum = header.calc_header_checksum();
        bytes = [&header.to_bytes()[..], rest].concat();
    }
    bytes
}

fn syn() -> TcpHeader {
    let mut tcp = TcpHeader::new(4_000, 80, 1_000, 64_240);
    tcp.syn = true;
    tcp.set_options(&[
        TcpOptionElement::Noop,
        TcpOptionElement::WindowScale(7),
        TcpOptionElement::MaximumSegmentSize(1_460),
    ])
    .unwrap();
    tcp
}

#[test]
fn a_syn_with_its_mss() {
    for (six, len) in [(false, 48), (true, 68)] {
        let segment = Segment::of_ip_packet(&built(six, 0, &syn(), b""));
        let tcp = segment.tcp.unwrap();
        let expected = Tcp {
            flow: tcp.flow,
            seq: 1_000,
            window: 64_240,
            options: 8,
            mss: Some(1_460),
            syn: true,
            ..Tcp::default()
        };
        assert_eq!((segment.len, segment.ecn_capable, tcp), (len, false, expected));
        assert!(!tcp.is_pure_ack());
    }
}

#[test]
fn both_directions_are_one_flow_and_other_ports_another() {
    let of = |source: [u8; 4], destination, ports: (u16, u16)| {
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ipv4(source, destination, 64).tcp(ports.0, ports.1, 0, 0);
        builder.write(&mut bytes, b"").unwrap();
        Segment::of_ip_packet(&bytes).tcp.unwrap().flow
    };
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    assert_eq!(of(a, b, (4_000, 80)), of(b, a, (80, 4_000)));
    assert_ne!(of(a, b, (4_000, 80)), of(a, b, (4_001, 80)));
    assert_ne!(of(a, b, (4_000, 80)), of(a, b, (80, 4_000)));
}

#[test]
fn fragments_and_udp_are_opaque() {
    let mut fragment = built(false, 0, &syn(), b"data");
    fragment[6] |= 0x20;
    assert_eq!(Segment::of_ip_packet(&fragment), Segment { len: 52, ecn_capable: false, tcp: None });
    let mut udp = Vec::new();
    PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1, 2).write(&mut udp, b"data").unwrap();
    assert_eq!(Segment::of_ip_packet(&udp), Segment { len: 52, ecn_capable: false, tcp: None });
}

#[test]
fn the_header_chain_of_ipv6_is_followed() {
    let mut bytes = built(true, 0, &syn(), b"data");
    let plain = Segment::of_ip_packet(&bytes).tcp;
    // A destination options header of 16 bytes: next header TCP, one unit more than the first, PadN.
    bytes.splice(40..40, [&[6, 1, 1, 12][..], &[0; 12]].concat());
    bytes[6] = 60;
    bytes[5] += 16;
    assert_eq!(Segment::of_ip_packet(&bytes).tcp, plain);
}

#[test]
fn padding_after_the_packet_is_no_data() {
    let mut bytes = built(false, 0, &syn(), b"data");
    bytes.extend([0; 6]);
    assert_eq!(Segment::of_ip_packet(&bytes).tcp.map(|tcp| tcp.payload), Some(4));
}

#[test]
fn only_ect_is_marked() {
    for six in [false, true] {
        for (ecn, after) in [(0, 0), (1, 3), (2, 3), (3, 3)] {
            let mut bytes = built(six, ecn, &syn(), b"data");
            assert_eq!(Segment::of_ip_packet(&bytes).ecn_capable, ecn != 0);
            mark_ce(&mut bytes);
            assert_eq!(bytes, built(six, after, &syn(), b"data"));
        }
    }
}

proptest! {
    #[test]
    fn segments_as_etherparse_reads_them(
        six: bool,
        numbers: (u32, u32, u16),
        flags in prop::array::uniform5(any::<bool>()),
        len in 0..2_000_usize,
    ) {
        let mut header = TcpHeader::new(5, 6, numbers.0, numbers.2);
        header.acknowledgment_number = numbers.1;
        [header.syn, header.fin, header.rst, header.psh, header.ack] = flags;
        let bytes = built(six, 2, &header, &vec![1; len]);
        let parsed = etherparse::PacketHeaders::from_ip_slice(&bytes).unwrap();
        let theirs = parsed.transport.unwrap().tcp().unwrap();
        let ours = Segment::of_ip_packet(&bytes);
        let tcp = ours.tcp.unwrap();
        prop_assert!(ours.ecn_capable);
        prop_assert_eq!((tcp.seq, tcp.ack, tcp.window), (theirs.sequence_number, theirs.acknowledgment_number, theirs.window_size));
        prop_assert_eq!([tcp.syn, tcp.fin, tcp.rst, tcp.psh, tcp.ack_flag], [theirs.syn, theirs.fin, theirs.rst, theirs.psh, theirs.ack]);
        prop_assert_eq!((tcp.payload as usize, usize::from(tcp.options)), (len, theirs.options.len()));
    }

    #[test]
    fn the_mended_checksum_is_the_computed_one(id: u16, tos: u8, ttl: u8, source: [u8; 4]) {
        let mut header = etherparse::Ipv4Header::new(0, ttl, etherparse::IpNumber::TCP, source, [2; 4]).unwrap();
        header.identification = id;
        let mut bytes = header.to_bytes();
        bytes[1] = tos;
        let checksum = etherparse::Ipv4Header::from_slice(&bytes).unwrap().0.calc_header_checksum();
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        mark_ce(&mut bytes);
        let after = etherparse::Ipv4Header::from_slice(&bytes).unwrap().0;
        prop_assert_eq!(after.header_checksum, after.calc_header_checksum());
        prop_assert_eq!(bytes[1] & 3, if tos & 3 == 0 { 0 } else { 3 });
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..200), version in 0..16_u8) {
        if let Some(first) = bytes.first_mut() {
            *first = version << 4 | *first & 0x0f;
        }
        let segment = Segment::of_ip_packet(&bytes);
        prop_assert_eq!(segment.len, bytes.len());
        if let Some(tcp) = segment.tcp {
            prop_assert!((tcp.payload as usize) < bytes.len());
        }
        mark_ce(&mut bytes);
        prop_assert_eq!(Segment::of_ip_packet(&bytes), segment);
    }
}
