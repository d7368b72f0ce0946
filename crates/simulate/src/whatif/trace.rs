//! The packets of one connection, with numbers that do not wrap and windows in bytes.

use std::collections::HashMap;

use tcpwhy_wire::{Address, Packet, Socket, Tcp, TcpFlags, TcpOptions};

use super::Unfit;
use crate::tcp::from_wire;
use crate::world::Side;

/// Packets that a connection may have, and full segments that its bytes may fill: a replay takes some hundred bytes for
/// each, and a second for all of these.
pub const MOST_PACKETS: usize = 1 << 18;
/// No packet is farther from the first than this, 4.6 years: hostile clocks must not overflow a sum of some times; ns.
const FARTHEST: i64 = 1 << 57;

/// One segment as it passed the capture point. Offsets count the stream's bytes: the SYN is 0, the first byte 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// ns since the connection's first packet.
    pub(super) time: i64,
    pub(super) from: Side,
    pub(super) start: u64,
    pub(super) len: u32,
    pub(super) flags: TcpFlags,
    pub(super) ack: Option<u64>,
    /// Bytes.
    pub(super) window: u64,
    /// The range that its sender got twice (RFC 2883).
    pub(super) duplicate: Option<(u64, u64)>,
    /// It was lost behind the capture point.
    pub(super) is_lost: bool,
}

impl Passed {
    /// The offset after its last byte.
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    pub(super) fn has(&self, bits: u16) -> bool {
        self.flags.has(bits)
    }

    /// Whether it acknowledges and does nothing else.
    pub(super) fn is_pure_ack(&self) -> bool {
        self.len == 0 && self.ack.is_some() && !self.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
    }
}

/// One connection.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) packets: Vec<Passed>,
    /// Time of its first packet, ns on the capture's clock.
    pub(super) epoch: i64,
    /// The client's socket and the server's.
    pub(super) ends: [Socket; 2],
    /// What each side offered in its SYN: the client's, the server's.
    pub(super) offered: [TcpOptions; 2],
    /// Payload of a full segment, bytes (RFC 6691).
    pub(super) mss: u32,
}

/// Bytes that timestamps take of every segment (RFC 7323 section 3.2).
const TIMESTAMPS: u32 = 12;
/// The MSS of a peer that names none (RFC 9293 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// No shift is larger (RFC 7323 section 2.3).
const MOST_SHIFT: u8 = 14;

impl Trace {
    /// The packets of one connection, in the order of the capture.
    pub(super) fn of(packets: &[Packet]) -> Result<Self, Unfit> {
        if packets.len() > MOST_PACKETS {
            return Err(Unfit::TooLong);
        }
        let segments: Vec<(&Packet, &Tcp)> =
            packets.iter().filter_map(|packet| Some((packet, packet.tcp()?))).collect();
        let (ends, syns) = handshake(&segments)?;
        let offered = syns.map(|tcp| tcp.options);
        let scales = match offered.map(|options| options.window_scale) {
            [Some(client), Some(server)] => [client, server].map(|shift| shift.min(MOST_SHIFT)),
            _ => [0, 0],
        };
        let mut reader = Reader {
            client: ends[0],
            initial: syns.map(|tcp| tcp.seq),
            near: [0; 2],
            scales,
            epoch: segments[0].0.time.clamp(i64::MIN / 4, i64::MAX / 4),
        };
        let packets: Vec<Passed> = segments.iter().map(|(packet, tcp)| reader.read(packet, tcp)).collect();
        let mss = full_segment(offered);
        // A hostile sequence number may claim any number of bytes.
        if reader.near.iter().sum::<u64>() / u64::from(mss) > MOST_PACKETS as u64 {
            return Err(Unfit::TooLong);
        }
        Ok(Self { packets, epoch: reader.epoch, ends, offered, mss })
    }
}

/// Takes packets apart by connection, in the order in which connections begin. A new SYN between the same two sockets
/// begins another one.
pub fn connections(packets: &[Packet]) -> Vec<Vec<Packet>> {
    type End = (Address, u16);
    let mut latest: HashMap<(End, End), (usize, Option<u32>)> = HashMap::new();
    let mut all: Vec<Vec<Packet>> = Vec::new();
    for packet in packets {
        let Some(tcp) = packet.tcp() else { continue };
        let [one, other] = [packet.source, packet.destination].map(|end| (end.address, end.port));
        let syn = tcp.flags.are_opening().then_some(tcp.seq);
        let known = latest.entry((one.min(other), one.max(other))).or_insert((usize::MAX, None));
        let is_another = syn.is_some() && known.1.is_some() && syn != known.1;
        if known.0 == usize::MAX || is_another {
            *known = (all.len(), syn);
            all.push(Vec::new());
        }
        known.1 = known.1.or(syn);
        all[known.0].push(*packet);
    }
    all
}

/// The client's socket and the server's, and the SYNs of both.
fn handshake(segments: &[(&Packet, &Tcp)]) -> Result<([Socket; 2], [Tcp; 2]), Unfit> {
    let both = TcpFlags::SYN | TcpFlags::ACK;
    let syn = segments.iter().find(|(_, tcp)| tcp.flags.0 & both == TcpFlags::SYN);
    let answer = segments.iter().find(|(_, tcp)| tcp.flags.0 & both == both);
    match (syn, answer) {
        (Some((packet, syn)), Some((_, answer))) => {
            Ok(([packet.source, packet.destination], [**syn, **answer]))
        }
        _ => Err(Unfit::NoHandshake),
    }
}

fn full_segment(offered: [TcpOptions; 2]) -> u32 {
    let [client, server] = offered.map(|options| options.mss.unwrap_or(DEFAULT_MSS));
    let timed = offered.iter().all(|options| options.timestamps.is_some());
    u32::from(client.min(server)).saturating_sub(if timed { TIMESTAMPS } else { 0 }).max(1)
}

struct Reader {
    client: Socket,
    initial: [u32; 2],
    /// The highest offset of each side so far.
    near: [u64; 2],
    scales: [u8; 2],
    epoch: i64,
}

impl Reader {
    fn read(&mut self, packet: &Packet, tcp: &Tcp) -> Passed {
        let from = if packet.source == self.client { Side::Client } else { Side::Server };
        let (own, peer) = (from as usize, from.other() as usize);
        let start = from_wire(tcp.seq, self.initial[own], self.near[own]);
        let offset = |wire| from_wire(wire, self.initial[peer], self.near[peer]);
        let ack = tcp.flags.has(TcpFlags::ACK).then(|| offset(tcp.ack));
        let duplicate =
            tcp.options.sack.as_slice().first().map(|(left, right)| (offset(*left), offset(*right)));
        let is_syn = tcp.flags.has(TcpFlags::SYN);
        self.near[own] = self.near[own].max(start + u64::from(tcp.payload_len));
        Passed {
            time: packet.time.saturating_sub(self.epoch).clamp(-FARTHEST, FARTHEST),
            from,
            start,
            len: tcp.payload_len,
            flags: tcp.flags,
            ack,
            // A SYN's window is not scaled (RFC 7323 2.2).
            window: u64::from(tcp.window) << if is_syn { 0 } else { self.scales[own] },
            duplicate: duplicate.filter(|(_, right)| ack.is_some_and(|ack| *right <= ack)),
            is_lost: false,
        }
    }
}
