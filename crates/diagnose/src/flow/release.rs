//! Why a segment left when it did: what had passed the capture point just before, and what there was no room for.
//!
//! This is the reasoning everything rests on. A segment that leaves within its sender's reaction time of an ACK was
//! waiting for that ACK; what for, its size, the window and what was in flight tell. One that leaves on its own was
//! waiting for its program.

use super::connection::{Connection, JITTER_SHARE, RELEASE_TOLERANCE};
use super::fact::{Cause, End, Fact, Facts, Wait};
use super::half::NEVER;
use super::program::LATEST_PURE_ACK;

/// No reaction to an ACK is faster than the shortest round trip to the sender, less this share of it for the
/// time in which the sender's host works on a SYN.
const FASTEST_SHARE: i64 = 10;
/// An ACK that comes this much later than the base round trip was held by the receiver: well above what
/// queues on a local network add, below the 40 ms of Linux (`TCP_DELACK_MIN`). ns.
pub(crate) const ACK_HELD: i64 = 20_000_000;
/// …unless the path's own round trip is so long that this share of it is still jitter.
const ACK_HELD_SHARE: i64 = 2;
/// ACKs that come within this share of a round trip, 1 in so many, come at once.
const AT_ONCE_SHARE: i64 = 8;
/// A round trip this much longer than the base one is still one without a queue, where the base one is shorter
/// still: what a kernel needs to wake up. ns.
pub(crate) const UNQUEUED: i64 = 100_000;
/// …and longer than this share of the round trip to the capture point, which may vary by as much.
pub(super) const SLOW_SHARE: i64 = 2;
/// What an ACK frees leaves so late on a machine that is busy. ns.
pub(super) const LATE_MACHINE: i64 = 5_000_000;
impl Connection {
    /// Whether what left `end` now was freed by an ACK: one passed late enough to be the last it reacted to,
    /// and one early enough to have reached it.
    #[inline]
    pub(crate) fn is_freed(&self, end: End, now: i64) -> bool {
        let half = &self.halves[end];
        let part = self.reaction_part(end);
        half.freed_at >= half.known_at
            && half.freed_first != NEVER
            && now - half.freed_at <= self.reaction_most(end)
            && now - half.freed_first >= fastest_reaction(part)
    }

    /// Whether what leaves `end` now was freed by an ACK although it is too late for that: it had more to send when it
    /// stopped, and something came since. The path takes longer now than it did.
    fn was_freed_late(&self, end: End) -> bool {
        let half = &self.halves[end];
        half.is_pending() && half.freed_at > half.sent_at
    }

    /// Works out what a segment that did not simply flow on had been waiting for. True if its program was
    /// free to send it all along.
    pub(crate) fn explain_send(
        &mut self,
        from: End,
        now: i64,
        number: u64,
        len: u32,
        full: bool,
        facts: &mut impl Facts,
    ) -> bool {
        if self.halves[from].is_repairing() {
            return false;
        }
        if self.was_shut_out(from, now, number, len, facts) {
            return false;
        }
        if self.halves[from].idents.missing > 0
            && let Some(wait) = self.unseen_timeout(from, now, number)
        {
            facts.take(Fact::Wait(wait));
            return false;
        }
        let freed =
            self.halves[from].sent_at != NEVER && (self.is_freed(from, now) || self.was_freed_late(from));
        // A tail-loss probe carries new data whatever Nagle's algorithm says (RFC 8985 section 7.3).
        let may_be_probe = !freed && self.note_probe(from, now, number);
        self.note_heels(from, now);
        if !full && !may_be_probe {
            self.note_defiance(from, now);
        }
        if self.is_just_written(from, now) {
            return self.speaks_freely(from, now, number, false, full, facts);
        }
        if (full || !freed) && self.was_completed(from, now) && self.halves[from].in_flight() > 0 {
            let wait = self.wait(Cause::NagleHold, from, self.halves[from].sent_at, now, number);
            // No ACK has freed it.
            facts.take(Fact::Hold { wait, late: now });
            return false;
        }
        let half = &self.halves[from];
        let no_room = half.scale_known && self.known_room(from, now) < u64::from(len.min(half.full_size()));
        let is_repairs = !half.zero_window && (!no_room || self.is_beyond_path(now - half.sent_at));
        if freed && half.has_just_recovered() && is_repairs {
            // Until the ACK that ended a repair, the repair was the wait; what lay behind the hole filled the window.
        } else if freed && (half.zero_window || no_room) {
            self.publish_window_wait(from, now, number, len, facts);
        } else if !full && self.is_hold(from, now, len) {
            self.publish_hold(from, now, number, len, Cause::NagleHold, facts);
        } else if freed && !full && self.is_held_tail(from, now) {
            self.publish_held_tail(from, now, number, len, facts);
        } else if !full && self.may_have_been_held(from, now) {
            self.publish_hold(from, now, number, len, Cause::MaybeHeld, facts);
        } else if freed && self.was_stopped(from, full) {
            self.publish_congestion_wait(from, now, number, len, full, facts);
        } else {
            return self.speaks_freely(from, now, number, freed, full, facts);
        }
        false
    }

    /// The segment that leaves now waited for its program, or for the end of its cork. True if for its program.
    fn speaks_freely(
        &mut self,
        from: End,
        now: i64,
        number: u64,
        freed: bool,
        full: bool,
        facts: &mut impl Facts,
    ) -> bool {
        self.begun(from, now);
        if !freed {
            self.note_idle_ack(from);
            if self.note_cork(from, now, number, full, facts) {
                return false;
            }
        }
        self.note_answer(from, now, number, facts);
        true
    }

    /// Whether `end`, which goes on after an ACK, had stopped although it had more to send. What it sent last was not
    /// pushed; or a full segment leaves, before or behind which nothing tells that its program has answered.
    fn was_stopped(&self, end: End, full: bool) -> bool {
        let half = &self.halves[end];
        if let Some(present) = self.present(end) {
            return present.first <= half.freed_at;
        }
        let was_asked = self.halves[1 - end].sent_at > half.sent_at;
        half.is_pending() || ((full || half.last_full) && !was_asked)
    }

    /// Counts the ACK that came last for `end`'s data, if it was held and nothing had been waiting for it.
    pub(crate) fn note_idle_ack(&mut self, end: End) {
        let half = &mut self.halves[end];
        let late = half.freed_at.saturating_sub(half.sent_at);
        if half.sent_at != NEVER && half.freed_pure && half.in_flight() == 0 && late >= ACK_HELD {
            // So many are enough for their average.
            if let Some(counted) = half.idle_acks.checked_add(1) {
                half.idle_acks = counted;
                half.idle_acks_late += late as f32;
            }
        }
    }

    /// Room in the window as the sender knew it when it fell silent, bytes. Where the capture is far from the
    /// sender, ACKs pass the capture point before the sender can have seen them, so the edge of the burst's
    /// beginning counts.
    fn known_room(&self, end: End, now: i64) -> u64 {
        let half = &self.halves[end];
        match self.is_near(end) {
            true if self.has_just_been_freed(end, now) => u64::from(half.room_at_stop),
            true => half.edge_before.saturating_sub(half.next),
            false => half.known_edge.saturating_sub(half.next),
        }
    }

    /// Whether the first ACK since `end` sent last came just now, and no slow start would have stopped it besides: a host may be
    /// handed several ACKs at once.
    fn has_just_been_freed(&self, end: End, now: i64) -> bool {
        let Some(flights) = self.sending(end).map(|sending| &sending.flights) else { return false };
        let most = self.base_round_trip().map_or(0, |base| RELEASE_TOLERANCE.min(base / AT_ONCE_SHARE));
        flights.is_steady() && flights.acked_at > self.halves[end].sent_at && now - flights.acked_at <= most
    }

    pub(crate) fn wait(&self, cause: Cause, end: End, from: i64, until: i64, number: u64) -> Wait {
        let half = &self.halves[end];
        let packets = [half.sent_number, half.freed_number, number];
        let times = [half.sent_at, half.freed_at, until];
        // What had not been written yet did not wait.
        let is_programs = matches!(cause, Cause::Program | Cause::ProgramPause);
        let written = self.present(end).filter(|_| !is_programs).map_or(from, |present| present.first);
        Wait { cause, end, from: from.max(written).min(until), until, packets, times }
    }

    pub(crate) fn publish_window_wait(
        &mut self,
        end: End,
        now: i64,
        number: u64,
        len: u32,
        facts: &mut impl Facts,
    ) {
        self.stopped_by_receiver(end, now);
        let half = &self.halves[end];
        let cause = match half.zero_window && self.is_beyond_path(now - half.sent_at) {
            _ if half.is_silly(len) => Cause::SillyWindow,
            true => Cause::ZeroWindow,
            false if self.was_unread(end, now) => Cause::Unread,
            false => Cause::ReceiveWindow,
        };
        facts.take(Fact::Wait(self.wait(cause, end, half.sent_at, now, number)));
    }

    /// Whether a wait of so many ns is longer than a round trip, which is what any full window takes to open again,
    /// also one that was full to the last byte.
    pub(crate) fn is_beyond_path(&self, waited: i64) -> bool {
        self.base_round_trip().is_none_or(|base| waited > base + base / JITTER_SHARE + RELEASE_TOLERANCE)
    }

    /// Whether a full window opened again only because the receiver's program read at last: it had shrunk to half of
    /// its largest size or less, since what had arrived lay unread, and much more than a round trip passed. A window
    /// that is merely small keeps its size, and slides with every ACK.
    fn was_unread(&self, end: End, now: i64) -> bool {
        let half = &self.halves[end];
        let shrunk = half.window_before() <= u64::from(half.max_window / 2);
        let waited = |base| now - half.sent_at - base >= ack_held(base);
        shrunk && self.base_round_trip().is_some_and(waited)
    }

    /// A full congestion window explains one base round trip; the rest is the receiver's ACK timer where one
    /// segment alone was ACKed, and a queue otherwise.
    pub(crate) fn publish_congestion_wait(
        &mut self,
        end: End,
        now: i64,
        number: u64,
        len: u32,
        full: bool,
        facts: &mut impl Facts,
    ) {
        let cause = match self.stopped(end, now, full) {
            Cause::SendBuffer if self.is_all_taken(end) => Cause::CongestionWindow,
            cause => cause,
        };
        let half = &self.halves[end];
        let since = half.sent_at;
        let now = self.publish_time_on_path(end, (since, now), len, number, facts);
        let Some(base) = self.base_round_trip() else {
            return facts.take(Fact::Wait(self.wait(cause, end, since, now, number)));
        };
        let base = base.saturating_add(self.time_of_first(end));
        let expected = since.saturating_add(base).saturating_add(base / JITTER_SHARE + RELEASE_TOLERANCE);
        if now <= expected {
            return self.publish_window(cause, end, (since, now), number, facts);
        }
        let rest = match cause != Cause::SendBuffer && self.was_ack_held(end, now, base) {
            true if half.freed_without_reading() => Cause::Unread,
            true => Cause::DelayedAck,
            false => Cause::Queueing,
        };
        // Near the sender the ACK's delay shows last; far from it, the ACK passes before its way to the sender begins.
        let (window, beyond) = match self.is_far(end) {
            true => ((now - base, now), (since, now - base)),
            false => ((since, since + base), (since + base, now)),
        };
        let (beyond, later) = match self.is_far(end) && rest != Cause::Queueing {
            true => self.split_at_ack(end, beyond),
            false => (beyond, None),
        };
        if base > 0 {
            self.publish_window(cause, end, window, number, facts);
        }
        facts.take(Fact::Wait(self.wait(rest, end, beyond.0, beyond.1, number)));
        if let Some((from, until)) = later {
            facts.take(Fact::Wait(self.wait(Cause::Queueing, end, from, until, number)));
        }
    }

    /// A wait for the congestion window, of which a loss may have to answer for a part only.
    fn publish_window(
        &self,
        cause: Cause,
        end: End,
        (from, until): (i64, i64),
        number: u64,
        facts: &mut impl Facts,
    ) {
        let part = match self.sending(end) {
            Some(sending) if cause == Cause::AfterLoss => sending.flights.lost_part,
            _ => 1.0,
        };
        let middle = until - ((until - from) as f64 * f64::from(part)) as i64;
        if middle > from {
            facts.take(Fact::Wait(self.wait(Cause::CongestionWindow, end, from, middle, number)));
        }
        facts.take(Fact::Wait(self.wait(cause, end, middle, until, number)));
    }

    /// Whether the receiver held the ACK behind which `end` goes on at `now`. A queue lets ACKs through one after the other;
    /// one ACK for all, late, was held, if no later than a receiver may.
    fn was_ack_held(&self, end: End, now: i64, base: i64) -> bool {
        let half = &self.halves[end];
        let alone = u64::from(half.freed_bytes) < 2 * u64::from(half.full_size()) || half.in_flight() == 0;
        let late = match self.is_far(end) {
            true => half.freed_at - half.sent_at - half.part_or_zero(),
            false => now - half.sent_at - base,
        };
        alone && (ack_held(base)..=LATEST_PURE_ACK + ack_held(base)).contains(&late)
    }

    /// What an ACK that passed here on its way to `end` leaves of a wait beyond the base round trip: up to there the receiver
    /// held it, and what came later than its way to the sender explains went elsewhere.
    fn split_at_ack(&self, end: End, (from, until): (i64, i64)) -> ((i64, i64), Option<(i64, i64)>) {
        let acked_at = self.halves[end].freed_at.clamp(from, until);
        let is_late = until - acked_at > self.reaction_part(end) / JITTER_SHARE + RELEASE_TOLERANCE;
        if is_late { ((from, acked_at), Some((acked_at, until))) } else { ((from, until), None) }
    }

    /// Whether the sender's buffer had taken what leaves now when its sender stopped: it is not what stopped it.
    fn is_all_taken(&self, end: End) -> bool {
        self.present(end).is_some_and(|present| present.done <= self.halves[end].sent_at)
    }

    /// Whether the capture is so near to `end` that the path between adds no jitter to the times its segments leave.
    pub(crate) fn is_near(&self, end: End) -> bool {
        self.reaction_part(end) <= RELEASE_TOLERANCE
    }

    /// Whether the receiver's window and not the path sets the pace of a sender that the capture is near to: there
    /// was no room for a full segment until the last ACK came, and ACKs come back without having queued.
    #[inline]
    pub(crate) fn is_bound_by_window(&self, from: End) -> bool {
        let half = &self.halves[from];
        if !half.scale_known || half.freed_at < half.sent_at || self.reaction_part(from) > RELEASE_TOLERANCE {
            return false;
        }
        let room = half.edge_before.saturating_sub(half.next);
        let base = self.base_round_trip().unwrap_or(0);
        let round_trip = half.rtt + self.halves[1 - from].part_or_zero();
        let jitter = (base / JITTER_SHARE).max(base.min(RELEASE_TOLERANCE)).max(UNQUEUED);
        room < u64::from(half.full_size()) && round_trip <= base + jitter
    }
}

/// The least time, at the capture point, from an ACK to what it released, where the sender is `part` away.
pub(crate) fn fastest_reaction(part: i64) -> i64 {
    if part <= RELEASE_TOLERANCE { 0 } else { part - part / FASTEST_SHARE }
}

/// From how much beyond the base round trip on an ACK counts as held.
pub(crate) fn ack_held(base: i64) -> i64 {
    ACK_HELD.max(base / ACK_HELD_SHARE)
}
