//! The rate of the path: how long it takes for the bytes of one direction, as far as packets show it.
//!
//! Segments that left back to back arrive as far apart as the slowest link takes for one of them, and so do their ACKs
//! (Jacobson 1988, "Congestion Avoidance and Control", figure 1). Which of them left back to back a capture far from their
//! sender cannot see; whatever lies between the others makes them farther apart. So the closest pair tells: the path
//! is at least that fast.

use super::connection::{Connection, RELEASE_TOLERANCE};
use super::fact::{Cause, End, Fact, Facts, Wait};
use super::half::{Acked, Half};
use super::release::UNQUEUED;

/// Segments this much farther apart, 1 in so many, than the closest pair are still at the rate of the path.
const SPREAD: i64 = 4;
/// The ACKs of a train come back more unevenly: two of them may have met a queue that the first one of a closer pair did
/// not. As many times the time that the path takes.
const UNEVEN: i64 = 2;
/// Two pairs tell the same if they differ by less than one in so many.
const ALIKE: f32 = 16.0;
/// A path is slow if it takes as long for a full segment as any reaction may take, some ms: shorter times are not told
/// from those. ns; and the bytes of such a segment.
const SLOW: f32 = RELEASE_TOLERANCE as f32;
const FULL: f32 = 1_500.0;
/// Bytes of the headers of IPv4 and TCP with timestamps, which a segment's data shares the path with.
const HEADERS: u64 = 52;

/// A time per byte in two bytes: the upper half of a 32-bit floating point number of ns, which is exact to one part in
/// 128. Numbers that are not negative are ordered as their bits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PerByte(u16);

impl PerByte {
    /// Not known: infinite.
    const UNKNOWN: Self = Self((f32::INFINITY.to_bits() >> 16) as u16);

    #[inline]
    fn ns(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// So many ns, which are not negative.
    #[inline]
    fn of(ns: f32) -> Self {
        Self((ns.to_bits() >> 16) as u16)
    }

    /// Whether a full segment takes [`SLOW`] or longer.
    #[inline]
    fn is_slow(self) -> bool {
        self.ns() * FULL >= SLOW
    }

    /// Whether the two are the same, give or take: where both are short, what hosts add differs by as much.
    fn is_like(self, other: Self) -> bool {
        let are_fast = !self.is_slow() && !other.is_slow();
        are_fast || (self.ns() - other.ns()).abs() * ALIKE <= self.ns()
    }
}

/// The least time per byte that the path has been seen to take, twice. What one pair alone shows may be too little: an ACK
/// that the receiver held is close to the next one, which it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spacing {
    least: PerByte,
    /// Of the last pair.
    last: PerByte,
}

impl Default for Spacing {
    fn default() -> Self {
        Self { least: PerByte::UNKNOWN, last: PerByte::UNKNOWN }
    }
}

impl Spacing {
    /// The time per byte, ns: infinite where it is not known.
    #[inline]
    fn ns(self) -> f32 {
        if self.least == PerByte::UNKNOWN { self.last.ns() } else { self.least.ns() }
    }

    /// Whether a full segment is known to take [`SLOW`] or longer.
    #[inline]
    fn is_slow(self) -> bool {
        self.least != PerByte::UNKNOWN && self.least.is_slow()
    }

    /// Takes note of a pair that took so many ns per byte, which are not negative.
    #[inline]
    fn note(&mut self, ns: f32) {
        let seen = PerByte::of(ns);
        if seen < self.least && seen.is_like(self.last) {
            self.least = seen.max(self.last);
        }
        self.last = seen;
    }
}

impl Half {
    /// How long the path takes for so many bytes, ns; 0 where that is not known.
    #[inline]
    pub(crate) fn time_of(&self, bytes: u64) -> i64 {
        let spacing = self.spacing.ns();
        if spacing == f32::INFINITY { 0 } else { (self.on_wire(bytes) * spacing) as i64 }
    }

    /// Takes note that `bytes` took `gap` ns or less.
    #[inline]
    fn note_spacing(&mut self, gap: i64, bytes: u64) {
        let ns = gap.max(0) as f32 / self.on_wire(bytes);
        self.spacing.note(ns);
    }

    /// So many bytes of data with their headers.
    #[inline]
    fn on_wire(&self, bytes: u64) -> f32 {
        let segments = bytes.div_ceil(u64::from(self.full_size()));
        (bytes + HEADERS * segments) as f32
    }
}

impl Connection {
    /// Whether the capture is farther from `end` than from the other one.
    #[inline]
    pub(crate) fn is_far(&self, end: End) -> bool {
        self.halves[1 - end].part_or_zero() > self.halves[end].part_or_zero()
    }

    /// A segment of `len` bytes arrives in order at `now`, `gap` ns after the one before it. Its sender had more to send
    /// when that one left, and has not been waiting for an ACK in between, so only the path lies between them.
    #[inline]
    pub(crate) fn note_arrival(&mut self, from: End, now: i64, gap: i64, len: u32) {
        let half = &self.halves[from];
        let had_more = half.last_full && half.is_pending() && !half.is_repairing();
        // About a round trip to the sender behind the one before, it may have been waiting for an ACK.
        let part = self.reaction_part(from);
        let is_round_trip = (part / 3 * 2..=part).contains(&gap);
        let is_own = gap < part / 2 || !is_round_trip && !self.is_freed(from, now);
        if had_more && self.is_far(from) && is_own {
            self.halves[from].note_spacing(gap, u64::from(len));
        }
    }

    /// An ACK of `end`'s data comes back at `now`, `gap` ns after the one before it. The receiver did not delay it, as
    /// another segment is still on its way, or as it covers two full ones (RFC 1122 section 4.2.3.2) of a flight of which
    /// others were ACKed before; and what it acknowledges was on its way when that one came.
    #[inline]
    pub(crate) fn note_return(&mut self, end: End, now: i64, gap: i64, acked: Acked) {
        let half = &self.halves[end];
        let full = u64::from(half.full_size());
        // A tail that is on its way may have left only when the ACK before came: the receiver has not got it yet.
        let is_prompt = half.in_flight() >= full || (acked.bytes >= 2 * full && now - gap > half.sent_at);
        // What was sent only when that one came takes a round trip; what was on its way queued for as long.
        let queued = half.rtt - half.part_or_zero();
        let was_on_its_way = gap < half.part_or_zero() / 2 || gap <= queued + queued / SPREAD;
        if is_prompt && was_on_its_way && !half.is_repairing() && !self.is_far(end) {
            self.halves[end].note_spacing(gap, acked.bytes);
        }
    }

    /// How long the path takes for `len` bytes that come from afar, ns; 0 where `end` is near, or that is not known.
    #[inline]
    pub(crate) fn time_on_path_from(&self, end: End, len: u32) -> i64 {
        if self.is_far(end) { self.halves[end].time_of(u64::from(len)) } else { 0 }
    }

    /// How long the path took for what passed last, where `end` sends `len` bytes: far from the sender for these bytes
    /// themselves; near it for those of which the ACK has just come. ns.
    #[inline]
    pub(crate) fn time_on_path(&self, end: End, len: u32) -> i64 {
        let half = &self.halves[end];
        half.time_of(u64::from(if self.is_far(end) { len } else { half.freed_bytes }))
    }

    /// `len` bytes of `end` leave at `now`, and queue behind what left before at a path that is slow.
    #[inline]
    pub(crate) fn note_departure(&mut self, end: End, now: i64, len: u32) {
        let half = &self.halves[end];
        if half.spacing.is_slow() && !self.is_far(end) {
            let time = half.time_of(u64::from(len));
            let sending = self.sending_mut(end);
            sending.drained_at = sending.drained_at.max(now).saturating_add(time);
        }
    }

    /// How much longer than the base round trip what `end` sent last takes for its length, and behind that for the rest
    /// of its train, ns. What has been ACKed by now has taken no longer than that.
    pub(crate) fn on_slow_path(&self, end: End) -> (i64, i64) {
        let half = &self.halves[end];
        let drained = self.sending(end).map_or(0, |sending| sending.drained_at);
        if drained <= half.sent_at {
            return (0, 0);
        }
        let is_acked = half.in_flight() == 0;
        let most =
            if is_acked { (half.freed_at - half.sent_at - half.part_or_zero()).max(0) } else { i64::MAX };
        let all = (drained - half.sent_at).min(most);
        // A train begins with a full segment.
        let own = half.time_of(u64::from(half.sent_len));
        let first = if all > own { self.time_of_first(end) } else { own };
        (first.min(all), (all - first).max(0))
    }

    /// Whether so long a gap before a segment of `len` bytes is the path's rate.
    #[inline]
    pub(crate) fn is_at_rate(&self, end: End, gap: i64, len: u32) -> bool {
        let time = self.time_on_path(end, len);
        time > 0 && gap <= time.saturating_add(time / SPREAD)
    }

    /// Up to when the path was busy between two segments of a flow, of which the second, of `len` bytes, passes at the end of
    /// this span: all the time, but behind a loss, whose smaller window leaves gaps. Near the sender its gaps do not tell: the
    /// path may have a queue.
    #[inline]
    pub(crate) fn busy_until(&self, end: End, (since, now): (i64, i64), len: u32) -> i64 {
        let is_smaller = self.sending(end).is_some_and(|sending| sending.flights.is_smaller());
        let time = if is_smaller && self.is_far(end) { self.time_on_path(end, len) } else { 0 };
        let is_idle = time > 0 && now - since > time.saturating_add(time / SPREAD);
        if is_idle { since + time } else { now }
    }

    /// An ACK of `end`'s data comes back while it is silent, over a path whose rate is known: some of the time since then,
    /// or since the ACK before, went with these bytes. What is left was spent in a queue, if the receiver cannot have held
    /// the ACK.
    pub(crate) fn return_at_rate(
        &self,
        end: End,
        acked: Acked,
        number: u64,
        now: i64,
        facts: &mut impl Facts,
    ) {
        let half = &self.halves[end];
        let full = u64::from(half.full_size());
        let by_length = if acked.before == half.sent_at { self.on_slow_path(end).0 } else { 0 };
        let arrived = (half.sent_at + half.part_or_zero() + by_length).min(now);
        facts.take(Fact::InFlight { end, from: half.sent_at, until: arrived, by_length });
        let since = acked.before.max(arrived);
        let is_prompt = acked.bytes >= 2 * full || half.in_flight() > 0;
        let mut busy_from = self.publish_time_on_path(end, (since, now), 0, number, facts);
        if is_prompt && now - since <= half.time_of(acked.bytes).saturating_mul(UNEVEN) {
            let packets = [half.sent_number, number, number];
            facts.take(Fact::Wait(Wait::new(Cause::Transfer, end, (since, now), packets)));
            busy_from = since;
        }
        if is_prompt {
            self.publish_queue(end, (since, busy_from), number, facts);
        }
    }

    /// Publishes a queue, if it is one.
    fn publish_queue(&self, end: End, (from, until): (i64, i64), number: u64, facts: &mut impl Facts) {
        if until - from > UNQUEUED {
            let packets = [self.halves[end].sent_number, number, number];
            facts.take(Fact::Wait(Wait::new(Cause::Queueing, end, (from, until), packets)));
        }
    }

    /// Publishes the time up to `now` in which the path was busy with what passed last, but not before `since`: all of it
    /// where that came at the path's rate. Else what came begins a train, and near its sender one ACK may be for several
    /// segments of it. Returns since when.
    pub(crate) fn publish_time_on_path(
        &self,
        end: End,
        (since, now): (i64, i64),
        len: u32,
        number: u64,
        facts: &mut impl Facts,
    ) -> i64 {
        let half = &self.halves[end];
        let from = match self.is_at_rate(end, now - since, len) {
            true => since,
            false if self.is_far(end) => now,
            false => now
                .saturating_sub(self.time_on_path(end, len))
                .saturating_add(self.time_of_first(end))
                .clamp(since, now),
        };
        if from < now {
            let packets = [half.sent_number, number, number];
            facts.take(Fact::Wait(Wait::new(Cause::Transfer, end, (from, now), packets)));
        }
        from
    }

    /// How long the path takes for one full segment of `end`, ns; 0 where that is not known.
    pub(crate) fn time_of_first(&self, end: End) -> i64 {
        let half = &self.halves[end];
        half.time_of(u64::from(half.full_size()))
    }
}
