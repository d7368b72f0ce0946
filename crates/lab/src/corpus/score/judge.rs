//! One report against its label.

use serde::Serialize;
use tcpwhy_diagnose::report::{Blamed, Finding, LedgerMs, Line, Severity, Source};

use super::super::case::Party;
use super::super::label::{Label, LabelledCause};

/// What became of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The cause.
    #[serde(flatten)]
    pub cause: LabelledCause,
    /// Its part in the time is too small to ask for.
    pub is_minor: bool,
    /// The first of its rules that was found on its side; none if it was missed.
    pub by: Option<&'static str>,
    /// What these findings say it cost, in ms.
    pub said_ms: f64,
}

/// A finding that says something is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Blame {
    /// Its rule.
    pub rule: &'static str,
    /// Whom it blames.
    pub side: Blamed,
    /// What it says that it cost, in ms.
    pub cost_ms: f64,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
    /// The cause that it names; none where it names none of the case's.
    pub names: Option<String>,
    /// The label allows the rule.
    pub allowed: bool,
    /// What it says.
    pub summary: String,
}

impl Found {
    /// Whether it counts as missed.
    pub fn is_missed(&self) -> bool {
        self.by.is_none() && self.counts()
    }

    /// Whether it counts at all: what the capture cannot show, or what is small, counts only where it was found.
    pub fn counts(&self) -> bool {
        self.by.is_some() || !(self.cause.unseen || self.is_minor)
    }
}

impl Blame {
    /// Neither true nor allowed.
    pub fn is_false(&self) -> bool {
        self.names.is_none() && !self.allowed
    }
}

/// What the analyser made of one case.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The truth.
    pub label: Label,
    /// Each cause.
    pub found: Vec<Found>,
    /// Each blame.
    pub blames: Vec<Blame>,
    /// Time of all connections that no line explains, in ms.
    pub unexplained_ms: f64,
    /// Time of all connections, in ms.
    pub booked_ms: f64,
}

/// Holds a report against its label.
pub fn judge(label: Label, report: &dyn Source) -> Verdict {
    let findings: Vec<Finding> = report.findings().collect();
    let ledger: LedgerMs = report.capture().ledger_ms;
    let found = label.causes.iter().map(|cause| found(&label, cause, &findings)).collect();
    let blames = findings.iter().filter(|finding| is_blame(finding));
    let blames = blames.map(|finding| blame(&label, finding)).collect();
    Verdict { found, blames, unexplained_ms: ledger.get(Line::Unexplained), booked_ms: ledger.total(), label }
}

/// Rules that tell again of time that others tell of.
const OVERVIEWS: [&str; 2] = ["split-write", "merged-updates"];

/// The cost is what the best of the cause's names says; where that is no overview, what the others say is other
/// time and comes on top.
fn found(label: &Label, cause: &LabelledCause, findings: &[Finding]) -> Found {
    let said = |rule: &&String| -> Option<(&'static str, f64)> {
        let of = findings.iter().filter(|finding| finding.rule == **rule && fits(cause, finding));
        of.map(|finding| (finding.rule, finding.cost_ms.0)).reduce(|sum, one| (sum.0, sum.1 + one.1))
    };
    let mut named = cause.rules.iter().filter_map(|rule| said(&rule));
    let first = named.next();
    let others: f64 = named.filter(|(rule, _)| !OVERVIEWS.contains(rule)).map(|(_, cost)| cost).sum();
    Found {
        cause: cause.clone(),
        is_minor: cause.cost_ms.is_some_and(|cost| cost < MINOR * label.total_ms),
        by: first.map(|(rule, _)| rule),
        said_ms: first
            .map_or(0.0, |(rule, cost)| if OVERVIEWS.contains(&rule) { cost } else { cost + others }),
    }
}

/// A cause with a smaller part in the time than this is not missed if nobody speaks of it: rules have thresholds
/// of that size. Nor is its cost judged: from run to run the same programs differ by as much.
const MINOR: f64 = 0.05;

/// Whether a finding names this cause.
fn fits(cause: &LabelledCause, finding: &Finding) -> bool {
    let is_named = cause.rules.iter().any(|rule| rule == finding.rule);
    let side = finding.blame.side;
    // What costs nothing is nobody's fault. Where a beat is seen from afar, the path is as likely as the
    // program: the rule says so in words, and blames the path.
    let is_unsure = finding.rule == UNEVEN && side == Blamed::Network;
    is_named && (cause.cost_ms.is_none() || is_side(cause.side, side) || is_unsure)
}

/// The rule that cannot know its culprit from everywhere.
const UNEVEN: &str = "uneven-cadence";

fn is_side(party: Party, side: Blamed) -> bool {
    matches!(
        (party, side),
        (Party::Client, Blamed::Client)
            | (Party::Server, Blamed::Server)
            | (Party::Ends, Blamed::Client | Blamed::Server)
            | (Party::Client | Party::Server | Party::Ends, Blamed::Both)
            | (Party::Network, Blamed::Network)
            | (Party::Capture, Blamed::Capture)
    )
}

fn is_blame(finding: &Finding) -> bool {
    let costs = finding.cost_ms.0 > 0.0 && finding.blame.side != Blamed::Capture;
    finding.severity == Severity::Problem || costs
}

fn blame(label: &Label, finding: &Finding) -> Blame {
    let named = label.causes.iter().find(|cause| fits(cause, finding));
    Blame {
        rule: finding.rule,
        side: finding.blame.side,
        cost_ms: finding.cost_ms.0,
        confidence: finding.confidence,
        names: named.map(|cause| cause.cause.clone()),
        allowed: label.allowed.iter().any(|rule| rule == finding.rule),
        summary: finding.summary.clone(),
    }
}
