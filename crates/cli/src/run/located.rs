//! An analysis of packets with the lines of code in it.

use std::collections::BTreeMap;

use tcpwhy_diagnose::report::{Blamed, Capture, Connection, Finding, LedgerMs, Source};

/// Faults of how a program writes: their findings end with where it does.
const WRITING: [&str; 5] =
    ["split-write", "nagle-delayed-ack", "nagle-hold", "merged-updates", "cork-timeout"];

/// The connections of the watched programs, and what is known of each of their ends, by address.
pub(super) struct Located<'a> {
    pub(super) whole: &'a dyn Source,
    /// `ip:port` of both ends of each watched socket, its own first, and where it is written to.
    pub(super) sockets: BTreeMap<(String, String), String>,
    /// Packets that the capture has missed.
    pub(super) dropped: u64,
}

impl Located<'_> {
    fn is_watched(&self, connection: &Connection) -> bool {
        let Connection { client, server, .. } = connection;
        let has = |own: &String, peer: &String| self.sockets.contains_key(&(own.clone(), peer.clone()));
        has(client, server) || has(server, client)
    }

    fn located(&self, mut finding: Finding, connection: &Connection) -> Finding {
        let ends = match finding.blame.side {
            Blamed::Client => (connection.client.clone(), connection.server.clone()),
            Blamed::Server => (connection.server.clone(), connection.client.clone()),
            Blamed::Both | Blamed::Network | Blamed::Capture => return finding,
        };
        if let Some(place) = self.sockets.get(&ends).filter(|_| WRITING.contains(&finding.rule)) {
            finding.summary.truncate(finding.summary.trim_end_matches('.').len());
            finding.summary.push_str(&format!(". Where: {place}"));
        }
        finding
    }
}

impl Source for Located<'_> {
    fn capture(&self) -> Capture {
        let mut capture = self.whole.capture();
        "the command's packets".clone_into(&mut capture.name);
        if self.dropped > 0 {
            capture.notes.push(format!("{} packets could not be captured in time.", self.dropped));
        }
        capture.ledger_ms = LedgerMs::default();
        for connection in self.connections() {
            for (sum, line) in capture.ledger_ms.0.iter_mut().zip(connection.ledger_ms.0) {
                *sum += line;
            }
        }
        capture
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        Box::new(self.whole.connections().filter(|connection| self.is_watched(connection)))
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        let all: BTreeMap<u64, Connection> =
            self.connections().map(|connection| (connection.id, connection)).collect();
        Box::new(self.whole.findings().filter_map(move |finding| match finding.connection {
            Some(id) => all.get(&id).map(|connection| self.located(finding, connection)),
            // Of findings about several, nobody knows whose connections they are.
            None => (finding.blame.side == Blamed::Capture).then_some(finding),
        }))
    }
}
