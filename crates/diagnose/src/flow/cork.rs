//! Tails that a cork held, until its timer let them go (Linux `TCP_CORK`).

use super::connection::{Connection, JITTER_SHARE};
use super::fact::{Cause, End, Fact, Facts, Wait};
use super::half::NEVER;

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

impl Connection {
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
        let way = self.reaction_part(end).max(self.path_part(1 - end));
        let arrived = |time: i64| if time == NEVER { NEVER } else { time + way };
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

    /// How long Linux waits before it sends what nothing has freed, a corked tail: the timer of zero-window probes,
    /// one retransmission timeout from the moment on at which nothing is in flight (`tcp_check_probe_timer`).
    fn cork_time(&self, end: End) -> std::ops::Range<i64> {
        let base = self.base_round_trip().unwrap_or(0);
        let latest = self.halves[end].rtt + self.reaction_part(end);
        let smoothed = latest.clamp(base, base + base / JITTER_SHARE + DELAYED_SAMPLE);
        let longest = smoothed + RTO_MIN.max(FIRST_VARIANCE * smoothed);
        base + RTO_MIN..longest + longest / WHEEL_SHARE
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
}
