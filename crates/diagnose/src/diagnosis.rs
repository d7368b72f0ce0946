//! One capture's result, turned into the report's objects one at a time.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use tcpwhy_wire::Names;

use crate::analyzer::{About, CaptureInfo, ClockSteps};
use crate::detectors::{self, Subject};
use crate::flow::beliefs::vantage;
use crate::flow::connection::Connection as Flow;
use crate::flow::half::Half;
use crate::flow::series::Series;
use crate::flow::table::{MOST, Record, Table};
use crate::ledger::{Bookings, Lines};
use crate::report::{
    Cadence, Capture, Connection, Exchanges, Finding, LedgerMs, Line, Ms, PerDirection, Protocol, Side,
    Source,
};

/// One capture's result. Reports are made from it on demand, connection by connection.
#[derive(Debug)]
pub struct Diagnosis {
    info: CaptureInfo,
    table: Table,
    about: About,
    /// The packets of those connections that were recorded.
    series: BTreeMap<u64, Series>,
    /// What the rules about the whole capture find: it takes a look at every connection, so it is done once.
    of_capture: OnceLock<Vec<Finding>>,
}

/// Messages from which on intervals make a rhythm.
const RHYTHM_MESSAGES: u64 = 8;
/// A rhythm is kept if this share of intervals lies within a quarter of the period.
const RHYTHM_EVENNESS: f64 = 0.5;

impl Diagnosis {
    pub(crate) fn new(info: CaptureInfo, table: Table, about: About, series: BTreeMap<u64, Series>) -> Self {
        Self { info, table, about, series, of_capture: OnceLock::new() }
    }

    /// How many connections and UDP flows there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether the capture had none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When the connection of that number waited for what: every interval of its ledger, whose lines sum to
    /// [`Connection::ledger_ms`]. `None` where there is no such connection, or where the analyser was not asked to
    /// record it ([`crate::Analyzer::recording`]).
    pub fn bookings(&self, connection: u64) -> Option<Bookings> {
        let index = self.table.index(connection)?;
        let Record { connection, ledger } = self.table.get(index);
        ledger.bookings(connection)
    }

    /// The packets of the connection of that number. `None` where there is no such connection, or where the analyser was
    /// not asked to record it ([`crate::Analyzer::recording`]).
    pub fn series(&self, connection: u64) -> Option<&Series> {
        self.series.get(&connection)
    }

    pub(crate) fn info(&self) -> &CaptureInfo {
        &self.info
    }

    pub(crate) fn steps(&self) -> ClockSteps {
        self.about.steps
    }

    /// The capture's first frame that it has twice: which packet, and when. Packet 0 where there is none.
    pub(crate) fn first_copy(&self) -> (u64, i64) {
        self.about.copies.first
    }

    /// Packets of the connection that were left out as copies of others.
    pub(crate) fn copies_of(&self, id: u64) -> u64 {
        self.table.index(id).map_or(0, |index| self.about.copies.of(index))
    }

    /// The connection that this one is nothing but a copy of, seen behind a translator of addresses.
    fn original_of(&self, id: u64, connection: &Flow) -> Option<u64> {
        let packets = connection.halves.iter().map(|half| u64::from(half.packets)).sum();
        let original = self.about.copies.original(self.table.index(id)?, packets)?;
        Some(u64::from(self.table.number(original)))
    }

    /// Time of the capture's first frame, ns: where the report's times begin.
    pub fn origin(&self) -> i64 {
        self.info
            .span
            .map_or_else(|| self.table.iter().next().map_or(0, |first| first.connection.first), |span| span.0)
    }

    /// Every connection with its number.
    pub(crate) fn flows(&self) -> impl Iterator<Item = (u64, &Flow)> {
        self.table.numbered().map(|(id, record)| (id, &record.connection))
    }

    /// The connection of that number, as rules see it.
    pub(crate) fn subject(&self, id: u64) -> Option<Subject<'_>> {
        let index = self.table.index(id)?;
        Some(Subject::new(id, self.table.get(index), &self.info.names, self.origin()))
    }

    /// What the rules about the whole capture find.
    fn of_capture(&self) -> &[Finding] {
        self.of_capture.get_or_init(|| detectors::of_capture(self))
    }

    /// Those of them that are about more than one connection.
    fn of_all(&self) -> impl Iterator<Item = &Finding> {
        self.of_capture().iter().filter(|finding| finding.connection.is_none())
    }

    /// All findings on one connection.
    fn findings_on(&self, subject: &Subject<'_>) -> Vec<Finding> {
        let is_copy = self.original_of(subject.id, subject.connection).is_some();
        let mut findings = if is_copy { Vec::new() } else { detectors::of(subject) };
        let id = Some(subject.id);
        findings.extend(self.of_capture().iter().filter(|finding| finding.connection == id).cloned());
        findings
    }

    /// Connections that are others' packets with other addresses: their numbers, and those of the others.
    pub(crate) fn twins(&self) -> impl Iterator<Item = (u64, u64)> {
        self.flows().filter_map(|(id, connection)| Some((id, self.original_of(id, connection)?)))
    }

    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject<'_>> {
        let origin = self.origin();
        self.table.numbered().map(move |(id, record)| Subject::new(id, record, &self.info.names, origin))
    }
}

impl Source for Diagnosis {
    fn capture(&self) -> Capture {
        let mut ledger = self.about.forgotten.ledger;
        for Record { connection, ledger: booked } in self.table.iter() {
            for (sum, line) in ledger.0.iter_mut().zip(in_ms(&booked.lines(connection)).0) {
                *sum += line;
            }
        }
        let mut notes = self.info.notes.clone();
        if self.about.forgotten.count > 0 {
            notes.push(format!(
                "{} connections were forgotten to bound the memory: those that lost little and had been quiet for \
                 longest. Their time is in the sums; no finding tells of them.",
                self.about.forgotten.count
            ));
        }
        if self.table.left_out > 0 {
            let packets = self.table.left_out;
            notes.push(format!("{packets} packets of connections beyond the first {MOST} were left out"));
        }
        let (first, last) = self.info.span.unwrap_or_default();
        Capture {
            name: self.info.name.clone(),
            kind: self.info.kind.clone(),
            packets: self.info.frames,
            bytes: self.info.bytes,
            start: self.info.span.map(|span| crate::calendar::written(span.0, self.info.has_date)),
            duration_ms: ms(last.saturating_sub(first).max(0)),
            notes,
            ledger_ms: ledger,
        }
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        let (names, origin) = (&self.info.names, self.origin());
        Box::new(self.table.numbered().map(move |(id, record)| {
            let subject = Subject::new(id, record, names, origin).brief();
            let mut connection = connection_report(id, record, names, origin);
            if connection.ledger_ms.lost() > 0.0 {
                connection.small_waits =
                    detectors::shares::small_waits(&subject, &self.findings_on(&subject));
            }
            connection
        }))
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        let of_connections = self.subjects().flat_map(|subject| self.findings_on(&subject));
        Box::new(self.of_all().cloned().chain(of_connections))
    }

    fn skim(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        let brief = self.subjects().flat_map(|subject| self.findings_on(&subject.brief()));
        Box::new(self.of_all().cloned().chain(brief))
    }

    fn findings_of(&self, connection: u64) -> Vec<Finding> {
        self.subject(connection).map_or_else(Vec::new, |subject| self.findings_on(&subject))
    }
}

/// ns in the report's unit.
pub(crate) fn ms(ns: i64) -> Ms {
    Ms(ns as f64 / 1e6)
}

pub(crate) fn in_ms(lines: &Lines) -> LedgerMs {
    LedgerMs(lines.map(|ns| ms(ns).0))
}

fn connection_report(id: u64, record: &Record, names: &Names, origin: i64) -> Connection {
    let Record { connection, ledger } = record;
    let client = connection.client().unwrap_or(0);
    let (to_server, to_client) = (&connection.halves[client], &connection.halves[1 - client]);
    let lines = ledger.lines(connection);
    Connection {
        id,
        protocol: if connection.is_udp { Protocol::Udp } else { Protocol::Tcp },
        client: names.socket(connection.ends[client]),
        server: names.socket(connection.ends[1 - client]),
        client_program: None,
        server_program: None,
        vantage: vantage(connection),
        start_ms: ms(connection.first.saturating_sub(origin).max(0)),
        duration_ms: ms(connection.last - connection.first),
        // A clock that shows no time at all between data and its ACK is too coarse to measure the path.
        base_rtt_ms: connection.base_round_trip().filter(|base| *base > 0).map(ms),
        ledger_ms: in_ms(&lines),
        packets: PerDirection {
            to_server: u64::from(to_server.packets),
            to_client: u64::from(to_client.packets),
        },
        bytes: PerDirection { to_server: to_server.bytes, to_client: to_client.bytes },
        exchanges: exchanges(connection, &lines),
        cadence: [(Side::Client, to_server), (Side::Server, to_client)]
            .into_iter()
            .filter_map(|(from, half)| cadence(from, half))
            // Requests and answers come when they come.
            .filter(|_| !connection.exchanges.is_request_response())
            .collect(),
        small_waits: None,
    }
}

fn exchanges(connection: &Flow, lines: &Lines) -> Option<Exchanges> {
    let exchanges = &connection.exchanges;
    if !exchanges.is_request_response() {
        return None;
    }
    let latency = exchanges.latency.as_deref()?;
    Some(Exchanges {
        count: latency.count(),
        p50_ms: ms(latency.quantile(0.5)),
        p99_ms: ms(latency.quantile(0.99)),
        max_ms: ms(latency.max()),
        ledger_ms: in_ms(&inside_exchanges(connection, lines)),
        slowest: exchanges.slowest().map(|name| name.to_string()),
    })
}

/// The ledger without the time outside exchanges: the handshake, and between an answer and the next request
/// the client's program and the answer's own journey.
fn inside_exchanges(connection: &Flow, lines: &Lines) -> Lines {
    let mut inside = *lines;
    inside[Line::Handshake as usize] = 0;
    let mut outside =
        lines.iter().sum::<i64>() - lines[Line::Handshake as usize] - connection.exchanges.total();
    for line in [Line::Idle, Line::ClientApp, Line::Network, Line::Unexplained] {
        let taken = inside[line as usize].min(outside.max(0));
        inside[line as usize] -= taken;
        outside -= taken;
    }
    inside
}

fn cadence(from: Side, half: &Half) -> Option<Cadence> {
    let rhythm = half.rhythm.as_deref()?;
    let gaps = &rhythm.gaps;
    let period = gaps.quantile(0.5);
    let span = rhythm.last - rhythm.first;
    if gaps.count() < RHYTHM_MESSAGES || period == 0 || span == 0 {
        return None;
    }
    let evenness = gaps.between(period - period / 4, period + period / 4) as f64 / gaps.count() as f64;
    (evenness >= RHYTHM_EVENNESS).then(|| Cadence {
        from,
        messages: gaps.count() + 1,
        per_second: gaps.count() as f64 * 1e9 / span as f64,
        period_ms: ms(period),
        evenness,
    })
}
