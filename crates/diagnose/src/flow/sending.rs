//! What one direction's sender did with its windows: how its flights grew, what marks and queues its data met.
//!
//! A *flight* is what a sender sends between two stops; a sender that waits for its congestion window sends one each
//! round trip. Kept apart from [`super::half::Half`], since most connections never fill a window.

use super::ecn::Marks;
use super::flight::Flights;
use super::queue::Queue;
use super::tail::Tails;
use super::written::Writes;

/// What is remembered of a direction that has stopped for a window, met a long queue or was marked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sending {
    /// Its flights, and why they were as small as they were.
    pub(crate) flights: Flights,
    /// Marks of congestion, and what its sender did about them.
    pub(crate) marks: Marks,
    /// Round trips far beyond the base one.
    pub(crate) queue: Queue,
    /// When a slow path will have taken all that was sent, ns; 0 where it is not slow, or its rate not known.
    pub(crate) drained_at: i64,
    /// What its tails showed of Nagle's algorithm.
    pub(crate) tails: Tails,
}

/// What few connections have, kept together so that the others pay for one pointer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    /// What the senders did with their windows.
    pub(crate) sending: Option<[Sending; 2]>,
    /// What the programs wrote, where that was recorded.
    pub(crate) writes: [Option<Writes>; 2],
}
