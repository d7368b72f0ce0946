//! What waits of one cause add up to, with the worst of them kept as evidence.

use tcpwhy_wire::prefetch;

use super::ticks::{Ended, Ticks};
use crate::flow::fact::{Cause, End, Wait};

/// Worst cases kept for each cause and side.
const WORST: usize = 2;

/// One wait kept as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// How long, ns.
    pub length: i64,
    /// The packet before it, the one that ended it, and what then left.
    pub packets: [u64; 3],
    /// When each of them passed, ns.
    pub times: [i64; 3],
}

/// All waits of one cause on one side.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Why it waited.
    pub cause: Cause,
    /// Which end waited.
    pub end: End,
    /// How often.
    pub count: u64,
    /// In all, ns; what two of them share counts once.
    pub total: i64,
    /// Until when they are counted, ns.
    until: i64,
    /// The longest, longest first.
    worst: [Case; WORST],
    /// Phases of the ends, where a cork's timer may have made them.
    ticks: Option<Box<Ticks>>,
}

impl Tally {
    /// The longest waits, longest first.
    pub fn worst(&self) -> &[Case] {
        &self.worst[..WORST.min(self.count as usize)]
    }

    fn add(&mut self, wait: &Wait) {
        let case = Case { length: wait.until - wait.from, packets: wait.packets, times: wait.times };
        if wait.cause == Cause::CorkTimeout {
            self.ticks.get_or_insert_default().add(wait.until);
        }
        // Hostile packets make repairs that overlap; no cost may be above the connection's life for that.
        let fresh = (wait.until - wait.from.max(self.until)).max(0);
        self.total = (self.total + fresh).max(case.length);
        self.until = self.until.max(wait.until);
        self.count += 1;
        self.keep(case);
    }

    /// What ended these waits, if a cork's timer may have.
    pub(crate) fn ended(&self, is_near: bool) -> Ended {
        self.ticks.as_ref().map_or(Ended::AnyTime, |ticks| ticks.ended(is_near))
    }

    /// These waits and those of another cause on the same side.
    pub(crate) fn with(mut self, other: &Self) -> Self {
        for case in other.worst() {
            self.count += 1;
            self.keep(*case);
        }
        self.count += other.count - other.worst().len() as u64;
        self.total += other.total;
        self
    }

    /// Keeps a case that has just been counted, if it is among the longest.
    fn keep(&mut self, mut case: Case) {
        let kept = WORST.min(self.count as usize);
        if kept == WORST && self.count as usize > WORST && case.length <= self.worst[WORST - 1].length {
            return;
        }
        for (index, slot) in self.worst[..kept].iter_mut().enumerate() {
            let is_new_place = index as u64 + 1 == self.count;
            if is_new_place || case.length > slot.length {
                std::mem::swap(slot, &mut case);
            }
        }
    }
}

/// The tallies of one connection, by cause and side; empty on a connection that never waited.
#[derive(Clone, Debug, Default)]
pub struct Tallies(Box<[Tally]>);

impl Tallies {
    /// Bytes on the heap.
    pub(crate) fn heap(&self) -> usize {
        let ticks = self.0.iter().filter(|tally| tally.ticks.is_some()).count();
        size_of_val(&*self.0) + ticks * size_of::<Ticks>()
    }

    /// Asks the processor for the first tally, the likeliest to be counted on.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(first) = self.0.first() {
            prefetch::lines_of(first);
        }
    }

    /// Counts one wait.
    pub(crate) fn add(&mut self, wait: &Wait) {
        let known = self.0.iter_mut().find(|tally| tally.cause == wait.cause && tally.end == wait.end);
        if let Some(tally) = known {
            return tally.add(wait);
        }
        let none = Case { length: 0, packets: [0; 3], times: [0; 3] };
        let mut tally = Tally {
            cause: wait.cause,
            end: wait.end,
            count: 0,
            total: 0,
            until: i64::MIN,
            worst: [none; WORST],
            ticks: None,
        };
        tally.add(wait);
        let mut all = std::mem::take(&mut self.0).into_vec();
        all.reserve_exact(1);
        all.push(tally);
        self.0 = all.into_boxed_slice();
    }

    /// The waits of `cause` on `end`, if there were any.
    pub fn get(&self, cause: Cause, end: End) -> Option<&Tally> {
        self.0.iter().find(|tally| tally.cause == cause && tally.end == end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_longest_in_order() {
        let mut tallies = Tallies::default();
        for (number, length) in [5, 9, 1, 7, 3, 8].into_iter().enumerate() {
            let packets = [number as u64; 3];
            let from = 10 * number as i64;
            tallies.add(&Wait::new(Cause::Timeout, 1, (from, from + length), packets));
        }
        let tally = tallies.get(Cause::Timeout, 1).expect("counted");
        assert_eq!((tally.count, tally.total), (6, 33));
        let worst: Vec<_> = tally.worst().iter().map(|case| (case.length, case.packets[0])).collect();
        assert_eq!(worst, [(9, 1), (8, 5)]);
        assert!(tallies.get(Cause::Timeout, 0).is_none());
    }

    #[test]
    fn what_two_of_them_share_counts_once() {
        let mut tallies = Tallies::default();
        for span in [(0, 10), (5, 20), (6, 8)] {
            tallies.add(&Wait::new(Cause::Recovery, 0, span, [1; 3]));
        }
        assert_eq!(tallies.get(Cause::Recovery, 0).map(|tally| (tally.count, tally.total)), Some((3, 20)));
    }

    #[test]
    fn as_few_as_there_is_room_for_are_all_kept() {
        let mut tallies = Tallies::default();
        for length in [2, 4] {
            tallies.add(&Wait::new(Cause::Recovery, 0, (0, length), [1; 3]));
        }
        let tally = tallies.get(Cause::Recovery, 0).expect("counted");
        assert_eq!(tally.worst().iter().map(|case| case.length).collect::<Vec<_>>(), [4, 2]);
    }
}
