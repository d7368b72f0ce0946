//! The rhythm of one direction's messages, and what the sender's program does behind it.

use super::quantiles::Quantiles;

/// Segments nearer to each other than this belong to one message: a program that writes more than 200 times
/// a second is streaming, not keeping a beat. Also keeps bulk transfers off this path. ns.
pub(crate) const MESSAGE_GAP: i64 = 5_000_000;

/// Messages in a row from one side from which on its rhythm is kept: requests and answers, which alternate,
/// have none.
pub(crate) const RHYTHM_RUN: u16 = 2;

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
    /// The message that ended the longest gap: which packet, and when.
    pub(crate) latest_number: u64,
    pub(crate) latest_at: i64,
}

impl Rhythm {
    /// A rhythm that begins with a message of `len` bytes at `time`.
    pub(crate) fn starting(time: i64, len: u32) -> Self {
        Self { unit: len, single: 1, first: time, last: time, ..Self::default() }
    }

    /// How many units of the program's a message of `len` bytes holds.
    pub(crate) fn units(&self, len: u32) -> i64 {
        (i64::from(len) / i64::from(self.unit.max(1))).max(1)
    }

    /// Counts a message, packet `number`, that came `gap` ns after the one before it.
    pub(crate) fn add(&mut self, number: u64, time: i64, gap: i64, len: u32) {
        if len < self.unit {
            // What counted as one unit so far is several of this one.
            self.odd = if self.unit.is_multiple_of(len.max(1)) {
                self.odd
            } else {
                self.single.saturating_add(self.merged)
            };
            (self.unit, self.single, self.merged) = (len, 0, self.merged.saturating_add(self.single));
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
        self.gaps.add(gap);
        self.last = time;
    }
}
