//! One wait, one finding: the time that TCP took from a connection is shared out among what the rules found.
//!
//! Rules look at a connection each for itself, so several may speak of one stretch of time: what TCP did, and what the
//! program did to make it. Here each stretch goes to the finding nearest to the cause that a person can change. Costs
//! are no more in all than the time that was not the programs'; what no finding owns is summed up.

use super::subject::Subject;
use crate::diagnosis::ms;
use crate::flow::fact::Cause;
use crate::report::{Finding, Line, Ms, Severity, SmallWaits};

/// Rules that speak of the same wait as the first of each row, which is the cause; the others are its mechanism.
const MECHANISMS: [(&str, &[&str]); 2] = [
    ("split-write", &["nagle-delayed-ack", "nagle-hold"]),
    ("merged-updates", &["nagle-delayed-ack", "nagle-hold"]),
];
/// Less than this in all is the hosts' own work. ms.
const SMALLEST_MS: f64 = 1.0;

/// Whether a finding of the rule `found` tells of what the rule `asked` stands for: it is that rule's, or has it as its
/// mechanism. Who asks for Nagle's algorithm means it wherever it is told.
pub fn tells(found: &str, asked: &str) -> bool {
    found == asked || MECHANISMS.iter().any(|(cause, told)| *cause == found && told.contains(&asked))
}

/// The rules that speak of a cause's waits; none for what is no wait of TCP's.
fn rules_of(cause: Cause) -> &'static [&'static str] {
    match cause {
        Cause::NagleHold | Cause::MaybeHeld => {
            &["split-write", "merged-updates", "nagle-delayed-ack", "nagle-hold"]
        }
        Cause::CorkTimeout => &["cork-timeout"],
        Cause::DelayedAck => &["delayed-ack"],
        Cause::CongestionWindow => &["slow-start", "idle-restart", "fast-recovery", "ecn-backoff"],
        Cause::SlowStart => &["slow-start"],
        Cause::IdleRestart => &["idle-restart"],
        Cause::AfterLoss => &["fast-recovery", "rto-stall", "tail-loss"],
        Cause::SendBuffer => &["small-send-buffer"],
        Cause::ReceiveWindow | Cause::Unread | Cause::ZeroWindow | Cause::SillyWindow => {
            &["small-receive-window", "zero-window", "silly-window"]
        }
        Cause::Recovery => &["fast-recovery", "one-hole-per-rtt", "late-hole-ack", "rto-stall", "tail-loss"],
        Cause::AfterTimer | Cause::Timeout | Cause::TailLoss | Cause::UnseenTimeout => {
            &["rto-stall", "tail-loss", "spurious-retransmit"]
        }
        Cause::SynTimeout => &["syn-retry"],
        Cause::Queueing => &["bufferbloat"],
        _ => &[],
    }
}

/// Shares out a connection's lost time among its findings.
pub(super) fn share_out(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    drop_mechanisms(findings);
    keep_within(subject, findings);
    for finding in findings {
        finding.worst_ms = Ms(finding.worst_ms.0.min(finding.cost_ms.0));
    }
}

/// Leaves out what TCP did where the same side's program is known to have made it do so.
fn drop_mechanisms(findings: &mut Vec<Finding>) {
    for (cause, mechanisms) in MECHANISMS {
        let sides: Vec<_> =
            findings.iter().filter(|found| found.rule == cause).map(|found| found.blame.side).collect();
        findings.retain(|found| !(mechanisms.contains(&found.rule) && sides.contains(&found.blame.side)));
    }
}

/// Whether a finding of this rule costs time on one of TCP's lines.
fn is_tcps(rule: &str) -> bool {
    Cause::TCPS.iter().any(|cause| rules_of(*cause).contains(&rule))
}

/// Costs are no more in all than the time that was not the programs': the worst keep theirs. What is held while other data
/// travels stands on the ledger's line of that journey, and would be given back all the same.
fn keep_within(subject: &Subject<'_>, findings: &mut [Finding]) {
    let mut left = carried_ms(subject);
    let mut order: Vec<&mut Finding> = findings.iter_mut().filter(|found| is_tcps(found.rule)).collect();
    order.sort_by(|a, b| b.severity.cmp(&a.severity).then(b.cost_ms.0.total_cmp(&a.cost_ms.0)));
    for finding in order {
        finding.cost_ms = Ms(finding.cost_ms.0.min(left));
        left -= finding.cost_ms.0;
        if finding.cost_ms.0 <= 0.0 {
            finding.severity = finding.severity.min(Severity::Note);
        }
    }
}

/// What is on the ledger's lines of TCP and of the path, ms.
fn carried_ms(subject: &Subject<'_>) -> f64 {
    let lines = subject.ledger.lines(subject.connection);
    let is_carried = |line: &Line| !matches!(line, Line::ClientApp | Line::ServerApp | Line::Idle);
    ms(Line::ALL.into_iter().filter(is_carried).map(|line| lines[line as usize]).sum()).0
}

/// What the ledger lost to TCP, ms.
fn lost_ms(subject: &Subject<'_>) -> f64 {
    let lines = subject.ledger.lines(subject.connection);
    ms(Line::ALL.iter().filter(|line| line.is_lost()).map(|line| lines[*line as usize]).sum()).0
}

/// Waits of TCP's that none of `findings` owns; `None` where there are none.
pub(crate) fn small_waits(subject: &Subject<'_>, findings: &[Finding]) -> Option<SmallWaits> {
    let owned: f64 = findings.iter().filter(|found| is_tcps(found.rule)).map(|found| found.cost_ms.0).sum();
    // A repair on a path that was busy all the time made nobody wait.
    let busy: i64 = (0..2).filter_map(|end| Some(subject.tally(Cause::BusyRepair, end)?.total)).sum();
    let total_ms = lost_ms(subject) - owned - ms(busy).0;
    let is_left = |cause: Cause| !findings.iter().any(|found| rules_of(cause).contains(&found.rule));
    let tallies = Cause::TCPS
        .into_iter()
        .filter(|cause| is_left(*cause))
        .flat_map(|cause| (0..2).filter_map(move |end| subject.tally(cause, end)));
    let (mut count, mut worst) = (0, 0);
    for tally in tallies {
        count += tally.count;
        worst = worst.max(tally.worst().first().map_or(0, |case| case.length));
    }
    let is_some = count > 0 && total_ms >= SMALLEST_MS;
    is_some.then(|| SmallWaits { count, total_ms: Ms(total_ms), worst_ms: Ms(ms(worst).0.min(total_ms)) })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, diagnose};
    use crate::report::{Finding, Line, Source};

    const MS: u64 = 1_000;

    /// Ten requests in two pieces, of which the second waits 40 ms for the ACK of the first.
    fn pieces() -> String {
        let mut talk = Talk::near_client(200);
        for number in 1..=10 {
            let start = number * 100 * MS;
            talk.data(start, true, 16);
            talk.ack(start + 40 * MS, false);
            talk.data(start + 40 * MS + 30, true, 48);
            talk.data(start + 40 * MS + 330, false, 64);
        }
        talk.text()
    }

    fn rules(findings: &[Finding]) -> Vec<&'static str> {
        findings.iter().map(|found| found.rule).collect()
    }

    #[test]
    fn a_message_in_pieces_is_told_once() {
        let diagnosis = diagnose(&pieces());
        let findings = diagnosis.findings_of(0);
        assert!(rules(&findings).contains(&"split-write"), "{findings:?}");
        assert!(!rules(&findings).contains(&"nagle-delayed-ack"), "{findings:?}");
    }

    #[test]
    fn costs_are_within_the_ledger_and_what_is_left_is_summed_up() {
        for text in [pieces(), single_hold()] {
            let diagnosis = diagnose(&text);
            let connection = diagnosis.connections().next().expect("one connection");
            let found = diagnosis.findings_of(0);
            let tcps = found.iter().filter(|found| super::is_tcps(found.rule));
            let costs: f64 = tcps.map(|found| found.cost_ms.0).sum();
            let lost: f64 = connection.ledger_ms.lost();
            let small = connection.small_waits.map_or(0.0, |waits| waits.total_ms.0);
            assert!((costs + small - lost).abs() < 1.0, "{costs} and {small} of {lost}");
            assert!(connection.ledger_ms.get(Line::DelayedAck) > 0.0);
        }
    }

    /// One hold of 8 ms among a hundred exchanges: no finding.
    fn single_hold() -> String {
        let mut talk = Talk::near_client(200);
        talk.data(10 * MS, true, 16);
        talk.ack(18 * MS, false);
        talk.data(18 * MS + 30, true, 48);
        talk.data(18 * MS + 330, false, 64);
        for number in 1..=100 {
            talk.data(number * 50 * MS, true, 64);
            talk.data(number * 50 * MS + 300, false, 64);
        }
        talk.text()
    }
}
