//! Keeps what is wanted of a recorded connection while it is analysed.
//!
//! This is the one place where packets are kept, and their number is bounded: beyond it every other one is dropped, again
//! and again, so that what is left of a long connection still shows all of its life.

use std::collections::VecDeque;

use tcpwhy_wire::{Tcp, TcpFlags, Udp};

use super::connection::Connection;
use super::exchange::Standing;
use super::fact::End;
use super::sequence;
use super::series::{Exchange, Kind, Mark, RoundTrip, Sack, Series, Wanted};
use crate::report::Side;

/// Packets of the connection that are kept before and after one that is wanted in any case: what a wait began with and what
/// it released, with the ACKs between.
const NEAR: usize = 16;
/// The least that is kept of anything. What is dropped by halves needs something to halve.
const LEAST: usize = 1 << 10;

/// A recorded connection on its way.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    series: Series,
    exchanges: Sparse<Exchange>,
    round_trips: Sparse<RoundTrip>,
    /// One of so many packets of each side is kept.
    every: u64,
    most: usize,
    /// Packets seen of each end. Counted apart: where data and ACKs take turns, one of two packets would be all of one
    /// side's and none of the other's.
    seen: [u64; 2],
    /// Where the relative numbers of each end begin.
    bases: [Option<u64>; 2],
    /// Packets still to come that are kept in any case, with those around them.
    near: VecDeque<u64>,
    /// So many more are kept because of the last one of them.
    following: usize,
    /// The last packets that were left out, with their SACK blocks, as long as one to come may want them.
    recent: VecDeque<(Mark, Vec<Sack>)>,
    /// The packet with which the present request began.
    request: u64,
}

/// What the analysis knew of a connection before a packet, to see how it took that packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    segments: u32,
    retransmitted: u32,
    exchanges: Standing,
    /// Whether data of the other end was being timed.
    is_timing: bool,
    /// Bytes of the other end that were ACKed and never seen.
    unseen: u64,
}

impl Before {
    pub(crate) fn of(connection: &Connection, from: End) -> Self {
        let half = &connection.halves[from];
        Self {
            segments: half.segments,
            retransmitted: half.retransmitted(),
            exchanges: connection.exchanges.standing(),
            is_timing: connection.halves[1 - from].is_timing(),
            unseen: connection.halves[1 - from].unseen(),
        }
    }
}

impl Collector {
    /// Keeps what is `wanted`.
    pub(crate) fn new(wanted: &Wanted) -> Self {
        let most = wanted.most.max(LEAST);
        let mut near = wanted.near.clone();
        near.sort_unstable();
        Self {
            series: Series::default(),
            exchanges: Sparse::new(most),
            round_trips: Sparse::new(most),
            every: wanted.every.max(1),
            most,
            seen: [0; 2],
            bases: [None; 2],
            near: near.into(),
            following: 0,
            recent: VecDeque::new(),
            request: 0,
        }
    }

    /// Takes a segment that `connection` has just handled; `before` is what was known before that.
    pub(crate) fn take(
        &mut self,
        number: u64,
        tcp: &Tcp,
        from: End,
        connection: &Connection,
        before: Before,
    ) {
        let other = 1 - from;
        self.take_exchange(number, connection, before);
        let is_whole = connection.halves[other].unseen() == before.unseen;
        if before.is_timing && is_whole && !connection.halves[other].is_timing() {
            let (time, rtt) = (connection.last, connection.halves[other].rtt);
            self.round_trips.push(RoundTrip { from: side(other), time, rtt });
        }
        let is_syn = tcp.flags.has(TcpFlags::SYN);
        let seq = self.relative(connection, from, tcp.seq, is_syn);
        let has_ack = tcp.flags.has(TcpFlags::ACK);
        let ack = has_ack.then(|| self.relative(connection, other, tcp.ack, false));
        let mark = Mark {
            number,
            time: connection.last,
            from: side(from),
            kind: kind(tcp, before, Before::of(connection, from)),
            flags: tcp.flags,
            seq,
            len: tcp.payload_len,
            ack,
            window: window(tcp, connection, other),
        };
        let sacks = tcp.options.sack.as_slice().iter().filter_map(|&(left, right)| {
            let block = [left, right].map(|edge| self.relative(connection, other, edge, false));
            Some(Sack { time: mark.time, from: mark.from, ack: ack?, block: block.into() })
        });
        let sacks = sacks.collect();
        self.keep(mark, sacks, from);
    }

    /// Takes a datagram that `connection`, a UDP flow, has just handled; `before` is what was known before that.
    pub(crate) fn take_datagram(
        &mut self,
        number: u64,
        udp: Udp,
        from: End,
        connection: &Connection,
        before: Before,
    ) {
        self.take_exchange(number, connection, before);
        let sent = connection.halves[from].bytes - u64::from(udp.payload_len);
        let mark = Mark {
            number,
            time: connection.last,
            from: side(from),
            kind: Kind::Data,
            flags: TcpFlags::default(),
            seq: sent.cast_signed(),
            len: udp.payload_len,
            ack: None,
            window: None,
        };
        self.keep(mark, Vec::new(), from);
    }

    fn take_exchange(&mut self, number: u64, connection: &Connection, before: Before) {
        let now = connection.exchanges.standing();
        if now.number > before.exchanges.number {
            self.end_exchange(before.exchanges);
        }
        if now.is_new_request(before.exchanges) {
            self.request = number;
        }
    }

    fn end_exchange(&mut self, Standing { asked, answered, .. }: Standing) {
        self.exchanges.push(Exchange { start: asked, end: answered, number: self.request });
    }

    /// Keeps a packet, or leaves it out where one of some will do.
    fn keep(&mut self, mark: Mark, sacks: Vec<Sack>, from: End) {
        self.seen[from] += 1;
        if self.is_near(mark.number) {
            self.keep_recent();
        } else if !self.is_one_of_some(mark.flags, from) {
            self.series.dropped += 1;
            if !self.near.is_empty() {
                self.recent.push_back((mark, sacks));
                self.recent.drain(..self.recent.len().saturating_sub(NEAR));
            }
            return;
        }
        self.series.marks.push(mark);
        self.series.sacks.extend(sacks);
        if self.series.marks.len() >= self.most {
            self.series.dropped += drop_every_other(&mut self.series.marks, |mark| mark.from);
            self.every = self.every.saturating_mul(2);
        }
        if self.series.sacks.len() >= self.most {
            drop_every_other(&mut self.series.sacks, |sack| sack.from);
        }
    }

    /// Whether packet `number` is wanted in any case, or follows one that is.
    fn is_near(&mut self, number: u64) -> bool {
        if self.near.front().is_some_and(|next| *next <= number) {
            self.near.retain(|next| *next > number);
            self.following = NEAR;
            return true;
        }
        let follows = self.following > 0;
        self.following = self.following.saturating_sub(1);
        follows
    }

    /// Keeps the last packets that were left out, each at its place.
    fn keep_recent(&mut self) {
        let Some((first, _)) = self.recent.front() else { return };
        let (number, time) = (first.number, first.time);
        let Series { marks, sacks, dropped, .. } = &mut self.series;
        *dropped -= self.recent.len() as u64;
        let behind = marks.partition_point(|mark| mark.number < number);
        let sacks_behind = sacks.partition_point(|sack| sack.time < time);
        for (mark, its_sacks) in self.recent.drain(..) {
            marks.push(mark);
            sacks.extend(its_sacks);
        }
        marks[behind..].sort_by_key(|mark| mark.number);
        sacks[sacks_behind..].sort_by_key(|sack| sack.time);
    }

    /// Whether the present packet is one of those that are kept. SYN, FIN and RST always are, once and again.
    fn is_one_of_some(&self, flags: TcpFlags, from: End) -> bool {
        let is_rare = flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        is_rare || self.every == 1 || self.seen[from].is_multiple_of(self.every)
    }

    /// A sequence number of `end`'s direction, relative to that direction's first one.
    fn relative(&mut self, connection: &Connection, end: End, seq: u32, is_syn: bool) -> i64 {
        let half = &connection.halves[end];
        let seq = sequence::unwrap(seq, half.next);
        let first = if is_syn { seq } else { seq.wrapping_sub(1) };
        seq.wrapping_sub(*self.bases[end].get_or_insert(first)).cast_signed()
    }

    /// No more packets of `connection` will come, which is not finished yet.
    pub(crate) fn end(&mut self, connection: &Connection) {
        let standing = connection.exchanges.standing();
        if standing.is_answering() {
            self.end_exchange(standing);
        }
    }

    /// The series, now that the whole `connection` is known: the sides have names, round trips are those of the path.
    pub(crate) fn finish(self, connection: &Connection) -> Series {
        let mut series = self.series;
        series.round_trips = self.round_trips.all;
        let is_measured = connection.base_round_trip().is_some();
        for sample in series.round_trips.iter_mut().filter(|_| is_measured) {
            let sender = usize::from(sample.from != side(0));
            sample.rtt += connection.halves[1 - sender].part_or_zero();
        }
        if connection.exchanges.is_request_response() {
            series.exchanges = self.exchanges.all;
        }
        if connection.client() == Some(1) {
            let other = |side: Side| if side == Side::Client { Side::Server } else { Side::Client };
            series.marks.iter_mut().for_each(|mark| mark.from = other(mark.from));
            series.sacks.iter_mut().for_each(|sack| sack.from = other(sack.from));
            series.round_trips.iter_mut().for_each(|sample| sample.from = other(sample.from));
        }
        series
    }
}

/// At most so many of what comes one by one, evenly of all.
#[derive(Clone, Debug)]
struct Sparse<T> {
    all: Vec<T>,
    every: u64,
    seen: u64,
    most: usize,
}

impl<T> Sparse<T> {
    fn new(most: usize) -> Self {
        Self { all: Vec::new(), every: 1, seen: 0, most }
    }

    fn push(&mut self, one: T) {
        if self.seen.is_multiple_of(self.every) {
            self.all.push(one);
        }
        self.seen += 1;
        if self.all.len() >= self.most {
            let mut index = 0_usize;
            self.all.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every = self.every.saturating_mul(2);
        }
    }
}

/// An end's side as long as the client is not known.
fn side(end: End) -> Side {
    if end == 0 { Side::Client } else { Side::Server }
}

/// Drops every other one of each side's and returns how many those were.
fn drop_every_other<T>(all: &mut Vec<T>, side: impl Fn(&T) -> Side) -> u64 {
    let before = all.len();
    let mut counts = [0_u64; 2];
    all.retain(|one| {
        let count = &mut counts[usize::from(side(one) == Side::Server)];
        *count += 1;
        *count % 2 == 1
    });
    (before - all.len()) as u64
}

/// The window that a packet announces for the data of `other`, bytes, where its scale is known.
fn window(tcp: &Tcp, connection: &Connection, other: End) -> Option<u32> {
    let half = &connection.halves[other];
    let field = u32::from(tcp.window);
    // The window in a SYN is never scaled (RFC 7323 section 2.2), and no scale makes something of none.
    match tcp.flags.has(TcpFlags::SYN) || field == 0 {
        true => Some(field),
        false => half.scale_known.then_some(field << half.shift),
    }
}

/// How the analysis took a packet.
fn kind(tcp: &Tcp, before: Before, after: Before) -> Kind {
    if tcp.payload_len == 0 || tcp.flags.has(TcpFlags::SYN | TcpFlags::RST) {
        Kind::Bare
    } else if after.segments == before.segments {
        Kind::Probe
    } else if after.retransmitted > before.retransmitted {
        Kind::Retransmission
    } else {
        Kind::Data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: u64, from: Side, flags: u16) -> Mark {
        Mark {
            number,
            time: number as i64,
            from,
            kind: Kind::Bare,
            flags: TcpFlags(flags),
            seq: 0,
            len: 0,
            ack: None,
            window: None,
        }
    }

    fn kept(collector: &Collector) -> Vec<u64> {
        collector.series.marks.iter().map(|mark| mark.number).collect()
    }

    #[test]
    fn too_many_are_thinned_evenly_on_each_side() {
        let (client, server) = (Side::Client, Side::Server);
        let mut all: Vec<_> = (0..9).map(|n| (n, if n % 2 == 0 { client } else { server })).collect();
        assert_eq!(drop_every_other(&mut all, |one| one.1), 4);
        assert_eq!(all, [(0, client), (1, server), (4, client), (5, server), (8, client)]);
        let mut thinned = Collector::new(&Wanted { every: 4, ..Wanted::all(0) });
        for number in 1..=8 {
            let flags = if number == 5 { TcpFlags::FIN | TcpFlags::ACK } else { TcpFlags::ACK };
            thinned.keep(mark(number, client, flags), Vec::new(), 0);
        }
        assert_eq!((kept(&thinned), thinned.series.dropped), (vec![4, 5, 8], 5));
    }

    #[test]
    fn packets_near_what_is_wanted_stay_in_their_order() {
        let mut thinned = Collector::new(&Wanted { every: 50, near: vec![120, 100], ..Wanted::all(0) });
        for number in 1..=200 {
            let sack = Sack { time: number as i64, from: Side::Client, ack: 0, block: (0, 1) };
            thinned.keep(mark(number, Side::Client, TcpFlags::ACK), vec![sack], 0);
        }
        // 16 on each side of 100 and of 120, and every 50th elsewhere.
        let expected: Vec<u64> = [50].into_iter().chain(84..=136).chain([150, 200]).collect();
        assert_eq!(kept(&thinned), expected);
        let sacks: Vec<u64> = thinned.series.sacks.iter().map(|sack| sack.time as u64).collect();
        assert_eq!((sacks, thinned.series.dropped), (expected, 200 - 56));
        assert!(thinned.recent.is_empty(), "nothing is remembered once nothing is wanted");
    }

    #[test]
    fn nothing_is_kept_without_a_bound() {
        let mut thinned = Collector::new(&Wanted { most: 1, ..Wanted::all(0) });
        let mut sparse = Sparse::new(4);
        for number in 1..=100_000 {
            // Each of them is one that is always kept.
            thinned.keep(mark(number, Side::Client, TcpFlags::SYN), Vec::new(), 0);
            sparse.push(number - 1);
            assert!(thinned.series.marks.len() < LEAST && sparse.all.len() < 4);
        }
        assert_eq!(thinned.series.marks.len() as u64 + thinned.series.dropped, 100_000);
        assert_eq!(sparse.all, [0, 65_536]);
    }
}
