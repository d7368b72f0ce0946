//! The rhythm of one direction's messages, and what the sender's program does behind it.

use super::quantiles::Quantiles;

/// Segments nearer to each other than this belong to one message: a program that writes more than 200 times
/// a second is streaming, not keeping a beat. Also keeps bulk transfers off this path. ns.
pub(crate) const MESSAGE_GAP: i64 = 5_000_000;

/// Messages in a row from one side from which on its rhythm is kept: requests and answers, which alternate,
/// have none.
pub(crate) const RHYTHM_RUN: u8 = 2;

/// So many messages that are no multiple of the unit, and more than half of all, show that it is not theirs.
const ODD_PROOF: u32 = 2;
/// What two lengths have in common by chance is shorter than an update, bytes.
const SMALLEST_UNIT: u32 = 4;

/// Pieces of messages are held in at least one of so many messages.
const TURNS: u64 = 3;

/// What is remembered of one direction's messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rhythm {
    /// Time between messages on the wire.
    pub(crate) gaps: Quantiles,
    /// Time between the program's writes, as far as held messages made of equal units show it.
    pub(crate) periods: Quantiles,
    /// Payload of the smallest message, bytes: the program's unit where larger ones are multiples of it.
    pub(crate) unit: u32,
    /// Messages of exactly one unit, and of a higher multiple.
    pub(crate) single: u32,
    pub(crate) merged: u32,
    /// Messages that are no multiple of the unit.
    pub(crate) odd: u32,
    /// The first message's time and the last one's.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// A message that left when it was written, and how many units were sent since.
    begun: i64,
    count: i64,
    /// That message, too, had been held: its last unit was written up to a period before. Then the bounds between which
    /// the next unit is due, narrowed by each message.
    is_loose: bool,
    due: (i64, i64),
    /// Bounds of the program's period, ns: by the time a message left all its units had been written, and the unit
    /// after them had not.
    least_period: i64,
    most_period: i64,
    /// The last gap, and whether it was longer than the one before by half or more, ns; 0 once that is counted.
    gap: i64,
    long_gap: i64,
    /// Messages behind such a gap with which another one came at once: what was due before came late, with the next.
    pub(crate) caught_up: u32,
    /// Whether the message that leaves now had been held, and whether the one before it had.
    is_held: bool,
    was_held: bool,
    /// Held messages that followed a held one, and that did not.
    in_a_row: u32,
    alone: u32,
    /// The message that ended the longest gap: which packet, and when.
    pub(crate) latest_number: u64,
    pub(crate) latest_at: i64,
}

impl Rhythm {
    /// Bytes on the heap.
    pub(crate) fn heap(&self) -> usize {
        self.gaps.heap() + self.periods.heap()
    }

    /// A rhythm that begins with a message of `len` bytes at `time`, `gap` ns after another one, which had
    /// `len_before` bytes.
    pub(crate) fn starting(time: i64, len: u32, gap: i64, len_before: u32) -> Self {
        let units = if len.is_multiple_of(len_before.max(1)) { (len / len_before.max(1)).max(1) } else { 1 };
        Self {
            unit: len / units,
            single: u32::from(units == 1),
            merged: u32::from(units > 1),
            first: time,
            last: time,
            begun: time.saturating_sub(gap),
            count: i64::from(units),
            least_period: gap / i64::from(units + 1),
            most_period: gap / i64::from(units),
            ..Self::default()
        }
    }

    /// Takes note that a message of `len` bytes had been held from some time after `since`, when the message
    /// before it left, until `now`; returns when the first of its units was probably written.
    ///
    /// All its units were written in between, and the unit after them was not. The last message that was not held
    /// tells, with the period, when; what they foretell is moved into those bounds.
    pub(crate) fn hold(&mut self, since: i64, now: i64, len: u32) -> i64 {
        let units = self.units(len);
        self.periods.add((now - since) / units);
        let counter = if self.was_held { &mut self.in_a_row } else { &mut self.alone };
        *counter = counter.saturating_add(1);
        self.is_held = true;
        self.bound_period(now, units);
        let period = roundest(self.least_period, self.most_period);
        let after = |count: i64| period.saturating_mul(count);
        let least = since.max(now.saturating_sub(after(units)));
        let most = now.saturating_sub(after(units - 1)).min(since.saturating_add(period));
        // Where the bounds exclude each other the program was late, and its units came all together.
        if least > most {
            return since;
        }
        if !self.is_loose {
            let foretold = self.begun.saturating_add(after(self.count.saturating_add(1)));
            return foretold.clamp(least, most);
        }
        let (earliest, latest) = (self.due.0.max(least), self.due.1.min(most));
        let (earliest, latest) = if earliest > latest { (least, most) } else { (earliest, latest) };
        self.due = (earliest.saturating_add(after(units)), latest.saturating_add(after(units)));
        earliest + (latest - earliest) / 2
    }

    /// Narrows the bounds of the period by all units that have left since the beat began, the last `units` at `now`.
    fn bound_period(&mut self, now: i64, units: i64) {
        // Where the beat has just begun anew, what had been held then may never have been counted.
        let count = self.count.saturating_add(units).max(1);
        let fewest = count.saturating_sub(i64::from(self.is_loose)).max(1);
        let (least, most) = ((now - self.begun) / count.saturating_add(1), (now - self.begun) / fewest);
        self.least_period = self.least_period.max(least);
        self.most_period = self.most_period.min(most);
        if self.least_period > self.most_period {
            // No program is that punctual, or the beat began elsewhere.
            (self.least_period, self.most_period) = (least, most);
            self.begin_loosely(now, units);
        }
    }

    /// The beat is counted from `now` on, when a message that had been held leaves; `units` of it are still to be counted.
    fn begin_loosely(&mut self, now: i64, units: i64) {
        (self.begun, self.count, self.is_loose) = (now, -units, true);
        self.due = (i64::MIN / 2, i64::MAX / 2);
    }

    /// Another message comes right behind the last one.
    #[inline]
    pub(crate) fn joined(&mut self) {
        self.caught_up = self.caught_up.saturating_add(u32::from(self.long_gap > 0));
        self.long_gap = 0;
    }

    /// Whether what is held are pieces of messages and not a stream's updates: pieces take turns, the first leaves
    /// at once and the rest is held, while a stream goes out on one ACK after the other, or is rarely held at all.
    pub(crate) fn is_in_pieces(&self) -> bool {
        let turns = u64::from(self.alone) * TURNS >= self.gaps.count();
        turns && !self.was_held && self.in_a_row <= self.alone
    }

    /// How many units of the program's a message of `len` bytes holds.
    pub(crate) fn units(&self, len: u32) -> i64 {
        (i64::from(len) / i64::from(self.unit.max(1))).max(1)
    }

    /// Counts a message of `len` bytes, packet `number`, that came `gap` ns after the one before it, which had
    /// `len_before` bytes.
    pub(crate) fn add(&mut self, number: u64, time: i64, gap: i64, len: u32, len_before: u32) {
        if self.odd >= ODD_PROOF && self.odd * 2 > self.single + self.merged {
            self.learn_unit(len, len_before);
        }
        if len < self.unit {
            // What counted as one unit so far is several of this one.
            self.odd = if self.unit.is_multiple_of(len.max(1)) {
                self.odd
            } else {
                self.single.saturating_add(self.merged)
            };
            let parts = i64::from(self.unit / len.max(1));
            self.count = self.count.saturating_mul(parts);
            (self.least_period, self.most_period) = (0, self.most_period / parts.max(1));
            (self.unit, self.single, self.merged) = (len, 0, self.merged.saturating_add(self.single));
        }
        self.count = self.count.saturating_add(self.units(len));
        self.was_held = std::mem::take(&mut self.is_held);
        if !self.was_held {
            (self.begun, self.count, self.is_loose) = (time, 0, false);
        }
        if len < self.unit.saturating_mul(2) {
            self.single = self.single.saturating_add(1);
        } else {
            self.merged = self.merged.saturating_add(1);
        }
        self.odd = self.odd.saturating_add(u32::from(!len.is_multiple_of(self.unit.max(1))));
        if gap > self.gaps.max() {
            (self.latest_number, self.latest_at) = (number, time);
        }
        self.long_gap = if gap / 3 >= self.gap / 2 { gap } else { 0 };
        self.gap = gap;
        self.gaps.add(gap);
        self.last = time;
    }
}

impl Rhythm {
    /// Most messages are no multiples of the unit: the smallest one was of another kind, a greeting. What two held ones
    /// have in common is the unit.
    fn learn_unit(&mut self, len: u32, len_before: u32) {
        let unit = common(len, len_before);
        if unit < SMALLEST_UNIT || unit == self.unit {
            return;
        }
        self.unit = unit;
        (self.single, self.merged, self.odd) = (0, 0, 0);
        self.periods = Quantiles::default();
        self.begin_loosely(self.last, 0);
        (self.least_period, self.most_period) = (0, i64::MAX);
    }
}

/// The greatest common divisor.
fn common(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common(b, a % b) }
}

/// The roundest duration from `least` to `most` ns: people set timers in round numbers.
fn roundest(least: i64, most: i64) -> i64 {
    let mut step = 1_000_000_000;
    while step > 1 {
        for part in [1, 2, 5] {
            let round = most - most % (step / part);
            if round >= least && round > 0 {
                return round;
            }
        }
        step /= 10;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_roundest_duration_between_two() {
        assert_eq!(roundest(97 * MS, 110 * MS), 100 * MS);
        assert_eq!(roundest(28 * MS, 33 * MS), 30 * MS);
        assert_eq!(roundest(MS * 165 / 10, MS * 168 / 10), MS * 165 / 10);
        assert_eq!(roundest(100 * MS + 1, 100 * MS + 1), 100 * MS + 1);
        assert_eq!(roundest(0, 0), 0);
    }

    /// 12 bytes every 100 ms from 0 on; the ACKs come at 170 ms, 370 ms and so on. What leaves then was written at
    /// 100 ms, then at 200 and 300 ms, then at 400 and 500 ms: the oldest waits 170 ms.
    #[test]
    fn a_stream_that_is_held_tells_when_it_was_written() {
        let mut rhythm = Rhythm::starting(170 * MS, 12, 170 * MS, 12);
        for number in 1..20 {
            let (since, now) = ((200 * number - 30) * MS, (200 * number + 170) * MS);
            let written = rhythm.hold(since, now, 24);
            rhythm.add(number as u64, now, 200 * MS, 24, 24);
            if number > 1 {
                assert_eq!(now - written, 170 * MS, "{number}");
                assert!(!rhythm.is_in_pieces());
            }
        }
    }

    /// A late message shows that the beat began elsewhere; that it was held was known before it is counted.
    #[test]
    fn a_beat_that_begins_anew_may_miss_what_began_it() {
        let mut rhythm = Rhythm::starting(170 * MS, 12, 170 * MS, 12);
        rhythm.hold(170 * MS, 370 * MS, 24);
        rhythm.hold(370 * MS, 5_000 * MS, 24);
        let written = rhythm.hold(5_000 * MS, 5_100 * MS, 12);
        assert!((5_000 * MS..=5_100 * MS).contains(&written), "{written}");
    }

    /// Two messages every 300 ms, of which the second follows the ACK of the first.
    #[test]
    fn pieces_take_turns() {
        let mut rhythm = Rhythm::starting(20 * MS, 70, 20 * MS, 50);
        for number in 1..10 {
            let start = number * 300 * MS;
            rhythm.add(1, start, 280 * MS, 50, 70);
            rhythm.hold(start, start + 20 * MS, 70);
            assert!(rhythm.is_in_pieces());
            rhythm.add(2, start + 20 * MS, 20 * MS, 70, 50);
        }
    }
}
