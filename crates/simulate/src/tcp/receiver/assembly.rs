//! What has arrived out of order.

use std::collections::VecDeque;
use std::ops::Range;

/// Blocks above a hole.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// Disjoint, not adjacent, the latest touched first: the order of SACK blocks (RFC 2018 section 4).
    blocks: VecDeque<Range<u64>>,
}

/// A peer that sends every second byte makes no more than this many blocks; the oldest goes.
const MOST_BLOCKS: usize = 4096;

impl Assembly {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Bytes above the hole.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.end - block.start).sum()
    }

    /// Takes a block; whether all of it was there already.
    pub(super) fn insert(&mut self, block: Range<u64>) -> bool {
        let known = self.blocks.iter().any(|other| other.start <= block.start && block.end <= other.end);
        let mut whole = block;
        self.blocks.retain(|other| {
            let touches = other.start <= whole.end && whole.start <= other.end;
            if touches {
                whole = whole.start.min(other.start)..whole.end.max(other.end);
            }
            !touches
        });
        self.blocks.push_front(whole);
        self.blocks.truncate(MOST_BLOCKS);
        known
    }

    /// The lowest block's part before `end`: what arrives in order up to there brings it a second time.
    pub(super) fn first_within(&self, end: u64) -> Option<Range<u64>> {
        let lowest = self.blocks.iter().min_by_key(|block| block.start)?;
        let again = lowest.start..lowest.end.min(end);
        (!again.is_empty()).then_some(again)
    }

    /// Everything up to `end` is in order: up to where is it now?
    pub(super) fn take_from(&mut self, end: u64) -> u64 {
        let mut end = end;
        loop {
            let reached = self.blocks.iter().filter(|block| block.start <= end).map(|block| block.end).max();
            self.blocks.retain(|block| block.start > end);
            match reached {
                Some(further) if further > end => end = further,
                _ => return end,
            }
        }
    }

    /// The latest touched first.
    pub(super) fn recent(&self) -> impl Iterator<Item = &Range<u64>> {
        self.blocks.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_join_and_the_latest_comes_first() {
        let mut assembly = Assembly::default();
        assert!(!assembly.insert(10..20));
        assert!(!assembly.insert(30..40));
        assert!(assembly.insert(12..18));
        assert_eq!(assembly.recent().cloned().collect::<Vec<_>>(), [10..20, 30..40]);
        assert!(!assembly.insert(20..30));
        assert_eq!(assembly.recent().collect::<Vec<_>>(), [&(10..40)]);
        assert_eq!((assembly.first_within(10), assembly.first_within(25)), (None, Some(10..25)));
        assert_eq!(assembly.take_from(10), 40);
        assert!(assembly.is_empty());
    }

    #[test]
    fn what_lies_above_a_hole_stays() {
        let mut assembly = Assembly::default();
        assembly.insert(20..30);
        assert_eq!(assembly.take_from(15), 15);
        assert!(!assembly.is_empty());
    }
}
