//! An analysis of packets with the lines of code in it.

use std::collections::HashMap;
use std::net::SocketAddr;

use tcpwhy_diagnose::report::{Blamed, Capture, Connection, Finding, Source};

use super::Recorded;

/// Faults of how a program writes: their findings end with where it does.
const WRITING: [&str; 5] =
    [super::SPLIT_WRITE, "nagle-delayed-ack", "nagle-hold", "merged-updates", "cork-timeout"];

/// A result with what is known of the watched programs' sockets.
pub(crate) struct Located<'a> {
    whole: &'a dyn Source,
    recorded: &'a Recorded,
    /// Their positions, by own address and peer.
    sockets: HashMap<(SocketAddr, SocketAddr), usize>,
    /// The ends of each connection, client first.
    connections: HashMap<u64, (SocketAddr, SocketAddr)>,
}

impl<'a> Located<'a> {
    pub(crate) fn new(whole: &'a dyn Source, recorded: &'a Recorded) -> Self {
        let ends = recorded.sockets.iter().enumerate().rev();
        let sockets = ends.filter_map(|(at, socket)| Some((socket.local.zip(socket.peer)?, at))).collect();
        let connections = whole.connections().filter_map(|connection| ends_of(&connection)).collect();
        Self { whole, recorded, sockets, connections }
    }

    fn located(&self, mut finding: Finding) -> Finding {
        if let Some(place) = self.place(&finding) {
            finding.summary.truncate(finding.summary.trim_end_matches('.').len());
            finding.summary.push_str(&format!(". Where: {place}."));
        }
        finding
    }

    /// Where the fault is, for those that a line of code makes.
    fn place(&self, finding: &Finding) -> Option<String> {
        let (client, server) = *self.connections.get(&finding.connection?)?;
        let ends = match finding.blame.side {
            Blamed::Client => (client, server),
            Blamed::Server => (server, client),
            Blamed::Both | Blamed::Network | Blamed::Capture => return None,
        };
        let socket = self.sockets.get(&ends).filter(|_| WRITING.contains(&finding.rule))?;
        Some(self.recorded.place(&self.recorded.sockets[*socket], finding.rule == super::SPLIT_WRITE))
    }
}

fn ends_of(connection: &Connection) -> Option<(u64, (SocketAddr, SocketAddr))> {
    Some((connection.id, (connection.client.parse().ok()?, connection.server.parse().ok()?)))
}

impl Source for Located<'_> {
    fn capture(&self) -> Capture {
        let mut capture = self.whole.capture();
        capture.notes.extend(self.recorded.notes());
        capture
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        self.whole.connections()
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        Box::new(self.whole.findings().map(|finding| self.located(finding)))
    }

    fn skim(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        self.whole.skim()
    }

    fn findings_of(&self, connection: u64) -> Vec<Finding> {
        self.whole.findings_of(connection).into_iter().map(|finding| self.located(finding)).collect()
    }
}
