//! Retransmissions: what was lost, what only came late, and how long the repair took.

use tcpwhy_wire::Tcp;

use super::connection::{Connection, PROMPT, RELEASE_TOLERANCE};
use super::fact::{Cause, End, Fact, Facts, Wait};
use super::half::{Half, NEVER};
use super::holes::Opened;
use super::program::{LATEST_ACK, LATEST_PURE_ACK};
use super::release::fastest_reaction;
use super::sequence;
use super::trouble::{Tail, Trouble};

/// Silence before a retransmission that only a timer explains: Linux's shortest RTO is 200 ms
/// (`TCP_RTO_MIN`), RFC 6298 section 2.4 says 1 s; less a quarter for the coarse clocks of old stacks. ns.
const TIMER_SILENCE: i64 = 150_000_000;
/// The shortest timer of a Linux kernel (`TCP_RTO_MIN`), the system whose identifications show what was lost; the
/// round trip comes on top. ns.
pub(crate) const SHORTEST_TIMER: i64 = 200_000_000;
/// Other systems' shortest timer is the standard's second (RFC 6298 section 2.4), on BSD up to a tick of half a second
/// later. ns.
const STANDARD_TIMER: i64 = 1_500_000_000;
/// A timer is at most this many times the shortest one plus the base round trip, unless round trips vary a lot…
const TIMER_SPREAD: i64 = 2;
/// …and doubles each time, this often at most (`TCP_RTO_MAX` comes before).
const MOST_DOUBLINGS: u8 = 8;
/// A retransmission that answers an ACK follows it within the sender's reaction time; this many times that is
/// silence enough for a timer, of which the tail-loss probe's is the shortest (RFC 8985 section 7.2).
const REACTIONS_OF_SILENCE: i64 = 3;
/// An ACK within this many round trips of a retransmission is the answer to it.
const ANSWER_ROUND_TRIPS: i64 = 2;
/// A hole filled sooner than this was reordering, not loss (RACK's reordering window is a quarter of the
/// round trip, RFC 8985 section 6.2; this is its floor). ns.
const REORDERING: i64 = 3_000_000;
/// A path that was idle for less than this part of a repair, 1 in so many, was busy with it: what a path takes for a segment
/// is not known better.
const IDLE_SHARE: i64 = 8;

impl Connection {
    /// A segment that brings nothing beyond what was sent before: a retransmission, or one that comes late.
    pub(crate) fn handle_old_data(
        &mut self,
        (seq, end): (u64, u64),
        stamp: Option<u32>,
        number: u64,
        from: End,
        now: i64,
        facts: &mut impl Facts,
    ) {
        if self.is_pressed_again(from, end) {
            return self.note_window_probe(from);
        }
        let half = &mut self.halves[from];
        let filled = half.fill_holes(seq, end);
        let is_late = half.idents.is_late;
        if is_late || filled.is_some_and(|filled| self.was_overtaken(from, filled.opened, stamp, now)) {
            return;
        }
        let quiet_since = self.quiet_since(from, filled.is_some());
        let is_uncalled = filled.is_none() && self.is_uncalled(from, seq);
        if is_uncalled && self.is_cut_anew(from, now) {
            return;
        }
        let half = &mut self.halves[from];
        let trouble = half.trouble.get_or_insert_default();
        trouble.retransmitted = trouble.retransmitted.saturating_add(1);
        if filled.is_none() && end <= half.acked {
            return self.note_sent_twice(from, number, now, facts);
        }
        half.spoil_sample();
        let is_called = filled.is_some() || !is_uncalled && self.base_round_trip().is_none();
        let by_timer = self.is_by_timer(from, now, quiet_since, is_called);
        let tail = self.tail((seq, end), from, now - quiet_since);
        if by_timer {
            self.settle_silence(from, facts);
        }
        let half = &mut self.halves[from];
        let travelled = (quiet_since - half.sent_at).max(0);
        let (next, last_number, dup_acks, acked) = (half.next, half.sent_number, half.dup_acks, half.acked);
        let trouble = half.trouble.get_or_insert_default();
        let begins = trouble.recover == 0;
        if begins {
            trouble.begin_repair(next, number, now, dup_acks);
            trouble.acked_before = acked;
            // Near the receiver the loss shows with its first duplicate ACK, or with what passes behind the hole.
            let shown = match filled {
                Some(_) if dup_acks > 0 => trouble.dup_since,
                Some(filled) => filled.opened.at,
                None => now,
            };
            // What the repair before it has taken is booked.
            trouble.recover_from = trouble.recover_from.min(shown).max(trouble.recovered_at);
            (trouble.again, trouble.again_stamp) = ((seq, end), stamp);
        }
        if trouble.probed >= end && trouble.quiet_since == NEVER {
            (trouble.quiet_since, trouble.quiet_number) = (trouble.probed_since, trouble.probed_number);
            (trouble.quiet_until, trouble.quiet_end) = (trouble.probed_at, trouble.probe_number);
            trouble.tail = begins.then_some(Tail::Probe);
            // A later timer has a silence of its own.
            trouble.probed = 0;
        } else if by_timer {
            if trouble.quiet_since == NEVER {
                (trouble.quiet_since, trouble.quiet_number) = (quiet_since, last_number);
                trouble.tail = tail.filter(|_| begins);
                trouble.travelled = if begins { travelled } else { 0 };
            }
            (trouble.quiet_until, trouble.quiet_end) = (now, number);
        }
        trouble.copies = trouble.copies.saturating_add(1);
        trouble.rounds.sent(end, number, now, by_timer);
        trouble.again = (trouble.again.0.min(seq), trouble.again.1.max(end));
        (trouble.repaired_at, trouble.repaired_number) = (now, number);
        self.settle(now, facts);
    }

    /// Whether a segment that fills a hole had left before what opened the hole. Its timestamp tells (RFC 7323); where
    /// both are of one tick, or there are none, it comes sooner than a retransmission can: that takes a round trip,
    /// for the sender to hear of the hole and for its answer.
    fn was_overtaken(&self, from: End, opened: Opened, stamp: Option<u32>, now: i64) -> bool {
        if opened.is_old {
            return false;
        }
        let later = opened.stamp.zip(stamp).map_or(0, |(before, own)| own.wrapping_sub(before) as i32);
        let soonest = REORDERING.max(self.clocked_gap(from)).max(self.base_round_trip().unwrap_or(0));
        later < 0 || later == 0 && now - opened.at < soonest
    }

    /// What a timer repairs with the bytes from `seq` to `end` after so long a silence, if what was lost had nothing
    /// behind it that could have told of the loss: the end of a message, and not of a window.
    fn tail(&self, (seq, end): (u64, u64), from: End, silence: i64) -> Option<Tail> {
        let half = &self.halves[from];
        let sacked = half.trouble.as_ref().map_or(0, |trouble| trouble.sacked);
        if half.dup_acks > 0 || sacked > half.acked || half.sent_len.is_multiple_of(half.full_size()) {
            return None;
        }
        let base = self.base_round_trip();
        let is_too_soon = |base| silence < SHORTEST_TIMER + base - RELEASE_TOLERANCE;
        Some(match () {
            // A timer sends the first segment again, a probe the last one.
            () if seq > half.acked => Tail::Probe,
            () if end + u64::from(half.closed) < half.next => Tail::Timer,
            // Probes need SACK (RFC 8985 section 3.1, Linux `tcp_schedule_loss_probe`).
            () if self.refuses_sack().is_some() => Tail::Timer,
            () if base.is_some_and(is_too_soon) => Tail::Probe,
            () => Tail::Either,
        })
    }

    /// Who refused SACK in the handshake, if it was captured: the server may only offer what the client has offered
    /// (RFC 2018 section 2).
    pub(crate) fn refuses_sack(&self) -> Option<End> {
        let client = self.client()?;
        // The MSS of a half is from the other side's SYN.
        let refuses = |end: End| self.halves[1 - end].mss != 0 && !self.halves[end].offers_sack;
        [client, 1 - client].into_iter().find(|end| refuses(*end))
    }

    /// When something last passed that `from` can have reacted to: its own data, an ACK that moved something, new
    /// data of the other side. The other side's needless retransmissions, and the answers to them, are no such
    /// thing: it sends them because what it wants ACKed was ACKed by the very segment that was lost.
    pub(crate) fn quiet_since(&self, from: End, fills_hole: bool) -> i64 {
        let half = &self.halves[from];
        if half.dup_acks > 0 || fills_hole {
            return self.previous;
        }
        let repaired_at = half.repair().map_or(NEVER, |repair| repair.repaired_at);
        let own = half.sent_at.max(repaired_at);
        own.max(half.freed_at).max(self.halves[1 - from].sent_at).clamp(self.first, self.previous)
    }

    /// Whether a timer set off the retransmission that passes now: nothing came for longer than a retransmission
    /// that answers an ACK can take.
    pub(crate) fn is_by_timer(&self, from: End, now: i64, quiet_since: i64, may_be_called: bool) -> bool {
        let half = &self.halves[from];
        let silence = now - quiet_since;
        let reaction = self.reaction_most(from);
        // A sender that paces what it sends again is silent for a part of a round trip.
        let shortest = (REACTIONS_OF_SILENCE * reaction).max(self.soonest_repair());
        let is_sure = half.dup_acks == 0 && !may_be_called;
        silence >= TIMER_SILENCE + reaction || is_sure && silence >= shortest
    }

    /// Nothing is sent again sooner after the last packet unless that called for it: an answer takes a round trip, and a
    /// timer is longer. ns.
    fn soonest_repair(&self) -> i64 {
        self.base_round_trip().unwrap_or(0).max(REORDERING)
    }

    /// Whether what `from` sends again, for which no ACK can have called, comes sooner than any timer: it is cut anew, after a
    /// router has told of a smaller MTU, or recorded twice.
    fn is_cut_anew(&self, from: End, now: i64) -> bool {
        let half = &self.halves[from];
        let is_young = half.timed_since().is_some_and(|since| now - since < TIMER_SILENCE);
        is_young && now - half.sent_at < self.soonest_repair()
    }

    /// Whether no ACK can have called for the retransmission of what `from` sent from `seq` on: since the burst in which that
    /// left, none has come that moved anything or told of a hole.
    fn is_uncalled(&self, from: End, seq: u64) -> bool {
        let half = &self.halves[from];
        let is_of_burst = (seq as u32).wrapping_sub(self.burst_from[from]) as i32 >= 0;
        let is_told = half.trouble.as_ref().is_some_and(|trouble| trouble.is_told_beyond(half.acked));
        let is_quiet = half.dup_acks == 0 && !is_told && half.freed_first == NEVER;
        is_of_burst && is_quiet && !half.is_repairing() && seq >= half.acked
    }

    /// Whether new data of `end` that passes now is the retransmission of something that was lost before it came
    /// here: identifications are missing, and the silence fits as many timers. Returns that silence.
    pub(crate) fn unseen_timeout(&self, end: End, now: i64, number: u64) -> Option<Wait> {
        let (half, other) = (&self.halves[end], &self.halves[1 - end]);
        let base = self.base_round_trip()?;
        if self.reaction_part(end) <= PROMPT {
            // Nothing is lost on a host's way to its own interface.
            return None;
        }
        // It was sent first when what the sender had been waiting for reached it, or right after its last data.
        let (heard, heard_number) =
            (other.sent_at, other.sent_number).max((half.freed_at, half.freed_number));
        let asked = (heard.saturating_add(self.reaction_part(end)), heard_number);
        let (since, before) = asked.max((half.sent_at, half.sent_number));
        let doublings = half.idents.missing.min(MOST_DOUBLINGS) - 1;
        let longest = (TIMER_SPREAD * (SHORTEST_TIMER + base)).max(STANDARD_TIMER) << doublings;
        let fits = (SHORTEST_TIMER - RELEASE_TOLERANCE..=longest).contains(&(now - since));
        let before_at = if before == heard_number { heard } else { since };
        (since > self.first && fits).then_some(Wait {
            cause: Cause::UnseenTimeout,
            end,
            from: since,
            until: now,
            packets: [before, number, number],
            times: [before_at, now, now],
        })
    }

    /// Some packets of `from` before this one were lost on their way here. A pure ACK with the sequence number
    /// that was expected says that they held no data. Data says that the other side's timer, if one expired,
    /// did so for want of the ACKs in them.
    #[cold]
    pub(crate) fn note_missing(&mut self, tcp: &Tcp, from: End, pure: bool) {
        let half = &mut self.halves[from];
        if pure {
            if half.started && sequence::unwrap(tcp.seq, half.next) <= half.next {
                half.idents.missing = 0;
            }
        } else if let Some(trouble) = &mut self.halves[1 - from].trouble
            && trouble.recover != 0
            && trouble.quiet_since != NEVER
        {
            trouble.was_needless = true;
        }
    }

    /// Whether new data that leaves `end` now, freed by nothing, may be a tail-loss probe: the timer sends new
    /// data if there is some, whatever Nagle's algorithm says (RFC 8985 section 7.3). What was in flight is then
    /// lost if it has to be sent again.
    pub(crate) fn note_probe(&mut self, end: End, now: i64, probe_number: u64) -> bool {
        let silence = TIMER_SILENCE + self.reaction_most(end);
        let half = &mut self.halves[end];
        // A duplicate ACK lets new data out as well (limited transmit, RFC 3042).
        if half.sent_at == NEVER || half.in_flight() == 0 || half.dup_acks > 0 || now - half.sent_at < silence
        {
            return false;
        }
        let (next, since, number) = (half.next, half.sent_at, half.sent_number);
        let trouble = half.trouble.get_or_insert_default();
        (trouble.probed, trouble.probed_since, trouble.probed_number) = (next, since, number);
        (trouble.probed_at, trouble.probe_number) = (now, probe_number);
        true
    }

    /// A repair is over when everything that was outstanding at its start is ACKed (RFC 6582 section 3.2).
    pub(crate) fn end_recovery(&mut self, end: End, number: u64, now: i64, facts: &mut impl Facts) {
        let half = &self.halves[end];
        let Some(repair) = half.repair() else { return };
        if half.acked < repair.recover {
            return;
        }
        let round_trip = half.part_or_zero() + self.halves[1 - end].part_or_zero();
        let prompt = now - repair.repaired_at <= ANSWER_ROUND_TRIPS * round_trip + RELEASE_TOLERANCE;
        let is_copys = prompt && now - repair.quiet_until >= fastest_reaction(half.part_or_zero());
        let by_timer = repair.quiet_since != NEVER;
        let was_probe = by_timer && (repair.was_needless || (!prompt && half.had_no_room()));
        if !was_probe {
            self.publish_repair(end, number, (now, now), facts);
        } else if repair.was_needless && is_copys {
            // The copy drew this ACK: the original's had been lost, and only the timer could tell.
            self.publish_silence(end, facts);
        } else if repair.was_needless {
            self.publish_unanswered(end, number, now, facts);
        }
        // After a probe the wait goes on: what was sent again had not been lost, the receiver had only not
        // ACKed it, or had no room.
        let half = &mut self.halves[end];
        if let Some(trouble) = &mut half.trouble {
            (trouble.recover, trouble.probed) = (0, 0);
            if !was_probe {
                trouble.recovered_at = now;
                half.sent_at = half.sent_at.max(trouble.repaired_at);
                half.sent_number = half.sent_number.max(trouble.repaired_number);
            }
        }
        let next = half.next;
        if !was_probe && let Some(sending) = self.known_sending(end) {
            sending.flights.repaired(now, next);
        }
    }

    /// Books the time for which data was on its way and not ACKed, although it had arrived: it was sent again meanwhile. What
    /// the path does not explain of that, nothing does, if it is longer than a receiver may delay an ACK.
    fn publish_unanswered(&self, end: End, number: u64, now: i64, facts: &mut impl Facts) {
        let half = &self.halves[end];
        let Some(repair) = half.repair() else { return };
        let from = (repair.quiet_since + half.part_or_zero()).min(now);
        let packets = [repair.quiet_number, repair.quiet_end, number];
        if now - from >= LATEST_ACK {
            facts.take(Fact::Wait(Wait::new(Cause::Unanswered, end, (from, now), packets)));
        }
    }

    /// Books a repair: a timer's silence, if there was one, and the time until all was ACKed, or the capture ended: up to
    /// `known` it surely lasted.
    fn publish_repair(&mut self, end: End, number: u64, (now, known): (i64, i64), facts: &mut impl Facts) {
        self.publish_silence(end, facts);
        let Some(repair) = self.halves[end].repair() else { return };
        let packets = [repair.recover_number, number, number];
        let (from, is_timed, is_tail) = (repair.recover_from, repair.is_timed, repair.tail.is_some());
        let travelled = repair.travelled;
        if from < now {
            let causes: &[Cause] = match is_timed {
                true => &[Cause::AfterTimer],
                false if self.kept_path_busy(end, now - from) => &[Cause::Recovery, Cause::BusyRepair],
                false => &[Cause::Recovery],
            };
            causes
                .iter()
                .for_each(|cause| facts.take(Fact::Wait(Wait::new(*cause, end, (from, now), packets))));
        }
        // The journey of what was sent again, and of its ACK, would have been made anyhow, as far as it had not been made before
        // the silence, which begins with the last ACK.
        let journey = self.base_round_trip().unwrap_or(0) - travelled;
        let rest = known - journey.max(0);
        if is_timed && rest > from + RELEASE_TOLERANCE {
            let cause = if is_tail { Cause::TailRepair } else { Cause::TimerRepair };
            facts.take(Fact::Wait(Wait::new(cause, end, (from, rest), packets)));
        }
    }

    /// Whether what was ACKed in a repair that lasted so many ns kept the path busy all the time: with nothing lost, the same
    /// bytes would have taken as long.
    fn kept_path_busy(&self, end: End, lasted: i64) -> bool {
        let half = &self.halves[end];
        let acked = half.repair().map_or(0, |repair| half.acked.saturating_sub(repair.acked_before));
        half.time_of(acked) >= lasted - lasted / IDLE_SHARE
    }

    /// Another timer of the same repair has expired: if the ACK has moved since the last one, that was another silence.
    fn settle_silence(&mut self, end: End, facts: &mut impl Facts) {
        let half = &mut self.halves[end];
        let freed_at = half.freed_at;
        let Some(trouble) = half.trouble.as_deref_mut().filter(|trouble| trouble.recover != 0) else {
            return;
        };
        if trouble.quiet_since == NEVER || freed_at <= trouble.quiet_until {
            return;
        }
        let (until, number) = (trouble.quiet_until, trouble.quiet_end);
        self.publish_silence(end, facts);
        if let Some(trouble) = &mut self.halves[end].trouble {
            (trouble.recover_from, trouble.recover_number) = (until, number);
            (trouble.quiet_since, trouble.tail) = (NEVER, None);
        }
    }

    /// Books a timer's silence and the repair before it; what is left of the repair begins after it.
    fn publish_silence(&mut self, end: End, facts: &mut impl Facts) {
        let Some(repair) = self.halves[end].trouble.as_deref_mut() else { return };
        if repair.quiet_since == NEVER {
            return;
        }
        let since = repair.recover_from;
        if since < repair.quiet_since {
            let packets = [repair.recover_number, repair.quiet_number, repair.quiet_number];
            let span = (since, repair.quiet_since);
            let causes: &[Cause] =
                if repair.is_timed { &[Cause::AfterTimer, Cause::TimerRepair] } else { &[Cause::Recovery] };
            causes.iter().for_each(|cause| facts.take(Fact::Wait(Wait::new(*cause, end, span, packets))));
        }
        let packets = [repair.quiet_number, repair.quiet_end, repair.quiet_end];
        let (from, until) = (repair.quiet_since, repair.quiet_until);
        let cause = if repair.tail.is_some() { Cause::TailLoss } else { Cause::Timeout };
        facts.take(Fact::Wait(Wait::new(cause, end, (from, until), packets)));
        repair.count_tail();
        repair.recover_from = until;
        // A probe whose answer tells of more than the tail has no more to do with what follows: ACKs repair that.
        // One with new data has sent nothing again: the tail comes behind it.
        let is_tail_again = repair.tail == Some(Tail::Probe) && repair.quiet_end != repair.probe_number;
        repair.is_timed |= !is_tail_again || repair.repaired_number <= repair.quiet_end;
    }

    /// Books a repair that the capture's end cuts off. What was never mended may have been more than a tail.
    pub(crate) fn publish_open_repair(&mut self, end: End, now: i64, facts: &mut impl Facts) {
        if !self.halves[end].is_repairing() {
            return;
        }
        let base = self.base_round_trip().unwrap_or(0);
        if let Some(trouble) = self.halves[end].trouble.as_deref_mut() {
            trouble.tail = None;
            // Nothing more is seen of it, and how long it took beyond a round trip nobody knows.
            let (number, known) = (trouble.recover_number, now.min(trouble.repaired_at + base));
            self.publish_repair(end, number, (now, known), facts);
        }
    }

    /// Books a repair that a RST cuts off, of which nothing was heard for as long as a timer takes, or of which nothing was
    /// seen: bytes are missing, and nobody has sent them again.
    pub(crate) fn publish_cut_off(&mut self, end: End, now: i64, facts: &mut impl Facts) {
        let half = &self.halves[end];
        let (acked, dup_acks) = (half.acked, half.dup_acks);
        let latest_ack = LATEST_PURE_ACK + self.reaction_most(end);
        let hole = half.trouble.as_deref().and_then(|trouble| {
            let is_told = dup_acks > 0 || trouble.is_told_beyond(acked);
            trouble.holes.since().filter(|opened| is_told || now - opened >= latest_ack)
        });
        let is_silent = now - self.previous >= TIMER_SILENCE + self.reaction_most(end);
        if half.is_repairing() && is_silent {
            self.extend_silence(end, now, facts);
        } else if let Some(opened) = hole.filter(|_| is_silent) {
            self.publish_unseen(end, (opened, self.previous, now), half.freed_number, facts);
        }
        self.publish_open_repair(end, now, facts);
        if let Some(trouble) = &mut self.halves[end].trouble {
            (trouble.recover, trouble.probed) = (0, 0);
            trouble.holes.forget();
        }
    }

    /// The present repair's timer has been running since the last packet.
    fn extend_silence(&mut self, end: End, now: i64, facts: &mut impl Facts) {
        let (previous, freed_at) = (self.previous, self.halves[end].freed_at);
        let goes_on = |trouble: &Trouble| trouble.quiet_since != NEVER && freed_at <= trouble.quiet_until;
        if !self.halves[end].repair().is_some_and(goes_on) {
            self.settle_silence(end, facts);
            let Some(trouble) = self.halves[end].trouble.as_deref_mut() else { return };
            (trouble.quiet_since, trouble.quiet_number) = (previous, trouble.repaired_number);
            trouble.quiet_end = trouble.repaired_number;
        }
        if let Some(trouble) = &mut self.halves[end].trouble {
            trouble.quiet_until = now;
        }
    }

    /// An ACK moves into a hole that opened at a certain time, though nothing was seen to fill it: the capture lacks that
    /// packet. If the receiver had told of the hole, or left it open for longer than it may delay an ACK, it was sent again;
    /// by a timer, if nothing had come for as long as one takes.
    pub(crate) fn note_unseen_repair(
        &mut self,
        end: End,
        (opened, is_told): (i64, bool),
        number: u64,
        now: i64,
        facts: &mut impl Facts,
    ) {
        let least = if is_told { TIMER_SILENCE } else { LATEST_PURE_ACK };
        let is_silent = now - self.previous >= least + self.reaction_most(end);
        if self.halves[end].freed_at != now || !(is_told || is_silent) {
            return;
        }
        let until = if is_silent { self.previous } else { now };
        match (self.halves[end].is_repairing(), is_silent) {
            (true, false) => return,
            (true, true) => return self.extend_silence(end, now, facts),
            (false, _) => self.publish_unseen(end, (opened, until, now), number, facts),
        }
        if let Some(trouble) = &mut self.halves[end].trouble {
            trouble.recovered_at = now;
        }
    }

    /// Books a repair that was not seen, of a loss known since `opened`, and the timer's silence, if there was one, that began
    /// at `quiet`.
    fn publish_unseen(
        &mut self,
        end: End,
        (opened, quiet, now): (i64, i64, i64),
        number: u64,
        facts: &mut impl Facts,
    ) {
        let half = &self.halves[end];
        let packets = [half.sent_number, number, number];
        let recovered_at = half.trouble.as_ref().map_or(NEVER, |trouble| trouble.recovered_at);
        let since = opened.max(recovered_at);
        if since < quiet {
            facts.take(Fact::Wait(Wait::new(Cause::Recovery, end, (since, quiet), packets)));
        }
        if quiet < now {
            facts.take(Fact::Wait(Wait::new(Cause::Timeout, end, (quiet, now), packets)));
        }
        if let Some(trouble) = &mut self.halves[end].trouble {
            trouble.unseen_repairs = trouble.unseen_repairs.saturating_add(1);
        }
    }

    /// Identifications that are missing show something of the next data of `from` only as long as no data but needless copies
    /// has passed. What the other side asks meanwhile begins anew.
    pub(crate) fn forget_missing(&mut self, tcp: &Tcp, from: End) {
        self.halves[1 - from].idents.missing = 0;
        let was_probe = self.was_probe();
        let half = &mut self.halves[from];
        let end = sequence::unwrap(tcp.seq, half.next) + u64::from(tcp.payload_len);
        if was_probe || tcp.payload_len == 0 || end > half.acked {
            half.idents.missing = 0;
        }
    }
}

impl Half {
    /// Whether the window, as it was before the last ACK, had no room for another full segment.
    fn had_no_room(&self) -> bool {
        self.scale_known && self.edge_before.saturating_sub(self.next) < u64::from(self.full_size())
    }
}
