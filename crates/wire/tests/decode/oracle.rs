//! Random frames against etherparse, which builds them and reads them by other code than ours; and random
//! bytes against nothing but the promise not to panic.

use etherparse::{
    IpHeaders, IpNumber, Ipv4Header, Ipv6Extensions, Ipv6Header, Ipv6RawExtHeader, LaxNetSlice,
    LaxSlicedPacket, LinuxSllPacketType, PacketBuilder, TcpHeader, TcpOptionElement, TcpSlice,
    TransportSlice, VlanId,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tcpwhy_wire::container::LinkType;
use tcpwhy_wire::decode::Undecoded;
use tcpwhy_wire::messages::recognise;
use tcpwhy_wire::{Address, Socket, Tcp, TcpFlags, TcpOptions, Transport, Udp};

use crate::frames::{decoded, decoded_cut};

/// IP in IP and GRE, which etherparse does not open.
const UNKNOWN_TO_ETHERPARSE: [u8; 3] = [4, 41, 47];

/// Extension headers, on whose order it insists (RFC 8200 section 4.1); we step over them in any.
const EXTENSIONS: [u8; 5] = [0, 43, 44, 51, 60];

#[derive(Clone, Copy, Debug)]
enum Link {
    Ethernet,
    Vlan,
    TwoVlans,
    LinuxSll,
    RawIp,
}

impl Link {
    fn number(self) -> LinkType {
        match self {
            Self::Ethernet | Self::Vlan | Self::TwoVlans => LinkType::ETHERNET,
            Self::LinuxSll => LinkType::LINUX_SLL,
            Self::RawIp => LinkType::RAW,
        }
    }

    /// Where IP begins.
    fn len(self) -> usize {
        match self {
            Self::Ethernet => 14,
            Self::Vlan => 18,
            Self::TwoVlans => 22,
            Self::LinuxSll => 16,
            Self::RawIp => 0,
        }
    }
}

#[derive(Clone, Debug)]
struct Sample {
    link: Link,
    ip: IpHeaders,
    /// `None`: UDP between the same ports.
    tcp: Option<TcpHeader>,
    ports: (u16, u16),
    payload: usize,
}

impl Sample {
    fn bytes(&self) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let id = |id| VlanId::try_new(id).expect("12 bits");
        let ip = self.ip.clone();
        let ip = match self.link {
            Link::Ethernet => ethernet.ip(ip),
            Link::Vlan => ethernet.single_vlan(id(7)).ip(ip),
            Link::TwoVlans => ethernet.double_vlan(id(7), id(8)).ip(ip),
            Link::LinuxSll => PacketBuilder::linux_sll(LinuxSllPacketType::OUTGOING, 6, [2; 8]).ip(ip),
            Link::RawIp => PacketBuilder::ip(ip),
        };
        let payload = vec![b'x'; self.payload];
        let mut bytes = Vec::new();
        match &self.tcp {
            Some(tcp) => ip.tcp_header(tcp.clone()).write(&mut bytes, &payload).expect("it fits"),
            None => ip.udp(self.ports.0, self.ports.1).write(&mut bytes, &payload).expect("it fits"),
        }
        bytes
    }
}

fn link() -> impl Strategy<Value = Link> {
    prop_oneof![
        Just(Link::Ethernet),
        Just(Link::Vlan),
        Just(Link::TwoVlans),
        Just(Link::LinuxSll),
        Just(Link::RawIp)
    ]
}

fn ip() -> impl Strategy<Value = IpHeaders> {
    prop_oneof![ipv4(), ipv6()]
}

fn ipv4() -> impl Strategy<Value = IpHeaders> {
    (any::<[u8; 4]>(), any::<[u8; 4]>(), 0_usize..=10, any::<u8>()).prop_map(
        |(source, destination, option_words, ttl)| {
            let mut header = Ipv4Header::new(0, ttl, IpNumber(0), source, destination).expect("no payload");
            header.options = [1; 40][..option_words * 4].try_into().expect("whole words");
            IpHeaders::Ipv4(header, Default::default())
        },
    )
}

fn ipv6() -> impl Strategy<Value = IpHeaders> {
    // Extension headers come as 8 n bytes, of which the first two are written by etherparse.
    let extension = || {
        proptest::option::of((0_usize..4).prop_map(|words| {
            Ipv6RawExtHeader::new_raw(IpNumber(0), &vec![0; 6 + words * 8]).expect("whole words")
        }))
    };
    (any::<[u8; 16]>(), any::<[u8; 16]>(), extension(), extension()).prop_map(
        |(source, destination, hop_by_hop_options, destination_options)| {
            let header = Ipv6Header { source, destination, ..Ipv6Header::default() };
            let extensions =
                Ipv6Extensions { hop_by_hop_options, destination_options, ..Ipv6Extensions::default() };
            IpHeaders::Ipv6(header, extensions)
        },
    )
}

fn option() -> impl Strategy<Value = TcpOptionElement> {
    let edges = any::<(u32, u32)>;
    prop_oneof![
        Just(TcpOptionElement::Noop),
        any::<u16>().prop_map(TcpOptionElement::MaximumSegmentSize),
        (0_u8..=14).prop_map(TcpOptionElement::WindowScale),
        Just(TcpOptionElement::SelectiveAcknowledgementPermitted),
        edges().prop_map(|(value, echo)| TcpOptionElement::Timestamp(value, echo)),
        (edges(), vec(edges(), 0..=3)).prop_map(|(first, more)| {
            let more = [0, 1, 2].map(|index| more.get(index).copied());
            TcpOptionElement::SelectiveAcknowledgement(first, more)
        }),
    ]
}

fn tcp_header() -> impl Strategy<Value = TcpHeader> {
    (any::<(u32, u32, u16, u16)>(), vec(option(), 0..6)).prop_map(
        |((sequence_number, acknowledgment_number, window_size, flags), elements)| {
            let mut header =
                TcpHeader { sequence_number, acknowledgment_number, window_size, ..TcpHeader::default() };
            header.fin = flags & 0x001 != 0;
            header.syn = flags & 0x002 != 0;
            header.rst = flags & 0x004 != 0;
            header.psh = flags & 0x008 != 0;
            header.ack = flags & 0x010 != 0;
            header.urg = flags & 0x020 != 0;
            header.ece = flags & 0x040 != 0;
            header.cwr = flags & 0x080 != 0;
            header.ns = flags & 0x100 != 0;
            // As many of the options as 40 bytes hold.
            let _ = (0..=elements.len()).rev().find(|&count| header.set_options(&elements[..count]).is_ok());
            header
        },
    )
}

fn sample() -> impl Strategy<Value = Sample> {
    // Ports below 4789 are no tunnel's.
    let ports = || (1_u16..4000, 1_u16..4000);
    (link(), ip(), proptest::option::weighted(0.8, tcp_header()), ports(), 0_usize..3000).prop_map(
        |(link, ip, tcp, ports, payload)| {
            let tcp = tcp.map(|tcp| TcpHeader { source_port: ports.0, destination_port: ports.1, ..tcp });
            Sample { link, ip, tcp, ports, payload }
        },
    )
}

type Ends = (Socket, Socket);

/// Who sends what to whom, by etherparse; `None` if it finds neither TCP nor UDP in what was stored.
/// `payload_len` of TCP is that of the stored bytes.
fn by_etherparse(link: Link, stored: &[u8]) -> Option<(Ends, Transport)> {
    let packet = match link {
        Link::Ethernet | Link::Vlan | Link::TwoVlans => LaxSlicedPacket::from_ethernet(stored).ok()?,
        Link::LinuxSll | Link::RawIp => LaxSlicedPacket::from_ip(stored.get(link.len()..)?).ok()?,
    };
    let (source, destination) = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            (Address::v4(ip.header().source()), Address::v4(ip.header().destination()))
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            (Address::v6(ip.header().source()), Address::v6(ip.header().destination()))
        }
        _ => return None,
    };
    let (source_port, destination_port, transport) = match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            (tcp.source_port(), tcp.destination_port(), Transport::Tcp(tcp_by_etherparse(tcp)))
        }
        Some(TransportSlice::Udp(udp)) => {
            let payload_len = match udp.length() {
                0 => udp.payload().len() as u32,
                len => u32::from(len.checked_sub(8)?),
            };
            (udp.source_port(), udp.destination_port(), Transport::Udp(Udp { payload_len }))
        }
        _ => return None,
    };
    let ends = (
        Socket { address: source, port: source_port },
        Socket { address: destination, port: destination_port },
    );
    Some((ends, transport))
}

fn tcp_by_etherparse(tcp: &TcpSlice<'_>) -> Tcp {
    let flags =
        [tcp.fin(), tcp.syn(), tcp.rst(), tcp.psh(), tcp.ack(), tcp.urg(), tcp.ece(), tcp.cwr(), tcp.ns()];
    let flags = flags.iter().enumerate().map(|(bit, set)| u16::from(*set) << bit).sum();
    let mut options = TcpOptions::default();
    for option in tcp.options_iterator().map_while(Result::ok) {
        match option {
            TcpOptionElement::Noop => {}
            TcpOptionElement::MaximumSegmentSize(mss) => options.mss = Some(mss),
            TcpOptionElement::WindowScale(shift) => options.window_scale = Some(shift),
            TcpOptionElement::SelectiveAcknowledgementPermitted => options.sack_permitted = true,
            TcpOptionElement::Timestamp(value, echo) => options.timestamps = Some((value, echo)),
            TcpOptionElement::SelectiveAcknowledgement(first, more) => {
                for (left, right) in [Some(first)].into_iter().chain(more).flatten() {
                    options.sack.push(left, right);
                }
            }
        }
    }
    Tcp {
        seq: tcp.sequence_number(),
        ack: tcp.acknowledgment_number(),
        payload_len: tcp.payload().len() as u32,
        window: tcp.window_size(),
        flags: TcpFlags(flags),
        options,
        message: recognise(tcp.payload(), tcp.payload().len() as u32),
    }
}

/// The packet without what the comparison at hand cannot know.
fn without_len_and_options(transport: Transport) -> Transport {
    match transport {
        Transport::Tcp(tcp) => {
            Transport::Tcp(Tcp { payload_len: 0, options: TcpOptions::default(), message: None, ..tcp })
        }
        Transport::Udp(udp) => Transport::Udp(udp),
    }
}

proptest! {
    #[test]
    fn whole_frames(sample in sample(), padding in 0_usize..20) {
        let mut bytes = sample.bytes();
        let (ends, transport) = by_etherparse(sample.link, &bytes).expect("it can read what it wrote");
        bytes.resize(bytes.len() + padding, 0);
        let packet = decoded(sample.link.number(), &bytes).expect("etherparse can read it");
        prop_assert_eq!((packet.source, packet.destination), ends);
        prop_assert_eq!(packet.transport, transport);
        let payload_len = match packet.transport {
            Transport::Tcp(tcp) => tcp.payload_len,
            Transport::Udp(udp) => udp.payload_len,
        };
        prop_assert_eq!(payload_len as usize, sample.payload);
    }

    #[test]
    fn cut_frames(sample in sample(), cut: Index) {
        let bytes = sample.bytes();
        let stored = &bytes[..cut.index(bytes.len().min(200))];
        let ours = decoded_cut(sample.link.number(), stored, bytes.len());
        let whole = decoded(sample.link.number(), &bytes).expect("etherparse wrote it");
        match ours {
            Ok(packet) => {
                prop_assert_eq!((packet.source, packet.destination), (whole.source, whole.destination));
                let payload_len = |transport| match transport {
                    Transport::Tcp(tcp) => tcp.payload_len,
                    Transport::Udp(udp) => udp.payload_len,
                };
                prop_assert_eq!(payload_len(packet.transport), payload_len(whole.transport));
                prop_assert_eq!(without_len_and_options(packet.transport), without_len_and_options(whole.transport));
            }
            Err(reason) => {
                prop_assert_eq!(reason, Undecoded::CutShort);
                prop_assert_eq!(by_etherparse(sample.link, stored), None, "etherparse finds more");
            }
        }
    }

    /// Damaged headers: where both find a segment they find the same one, and where etherparse finds one and
    /// we do not, it is because a length lies.
    #[test]
    fn damaged_frames(sample in sample(), damage in vec((any::<Index>(), any::<u8>()), 1..4)) {
        let mut bytes = sample.bytes();
        let from = sample.link.len();
        let to = bytes.len().min(from + 100);
        for (at, value) in damage {
            bytes[from + at.index(to - from)] = value;
        }
        let theirs = by_etherparse(sample.link, &bytes);
        match (decoded(sample.link.number(), &bytes), theirs) {
            (Ok(packet), Some((ends, transport))) => {
                prop_assert_eq!((packet.source, packet.destination), ends);
                prop_assert_eq!(without_len_and_options(packet.transport), without_len_and_options(transport));
            }
            (Err(reason), Some(_)) => {
                prop_assert!(matches!(reason, Undecoded::LongerThanFrame | Undecoded::Malformed), "{:?}", reason);
            }
            (Ok(packet), None) => {
                let protocol = bytes[from + if bytes[from] >> 4 == 4 { 9 } else { 6 }];
                let they_refuse = UNKNOWN_TO_ETHERPARSE.contains(&protocol) || EXTENSIONS.contains(&protocol);
                prop_assert!(they_refuse, "only we find {:?}", packet);
            }
            (Err(_), None) => {}
        }
    }

    /// On every link type that is known and some that are not.
    #[test]
    fn any_bytes(link in 0_u32..300, bytes in vec(any::<u8>(), 0..200), original_len in 0_usize..3000) {
        check_bounds(LinkType(link), &bytes, original_len)?;
    }

    /// Bytes that get past the first checks: the headers of tunnels and extensions, shuffled.
    #[test]
    fn shuffled_headers(pieces in vec(0_usize..PIECES.len(), 1..12), original_len in 0_usize..3000) {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| PIECES[*piece]).copied().collect();
        for link in [0, 1, 9, 50, 51, 101, 104, 108, 113, 228, 229, 276] {
            check_bounds(LinkType(link), &bytes, original_len)?;
        }
    }
}

/// No panic, and no payload that the frame could not have carried.
fn check_bounds(link: LinkType, bytes: &[u8], original_len: usize) -> Result<(), TestCaseError> {
    let Ok(packet) = decoded_cut(link, bytes, original_len) else { return Ok(()) };
    prop_assert_eq!(packet.frame_len as usize, original_len.max(bytes.len()));
    match packet.transport {
        Transport::Tcp(tcp) => {
            prop_assert!(tcp.payload_len + 20 <= packet.frame_len);
            prop_assert!(tcp.options.sack.as_slice().len() <= 4);
            prop_assert!(tcp.options.window_scale.is_none_or(|shift| shift <= 14));
        }
        Transport::Udp(udp) => prop_assert!(udp.payload_len + 8 <= packet.frame_len),
    }
    Ok(())
}

const PIECES: [&[u8]; 16] = [
    &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00],
    &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd],
    &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x47],
    &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x64],
    &[0, 1, 0x01, 64],
    &[0x11, 0, 0, 7, 0, 9, 0x00, 0x21],
    &[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
    &[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
    &[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 47, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
    &[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 4, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
    &[
        0x60, 0, 0, 0, 0, 0, 0, 64, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2,
        2, 2, 2, 2, 2, 2, 2, 2,
    ],
    &[6, 0, 0, 0, 0, 0, 0, 0],
    &[0xc0, 0, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 9, 0],
    &[0xc0, 0, 0x17, 0xc1, 0, 0, 0, 0, 1, 0, 0x65, 0x58, 0, 0, 9, 0],
    &[0x30, 0, 0x65, 0x58, 0, 0, 0, 1, 0, 0, 0, 2],
    &[0x0f, 0xa0, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0xf0, 0x18, 0x12, 0x34, 0, 0, 0, 0, 5, 250, 8, 10, 3, 3, 99],
];
