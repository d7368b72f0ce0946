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
}

/// All holds of one direction.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// From the segment in flight to its ACK.
    pub(crate) waits: Quantiles,
    /// Payload of the segments in flight, and of those that waited for them.
    pub(crate) first: Sizes,
    pub(crate) rest: Sizes,
}

impl Held {
    /// Counts a segment of `rest` bytes that waited `wait` ns for the ACK of one of `first` bytes.
    pub(crate) fn add(&mut self, wait: i64, first: u32, rest: u32) {
        self.waits.add(wait);
        self.first.add(first);
        self.rest.add(rest);
    }
}
