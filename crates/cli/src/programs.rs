//! The programs at the ends of connections: who watched sockets knows them, packets do not.

use std::collections::HashMap;
use std::net::SocketAddr;

use tcpwhy_diagnose::report::{Capture, Connection, Finding, Program, Protocol, Source, WhatIf};
use tcpwhy_wire::calls::Holder;

/// Those that are known, each by whether it is UDP's, its own end and the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs(HashMap<(bool, SocketAddr, SocketAddr), Program>);

impl Programs {
    /// Takes what somebody knows; of two at the same end, the later one is told.
    pub(crate) fn learn(&mut self, holders: impl IntoIterator<Item = Holder>) {
        let known = holders.into_iter().map(|holder| {
            let Holder { is_udp, local, peer, process: pid, name } = holder;
            ((is_udp, local, peer), Program { name, pid })
        });
        self.0.extend(known);
    }

    fn of(&self, mut connection: Connection) -> Connection {
        let is_udp = connection.protocol == Protocol::Udp;
        if let (Ok(client), Ok(server)) = (connection.client.parse(), connection.server.parse()) {
            connection.client_program = self.0.get(&(is_udp, client, server)).cloned();
            connection.server_program = self.0.get(&(is_udp, server, client)).cloned();
        }
        connection
    }
}

/// A result whose connections have their programs.
pub(crate) struct Peopled<'a> {
    pub(crate) whole: &'a dyn Source,
    pub(crate) programs: &'a Programs,
}

impl Source for Peopled<'_> {
    fn capture(&self) -> Capture {
        self.whole.capture()
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        let connections = self.whole.connections();
        if self.programs.0.is_empty() {
            return connections;
        }
        Box::new(connections.map(|connection| self.programs.of(connection)))
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        self.whole.findings()
    }

    fn skim(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        self.whole.skim()
    }

    fn findings_of(&self, connection: u64) -> Vec<Finding> {
        self.whole.findings_of(connection)
    }

    fn what_if(&self, finding: &Finding) -> Option<WhatIf> {
        self.whole.what_if(finding)
    }
}
