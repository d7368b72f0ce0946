//! `--connection N`: one connection of a result; and a result under another name.

use tcpwhy_diagnose::report::{Blamed, Capture, Connection, Finding, Source};

/// A result that shows one of its connections, and what is to be known of the capture itself.
#[derive(Debug)]
pub(crate) struct Narrowed<S> {
    whole: S,
    connection: Connection,
}

impl<S: Source> Narrowed<S> {
    /// `whole` narrowed to connection `id`, or `whole` back where it has no such connection.
    pub(crate) fn new(whole: S, id: u64) -> Result<Self, S> {
        let found = whole.connections().find(|connection| connection.id == id);
        match found {
            Some(connection) => Ok(Self { whole, connection }),
            None => Err(whole),
        }
    }
}

impl<S> Narrowed<S> {
    /// The result with all its connections.
    pub(crate) fn whole(&self) -> &S {
        &self.whole
    }

    /// The connection that is shown.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl<S: Source> Source for Narrowed<S> {
    fn capture(&self) -> Capture {
        let mut capture = self.whole.capture();
        capture.ledger_ms = self.connection.ledger_ms;
        capture.notes.push(format!("Only connection {} is shown.", self.connection.id));
        capture
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        Box::new(std::iter::once(self.connection.clone()))
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        let id = self.connection.id;
        Box::new(self.whole.findings().filter(move |finding| match finding.connection {
            Some(connection) => connection == id,
            // What is wrong with the capture bears on every connection; what several connections do together
            // says nothing about this one.
            None => finding.blame.side == Blamed::Capture,
        }))
    }
}

/// A result that is called something else than its file.
pub(crate) struct Named<'a> {
    pub(crate) whole: &'a dyn Source,
    pub(crate) name: Option<&'a str>,
}

impl Source for Named<'_> {
    fn capture(&self) -> Capture {
        let mut capture = self.whole.capture();
        if let Some(name) = self.name {
            name.clone_into(&mut capture.name);
        }
        capture
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        self.whole.connections()
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
}
