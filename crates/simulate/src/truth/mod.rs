//! What a connection waited for, by the simulator's own state: the truth for each line of a ledger of time.
//!
//! [`Truth::observe`] looks at a [`World`] after every instant, [`Truth::at`] then tells for each instant of a capture
//! what the connection waited for. Nothing here looks at packets the way an analyser does: what a sender waits for, what
//! the link holds and what a receiver withholds is asked of them.
//!
//! # What a vantage can know, and when
//!
//! A capture is made at one host, the *near* one. What the other, *far* one does at some instant shows there when a
//! packet that leaves it at that instant would arrive, behind what is queued: so the far host's whole life is moved by
//! that time. What travels to the near host then takes no time, and what travels to the far host takes a round trip,
//! which is what a capture at one end shows.
//!
//! # The lines
//!
//! Where several are true, the first one counts; of two directions that both wait, the wait that began first.
//!
//! - **rto**: nothing of a sender's is in flight, no ACK for it is in flight or held, and its peer lacks something that
//!   was lost; or it is blocked and the ACK or window that would free it was lost; or its timer ends before the receiver's
//!   delayed ACK, and draws that ACK. In the handshake this goes before **handshake**, which lasts until the client may send.
//! - **recovery**: something was lost, and either the receiver has told so by an ACK out of order, or it is being sent
//!   again; until the receiver has it all and says so. A sender that takes something for lost that was not repairs
//!   nothing, its window is reduced.
//! - **nagle**: the sender holds a segment back by Nagle's algorithm or by a cork.
//! - **delayed-ack**: the sender is blocked by Nagle's algorithm, a cork or a window, and the receiver withholds the very ACK that
//!   then frees it.
//! - **transfer**: segments leave the interface that limits the path's rate back to back, from the end of the first one
//!   of a train to the end of the last: a segment alone only travels. It goes before a wait of the same sender for a
//!   window, an ACK or Nagle's algorithm, since what is held back would only stand in the queue. It shows when what was
//!   sent then arrives at the receiver, and at the sender when its ACK could be back.
//! - **cwnd**, **rwnd**: the sender is stopped by a window. A program that is blocked by a full send buffer, all of which is
//!   in flight but for less than a segment, counts as rwnd. A congestion window explains one base round trip of a full
//!   segment, unless the receiver withholds the ACK; what goes beyond is **queueing**.
//! - **transfer** also goes before what only travels.
//! - **network**: data travels to the far host, up to the base round trip of a packet of its length from when it was sent;
//!   **queueing**: beyond.
//! - **client-app**, **server-app**: the program that writes or closes next; after the last time, the one that was
//!   spoken to.

mod losses;
mod scene;
mod sweep;
mod watch;

use crate::link::Ends;
use crate::world::{Side, World};

use watch::Watch;

/// What a connection waits for: the lines of a ledger, with the names that reports give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Line {
    /// SYN, SYN-ACK, ACK.
    Handshake,
    /// The client's program.
    ClientApp,
    /// The server's program.
    ServerApp,
    /// Data on its way, up to the base round trip.
    Network,
    /// What takes longer than that.
    Queueing,
    /// A small segment held back.
    Nagle,
    /// An ACK withheld from a sender that is blocked.
    DelayedAck,
    /// The congestion window.
    Cwnd,
    /// The receiver's window, or the sender's own buffer.
    Rwnd,
    /// The repair of a loss.
    Recovery,
    /// A timer.
    Rto,
    /// Bytes that flow at the rate of the path.
    Transfer,
}

impl Line {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Handshake,
        Self::ClientApp,
        Self::ServerApp,
        Self::Network,
        Self::Queueing,
        Self::Nagle,
        Self::DelayedAck,
        Self::Cwnd,
        Self::Rwnd,
        Self::Recovery,
        Self::Rto,
        Self::Transfer,
    ];

    /// The line's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::ClientApp => "client-app",
            Self::ServerApp => "server-app",
            Self::Network => "network",
            Self::Queueing => "queueing",
            Self::Nagle => "nagle",
            Self::DelayedAck => "delayed-ack",
            Self::Cwnd => "cwnd",
            Self::Rwnd => "rwnd",
            Self::Recovery => "recovery",
            Self::Rto => "rto",
            Self::Transfer => "transfer",
        }
    }
}

/// From when until when (ns) the connection waited for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// ns.
    pub from: u64,
    /// ns, after `from`.
    pub until: u64,
    /// For what.
    pub line: Line,
}

/// Watches one run of a world.
#[derive(Debug)]
pub struct Truth {
    watch: Watch,
    ends: Ends,
}

impl Truth {
    /// For a run over this path.
    pub fn new(ends: &Ends) -> Self {
        Self { watch: Watch::default(), ends: ends.clone() }
    }

    /// Takes note of the present, after every instant at which something happened. Takes the link's events.
    pub fn observe(&mut self, world: &mut World) {
        self.watch.observe(world);
    }

    /// What a capture at `vantage` should book, from the first packet it saw to the last, without gaps.
    pub fn at(&self, vantage: Side, world: &World) -> Vec<Span> {
        let seen = world.seen(vantage);
        let Some((first, last)) = seen.first().zip(seen.last()) else { return Vec::new() };
        let mut spans = sweep::spans(&self.watch, &self.ends, vantage, last.time);
        spans.retain_mut(|span| {
            span.from = span.from.max(first.time);
            span.until = span.until.min(last.time);
            span.from < span.until
        });
        spans
    }
}
