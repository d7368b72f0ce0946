//! The packets of one connection as a time-sequence plot shows them, for who asked for that connection.
//!
//! This is the one place where packets are kept, and their number is bounded: beyond it every other one is dropped,
//! again and again, so that a plot of a long connection still shows all of its life.

use tcpwhy_wire::Tcp;
pub use tcpwhy_wire::TcpFlags;

use super::connection::Connection;
use super::fact::End;
use super::sequence;
use crate::report::Side;

/// Packets kept of one connection, and SACK blocks: 72 MiB and 40 MiB. A plot a thousand pixels wide still has a
/// thousand packets for each of them.
const MOST: usize = 1 << 20;

/// What a packet carries, as the analysis took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// New data.
    Data,
    /// Data that was sent before, or that was lost before and comes late.
    Retransmission,
    /// One byte that asks whether the other side is there or its window has opened (RFC 9293 sections 3.8.4, 3.8.6.1).
    Probe,
    /// No data: an ACK alone, or a SYN, FIN or RST.
    Bare,
}

/// One packet. Sequence numbers are relative, as Wireshark shows them: a SYN has 0 and the first byte of data 1; where
/// the capture began later, the first byte it shows has 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Position in the capture from 1, as Wireshark numbers frames.
    pub number: u64,
    /// When it passed, ns on the capture's clock; never before the mark before it.
    pub time: i64,
    /// Who sent it.
    pub from: Side,
    /// What it carries.
    pub kind: Kind,
    /// Its flags.
    pub flags: TcpFlags,
    /// Its sequence number in the sender's direction.
    pub seq: i64,
    /// Payload bytes.
    pub len: u32,
    /// Which byte of the other direction its sender expects next; `None` without the ACK flag.
    pub ack: Option<i64>,
    /// The window it announces, bytes, scaled; `None` where the scale is not known, since the handshake was not captured.
    pub window: Option<u32>,
}

impl Mark {
    /// The sequence number after its last byte.
    pub fn end(&self) -> i64 {
        self.seq + i64::from(self.len)
    }

    /// The highest sequence number its sender allows the other side: the right edge of its window.
    pub fn edge(&self) -> Option<i64> {
        Some(self.ack? + i64::from(self.window?))
    }
}

/// A range of bytes that a receiver reports to have beyond its ACK (RFC 2018), or to have got twice (RFC 2883).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sack {
    /// When the packet that says so passed, ns on the capture's clock.
    pub time: i64,
    /// Who says so: the bytes are the other side's.
    pub from: Side,
    /// What it has ACKed, relative.
    pub ack: i64,
    /// First byte, relative, and the one after the last.
    pub block: (i64, i64),
}

/// The packets of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// In the order in which they passed.
    pub marks: Vec<Mark>,
    /// In the order in which they passed.
    pub sacks: Vec<Sack>,
    /// How many packets were dropped because there were too many: evenly, of all between the first and the last.
    pub dropped: u64,
}

/// A series on its way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collector {
    series: Series,
    /// One of so many packets of each side is kept; 0 where all are.
    skip: u64,
    /// Packets seen of each end. Counted apart: where data and ACKs take turns, one of two packets would be all of one
    /// side's and none of the other's.
    seen: [u64; 2],
    /// Where the relative numbers of each end begin.
    bases: [Option<u64>; 2],
}

/// What the analysis had counted of one direction before a packet, to see how it took that packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    segments: u32,
    retransmitted: u32,
}

impl Counted {
    pub(crate) fn of(connection: &Connection, from: End) -> Self {
        let half = &connection.halves[from];
        Self { segments: half.segments, retransmitted: half.retransmitted() }
    }
}

impl Collector {
    /// Takes a packet that `connection` has just handled; `before` is what was counted before that.
    pub(crate) fn take(
        &mut self,
        number: u64,
        tcp: &Tcp,
        from: End,
        connection: &Connection,
        before: Counted,
    ) {
        let other = 1 - from;
        let is_syn = tcp.flags.has(TcpFlags::SYN);
        let seq = self.relative(connection, from, tcp.seq, is_syn);
        let has_ack = tcp.flags.has(TcpFlags::ACK);
        let ack = has_ack.then(|| self.relative(connection, other, tcp.ack, false));
        self.seen[from] += 1;
        if !self.keeps(tcp, from) {
            self.series.dropped += 1;
            return;
        }
        let mark = Mark {
            number,
            time: connection.last,
            from: side(from),
            kind: kind(tcp, before, Counted::of(connection, from)),
            flags: tcp.flags,
            seq,
            len: tcp.payload_len,
            ack,
            window: window(tcp, connection, other),
        };
        self.series.marks.push(mark);
        if let Some(ack) = ack {
            self.take_sacks(tcp, &mark, ack, connection, other);
        }
        if self.series.marks.len() >= MOST {
            self.series.dropped += drop_every_other(&mut self.series.marks, |mark| mark.from);
            self.skip = (self.skip * 2).max(2);
        }
    }

    fn take_sacks(&mut self, tcp: &Tcp, mark: &Mark, ack: i64, connection: &Connection, other: End) {
        for &(left, right) in tcp.options.sack.as_slice() {
            let block = [left, right].map(|edge| self.relative(connection, other, edge, false));
            self.series.sacks.push(Sack { time: mark.time, from: mark.from, ack, block: block.into() });
        }
        if self.series.sacks.len() >= MOST {
            drop_every_other(&mut self.series.sacks, |sack| sack.from);
        }
    }

    /// Whether the present packet is one of those that are kept. SYN, FIN and RST always are, once and again.
    fn keeps(&self, tcp: &Tcp, from: End) -> bool {
        let is_rare = tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        self.skip == 0 || is_rare || self.seen[from].is_multiple_of(self.skip)
    }

    /// A sequence number of `end`'s direction, relative to that direction's first one.
    fn relative(&mut self, connection: &Connection, end: End, seq: u32, is_syn: bool) -> i64 {
        let half = &connection.halves[end];
        let seq = sequence::unwrap(seq, half.next);
        let first = if is_syn { seq } else { seq.wrapping_sub(1) };
        seq.wrapping_sub(*self.bases[end].get_or_insert(first)).cast_signed()
    }

    /// The series, with the sides by name now that the connection's client is known.
    pub(crate) fn finish(self, client: End) -> Series {
        let mut series = self.series;
        if client == 1 {
            let other = |side: Side| if side == Side::Client { Side::Server } else { Side::Client };
            series.marks.iter_mut().for_each(|mark| mark.from = other(mark.from));
            series.sacks.iter_mut().for_each(|sack| sack.from = other(sack.from));
        }
        series
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
fn kind(tcp: &Tcp, before: Counted, after: Counted) -> Kind {
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

    #[test]
    fn too_many_are_thinned_evenly_on_each_side() {
        let (client, server) = (Side::Client, Side::Server);
        let mut all: Vec<_> = (0..9).map(|n| (n, if n % 2 == 0 { client } else { server })).collect();
        assert_eq!(drop_every_other(&mut all, |one| one.1), 4);
        assert_eq!(all, [(0, client), (1, server), (4, client), (5, server), (8, client)]);
        let thinned = Collector { skip: 4, ..Collector::default() };
        let kept = |seen, flags| {
            let tcp = Tcp { flags: TcpFlags(flags), ..Tcp::default() };
            Collector { seen: [seen, 0], ..thinned.clone() }.keeps(&tcp, 0)
        };
        assert_eq!((1..=8).filter(|seen| kept(*seen, TcpFlags::ACK)).collect::<Vec<_>>(), [4, 8]);
        assert!(kept(5, TcpFlags::FIN | TcpFlags::ACK));
    }
}
