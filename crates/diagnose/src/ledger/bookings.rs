//! One connection's ledger interval by interval, for who wants to see *when* it waited: plots, pages, tests.
//!
//! While packets come in, slots are kept as they are booked. What only the whole connection can decide, how much
//! of a hold or of a journey belongs to whom, is decided here at the end, so that the intervals of each line sum
//! to what the report's ledger says, to the nanosecond.

use super::timeline::{SLOTS, Slot};
use super::{Ledger, Meaning, part_of};
use crate::flow::Connection;
use crate::flow::fact::End;
use crate::report::{Line, Side};

/// Neighbours that are put together to one interval for each slot and side: at most 2 × [`SLOTS`], so a half or less.
const NEIGHBOURS: usize = 4 * SLOTS;
/// The least that is kept: putting together works on so many groups of neighbours at least.
const LEAST: usize = 8 * NEIGHBOURS;

/// An interval of a connection's life, booked on one line of its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booking {
    /// From when, ns on the capture's clock.
    pub from: i64,
    /// Until when, ns on the capture's clock; after `from`.
    pub until: i64,
    /// What the connection waited for.
    pub line: Line,
    /// Whose sending waited, or whose data travelled or flowed; whose program it was. `None` for the handshake and for
    /// unexplained time.
    pub side: Option<Side>,
}

/// The intervals of one connection's ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bookings {
    /// In order of time, each beginning where the one before ended, from the connection's first packet to its last.
    pub intervals: Vec<Booking>,
    /// Whether there were more of them than are kept. Then neighbours were put together: for each of them the sum on
    /// each line is right, and the order is not.
    pub is_coarse: bool,
}

impl Bookings {
    fn push(&mut self, next: Booking) {
        if next.from == next.until {
            return;
        }
        match self.intervals.last_mut() {
            Some(last) if last.line == next.line && last.side == next.side => last.until = next.until,
            _ => self.intervals.push(next),
        }
    }
}

/// What was booked on a slot, while it is not yet known which line that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    from: i64,
    until: i64,
    slot: Slot,
    whose: u8,
}

/// Keeps one timeline's slots as they are booked.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    intervals: Vec<Interval>,
    is_coarse: bool,
    /// So many are kept at most. Where there are more, they are put together.
    most: usize,
}

impl Recorder {
    /// Keeps `most` intervals, of 24 bytes, or some hundreds if that is more.
    pub(super) fn new(most: usize) -> Self {
        Self { intervals: Vec::new(), is_coarse: false, most: most.max(LEAST) }
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        self.intervals.capacity() * size_of::<Interval>()
    }

    /// Takes the next interval, which begins where the one before ended.
    pub(super) fn take(&mut self, slot: Slot, whose: u8, from: i64, until: i64) {
        match self.intervals.last_mut() {
            // Each hold and each journey is divided by itself.
            Some(last) if (last.slot, last.whose) == (slot, whose) && !slot.is_divided() => {
                last.until = until;
            }
            _ => self.intervals.push(Interval { from, until, slot, whose }),
        }
        if self.intervals.len() > self.most {
            self.intervals = put_together(&self.intervals);
            self.is_coarse = true;
        }
    }

    /// How long each interval of `slot` took, ns.
    fn lengths(&self, slot: Slot) -> impl Iterator<Item = i64> {
        self.intervals.iter().filter(move |kept| kept.slot == slot).map(|kept| kept.until - kept.from)
    }
}

/// Puts neighbours together: one interval for each slot and side, as long as theirs together, at the same time.
fn put_together(intervals: &[Interval]) -> Vec<Interval> {
    let mut fewer: Vec<Interval> = Vec::with_capacity(intervals.len() / 2 + 1);
    for neighbours in intervals.chunks(NEIGHBOURS) {
        let first = fewer.len();
        for next in neighbours {
            let same = |kept: &&mut Interval| (kept.slot, kept.whose) == (next.slot, next.whose);
            match fewer[first..].iter_mut().find(same) {
                Some(kept) => kept.until += next.until - next.from,
                None => fewer.push(*next),
            }
        }
        let mut from = neighbours[0].from;
        for kept in &mut fewer[first..] {
            (kept.from, kept.until) = (from, from + kept.until - kept.from);
            from = kept.until;
        }
    }
    fewer
}

impl Ledger {
    /// Every interval that is booked on the ledger of `connection`; `None` where they were not kept.
    pub(crate) fn bookings(&self, connection: &Connection) -> Option<Bookings> {
        let kept = self.timeline.recorder()?;
        let mut known: [Option<(Meaning, Fill)>; SLOTS] = [const { None }; SLOTS];
        let mut bookings = Bookings { intervals: Vec::new(), is_coarse: kept.is_coarse };
        for &Interval { from, until, slot, whose } in &kept.intervals {
            let (meaning, fill) = known[slot as usize].get_or_insert_with(|| {
                let meaning = self.meaning(slot, connection);
                let whole = kept.lengths(slot).sum();
                (meaning, Fill::of(kept.lengths(slot).collect(), part_of(whole, meaning.share)))
            });
            let end = End::from(whose);
            let first = fill.part_of(until - from);
            let before = if meaning.rest == Line::DelayedAck {
                part_of(first, part_before_ack(connection, end))
            } else {
                first
            };
            let rest = (from + before, until - (first - before));
            let side = |line| side_of(connection, line, end);
            let booking = |(from, until), line| Booking { from, until, line, side: side(line) };
            bookings.push(booking((from, rest.0), meaning.line));
            bookings.push(booking(rest, meaning.rest));
            bookings.push(booking((rest.1, until), meaning.line));
        }
        Some(bookings)
    }
}

/// Whose time it is that is booked on `line` for `end`.
fn side_of(connection: &Connection, line: Line, end: End) -> Option<Side> {
    match line {
        Line::Handshake | Line::Idle | Line::Unexplained => None,
        Line::ClientApp => Some(Side::Client),
        Line::ServerApp => Some(Side::Server),
        _ if end == connection.client().unwrap_or(0) => Some(Side::Client),
        _ => Some(Side::Server),
    }
}

/// Share of a hold's round trip that passes before the ACK which the receiver may delay: the capture is so far from the
/// receiver. The rest, its way to the sender, passes after it.
fn part_before_ack(connection: &Connection, end: End) -> f64 {
    let (to_receiver, to_sender) =
        (connection.halves[end].part_or_zero(), connection.halves[1 - end].part_or_zero());
    let whole = to_receiver.saturating_add(to_sender);
    if whole == 0 { 1.0 } else { to_receiver as f64 / whole as f64 }
}

/// How much of each interval belongs to the line that comes first, when it is known only how much of all does: the
/// same length of each, as a round trip takes the same time, and all of those that are shorter.
#[derive(Clone, Debug)]
struct Fill {
    level: i64,
    /// So many intervals get one ns more, which makes the sum exact.
    extra: i64,
}

impl Fill {
    /// Divides `total` ns among intervals of these lengths, which are as long together or longer.
    fn of(mut lengths: Vec<i64>, total: i64) -> Self {
        lengths.sort_unstable();
        let mut left = total;
        for (shorter, length) in lengths.iter().enumerate() {
            let others = (lengths.len() - shorter) as i64;
            if left / others < *length {
                return Self { level: left / others, extra: left % others };
            }
            left -= length;
        }
        Self { level: i64::MAX, extra: 0 }
    }

    /// The part of the next interval, which is so long.
    fn part_of(&mut self, length: i64) -> i64 {
        if length <= self.level {
            return length;
        }
        let extra = self.extra.min(1);
        self.extra -= extra;
        self.level + extra
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_intervals_get_the_same_short_ones_all_of_theirs() {
        // 5 + 20 + 20: what is left of 45 after the short one, for two.
        let lengths = [60, 5, 90];
        let mut fill = Fill::of(lengths.to_vec(), 45);
        assert_eq!(lengths.map(|length| fill.part_of(length)), [20, 5, 20]);
        let mut fill = Fill::of(lengths.to_vec(), 46);
        assert_eq!(lengths.map(|length| fill.part_of(length)), [21, 5, 20]);
        let mut fill = Fill::of(lengths.to_vec(), 155);
        assert_eq!(lengths.map(|length| fill.part_of(length)), lengths);
    }

    #[test]
    fn neighbours_are_put_together_in_their_time() {
        let kept = |from, until, slot, whose| Interval { from, until, slot, whose };
        let intervals = [
            kept(10, 12, Slot::Cwnd, 0),
            kept(12, 13, Slot::Hold, 0),
            kept(13, 16, Slot::Hold, 1),
            kept(16, 20, Slot::Cwnd, 0),
            kept(20, 21, Slot::Hold, 0),
        ];
        let expected = [(10, 16, Slot::Cwnd, 0), (16, 18, Slot::Hold, 0), (18, 21, Slot::Hold, 1)]
            .map(|(from, until, slot, whose)| kept(from, until, slot, whose));
        assert_eq!(put_together(&intervals), expected);
    }

    #[test]
    fn however_many_there_are_each_line_keeps_its_sum() {
        const MOST: usize = 1 << 16;
        let mut recorder = Recorder::new(MOST);
        let slots = [Slot::Cwnd, Slot::Hold, Slot::Rto];
        for n in 0..3 * MOST {
            recorder.take(slots[n % 3], 0, n as i64, n as i64 + 1);
        }
        assert!(recorder.is_coarse && recorder.intervals.len() <= MOST, "{}", recorder.intervals.len());
        for slot in slots {
            assert_eq!(recorder.lengths(slot).sum::<i64>(), MOST as i64);
        }
        assert!(recorder.intervals.windows(2).all(|two| two[0].until == two[1].from));
        assert_eq!(recorder.intervals.last().map(|last| last.until), Some(3 * MOST as i64));
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_total(lengths in prop::collection::vec(1..1_000_i64, 0..40), share in 0.0..=1.0) {
            let total = part_of(lengths.iter().sum(), share);
            let mut fill = Fill::of(lengths.clone(), total);
            let parts: Vec<_> = lengths.iter().map(|length| fill.part_of(*length)).collect();
            prop_assert_eq!(parts.iter().sum::<i64>(), total);
            prop_assert!(parts.iter().zip(&lengths).all(|(part, length)| (0..=*length).contains(part)));
        }
    }
}
