//! Stops of a sender: what there was to see when it went on, for [`super::flight`] to judge.

use super::connection::{Connection, RELEASE_TOLERANCE};
use super::fact::{Cause, End};
use super::flight::{Left, ROUND_QUARTERS, Stop};
use super::half::{NEVER, Pushed};
use super::sending::Sending;

/// On a path shorter than this a program that is woken late explains a stop as well as its buffer does. ns.
const SHORT_PATH: i64 = 4 * RELEASE_TOLERANCE;

impl Connection {
    /// What is remembered of what `end` sends, if anything.
    pub(crate) fn sending(&self, end: End) -> Option<&Sending> {
        self.rare.as_ref()?.sending.as_ref().map(|sending| &sending[end])
    }

    /// The same, to be written.
    pub(crate) fn sending_mut(&mut self, end: End) -> &mut Sending {
        &mut self.rare.get_or_insert_default().sending.get_or_insert_default()[end]
    }

    /// What is remembered of what `end` sends, to be written, if anything is.
    #[inline]
    pub(crate) fn known_sending(&mut self, end: End) -> Option<&mut Sending> {
        self.rare.as_mut()?.sending.as_mut().map(|sending| &mut sending[end])
    }

    /// The sender at `end` stopped, with room in the receiver's window, and goes on at `now`, with a `full` segment or less,
    /// because an ACK let it. Returns what it was that stopped it.
    pub(crate) fn stopped(&mut self, end: End, now: i64, full: bool) -> Cause {
        let Some(base) = self.base_round_trip() else { return Cause::CongestionWindow };
        if self.is_answer(end) {
            self.begun(end, now);
            return Cause::CongestionWindow;
        }
        if full {
            self.note_small_window(end);
        }
        if !full || now - self.halves[end].sent_at <= self.clocked_gap(end) {
            // The rest of a message may have been held back for its size; and no new flight begins in mid-flight.
            return Cause::CongestionWindow;
        }
        let is_whole = self.established != NEVER;
        let (left, burst) = (self.left_behind(end, now, base), self.burst_from[end]);
        let half = &self.halves[end];
        let flight = (half.next as u32).wrapping_sub(burst);
        let stop = Stop {
            now,
            sent_at: half.sent_at,
            base,
            flight: u64::from(flight),
            next: half.next,
            left,
            full: u64::from(half.full_size()),
            retransmitted: half.retransmitted(),
            by_timer: half.trouble.as_ref().is_some_and(|trouble| trouble.quiet_since != NEVER),
            is_whole,
            fills: self.fills(end, base),
            was_small: !half.last_full,
            was_emptied: self.was_emptied(end, flight, now, base),
            was_marked: false,
        };
        // Behind a queue the path is busy while the sender waits, and from afar the queue cannot be seen.
        let is_near = self.reaction_part(end) <= RELEASE_TOLERANCE;
        let is_unqueued = is_near && half.rtt <= base + base / 4 + RELEASE_TOLERANCE;
        let sending = self.sending_mut(end);
        let was_marked = sending.marks.reductions > 0;
        let is_after = !sending.flights.is_reduced;
        let cause = sending.flights.stopped(&Stop { was_marked, ..stop });
        if was_marked && is_after && is_unqueued && cause == Cause::CongestionWindow {
            let waited = (now - stop.sent_at).min(base + base / 4);
            sending.marks.waits = sending.marks.waits.saturating_add(1);
            sending.marks.waited += waited;
            sending.marks.longest = sending.marks.longest.max(waited);
        }
        cause
    }

    /// Bytes of `end` that keep the path busy for the base round trip, if the path's rate is known.
    fn fills(&self, end: End, base: i64) -> Option<u64> {
        let full = u64::from(self.halves[end].full_size());
        let takes = self.halves[end].time_of(full);
        (takes > 0).then(|| (base as f64 / takes as f64 * full as f64) as u64)
    }

    /// Whether `end` has been spoken to since it sent last, and nothing is on its way: what it sends now may be an answer,
    /// which no window had been holding back.
    fn is_answer(&self, end: End) -> bool {
        self.halves[1 - end].sent_at > self.halves[end].sent_at && self.halves[end].in_flight() == 0
    }

    /// What was on its way when the sender at `end` stopped, if the capture was made there, nothing has left for most of a
    /// round trip, and only the pure ACK that came can have let it go on: no answer that its program was waiting
    /// for, and room in the receiver's window all along.
    fn left_behind(&self, end: End, now: i64, base: i64) -> Option<Left> {
        let (half, other) = (&self.halves[end], &self.halves[1 - end]);
        let is_near = self.reaction_part(end) <= RELEASE_TOLERANCE;
        let is_alone = half.freed_pure && other.sent_at < half.sent_at;
        let is_whole_round = base >= SHORT_PATH && now - half.sent_at >= base * ROUND_QUARTERS / 4;
        let at_stop = u64::from((half.next as u32).wrapping_sub(self.sent_acked[end]));
        let full = u64::from(half.full_size());
        let room = half.window_before().min(half.edge.saturating_sub(half.acked));
        if !(is_near && is_alone && is_whole_round && half.scale_known && at_stop + 2 * full <= room) {
            return None;
        }
        let at_end = (half.next + u64::from(half.freed_bytes)).saturating_sub(half.acked);
        let first_ack = self.sending(end).map_or(NEVER, |sending| sending.flights.acked_at);
        let was_late = first_ack > half.sent_at && now - first_ack > RELEASE_TOLERANCE;
        Some(Left { at_stop, at_end, is_unanswered: was_late && at_stop.saturating_sub(at_end) >= 2 * full })
    }

    /// Whether the sender at `end` had nothing left when it stopped, by the sign that it gives of that, and has been
    /// stopped for most of a round trip, with room for more in the receiver's window. Its flight was no longer than half of the largest window: behind so much
    /// Linux pushes also where more is to come (`forced_push`).
    fn was_emptied(&self, end: End, flight: u32, now: i64, base: i64) -> bool {
        let half = &self.halves[end];
        let may_be_forced = flight >= half.max_window / 2;
        let is_alone = half.freed_pure && self.halves[1 - end].sent_at < half.sent_at;
        let is_whole_round = base >= SHORT_PATH && now - half.sent_at >= base * ROUND_QUARTERS / 4;
        half.pushed == Pushed::TheLast && !may_be_forced && is_alone && is_whole_round
    }

    /// An ACK for what `end` sends came, the first since it sent last.
    #[inline]
    pub(crate) fn note_first_ack(&mut self, end: End, now: i64) {
        if let Some(sending) = self.known_sending(end) {
            sending.flights.acked_at = now;
        }
    }

    /// The sender at `end` stopped because the receiver's window was full, and goes on at `now`.
    pub(crate) fn stopped_by_receiver(&mut self, end: End, now: i64) {
        if let Some(sending) = self.known_sending(end) {
            sending.flights.interrupted(now);
        }
    }

    /// The program at `end` speaks at `now`, and nothing had been holding it back.
    pub(crate) fn begun(&mut self, end: End, now: i64) {
        let Some(base) = self.base_round_trip() else { return };
        let half = &self.halves[end];
        let (silence, is_acked) = (now - half.sent_at, half.in_flight() == 0);
        if let Some(sending) = self.known_sending(end) {
            sending.flights.begun(now, if is_acked { silence } else { 0 }, base);
        }
    }

    /// What spaces out the segments of `end`, of which one leaves now, if it is a congestion window that is still opening
    /// and not the path: the capture is at the sender, and no ACK has just come.
    #[inline]
    pub(crate) fn paced_by(&self, end: End, now: i64) -> Option<Cause> {
        let half = &self.halves[end];
        let is_near = self.reaction_part(end) <= RELEASE_TOLERANCE;
        let is_clocked = now - half.freed_at <= RELEASE_TOLERANCE;
        self.sending(end)?.flights.pacing(half.next).filter(|_| is_near && !is_clocked)
    }
}
