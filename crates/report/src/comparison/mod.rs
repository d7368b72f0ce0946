//! Two reports of the same service, before and after a change: `tcpwhy-comparison/1`.
//!
//! Captures are never equally long, nor equally busy, so a cost is compared as what it takes of an exchange, or, where there
//! are none, as its share of the time that connections lasted.

mod digest;
mod verdict;

use serde::Serialize;
use tcpwhy_diagnose::report::{LedgerMs, Ms, Severity};

pub use digest::{Digest, ExchangesTotal, MOST_SERVICES, RuleTotal, Service};

/// The format's name and version.
pub const FORMAT: &str = "tcpwhy-comparison/1";

/// A cost that changed by less than this share of itself counts as the same: against the labelled corpus one cost in ten
/// is off by 19 % and more (LIMITATIONS.md, Costs).
const SAME: f64 = 0.2;

/// What is different.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// [`FORMAT`].
    pub format: &'static str,
    /// In a sentence or two.
    pub verdict: String,
    /// The first report.
    pub before: Amount,
    /// The second.
    pub after: Amount,
    /// Service by service: those in both reports first.
    pub services: Vec<ServicePair>,
    /// Findings about several connections or a capture as a whole.
    pub findings: Vec<FindingPair>,
}

/// How much there was of something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Amount {
    /// `ip:port`; null for a whole report.
    pub server: Option<String>,
    /// Connections and UDP flows.
    pub connections: u64,
    /// How long they lasted, added up.
    pub connected_ms: Ms,
    /// Their ledgers, added up.
    pub ledger_ms: LedgerMs,
    /// Their exchanges; null where there were none.
    pub exchanges: Option<Exchanges>,
}

/// Exchanges, and what one of them takes on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Exchanges {
    /// How many.
    pub count: u64,
    /// The mean of their times.
    pub mean_ms: Ms,
    /// The slowest.
    pub max_ms: Ms,
    /// `mean_ms` by line.
    pub ledger_ms: LedgerMs,
}

/// A service in both reports, or in one of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServicePair {
    /// By what the two were recognised as the same; null where one is missing.
    pub matched: Option<Matched>,
    /// In the first report.
    pub before: Option<Amount>,
    /// In the second.
    pub after: Option<Amount>,
    /// What was found.
    pub findings: Vec<FindingPair>,
}

/// By what a service was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matched {
    /// The same address and port.
    Address,
    /// The same port, which no other service has that is left.
    Port,
    /// Neither report has another.
    Only,
}

/// A rule's findings in both reports, or in one of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingPair {
    /// The rule's name.
    pub rule: String,
    /// The more severe of both.
    pub severity: Severity,
    /// What became of it; null where the other report does not have the service.
    pub change: Option<Change>,
    /// In the first report.
    pub before: Option<Cost>,
    /// In the second.
    pub after: Option<Cost>,
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Only before.
    Gone,
    /// Only after.
    New,
    /// It costs less, by more than a fifth.
    Better,
    /// It costs more, by more than a fifth.
    Worse,
    /// It costs about as much.
    Same,
}

/// What findings cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Findings.
    pub findings: u64,
    /// How often it was seen.
    pub count: u64,
    /// In all.
    pub cost_ms: Ms,
    /// As a share of the time that the connections lasted, 0 to 1; findings may share time.
    pub share: f64,
    /// For each exchange; null where there were none.
    pub per_exchange_ms: Option<Ms>,
}

/// Compares two reports.
pub fn compare(before: &Digest, after: &Digest) -> Comparison {
    let services: Vec<_> = paired(&before.services, &after.services).into_iter().map(service_pair).collect();
    let (before_all, after_all) = (Amount::of_all(before), Amount::of_all(after));
    let findings = finding_pairs(&before.findings, &after.findings, Some(&before_all), Some(&after_all));
    let verdict = verdict::sentence(&services, &findings);
    Comparison { format: FORMAT, verdict, before: before_all, after: after_all, services, findings }
}

/// Two services, or one, and by what they were recognised.
type Pair<'a> = (Option<&'a Service>, Option<&'a Service>, Option<Matched>);

/// Whether two services are the same, by one way to recognise them.
type Alike = fn(&Service, &Service) -> bool;

/// Which services are the same, the surest way first.
fn paired<'a>(before: &'a [Service], after: &'a [Service]) -> Vec<Pair<'a>> {
    let (mut before, mut after): (Vec<_>, Vec<_>) = (before.iter().collect(), after.iter().collect());
    let mut pairs = Vec::new();
    let ways: [(Matched, Alike); 3] = [
        (Matched::Address, |a, b| a.server == b.server),
        (Matched::Port, |a, b| a.port().is_some() && a.port() == b.port()),
        (Matched::Only, |_, _| true),
    ];
    for (matched, alike) in ways {
        // What is left when others were recognised is likelier to be something else.
        if matched == Matched::Only && !pairs.is_empty() {
            break;
        }
        let alike = |a: &Service, b: &Service| a.protocol == b.protocol && alike(a, b);
        let mut left = Vec::new();
        for &one in &before {
            let mut others = after.iter().enumerate().filter(|(_, other)| alike(one, other));
            let unique = others.next().filter(|_| others.next().is_none()).map(|(at, _)| at);
            let rivals = before.iter().filter(|rival| alike(rival, one)).count();
            match unique.filter(|_| rivals == 1) {
                Some(at) => pairs.push((Some(one), Some(after.remove(at)), Some(matched))),
                None => left.push(one),
            }
        }
        before = left;
    }
    pairs.extend(before.into_iter().map(|one| (Some(one), None, None)));
    pairs.extend(after.into_iter().map(|one| (None, Some(one), None)));
    pairs
}

fn service_pair((before, after, matched): Pair<'_>) -> ServicePair {
    let totals =
        |service: Option<&'_ Service>| service.map_or(Vec::new(), |service| service.findings.clone());
    let (was, is) = (before.map(Amount::of), after.map(Amount::of));
    let findings = finding_pairs(&totals(before), &totals(after), was.as_ref(), is.as_ref());
    ServicePair { matched, before: was, after: is, findings }
}

/// Findings of both, by rule: first what is gone, then what is new, then the rest; within these what cost most.
fn finding_pairs(
    before: &[RuleTotal],
    after: &[RuleTotal],
    was: Option<&Amount>,
    is: Option<&Amount>,
) -> Vec<FindingPair> {
    let mut rules: Vec<&str> = before.iter().chain(after).map(|total| total.rule.as_str()).collect();
    rules.sort_unstable();
    rules.dedup();
    let pair = |rule: &str| {
        let of = |totals: &'_ [RuleTotal]| totals.iter().find(|total| total.rule == rule).cloned();
        finding_pair(rule, &(of(before), was), &(of(after), is))
    };
    let mut pairs: Vec<_> = rules.into_iter().map(pair).collect();
    let order = |pair: &FindingPair| pair.change.map_or(u8::MAX, |change| change as u8);
    let cost = |pair: &FindingPair| pair.before.or(pair.after).map_or(0.0, |cost| cost.cost_ms.0);
    pairs.sort_by(|a, b| order(a).cmp(&order(b)).then(cost(b).total_cmp(&cost(a))));
    pairs
}

/// A rule's findings, if there were any, and what they were found in, if that was there.
type Found<'a> = (Option<RuleTotal>, Option<&'a Amount>);

fn finding_pair(rule: &str, before: &Found<'_>, after: &Found<'_>) -> FindingPair {
    let severity = before.0.iter().chain(&after.0).map(|total| total.severity).max();
    let cost = |(total, of): &Found<'_>| Some(Cost::of(total.as_ref()?, (*of)?));
    let (was, is) = (cost(before), cost(after));
    let both_there = before.1.is_some() && after.1.is_some();
    FindingPair {
        rule: rule.to_owned(),
        severity: severity.unwrap_or(Severity::Note),
        change: both_there.then(|| Change::of(was.as_ref(), is.as_ref())),
        before: was,
        after: is,
    }
}

impl Amount {
    fn of(service: &Service) -> Self {
        Self {
            server: Some(service.server.clone()),
            connections: service.connections,
            connected_ms: service.connected_ms,
            ledger_ms: service.ledger_ms,
            exchanges: service.exchanges.and_then(|total| Exchanges::of(&total)),
        }
    }

    fn of_all(digest: &Digest) -> Self {
        Self {
            server: None,
            connections: digest.connections,
            connected_ms: digest.connected_ms,
            ledger_ms: digest.ledger_ms,
            exchanges: None,
        }
    }
}

impl Exchanges {
    fn of(total: &ExchangesTotal) -> Option<Self> {
        let each = |ms: f64| ms / total.count as f64;
        let ledger_ms = LedgerMs(total.ledger_ms.0.map(each));
        let is_any = total.count > 0;
        is_any.then(|| Self {
            count: total.count,
            mean_ms: Ms(ledger_ms.total()),
            max_ms: total.max_ms,
            ledger_ms,
        })
    }
}

impl Cost {
    fn of(total: &RuleTotal, of: &Amount) -> Self {
        let exchanges = of.exchanges.map(|exchanges| exchanges.count as f64);
        let lasted = of.connected_ms.0;
        Self {
            findings: total.findings,
            count: total.count,
            cost_ms: total.cost_ms,
            share: if lasted > 0.0 { total.cost_ms.0 / lasted } else { 0.0 },
            per_exchange_ms: exchanges.map(|count| Ms(total.cost_ms.0 / count)),
        }
    }
}

impl Change {
    fn of(before: Option<&Cost>, after: Option<&Cost>) -> Self {
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            (Some(_), None) => return Self::Gone,
            (None, _) => return Self::New,
        };
        let (was, is) = match (before.per_exchange_ms, after.per_exchange_ms) {
            (Some(was), Some(is)) => (was.0, is.0),
            _ => (before.share, after.share),
        };
        if is < was * (1.0 - SAME) {
            Self::Better
        } else if is * (1.0 - SAME) > was {
            Self::Worse
        } else {
            Self::Same
        }
    }
}

#[cfg(test)]
mod tests;
