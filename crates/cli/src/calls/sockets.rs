//! Calls by socket: its two ends, what its program set, and what it wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use tcpwhy_diagnose::flow::quantiles::Quantiles;
use tcpwhy_wire::calls::{Call, Kind, Sending, Socket};

use super::messages::{Gathering, Message};

/// Processes told of a socket.
const MOST_PROCESSES: usize = 64;

/// The calls that a message consists of: which, from where, and how often, in the order of their first ones.
pub(super) type Pattern = Vec<(u32, Kind, usize)>;

/// Messages that were written by the same lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) messages: u64,
    /// Bytes of the first one's first pieces.
    pub(super) sizes: Vec<u64>,
    /// How many pieces the first one has.
    pub(super) pieces: usize,
}

/// A socket, and what its calls come to.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) local: Option<SocketAddr>,
    pub(crate) peer: Option<SocketAddr>,
    /// The processes that used it.
    pub(super) processes: BTreeSet<u32>,
    /// Whether it was accepted here; else it connected, or the recording does not have its beginning.
    pub(super) accepted: bool,
    pub(super) calls: u64,
    pub(super) messages: u64,
    /// Messages that Nagle's algorithm may hold the end of.
    pub(super) split: u64,
    /// Whether the other end has `TCP_NODELAY`, where both were recorded.
    pub(super) nodelay_across: bool,
    /// How long until data came after split messages, and after the others.
    waits_of_split: Quantiles,
    waits: Quantiles,
    groups: BTreeMap<Pattern, Group>,
    moved: bool,
    nodelay: Setting,
    gathering: Gathering,
    /// Largest segment sent, in bytes; 0 where the kernel was not asked once it was connected.
    mss: u32,
    /// Bytes that recorded calls wrote.
    recorded: u64,
    /// Bytes that the kernel counted.
    written: u64,
}

/// What the program did with `TCP_NODELAY`, so far.
#[derive(Debug, Default)]
struct Setting {
    was_on: bool,
    writes: u64,
    /// By this stack, after so many writes; the first since it was off.
    on: Option<(u32, u64)>,
    /// By this stack.
    off: Option<u32>,
}

/// What became of `TCP_NODELAY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nodelay {
    /// Never set.
    Never,
    /// Never set here, but at the other end, where it does nothing for this one.
    OtherSide,
    /// On when the socket was first met: inherited from the listening one, or set by what cannot be seen.
    Beginning,
    /// Set by the program.
    Set {
        /// By this call's stack.
        stack: u32,
        /// After so many writes.
        writes_before: u64,
    },
    /// Switched off by the program, last or only.
    Off {
        /// By this call's stack.
        stack: u32,
    },
}

impl Watched {
    /// Takes what was known of it at some time.
    pub(super) fn describe(&mut self, socket: &Socket) {
        // A listening socket's first description has no peer, one that has yet to connect none and no address.
        if socket.peer.is_some() || self.peer.is_none() {
            (self.local, self.peer) = (socket.local, socket.peer);
        }
        self.nodelay.was_on |= socket.nodelay;
        self.mss = self.mss.max(socket.mss);
        self.written = self.written.max(socket.written);
    }

    /// Takes the next call in the order of their effects. `room` is for patterns of messages, of all sockets together.
    pub(super) fn push(&mut self, call: &Call, room: &mut usize) {
        self.calls += 1;
        self.accepted |= call.kind == Kind::Accept;
        self.moved |= call.wrote().is_some() || call.reads();
        if self.processes.len() < MOST_PROCESSES {
            self.processes.insert(call.process);
        }
        self.nodelay.push(call);
        self.recorded = self.recorded.saturating_add(call.wrote().unwrap_or(0));
        if let Some(message) = self.gathering.push(call) {
            self.count(message, room);
        }
    }

    /// No more calls come.
    pub(super) fn finish(&mut self, room: &mut usize) {
        if let Some(message) = self.gathering.finish() {
            self.count(message, room);
        }
    }

    fn count(&mut self, message: Message, room: &mut usize) {
        let mss = if self.peer.is_some() { self.mss } else { 0 };
        let is_split = message.is_split(mss);
        let waits = if is_split { &mut self.waits_of_split } else { &mut self.waits };
        if let Some(wait) = message.answered_after {
            waits.add(i64::try_from(wait).unwrap_or(i64::MAX));
        }
        self.messages += 1;
        if !is_split {
            return;
        }
        self.split += 1;
        if let Some(group) = self.groups.get_mut(&message.parts) {
            group.messages += 1;
        } else if *room > 0 {
            *room -= 1;
            let Message { parts, sizes, pieces, .. } = message;
            self.groups.insert(parts, Group { messages: 1, sizes, pieces });
        }
    }

    /// How long until data came after split messages: the median, ns.
    pub(super) fn wait_after_split(&self) -> Option<i64> {
        median(&self.waits_of_split)
    }

    /// The same of the other messages.
    pub(super) fn wait_after_others(&self) -> Option<i64> {
        median(&self.waits)
    }

    /// Whether it carried anything.
    pub(super) fn is_used(&self) -> bool {
        self.moved
    }

    /// Split messages by what wrote them, the most frequent first.
    pub(super) fn groups(&self) -> Vec<(&Pattern, &Group)> {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.messages));
        groups
    }

    /// Bytes that the kernel counted and no recorded call wrote.
    pub(super) fn unseen(&self) -> u64 {
        self.written.saturating_sub(self.recorded)
    }

    pub(super) fn nodelay(&self) -> Nodelay {
        match self.nodelay {
            Setting { on: Some((stack, writes_before)), .. } => Nodelay::Set { stack, writes_before },
            Setting { off: Some(stack), .. } => Nodelay::Off { stack },
            Setting { was_on: true, .. } => Nodelay::Beginning,
            _ if self.nodelay_across => Nodelay::OtherSide,
            _ => Nodelay::Never,
        }
    }

    /// Whether Nagle's algorithm held nothing, from the first write on.
    pub(super) fn has_nodelay(&self) -> bool {
        matches!(self.nodelay(), Nodelay::Beginning | Nodelay::Set { writes_before: 0, .. })
    }
}

fn median(waits: &Quantiles) -> Option<i64> {
    (waits.count() > 0).then(|| waits.quantile(0.5))
}

impl Setting {
    fn push(&mut self, call: &Call) {
        self.writes += u64::from(call.wrote().is_some());
        match call.switched() {
            Some((Sending::Nodelay, true)) => self.on = self.on.or(Some((call.stack, self.writes))),
            Some((Sending::Nodelay, false)) => (self.on, self.off) = (None, Some(call.stack)),
            Some((Sending::Cork, _)) | None => {}
        }
    }
}
