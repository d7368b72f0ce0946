//! Headers written out byte by byte. Each function wraps one layer around what it is given.

use tcpwhy_wire::container::{Frame, LinkType};
use tcpwhy_wire::decode::{Undecoded, decode};
use tcpwhy_wire::{Address, Packet, Socket, Tcp, TcpFlags, TcpOptions, Transport};

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// When and as which frame of the capture every test frame was seen.
const TIME: i64 = 1_700_000_000_123_456_789;
const NUMBER: u64 = 42;

pub(crate) fn concat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// 4000 > 80, seq 16909060, ack 84281096, PSH and ACK, window 4660, these options, `payload` bytes of data.
pub(crate) fn tcp(options: &[u8], payload: usize) -> Vec<u8> {
    assert_eq!(options.len() % 4, 0, "the header's length counts words");
    let data_offset = (5 + options.len() / 4) as u8;
    #[rustfmt::skip]
    let header = [
        0x0f, 0xa0, 0, 80,
        1, 2, 3, 4,
        5, 6, 7, 8,
        data_offset << 4, 0x18, 0x12, 0x34,
        0, 0, 0, 0,
    ];
    concat(&[&header, options, &vec![b'x'; payload]])
}

pub(crate) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    concat(&[&source.to_be_bytes(), &destination.to_be_bytes(), &len.to_be_bytes(), &[0, 0], payload])
}

/// 192.0.2.1 > 198.51.100.2, "don't fragment", no options.
pub(crate) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_with_options(protocol, &[], payload)
}

pub(crate) fn ipv4_with_options(protocol: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let version_and_len = 0x45 + (options.len() / 4) as u8;
    let total = ((20 + options.len() + payload.len()) as u16).to_be_bytes();
    #[rustfmt::skip]
    let header = [
        version_and_len, 0, total[0], total[1],
        0xab, 0xcd, 0x40, 0,
        64, protocol, 0, 0,
        192, 0, 2, 1,
        198, 51, 100, 2,
    ];
    concat(&[&header, options, payload])
}

/// `2001:db8::1` > `2001:db8::2`.
pub(crate) fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    let mut header = [0; 40];
    header[..8].copy_from_slice(&[0x60, 0, 0, 0, len[0], len[1], next_header, 64]);
    header[8..24].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    header[24..].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    concat(&[&header, payload])
}

pub(crate) fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    concat(&[&[0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2], &kind.to_be_bytes(), payload])
}

/// A segment with the timestamp option alone, as most are: timestamps 0x11121314 and 0x21222324.
pub(crate) const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24];

/// The segment that the frames of [`crate::layers`] carry: [`TIMESTAMPS`] and 5 bytes of data.
pub(crate) fn segment() -> Vec<u8> {
    tcp(&TIMESTAMPS, 5)
}

pub(crate) fn frame(link: LinkType, data: &[u8]) -> Frame<'_> {
    Frame { time: TIME, link, original_len: data.len() as u32, data, ..Frame::default() }
}

/// What `data` decodes to if all of it was stored.
pub(crate) fn decoded(link: LinkType, data: &[u8]) -> Result<Packet, Undecoded> {
    decode(&frame(link, data), NUMBER)
}

/// What `data` decodes to if a snapshot length cut a frame of `original_len` bytes.
pub(crate) fn decoded_cut(link: LinkType, data: &[u8], original_len: usize) -> Result<Packet, Undecoded> {
    decode(&Frame { original_len: original_len as u32, ..frame(link, data) }, NUMBER)
}

/// The TCP header of a frame that must carry one.
#[track_caller]
pub(crate) fn decoded_tcp(link: LinkType, data: &[u8]) -> Tcp {
    match decoded(link, data).map(|packet| packet.transport) {
        Ok(Transport::Tcp(tcp)) => tcp,
        other => panic!("no TCP: {other:?}"),
    }
}

/// The payload length of the UDP datagram that a frame must carry.
#[track_caller]
pub(crate) fn decoded_udp_len(link: LinkType, data: &[u8]) -> u32 {
    match decoded(link, data).map(|packet| packet.transport) {
        Ok(Transport::Udp(udp)) => udp.payload_len,
        other => panic!("no UDP: {other:?}"),
    }
}

/// The hosts of [`ipv4`].
pub(crate) fn v4_hosts() -> (Address, Address) {
    (Address::v4([192, 0, 2, 1]), Address::v4([198, 51, 100, 2]))
}

/// The hosts of [`ipv6`].
pub(crate) fn v6_hosts() -> (Address, Address) {
    let prefix = 0x2001_0db8_u128 << 96;
    (Address(prefix | 1), Address(prefix | 2))
}

/// [`segment`] as it must be decoded from a frame of `frame_len` bytes.
pub(crate) fn expected((source, destination): (Address, Address), frame_len: usize) -> Packet {
    Packet {
        number: NUMBER,
        time: TIME,
        frame_len: frame_len as u32,
        // As `ipv4` writes it; IPv6 has none.
        ip_id: source.to_string().contains('.').then_some(0xabcd),
        source: Socket { address: source, port: 4000 },
        destination: Socket { address: destination, port: 80 },
        transport: Transport::Tcp(Tcp {
            seq: 16_909_060,
            ack: 84_281_096,
            payload_len: 5,
            window: 4660,
            flags: TcpFlags(TcpFlags::PSH | TcpFlags::ACK),
            options: TcpOptions { timestamps: Some((0x1112_1314, 0x2122_2324)), ..TcpOptions::default() },
            message: None,
        }),
    }
}
