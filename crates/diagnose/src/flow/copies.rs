//! Frames that a capture has more than once: taken on two interfaces, on both sides of a router, or from a mirror port
//! that copies what comes in and what goes out. A copy is no retransmission, no duplicate ACK and no second SYN, so it is
//! left out before anything else looks at it.
//!
//! What proves a copy is the identification of IPv4: with everything that TCP says the same, too, it is the same packet,
//! since a host numbers what it sends again anew (Linux `ip_select_ident_segs`, Windows, BSD). Where it is zero (RFC 6864
//! section 4.1 allows that), absent (IPv6), or the same in all packets, only time is left: nothing is sent again within
//! [`AT_ONCE`] unless the other side has said something. Duplicate ACKs may be equal to the last bit. They, and what comes
//! when the other side has said something, only count as copies where the rest of their direction is there twice.
//!
//! A firewall that draws sequence numbers anew shows the same packet with other numbers on its other side. Segments whose
//! numbers are far beyond any window are left out, too, unless there is nothing but them: no receiver would
//! have taken them (RFC 9293 section 3.10.7.4).
//!
//! Datagrams of UDP are left as they are: they have no sequence numbers, and hosts send equal ones with equal
//! identifications on purpose.

use std::collections::BTreeMap;

use tcpwhy_wire::{Packet, Tcp, TcpFlags};

use super::connection::Connection;
use super::fact::End;

/// How much later a copy may come that its identification proves: routers and firewalls hold a packet for milliseconds.
/// Old stacks that send the very same packet again (RFC 791 section 3.2 suggests it) wait for a timer of at least 200 ms.
/// ns.
const ROUTED: i64 = 20_000_000;
/// How much later without a proof: below the finest clock that a timer goes by (Linux' jiffy), and then only if the other
/// side was silent, since its ACKs make a sender send again, or if all else is there twice. ns.
const AT_ONCE: i64 = 1_000_000;
/// As many bits of a packet's hash tell its place. 4,096 packets are remembered, 128 KiB of them: a gigabit's for some
/// milliseconds.
const PLACE_BITS: u32 = 10;
/// So many packets have a place. With one, one packet in 400 is gone when its copy comes behind ten others; with four, none.
const AT_A_PLACE: usize = 4;
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
enum Seen {
    /// A packet as any other.
    New,
    /// The connection has it already.
    Again,
    /// Another connection has it: the addresses were translated between two places of the capture.
    Elsewhere,
}

/// A packet that passed.
#[derive(Clone, Copy, Debug, Default)]
struct Print {
    /// Everything but its time and its addresses; 0 where there is none.
    hash: u64,
    time: i64,
    /// The place of its connection's record.
    connection: u32,
    /// Packets that the other side had sent by then, and segments with data that its own side had.
    heard: u32,
    sent: u32,
}

/// Segments in a row of one connection that were left out for their far numbers, by which end sent them.
#[derive(Clone, Copy, Debug, Default)]
struct Strays {
    count: [u8; 2],
    /// The identification of the last.
    ids: [u16; 2],
}

/// How many copies a connection had, by which end sent them.
#[derive(Clone, Copy, Debug, Default)]
struct Copied {
    all: [u32; 2],
    /// Those of segments that a host does not send twice at once: with data, SYN or FIN.
    telling: [u32; 2],
}

/// The packets that passed last, and the copies among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    /// Each in the place that its hash tells, the latest first; none before the first packet.
    prints: Vec<[Print; AT_A_PLACE]>,
    /// The capture's first copy: which packet, and when. Packet 0 where there is none.
    pub(crate) first: (u64, i64),
    /// By the place of the connection's record.
    copied: BTreeMap<u32, Copied>,
    /// The connections whose last segment had far numbers, by place: next to none at a time.
    strays: BTreeMap<u32, Strays>,
    /// The connections that have packets in common with an earlier one, by place.
    twins: BTreeMap<u32, Twin>,
}

impl Copies {
    /// Whether a packet of the connection whose record is at that place, which passes at `time`, is to be left out.
    #[inline]
    pub(crate) fn leave_out(
        &mut self,
        packet: &Packet,
        time: i64,
        index: u32,
        connection: &Connection,
        from: End,
    ) -> bool {
        let Some(tcp) = packet.tcp() else { return false };
        let (heard, sent) = (connection.halves[1 - from].packets, connection.halves[from].segments);
        let now = Print { hash: hash_of(packet.ip_id, tcp), time, connection: index, heard, sent };
        let is_copy = self.look(packet, tcp, now, connection, from) == Seen::Again;
        if is_copy {
            self.count(packet, now, from);
        }
        is_copy || self.is_stray(packet, tcp, now, connection, from)
    }

    /// Tells a packet from one that passed already, and remembers it.
    #[inline]
    fn look(&mut self, packet: &Packet, tcp: &Tcp, now: Print, connection: &Connection, from: End) -> Seen {
        if self.prints.is_empty() {
            self.prints = vec![Default::default(); 1 << PLACE_BITS];
        }
        let place = (now.hash >> (u64::BITS - PLACE_BITS)) as usize;
        let alike = |before: &Print| before.hash == now.hash && (now.time - before.time).abs() <= ROUTED;
        let Some(nth) = self.prints[place].iter().position(alike) else {
            self.remember(place, now);
            return Seen::New;
        };
        let before = self.prints[place][nth];
        let half = &connection.halves[from];
        let is_proved = packet.ip_id.is_some_and(|id| half.idents.are_told_apart(id));
        let seen = judge(tcp, is_proved, before, now, || self.is_doubled(before, connection, from));
        match seen {
            Seen::New => self.prints[place][nth] = now,
            // What else could have been sent again stands for one copy: the next one may be a duplicate ACK, or a
            // retransmission.
            Seen::Again if !is_proved && (is_bare(tcp) || now.heard != before.heard) => {
                self.prints[place][nth] = Print::default();
            }
            Seen::Again => {}
            Seen::Elsewhere => {
                let [one, other] = [before.connection, now.connection];
                self.twins.entry(one.max(other)).or_default().add(one.min(other));
            }
        }
        seen
    }

    /// Remembers a packet in its place, instead of the one that has been there longest.
    #[inline]
    fn remember(&mut self, place: usize, now: Print) {
        let prints = &mut self.prints[place];
        prints.copy_within(..AT_A_PLACE - 1, 1);
        prints[0] = now;
    }

    #[cold]
    fn count(&mut self, packet: &Packet, now: Print, from: End) {
        let copied = self.copied.entry(now.connection).or_default();
        let is_telling = packet.tcp().is_some_and(|tcp| !is_bare(tcp));
        copied.all[from] = copied.all[from].saturating_add(1);
        copied.telling[from] = copied.telling[from].saturating_add(u32::from(is_telling));
        if self.first.0 == 0 {
            self.first = (packet.number, now.time);
        }
    }

    /// Whether the capture has at least every other segment of this direction twice, of those that passed before this
    /// packet; the copies of later ones may still come. Bare ACKs, which may be all that a receiver sends, do not count, since
    /// what they are is asked; where there is nothing else, the other direction tells.
    #[cold]
    fn is_doubled(&self, packet: Print, connection: &Connection, from: End) -> bool {
        let Some(copied) = self.copied.get(&packet.connection) else { return false };
        let (twice, segments) = match (copied.telling[from], packet.sent) {
            (0, 0) => (copied.telling[1 - from], connection.halves[1 - from].segments),
            own => own,
        };
        twice > 0 && u64::from(twice) * 2 >= u64::from(segments)
    }

    /// Whether a segment has the numbers of another place, behind a device that rewrites them; counts it as a copy if the
    /// identification says so. A reset may be forged, and a SYN may begin another connection.
    #[inline]
    fn is_stray(
        &mut self,
        packet: &Packet,
        tcp: &Tcp,
        now: Print,
        connection: &Connection,
        from: End,
    ) -> bool {
        let (is_far, is_ack_far) = how_far(tcp, connection, from);
        if !is_far && self.strays.is_empty() {
            return false;
        }
        self.judge_stray(packet, (is_far, is_ack_far || !tcp.flags.has(TcpFlags::SYN)), now, connection, from)
    }

    /// The same of a segment whose numbers are far, or that may be the copy of one.
    #[cold]
    fn judge_stray(
        &mut self,
        packet: &Packet,
        (is_far, is_surely): (bool, bool),
        now: Print,
        connection: &Connection,
        from: End,
    ) -> bool {
        let id = packet.ip_id.unwrap_or(0);
        if !is_far {
            let ended = self.end_strays(now.connection, from);
            if ended.is_some_and(|last| id != 0 && last == id) {
                self.count(packet, now, from);
            }
            return false;
        }
        if connection.halves[from].idents.is_last(id) {
            self.count(packet, now, from);
            return true;
        }
        let strays = self.strays.entry(now.connection).or_default();
        let is_left_out = is_surely && strays.count[from] < MOST_STRAYS;
        strays.count[from] = if is_left_out { strays.count[from] + 1 } else { 0 };
        strays.ids[from] = id;
        is_left_out
    }

    /// A segment of `from` has numbers of the connection again. The identification of the last one that had not, if one
    /// was left out.
    fn end_strays(&mut self, connection: u32, from: End) -> Option<u16> {
        let strays = self.strays.get_mut(&connection)?;
        let count = std::mem::take(&mut strays.count[from]);
        let id = strays.ids[from];
        if strays.count == [0, 0] {
            self.strays.remove(&connection);
        }
        (count > 0).then_some(id)
    }

    /// Packets of the connection that were left out as copies of others.
    pub(crate) fn of(&self, connection: u32) -> u64 {
        self.copied
            .get(&connection)
            .map_or(0, |copied| copied.all.iter().map(|copied| u64::from(*copied)).sum())
    }

    /// The connection of which this one, that has so many packets, is nothing but a copy with other addresses.
    pub(crate) fn original(&self, connection: u32, packets: u64) -> Option<u32> {
        self.twins.get(&connection)?.original(packets)
    }

    /// Records get new places: those for which `keep` has true, in the same order.
    pub(crate) fn move_up(&mut self, keep: &[bool]) {
        let kept = (0_u32..).zip(keep).filter(|(_, keep)| **keep);
        let places: BTreeMap<u32, u32> = kept.map(|(old, _)| old).zip(0..).collect();
        let copied = std::mem::take(&mut self.copied).into_iter();
        self.copied = copied.filter_map(|(old, one)| Some((*places.get(&old)?, one))).collect();
        self.strays.clear();
        self.twins.clear();
        self.prints.fill(Default::default());
    }
}

/// What a segment is whose print is the same as that of one before; whether its identification proves that, and whether
/// its direction is there twice.
#[cold]
fn judge(tcp: &Tcp, is_proved: bool, before: Print, now: Print, is_doubled: impl Fn() -> bool) -> Seen {
    if before.connection != now.connection {
        let is_one = is_proved && !tcp.flags.has(TcpFlags::RST);
        return if is_one { Seen::Elsewhere } else { Seen::New };
    }
    let at_once = (now.time - before.time).abs() <= AT_ONCE;
    let may_be_anew = is_bare(tcp) || now.heard != before.heard;
    if is_proved || at_once && (!may_be_anew || is_doubled()) { Seen::Again } else { Seen::New }
}

/// Whether a segment of `from` has a number far from all that the connection has, and whether it is the acknowledgment.
#[inline]
fn how_far(tcp: &Tcp, connection: &Connection, from: End) -> (bool, bool) {
    if tcp.flags.has(TcpFlags::RST) || tcp.flags.are_opening() {
        return (false, false);
    }
    let is_far = |number: u32, of: End| {
        let half = &connection.halves[of];
        half.started && (number.wrapping_sub(half.next as u32) as i32).unsigned_abs() > WIDEST
    };
    let is_ack_far = tcp.flags.has(TcpFlags::ACK) && is_far(tcp.ack, 1 - from);
    (is_ack_far || is_far(tcp.seq, from), is_ack_far)
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

/// What a connection has in common with another one that began before it.
#[derive(Clone, Copy, Debug, Default)]
struct Twin {
    /// The place of the other one's record.
    of: u32,
    /// Packets that both have.
    common: u32,
}

impl Twin {
    /// One more packet is also one of the connection `of`.
    fn add(&mut self, of: u32) {
        self.common = if self.of == of { self.common.saturating_add(1) } else { 1 };
        self.of = of;
    }

    /// The connection of which this one, that has so many packets, is nothing but a copy with other addresses.
    fn original(&self, packets: u64) -> Option<u32> {
        let is_whole = u64::from(self.common) * 100 >= packets * SHARE_IN_COMMON;
        (self.common >= FEWEST_IN_COMMON && is_whole).then_some(self.of)
    }
}
