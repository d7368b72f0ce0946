//! What a recording's calls tell, beside its packets: from a file, as `tcpwhy run --record` saves it.

mod effect;
mod json;
mod located;
mod messages;
pub(crate) mod save;
mod scripts;
mod sockets;
mod stacks;
mod text;

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;

use tcpwhy_diagnose::report::Connection;
use tcpwhy_wire::calls::{About, Block, Call, Reader};

use crate::programs::Programs;
use effect::ByEffect;
pub(crate) use located::Located;
use sockets::Nodelay;
pub(crate) use sockets::Watched;

/// The rule that calls alone can tell.
pub(crate) const SPLIT_WRITE: &str = "split-write";

/// Lines of code that write messages, told apart for all sockets together. A program has some dozen.
const MOST_PATTERNS: usize = 1 << 16;

/// The cure that takes Nagle's algorithm away.
const NODELAY: &str = "nodelay";

/// Takes a recording block by block, and gives its calls on in the order of time.
#[derive(Debug)]
pub(crate) struct Gathering {
    reader: Reader,
    sockets: BTreeMap<u64, Watched>,
    programs: Programs,
    by_effect: ByEffect,
    /// For patterns of messages.
    room: usize,
}

impl Gathering {
    pub(crate) fn new() -> Self {
        Self {
            reader: Reader::default(),
            sockets: BTreeMap::new(),
            programs: Programs::default(),
            by_effect: ByEffect::default(),
            room: MOST_PATTERNS,
        }
    }

    /// Takes the next block.
    pub(crate) fn take(&mut self, block: Block<'_>) {
        self.reader.take(block);
        for socket in self.reader.sockets() {
            self.sockets.entry(socket.cookie).or_default().describe(&socket);
        }
        self.programs.learn(self.reader.holders());
    }

    /// The next call that began by `time`, in ns since the epoch, and its socket's own address and peer.
    pub(crate) fn call_by(&mut self, time: i64) -> Option<(Call, Option<(SocketAddr, SocketAddr)>)> {
        let call = self.reader.call_by(time)?;
        self.by_effect.push(call);
        self.sum_up(call.start);
        let ends = self.sockets.get(&call.socket).and_then(|socket| socket.local.zip(socket.peer));
        Some((call, ends))
    }

    /// Adds up what has taken effect by `time`.
    fn sum_up(&mut self, time: i64) {
        while let Some(call) = self.by_effect.by(time) {
            self.sockets.entry(call.socket).or_default().push(&call, &mut self.room);
        }
    }

    /// The programs at ends of connections, calls or not.
    pub(crate) fn programs(&mut self) -> Programs {
        std::mem::take(&mut self.programs)
    }

    /// What it comes to, once all calls were given on; `None` where there is no recording.
    pub(crate) fn finish(mut self) -> Option<Recorded> {
        if self.reader.is_empty() {
            return None;
        }
        self.sum_up(i64::MAX);
        let mut sockets: Vec<_> = self.sockets.into_values().filter(Watched::is_used).collect();
        sockets.iter_mut().for_each(|socket| socket.finish(&mut self.room));
        look_across(&mut sockets);
        sockets.sort_by_cached_key(|socket| std::cmp::Reverse((socket.split, socket.calls)));
        Some(Recorded { reader: self.reader, sockets })
    }
}

/// Where both ends of a connection were recorded, each is told what the other has set.
fn look_across(all: &mut [Watched]) {
    let with: HashSet<_> = all
        .iter()
        .filter(|socket| matches!(socket.nodelay(), Nodelay::Beginning | Nodelay::Set { .. }))
        .filter_map(|socket| socket.local.zip(socket.peer))
        .collect();
    for socket in all {
        socket.nodelay_across = socket.peer.zip(socket.local).is_some_and(|ends| with.contains(&ends));
    }
}

/// What the calls of a recording come to.
#[derive(Debug)]
pub(crate) struct Recorded {
    reader: Reader,
    /// Those that carried something, the ones with most split messages first.
    pub(crate) sockets: Vec<Watched>,
}

impl Recorded {
    /// How it was made.
    pub(crate) fn about(&self) -> &About {
        self.reader.about()
    }

    /// Keeps the ends of one connection.
    pub(crate) fn narrow(&mut self, connection: &Connection) {
        let ends = [Some(connection.client.clone()), Some(connection.server.clone())];
        self.sockets.retain(|socket| {
            let [local, peer] = [socket.local, socket.peer].map(|end| end.map(|end| end.to_string()));
            ends.contains(&local) && ends.contains(&peer)
        });
    }

    /// What the file lacks.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.reader.notes()
    }

    /// Whether messages are written in pieces that Nagle's algorithm may hold.
    pub(crate) fn has_split_writes(&self) -> bool {
        self.sockets.iter().any(|socket| socket.split > 0 && !self.has_nodelay(socket))
    }

    /// Whether Nagle's algorithm held nothing of what a socket wrote.
    fn has_nodelay(&self, socket: &Watched) -> bool {
        self.about().fix == NODELAY || socket.has_nodelay()
    }
}
