//! Retransmissions: what was lost, what only came late, and how long the repair took.

use tcpwhy_wire::Tcp;

use super::connection::{Connection, RELEASE_TOLERANCE};
use super::fact::{Cause, End, Fact, Facts, Wait};
use super::half::{Half, NEVER};

/// Silence before a retransmission that only a timer explains: Linux's shortest RTO is 200 ms
/// (`TCP_RTO_MIN`), RFC 6298 section 2.4 says 1 s; less a quarter for the coarse clocks of old stacks. ns.
const TIMER_SILENCE: i64 = 150_000_000;
/// A retransmission that answers an ACK follows it within the sender's reaction time; this many times that is
/// silence enough for a timer, of which the tail-loss probe's is the shortest (RFC 8985 section 7.2).
const REACTIONS_OF_SILENCE: i64 = 3;
/// An ACK within this many round trips of a retransmission is the answer to it.
const ANSWER_ROUND_TRIPS: i64 = 2;
/// Duplicate ACKs that trigger fast retransmit (RFC 5681 section 3.2).
const DUP_ACKS: u8 = 3;
/// A hole filled sooner than this was reordering, not loss (RACK's reordering window is a quarter of the
/// round trip, RFC 8985 section 6.2; this is its floor). ns.
const REORDERING: i64 = 3_000_000;

impl Connection {
    /// A segment that brings nothing beyond what was sent before: a retransmission, or one that comes late.
    pub(crate) fn handle_old_data(
        &mut self,
        (seq, end): (u64, u64),
        number: u64,
        from: End,
        now: i64,
        facts: &mut impl Facts,
    ) {
        let reordering = REORDERING.max(self.clocked_gap(from));
        let half = &mut self.halves[from];
        let opened = half.fill_hole(seq, end);
        if opened.is_some_and(|opened| now - opened < reordering) {
            return;
        }
        half.retransmitted = half.retransmitted.saturating_add(1);
        if opened.is_none() && end <= half.acked {
            // Needless: the ACK had already passed here.
            return;
        }
        half.spoil_sample();
        let by_timer = self.is_by_timer(from, now, opened.is_some());
        let quiet_since = self.previous;
        let half = &mut self.halves[from];
        let (next, last_number, dup_acks) = (half.next, half.sent_number, half.dup_acks);
        let trouble = half.trouble.get_or_insert_default();
        if trouble.recover == 0 {
            trouble.recover = next;
            trouble.recover_number = number;
            trouble.recover_from = if dup_acks >= DUP_ACKS { trouble.dup_since } else { now };
            trouble.quiet_since = NEVER;
            trouble.was_needless = false;
        }
        if by_timer && trouble.quiet_since == NEVER {
            (trouble.quiet_since, trouble.quiet_number) = (quiet_since, last_number);
        }
        (trouble.repaired_at, trouble.repaired_number) = (now, number);
        self.settle(now, facts);
    }

    /// Whether a timer set off the retransmission that passes now: nothing came from either side for longer
    /// than a retransmission that answers an ACK can take.
    fn is_by_timer(&self, from: End, now: i64, fills_hole: bool) -> bool {
        let half = &self.halves[from];
        let silence = now - self.previous;
        let reaction = self.reaction_most(from);
        let sure = self.base_round_trip().is_some() && half.dup_acks == 0 && !fills_hole;
        silence >= TIMER_SILENCE + reaction
            || (sure && silence >= (REACTIONS_OF_SILENCE * reaction).max(REORDERING))
    }

    /// Takes note if the receiver says that a retransmission brought it nothing new: its first SACK block then
    /// lies below its ACK (RFC 2883 section 4).
    pub(crate) fn note_needless_repair(&mut self, tcp: &Tcp, end: End) {
        let is_duplicate = |&(_, right): &(u32, u32)| right.wrapping_sub(tcp.ack) as i32 <= 0;
        if tcp.options.sack.as_slice().first().is_some_and(is_duplicate)
            && let Some(trouble) = &mut self.halves[end].trouble
        {
            trouble.was_needless = true;
        }
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
        let by_timer = repair.quiet_since != NEVER;
        let was_probe = by_timer && (repair.was_needless || (!prompt && half.had_no_room()));
        if !was_probe {
            self.publish_repair(end, number, now, facts);
        }
        // After a probe the wait goes on: what was sent again had not been lost, the receiver had only not
        // ACKed it, or had no room.
        let half = &mut self.halves[end];
        if let Some(trouble) = &mut half.trouble {
            trouble.recover = 0;
            if !was_probe {
                half.sent_at = half.sent_at.max(trouble.repaired_at);
                half.sent_number = half.sent_number.max(trouble.repaired_number);
            }
        }
    }

    /// Books a repair: the timer's silence, if one began it, and the time until all was ACKed.
    fn publish_repair(&self, end: End, number: u64, now: i64, facts: &mut impl Facts) {
        let Some(repair) = self.halves[end].repair() else { return };
        let mut since = repair.recover_from;
        if repair.quiet_since != NEVER {
            if since < repair.quiet_since {
                let packets = [repair.recover_number, repair.quiet_number, repair.quiet_number];
                let until = repair.quiet_since;
                facts.take(Fact::Wait(Wait::new(Cause::Recovery, end, (since, until), packets)));
            }
            since = repair.repaired_at;
            let packets = [repair.quiet_number, repair.repaired_number, repair.repaired_number];
            let (from, until) = (repair.quiet_since, repair.repaired_at);
            facts.take(Fact::Wait(Wait::new(Cause::Timeout, end, (from, until), packets)));
        }
        let packets = [repair.recover_number, number, number];
        facts.take(Fact::Wait(Wait::new(Cause::Recovery, end, (since, now), packets)));
    }

    /// Books a repair that the capture's end cuts off.
    pub(crate) fn publish_open_repair(&self, end: End, now: i64, facts: &mut impl Facts) {
        if let Some(repair) = self.halves[end].repair() {
            self.publish_repair(end, repair.repaired_number, now, facts);
        }
    }
}

impl Half {
    /// Fills what it can of the hole with the bytes from `seq` to `end`; returns since when the hole was open,
    /// if they belong there.
    fn fill_hole(&mut self, seq: u64, end: u64) -> Option<i64> {
        let trouble = self.trouble.as_mut()?;
        if seq < trouble.hole.0 || seq >= trouble.hole.1 {
            return None;
        }
        self.bytes += end - seq;
        if seq == trouble.hole.0 {
            trouble.hole.0 = end;
        }
        if trouble.hole.0 >= trouble.hole.1 {
            trouble.hole = (0, 0);
        }
        Some(trouble.hole_at)
    }

    /// Whether the window, as it was before the last ACK, had no room for another full segment.
    fn had_no_room(&self) -> bool {
        self.scale_known && self.edge_before.saturating_sub(self.next) < u64::from(self.full_size())
    }
}
