//! Why a segment left when it did: what had passed the capture point just before, and what there was no room for.
//!
//! This is the reasoning everything rests on. A segment that leaves within its sender's reaction time of an ACK was
//! waiting for that ACK; what for, its size, the window and what was in flight tell. One that leaves on its own was
//! waiting for its program.

use super::awaited::DIALOGUE;
use super::connection::{Connection, JITTER_SHARE, PROMPT, RELEASE_TOLERANCE};
use super::fact::{Awaited, Cause, End, Fact, Facts, Wait};
use super::half::{NEVER, UNKNOWN};
use super::rhythm::MESSAGE_GAP;

/// A pause of a server's counts from an ACK on that passed earlier than this share of the round trip to the sender: a later
/// one cannot have reached it yet.
const EARLIEST_SHARE: i64 = 2;
/// No reaction to an ACK is faster than the shortest round trip to the sender, less this share of it for the
/// time in which the sender's host works on a SYN.
const FASTEST_SHARE: i64 = 10;
/// A hold shorter than the tolerance cannot be told from a program that was about to write.
const SHORTEST_HOLD: i64 = RELEASE_TOLERANCE;
/// This many prompt reactions of a host show that the capture was made there.
pub(crate) const PROMPT_PROOF: u16 = 3;
/// An ACK that comes this much later than the base round trip was held by the receiver: well above what
/// queues on a local network add, below the 40 ms of Linux (`TCP_DELACK_MIN`). ns.
pub(crate) const ACK_HELD: i64 = 20_000_000;
/// …unless the path's own round trip is so long that this share of it is still jitter.
const ACK_HELD_SHARE: i64 = 2;
/// ACKs that come within this share of a round trip, 1 in so many, come at once.
const AT_ONCE_SHARE: i64 = 8;
/// No receiver holds an ACK for longer (RFC 1122 section 4.2.3.2). ns.
const LONGEST_ACK_DELAY: i64 = 500_000_000;
/// The shortest retransmission timeout beyond the round trip, which is what a cork's timer waits (Linux
/// `TCP_RTO_MIN`, `tcp_probe0_base`). ns.
const RTO_MIN: i64 = 200_000_000;
/// A round trip that has been measured only once may vary by so many times its length in that timer (RFC 6298
/// section 2.2).
const FIRST_VARIANCE: i64 = 2;
/// The round trips a sender measures may be this much longer than the base one by what delays ACKs (Linux
/// `TCP_DELACK_MIN`). ns.
const DELAYED_SAMPLE: i64 = 40_000_000;
/// Linux rounds a timer up, by one in so many of its length at most (the eight steps a level of its timer wheel).
const WHEEL_SHARE: i64 = 8;
/// After a small segment left although another was in flight, this many releases by ACK in a row must be
/// seen before they count as holds again: a sender with TCP_NODELAY meets an ACK by chance now and then.
const NODELAY_PROOF: u8 = 3;
/// Messages (more than [`MESSAGE_GAP`] apart) in a row from one side, without data from the other, that make a
/// stream of updates and not the pieces of a request.
pub(crate) const STREAM_RUN: u8 = 3;
/// A round trip this much longer than the base one is still one without a queue, where the base one is shorter
/// still: what a kernel needs to wake up. ns.
pub(crate) const UNQUEUED: i64 = 100_000;
/// A program that takes this long to answer is worth remembering: shorter answers are work, and remembering one
/// costs a cache miss and 150 bytes. ns.
const SLOW_ANSWER: i64 = 2_000_000;
/// …and longer than this share of the round trip to the capture point, which may vary by as much.
pub(super) const SLOW_SHARE: i64 = 2;
/// So many full segments in a row may fill a queue of the path, and have several ACKs, none of which was delayed for
/// long (RFC 1122 section 4.2.3.2).
const QUEUEING_BURST: u32 = 4;
/// What an ACK frees leaves so late on a machine that is busy. ns.
pub(super) const LATE_MACHINE: i64 = 5_000_000;
/// A request that is ACKed only so late, by its answer or by what its own retransmission drew, shows no slow program:
/// a stack ACKs within this time whatever its program does (Linux `TCP_DELACK_MAX`), and the shortest
/// retransmission timer lasts as long (`TCP_RTO_MIN`), so the answer with the ACK in it was probably lost. ns.
pub(crate) const LATEST_ACK: i64 = 200_000_000;
/// …but one that comes by itself may be a delayed ACK of any stack, of which this is the latest (RFC 1122 section
/// 4.2.3.2). ns.
pub(crate) const LATEST_PURE_ACK: i64 = 500_000_000;

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
        if !full && !may_be_probe && self.defies_nagle(from, now) {
            let half = &mut self.halves[from];
            (half.nodelay, half.defied) = (NODELAY_PROOF, half.defied.saturating_add(1));
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
        usual.saturating_add(LONGEST_ACK_DELAY.max(usual))
    }

    /// Whether that is all that can be said for a hold so far: the ACK came late, and the segment behind it left about
    /// when a host at that distance reacts, or at the ACK's heels, as if the capture were nearer than it seems.
    fn may_have_been_held(&self, end: End, now: i64) -> bool {
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
            return facts.take(Fact::Wait(self.wait(cause, end, since, now, number)));
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
            facts.take(Fact::Wait(self.wait(cause, end, window.0, window.1, number)));
        }
        facts.take(Fact::Wait(self.wait(rest, end, beyond.0, beyond.1, number)));
        if let Some((from, until)) = later {
            facts.take(Fact::Wait(self.wait(Cause::Queueing, end, from, until, number)));
        }
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
        alone && (ack_held(base)..=LONGEST_ACK_DELAY + ack_held(base)).contains(&late)
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

    /// A small segment left the moment the one before it was ACKed: Nagle's algorithm had been holding it.
    fn publish_hold(
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
            self.note_reaction(end, now);
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
    fn publish_held_tail(&mut self, end: End, now: i64, number: u64, len: u32, facts: &mut impl Facts) {
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

    /// Learns from a release how near the capture is to the sender, where no handshake told.
    pub(crate) fn note_reaction(&mut self, end: End, now: i64) {
        let reaction = now - self.halves[end].small.acked_at().min(now);
        let host = &mut self.halves[end];
        if reaction > PROMPT {
            host.slow = host.slow.saturating_add(1);
            return;
        }
        host.prompt = host.prompt.saturating_add(1);
        if host.prompt >= PROMPT_PROOF {
            let part = &mut self.halves[1 - end].part;
            *part = (*part).min(reaction);
        }
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

    /// How long Linux waits before it sends what nothing has freed, a corked tail: the timer of zero-window probes,
    /// one retransmission timeout from the moment on at which nothing is in flight (`tcp_check_probe_timer`).
    fn cork_time(&self, end: End) -> std::ops::Range<i64> {
        let base = self.base_round_trip().unwrap_or(0);
        let latest = self.halves[end].rtt + self.reaction_part(end);
        let smoothed = latest.clamp(base, base + base / JITTER_SHARE + DELAYED_SAMPLE);
        let longest = smoothed + RTO_MIN.max(FIRST_VARIANCE * smoothed);
        base + RTO_MIN..longest + longest / WHEEL_SHARE
    }

    /// Whether the capture is so near to `end` that the path between adds no jitter to the times its segments leave.
    pub(crate) fn is_near(&self, end: End) -> bool {
        self.reaction_part(end) <= RELEASE_TOLERANCE
    }

    /// A tail that left one retransmission timeout after the rest of its message, freed by nothing: the cork's timer,
    /// or a program that happens to take as long.
    pub(crate) fn note_cork(
        &mut self,
        end: End,
        now: i64,
        number: u64,
        full: bool,
        facts: &mut impl Facts,
    ) -> bool {
        if let Some(present) = self.present(end) {
            if present.is_corked {
                facts.take(self.corked_since(end, present.first, now, number));
            }
            return present.is_corked;
        }
        let (half, other) = (&self.halves[end], &self.halves[1 - end]);
        let arrived = |time: i64| if time == NEVER { NEVER } else { time + self.reaction_part(end) };
        let since = match half.sent_at.max(arrived(other.sent_at)) {
            NEVER if Some(end) == self.client() => self.established,
            since => since,
        };
        // The timer runs from the write on, or from the ACK of what was in flight.
        let armed = if half.sent_at > other.sent_at { since.max(arrived(half.freed_at)) } else { since };
        // An answer, or the tail of a message that was cut at the MSS; not a program that speaks every 200 ms.
        let belongs = self.last_spoke() != end || half.last_full || half.sent_at == NEVER;
        let fits = since != NEVER && self.cork_time(end).contains(&(now - armed));
        // How long the timer runs is known only with the round trip.
        let corked = !full && belongs && half.in_flight() == 0 && fits && self.base_round_trip().is_some();
        if corked {
            let (at, first) = (half.sent_at, half.sent_number).max((other.sent_at, other.sent_number));
            let mut wait = Wait::new(Cause::CorkTimeout, end, (since, now), [first, number, number]);
            wait.times[0] = at.max(self.first);
            facts.take(Fact::Wait(wait));
        }
        corked
    }

    /// What a cork held that was written at `since` and that its program never pulled.
    fn corked_since(&self, end: End, since: i64, now: i64, number: u64) -> Fact {
        let before = self.halves[end].sent_number.max(self.halves[1 - end].sent_number);
        let from = since.max(self.halves[end].sent_at).clamp(self.first, now);
        Fact::Hold {
            wait: Wait::new(Cause::CorkTimeout, end, (from, now), [before, number, number]),
            late: now,
        }
    }

    /// The program's own time before it answered the other side's data, or before a server went on with its answer.
    pub(crate) fn note_answer(&mut self, end: End, now: i64, number: u64, facts: &mut impl Facts) {
        let least = SLOW_ANSWER.max(self.reaction_part(end) / SLOW_SHARE);
        if self.last_spoke() == end && self.halves[end].sent_at != NEVER {
            return self.note_pause(end, now, number, least, facts);
        }
        // Who has more on its way than the other side has heard of does not answer.
        let is_sending = self.halves[end].in_flight() > 0;
        let is_first = self.halves[1 - end].sent_at == NEVER && self.established == NEVER;
        if is_sending || is_first || self.was_silent(end) {
            return;
        }
        let cause = match self.awaited(end, now) {
            Awaited::Yes => Cause::Program,
            Awaited::Perhaps => Cause::LateAnswer,
            Awaited::No => return,
        };
        self.publish_program(cause, end, now, number, least, facts);
    }

    /// Publishes the time of `end`'s program since it was asked, if it is long enough.
    fn publish_program(
        &self,
        cause: Cause,
        end: End,
        now: i64,
        number: u64,
        least: i64,
        facts: &mut impl Facts,
    ) {
        let asked = &self.halves[1 - end];
        let since = self.heard_at(end);
        // Behind an ACK of its own the path's jitter counts no more.
        let least = if since == asked.freed_at { SLOW_ANSWER } else { least };
        if now - since >= least {
            let packets = [asked.sent_number, asked.freed_number, number];
            let times = [asked.sent_at.max(self.first), asked.freed_at.max(self.first), now];
            facts.take(Fact::Wait(Wait { cause, end, from: since, until: now, packets, times }));
        }
    }

    /// When `end` had what the other side sent last, at the capture point: after the path's shortest time for it, or with
    /// its ACK, where that came later than the path explains and sooner than a delayed one could.
    fn heard_at(&self, end: End) -> i64 {
        let asked = &self.halves[1 - end];
        if asked.sent_at == NEVER {
            // Nothing was said since the handshake, of which a server hears last.
            let way = if self.client() == Some(end) { 0 } else { self.path_part(1 - end) };
            return self.established + way;
        }
        let arrived = asked.sent_at + self.path_part(1 - end).max(self.queued_part(1 - end));
        // An ACK that comes with the answer tells nothing.
        let is_acked = asked.freed_pure && asked.freed_at > asked.sent_at && asked.in_flight() == 0;
        let late = asked.freed_at - asked.sent_at - asked.part_or_zero();
        if is_acked && late < ACK_HELD { arrived.max(asked.freed_at) } else { arrived }
    }

    /// How long the path took last for what `end` sends, ns, where that was so much that it may have queued; 0 elsewhere:
    /// the receiver may have delayed the ACK of a short request.
    fn queued_part(&self, end: End) -> i64 {
        let half = &self.halves[end];
        let burst = (half.next as u32).wrapping_sub(self.burst_from[end]);
        if burst >= half.full_size().saturating_mul(QUEUEING_BURST) { half.rtt } else { 0 }
    }

    /// The server at `end` has been asked and will not answer any more: the client closes, or the capture ends.
    pub(crate) fn note_unanswered(&self, end: End, now: i64, facts: &mut impl Facts) {
        let asked = &self.halves[1 - end];
        if asked.in_flight() <= u64::from(asked.closed) {
            let number = self.halves[1 - end].freed_number;
            let is_late = now - asked.sent_at > DIALOGUE && !self.exchanges.has_asked_plainly();
            let cause = if is_late { Cause::LateAnswer } else { Cause::Program };
            self.publish_program(cause, end, now, number, SLOW_ANSWER, facts);
        }
    }

    /// Whether the stack of `end`, the server, left a request without an ACK for longer than any stack delays one.
    /// Only an ACK of data counts, not an answer's wider window.
    fn was_silent(&self, end: End) -> bool {
        let asked = &self.halves[1 - end];
        if self.established == NEVER && self.halves.iter().all(|half| half.pure_acks == 0) {
            // The capture has none of them.
            return false;
        }
        let is_alone =
            asked.freed_pure && asked.repair().is_none_or(|repair| repair.repaired_at < asked.sent_at);
        let latest = if is_alone { LATEST_PURE_ACK } else { LATEST_ACK };
        self.client() == Some(1 - end)
            && asked.freed_bytes > 0
            && asked.freed_at - asked.sent_at - asked.part_or_zero() >= latest
    }

    /// A server's own time between two parts of its answer. What left on its own was not held back: everything
    /// before it was ACKed, or it passed a small segment in flight, which shows `TCP_NODELAY`.
    fn note_pause(&mut self, end: End, now: i64, number: u64, least: i64, facts: &mut impl Facts) {
        let half = &self.halves[end];
        let is_awaited = self.awaited(end, now) == Awaited::Yes;
        if half.sent_at == NEVER
            || self.client() != Some(1 - end)
            || !self.exchanges.is_answering()
            || !is_awaited
        {
            return;
        }
        let is_acked = half.in_flight() == 0;
        // An ACK that came shortly before may have freed it on a machine that was late, if it was there by then.
        let part = self.reaction_part(end);
        let freed = half.freed_at + part;
        let may_be_freed =
            is_acked && now - half.freed_at >= part / EARLIEST_SHARE && now - freed < least.max(LATE_MACHINE);
        if may_be_freed || !is_acked && !half.small_in_flight() {
            return;
        }
        // Behind a full segment the program may have been waiting for its ACK.
        let since = if half.last_full { half.sent_at.max(freed) } else { half.sent_at };
        if now - since >= least {
            facts.take(Fact::Wait(self.wait(Cause::ProgramPause, end, since, now, number)));
        }
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
