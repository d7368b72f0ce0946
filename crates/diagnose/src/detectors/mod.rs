//! Findings from facts and ledger: one file a rule.

mod rule;

pub use rule::{RULES, Rule};
