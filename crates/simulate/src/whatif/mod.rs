//! What if: a captured connection, played again with one thing changed.
//!
//! ```text
//! trace.rs    its packets, with numbers that do not wrap
//! path.rs     how far each end is away, what the path lost
//! host.rs     what each host saw: what its program wrote and what it had waited for
//! written.rs  what its program wrote, where its calls were recorded
//! beat.rs     updates at an even pace that left several at a time: when each was written
//! stack.rs    what kind of TCP each host has
//! scene.rs    all of it as a setup for a world
//! replay.rs   one run of it: how long each exchange took, what went over the wire
//! likeness.rs whether the unchanged replay is like the capture
//! fit.rs      what packets leave open is tried out
//! fix.rs      what can be changed
//! answer.rs   each fix against the unchanged replay
//! effort.rs   how much work all of this may be
//! ```
//!
//! The simulator decides nothing that the capture shows: it is asked only for the difference between two replays, and
//! not even for that where the unchanged one is not like the capture ([`Likeness`]).

mod answer;
mod beat;
mod effort;
mod fit;
mod fix;
mod host;
mod likeness;
mod path;
mod replay;
mod scene;
mod stack;
mod trace;
mod written;

use std::fmt;

use tcpwhy_wire::Packet;
use tcpwhy_wire::calls::Write;

pub use effort::Effort;
pub use fix::{Fix, LARGE_BUFFER, LARGE_INITIAL_WINDOW, Placed, UnknownFix};
pub use likeness::Likeness;
pub use path::Parts;
pub use trace::{MOST_PACKETS, connections};

use crate::world::Side;
use answer::Question;
use scene::Scene;

/// Why a connection cannot be played again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The capture does not have the handshake: round trip, windows and options are not known.
    NoHandshake,
    /// Bytes were acknowledged that the capture does not have.
    Gaps,
    /// More than [`MOST_PACKETS`].
    TooLong,
    /// A program stopped reading until its window was closed: when it went on is its own affair.
    ClosedWindow,
    /// Nobody wrote anything.
    NoData,
    /// The replay never came to the end of what the capture shows.
    Endless,
    /// The replays were more work than they may be.
    TooMuchWork,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHandshake => write!(f, "the capture does not have its handshake"),
            Self::Gaps => write!(f, "the capture lacks some of its packets"),
            Self::TooLong => write!(f, "it has more than {MOST_PACKETS} packets"),
            Self::ClosedWindow => write!(f, "a program stopped reading, and no replay knows when it goes on"),
            Self::NoData => write!(f, "it carried no data"),
            Self::Endless => write!(f, "its replay did not come to an end"),
            Self::TooMuchWork => write!(f, "its replays took more work than they may"),
        }
    }
}

impl std::error::Error for Unfit {}

/// How long things took. ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Figures {
    /// From the first SYN to the end of the last exchange or update.
    pub total_ms: f64,
    /// Median of an exchange, or of an update's way from one program to the other.
    pub p50_ms: f64,
    /// Their 99th percentile.
    pub p99_ms: f64,
    /// Packets sent by both sides.
    pub packets: u64,
    /// Bytes of their IP packets.
    pub bytes: u64,
}

/// One fix, and what it would have done.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// The change.
    pub fix: Fix,
    /// Where it is made, if it is made at one side.
    pub side: Option<Side>,
    /// The time it saves, ms: by how much sooner the last exchange ends, or for how long some update would not have
    /// been late. Less than zero where it makes things slower.
    pub saved_ms: f64,
    /// The least and the most it saves, where the capture leaves open when updates were written.
    pub bounds_ms: Option<(f64, f64)>,
    /// How long things take with it.
    pub figures: Figures,
}

/// What was asked for: the unchanged replay and, where it is like the capture, what each fix would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// How like the capture the unchanged replay is.
    pub likeness: Likeness,
    /// The unchanged replay.
    pub unchanged: Figures,
    /// Whether somebody waits for answers; else each update counts by itself.
    pub has_exchanges: bool,
    /// The base round trip: the client's part and the server's.
    pub parts: Parts,
    /// Fixes that change something, the one that saves most first; none where the replay is unlike the capture.
    pub gains: Vec<Gain>,
    /// Fixes that were asked for and change nothing.
    pub idle: Vec<(Fix, Option<Side>)>,
}

/// Which sides are known to leave a cork on (`TCP_CORK`, `MSG_MORE`): packets of one message alone do not tell.
pub type Corked = [bool; 2];

/// What is known besides the packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints<'a> {
    /// Which sides are known to leave a cork on.
    pub corked: Corked,
    /// What programs wrote on the machine of the capture, in the order of its times.
    pub writes: &'a [Write],
}

impl From<Corked> for Hints<'_> {
    fn from(corked: Corked) -> Self {
        Self { corked, writes: &[] }
    }
}

/// Plays a connection again, or several that one client opened one after the other to one server, unchanged and with
/// each fix. Each connection's packets are in the order of the capture.
///
/// # Errors
///
/// Where the packets do not tell enough to play the first of them at all.
pub fn ask<'a>(
    connections: &[Vec<Packet>],
    hints: impl Into<Hints<'a>>,
    fixes: &[Fix],
) -> Result<Answer, Unfit> {
    let everywhere: Vec<Placed> = fixes.iter().flat_map(|fix| fix.everywhere()).collect();
    ask_within(&Effort::unlimited(), connections, hints, &everywhere)
}

/// The same with fixes at some sides only, and with no more than so much work, which is taken off `effort`.
///
/// # Errors
///
/// As for [`ask`], and [`Unfit::TooMuchWork`] where the answer would take more than what was left.
pub fn ask_within<'a>(
    effort: &Effort,
    connections: &[Vec<Packet>],
    hints: impl Into<Hints<'a>>,
    fixes: &[Placed],
) -> Result<Answer, Unfit> {
    let hints = hints.into();
    let scenes: Result<Vec<Scene>, Unfit> =
        connections.iter().map(|packets| Scene::of(packets, hints)).collect();
    let answer = Question::of(scenes?, effort).map(|question| question.answer(fixes));
    // What was left out for want of effort would pass for a fix without effect.
    if effort.is_spent() { Err(Unfit::TooMuchWork) } else { answer }
}
