//! Findings that were not there before.

use std::collections::HashSet;

use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::report::{Connection, Finding, Severity, Source};

/// A finding, known again in a later result: its rule, and the number of its connection, which stays when others are
/// forgotten.
type Key = (&'static str, Option<u64>);

/// What was announced of the connections that are still kept.
#[derive(Debug, Default)]
pub(super) struct Announced {
    known: HashSet<Key>,
}

/// A finding and the connection it is about, if it is about one.
pub(super) struct News {
    pub(super) finding: Finding,
    pub(super) connection: Option<Connection>,
}

impl Announced {
    /// Whether there was any in the last result.
    pub(super) fn any(&self) -> bool {
        !self.known.is_empty()
    }

    /// Findings that cost time or could, and were not in an earlier result.
    pub(super) fn new_in(&mut self, diagnosis: &Diagnosis) -> Vec<News> {
        let mut remarkable: Vec<Finding> =
            diagnosis.skim().filter(|finding| finding.severity >= Severity::Advice).collect();
        remarkable.sort_by_key(|finding| finding.connection);
        let mut known = HashSet::with_capacity(remarkable.len());
        let mut news = Vec::new();
        let mut connections = diagnosis.connections().peekable();
        for finding in remarkable {
            while connections.next_if(|connection| finding.connection > Some(connection.id)).is_some() {}
            let connection =
                connections.peek().filter(|connection| finding.connection == Some(connection.id));
            let key = (finding.rule, finding.connection);
            if !self.known.contains(&key) && !known.contains(&key) {
                news.push(News { connection: connection.cloned(), finding: in_full(diagnosis, finding) });
            }
            known.insert(key);
        }
        self.known = known;
        news
    }
}

/// The finding with its texts, which a skimmed one lacks.
fn in_full(diagnosis: &Diagnosis, finding: Finding) -> Finding {
    let Some(id) = finding.connection else { return finding };
    let full = diagnosis.findings_of(id).into_iter().find(|other| other.rule == finding.rule);
    full.unwrap_or(finding)
}
