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
        self.by.is_none() && !self.cause.unseen
    }

    /// Whether it counts at all: a cause that the capture cannot show counts only where it was found.
    pub fn counts(&self) -> bool {
        self.by.is_some() || !self.cause.unseen
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
    let found = label.causes.iter().map(|cause| found(cause, &findings)).collect();
    let blames = findings.iter().filter(|finding| is_blame(finding));
    let blames = blames.map(|finding| blame(&label, finding)).collect();
    Verdict { found, blames, unexplained_ms: ledger.get(Line::Unexplained), booked_ms: ledger.total(), label }
}

/// Two rules may tell of the same time, so the costs of one rule alone are added up.
fn found(cause: &LabelledCause, findings: &[Finding]) -> Found {
    let of = |rule: &str| -> Vec<&Finding> {
        findings.iter().filter(|finding| finding.rule == rule && fits(cause, finding)).collect()
    };
    let first = cause.rules.iter().map(|rule| of(rule)).find(|found| !found.is_empty()).unwrap_or_default();
    Found {
        cause: cause.clone(),
        by: first.first().map(|finding| finding.rule),
        said_ms: first.iter().map(|finding| finding.cost_ms.0).sum(),
    }
}

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
