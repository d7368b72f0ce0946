//! Frames that a capture has more than once: taken on two interfaces, on both sides of a router, or from a mirror port
//! that copies what comes in and what goes out. A copy is no retransmission, no duplicate ACK and no second SYN, so it is
//! left out before anything else looks at it.
//!
//! What proves a copy is the identification of IPv4: with everything that TCP says the same, too, it is the same packet,
//! since a host numbers what it sends again anew (Linux `ip_select_ident_segs`, Windows, BSD). Where it is zero (RFC 6864
//! section 4.1 allows that), absent (IPv6), or the same in all packets, only time is left: nothing is sent again within
//! [`AT_ONCE`] unless the other side has said something. Duplicate ACKs may be equal to the last bit, and only count as
//! copies where the rest of their direction is there twice.
//!
//! A firewall that draws sequence numbers anew shows the same packet with other numbers on its other side. Segments whose
//! numbers are far beyond any window are left out, too, unless there is nothing but them: no receiver would
//! have taken them (RFC 9293 section 3.10.7.4).
//!
//! Datagrams of UDP are left as they are: they have no sequence numbers, and hosts send equal ones with equal
//! identifications on purpose.

use tcpwhy_wire::{Packet, Tcp, TcpFlags};

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
/// Numbers farther apart than this, 64 MiB, are hardly of one sequence space: few windows are as large, and offsets drawn at
/// random are nearer in 3 of 100 cases only. Where a capture has a gap as wide, a few packets more are missing.
const WIDEST: u32 = 1 << 26;
/// So many segments in a row of one direction are left out for their numbers; then these are the connection's.
const MOST_STRAYS: u8 = 3;
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
        let Some(tcp) = packet.tcp() else { return Seen::New };
        let hash = hash_of(packet.ip_id, tcp);
        let heard = connection.halves[1 - from].packets;
        if self.prints.is_empty() {
            self.prints = vec![Print::default(); 1 << PLACE_BITS];
        }
        let print = &mut self.prints[(hash >> (u64::BITS - PLACE_BITS)) as usize];
        let before = *print;
        let now = Print { hash, time, connection: number, heard };
        if before.hash != hash || (time - before.time).abs() > ROUTED {
            *print = now;
            return Seen::New;
        }
        let is_proved = packet.ip_id.is_some_and(|id| connection.halves[from].idents.are_told_apart(id));
        let seen = judge(tcp, is_proved, before, now, connection.halves[from].is_doubled());
        match seen {
            Seen::New => *print = now,
            // An equal ACK without a proof stands for one copy: the next one may be a duplicate ACK.
            Seen::Again if !is_proved && is_bare(tcp) => *print = Print::default(),
            _ => {}
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

/// What a segment is whose print is the same as that of one before; whether its identification proves that, and whether
/// its direction is there twice.
#[cold]
fn judge(tcp: &Tcp, is_proved: bool, before: Print, now: Print, is_doubled: bool) -> Seen {
    if before.connection != now.connection {
        let is_one = is_proved && !tcp.flags.has(TcpFlags::RST);
        return if is_one { Seen::Elsewhere(before.connection) } else { Seen::New };
    }
    let at_once = (now.time - before.time).abs() <= AT_ONCE && now.heard == before.heard;
    if is_proved || at_once && (!is_bare(tcp) || is_doubled) { Seen::Again } else { Seen::New }
}

/// Whether it moves nothing in the sequence space, so that hosts may well send it twice.
fn is_bare(tcp: &Tcp) -> bool {
    tcp.payload_len == 0 && !tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN)
}

/// Everything that copies have in common. The same for every run: a report must not depend on chance.
#[inline]
fn hash_of(id: Option<u16>, tcp: &Tcp) -> u64 {
    let id = u64::from(id.unwrap_or(0));
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

impl Connection {
    /// Whether a segment of `from` has the numbers of another place, behind a device that rewrites them; counts it as a
    /// copy if the identification says so. A reset may be forged, and a SYN has numbers of its own.
    pub(crate) fn is_stray(&mut self, packet: &Packet, tcp: &Tcp, from: End) -> bool {
        let is_far = self.is_far_off(tcp, from);
        let half = &mut self.halves[from];
        let id = packet.ip_id.unwrap_or(0);
        if !is_far {
            let is_copied = half.strays > 0 && id != 0 && half.stray_id == id;
            half.copied = half.copied.saturating_add(u32::from(is_copied));
            half.strays = 0;
            return false;
        }
        if half.idents.is_last(id) {
            half.copied = half.copied.saturating_add(1);
            return true;
        }
        (half.strays, half.stray_id) = (half.strays + 1, id);
        if half.strays > MOST_STRAYS {
            half.strays = 0;
            return false;
        }
        true
    }

    #[inline]
    fn is_far_off(&self, tcp: &Tcp, from: End) -> bool {
        if tcp.flags.has(TcpFlags::RST) || tcp.flags.are_opening() {
            return false;
        }
        let is_far = |number: u32, of: End| {
            let half = &self.halves[of];
            half.started && (number.wrapping_sub(half.next as u32) as i32).unsigned_abs() > WIDEST
        };
        tcp.flags.has(TcpFlags::ACK) && is_far(tcp.ack, 1 - from)
            || !tcp.flags.has(TcpFlags::SYN) && is_far(tcp.seq, from)
    }
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
