//! Two connections that carry one conversation: the hops before and behind a proxy, in two captures or in one.
//!
//! What passes through a proxy unchanged keeps its bytes' order and number, and no byte leaves before it came. That is all
//! there is to go by: payload is not read, and a proxy's two connections share neither sequence numbers nor, always,
//! addresses. So it takes two passes. The first is the analysis itself, which keeps nothing for this: [`Hop`] is what its
//! totals tell of a connection, and [`Candidates`] are the pairs of connections that carried as many bytes each way. The
//! second records these few ([`crate::Analyzer::recording`]), and [`Hops::of`] compares when each byte came and left.

mod candidates;
mod clocks;
mod likeness;
mod pairing;
mod passage;
mod report;
mod stream;

use tcpwhy_wire::Socket;

pub use candidates::Candidates;
pub use passage::Passage;
pub(crate) use passage::{APART, Arrival, Departure};
pub use report::{HopReport, Hops, Pair, Passed};
pub use stream::Spoken;

use crate::diagnosis::Diagnosis;
use crate::flow::Connection;
use crate::flow::half::NEVER;

/// Segments with data, in one direction, from which on a connection says enough of itself to be told from others.
const FEWEST_SEGMENTS: u32 = 8;
/// Connections that are compared; captures with more are to be narrowed down.
pub const MOST_CONNECTIONS: usize = 1 << 16;

/// Where a connection is: which capture, in the order in which they were read, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// From 0.
    pub capture: usize,
    /// As the report numbers it.
    pub connection: u64,
}

/// A connection that may be one of two hops, as one pass over its capture shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Which.
    pub place: Place,
    /// Packets of both sides.
    pub packets: u64,
    /// The client's socket and the server's.
    ends: [Socket; 2],
    /// The client's initial sequence number.
    isn: u32,
    /// Payload bytes to the server and to the client.
    bytes: [u64; 2],
    /// Whether that is all, to the FIN.
    whole: [bool; 2],
    /// Time of the first packet and of the last, ns on the capture's clock.
    span: (i64, i64),
}

impl Hop {
    /// `None` where the connection's beginning was not captured, or where it carried too little.
    fn of(place: Place, connection: &Connection) -> Option<Self> {
        let client = connection.client()?;
        let isn = connection.syn.filter(|_| !connection.is_udp && connection.syn_ack_at != NEVER)?;
        let halves = [&connection.halves[client], &connection.halves[1 - client]];
        if halves.iter().all(|half| half.segments < FEWEST_SEGMENTS) {
            return None;
        }
        Some(Self {
            place,
            packets: halves.iter().map(|half| u64::from(half.packets)).sum(),
            ends: [connection.ends[client], connection.ends[1 - client]],
            isn,
            bytes: halves.map(|half| half.bytes.saturating_add(half.unseen())),
            whole: halves.map(|half| half.closed),
            span: (connection.first, connection.last),
        })
    }

    /// Whether both are the same connection, captured twice: behind a translation of addresses the numbers stay.
    fn is_same_connection(&self, other: &Self) -> bool {
        self.isn == other.isn && (self.ends == other.ends || self.bytes == other.bytes)
    }
}

impl Diagnosis {
    /// Its connections that may be hops of a conversation, this being capture number `capture`; none where there are so many
    /// that they have to be narrowed down first.
    pub fn hops(&self, capture: usize) -> Vec<Hop> {
        if self.len() > MOST_CONNECTIONS {
            return Vec::new();
        }
        let hop = |(connection, flow)| Hop::of(Place { capture, connection }, flow);
        self.flows().filter_map(hop).collect()
    }
}
