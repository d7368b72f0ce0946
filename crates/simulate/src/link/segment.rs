//! What the link must know of a packet, read off its bytes.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// A packet as the link sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Bytes of the IP packet.
    pub len: usize,
    /// Whether it may be marked CE (RFC 3168 5: ECT(0), ECT(1), or CE already).
    pub ecn_capable: bool,
    /// Its TCP header, if it is an unfragmented TCP segment.
    pub tcp: Option<Tcp>,
}

/// The part of a TCP header that plans of loss and held ACKs rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Names the connection, the same in both directions.
    pub flow: u64,
    /// Sequence number of the first byte, or of the SYN.
    pub seq: u32,
    /// Acknowledgement number; means something with `ack_flag` only.
    pub ack: u32,
    /// The window field, unscaled.
    pub window: u16,
    /// Bytes of data.
    pub payload: u32,
    /// Bytes of TCP options. They come off the MSS (RFC 6691), so a full-sized segment has `payload + options`
    /// of it.
    pub options: u8,
    /// The MSS option of a SYN.
    pub mss: Option<u16>,
    /// The SYN flag.
    pub syn: bool,
    /// The FIN flag.
    pub fin: bool,
    /// The RST flag.
    pub rst: bool,
    /// The PSH flag.
    pub psh: bool,
    /// The ACK flag.
    pub ack_flag: bool,
}

impl Tcp {
    /// Whether it does nothing but acknowledge.
    pub fn is_pure_ack(&self) -> bool {
        self.ack_flag && self.payload == 0 && !(self.syn || self.fin || self.rst)
    }
}

impl Segment {
    /// Reads the beginning of an IPv4 or IPv6 packet. Whatever cannot be read counts as an opaque packet of its
    /// length.
    pub fn of_ip_packet(packet: &[u8]) -> Self {
        let headers = match packet.first().map(|byte| byte >> 4) {
            Some(4) => ipv4(packet),
            Some(6) => ipv6(packet),
            _ => None,
        };
        let tcp = headers.and_then(|ip| {
            let tcp = ip.tcp.and_then(|segment| tcp(segment, 0))?;
            Some(Tcp { flow: flow(ip.source, ip.destination, ip.tcp?), ..tcp })
        });
        Self { len: packet.len(), ecn_capable: ecn(packet) != 0, tcp }
    }
}

const PROTOCOL_TCP: u8 = 6;

/// Addresses, and the TCP header with its data where there is one.
struct Ip<'a> {
    source: &'a [u8],
    destination: &'a [u8],
    tcp: Option<&'a [u8]>,
}

fn ipv4(packet: &[u8]) -> Option<Ip<'_>> {
    const MORE_FRAGMENTS_OR_OFFSET: u16 = 0x3fff;
    let header_len = usize::from(packet.first()? & 0x0f) * 4;
    let header = packet.get(..header_len.max(20))?;
    // A total length of 0 is what the kernel writes into packets beyond 65,535 bytes ("BIG TCP").
    let total = match usize::from(word(header, 2)?) {
        0 => packet.len(),
        total => total.min(packet.len()),
    };
    let whole = word(header, 6)? & MORE_FRAGMENTS_OR_OFFSET == 0;
    let tcp = if header[9] == PROTOCOL_TCP && whole { packet.get(header.len()..total) } else { None };
    Some(Ip { source: &header[12..16], destination: &header[16..20], tcp })
}

fn ipv6(packet: &[u8]) -> Option<Ip<'_>> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const DESTINATION_OPTIONS: u8 = 60;
    let (header, after) = packet.split_at_checked(40)?;
    // A payload length of 0 is a jumbogram's (RFC 2675).
    let mut rest = match usize::from(word(header, 4)?) {
        0 => after,
        payload => &after[..payload.min(after.len())],
    };
    let mut next = header[6];
    while matches!(next, HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS) {
        next = *rest.first()?;
        // In units of 8 bytes, the first not counted (RFC 8200 4.3).
        rest = rest.get((usize::from(*rest.get(1)?) + 1) * 8..)?;
    }
    let tcp = (next == PROTOCOL_TCP).then_some(rest);
    Some(Ip { source: &header[8..24], destination: &header[24..40], tcp })
}

fn tcp(segment: &[u8], flow: u64) -> Option<Tcp> {
    let header_len = usize::from(segment.get(12)? >> 4) * 4;
    let options = segment.get(20..header_len)?;
    let flags = segment[13];
    let syn = flags & 0x02 != 0;
    Some(Tcp {
        flow,
        seq: long(segment, 4)?,
        ack: long(segment, 8)?,
        window: word(segment, 14)?,
        payload: (segment.len() - header_len) as u32,
        options: options.len() as u8,
        mss: if syn { mss(options) } else { None },
        syn,
        fin: flags & 0x01 != 0,
        rst: flags & 0x04 != 0,
        psh: flags & 0x08 != 0,
        ack_flag: flags & 0x10 != 0,
    })
}

/// The MSS option (RFC 9293 3.2: kind 2, length 4).
fn mss(mut options: &[u8]) -> Option<u16> {
    loop {
        match *options {
            [1, ref rest @ ..] => options = rest,
            [2, 4, high, low, ..] => return Some(u16::from_be_bytes([high, low])),
            [kind, len, ..] if kind != 0 && len >= 2 => options = options.get(usize::from(len)..)?,
            _ => return None,
        }
    }
}

/// A hash of both ends, in an order that does not depend on the direction.
fn flow(source: &[u8], destination: &[u8], tcp: &[u8]) -> u64 {
    let from = (source, tcp.get(0..2));
    let to = (destination, tcp.get(2..4));
    FixedState::with_seed(0).hash_one((from.min(to), from.max(to)))
}

/// The ECN field (RFC 3168 5), 0 where there is none.
fn ecn(packet: &[u8]) -> u8 {
    match *packet {
        [first, second, ..] if first >> 4 == 4 && packet.len() >= 20 => second & 0x03,
        [first, second, ..] if first >> 4 == 6 && packet.len() >= 40 => (second >> 4) & 0x03,
        _ => 0,
    }
}

/// Marks an ECN-capable IP packet as having met congestion; leaves any other alone (RFC 3168 5).
pub fn mark_ce(packet: &mut [u8]) {
    if matches!(ecn(packet), 0 | 3) {
        return;
    }
    if packet[0] >> 4 == 6 {
        packet[1] |= 0x30;
        return;
    }
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= 0x03;
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    // RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
