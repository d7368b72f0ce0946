//! What a report comes to, for each service: small enough to be kept, and all that a comparison needs.

use std::collections::HashMap;
use std::iter::Peekable;

use serde::{Deserialize, Serialize};
use tcpwhy_diagnose::report::{Connection, Finding, LedgerMs, Ms, Protocol, Severity, Source};

/// Services that a digest tells apart, those that waited longest. A capture of a scan has a million: their digest would be
/// larger than the report, and nobody compares them one by one.
pub const MOST_SERVICES: usize = 500;

/// A report in sums.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Digest {
    /// Frames of all captures in the report.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Connections and UDP flows.
    pub connections: u64,
    /// How long they lasted, added up.
    pub connected_ms: Ms,
    /// Their ledgers, added up.
    pub ledger_ms: LedgerMs,
    /// What connections went to, the one with most lost time first; at most [`MOST_SERVICES`].
    pub services: Vec<Service>,
    /// Services beyond those.
    pub more_services: u64,
    /// Findings about several connections or a capture as a whole.
    pub findings: Vec<RuleTotal>,
}

/// All connections to one address and port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// `ip:port`, as the report writes it.
    pub server: String,
    /// How many connections.
    pub connections: u64,
    /// How long they lasted, added up.
    pub connected_ms: Ms,
    /// Their ledgers, added up.
    pub ledger_ms: LedgerMs,
    /// Their requests and answers, where there were any.
    pub exchanges: Option<ExchangesTotal>,
    /// Their findings, by rule, the one that cost most first.
    pub findings: Vec<RuleTotal>,
}

/// Exchanges of several connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExchangesTotal {
    /// How many.
    pub count: u64,
    /// The slowest.
    pub max_ms: Ms,
    /// The time inside them, by line: over `count` it is what one takes on average.
    pub ledger_ms: LedgerMs,
}

/// One rule's findings, added up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleTotal {
    /// The rule's name.
    pub rule: String,
    /// The most severe of them.
    pub severity: Severity,
    /// Findings: at most one a connection and side.
    pub findings: u64,
    /// How often it was seen in all.
    pub count: u64,
    /// What it cost in all.
    pub cost_ms: Ms,
}

impl Digest {
    /// The digest of one capture. Reads `source` once; memory does not grow with it.
    pub fn of(source: &dyn Source) -> Self {
        let mut digest = Self::default();
        digest.add(source);
        digest
    }

    /// Adds a capture of the same report.
    pub fn add(&mut self, source: &dyn Source) {
        let capture = source.capture();
        self.packets += capture.packets;
        self.bytes += capture.bytes;
        let mut gathering = Gathering::new(std::mem::take(self));
        let mut findings = source.skim().peekable();
        while let Some(finding) = findings.next_if(|finding| finding.connection.is_none()) {
            count_in(&mut gathering.digest.findings, &finding);
        }
        for connection in source.connections() {
            gathering.take(&connection, &mut findings);
        }
        *self = gathering.finish();
    }
}

impl Service {
    /// The port, where the name has one.
    pub(super) fn port(&self) -> Option<&str> {
        self.server.rsplit_once(':').map(|(_, port)| port)
    }

    fn new(connection: &Connection) -> Self {
        Self {
            protocol: connection.protocol,
            server: connection.server.clone(),
            connections: 0,
            connected_ms: Ms(0.0),
            ledger_ms: LedgerMs::default(),
            exchanges: None,
            findings: Vec::new(),
        }
    }

    fn add(&mut self, connection: &Connection) {
        self.connections += 1;
        self.connected_ms.0 += connection.duration_ms.0;
        add(&mut self.ledger_ms, &connection.ledger_ms);
        if let Some(exchanges) = &connection.exchanges {
            let total = self.exchanges.get_or_insert_default();
            total.count += exchanges.count;
            total.max_ms.0 = total.max_ms.0.max(exchanges.max_ms.0);
            add(&mut total.ledger_ms, &exchanges.ledger_ms);
        }
    }

    /// What services are ranked by, in ms.
    fn rank(&self) -> (f64, f64) {
        (self.ledger_ms.lost(), self.connected_ms.0)
    }
}

/// Services by what tells them apart.
struct Gathering {
    digest: Digest,
    services: HashMap<(Protocol, String), Service>,
}

impl Gathering {
    fn new(mut digest: Digest) -> Self {
        let services = std::mem::take(&mut digest.services);
        let services =
            services.into_iter().map(|service| ((service.protocol, service.server.clone()), service));
        Self { services: services.collect(), digest }
    }

    /// Adds a connection with its findings, which come ordered by connection.
    fn take(&mut self, connection: &Connection, findings: &mut Peekable<impl Iterator<Item = Finding>>) {
        self.digest.connections += 1;
        self.digest.connected_ms.0 += connection.duration_ms.0;
        add(&mut self.digest.ledger_ms, &connection.ledger_ms);
        let key = (connection.protocol, connection.server.clone());
        let service = self.services.entry(key).or_insert_with(|| Service::new(connection));
        service.add(connection);
        while let Some(finding) =
            findings.next_if(|finding| finding.connection.is_some_and(|of| of <= connection.id))
        {
            if finding.connection == Some(connection.id) {
                count_in(&mut service.findings, &finding);
            }
        }
        // Half of them are let go at once, so that it takes no time for each.
        if self.services.len() >= 2 * MOST_SERVICES {
            let kept = self.keep_most();
            self.services = kept
                .into_iter()
                .map(|service| ((service.protocol, service.server.clone()), service))
                .collect();
        }
    }

    /// The services that count most, in this order. The others are counted.
    fn keep_most(&mut self) -> Vec<Service> {
        let mut services: Vec<_> = self.services.drain().map(|(_, service)| service).collect();
        services.sort_by(|a, b| {
            b.rank()
                .partial_cmp(&a.rank())
                .unwrap_or(std::cmp::Ordering::Equal)
                .then_with(|| a.server.cmp(&b.server))
        });
        self.digest.more_services += services.len().saturating_sub(MOST_SERVICES) as u64;
        services.truncate(MOST_SERVICES);
        services
    }

    fn finish(mut self) -> Digest {
        let mut services = self.keep_most();
        for service in &mut services {
            service
                .findings
                .sort_by(|a, b| b.cost_ms.0.total_cmp(&a.cost_ms.0).then_with(|| a.rule.cmp(&b.rule)));
        }
        Digest { services, ..self.digest }
    }
}

fn count_in(totals: &mut Vec<RuleTotal>, finding: &Finding) {
    let at = totals.iter().position(|total| total.rule == finding.rule).unwrap_or_else(|| {
        let (rule, severity) = (finding.rule.to_owned(), finding.severity);
        totals.push(RuleTotal { rule, severity, findings: 0, count: 0, cost_ms: Ms(0.0) });
        totals.len() - 1
    });
    let total = &mut totals[at];
    total.severity = total.severity.max(finding.severity);
    total.findings += 1;
    total.count += finding.count;
    total.cost_ms.0 += finding.cost_ms.0;
}

fn add(sum: &mut LedgerMs, more: &LedgerMs) {
    for (sum, more) in sum.0.iter_mut().zip(more.0) {
        *sum += more;
    }
}
