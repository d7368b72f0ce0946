//! One transfer in a capture: what its sender sent and what was acknowledged, as offsets from its first byte.

use tcpwhy_wire::{Packet, Tcp, TcpFlags};

use super::figures::picture;
use crate::clock::ms_between;

/// A picture in which empty cells show as a baseline, so that columns of pictures line up.
pub(crate) fn baseline(values: &[f64]) -> String {
    picture(values).replace(' ', "·")
}

/// What passed the place of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Bytes of the sender.
    Data {
        /// ns since the epoch.
        time: i64,
        /// Offset of the first byte.
        start: u32,
        /// Offset after the last byte.
        end: u32,
    },
    /// A segment of the receiver.
    Ack {
        /// ns since the epoch.
        time: i64,
        /// Offset up to which everything has arrived.
        upto: u32,
    },
}

impl Seen {
    /// When, in ns since the epoch.
    pub(crate) fn time(self) -> i64 {
        match self {
            Self::Data { time, .. } | Self::Ack { time, .. } => time,
        }
    }
}

/// The TCP header of `packet` if it belongs to a connection with the server on `port`, and whether the server
/// sent it.
pub(crate) fn with_server(packet: &Packet, port: u16) -> Option<(&Tcp, bool)> {
    let (from, to) = (packet.source.port == port, packet.destination.port == port);
    packet.tcp().filter(|_| from || to).map(|tcp| (tcp, from))
}

/// The transfer of the server that listens on `port`; the capture has one connection to it, from its handshake
/// on. Offsets count modulo 2^32: transfers of the lab are far shorter.
pub(crate) fn sent_from(packets: &[Packet], port: u16) -> Vec<Seen> {
    let mut first = None;
    let mut seen = Vec::new();
    for packet in packets {
        let Some((tcp, from_server)) = with_server(packet, port) else { continue };
        if tcp.flags.has(TcpFlags::SYN) {
            // The SYN counts as one (RFC 9293 section 3.4).
            first = if from_server { Some(tcp.seq.wrapping_add(1)) } else { first };
            continue;
        }
        let Some(first) = first else { continue };
        if from_server && tcp.payload_len > 0 {
            let start = tcp.seq.wrapping_sub(first);
            seen.push(Seen::Data { time: packet.time, start, end: start.wrapping_add(tcp.payload_len) });
        } else if !from_server && tcp.flags.has(TcpFlags::ACK) && !tcp.flags.has(TcpFlags::RST) {
            seen.push(Seen::Ack { time: packet.time, upto: tcp.ack.wrapping_sub(first) });
        }
    }
    seen
}

/// Round trips in ms as the sender saw them, with the time of each ACK: from a segment to the ACK that first
/// covers it. Bytes that were sent twice give none (Karn's algorithm: RFC 6298 section 3).
pub(crate) fn round_trips(seen: &[Seen]) -> Vec<(i64, f64)> {
    let (mut in_flight, mut highest, mut samples) = (Vec::<(u32, i64)>::new(), 0, Vec::new());
    for seen in seen {
        match *seen {
            Seen::Data { time, start, end } if start >= highest => {
                highest = end;
                in_flight.push((end, time));
            }
            Seen::Data { start, .. } => in_flight.retain(|&(end, _)| end <= start),
            Seen::Ack { time, upto } => {
                let covered = in_flight.iter().take_while(|(end, _)| *end <= upto).count();
                if let Some((_, sent)) = in_flight.drain(..covered).next_back() {
                    samples.push((time, ms_between(sent, time)));
                }
            }
        }
    }
    samples
}

#[cfg(test)]
pub(crate) mod tests {
    use tcpwhy_wire::{Socket, Transport};

    use super::*;

    /// Data at `ms`, bytes `start..end`.
    pub(crate) fn data(ms: i64, start: u32, end: u32) -> Seen {
        Seen::Data { time: ms * 1_000_000, start, end }
    }

    /// An ACK at `ms` up to `upto`.
    pub(crate) fn ack(ms: i64, upto: u32) -> Seen {
        Seen::Ack { time: ms * 1_000_000, upto }
    }

    fn packet(ms: i64, from_server: bool, flags: u16, seq: u32, ack: u32, payload_len: u32) -> Packet {
        let (server, client) =
            (Socket { port: 5001, ..Socket::default() }, Socket { port: 40_000, ..Socket::default() });
        let (source, destination) = if from_server { (server, client) } else { (client, server) };
        let tcp = Tcp { seq, ack, payload_len, flags: TcpFlags(flags), ..Tcp::default() };
        Packet {
            time: ms * 1_000_000,
            source,
            destination,
            transport: Transport::Tcp(tcp),
            ..Packet::default()
        }
    }

    #[test]
    fn offsets_count_from_the_byte_after_the_syn_also_where_numbers_wrap() {
        let first = u32::MAX - 9;
        let packets = [
            packet(0, false, TcpFlags::SYN, 70, 0, 0),
            packet(1, true, TcpFlags::SYN | TcpFlags::ACK, first - 1, 71, 0),
            packet(2, false, TcpFlags::ACK, 71, first, 1),
            packet(3, true, TcpFlags::ACK, first, 72, 30),
            packet(4, false, TcpFlags::ACK, 72, 20, 0),
            packet(5, false, TcpFlags::RST | TcpFlags::ACK, 72, 20, 0),
        ];
        assert_eq!(sent_from(&packets, 5001), [ack(2, 0), data(3, 0, 30), ack(4, 30)]);
        assert_eq!(sent_from(&packets, 5002), []);
    }

    #[test]
    fn a_round_trip_ends_with_the_ack_that_covers_the_segment() {
        let seen = [data(0, 0, 10), data(1, 10, 20), ack(5, 0), ack(22, 10), ack(40, 20), ack(41, 20)];
        assert_eq!(round_trips(&seen), [(22_000_000, 22.0), (40_000_000, 39.0)]);
    }

    #[test]
    fn bytes_sent_twice_give_no_round_trip() {
        let seen =
            [data(0, 0, 10), data(1, 10, 20), data(30, 0, 10), ack(50, 20), data(60, 20, 30), ack(82, 30)];
        assert_eq!(round_trips(&seen), [(82_000_000, 22.0)]);
    }
}
