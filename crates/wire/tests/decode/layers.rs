//! The same TCP segment below every link layer, IP header and tunnel.

use tcpwhy_wire::container::LinkType;
use tcpwhy_wire::decode::Undecoded;
use tcpwhy_wire::{Address, Packet, TcpOptions, Transport};

use crate::frames::{
    IPV4, IPV6, TCP, UDP, concat, decoded, decoded_cut, ethernet, expected, ipv4, ipv4_with_options, ipv6,
    segment, udp, v4_hosts, v6_hosts,
};

const ETHERNET: LinkType = LinkType::ETHERNET;
const GRE: u8 = 47;
const VXLAN: [u8; 8] = [0x08, 0, 0, 0, 0, 0, 99, 0];

/// A frame that carries [`segment`] at its end.
struct Stack {
    name: &'static str,
    link: LinkType,
    bytes: Vec<u8>,
    hosts: (Address, Address),
}

fn v4_segment() -> Vec<u8> {
    ipv4(TCP, &segment())
}

fn v6_segment() -> Vec<u8> {
    ipv6(TCP, &segment())
}

/// Every stack is named, so that a failure says which layer it is about.
fn stacks() -> Vec<Stack> {
    let over_v4 = links_over_v4().into_iter().chain(ip_headers_v4()).chain(tunnels_over_v4());
    let over_v6 = links_over_v6().into_iter().chain(ip_headers_v6());
    let named = |hosts| move |(name, link, bytes)| Stack { name, link: LinkType(link), bytes, hosts };
    over_v4.map(named(v4_hosts())).chain(over_v6.map(named(v6_hosts()))).collect()
}

type Row = (&'static str, u32, Vec<u8>);

#[rustfmt::skip]
fn links_over_v4() -> Vec<Row> {
    let ip = v4_segment();
    let ppp = concat(&[&[0x00, 0x21], &ip]);
    let pppoe = concat(&[&[0x11, 0x00, 0x00, 0x07, 0x00, 0x3b], &ppp]);
    vec![
        ("Ethernet", 1, ethernet(IPV4, &ip)),
        ("802.1Q", 1, ethernet(0x8100, &concat(&[&[0x20, 7, 0x08, 0x00], &ip]))),
        ("802.1ad", 1, ethernet(0x88a8, &concat(&[&[0, 7, 0x81, 0x00, 0, 8, 0x08, 0x00], &ip]))),
        ("QinQ before 802.1ad", 1, ethernet(0x9100, &concat(&[&[0, 7, 0x81, 0x00, 0, 8, 0x08, 0x00], &ip]))),
        ("802.3 with SNAP", 1, ethernet(0x0049, &concat(&[&[0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00], &ip]))),
        ("PPPoE", 1, ethernet(0x8864, &pppoe)),
        ("PPPoE in a VLAN", 1, ethernet(0x8100, &concat(&[&[0, 7, 0x88, 0x64], &pppoe]))),
        ("MPLS, one label", 1, ethernet(0x8847, &concat(&[&[0, 1, 0x01, 64], &ip]))),
        ("MPLS, two labels", 1, ethernet(0x8847, &concat(&[&[0, 1, 0x00, 64, 0, 2, 0x01, 64], &ip]))),
        ("MPLS, Ethernet with a control word", 1,
            ethernet(0x8848, &concat(&[&[0, 1, 0x01, 64, 0, 0, 0, 9], &ethernet(IPV4, &ip)]))),
        ("PPP", 9, ppp.clone()),
        ("PPP, compressed protocol", 9, concat(&[&[0x21], &ip])),
        ("PPP, address and control", 9, concat(&[&[0xff, 0x03], &ppp])),
        ("PPP, HDLC-like", 50, concat(&[&[0xff, 0x03], &ppp])),
        ("PPP, MPLS", 50, concat(&[&[0xff, 0x03, 0x02, 0x81, 0, 1, 0x01, 64], &ip])),
        ("Cisco HDLC as PPP", 50, concat(&[&[0x0f, 0x00, 0x08, 0x00], &ip])),
        ("Cisco HDLC", 104, concat(&[&[0x8f, 0x00, 0x08, 0x00], &ip])),
        ("PPPoE without Ethernet", 51, pppoe),
        ("Linux cooked", 113, concat(&[&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x08, 0x00], &ip])),
        ("Linux cooked, VLAN", 113,
            concat(&[&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x81, 0x00, 0, 7, 0x08, 0x00], &ip])),
        ("Linux cooked v2", 276,
            concat(&[&[0x08, 0x00, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0], &ip])),
        ("null, little-endian", 0, concat(&[&[2, 0, 0, 0], &ip])),
        ("null, big-endian", 0, concat(&[&[0, 0, 0, 2], &ip])),
        ("loop", 108, concat(&[&[0, 0, 0, 2], &ip])),
        ("raw", 101, ip.clone()),
        ("raw elsewhere", 12, ip.clone()),
        ("raw on OpenBSD", 14, ip.clone()),
        ("IPv4", 228, ip),
    ]
}

#[rustfmt::skip]
fn links_over_v6() -> Vec<Row> {
    let ip = v6_segment();
    let mut rows = vec![
        ("Ethernet, IPv6", 1, ethernet(IPV6, &ip)),
        ("802.1Q, IPv6", 1, ethernet(0x8100, &concat(&[&[0x20, 7, 0x86, 0xdd], &ip]))),
        ("PPPoE, IPv6", 1, ethernet(0x8864, &concat(&[&[0x11, 0x00, 0, 7, 0, 0x4f, 0x00, 0x57], &ip]))),
        ("MPLS, IPv6", 1, ethernet(0x8847, &concat(&[&[0, 1, 0x01, 64], &ip]))),
        ("Linux cooked, IPv6", 113,
            concat(&[&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x86, 0xdd], &ip])),
        ("Linux cooked v2, IPv6", 276,
            concat(&[&[0x86, 0xdd, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0], &ip])),
        ("loop, IPv6", 108, concat(&[&[0, 0, 0, 24], &ip])),
        ("raw, IPv6", 101, ip.clone()),
        ("IPv6", 229, ip.clone()),
    ];
    for family in [10, 23, 24, 28, 30] {
        rows.push(("null, IPv6", 0, concat(&[&[family, 0, 0, 0], &ip])));
        rows.push(("null, IPv6, big-endian", 0, concat(&[&[0, 0, 0, family], &ip])));
    }
    rows
}

fn ip_headers_v4() -> Vec<Row> {
    // Next header TCP, 4 words beyond the first 2: 24 bytes.
    let ah = concat(&[&[TCP, 4], &[0; 22]]);
    vec![
        ("IPv4 with options", 1, ethernet(IPV4, &ipv4_with_options(TCP, &[1; 12], &segment()))),
        ("IPv4 with the longest options", 1, ethernet(IPV4, &ipv4_with_options(TCP, &[1; 40], &segment()))),
        ("IPv4 with AH", 1, ethernet(IPV4, &ipv4(51, &concat(&[&ah, &segment()])))),
        ("IPv4, padded to Ethernet's minimum", 1, { ethernet(IPV4, &concat(&[&v4_segment(), &[0; 6]])) }),
    ]
}

#[rustfmt::skip]
fn ip_headers_v6() -> Vec<Row> {
    let tcp = segment();
    let over = |first: u8, extensions: &[u8]| ethernet(IPV6, &ipv6(first, &concat(&[extensions, &tcp])));
    let options = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    vec![
        ("hop-by-hop", 1, over(0, &options(TCP))),
        ("routing, 24 bytes", 1, over(43, &concat(&[&[TCP, 2, 4, 0], &[0; 20]]))),
        ("destination options", 1, over(60, &options(TCP))),
        ("AH", 1, over(51, &concat(&[&[TCP, 4], &[0; 22]]))),
        ("atomic fragment", 1, over(44, &[TCP, 0, 0, 0, 1, 2, 3, 4])),
        ("hop-by-hop, destination, routing, fragment, AH, destination", 1, over(0, &concat(&[
            &options(60), &options(43), &options(44), &[51, 0, 0, 0, 1, 2, 3, 4], &[60, 4], &[0; 22],
            &options(TCP),
        ]))),
    ]
}

#[rustfmt::skip]
fn tunnels_over_v4() -> Vec<Row> {
    let ip = v4_segment();
    let inner = ethernet(IPV4, &ip);
    let over_gre = |header: &[u8], inside: &[u8]| ethernet(IPV4, &ipv4(GRE, &concat(&[header, inside])));
    let over_udp = |port, header: &[u8], inside: &[u8]| {
        ethernet(IPV4, &ipv4(UDP, &udp(50_000, port, &concat(&[header, inside]))))
    };
    let vxlan = concat(&[&VXLAN, &inner]);
    vec![
        ("IPv4 in IPv4", 1, ethernet(IPV4, &ipv4(4, &ip))),
        ("IPv4 in IPv6", 1, ethernet(IPV6, &ipv6(4, &ip))),
        ("GRE", 1, over_gre(&[0, 0, 0x08, 0x00], &ip)),
        ("GRE, checksum", 1, over_gre(&[0x80, 0, 0x08, 0x00, 1, 2, 0, 0], &ip)),
        ("GRE, key", 1, over_gre(&[0x20, 0, 0x08, 0x00, 1, 2, 3, 4], &ip)),
        ("GRE, key and sequence", 1, over_gre(&[0x30, 0, 0x08, 0x00, 1, 2, 3, 4, 5, 6, 7, 8], &ip)),
        ("GRE, all three", 1, over_gre(&[0xb0, 0, 0x08, 0x00, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8], &ip)),
        ("GRE, Ethernet", 1, over_gre(&[0, 0, 0x65, 0x58], &inner)),
        ("GRE in IPv6", 1, ethernet(IPV6, &ipv6(GRE, &concat(&[&[0, 0, 0x08, 0x00], &ip])))),
        ("ERSPAN I", 1, over_gre(&[0, 0, 0x88, 0xbe], &inner)),
        ("ERSPAN II", 1, over_gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 7, 0, 1, 0, 0, 0, 0], &inner)),
        ("ERSPAN III", 1, over_gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 7, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], &inner)),
        ("ERSPAN III with a subheader", 1, over_gre(
            &concat(&[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 7, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1], &[9; 8]]), &inner)),
        ("VXLAN", 1, over_udp(4789, &VXLAN, &inner)),
        ("VXLAN on Linux's old port", 1, over_udp(8472, &VXLAN, &inner)),
        ("VXLAN with a group policy", 1, over_udp(4789, &[0x88, 0, 0x12, 0x34, 0, 0, 99, 0], &inner)),
        ("VXLAN, inner VLAN", 1,
            over_udp(4789, &VXLAN, &ethernet(0x8100, &concat(&[&[0, 7, 0x08, 0x00], &ip])))),
        ("VXLAN in IPv6", 1, ethernet(IPV6, &ipv6(UDP, &udp(50_000, 4789, &vxlan)))),
        ("GENEVE, Ethernet", 1, over_udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 99, 0], &inner)),
        ("GENEVE, IPv4", 1, over_udp(6081, &[0, 0, 0x08, 0x00, 0, 0, 99, 0], &ip)),
        ("GENEVE with 8 bytes of options", 1, over_udp(6081, &[2, 0x40, 0x65, 0x58, 0, 0, 99, 0, 1, 2, 3, 1, 9, 9, 9, 9], &inner)),
        ("GTP-U", 1, over_udp(2152, &[0x30, 255, 0, 57, 0, 0, 0, 7], &ip)),
        ("GTP-U with a sequence number", 1, over_udp(2152, &[0x32, 255, 0, 61, 0, 0, 0, 7, 0, 9, 0, 0], &ip)),
        ("GTP-U with two extensions", 1, over_udp(
            2152, &[0x34, 255, 0, 73, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0x10, 9, 0xc0, 2, 1, 2, 3, 4, 5, 6, 0], &ip)),
        ("GTP-U in IPv6 with an extension unused", 1, ethernet(IPV6, &ipv6(UDP, &udp(2152, 2152,
            &concat(&[&[0x32, 255, 0, 61, 0, 0, 0, 7, 0, 9, 0, 0x85], &ip]))))),
        ("VXLAN in GRE in IPv4", 1, over_gre(&[0, 0, 0x08, 0x00], &ipv4(UDP, &udp(50_000, 4789, &vxlan)))),
        ("four tunnels", 1, ethernet(IPV4, &ipv4(4, &ipv4(4, &ipv4(4, &ipv4(4, &ip)))))),
        ("cooked capture of VXLAN", 113, concat(&[
            &[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x08, 0x00], &ipv4(UDP, &udp(50_000, 4789, &vxlan))])),
    ]
}

#[test]
fn every_stack_gives_the_same_segment() {
    for Stack { name, link, bytes, hosts } in stacks() {
        assert_eq!(decoded(link, &bytes), Ok(expected(hosts, bytes.len())), "{name}");
    }
}

/// Wherever the snapshot length cuts: nothing before the fixed header is whole, everything from there on,
/// but for an option that is not.
#[test]
fn every_cut_gives_all_or_nothing() {
    const OPTIONS: usize = 12;
    for Stack { name, link, bytes, hosts } in stacks() {
        let segment = bytes.windows(4).rposition(|seq| seq == [1, 2, 3, 4]).expect("it is there") - 4;
        for stored in 0..bytes.len() {
            let cut = decoded_cut(link, &bytes[..stored], bytes.len());
            let whole = expected(hosts, bytes.len());
            let expected = match stored {
                _ if stored < segment + 20 => Err(Undecoded::CutShort),
                _ if stored < segment + 20 + OPTIONS => Ok(without_options(whole)),
                _ => Ok(whole),
            };
            assert_eq!(cut, expected, "{name}: {stored} of {} bytes stored", bytes.len());
        }
    }
}

fn without_options(packet: Packet) -> Packet {
    match packet.transport {
        Transport::Tcp(tcp) => Packet {
            transport: Transport::Tcp(tcpwhy_wire::Tcp { options: TcpOptions::default(), ..tcp }),
            ..packet
        },
        Transport::Udp(_) => packet,
    }
}

/// A fifth tunnel stays closed: what it is counts, not what is in it.
#[test]
fn tunnels_are_opened_four_deep() {
    let four = ipv4(4, &ipv4(4, &ipv4(4, &ipv4(4, &v4_segment()))));
    assert_eq!(decoded(ETHERNET, &ethernet(IPV4, &ipv4(4, &four))), Err(Undecoded::OtherIpProtocol(4)));
    let vxlan = udp(50_000, 4789, &concat(&[&VXLAN, &ethernet(IPV4, &v4_segment())]));
    let in_four = ipv4(4, &ipv4(4, &ipv4(4, &ipv4(4, &ipv4(UDP, &vxlan)))));
    assert_eq!(crate::frames::decoded_udp_len(ETHERNET, &ethernet(IPV4, &in_four)), vxlan.len() as u32 - 8);
}

/// Programs use the tunnels' ports too.
#[test]
fn udp_on_a_tunnel_port_stays_udp_unless_it_is_a_tunnel() {
    let inner = ethernet(IPV4, &v4_segment());
    let beside_a_tunnel: [(&str, u16, Vec<u8>); 12] = [
        ("empty", 4789, vec![]),
        ("shorter than the header", 4789, VXLAN[..7].to_vec()),
        ("no VNI flag", 4789, concat(&[&[0, 0, 0, 0, 0, 0, 99, 0], &inner])),
        ("reserved bits set", 8472, concat(&[&[0x08, 1, 0, 0, 0, 0, 99, 0], &inner])),
        ("inner IP header contradicts itself", 4789, concat(&[&VXLAN, &ethernet(IPV4, &[0x41; 60])])),
        ("GENEVE of version 1", 6081, concat(&[&[0x40, 0, 0x65, 0x58, 0, 0, 99, 0], &inner])),
        ("GENEVE with options beyond its end", 6081, vec![0x3f, 0, 0x65, 0x58, 0, 0, 99, 0]),
        ("GTP-U's own echo", 2152, vec![0x32, 1, 0, 4, 0, 0, 0, 0, 0, 9, 0, 0]),
        ("GTP of version 2", 2152, concat(&[&[0x40, 255, 0, 57, 0, 0, 0, 7], &v4_segment()])),
        (
            "GTP-U with an extension of no length",
            2152,
            vec![0x34, 255, 0, 8, 0, 0, 0, 7, 0, 0, 0, 0x85, 0, 0, 0, 0],
        ),
        (
            "GTP-U with extensions to its end",
            2152,
            concat(&[&[0x34, 255, 0, 84, 0, 0, 0, 7, 0, 0, 0, 1], &[1; 80]]),
        ),
        ("GTP-U with no IP in it", 2152, concat(&[&[0x30, 255, 0, 46, 0, 0, 0, 7], &[0x11; 46]])),
    ];
    for (name, port, payload) in beside_a_tunnel {
        let bytes = ethernet(IPV4, &ipv4(UDP, &udp(50_000, port, &payload)));
        let packet = decoded(ETHERNET, &bytes).expect(name);
        assert_eq!((packet.source.address, packet.destination.address), v4_hosts(), "{name}");
        assert_eq!((packet.source.port, packet.destination.port), (50_000, port), "{name}");
        let udp = tcpwhy_wire::Udp { payload_len: payload.len() as u32 };
        assert_eq!(packet.transport, Transport::Udp(udp), "{name}");
    }
}

/// A failed look inside must not leave the inner hosts behind.
#[test]
fn a_datagram_that_is_no_tunnel_keeps_its_own_hosts() {
    let inner_udp_with_a_bad_length = concat(&[&[0, 1, 0, 2, 0, 3, 0, 0], &[0; 8]]);
    let inner = ethernet(IPV6, &ipv6(UDP, &inner_udp_with_a_bad_length));
    let bytes = ethernet(IPV4, &ipv4(UDP, &udp(50_000, 4789, &concat(&[&VXLAN, &inner]))));
    let packet = decoded(ETHERNET, &bytes).expect("plain UDP");
    assert_eq!((packet.source.address, packet.destination.address), v4_hosts());
}

/// What a tunnel carries besides TCP and UDP is counted as what it is, not as a datagram of the tunnel's.
#[test]
fn other_protocols_in_a_tunnel_are_those_protocols() {
    let ping = ethernet(IPV4, &ipv4(1, &[8, 0, 0, 0, 0, 0, 0, 0]));
    let arp = ethernet(0x0806, &[0; 28]);
    for (inner, expected) in [(ping, Undecoded::OtherIpProtocol(1)), (arp, Undecoded::NotIp(0x0806))] {
        let bytes = ethernet(IPV4, &ipv4(UDP, &udp(50_000, 4789, &concat(&[&VXLAN, &inner]))));
        assert_eq!(decoded(ETHERNET, &bytes), Err(expected));
    }
}
