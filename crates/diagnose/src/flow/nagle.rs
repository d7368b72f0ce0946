//! Small segments that Nagle's algorithm held back (RFC 896; RFC 1122 section 4.2.3.4).

use super::connection::{Connection, RELEASE_TOLERANCE};
use super::fact::{Cause, End, Fact, Facts, Wait};
use super::half::UNKNOWN;
use super::program::LATEST_PURE_ACK;
use super::release::{ACK_HELD, fastest_reaction};
use super::rhythm::MESSAGE_GAP;

/// A hold shorter than the tolerance cannot be told from a program that was about to write.
const SHORTEST_HOLD: i64 = RELEASE_TOLERANCE;
/// After a small segment left although another was in flight, this many releases by ACK in a row must be
/// seen before they count as holds again: a sender with TCP_NODELAY meets an ACK by chance now and then.
const NODELAY_PROOF: u8 = 3;
/// Messages (more than [`MESSAGE_GAP`] apart) in a row from one side, without data from the other, that make a
/// stream of updates and not the pieces of a request.
pub(crate) const STREAM_RUN: u8 = 3;

impl Connection {
    /// Whether Nagle's algorithm had been holding the small segment that leaves now: it follows, by the sender's
    /// reaction time, a pure ACK of the small segment before it. Linux waits for that one alone (Minshall), even
    /// if full ones behind it are still in flight; where nothing follows the small one, so does everybody. With
    /// data behind the ACK, the program could be answering that data instead.
    pub(crate) fn is_hold(&mut self, end: End, now: i64, len: u32) -> bool {
        let part = self.reaction_part(end);
        let half = &self.halves[end];
        let reaction = now - half.small.acked_at().min(now);
        let fits = self.follows_small(end, now)
            && reaction <= self.reaction_most(end).saturating_add(self.time_on_path_from(end, len))
            && reaction >= fastest_reaction(part)
            && (half.shown.as_ref().is_some_and(|shown| shown.held.waits.count() > 0)
                || reaction <= self.time_on_path_from(end, len) + part + part / 16 + RELEASE_TOLERANCE);
        if fits && half.nodelay > 0 {
            self.halves[end].nodelay -= 1;
            return false;
        }
        fits
    }

    /// Whether the small segment that leaves `end` now is the first thing to leave behind a pure ACK of the small one
    /// before it, and the other side has said nothing since that ACK: the program could be answering that.
    fn follows_small(&self, end: End, now: i64) -> bool {
        let (half, other) = (&self.halves[end], &self.halves[1 - end]);
        let acked_at = half.small.acked_at();
        let acked_number =
            half.small.packets(half.sent_number.max(other.sent_number).max(half.freed_number))[1];
        half.small_acked_pure
            && !half.small_in_flight()
            && !self.went_on_since(end, acked_at)
            && now - half.small.sent_at >= SHORTEST_HOLD
            && acked_at - half.small.sent_at <= self.latest_ack(end)
            && other.sent_at <= acked_at
            && (other.sent_at < acked_at || other.sent_number < acked_number)
    }

    /// How long after data of `end` its ACK passes at the latest, if the receiver held it and nothing was lost. ns.
    fn latest_ack(&self, end: End) -> i64 {
        let base = self.base_round_trip().unwrap_or(0);
        let usual = self.halves[end].part_or_zero().max(base);
        usual.saturating_add(LATEST_PURE_ACK.max(usual))
    }

    /// Whether that is all that can be said for a hold so far: the ACK came late, and the segment behind it left about
    /// when a host at that distance reacts, or at the ACK's heels, as if the capture were nearer than it seems.
    pub(super) fn may_have_been_held(&self, end: End, now: i64) -> bool {
        let half = &self.halves[end];
        let acked_at = half.small.acked_at();
        let reaction = now - acked_at.min(now);
        let part = self.reaction_part(end);
        let is_near = reaction <= RELEASE_TOLERANCE || reaction >= fastest_reaction(part);
        self.present(end).is_none()
            && self.follows_small(end, now)
            // A program that answers takes some time, too.
            && self.halves[1 - end].sent_at < half.small.sent_at
            && acked_at - half.small.sent_at >= ACK_HELD
            && is_near
            && reaction <= self.reaction_limit(end)
    }

    /// Whether the ACK that passed at `acked_at` has already released something: far from the sender, what passes
    /// sooner than it can have reached the sender had left before.
    fn went_on_since(&self, end: End, acked_at: i64) -> bool {
        self.halves[end].sent_at > acked_at + fastest_reaction(self.reaction_part(end))
    }

    /// A small segment leaves: was one before it still on its way, its sender does not delay.
    pub(super) fn note_defiance(&mut self, end: End, now: i64) {
        if self.defies_nagle(end, now) {
            let half = &mut self.halves[end];
            (half.nodelay, half.defied) = (NODELAY_PROOF, half.defied.saturating_add(1));
        }
    }

    /// Whether a small segment leaves while another one is on its way, which Nagle's algorithm forbids. An ACK
    /// that has passed here may not have reached the sender yet.
    fn defies_nagle(&self, end: End, now: i64) -> bool {
        let half = &self.halves[end];
        let reaction = now - half.small.acked_at().min(now);
        let too_soon = reaction < fastest_reaction(self.reaction_part(end));
        // What is not pushed has more behind it, and was as long as it may be.
        half.is_pushed
            && !self.may_have_been_held(end, now)
            && (half.small_in_flight() || (half.small.end != 0 && too_soon))
    }

    /// A small segment left the moment the one before it was ACKed: Nagle's algorithm had been holding it.
    pub(super) fn publish_hold(
        &mut self,
        end: End,
        now: i64,
        number: u64,
        len: u32,
        cause: Cause,
        facts: &mut impl Facts,
    ) {
        let from = self.written_at(end, now, len);
        let (first_by_length, train) = self.on_slow_path(end);
        let half = &mut self.halves[end];
        let small = half.small;
        let [first, ack] = small.packets(number);
        let packets = [first, ack, number];
        let acked_at = small.acked_at().min(now);
        let times = [small.sent_at, acked_at, now];
        let (wait, reaction) = (acked_at - small.sent_at, now - acked_at);
        let by_length = if small.sent_at == half.sent_at { (first_by_length + train).min(wait) } else { 0 };
        let shown = half.shown.get_or_insert_default();
        let held = match cause {
            Cause::MaybeHeld => shown.candidates.take(reaction),
            _ => &mut shown.held,
        };
        held.add(wait, reaction, by_length, small.len, len);
        if cause == Cause::NagleHold {
            self.note_release(end, now);
        }
        let wait = Wait { cause, end, from, until: now, packets, times };
        facts.take(self.hold(wait, small.sent_at, by_length));
    }

    /// A hold behind what was sent at `sent_at`, whose ACK took `by_length` ns longer for its length.
    fn hold(&self, wait: Wait, sent_at: i64, by_length: i64) -> Fact {
        match (self.present(wait.end), self.halves[wait.end].part) {
            (None, _) | (_, UNKNOWN) => Fact::Wait(wait),
            (Some(_), part) => Fact::Hold { wait, late: sent_at + part + by_length },
        }
    }

    /// The small rest of a message left the moment the full segments before it were ACKed.
    pub(super) fn publish_held_tail(
        &mut self,
        end: End,
        now: i64,
        number: u64,
        len: u32,
        facts: &mut impl Facts,
    ) {
        let (first_by_length, train) = self.on_slow_path(end);
        let half = &mut self.halves[end];
        let (sent_at, freed_at, first) = (half.sent_at, half.freed_at, half.sent_len);
        let by_length = (first_by_length + train).min(freed_at - sent_at);
        half.shown.get_or_insert_default().held.add(
            freed_at - sent_at,
            now - freed_at,
            by_length,
            first,
            len,
        );
        let wait = self.wait(Cause::NagleHold, end, sent_at, now, number);
        facts.take(self.hold(wait, sent_at, by_length));
    }

    /// When the program probably wrote what was held. The packets give bounds only: between the segment
    /// before and the release. Pieces of one message are written at once, so the wait began with the small segment
    /// before, whatever full ones left in between. A stream of updates keeps its own time, which its rhythm knows.
    fn written_at(&mut self, end: End, now: i64, len: u32) -> i64 {
        if let Some(present) = self.present(end) {
            return present.first.clamp(self.halves[end].small.sent_at, now);
        }
        let half = &mut self.halves[end];
        let (since, is_run) = (half.small.sent_at, half.run >= STREAM_RUN);
        let Some(rhythm) = half.rhythm.as_mut().filter(|_| now - since >= MESSAGE_GAP) else { return since };
        let written = rhythm.hold(since, now, len);
        if is_run && !rhythm.is_in_pieces() { written } else { since }
    }
}
