//! Calls by socket: its two ends, what its program set, and what it wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use tcpwhy_wire::calls::{Call, Kind, Recording, Socket};

use super::messages::{self, Message, effect, messages, writes};

const IPPROTO_TCP: u64 = 6;
const TCP_NODELAY: u64 = 1;

/// A socket that carried something, and all that was recorded of it.
pub(super) struct Watched<'a> {
    pub(super) local: Option<SocketAddr>,
    pub(super) peer: Option<SocketAddr>,
    /// The processes that used it.
    pub(super) processes: BTreeSet<u32>,
    /// Whether it was accepted here; else it connected, or the recording does not have its beginning.
    pub(super) accepted: bool,
    /// Largest segment sent, in bytes; 0 where the kernel was not asked once it was connected.
    pub(super) mss: u32,
    pub(super) calls: Vec<&'a Call>,
    pub(super) messages: Vec<Message>,
    pub(super) nodelay: Nodelay,
    /// Bytes that the kernel counted and no recorded call wrote.
    pub(super) unseen: u64,
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
        writes_before: usize,
    },
    /// Switched off by the program, last or only.
    Off {
        /// By this call's stack.
        stack: u32,
    },
}

impl Nodelay {
    /// Whether Nagle's algorithm held nothing, from the first write on.
    pub(super) fn is_on_at_first_write(self) -> bool {
        matches!(self, Self::Beginning | Self::Set { writes_before: 0, .. })
    }
}

impl Watched<'_> {
    /// Messages that Nagle's algorithm may hold the end of.
    pub(super) fn split(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|message| message.is_split(self.mss))
    }
}

/// Every socket with calls that moved bytes, those with most split messages first.
pub(super) fn watched(recording: &Recording) -> Vec<Watched<'_>> {
    let mut calls: BTreeMap<u64, Vec<&Call>> = BTreeMap::new();
    for call in &recording.calls {
        calls.entry(call.socket).or_default().push(call);
    }
    let mut known: BTreeMap<u64, Vec<&Socket>> = BTreeMap::new();
    for socket in &recording.sockets {
        known.entry(socket.cookie).or_default().push(socket);
    }
    let mut all: Vec<_> = calls
        .into_iter()
        .map(|(cookie, calls)| of(calls, known.get(&cookie).map_or(&[][..], Vec::as_slice)))
        .filter(|socket| socket.calls.iter().any(|call| writes(call) || messages::reads(call)))
        .collect();
    look_across(&mut all);
    all.sort_by_cached_key(|socket| std::cmp::Reverse((socket.split().count(), socket.calls.len())));
    all
}

fn of<'a>(mut calls: Vec<&'a Call>, known: &[&Socket]) -> Watched<'a> {
    calls.sort_by_key(|call| effect(call));
    // A listening socket's first record has no peer, one that has yet to connect none and no address.
    let best = known.iter().rev().find(|socket| socket.peer.is_some()).or(known.last());
    let recorded: u64 = calls.iter().filter(|call| writes(call)).map(|call| call.result.unsigned_abs()).sum();
    let written = known.iter().map(|socket| socket.written).max().unwrap_or(0);
    Watched {
        local: best.and_then(|socket| socket.local),
        peer: best.and_then(|socket| socket.peer),
        processes: calls.iter().map(|call| call.process).collect(),
        accepted: calls.iter().any(|call| call.kind == Kind::Accept),
        mss: known
            .iter()
            .map(|socket| socket.mss)
            .filter(|_| best.is_some_and(|best| best.peer.is_some()))
            .max()
            .unwrap_or(0),
        messages: messages(&calls),
        nodelay: nodelay(&calls, known),
        unseen: written.saturating_sub(recorded),
        calls,
    }
}

fn nodelay(calls: &[&Call], known: &[&Socket]) -> Nodelay {
    let set = |call: &&&Call| {
        call.kind == Kind::SetSockOpt && call.asked == IPPROTO_TCP << 32 | TCP_NODELAY && call.result == 0
    };
    let Some(last) = calls.iter().rfind(set) else {
        return if known.iter().any(|socket| socket.nodelay) { Nodelay::Beginning } else { Nodelay::Never };
    };
    if last.flags == 0 {
        return Nodelay::Off { stack: last.stack };
    }
    // The first that switched it on and was not taken back.
    let off = calls.iter().rposition(|call| set(&call) && call.flags == 0).map_or(0, |at| at + 1);
    let on = calls[off..].iter().position(|call| set(&call)).map_or(off, |at| off + at);
    Nodelay::Set {
        stack: calls[on].stack,
        writes_before: calls[..on].iter().filter(|call| writes(call)).count(),
    }
}

/// Where both ends of a connection were recorded, each is told what the other has set.
fn look_across(all: &mut [Watched<'_>]) {
    let with: BTreeSet<_> = all
        .iter()
        .filter(|socket| matches!(socket.nodelay, Nodelay::Beginning | Nodelay::Set { .. }))
        .filter_map(|socket| Some((socket.local?, socket.peer?)))
        .collect();
    for socket in all {
        let across = socket.peer.zip(socket.local).is_some_and(|ends| with.contains(&ends));
        if socket.nodelay == Nodelay::Never && across {
            socket.nodelay = Nodelay::OtherSide;
        }
    }
}
