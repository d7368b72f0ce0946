//! How much a wait weighs: whether it is told at all, and how loudly.
//!
//! Two things make a wait worth a person's time: its share of the time in which somebody waited, and that somebody
//! can feel it, however long the connection is idle otherwise.

use crate::report::Severity;

/// Less than this in all is nobody's trouble. ns.
pub(super) const SMALLEST_COST: i64 = 10_000_000;
/// A single wait of this length is felt: the limit of what seems immediate to a person (Miller 1968, Nielsen 1993). ns.
pub(super) const FELT_AT_ONCE: i64 = 100_000_000;
/// Waits of so much in all are felt. ns.
const FELT_IN_ALL: i64 = 500_000_000;
/// A wait that comes back so often is a habit of the program and not a chance.
pub(super) const REPEATED: u64 = 5;
/// Below this in all a wait is trivial… ns.
pub(super) const TRIVIAL: i64 = 50_000_000;
/// …if it is less than one in so many of the time in which somebody waited, too.
const TRIVIAL_SHARE: i64 = 100;
/// From this share of that time on, one in so many, a wait is the connection's trouble, whatever its length.
const LARGE_SHARE: i64 = 20;

/// Waits of one cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// In all, ns.
    pub(crate) cost: i64,
    /// The longest of them, ns.
    pub(crate) worst: i64,
    /// How many.
    pub(crate) count: u64,
}

impl Waits {
    /// How loudly these waits are told on a connection on which somebody `waited` for so long (ns), by a rule whose own
    /// severity is `most`; `None` where they are nobody's trouble.
    pub(crate) fn severity(self, waited: i64, most: Severity) -> Option<Severity> {
        if self.cost < SMALLEST_COST {
            return None;
        }
        let is_share = |one_in: i64| self.cost.saturating_mul(one_in) >= waited;
        if is_share(LARGE_SHARE) || self.is_felt() {
            return Some(most);
        }
        let is_trivial = self.count < REPEATED && self.cost < TRIVIAL && !is_share(TRIVIAL_SHARE);
        let least = if is_trivial { Severity::Note } else { Severity::Advice };
        Some(least.min(most))
    }

    /// Whether a person feels these waits.
    pub(super) fn is_felt(self) -> bool {
        self.worst >= FELT_AT_ONCE || self.cost >= FELT_IN_ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn severity(cost: i64, worst: i64, count: u64, waited: i64) -> Option<Severity> {
        let waits = Waits { cost: cost * MS, worst: worst * MS, count };
        waits.severity(waited * MS, Severity::Problem)
    }

    #[test]
    fn a_large_share_and_a_wait_that_is_felt_are_problems() {
        assert_eq!(severity(40, 40, 1, 43), Some(Severity::Problem));
        assert_eq!(severity(200, 200, 1, 1_000_000), Some(Severity::Problem));
        assert_eq!(severity(3_100, 50, 62, 488_000), Some(Severity::Problem));
    }

    #[test]
    fn what_repeats_in_an_idle_connection_is_advice() {
        assert_eq!(severity(80, 42, 2, 12_000), Some(Severity::Advice));
        assert_eq!(severity(430, 45, 10, 64_000), Some(Severity::Advice));
        assert_eq!(severity(45, 9, 5, 12_000), Some(Severity::Advice));
    }

    #[test]
    fn what_is_short_and_a_small_share_is_a_note_and_less_is_nothing() {
        assert_eq!(severity(40, 40, 1, 12_000), Some(Severity::Note));
        assert_eq!(severity(8, 2, 4, 16), None);
    }
}
