//! Simulated segments as captured ones.

use etherparse::{Ipv4Header, PacketBuilder, TcpHeader, TcpOptionElement, ip_number};
use tcpwhy_wire::{Address, Packet, Socket, TcpFlags, Transport};

use super::{Seen, Side};
use crate::tcp::{Ecn, Segment};

/// The client's address and port, from the network of documentation (RFC 5737).
pub const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 40_000);
/// The server's.
pub const SERVER: ([u8; 4], u16) = ([192, 0, 2, 2], 80);

/// What a capture at that interface shows of it, `number` being its place from 1. The identification counts the
/// sender's packets, as Linux does for a connection.
pub fn packet(number: u64, seen: &Seen) -> Packet {
    let socket = |(address, port)| Socket { address: Address::v4(address), port };
    let (source, destination) = ends(seen.from);
    Packet {
        number,
        time: i64::try_from(seen.time).unwrap_or(i64::MAX),
        frame_len: seen.segment.packet_len() as u32,
        ip_id: Some(seen.number as u16),
        source: socket(source),
        destination: socket(destination),
        transport: Transport::Tcp(seen.segment.tcp),
    }
}

fn ends(from: Side) -> (([u8; 4], u16), ([u8; 4], u16)) {
    match from {
        Side::Client => (CLIENT, SERVER),
        Side::Server => (SERVER, CLIENT),
    }
}

/// The raw IPv4 packet (link type RAW) with right checksums; its payload is zeros. Its identification counts its
/// sender's packets, modulo 2^16, as Linux does for a connection.
pub fn frame(seen: &Seen) -> Vec<u8> {
    let (source, destination) = ends(seen.from);
    let segment = &seen.segment;
    let mut ip = Ipv4Header::new(0, 64, ip_number::TCP, source.0, destination.0).unwrap_or_default();
    ip.identification = seen.number as u16;
    ip.dont_fragment = true;
    let ecn = match segment.ecn {
        Ecn::NotCapable => etherparse::IpEcn::ZERO,
        Ecn::Ect1 => etherparse::IpEcn::ONE,
        Ecn::Ect0 => etherparse::IpEcn::TWO,
        Ecn::Ce => etherparse::IpEcn::THREE,
    };
    ip.ecn = ecn;
    let tcp = header(segment, source.1, destination.1);
    let payload = vec![0; segment.tcp.payload_len as usize];
    let builder = PacketBuilder::ip(etherparse::IpHeaders::Ipv4(ip, etherparse::Ipv4Extensions::default()));
    let builder = builder.tcp_header(tcp);
    let mut bytes = Vec::with_capacity(builder.size(payload.len()));
    // Writing into memory fails only where a length does not fit its field; no segment is that long.
    builder.write(&mut bytes, &payload).unwrap_or_default();
    bytes
}

fn header(segment: &Segment, source: u16, destination: u16) -> TcpHeader {
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
    // At most 40 bytes by construction; without them the segment is still readable.
    header.set_options(&options(segment)).unwrap_or_default();
    header
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
