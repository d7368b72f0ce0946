//! What Nagle's algorithm held back on one direction.

use super::quantiles::Quantiles;

/// Smallest and largest of some sizes, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) least: u32,
    pub(crate) most: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { least: u32::MAX, most: 0 }
    }
}

impl Sizes {
    fn add(&mut self, size: u32) {
        self.least = self.least.min(size);
        self.most = self.most.max(size);
    }

    fn with(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// All holds of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// From the segment in flight to its ACK.
    pub(crate) waits: Quantiles,
    /// From those ACKs to the segments they released, ns in all.
    pub(crate) reactions: i64,
    /// How much of the waits the segments in flight took for their length, where the path is slow. ns in all.
    pub(crate) travelled: i64,
    /// Payload of the segments in flight, and of those that waited for them.
    pub(crate) first: Sizes,
    pub(crate) rest: Sizes,
}

impl Held {
    /// Counts a segment of `rest` bytes that left `reaction` ns after the ACK of one of `first` bytes, which
    /// came `wait` ns after that one, of which `by_length` went with what was on its way.
    pub(crate) fn add(&mut self, wait: i64, reaction: i64, by_length: i64, first: u32, rest: u32) {
        self.waits.add(wait);
        self.travelled = self.travelled.saturating_add(by_length);
        self.reactions = self.reactions.saturating_add(reaction);
        self.first.add(first);
        self.rest.add(rest);
    }

    /// These holds and others.
    pub(crate) fn with(self, other: &Self) -> Self {
        Self {
            waits: self.waits.with(&other.waits),
            reactions: self.reactions.saturating_add(other.reactions),
            travelled: self.travelled.saturating_add(other.travelled),
            first: self.first.with(other.first),
            rest: self.rest.with(other.rest),
        }
    }

    /// From an ACK to the segment it released, ns on average.
    pub(crate) fn mean_reaction(&self) -> i64 {
        self.reactions / i64::try_from(self.waits.count()).unwrap_or(i64::MAX).max(1)
    }
}
