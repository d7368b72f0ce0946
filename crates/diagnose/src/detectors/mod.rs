//! Findings from facts and ledger: one file a rule.

mod holds;
mod nagle_delayed_ack;
mod rule;
mod subject;
#[cfg(test)]
mod testing;

pub use rule::Rule;
pub use subject::Subject;

use rule::Check;

use crate::diagnosis::Diagnosis;
use crate::report::Finding;

/// Every rule, by name.
pub static RULES: &[&Rule] = &[&nagle_delayed_ack::NAGLE_DELAYED_ACK];

/// What the rules find on one connection.
pub(crate) fn of(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        if let Check::Connection(check) = rule.check {
            check(subject, &mut findings);
        }
    }
    findings
}

/// What the rules find in the capture as a whole.
pub(crate) fn of_capture(diagnosis: &Diagnosis) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        if let Check::Capture(check) = rule.check {
            check(diagnosis, &mut findings);
        }
    }
    findings
}
