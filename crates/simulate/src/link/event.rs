//! What happens to packets besides delay.

use std::collections::VecDeque;
use std::fmt;

use serde::Serialize;

use super::settings::{Direction, Drop};

/// What the link did to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When, in ns of the link's clock.
    pub time: u64,
    /// Which way the packet travels.
    pub direction: Direction,
    /// It was the n-th packet that entered the link in this direction, counted from 1.
    pub number: u64,
    /// What it was.
    pub kind: EventKind,
}

/// What happened to a packet. [`Event::kind`]'s `Display` says it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// It is lost.
    Dropped(Loss),
    /// It is to be marked CE.
    Marked,
    /// It arrives twice.
    Duplicated,
    /// It arrives so many ns later, and others overtake it.
    Overtaken(u64),
    /// This pure ACK waits for `until` at most, in ns of the link's clock.
    Held {
        /// When the timer lets it go.
        until: u64,
    },
    /// The timer let this ACK go after so many ns.
    Released(u64),
    /// This ACK never leaves: a packet that acknowledges as much or more goes or waits in its place.
    Superseded {
        /// How long it was held, in ns.
        after: u64,
        /// By what.
        by: Successor,
    },
}

/// Why a packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// By chance.
    Random,
    /// By plan.
    Planned(Drop),
    /// The queue has no room.
    QueueFull,
}

/// What took the place of a held ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Successor {
    /// A newer ACK that is held in its place, until the same time.
    HeldAck,
    /// The ACK of data that must be acknowledged at once: a second full-sized segment, say.
    Ack,
    /// A duplicate ACK or a window update.
    SameAck,
    /// A segment with data, FIN, SYN or RST.
    Segment,
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        match *self {
            Self::Dropped(Loss::Random) => f.write_str("dropped: by chance"),
            Self::Dropped(Loss::Planned(drop)) => write!(f, "dropped: by plan ({drop})"),
            Self::Dropped(Loss::QueueFull) => f.write_str("dropped: queue full"),
            Self::Marked => f.write_str("marked CE"),
            Self::Duplicated => f.write_str("duplicated"),
            Self::Overtaken(by) => write!(f, "delayed by {:.1} ms more, to be overtaken", ms(by)),
            Self::Held { .. } => f.write_str("ACK held"),
            Self::Released(after) => write!(f, "ACK released by the timer after {:.1} ms", ms(after)),
            Self::Superseded { after, by } => {
                let by = match by {
                    Successor::HeldAck => "a newer ACK that waits in its place",
                    Successor::Ack => "an ACK that must not wait",
                    Successor::SameAck => "a duplicate ACK or window update",
                    Successor::Segment => "a segment that carries the acknowledgement",
                };
                write!(f, "held ACK superseded after {:.1} ms by {by}", ms(after))
            }
        }
    }
}

/// Events that nobody has asked for yet.
#[derive(Debug, Default)]
pub(super) struct Events {
    waiting: VecDeque<Event>,
    lost: u64,
}

impl Events {
    /// Events kept for a caller who does not ask: a few MB.
    const MOST: usize = 65_536;

    pub(super) fn push(&mut self, event: Event) {
        if self.waiting.len() == Self::MOST {
            self.waiting.pop_front();
            self.lost += 1;
        }
        self.waiting.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}
