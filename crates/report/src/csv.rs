//! Connections or findings as a table for spreadsheets and data frames: RFC 4180, UTF-8, one header line.
//!
//! Names, order and meaning of the columns are those of `tcpwhy-report/2`; docs/formats.md lists them. Rows are written as
//! they are made, so memory does not grow with them.

use std::io::{self, Write};

use serde::Serialize;
use tcpwhy_diagnose::hops::Hops;
use tcpwhy_diagnose::report::{Connection, Finding, LedgerMs, Line, Ms, Severity, Source};

use crate::plain::plain;

/// Behind the ledger's lines, since they came later.
const PROGRAMS: [&str; 4] = ["client_program", "client_pid", "server_program", "server_pid"];

/// What the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A connection each, with its ledger.
    Connections,
    /// A finding each.
    Findings,
}

const CONNECTION: [&str; 19] = [
    "capture",
    "id",
    "protocol",
    "client",
    "server",
    "vantage",
    "start_ms",
    "duration_ms",
    "base_rtt_ms",
    "packets_to_server",
    "packets_to_client",
    "bytes_to_server",
    "bytes_to_client",
    "exchanges",
    "exchange_p50_ms",
    "exchange_p99_ms",
    "exchange_max_ms",
    "problems",
    "lost_ms",
];

const FINDING: [&str; 17] = [
    "capture",
    "connection",
    "rule",
    "severity",
    "blame",
    "address",
    "count",
    "cost_ms",
    "worst_ms",
    "confidence",
    "summary",
    "packets",
    "first_packet_ms",
    "fix",
    "what_if_fix",
    "what_if_saved_ms",
    "what_if_more_packets",
];

/// Writes a table capture by capture.
pub struct Writer<W: Write> {
    csv: csv::Writer<W>,
    table: Table,
}

impl<W: Write> Writer<W> {
    /// Begins a table.
    pub fn begin(out: W, table: Table) -> io::Result<Self> {
        let mut csv = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
        match table {
            Table::Connections => {
                let lines = Line::ALL.map(|line| format!("{}_ms", line.name().replace('-', "_")));
                let programs = PROGRAMS.map(str::to_owned);
                csv.write_record(CONNECTION.into_iter().map(str::to_owned).chain(lines).chain(programs))?;
            }
            Table::Findings => csv.write_record(FINDING)?,
        }
        Ok(Self { csv, table })
    }

    /// Writes the rows of the next capture.
    pub fn capture(&mut self, source: &dyn Source) -> io::Result<()> {
        let capture = cell(&source.capture().name);
        match self.table {
            Table::Connections => self.connections(source, &capture)?,
            Table::Findings => {
                for finding in source.findings() {
                    let what_if = source.what_if(&finding);
                    let what_if =
                        what_if.map(|it| (it.fix, number(it.saved_ms.0), optional(it.more_packets)));
                    self.finding(&capture, &finding, what_if.unwrap_or_default())?;
                }
            }
        }
        self.csv.flush()
    }

    /// Ends the table and hands the output back. `hops` are the conversations that captures show on both sides of a proxy:
    /// their findings are rows too.
    pub fn end(mut self, hops: Option<&Hops>) -> io::Result<W> {
        let pairs = hops.filter(|_| self.table == Table::Findings).into_iter().flat_map(|hops| &hops.pairs);
        for pair in pairs {
            let capture = cell(&format!("{} and {}", pair.first.name, pair.second.name));
            for finding in &pair.findings {
                self.finding(&capture, finding, Default::default())?;
            }
        }
        self.csv.into_inner().map_err(|error| error.into_error())
    }

    fn connections(&mut self, source: &dyn Source, capture: &str) -> io::Result<()> {
        // Both come in order of connections.
        let mut findings = source.skim().filter(|finding| finding.connection.is_some()).peekable();
        for connection in source.connections() {
            let mut problems = Vec::new();
            while let Some(finding) = findings.next_if(|finding| finding.connection <= Some(connection.id)) {
                if finding.severity == Severity::Problem {
                    problems.push(finding.rule);
                }
            }
            self.connection(capture, &connection, &problems.join(" "))?;
        }
        Ok(())
    }

    fn connection(&mut self, capture: &str, connection: &Connection, problems: &str) -> io::Result<()> {
        let Connection { id, packets, bytes, exchanges, ledger_ms, .. } = connection;
        let latency = |pick: fn(&tcpwhy_diagnose::report::Exchanges) -> Ms| {
            exchanges.as_ref().map_or(String::new(), |exchanges| number(pick(exchanges).0))
        };
        let mut row = vec![
            capture.to_owned(),
            id.to_string(),
            word(&connection.protocol),
            cell(&connection.client),
            cell(&connection.server),
            word(&connection.vantage),
            number(connection.start_ms.0),
            number(connection.duration_ms.0),
            connection.base_rtt_ms.map_or(String::new(), |rtt| number(rtt.0)),
            packets.to_server.to_string(),
            packets.to_client.to_string(),
            bytes.to_server.to_string(),
            bytes.to_client.to_string(),
            optional(exchanges.as_ref().map(|exchanges| exchanges.count)),
            latency(|exchanges| exchanges.p50_ms),
            latency(|exchanges| exchanges.p99_ms),
            latency(|exchanges| exchanges.max_ms),
            problems.to_owned(),
            number(ledger_ms.lost()),
        ];
        row.extend(LedgerMs::clone(ledger_ms).0.map(number));
        for program in [&connection.client_program, &connection.server_program] {
            row.push(program.as_ref().map_or(String::new(), |program| cell(&program.name)));
            row.push(optional(program.as_ref().map(|program| program.pid)));
        }
        Ok(self.csv.write_record(row)?)
    }

    fn finding(
        &mut self,
        capture: &str,
        finding: &Finding,
        (what_if_fix, saved, more_packets): (String, String, String),
    ) -> io::Result<()> {
        let packets: Vec<_> = finding.evidence.iter().map(|shown| shown.packet.to_string()).collect();
        let first = finding.evidence.iter().map(|shown| shown.time_ms.0).reduce(f64::min);
        Ok(self.csv.write_record([
            capture,
            &optional(finding.connection),
            finding.rule,
            &word(&finding.severity),
            &word(&finding.blame.side),
            &finding.blame.address.as_deref().map_or(String::new(), cell),
            &finding.count.to_string(),
            &number(finding.cost_ms.0),
            &number(finding.worst_ms.0),
            &finding.confidence.to_string(),
            &cell(&finding.summary),
            &packets.join(" "),
            &first.map_or(String::new(), number),
            &finding.fixes.first().map_or(String::new(), |fix| cell(&fix.title)),
            &what_if_fix,
            &saved,
            &more_packets,
        ])?)
    }
}

/// A text that no spreadsheet takes for a formula and no terminal obeys. What would begin one (`=`, `+`, `-`, `@`, also in
/// their wide forms) is put behind an apostrophe, which spreadsheets do not show.
fn cell(text: &str) -> String {
    let text = plain(text);
    match text.trim_start().chars().next() {
        Some('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠') => format!("'{text}"),
        _ => text.into_owned(),
    }
}

/// Milliseconds to the microsecond, as in JSON.
fn number(ms: f64) -> String {
    ((ms * 1e3).round() / 1e3).to_string()
}

/// Nothing where nothing is known.
fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// A word of the report's format: `tcp`, `client`, `problem`, …
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
