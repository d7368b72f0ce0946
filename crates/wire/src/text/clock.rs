//! Printed times to one line of time per capture.

use super::stamp::{DAY, Origin, Stamp};

/// A capture whose first time is under a minute may be `-ttt` or `-ttttt`: tcpdump prints both like a time
/// of day just after midnight.
const RELATIVE_START: i64 = 60 * 1_000_000_000;

/// Times that go back in more than one of this many steps are deltas (`-ttt`): those of a clock only do where
/// packets were captured out of order, which is rare.
const RARE: usize = 8;

const HOUR: i64 = DAY / 24;

/// A time that goes back by more than this belongs to the next day.
const HALF_A_DAY: i64 = DAY / 2;

/// The clock of one capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    counts_from_previous: bool,
    /// Nanoseconds of midnights passed, or the sum of deltas.
    offset: i64,
    previous: i64,
}

impl Clock {
    /// The clock of the capture whose first times are `first`.
    pub(super) fn new(first: impl Iterator<Item = Stamp>) -> Self {
        let first: Vec<Stamp> = first.collect();
        Self {
            counts_from_previous: are_deltas(&first),
            offset: 0,
            previous: first.first().map_or(0, |stamp| stamp.nanos),
        }
    }

    /// Whether each time counts from the packet before.
    pub(super) fn counts_from_previous(&self) -> bool {
        self.counts_from_previous
    }

    /// The time of the next packet in nanoseconds.
    pub(super) fn time(&mut self, stamp: Stamp) -> i64 {
        if self.counts_from_previous {
            self.offset = self.offset.saturating_add(stamp.nanos);
            return self.offset;
        }
        if stamp.origin == Origin::Midnight {
            self.pass_midnight(stamp.nanos);
        }
        self.previous = stamp.nanos;
        self.offset.saturating_add(stamp.nanos)
    }

    fn pass_midnight(&mut self, now: i64) {
        let step = now.saturating_sub(self.previous);
        if step < -HALF_A_DAY {
            self.offset = self.offset.saturating_add(DAY);
        } else if step > DAY - HOUR && self.offset >= DAY {
            // Captured out of order around midnight: within the hour before it.
            self.offset -= DAY;
        }
    }
}

fn are_deltas(stamps: &[Stamp]) -> bool {
    let Some(first) = stamps.first() else { return false };
    if first.origin == Origin::Previous {
        return true;
    }
    let backward = stamps.windows(2).filter(|pair| pair[1].nanos < pair[0].nanos).count();
    first.origin == Origin::Midnight && first.nanos < RELATIVE_START && backward * RARE > stamps.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(origin: Origin, nanos: &[i64]) -> Vec<i64> {
        let stamps: Vec<Stamp> = nanos.iter().map(|&nanos| Stamp { origin, nanos }).collect();
        let mut clock = Clock::new(stamps.iter().copied());
        stamps.into_iter().map(|stamp| clock.time(stamp)).collect()
    }

    #[test]
    fn midnight_passes_also_out_of_order() {
        let day = times(Origin::Midnight, &[DAY - 2, DAY - 1, 1, DAY - 1, 2]);
        assert_eq!(day, [DAY - 2, DAY - 1, DAY + 1, DAY - 1, DAY + 2]);
    }

    #[test]
    fn a_long_pause_in_the_day_is_no_midnight() {
        let hour = DAY / 24;
        assert_eq!(times(Origin::Midnight, &[hour, 22 * hour]), [hour, 22 * hour]);
    }

    #[test]
    fn deltas_are_summed() {
        assert_eq!(times(Origin::Midnight, &[0, 500, 20, 300]), [0, 500, 520, 820]);
        assert_eq!(times(Origin::Previous, &[7, 8, 9]), [7, 15, 24]);
        // The same form, but each time counts from the first packet (-ttttt).
        assert_eq!(times(Origin::Midnight, &[0, 20, 300, 500]), [0, 20, 300, 500]);
    }
}
