//! One connection: its headline, its figures, its ledger, its findings.

use std::io;

use tcpwhy_diagnose::report::{
    Cadence, Connection, Exchanges, Finding, Program, Protocol, Side, SmallWaits, Vantage,
};

use super::finding::{self, Printed};
use super::ledger;
use super::survey::Entry;
use super::verdict::Verdict;
use crate::number;
use crate::page::{Page, shortened};
use crate::plain::plain;

const INDENT: &str = "    ";
/// Longest host name (RFC 1035 2.3.4) and port fit; what is longer is not a name.
const FULL_NAME_COLUMNS: usize = 261;
/// Where a name stands in a sentence: the longest IPv6 address and port fit.
const NAME_COLUMNS: usize = 48;
/// Share of intervals near the period from which a rhythm is called even.
const EVEN: f64 = 0.8;
/// Below this share it is called uneven; between the two nothing is claimed.
const UNEVEN: f64 = 0.5;

/// Writes one connection with all its findings; briefly if there is nothing to say and it is not `alone`.
pub(super) fn write(
    page: &mut Page<'_>,
    entry: &Entry,
    alone: bool,
    verdict: &Verdict,
    printed: &mut Printed<'_>,
) -> io::Result<()> {
    let connection = &entry.connection;
    let protocol = match connection.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    };
    let number = page.ink.faint(&format!("#{}", connection.id));
    let ends = format!("{} → {}", full_name(&connection.client), full_name(&connection.server));
    let duration = number::duration(connection.duration_ms.0);
    page.ruled(&format!("{number}  {}", page.ink.bold(&ends)), &format!("{protocol} · {duration}"))?;
    if let Some(programs) = programs_of(connection) {
        page.items(INDENT, &[programs])?;
    }
    page.items(INDENT, &figures(connection))?;
    if let Some(exchanges) = &connection.exchanges {
        page.items(INDENT, &exchange_figures(exchanges))?;
    }
    for cadence in &connection.cadence {
        page.items(INDENT, &[format!("{} {}", side(cadence.from), rhythm(cadence))])?;
    }
    let remarkable = alone || !entry.findings.is_empty() || connection.ledger_ms.lost() > 0.0;
    if !remarkable {
        return ledger::write_short(page, &connection.ledger_ms);
    }
    if connection.ledger_ms.total() > 0.0 {
        page.blank()?;
        ledger::write(page, &connection.ledger_ms)?;
    }
    if let Some(small) = &connection.small_waits {
        page.hanging(INDENT, &page.ink.faint(&small_waits(small)))?;
    }
    printed.next_connection();
    for found in worst_first(&entry.findings) {
        page.blank()?;
        finding::write(page, found, verdict, printed)?;
    }
    Ok(())
}

/// Problems before advice before notes, the costliest first.
fn worst_first(findings: &[Finding]) -> Vec<&Finding> {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by(|a, b| b.severity.cmp(&a.severity).then(b.cost_ms.0.total_cmp(&a.cost_ms.0)));
    sorted
}

/// A host's name or address, safe to print and short enough for a sentence.
pub(super) fn name(raw: &str) -> String {
    shortened(&plain(raw), NAME_COLUMNS)
}

fn full_name(raw: &str) -> String {
    shortened(&plain(raw), FULL_NAME_COLUMNS)
}

/// Stands for a program that nobody knows: it runs on another machine, or hides.
pub const NO_PROGRAM: &str = "–";

/// `curl (4711) → nginx (812)`, the programs at a connection's ends with their processes; `None` where neither is known.
pub fn programs(ends: [Option<&Program>; 2]) -> Option<String> {
    let one = |program: Option<&Program>| {
        program.map_or(NO_PROGRAM.to_owned(), |Program { name: called, pid }| {
            format!("{} ({pid})", name(called))
        })
    };
    let [client, server] = ends;
    ends.iter().any(Option::is_some).then(|| format!("{} → {}", one(client), one(server)))
}

/// The same of a report's connection.
pub(crate) fn programs_of(connection: &Connection) -> Option<String> {
    programs([connection.client_program.as_ref(), connection.server_program.as_ref()])
}

/// Round trip, packets, bytes, and where it was captured.
pub(crate) fn figures(connection: &Connection) -> Vec<String> {
    let Connection { packets, bytes, .. } = connection;
    let mut items = Vec::new();
    if let Some(rtt) = connection.base_rtt_ms {
        items.push(format!("base RTT {}", number::duration(rtt.0)));
    }
    for (arrow, packets, bytes) in
        [("→", packets.to_server, bytes.to_server), ("←", packets.to_client, bytes.to_client)]
    {
        items.push(format!("{arrow} {}, {}", number::plural(packets, "packet"), number::bytes(bytes)));
    }
    items.push(match connection.vantage {
        Vantage::Client => "captured at the client".to_owned(),
        Vantage::Server => "captured at the server".to_owned(),
        Vantage::Middle => "captured between the two".to_owned(),
        Vantage::Unknown => "place of capture unknown".to_owned(),
    });
    items
}

/// Latencies, and the three lines that most of their time went to.
pub(crate) fn exchange_figures(exchanges: &Exchanges) -> Vec<String> {
    const LINES: usize = 3;
    let mut items = if exchanges.count == 1 {
        vec![format!("1 exchange in {}", number::duration(exchanges.max_ms.0))]
    } else {
        vec![
            number::plural(exchanges.count, "exchange"),
            format!("p50 {}", number::duration(exchanges.p50_ms.0)),
            format!("p99 {}", number::duration(exchanges.p99_ms.0)),
            format!("max {}", number::duration(exchanges.max_ms.0)),
        ]
    };
    if let Some(slowest) = &exchanges.slowest
        && let [.., longest] = items.as_mut_slice()
    {
        longest.push_str(&format!(" ({})", plain(slowest)));
    }
    let total = exchanges.ledger_ms.total();
    let shares: Vec<String> = ledger::booked(&exchanges.ledger_ms)
        .iter()
        .take(LINES)
        .map(|(line, ms)| format!("{} {}", line.name(), number::percent(*ms, total)))
        .collect();
    if !shares.is_empty() {
        items.push(shares.join(", "));
    }
    items
}

/// `Small waits that no finding owns: 12, 48.0 ms in all, worst 9.10 ms.`
fn small_waits(small: &SmallWaits) -> String {
    let worst = if small.count > 1 {
        format!(", worst {}", number::duration(small.worst_ms.0))
    } else {
        String::new()
    };
    format!(
        "Small waits that no finding owns: {}, {} in all{worst}.",
        number::count(small.count),
        number::duration(small.total_ms.0)
    )
}

/// `client` or `server`.
pub(super) fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// `sends 10.0/s, one every 100 ms, evenly`.
pub(super) fn rhythm(cadence: &Cadence) -> String {
    let evenness = match cadence.evenness {
        e if e >= EVEN => ", evenly",
        e if e < UNEVEN => ", unevenly",
        _ => "",
    };
    let rate = cadence.per_second;
    let rate = if rate < 100.0 { format!("{rate:.1}") } else { number::count(rate.round() as u64) };
    format!("sends {rate}/s, one every {}{evenness}", number::duration(cadence.period_ms.0))
}
