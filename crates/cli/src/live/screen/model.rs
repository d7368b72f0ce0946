//! What the screen shows: the latest result, and how somebody wants to see it.

use std::time::Duration;

use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::report::{Connection, Severity, Source};
use tcpwhy_report::terminal::{self, Options};

use super::super::announce::{Announced, News};
use super::super::capture::Progress;
use super::super::names::Names;
use crate::narrowed::Narrowed;

/// Findings kept to be shown below the connections.
const NEWS: usize = 50;

/// A connection on the screen.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) connection: Connection,
    /// What was found on it, the costliest first: severity and rule.
    pub(super) findings: Vec<(Severity, &'static str, f64)>,
}

impl Row {
    /// Time that TCP made its programs wait, ms.
    pub(super) fn lost(&self) -> f64 {
        self.connection.ledger_ms.lost()
    }

    /// When its last packet came, ms from the capture's first.
    fn last(&self) -> f64 {
        self.connection.start_ms.0 + self.connection.duration_ms.0
    }

    fn packets(&self) -> u64 {
        self.connection.packets.to_client + self.connection.packets.to_server
    }

    fn is(&self, other: &Connection) -> bool {
        let mine = &self.connection;
        (mine.protocol, &mine.client, &mine.server, mine.start_ms)
            == (other.protocol, &other.client, &other.server, other.start_ms)
    }

    fn has(&self, text: &str, names: &Names) -> bool {
        let Connection { client, server, .. } = &self.connection;
        client.contains(text)
            || server.contains(text)
            || self.findings.iter().any(|(_, rule, _)| rule.contains(text))
            || names.of_connection(&self.connection).iter().flatten().any(|one| one.name.contains(text))
    }
}

/// What connections are ordered by, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Lost,
    Share,
    Packets,
    Latest,
}

impl Order {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Lost => Self::Share,
            Self::Share => Self::Packets,
            Self::Packets => Self::Latest,
            Self::Latest => Self::Lost,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lost => "time lost",
            Self::Share => "share lost",
            Self::Packets => "packets",
            Self::Latest => "latest packet",
        }
    }

    fn of(self, row: &Row) -> f64 {
        match self {
            Self::Lost => row.lost(),
            Self::Share => row.lost() / row.connection.duration_ms.0.max(f64::MIN_POSITIVE),
            Self::Packets => row.packets() as f64,
            Self::Latest => row.last(),
        }
    }
}

/// What fills the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Connections,
    /// The chosen connection's report, from this line on.
    Report(u16),
    Help,
}

/// The latest result, and how it is looked at.
pub(super) struct Model {
    pub(super) interface: String,
    pub(super) filter: String,
    pub(super) color: bool,
    pub(super) elapsed: Duration,
    pub(super) packets: u64,
    /// Packets in the last second.
    pub(super) rate: f64,
    pub(super) dropped: u64,
    pub(super) forgotten: u64,
    diagnosis: Option<Diagnosis>,
    /// In the order in which they are shown, less those that the text leaves out.
    pub(super) rows: Vec<Row>,
    pub(super) connections: usize,
    announced: Announced,
    /// The latest findings, with the time of their appearance.
    pub(super) news: Vec<(Duration, News)>,
    pub(super) order: Order,
    pub(super) names: Names,
    /// What a connection's ends, programs or findings must have.
    pub(super) text: String,
    pub(super) is_typing: bool,
    pub(super) at: usize,
    pub(super) page: Page,
    frozen: bool,
    pub(super) said: Option<String>,
}

impl Model {
    pub(super) fn new(interface: &str, filter: &str, names: &Names, color: bool) -> Self {
        Self {
            interface: interface.to_owned(),
            filter: filter.to_owned(),
            color,
            elapsed: Duration::ZERO,
            packets: 0,
            rate: 0.0,
            dropped: 0,
            forgotten: 0,
            diagnosis: None,
            rows: Vec::new(),
            connections: 0,
            announced: Announced::default(),
            news: Vec::new(),
            order: Order::Lost,
            names: names.clone(),
            text: String::new(),
            is_typing: false,
            at: 0,
            page: Page::Connections,
            frozen: false,
            said: None,
        }
    }

    /// Takes the latest result, `elapsed` after the beginning.
    pub(super) fn update(&mut self, progress: Progress, elapsed: Duration) {
        let passed = elapsed.saturating_sub(self.elapsed).as_secs_f64();
        let frames = progress.info.frames;
        if passed > 0.0 {
            self.rate = frames.saturating_sub(self.packets) as f64 / passed;
        }
        (self.packets, self.elapsed) = (frames, elapsed);
        self.dropped = progress.statistics.dropped;
        self.forgotten = progress.analyzer.forgotten();
        let diagnosis = progress.diagnosis();
        let news = self.announced.new_in(&diagnosis);
        self.news.extend(news.into_iter().map(|news| (elapsed, news)));
        let old = self.news.len().saturating_sub(NEWS);
        self.news.drain(..old);
        self.connections = diagnosis.len();
        self.diagnosis = Some(diagnosis);
        self.arrange();
    }

    /// Makes the rows anew; the chosen connection stays chosen while a report is open or after one moved to it.
    pub(super) fn arrange(&mut self) {
        let chosen = self.rows.get(self.at).map(|row| row.connection.clone());
        let Some(diagnosis) = &self.diagnosis else { return };
        let mut rows: Vec<Row> =
            diagnosis.connections().map(|connection| Row { connection, findings: Vec::new() }).collect();
        for finding in diagnosis.skim().filter(|finding| finding.severity >= Severity::Advice) {
            let row = finding.connection.and_then(|id| rows.get_mut(usize::try_from(id).ok()?));
            row.into_iter().for_each(|row| {
                row.findings.push((finding.severity, finding.rule, finding.cost_ms.0));
            });
        }
        rows.retain(|row| self.text.is_empty() || row.has(&self.text, &self.names));
        for row in &mut rows {
            row.findings.sort_by(|a, b| b.0.cmp(&a.0).then(b.2.total_cmp(&a.2)));
        }
        rows.sort_by(|a, b| self.order.of(b).total_cmp(&self.order.of(a)));
        let follows = self.at > 0 || matches!(self.page, Page::Report(_));
        let again = chosen.filter(|_| follows);
        let at = again.and_then(|chosen| rows.iter().position(|row| row.is(&chosen)));
        self.at = at.unwrap_or(self.at).min(rows.len().saturating_sub(1));
        self.rows = rows;
    }

    pub(super) fn chosen(&self) -> Option<&Row> {
        self.rows.get(self.at)
    }

    /// The chosen connection's full report, for a screen of so many columns.
    pub(super) fn report(&self, width: usize) -> Vec<u8> {
        let mut text = Vec::new();
        if let (Some(diagnosis), Some(row)) = (&self.diagnosis, self.chosen())
            && let Ok(one) = Narrowed::new(diagnosis, row.connection.id)
        {
            let options = Options { width, color: self.color, ..Options::default() };
            // Memory takes everything.
            let _ = terminal::write(&mut text, &one, &options);
        }
        text
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen
    }

    pub(super) fn freeze(&mut self) {
        self.frozen = !self.frozen;
    }

    pub(super) fn say(&mut self, what: String) {
        self.said = Some(what);
    }
}
