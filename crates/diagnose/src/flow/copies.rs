//! Frames that a capture has more than once: taken on two interfaces, on both sides of a router, or from a mirror port
//! that copies what comes in and what goes out. A copy is no retransmission, no duplicate ACK and no second SYN, so it is
//! left out before anything else looks at it.
//!
//! What proves a copy is the identification of IPv4: with everything that TCP says the same, too, it is the same packet,
//! since a host numbers what it sends again anew (Linux `ip_select_ident_segs`, Windows, BSD). Where it is zero (RFC 6864
//! section 4.1 allows that), absent (IPv6), or the same in all packets, only time is left: nothing is sent again within
//! [`AT_ONCE`] unless the other side has said something. Duplicate ACKs may be equal to the last bit, and only count as
//! copies where the rest of their direction is there twice.

use tcpwhy_wire::{Packet, Tcp, TcpFlags, Transport};

use super::connection::Connection;
use super::fact::End;

/// How much later a copy may come that its identification proves: routers and firewalls hold a packet for milliseconds.
/// Old stacks that send the very same packet again (RFC 791 section 3.2 suggests it) wait for a timer of at least 200 ms.
/// ns.
const ROUTED: i64 = 20_000_000;
/// How much later without a proof: below the finest clock that a timer goes by (Linux' jiffy), and then only if the other
/// side was silent, since its ACKs make a sender send again. ns.
const AT_ONCE: i64 = 1_000_000;
/// As many bits of a packet's hash tell its place. 4,096 packets are remembered, 96 KiB of them: a gigabit's for some
/// milliseconds.
const PLACE_BITS: u32 = 12;
/// Fewer packets in common are an accident of two connections rather than one of them, seen before and behind a
/// translator of addresses.
const FEWEST_IN_COMMON: u32 = 4;
/// …and so is less than this share of the second one's packets: handshakes of a scan are all alike. Percent.
const SHARE_IN_COMMON: u64 = 80;

/// What a packet is, beside what passed just before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A packet as any other.
    New,
    /// The connection has it already.
    Again,
    /// Another connection, of that number, has it: the addresses were translated between two places of the capture.
    Elsewhere(u32),
}

/// A packet that passed.
#[derive(Clone, Copy, Debug, Default)]
struct Print {
    /// Everything but its time and its addresses; 0 where there is none.
    hash: u64,
    time: i64,
    /// Its connection's number.
    connection: u32,
    /// Packets that the other side had sent by then.
    heard: u32,
}

/// The packets that passed last, and the copies among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    /// Each in the place that its hash tells; none before the first packet.
    prints: Vec<Print>,
    /// The capture's first copy: which packet, and when. Packet 0 where there is none.
    pub(crate) first: (u64, i64),
}

impl Copies {
    /// Tells a packet of the connection of that number, which passes at `time`, from one that passed already.
    #[inline]
    pub(crate) fn look(
        &mut self,
        packet: &Packet,
        time: i64,
        number: u32,
        connection: &Connection,
        from: End,
    ) -> Seen {
        let hash = hash_of(packet);
        let heard = connection.halves[1 - from].packets;
        let Some(print) = self.prints.get_mut((hash >> (u64::BITS - PLACE_BITS)) as usize) else {
            self.prints = vec![Print::default(); 1 << PLACE_BITS];
            return Seen::New;
        };
        let before = *print;
        let now = Print { hash, time, connection: number, heard };
        if before.hash != hash || (time - before.time).abs() > ROUTED {
            *print = now;
            return Seen::New;
        }
        let seen = judge(packet, before, now, connection, from);
        // An equal ACK without a proof stands for one copy: the next one may be a duplicate ACK.
        if seen == Seen::New || seen == Seen::Again && is_bare(packet) && !is_proved(packet, connection, from) {
            *print = if seen == Seen::New { now } else { Print::default() };
        }
        if seen == Seen::Again && self.first.0 == 0 {
            self.first = (packet.number, time);
        }
        seen
    }

    /// Forgets what passed: connections are numbered anew.
    pub(crate) fn forget(&mut self) {
        self.prints.fill(Print::default());
    }
}

/// What a packet is whose print is the same as that of one before.
#[cold]
fn judge(packet: &Packet, before: Print, now: Print, connection: &Connection, from: End) -> Seen {
    let is_proved = is_proved(packet, connection, from);
    if before.connection != now.connection {
        let is_one = is_proved && packet.tcp().is_some_and(|tcp| !tcp.flags.has(TcpFlags::RST));
        return if is_one { Seen::Elsewhere(before.connection) } else { Seen::New };
    }
    let at_once = (now.time - before.time).abs() <= AT_ONCE && now.heard == before.heard;
    let half = &connection.halves[from];
    let is_doubled = half.copied > 0 && u64::from(half.copied) * 2 >= u64::from(half.packets);
    if is_proved || at_once && packet.tcp().is_some() && (!is_bare(packet) || is_doubled) {
        Seen::Again
    } else {
        Seen::New
    }
}

/// Whether the packet's identification is that of no other packet.
fn is_proved(packet: &Packet, connection: &Connection, from: End) -> bool {
    packet.ip_id.is_some_and(|id| connection.halves[from].idents.are_told_apart(id))
}

/// Whether it moves nothing in the sequence space, so that hosts may well send it twice.
fn is_bare(packet: &Packet) -> bool {
    let control = TcpFlags::SYN | TcpFlags::FIN;
    packet.tcp().is_none_or(|tcp| tcp.payload_len == 0 && !tcp.flags.has(control))
}

/// Everything that copies have in common. The same for every run: a report must not depend on chance.
#[inline]
fn hash_of(packet: &Packet) -> u64 {
    let id = u64::from(packet.ip_id.unwrap_or(0));
    match &packet.transport {
        Transport::Tcp(tcp) => hash_of_segment(id, tcp),
        Transport::Udp(udp) => {
            let ports = u64::from(packet.source.port) << 16 | u64::from(packet.destination.port);
            fold(ports << 16 | id, u64::from(udp.payload_len)) | 1
        }
    }
}

#[inline]
fn hash_of_segment(id: u64, tcp: &Tcp) -> u64 {
    let numbers = u64::from(tcp.seq) << 32 | u64::from(tcp.ack);
    let header = u64::from(tcp.flags.0) << 48 | u64::from(tcp.window) << 32 | u64::from(tcp.payload_len);
    let (stamp, echo) = tcp.options.timestamps.unwrap_or_default();
    let (left, right) = tcp.options.sack.as_slice().first().copied().unwrap_or_default();
    let options = u64::from(stamp) << 32 | u64::from(echo);
    let sacked = u64::from(left) << 32 | u64::from(right);
    fold(fold(numbers, header ^ id << 16) ^ sacked, options ^ id) | 1
}

/// Two numbers as one, each bit of which depends on all of theirs (a folded multiplication, as in foldhash; the constants
/// are the first digits of pi).
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x243f_6a88_85a3_08d3) * u128::from(b ^ 0x1319_8a2e_0370_7344);
    (product as u64) ^ (product >> 64) as u64
}

/// What a connection has in common with another one that began before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Twin {
    /// The other one's number.
    of: u32,
    /// Packets that both have.
    common: u32,
}

impl Twin {
    /// One more packet is also one of the connection `of`.
    pub(crate) fn add(&mut self, of: u32) {
        self.common = if self.of == of { self.common.saturating_add(1) } else { 1 };
        self.of = of;
    }

    /// The connection of which this one, that has so many packets, is nothing but a copy with other addresses.
    pub(crate) fn original(&self, packets: u64) -> Option<u32> {
        let is_whole = u64::from(self.common) * 100 >= packets * SHARE_IN_COMMON;
        (self.common >= FEWEST_IN_COMMON && is_whole).then_some(self.of)
    }
}
