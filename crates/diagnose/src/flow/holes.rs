//! Bytes that the capture has not shown yet, although it has shown later ones of the same direction.

/// Holes followed at once on one direction, 2 KiB of them: what a queue of 64 packets drops at its worst. Further ones
/// are not followed: their bytes, when they come, count as sent again, and are not missed if they never do.
const MOST: usize = 64;

/// The bytes between two segments that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    from: u64,
    to: u64,
    /// What opened it.
    opened: Opened,
}

/// The segment behind a hole: when it passed, and its timestamp (RFC 7323), if it had one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) at: i64,
    pub(crate) stamp: Option<u32>,
    /// The receiver had told of the hole before: it is older than that.
    pub(crate) is_old: bool,
}

/// What a segment brought of missing bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    /// How many.
    pub(crate) bytes: u64,
    /// What had opened the first of the holes it filled.
    pub(crate) opened: Opened,
}

/// All holes of one direction, in order of sequence numbers, none touching another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes(Vec<Hole>);

impl Holes {
    /// Bytes on the heap.
    pub(crate) fn heap(&self) -> usize {
        self.0.capacity() * size_of::<Hole>()
    }

    /// The bytes from `from` to `to`, which lie beyond everything that passed before, are missing.
    pub(crate) fn open(&mut self, from: u64, to: u64, opened: Opened) {
        if self.0.len() < MOST {
            self.0.push(Hole { from, to, opened });
        }
    }

    /// The bytes from `seq` to `end` pass; returns what they fill, if they fill anything.
    pub(crate) fn fill(&mut self, seq: u64, end: u64) -> Option<Filled> {
        let mut filled: Option<Filled> = None;
        let first = self.0.partition_point(|hole| hole.to <= seq);
        let mut index = first;
        while let Some(&hole) = self.0.get(index).filter(|hole| hole.from < end) {
            let (from, to) = (hole.from.max(seq), hole.to.min(end));
            let known = filled.get_or_insert(Filled { bytes: 0, opened: hole.opened });
            known.bytes += to - from;
            index = self.cut(index, from, to);
        }
        filled
    }

    /// Takes the bytes from `from` to `to` out of the hole at `index`, which has them; returns the next hole's index.
    fn cut(&mut self, index: usize, from: u64, to: u64) -> usize {
        let hole = self.0[index];
        match (hole.from < from, to < hole.to) {
            (false, false) => {
                self.0.remove(index);
                return index;
            }
            (true, false) => self.0[index].to = from,
            (false, true) => self.0[index].from = to,
            (true, true) => {
                self.0[index].to = from;
                if self.0.len() < MOST {
                    self.0.insert(index + 1, Hole { from: to, ..hole });
                }
            }
        }
        index + 1
    }

    /// What opened the first hole, if that begins before `ack`.
    pub(crate) fn reached(&self, ack: u64) -> Option<Opened> {
        self.0.first().filter(|hole| hole.from < ack).map(|hole| hole.opened)
    }

    /// Nobody will fill them any more.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// Since when there has been a hole, ns.
    #[inline]
    pub(crate) fn since(&self) -> Option<i64> {
        self.0.first().map(|hole| hole.opened.at)
    }

    /// Everything before `ack` has arrived; returns how many bytes of that were never shown. A hole that is ACKed in
    /// part stays until the rest is.
    pub(crate) fn arrived(&mut self, ack: u64) -> u64 {
        let gone = self.0.partition_point(|hole| hole.to <= ack);
        self.0.drain(..gone).map(|hole| hole.to - hole.from).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const OPENED: Opened = Opened { at: 7, stamp: None, is_old: false };

    fn holes(ranges: &[(u64, u64)]) -> Holes {
        let mut holes = Holes::default();
        ranges.iter().for_each(|&(from, to)| holes.open(from, to, OPENED));
        holes
    }

    fn ranges(holes: &Holes) -> Vec<(u64, u64)> {
        holes.0.iter().map(|hole| (hole.from, hole.to)).collect()
    }

    #[test]
    fn a_segment_may_fill_a_hole_from_either_side_and_in_its_middle() {
        let mut holes = holes(&[(10, 20), (30, 60)]);
        assert_eq!(holes.fill(0, 12), Some(Filled { bytes: 2, opened: OPENED }));
        assert_eq!(holes.fill(40, 50), Some(Filled { bytes: 10, opened: OPENED }));
        assert_eq!(ranges(&holes), [(12, 20), (30, 40), (50, 60)]);
        assert_eq!(holes.fill(15, 55).map(|filled| filled.bytes), Some(5 + 10 + 5));
        assert_eq!(ranges(&holes), [(12, 15), (55, 60)]);
        assert_eq!(holes.fill(20, 50), None);
    }

    #[test]
    fn what_is_acked_and_was_never_shown_is_missing() {
        let mut holes = holes(&[(10, 20), (30, 60), (70, 80)]);
        assert_eq!(holes.arrived(50), 10, "the second is only half ACKed");
        assert_eq!(holes.arrived(75), 30);
        assert_eq!(ranges(&holes), [(70, 80)]);
    }

    #[test]
    fn no_more_holes_are_followed_than_there_is_room_for() {
        let many: Vec<_> = (0..1_000).map(|n| (n * 10, n * 10 + 5)).collect();
        let mut holes = holes(&many);
        assert_eq!(holes.0.len(), MOST);
        assert_eq!(holes.fill(2, 3).map(|filled| filled.bytes), Some(1), "no room for the second half");
        assert_eq!(holes.0.len(), MOST);
        assert_eq!(holes.arrived(10_000), MOST as u64 * 5 - 3);
    }

    proptest! {
        #[test]
        fn whatever_comes_the_same_bytes_are_missing(
            gaps in prop::collection::vec((1_u64..20, 1_u64..20), 1..20),
            fills in prop::collection::vec((0_u64..400, 1_u64..60), 0..40),
            ack in 0_u64..500,
        ) {
            let (mut holes, mut missing, mut next) = (Holes::default(), BTreeSet::new(), 0);
            for (hole, shown) in gaps {
                holes.open(next, next + hole, OPENED);
                missing.extend(next..next + hole);
                next += hole + shown;
            }
            for (seq, len) in fills {
                let before = missing.len();
                missing.retain(|byte| !(seq..seq + len).contains(byte));
                let filled = holes.fill(seq, seq + len).map_or(0, |filled| filled.bytes);
                prop_assert_eq!(filled as usize, before - missing.len());
            }
            let whole = |holes: &Holes| holes.0.iter().filter(|hole| hole.to <= ack).map(|hole| hole.to - hole.from).sum::<u64>();
            let expected = whole(&holes);
            prop_assert_eq!(holes.arrived(ack), expected);
            let left: u64 = holes.0.iter().map(|hole| hole.to - hole.from).sum();
            prop_assert_eq!((left + expected) as usize, missing.len());
        }
    }
}
