//! Which descriptor of which process is which socket, and what is known of each.
//!
//! The kernel's events name a socket by where it lies in memory, system calls by descriptor. A socket is known from the
//! beginning where its process held it already, else from its first descriptor on; the two names are joined when a call
//! moves bytes.

use std::collections::HashMap;
use std::net::SocketAddr;

use tcpwhy_wire::calls::Socket;

use crate::process::{self, Descriptor};
use crate::sockets::{Found, describe};

/// Sockets kept; calls on further ones are counted as lost.
const MOST: usize = 1 << 20;
/// Connections of the whole machine that are remembered, in case that a watched program uses one.
const MOST_CONNECTIONS: usize = 1 << 20;
/// Sockets whose cookie nobody could ask for are numbered from here on: the kernel counts from 1.
const NAMELESS: u64 = 1 << 63;

// Linux's states, from include/net/tcp_states.h.
const SYN_SENT: i64 = 2;
const SYN_RECV: i64 = 3;
const CLOSE: i64 = 7;

/// A socket, by its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Known(pub(super) u64);

/// All sockets.
#[derive(Debug, Default)]
pub(super) struct Table {
    all: Vec<Entry>,
    by_descriptor: HashMap<u32, HashMap<i32, Known>>,
    by_cookie: HashMap<u64, Known>,
    by_place: HashMap<u64, Connection>,
}

#[derive(Debug, Default)]
struct Entry {
    /// It turned out to be that one.
    is: Option<Known>,
    /// Where it lies in the kernel's memory.
    place: Option<u64>,
    is_tcp: bool,
    cookie: Option<u64>,
    ends: Option<(SocketAddr, SocketAddr)>,
    mss: u32,
    /// `TCP_NODELAY` when it was first met, and now.
    nodelay_first: bool,
    nodelay: bool,
}

/// A connection that begins or ends during the recording.
#[derive(Debug, Default)]
struct Connection {
    ends: Option<(SocketAddr, SocketAddr)>,
    known: Option<Known>,
}

impl Table {
    /// Takes the TCP sockets that a process holds; how many could not be looked at.
    pub(super) fn adopt(&mut self, process: u32) -> usize {
        let descriptors = process::sockets_of(process).unwrap_or_default();
        let mut refused = 0;
        for descriptor in descriptors {
            match descriptor.duplicate() {
                Ok(twin) => {
                    if let Some(found) = describe(&twin).ok().flatten() {
                        self.adopt_one(descriptor, &found);
                    }
                }
                Err(process::Refused::Gone) => {}
                Err(_) => refused += 1,
            }
        }
        refused
    }

    fn adopt_one(&mut self, descriptor: Descriptor, found: &Found) {
        // Another process may hold it too.
        let known = self.by_cookie.get(&found.cookie).copied().or_else(|| self.enter(Entry::default()));
        if let Some(known) = known {
            self.fill(known, found);
            self.name(descriptor.pid, descriptor.fd, known);
        }
    }

    /// The socket of a descriptor, known from now on.
    pub(super) fn of_descriptor(&mut self, process: u32, fd: i32) -> Option<Known> {
        self.known_descriptor(process, fd).or_else(|| {
            let known = self.enter(Entry::default())?;
            self.name(process, fd, known);
            Some(known)
        })
    }

    /// The socket of a descriptor, if something is known of it.
    pub(super) fn known_descriptor(&self, process: u32, fd: i32) -> Option<Known> {
        self.by_descriptor.get(&process)?.get(&fd).map(|known| self.really(*known))
    }

    /// A new socket, accepted from a listening one: it begins with that one's options.
    pub(super) fn accepted(&mut self, process: u32, listening: i32, fd: i32) -> Option<Known> {
        let listening = self.known_descriptor(process, listening);
        let nodelay = listening.is_some_and(|known| self.entry(known).nodelay);
        let known = self.enter(Entry { nodelay, nodelay_first: nodelay, ..Entry::default() })?;
        self.name(process, fd, known);
        Some(known)
    }

    /// A descriptor is another name of what an older one names, or of nothing that is known.
    pub(super) fn copied(&mut self, process: u32, from: i32, to: i32) {
        match self.known_descriptor(process, from) {
            Some(known) => self.name(process, to, known),
            None => self.closed(process, to),
        }
    }

    /// A descriptor names nothing any more.
    pub(super) fn closed(&mut self, process: u32, fd: i32) {
        if let Some(descriptors) = self.by_descriptor.get_mut(&process) {
            descriptors.remove(&fd);
        }
    }

    /// A child has its parent's descriptors.
    pub(super) fn forked(&mut self, process: u32, parent: u32) {
        if let Some(descriptors) = self.by_descriptor.get(&parent).cloned() {
            self.by_descriptor.insert(process, descriptors);
        }
    }

    /// A process is over.
    pub(super) fn ended(&mut self, process: u32) {
        self.by_descriptor.remove(&process);
    }

    /// `TCP_NODELAY` was set.
    pub(super) fn set_nodelay(&mut self, known: Known, on: bool) {
        self.entry_mut(known).nodelay = on;
    }

    /// The TCP socket at a place in the kernel's memory, by which a call on a descriptor has just moved bytes.
    pub(super) fn at_place(&mut self, place: u64, process: u32, fd: Option<i32>) -> Option<Known> {
        let named = fd.and_then(|fd| self.known_descriptor(process, fd));
        let before = self.by_place.get(&place).and_then(|connection| connection.known);
        let before = before.map(|known| self.really(known));
        // What lies elsewhere cannot be it: the descriptor was closed behind our back, and given to another.
        let named = named.filter(|known| self.entry(*known).place.is_none_or(|found| found == place));
        let known = match (before, named) {
            (Some(before), Some(named)) => {
                self.join(named, before);
                before
            }
            (Some(known), None) | (None, Some(known)) => known,
            (None, None) => self.enter(Entry::default())?,
        };
        if before.is_none() {
            self.first_at(place, known);
        }
        if let Some(fd) = fd {
            self.name(process, fd, known);
            if before.is_none() || self.entry(known).cookie.is_none() {
                self.look(process, fd, known);
            }
        }
        Some(known)
    }

    fn first_at(&mut self, place: u64, known: Known) {
        let connection = self.by_place.entry(place).or_default();
        connection.known = Some(known);
        let ends = connection.ends;
        let entry = self.entry_mut(known);
        entry.is_tcp = true;
        entry.place = Some(place);
        entry.ends = entry.ends.or(ends);
    }

    /// A connection begins, is established or ends: of which process is not said.
    pub(super) fn state(&mut self, place: u64, old: i64, new: i64, ends: Option<(SocketAddr, SocketAddr)>) {
        let begins = new == SYN_SENT || new == SYN_RECV && old != SYN_SENT;
        if begins {
            // The memory of a former socket may be used again.
            self.by_place.remove(&place);
        }
        if self.by_place.len() >= MOST_CONNECTIONS && !self.by_place.contains_key(&place) {
            return;
        }
        let connection = self.by_place.entry(place).or_default();
        connection.ends = ends.or(connection.ends);
        match connection.known {
            Some(known) => {
                let entry = self.entry_mut(known);
                entry.ends = entry.ends.or(ends);
            }
            None if new == CLOSE => {
                self.by_place.remove(&place);
            }
            None => {}
        }
    }

    /// Each socket's cookie, or a number of ours, by its place in the table; `None` for what is not known to be TCP.
    pub(super) fn cookies(&self) -> Vec<Option<u64>> {
        let cookie = |at: usize| {
            let known = self.really(Known(at as u64));
            let entry = self.entry(known);
            entry.is_tcp.then(|| entry.cookie.unwrap_or(NAMELESS | known.0))
        };
        (0..self.all.len()).map(cookie).collect()
    }

    /// What is known of TCP's sockets.
    pub(super) fn sockets(&self) -> Vec<Socket> {
        let cookies = self.cookies();
        let own = self.all.iter().zip(cookies).filter(|(entry, _)| entry.is.is_none());
        own.filter_map(|(entry, cookie)| {
            Some(Socket {
                cookie: cookie?,
                local: entry.ends.map(|(local, _)| local),
                peer: entry.ends.map(|(_, peer)| peer),
                nodelay: entry.nodelay_first,
                mss: entry.mss,
                // Calls of every kind are seen, so nobody has to find out by it what was not.
                written: 0,
            })
        })
        .collect()
    }

    /// Reads a socket through its descriptor, if it is still open and still that socket.
    fn look(&mut self, process: u32, fd: i32, known: Known) {
        let Some(descriptor) = Descriptor::of(process, fd) else { return };
        let found = descriptor.duplicate().ok().and_then(|twin| describe(&twin).ok().flatten());
        let Some(found) = found else { return };
        let ends = (canonical(found.local), canonical(found.peer));
        if self.entry(known).ends.is_none_or(|before| before == ends) {
            self.fill(known, &found);
        }
    }

    fn fill(&mut self, known: Known, found: &Found) {
        self.by_cookie.insert(found.cookie, known);
        let is_connected = found.peer.port() != 0;
        let entry = self.entry_mut(known);
        if entry.cookie.is_none() && found.socket.options.nodelay == Some(true) {
            // Where the program has set it since, that call will tell.
            entry.nodelay = true;
            entry.nodelay_first = true;
        }
        entry.is_tcp = true;
        entry.cookie = Some(found.cookie);
        entry.mss = found.socket.info.mss.and_then(|mss| u32::try_from(mss).ok()).unwrap_or(entry.mss);
        if is_connected {
            entry.ends = Some((canonical(found.local), canonical(found.peer)));
        }
    }

    fn join(&mut self, named: Known, before: Known) {
        if named != before {
            let same = std::mem::take(self.entry_mut(named));
            self.entry_mut(named).is = Some(before);
            let entry = self.entry_mut(before);
            entry.nodelay |= same.nodelay;
            entry.nodelay_first |= same.nodelay_first;
            entry.cookie = entry.cookie.or(same.cookie);
            entry.ends = entry.ends.or(same.ends);
            entry.mss = entry.mss.max(same.mss);
        }
    }

    fn enter(&mut self, entry: Entry) -> Option<Known> {
        if self.all.len() == MOST {
            return None;
        }
        self.all.push(entry);
        Some(Known(self.all.len() as u64 - 1))
    }

    fn name(&mut self, process: u32, fd: i32, known: Known) {
        self.by_descriptor.entry(process).or_default().insert(fd, known);
    }

    fn really(&self, mut known: Known) -> Known {
        while let Some(is) = self.all[known.0 as usize].is {
            known = is;
        }
        known
    }

    fn entry(&self, known: Known) -> &Entry {
        &self.all[known.0 as usize]
    }

    fn entry_mut(&mut self, known: Known) -> &mut Entry {
        &mut self.all[known.0 as usize]
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
