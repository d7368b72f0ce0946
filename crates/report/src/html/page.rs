//! `tcpwhy-page/1`: what only the page needs. docs/page.schema.json holds it.

use std::collections::BTreeMap;

use serde::Serialize;
use tcpwhy_diagnose::detectors::Language;
use tcpwhy_diagnose::report::LedgerMs;

use super::RuleText;
use crate::terminal;

/// The format's name and version.
pub const FORMAT: &str = "tcpwhy-page/1";

/// What only the page needs.
#[derive(Clone, Debug, Serialize)]
pub struct Page<'a> {
    /// [`FORMAT`].
    pub format: &'static str,
    /// In the order of the report's.
    pub captures: &'a [CapturePage],
    /// The languages that recipes may be in, in the order in which they are offered.
    pub languages: &'static [Language],
    /// Of the rules that found something.
    pub rules: &'a BTreeMap<&'static str, RuleText>,
}

/// What only the page needs of one capture.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CapturePage {
    /// What the terminal says first.
    pub verdict: String,
    /// Its sign.
    pub sign: Option<terminal::Sign>,
    /// Connections that the capture has, those that the report of the page leaves out among them.
    pub connections: u64,
    /// Findings, likewise.
    pub findings: u64,
    /// The ledgers of the connections that are left out, added up, ms.
    pub others_ledger_ms: LedgerMs,
    /// Whose packets are there.
    pub tables: Vec<TableEntry>,
    /// Why nobody's are.
    pub no_packets: Option<String>,
    /// Whose packets show findings about several connections or the whole capture, in the packets' order: of those that the
    /// page has.
    pub shared_evidence: Vec<EvidencePlace>,
}

/// Where a packet is that a finding names which has no connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct EvidencePlace {
    /// Position in the capture, from 1.
    pub packet: u64,
    /// The number of the connection that it belongs to.
    pub connection: u64,
}

/// Where a connection's packets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TableEntry {
    /// Its number in the report.
    pub connection: u64,
    /// The table's number in the page.
    pub table: usize,
    /// Packets that the connection has.
    pub packets: u64,
    /// One of so many is there, and all near the evidence of findings; 1 where all are.
    pub every: u64,
    /// Whether held ACKs were not looked for, since packets are left out.
    pub without_held: bool,
    /// Whether neighbouring intervals of the ledger were put together: their sums are right, their order is not.
    pub coarse_ledger: bool,
}
