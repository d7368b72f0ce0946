//! The packets of one connection as plots and pages show them, for who asked for that connection.

pub use tcpwhy_wire::TcpFlags;

use crate::report::Side;

/// Packets kept of one connection where nobody asks for fewer, and SACK blocks, exchanges and round trips: 72, 40, 24 and
/// 24 MiB. A plot a thousand pixels wide still has a thousand packets for each of them.
const MOST: usize = 1 << 20;

/// A connection that is recorded, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its number, as the report has it.
    pub connection: u64,
    /// One of so many packets of each side will do; 1 where all are wanted.
    pub every: u64,
    /// Packets of it, positions in the capture, that are wanted in any case, with those of the connection around them.
    pub near: Vec<u64>,
    /// Packets that are kept at most, and SACK blocks, intervals of the ledger, exchanges, round trips. Of more, every other
    /// one is dropped, again and again.
    pub most: usize,
}

impl Wanted {
    /// All of a connection, as far as a million packets go.
    pub fn all(connection: u64) -> Self {
        Self { connection, every: 1, near: Vec::new(), most: MOST }
    }
}

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

/// A request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the request's first byte passed, ns on the capture's clock.
    pub start: i64,
    /// When the answer's last byte did.
    pub end: i64,
    /// Position in the capture of the request's first packet.
    pub number: u64,
}

/// How long data and its ACK took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Whose data it was.
    pub from: Side,
    /// When the ACK passed, ns on the capture's clock.
    pub time: i64,
    /// The round trip over the whole path, ns: from data to ACK at the capture, and the shortest way from there to the
    /// sender and back. Without the latter where it was not measured beyond doubt, as `base_rtt_ms` is null then.
    pub rtt: i64,
}

/// The packets of one connection, and what they come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// In the order in which they passed. The datagrams of a UDP flow have as sequence number the bytes that their sender
    /// had sent before.
    pub marks: Vec<Mark>,
    /// In the order in which they passed.
    pub sacks: Vec<Sack>,
    /// How many packets were left out because there were too many: evenly, of all between the first and the last.
    pub dropped: u64,
    /// In the order of their starts; empty where the traffic is not of that kind.
    pub exchanges: Vec<Exchange>,
    /// In the order of their times.
    pub round_trips: Vec<RoundTrip>,
}
