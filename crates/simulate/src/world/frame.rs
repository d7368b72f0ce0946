//! Simulated segments as captured ones.

use etherparse::{
    IpEcn, IpHeaders, Ipv4Extensions, Ipv4Header, PacketBuilder, TcpHeader, TcpOptionElement, ip_number,
};
use tcpwhy_wire::{Address, Packet, Socket, TcpFlags, Transport};

use super::{Seen, Side};
use crate::tcp::Segment;

/// The client's address and port, from the network of documentation (RFC 5737).
pub const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 40_000);
/// The server's.
pub const SERVER: ([u8; 4], u16) = ([192, 0, 2, 2], 80);
/// Time to live, that of Linux.
const HOPS: u8 = 64;

/// What a capture at that interface shows of it, `number` being its place from 1. The identification counts the
/// sender's packets, as Linux does for a connection.
pub fn packet(number: u64, seen: &Seen) -> Packet {
    let socket = |(address, port)| Socket { address: Address::v4(address), port };
    let (source, destination) = ends(seen.from);
    Packet {
        number,
        time: i64::try_from(seen.time).unwrap_or(i64::MAX),
        frame_len: seen.segment.packet_len() as u32,
        ip_id: Some(identification(seen)),
        source: socket(source),
        destination: socket(destination),
        transport: Transport::Tcp(seen.segment.tcp),
    }
}

/// Its sender's packets counted, modulo 2^16; a SYN-ACK has none (Linux `ip_build_and_send_pkt`).
fn identification(seen: &Seen) -> u16 {
    let flags = seen.segment.tcp.flags;
    let is_syn_ack = flags.has(TcpFlags::SYN) && flags.has(TcpFlags::ACK);
    if is_syn_ack { 0 } else { seen.number as u16 }
}

fn ends(from: Side) -> (([u8; 4], u16), ([u8; 4], u16)) {
    match from {
        Side::Client => (CLIENT, SERVER),
        Side::Server => (SERVER, CLIENT),
    }
}

/// The raw IPv4 packet (link type RAW) of it. Its identification counts its sender's packets, modulo 2^16, as Linux does
/// for a connection.
pub fn frame(seen: &Seen) -> Vec<u8> {
    let (source, destination) = ends(seen.from);
    // No endpoint sends more options than fit, or as long a segment.
    ipv4_packet(&seen.segment, source, destination, identification(seen)).unwrap_or_default()
}

/// The IPv4 packet that carries `segment` from one address and port to another, with right checksums; its payload is
/// zeros, and its options are laid out as Linux does. `None` where they take more than the 40 bytes that a TCP header has
/// for them, or where the packet is longer than 65,535 bytes.
pub fn ipv4_packet(
    segment: &Segment,
    source: ([u8; 4], u16),
    destination: ([u8; 4], u16),
    identification: u16,
) -> Option<Vec<u8>> {
    let mut ip = Ipv4Header::new(0, HOPS, ip_number::TCP, source.0, destination.0).ok()?;
    ip.identification = identification;
    ip.dont_fragment = true;
    ip.ecn = IpEcn::try_new(segment.ecn as u8).ok()?;
    let ip = IpHeaders::Ipv4(ip, Ipv4Extensions::default());
    let payload = vec![0; segment.tcp.payload_len as usize];
    let mut bytes = Vec::with_capacity(segment.packet_len());
    let builder = PacketBuilder::ip(ip).tcp_header(header(segment, source.1, destination.1)?);
    builder.write(&mut bytes, &payload).ok()?;
    Some(bytes)
}

fn header(segment: &Segment, source: u16, destination: u16) -> Option<TcpHeader> {
    let tcp = &segment.tcp;
    let has = |bit| tcp.flags.has(bit);
    let mut header = TcpHeader::new(source, destination, tcp.seq, tcp.window);
    header.acknowledgment_number = tcp.ack;
    header.syn = has(TcpFlags::SYN);
    header.fin = has(TcpFlags::FIN);
    header.rst = has(TcpFlags::RST);
    header.psh = has(TcpFlags::PSH);
    header.ack = has(TcpFlags::ACK);
    header.ece = has(TcpFlags::ECE);
    header.cwr = has(TcpFlags::CWR);
    header.set_options(&options(segment)).ok()?;
    Some(header)
}

/// The options laid out as Linux does, so that they take as many bytes as [`Segment::options_len`] says.
fn options(segment: &Segment) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, Timestamp,
        WindowScale,
    };
    let options = &segment.tcp.options;
    let mut list = Vec::new();
    list.extend(options.mss.map(MaximumSegmentSize));
    match (options.sack_permitted, options.timestamps) {
        (true, None) => list.extend([Noop, Noop, SelectiveAcknowledgementPermitted]),
        (true, Some((value, echo))) => {
            list.extend([SelectiveAcknowledgementPermitted, Timestamp(value, echo)]);
        }
        (false, Some((value, echo))) => list.extend([Noop, Noop, Timestamp(value, echo)]),
        (false, None) => {}
    }
    if let Some(scale) = options.window_scale {
        list.extend([Noop, WindowScale(scale)]);
    }
    if let [first, rest @ ..] = options.sack.as_slice() {
        let mut more = [None; 3];
        for (slot, block) in more.iter_mut().zip(rest) {
            *slot = Some(*block);
        }
        list.extend([Noop, Noop, SelectiveAcknowledgement(*first, more)]);
    }
    list
}
