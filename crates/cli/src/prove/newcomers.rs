//! Connections that the program opens, or accepts, while it is measured.

use std::collections::HashSet;
use std::time::Instant;

use tcpwhy_host::process::{Descriptor, Refused, sockets_of};
use tcpwhy_host::sockets::{Found, describe};
use tcpwhy_host::switch::{Switched, TcpOption};
use tcpwhy_wire::sockets::State;

use super::choice::{Chosen, Pointer, role};

/// A search may take one part in so many of the time: `/proc/PID/fd` is read, some 1 µs a descriptor.
const SHARE: u32 = 10;

/// Connections that are taken at most: each costs a look every millisecond, and memory.
const MOST: usize = 1_000;

/// Finds connections that were not there before.
pub(super) struct Newcomers {
    pid: u32,
    option: TcpOption,
    /// Which of them are meant; `None`: all.
    pointer: Option<Pointer>,
    /// Whether it was agreed to that later ones are switched, too.
    pub(super) are_meant: bool,
    /// Ports that the program listens on: who has one answers.
    ports: Vec<u16>,
    /// Numbers of sockets that were seen before.
    known: HashSet<u64>,
    /// Not to be searched before.
    next: Instant,
    taken: usize,
    /// Connections that were opened meanwhile and not taken.
    pub(super) left_alone: u64,
}

impl Newcomers {
    /// All sockets that the program has now are known.
    pub(super) fn new(
        pid: u32,
        option: TcpOption,
        pointer: Option<Pointer>,
        are_meant: bool,
        ports: Vec<u16>,
    ) -> Self {
        let known = sockets_of(pid).unwrap_or_default().iter().map(|socket| socket.inode).collect();
        Self { pid, option, pointer, are_meant, ports, known, next: Instant::now(), taken: 0, left_alone: 0 }
    }

    /// Those since the last time, their option in our hands and not switched yet.
    pub(super) fn find(&mut self) -> Vec<Chosen> {
        let begun = Instant::now();
        if begun < self.next {
            return Vec::new();
        }
        // That the process has ended, its connections tell.
        let Ok(sockets) = sockets_of(self.pid) else { return Vec::new() };
        let there: HashSet<u64> = sockets.iter().map(|socket| socket.inode).collect();
        self.known.retain(|inode| there.contains(inode));
        let found = sockets.into_iter().filter_map(|descriptor| self.newcomer(descriptor)).collect();
        self.next = Instant::now() + begun.elapsed() * SHARE;
        found
    }

    fn newcomer(&mut self, descriptor: Descriptor) -> Option<Chosen> {
        if self.known.contains(&descriptor.inode) {
            return None;
        }
        let seen = self.look(descriptor).unwrap_or(Seen::Other);
        if !matches!(seen, Seen::NotYet) {
            self.known.insert(descriptor.inode);
        }
        let Seen::Connection(chosen) = seen else { return None };
        if self.are_meant && self.taken < MOST {
            self.taken += 1;
            return Some(chosen);
        }
        self.left_alone += 1;
        None
    }

    fn look(&self, descriptor: Descriptor) -> Result<Seen, Refused> {
        let socket = descriptor.duplicate()?;
        let found = describe(&socket).map_err(|error| Refused::Other(error.to_string()))?;
        let Some(found) = found else { return Ok(Seen::Other) };
        let is_pointed_at = self.pointer.is_none_or(|pointer| pointer.is_at(&found));
        Ok(match found.socket.state {
            State::Established | State::CloseWait if is_pointed_at => {
                let switched = Switched::new(descriptor, self.option)?;
                let Found { local, peer, .. } = found;
                Seen::Connection(Chosen { switched, local, peer, role: role(local, &self.ports) })
            }
            State::Closed | State::SynSent | State::SynReceived => Seen::NotYet,
            _ => Seen::Other,
        })
    }
}

/// What a descriptor is.
enum Seen {
    /// One that is pointed at.
    Connection(Chosen),
    /// It may become one.
    NotYet,
    Other,
}
