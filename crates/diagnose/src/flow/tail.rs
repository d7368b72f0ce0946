//! Tails that Nagle's algorithm holds behind full segments, as RFC 1122 section 4.2.3.4 has it and Linux has not.
//!
//! A full congestion window looks much the same. It opens with the first ACK, though, and what was on its way at once
//! before fits it again; the algorithm waits for the ACK of everything.

use super::connection::{Connection, PROMPT};
use super::fact::End;

/// Tails that followed the ACK of everything although something before could have released them, from which on those
/// that show nothing of the kind count as well.
const PROOF: u8 = 1;

/// Linux's shortest retransmission timeout (`TCP_RTO_MIN`): a window that has not been used for a timeout falls back
/// (RFC 5681 section 4.1). ns.
const SHORTEST_TIMEOUT: i64 = 200_000_000;

/// What one direction's tails have shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tails {
    /// Tails that were held.
    held: u8,
    /// Most bytes that were on their way at once since the last loss.
    most_out: u64,
    /// Most bytes that were sent at once when a tail stopped for what may have been a window.
    stopped: u64,
    /// Retransmissions known of.
    retransmitted: u32,
    /// The sender has stopped with one full segment on its way, and more of them to send, although nothing was lost.
    began_with_one: bool,
}

impl Tails {
    /// So many bytes are on their way, of which the last left after so long a `silence`, ns.
    #[inline]
    pub(crate) fn sent(&mut self, out: u64, retransmitted: u32, silence: i64) {
        if retransmitted != self.retransmitted || silence >= SHORTEST_TIMEOUT {
            (self.most_out, self.stopped, self.retransmitted) = (0, 0, retransmitted);
        }
        self.most_out = self.most_out.max(out);
    }
}

impl Connection {
    /// The sender at `end` goes on with a full segment behind others for which it had stopped.
    pub(crate) fn note_small_window(&mut self, end: End) {
        let half = &self.halves[end];
        let left = (half.next as u32).wrapping_sub(self.sent_acked[end]);
        if half.is_pending() && left <= half.full_size() {
            self.sending_mut(end).tails.began_with_one = true;
        }
    }

    /// Whether Nagle's algorithm had been holding the small segment that leaves `end` now, behind full ones.
    pub(crate) fn is_held_tail(&mut self, end: End, now: i64) -> bool {
        let half = &self.halves[end];
        // With data behind that ACK, the program could be answering that.
        let was_asked = self.halves[1 - end].sent_number > half.freed_number;
        if !half.last_full || half.in_flight() > 0 || !half.freed_pure || was_asked {
            return false;
        }
        let left = u64::from((half.next as u32).wrapping_sub(self.sent_acked[end]));
        let full = u64::from(half.full_size());
        let room = left + 2 * full;
        let reaction = if self.is_near(end) { PROMPT } else { self.reaction_most(end) };
        let first_was_not_enough = now - half.freed_first > reaction && half.freed_first < half.freed_at;
        let out = left.max(u64::from((half.next as u32).wrapping_sub(self.burst_from[end])));
        let was_larger = |out: u64| out >= room;
        let tails = &mut self.sending_mut(end).tails;
        let is_one = left <= full && !(tails.began_with_one && tails.most_out <= full);
        if first_was_not_enough || is_one || was_larger(tails.most_out) {
            tails.held = tails.held.saturating_add(1);
            return true;
        }
        // A window that has once stopped the sender there has grown with the ACK that freed it.
        if out <= tails.stopped {
            tails.held = tails.held.saturating_add(1);
        }
        tails.stopped = tails.stopped.max(out);
        tails.held >= PROOF
    }
}
