//! Findings from facts and ledger: one file a rule.

mod rule;
mod subject;

pub use rule::{RULES, Rule};
pub use subject::Subject;

use crate::diagnosis::Diagnosis;
use crate::report::Finding;

/// What the rules find on one connection.
pub(crate) fn of(subject: &Subject<'_>) -> Vec<Finding> {
    let _ = subject;
    Vec::new()
}

/// What the rules find in the capture as a whole.
pub(crate) fn of_capture(diagnosis: &Diagnosis) -> std::vec::IntoIter<Finding> {
    let _ = diagnosis;
    Vec::new().into_iter()
}
