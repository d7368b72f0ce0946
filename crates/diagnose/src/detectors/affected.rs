//! Which connections a fault of the capture concerns: told once, not a thousand times.

use tcpwhy_wire::Names;

use crate::diagnosis::{Diagnosis, ms};
use crate::flow::Connection;
use crate::report::{Blame, Blamed, Evidence, Finding, Fix, Ms};

use super::rule::Rule;

/// All connections that a fault of the capture concerns.
#[derive(Debug)]
pub(crate) struct Affected<'a> {
    /// How many.
    pub(crate) count: u64,
    /// The measure of all of them together.
    pub(crate) total: u64,
    /// The one with the largest measure.
    pub(crate) worst: &'a Connection,
    worst_id: u64,
    /// Its measure.
    pub(crate) worst_size: u64,
    names: &'a Names,
    origin: i64,
}

impl<'a> Affected<'a> {
    /// Those for which `measure` is above 0; `None` where there are none.
    pub(crate) fn of(diagnosis: &'a Diagnosis, measure: impl Fn(&Connection) -> u64) -> Option<Self> {
        Self::numbered(diagnosis, |_, connection| measure(connection))
    }

    /// The same with a measure that needs the connection's number.
    pub(crate) fn numbered(
        diagnosis: &'a Diagnosis,
        measure: impl Fn(u64, &Connection) -> u64,
    ) -> Option<Self> {
        let (names, origin) = (&diagnosis.info().names, diagnosis.origin());
        let mut found: Option<Self> = None;
        for (id, connection) in diagnosis.flows() {
            let size = measure(id, connection);
            if size == 0 {
                continue;
            }
            match &mut found {
                None => {
                    found = Some(Self {
                        count: 1,
                        total: size,
                        worst: connection,
                        worst_id: id,
                        worst_size: size,
                        names,
                        origin,
                    });
                }
                Some(known) => {
                    known.count += 1;
                    known.total = known.total.saturating_add(size);
                    if size > known.worst_size {
                        (known.worst, known.worst_id, known.worst_size) = (connection, id, size);
                    }
                }
            }
        }
        found
    }

    /// `one connection`, or `37 connections, most of it between a:1 and b:2`: the place in words.
    pub(crate) fn place(&self) -> String {
        let client = self.worst.client().unwrap_or(0);
        let [client, server] = [client, 1 - client].map(|end| self.names.socket(self.worst.ends[end]));
        match self.count {
            1 => format!("the connection from {client} to {server}"),
            count => format!(
                "{} connections, most on that from {client} to {server}",
                super::subject::grouped(count)
            ),
        }
    }

    /// A packet of the worst connection as evidence.
    pub(crate) fn packet(&self, packet: u64, time: i64, note: &str) -> Evidence {
        Evidence {
            packet,
            time_ms: ms(time.saturating_sub(self.origin).max(0)),
            note: note.to_owned(),
            capture: None,
        }
    }

    /// The finding: about the one connection, or about the capture.
    pub(crate) fn finding(&self, rule: &Rule, summary: String, evidence: Vec<Evidence>, fix: Fix) -> Finding {
        Finding {
            rule: rule.name,
            severity: rule.severity,
            connection: (self.count == 1).then_some(self.worst_id),
            blame: Blame { side: Blamed::Capture, address: None },
            count: self.count,
            cost_ms: Ms(0.0),
            worst_ms: Ms(0.0),
            confidence: CONFIDENCE,
            summary,
            evidence,
            fixes: vec![fix],
        }
    }
}

/// What the capture holds and what it lacks is counted, not inferred; odd packets remain possible.
const CONFIDENCE: f64 = 0.95;
