//! The packets of some connections, from a second look at their file.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use tcpwhy_diagnose::report::{Connection, Finding, Line, Protocol, Source};
use tcpwhy_simulate::whatif;
use tcpwhy_wire::calls::Write;
use tcpwhy_wire::{Names, Packet, Socket};

use crate::drive::{self, Seen};
use crate::parts::Parts;
use crate::stop::Stop;
use crate::whatif::{MOST_CONNECTIONS, host, one_after_the_other};

/// Findings that share a replay, and the connections it is made of: one, or all that a client opened to one server.
pub(super) struct Wanted {
    /// All about the same connection, or one about several.
    pub(super) findings: Vec<Finding>,
    /// The one connection's number.
    id: Option<u64>,
    /// Its socket, or the host of all.
    client: String,
    server: String,
    /// How many connections it is made of.
    connections: usize,
    /// How many connections between the same two sockets were before the one.
    before: usize,
    /// Packets that the report counted.
    pub(super) count: u64,
    packets: Vec<Packet>,
    /// What its programs wrote, where that was recorded.
    pub(super) writes: Vec<Write>,
}

impl Wanted {
    /// What is wanted for each of these findings; `source` has all connections of its capture.
    pub(super) fn of(source: &dyn Source, asked: Vec<Vec<Finding>>) -> Vec<Self> {
        let mut firsts: Vec<Option<Connection>> = vec![None; asked.len()];
        for connection in source.connections() {
            for (first, findings) in firsts.iter_mut().zip(&asked) {
                if first.is_none() && findings.first().is_some_and(|finding| is_about(finding, &connection)) {
                    *first = Some(connection.clone());
                }
            }
        }
        let found = asked.into_iter().zip(firsts).filter_map(|(findings, first)| Self::new(findings, first?));
        let mut found: Vec<Self> = found.collect();
        for connection in source.connections() {
            found.iter_mut().for_each(|wanted| wanted.add(&connection));
        }
        found.retain(|wanted| wanted.connections <= MOST_CONNECTIONS);
        found
    }

    /// `first` is one of the connections; `None` where no replay knows how it began.
    fn new(findings: Vec<Finding>, first: Connection) -> Option<Self> {
        if first.protocol != Protocol::Tcp || first.ledger_ms.get(Line::Handshake) <= 0.0 {
            return None;
        }
        let id = findings.first()?.connection;
        let Connection { client, server, .. } = first;
        let client = if id.is_some() { client } else { host(&client).to_owned() };
        Some(Self {
            findings,
            id,
            client,
            server,
            connections: 0,
            before: 0,
            count: 0,
            packets: Vec::new(),
            writes: Vec::new(),
        })
    }

    fn add(&mut self, connection: &Connection) {
        if connection.protocol != Protocol::Tcp || !self.is_between(&connection.client, &connection.server) {
            return;
        }
        if self.id.is_some_and(|id| connection.id < id) {
            self.before += 1;
        }
        if self.id.is_none_or(|id| connection.id == id) {
            self.connections += 1;
            self.count += connection.packets.to_server + connection.packets.to_client;
        }
    }

    /// The packets of each connection, if the file still has all those that were counted.
    pub(super) fn connections(&self) -> Option<Vec<Vec<Packet>>> {
        let mut all = whatif::connections(&self.packets);
        if self.id.is_some() {
            all = all.into_iter().skip(self.before).take(1).collect();
        }
        let count: usize = all.iter().map(Vec::len).sum();
        if count as u64 != self.count {
            return None;
        }
        Some(if self.id.is_some() { all } else { one_after_the_other(all) })
    }

    fn is_between(&self, client: &str, server: &str) -> bool {
        let client = if self.id.is_some() { client } else { host(client) };
        self.client == client && self.server == server
    }

    fn has(&self, one: &str, other: &str) -> bool {
        self.is_between(one, other) || self.is_between(other, one)
    }
}

/// Whether a finding is about a connection. Those about several have their SYNs as evidence.
fn is_about(finding: &Finding, connection: &Connection) -> bool {
    match (finding.connection, finding.blame.address.as_deref(), finding.evidence.first()) {
        (Some(id), ..) => id == connection.id,
        (None, Some(client), Some(syn)) => {
            host(&connection.client) == client && connection.start_ms == syn.time_ms
        }
        (None, ..) => false,
    }
}

/// Reads capture number `capture` of a file again and keeps what is wanted of it. What cannot be read is not kept.
pub(super) fn gather(file: &Parts, capture: usize, wanted: &mut [Wanted], stop: &Stop) {
    let present = Cell::new(0);
    let wanted = RefCell::new(wanted);
    // Names of sockets take longer to write than packets to read.
    let owners: RefCell<HashMap<(Socket, Socket), Vec<usize>>> = RefCell::default();
    let keep = |seen: Seen<'_>, names: Option<&Names>| {
        if present.get() != capture {
            return;
        }
        let (mut wanted, mut owners) = (wanted.borrow_mut(), owners.borrow_mut());
        let owners = owners.entry(seen.ends()).or_insert_with_key(|ends| owners_of(*ends, names, &wanted));
        for owner in owners {
            match seen {
                Seen::Packet(packet) => wanted[*owner].packets.push(*packet),
                Seen::Write(write) if wanted[*owner].writes.len() < whatif::MOST_PACKETS => {
                    wanted[*owner].writes.push(*write);
                }
                // One that is missing makes the others worthless, which the replay finds out.
                Seen::Write(_) => {}
            }
        }
    };
    let _ = drive::tapped(file, stop, &keep, &mut |_| {
        present.set(present.get() + 1);
        Ok(())
    });
}

/// Whose packet it is: connections one after the other between the same sockets all get it.
fn owners_of((from, to): (Socket, Socket), names: Option<&Names>, wanted: &[Wanted]) -> Vec<usize> {
    let none = Names::default();
    let names = names.unwrap_or(&none);
    let [from, to] = [from, to].map(|socket| names.socket(socket));
    (0..wanted.len()).filter(|index| wanted[*index].has(&from, &to)).collect()
}
