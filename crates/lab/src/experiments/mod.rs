//! The experiments: one file each. A seed's claim, what was measured here, and whether it holds.

mod outcome;

pub use outcome::{Claim, Outcome, Table, Verdict};
