//! Which connection is played again, and its packets.

use std::cell::{Cell, RefCell};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::report::{Blamed, Connection, Finding, Protocol, Source};
use tcpwhy_simulate::whatif::{self, Corked};
use tcpwhy_wire::calls::Write;
use tcpwhy_wire::{Names, Packet, Socket};

use crate::drive::{self, Seen, Trouble};
use crate::stop::Stop;
use crate::{complaint, output};

/// Packets kept for a replay, 80 MB of them.
const MOST_PACKETS: usize = 1 << 19;
/// Connections of one client that are played one after the other.
pub(crate) const MOST_CONNECTIONS: usize = 200;

/// One connection of a file.
pub(super) struct Chosen {
    pub(super) connection: Connection,
    pub(super) corked: Corked,
    /// Which capture of the file it is in.
    capture: usize,
    /// How many connections between the same two sockets were before it.
    before: usize,
    /// It carried one exchange, as others between the same hosts did: they are played together.
    is_one_of_many: bool,
}

impl Chosen {
    /// Connection `number` of the first capture that has one of that number; without a number the one that TCP made
    /// wait longest.
    pub(super) fn of(file: &Path, number: Option<u64>, stop: &Stop) -> Result<Self> {
        let mut chosen: Option<Self> = None;
        let mut captures = 0;
        let read = drive::captures(&file.into(), None, None, stop, &mut |analyzed| {
            let found = Self::in_capture(&analyzed.diagnosis, number, captures);
            let is_better = |found: &Self| match (&chosen, number) {
                (None, _) => true,
                (Some(_), Some(_)) => false,
                (Some(best), None) => rank(&found.connection) > rank(&best.connection),
            };
            if let Some(found) = found.filter(is_better) {
                chosen = Some(found);
            }
            captures += 1;
            Ok(())
        });
        explained(file, read)?;
        let name = complaint::name(file);
        chosen.ok_or_else(|| match number {
            Some(number) => anyhow!("{name}: no TCP connection {number}"),
            None => anyhow!("{name}: no TCP connection with data"),
        })
    }

    fn in_capture(diagnosis: &Diagnosis, number: Option<u64>, capture: usize) -> Option<Self> {
        let tcp = || diagnosis.connections().filter(|connection| connection.protocol == Protocol::Tcp);
        let connection = match number {
            Some(number) => tcp().find(|connection| connection.id == number),
            None => {
                tcp().filter(|connection| connection.bytes.to_server + connection.bytes.to_client > 0).max_by(
                    |one, other| rank(one).partial_cmp(&rank(other)).unwrap_or(std::cmp::Ordering::Equal),
                )
            }
        }?;
        let same =
            |other: &Connection| other.client == connection.client && other.server == connection.server;
        let before = tcp().filter(|other| other.id < connection.id && same(other)).count();
        let has_one = connection.exchanges.as_ref().is_none_or(|exchanges| exchanges.count <= 1);
        let others = tcp().filter(|other| {
            host(&other.client) == host(&connection.client) && other.server == connection.server
        });
        let is_one_of_many = number.is_none() && has_one && others.take(2).count() > 1;
        let corked = corked(&diagnosis.findings_of(connection.id));
        Some(Self { connection, corked, capture, before, is_one_of_many })
    }

    /// The packets of each connection that is to be played, and what was recorded of its programs' writes.
    pub(super) fn packets(&self, file: &Path, stop: &Stop) -> Result<(Vec<Vec<Packet>>, Vec<Write>)> {
        let capture = Cell::new(0);
        let kept: RefCell<(Vec<Packet>, Vec<Write>)> = RefCell::default();
        let keep = |seen: Seen<'_>, names: Option<&Names>| {
            let (packets, writes) = &mut *kept.borrow_mut();
            if capture.get() == self.capture && packets.len() <= MOST_PACKETS && self.wants(seen, names) {
                match seen {
                    Seen::Packet(packet) => packets.push(*packet),
                    Seen::Write(write) if writes.len() < MOST_PACKETS => writes.push(*write),
                    // One that is missing makes the others worthless, which the replay finds out.
                    Seen::Write(_) => {}
                }
            }
        };
        let read = drive::tapped(&file.into(), stop, &keep, &mut |_| {
            capture.set(capture.get() + 1);
            Ok(())
        });
        explained(file, read)?;
        let (kept, writes) = kept.into_inner();
        if kept.len() > MOST_PACKETS {
            bail!("{}: connection {} has too many packets", complaint::name(file), self.connection.id);
        }
        let all = whatif::connections(&kept);
        if self.is_one_of_many {
            return Ok((one_after_the_other(all), writes));
        }
        Ok((all.into_iter().skip(self.before).take(1).collect(), writes))
    }

    fn wants(&self, seen: Seen<'_>, names: Option<&Names>) -> bool {
        let none = Names::default();
        let names = names.unwrap_or(&none);
        let is_between = |client: Socket, server: Socket| {
            let client = names.socket(client);
            let is_client = if self.is_one_of_many {
                host(&client) == host(&self.connection.client)
            } else {
                client == self.connection.client
            };
            is_client && names.socket(server) == self.connection.server
        };
        let (from, to) = seen.ends();
        is_between(from, to) || is_between(to, from)
    }
}

/// The rule that knows corks.
const CORK: &str = "cork-timeout";

/// Which sides of a connection have a cork on, by its findings.
pub(crate) fn corked(findings: &[Finding]) -> Corked {
    let has = |side| findings.iter().any(|finding| finding.rule == CORK && finding.blame.side == side);
    [has(Blamed::Client), has(Blamed::Server)]
}

/// By how long TCP made it wait, then by its length.
fn rank(connection: &Connection) -> (f64, f64) {
    (connection.ledger_ms.lost(), connection.duration_ms.0)
}

/// A socket without its port.
pub(crate) fn host(socket: &str) -> &str {
    socket.rsplit_once(':').map_or(socket, |(host, _)| host)
}

/// Those that begin when the ones before are over: connections side by side are not one client's turns.
pub(crate) fn one_after_the_other(all: Vec<Vec<Packet>>) -> Vec<Vec<Packet>> {
    let mut turns: Vec<Vec<Packet>> = Vec::new();
    let mut over = i64::MIN;
    for packets in all.into_iter().take(MOST_CONNECTIONS) {
        let data = packets.iter().filter(|packet| has_data(packet)).map(|packet| packet.time);
        let (Some(begun), Some(last)) = (packets.first().map(|packet| packet.time), data.max()) else {
            continue;
        };
        if begun >= over {
            over = last;
            turns.push(packets);
        }
    }
    turns
}

fn has_data(packet: &Packet) -> bool {
    matches!(&packet.transport, tcpwhy_wire::Transport::Tcp(tcp) if tcp.payload_len > 0)
}

fn explained(file: &Path, read: Result<(), Trouble>) -> Result<()> {
    read.map_err(|trouble| match trouble {
        Trouble::Input(what) => anyhow!("{}: {what}", complaint::name(file)),
        Trouble::Output(error) => output::failed(error),
    })
}
