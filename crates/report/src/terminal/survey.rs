//! One pass over a capture's connections and findings: the worst are kept, all are summed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter::Peekable;

use tcpwhy_diagnose::report::{Blamed, Capture, Connection, Finding, Line, Protocol, Severity, Source};

/// A connection with its findings.
pub(super) struct Entry {
    pub(super) connection: Connection,
    pub(super) findings: Vec<Finding>,
}

/// What the connections that are not shown come to.
#[derive(Clone, Copy, Default)]
pub(super) struct Rest {
    pub(super) connections: u64,
    pub(super) lost_ms: f64,
    /// The most that one of them lost.
    pub(super) worst_ms: f64,
}

/// One rule's findings added up.
pub(super) struct RuleTotal {
    pub(super) rule: &'static str,
    pub(super) severity: Severity,
    /// Findings; more than one of a connection where each of its sides has one.
    pub(super) findings: u64,
    /// Connections that have one of their own.
    pub(super) connections: u64,
    /// The last of these.
    latest: Option<u64>,
    pub(super) cost_ms: f64,
    /// The one that cost most.
    pub(super) worst: Finding,
    /// The end that the first of them blames, and whether all blame that one.
    blamed: Option<String>,
    pub(super) blames_one: bool,
    /// The time in which somebody waited on its connection, ms; 0 for a finding about several.
    pub(super) worst_of_ms: f64,
}

/// The capture at a glance.
pub(super) struct Survey {
    pub(super) capture: Capture,
    pub(super) connections: u64,
    /// Packets that belong to connections.
    pub(super) packets: u64,
    pub(super) has_tcp: bool,
    pub(super) has_handshake: bool,
    /// Some TCP connection has packets of both ends.
    pub(super) has_dialogue: bool,
    /// The worst connections, worst first.
    pub(super) shown: Vec<Entry>,
    pub(super) rest: Rest,
    /// In order of severity, then cost.
    pub(super) rules: Vec<RuleTotal>,
    /// Findings about several connections or the capture, at most `top` of each rule.
    pub(super) about_all: Vec<Finding>,
    /// How many more of them there are.
    pub(super) about_all_left: u64,
}

/// What connections are ranked by, in µs: time lost to TCP, then the findings' cost, then duration; of equals
/// the earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(i64, i64, i64, Reverse<u64>);

impl Rank {
    fn of(entry: &Entry) -> Self {
        let us = |ms: f64| (ms * 1e3) as i64;
        let cost = entry.findings.iter().map(|finding| finding.cost_ms.0).sum();
        let Connection { id, ledger_ms, duration_ms, .. } = &entry.connection;
        Self(us(ledger_ms.lost()), us(cost), us(duration_ms.0), Reverse(*id))
    }
}

impl Survey {
    /// Reads all of `source`, keeping `top` connections.
    pub(super) fn of(source: &dyn Source, top: usize) -> Self {
        let mut survey = Self {
            capture: source.capture(),
            connections: 0,
            packets: 0,
            has_tcp: false,
            has_handshake: false,
            has_dialogue: false,
            shown: Vec::new(),
            rest: Rest::default(),
            rules: Vec::new(),
            about_all: Vec::new(),
            about_all_left: 0,
        };
        let mut entries = Entries::of(source);
        while let Some(finding) = entries.next_about_all() {
            survey.add_about_all(finding, top.max(1));
        }
        let mut kept = BTreeMap::new();
        for entry in entries {
            survey.count(&entry);
            kept.insert(Rank::of(&entry), entry);
            if kept.len() > top
                && let Some((_, least)) = kept.pop_first()
            {
                survey.rest.add(&least.connection);
            }
        }
        survey.shown = kept.into_values().rev().collect();
        survey.read_in_full(source);
        survey.rules.sort_by(|a, b| b.severity.cmp(&a.severity).then(b.cost_ms.total_cmp(&a.cost_ms)));
        survey
    }

    /// Replaces what was skimmed by the full findings, where it will be shown.
    fn read_in_full(&mut self, source: &dyn Source) {
        for entry in &mut self.shown {
            entry.findings = source.findings_of(entry.connection.id);
        }
        for total in &mut self.rules {
            let Some(id) = total.worst.connection else { continue };
            let full = source.findings_of(id).into_iter().find(|full| {
                full.rule == total.worst.rule
                    && full.cost_ms == total.worst.cost_ms
                    && full.count == total.worst.count
            });
            if let Some(full) = full {
                total.worst = full;
            }
        }
    }

    fn count(&mut self, entry: &Entry) {
        let connection = &entry.connection;
        self.connections += 1;
        self.packets += connection.packets.to_server + connection.packets.to_client;
        let is_tcp = connection.protocol == Protocol::Tcp;
        self.has_tcp |= is_tcp;
        self.has_dialogue |= is_tcp && connection.packets.to_server.min(connection.packets.to_client) > 0;
        self.has_handshake |= connection.ledger_ms.get(Line::Handshake) > 0.0;
        for finding in &entry.findings {
            let waiting = connection.ledger_ms.total() - connection.ledger_ms.get(Line::Idle);
            self.add_to_rule(finding, waiting, blamed(finding, connection));
        }
    }

    fn add_about_all(&mut self, finding: Finding, at_most: usize) {
        self.add_to_rule(&finding, 0.0, finding.blame.address.as_deref());
        if self.about_all.iter().filter(|kept| kept.rule == finding.rule).count() < at_most {
            self.about_all.push(finding);
        } else {
            self.about_all_left += 1;
        }
    }

    fn add_to_rule(&mut self, finding: &Finding, waiting_ms: f64, blamed: Option<&str>) {
        let cost_ms = finding.cost_ms.0;
        let Some(total) = self.rules.iter_mut().find(|total| total.rule == finding.rule) else {
            self.rules.push(RuleTotal {
                rule: finding.rule,
                severity: finding.severity,
                findings: 1,
                connections: u64::from(finding.connection.is_some()),
                latest: finding.connection,
                cost_ms,
                worst: finding.clone(),
                blamed: blamed.map(str::to_owned),
                blames_one: true,
                worst_of_ms: waiting_ms,
            });
            return;
        };
        total.findings += 1;
        total.blames_one &= total.blamed.as_deref() == blamed;
        if finding.connection.is_some() && finding.connection != total.latest {
            total.connections += 1;
            total.latest = finding.connection;
        }
        total.cost_ms += cost_ms;
        total.severity = total.severity.max(finding.severity);
        if cost_ms > total.worst.cost_ms.0 {
            total.worst = finding.clone();
            total.worst_of_ms = waiting_ms;
        }
    }

    /// Puts connection `id` first among those shown; reads `source` again if it is not among them.
    pub(super) fn bring_forward(&mut self, source: &dyn Source, id: u64, top: usize) {
        if let Some(at) = self.shown.iter().position(|entry| entry.connection.id == id) {
            self.shown[..=at].rotate_right(1);
            return;
        }
        if top == 0 {
            return;
        }
        let Some(mut entry) = Entries::of(source).find(|entry| entry.connection.id == id) else { return };
        entry.findings = source.findings_of(id);
        self.rest.connections -= 1;
        self.rest.lost_ms -= entry.connection.ledger_ms.lost();
        self.shown.insert(0, entry);
        if self.shown.len() > top
            && let Some(least) = self.shown.pop()
        {
            self.rest.add(&least.connection);
        }
    }
}

/// The end that a finding of `connection` blames; a skimmed one does not say.
fn blamed<'a>(finding: &Finding, connection: &'a Connection) -> Option<&'a str> {
    match finding.blame.side {
        Blamed::Client => Some(&connection.client),
        Blamed::Server => Some(&connection.server),
        Blamed::Both | Blamed::Network | Blamed::Capture => None,
    }
}

impl Rest {
    fn add(&mut self, connection: &Connection) {
        let lost_ms = connection.ledger_ms.lost();
        self.connections += 1;
        self.lost_ms += lost_ms;
        self.worst_ms = self.worst_ms.max(lost_ms);
    }
}

/// Connections joined with their findings: both come ordered by connection, so neither is held in memory.
struct Entries<'a> {
    connections: Box<dyn Iterator<Item = Connection> + 'a>,
    findings: Peekable<Box<dyn Iterator<Item = Finding> + 'a>>,
}

impl<'a> Entries<'a> {
    fn of(source: &'a dyn Source) -> Self {
        Self { connections: source.connections(), findings: source.skim().peekable() }
    }

    /// The next of the findings about the whole capture, which come first.
    fn next_about_all(&mut self) -> Option<Finding> {
        self.findings.next_if(|finding| finding.connection.is_none())
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        while self.next_about_all().is_some() {}
        let connection = self.connections.next()?;
        let mut findings = Vec::new();
        let id = connection.id;
        while let Some(finding) = self.findings.next_if(|finding| finding.connection.is_some_and(|c| c <= id))
        {
            if finding.connection == Some(id) {
                findings.push(finding);
            }
        }
        Some(Entry { connection, findings })
    }
}
