//! How a repair goes: one hole a round trip or several, how soon the receiver answers, and whether it was needed.

use tcpwhy_wire::Tcp;

use super::connection::{Connection, JITTER_SHARE, RELEASE_TOLERANCE};
use super::fact::{Cause, End, Fact, Facts, Wait};
use super::half::{Acked, NEVER, UNKNOWN};
use super::release::{ack_held, fastest_reaction};
use super::repair::SHORTEST_TIMER;
use super::sequence;
use super::trouble::{Trouble, duplicate_sack};

/// Duplicate ACKs in a row that tell how far apart the path delivers segments.
const SPACING_PROOF: u8 = 3;

/// Segments behind a hole that duplicate ACKs may have told of and that are not there: a small one at the end of a
/// message, and one that came twice.
const UNSURE_BEYOND: u16 = 2;

/// A copy that was not needed draws its ACK within this many times what the ACK of the original took: it was sent while
/// that was on its way, perhaps behind more in the same queue.
const ECHO_TIMES: i64 = 2;

/// The round of a repair that is going on: what was sent again since the ACK moved last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// When the ACK moved last, which began the round.
    since: i64,
    /// The first retransmission of the round: when, and which packet; and the highest byte of all of them.
    sent_at: i64,
    number: u64,
    end: u64,
    /// Retransmissions in this round.
    sent: u16,
    /// Rounds of this repair that were over before.
    rounds: u16,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { since: NEVER, sent_at: NEVER, number: 0, end: 0, sent: 0, rounds: 0 }
    }
}

impl Rounds {
    /// A segment up to `end` is sent again. With a timer the repair begins anew.
    pub(crate) fn sent(&mut self, end: u64, number: u64, now: i64, by_timer: bool) {
        if by_timer {
            *self = Self::default();
        }
        if self.sent == 0 {
            (self.sent_at, self.number) = (now, number);
        }
        self.sent = self.sent.saturating_add(1);
        self.end = self.end.max(end);
    }

    /// The ACK moves: the round is over, if something was sent again in it.
    fn next(&mut self, now: i64) -> Option<Self> {
        let over = *self;
        let was_round = u16::from(over.sent > 0);
        *self = Self { since: now, rounds: over.rounds.saturating_add(was_round), ..Self::default() };
        (over.sent > 0).then_some(over)
    }
}

impl Connection {
    /// Takes what an ACK of `end`'s data says about its losses.
    #[inline(never)]
    pub(crate) fn take_answer(
        &mut self,
        tcp: &Tcp,
        end: End,
        number: u64,
        now: i64,
        acked: Acked,
        facts: &mut impl Facts,
    ) {
        let is_bare = tcp.payload_len == 0 && tcp.options.sack.as_slice().is_empty();
        let is_echo = acked.bytes == 0 && is_bare && self.is_echo(end, now);
        let half = &mut self.halves[end];
        let (ack, dup_acks, is_repairing) = (half.acked, half.dup_acks, half.is_repairing());
        let Some(trouble) = half.trouble.as_deref_mut() else { return };
        let heard = std::mem::replace(&mut trouble.heard_at, now);
        trouble.take_sack(tcp, ack);
        if trouble.is_needless(tcp, ack) {
            trouble.copies = trouble.copies.saturating_sub(1);
            self.publish_needless(end, number, now, facts);
        } else if is_echo {
            self.take_echo(end, number, now, facts);
        } else if acked.bytes == 0 {
            trouble.take_duplicate(dup_acks, now);
        } else if !is_repairing {
            trouble.beyond = 0;
        }
        if acked.bytes > 0 && is_repairing {
            self.recognise_original(tcp, end, number, now, facts);
            self.end_round(end, number, now, heard, facts);
        }
    }

    /// Something leaves `end`: if it had been waiting for an ACK that came late during a repair, which it had if it leaves as
    /// soon as that can have reached it, that ACK has cost something.
    pub(crate) fn publish_late_ack(&mut self, end: End, now: i64, facts: &mut impl Facts) {
        let round_trip = self.base_round_trip().unwrap_or(0);
        let Some(trouble) = self.halves[end].trouble.as_deref_mut() else { return };
        let Some(wait) = trouble.late_ack.take() else { return };
        if now - wait.until <= round_trip + round_trip / JITTER_SHARE + RELEASE_TOLERANCE {
            facts.take(Fact::Wait(wait));
        }
    }

    /// Whether an ACK that moved nothing can only be the receiver's answer to a segment that came twice: what is on its way
    /// is a single segment at most, so that nothing can have arrived behind a hole.
    fn is_echo(&self, end: End, now: i64) -> bool {
        let half = &self.halves[end];
        let Some(trouble) = half.trouble.as_deref().filter(|trouble| trouble.copies > 0) else {
            return false;
        };
        // A copy takes no longer than what was ACKed after it.
        let began = if trouble.quiet_since == NEVER { trouble.recover_from } else { trouble.quiet_since };
        let took = trouble.recovered_at.saturating_sub(began);
        let is_in_time = now.saturating_sub(trouble.repaired_at) <= took.saturating_mul(ECHO_TIMES);
        let is_window_update = half.freed_at == now;
        let is_alone = half.in_flight() <= u64::from(half.sent_len);
        is_in_time && is_alone && !is_window_update && !half.is_repairing() && !self.was_probe()
    }

    /// Such an answer has come, in packet `number`.
    fn take_echo(&mut self, end: End, number: u64, now: i64, facts: &mut impl Facts) {
        let half = &mut self.halves[end];
        half.dup_acks = 0;
        let Some(trouble) = half.trouble.as_deref_mut() else { return };
        trouble.copies -= 1;
        if trouble.needless < trouble.retransmitted {
            self.publish_needless(end, number, now, facts);
        }
    }

    /// Takes note if the ACK that moves first after a retransmission echoes an older timestamp than that one's: the
    /// original had arrived (the Eifel detection algorithm, RFC 3522 section 3.2). Or if it says so itself.
    fn recognise_original(&mut self, tcp: &Tcp, end: End, number: u64, now: i64, facts: &mut impl Facts) {
        let half = &mut self.halves[end];
        let (acked, part) = (half.acked, half.part);
        let Some(trouble) = half.trouble.as_deref_mut() else { return };
        trouble.was_needless |= duplicate_sack(tcp).is_some();
        if acked <= trouble.again.0 {
            // It tells of what had been sent before.
            return;
        }
        let stamp = trouble.again_stamp.take();
        let by_timer = trouble.quiet_since != NEVER;
        let is_older = |(stamp, echo): (u32, u32)| (echo.wrapping_sub(stamp) as i32) < 0;
        let echoes_older = stamp.zip(tcp.options.timestamps.map(|stamps| stamps.1)).is_some_and(is_older);
        // No ACK comes sooner than the path allows: it is of the original, if nothing but this was sent again.
        let sooner = part != UNKNOWN && now - trouble.quiet_until < fastest_reaction(part);
        let is_too_soon = sooner && trouble.copies <= 1;
        if by_timer && !trouble.was_needless && (echoes_older || is_too_soon) {
            trouble.was_needless = true;
            trouble.forestalled = trouble.forestalled.saturating_add(1);
            self.publish_needless(end, number, now, facts);
        }
    }

    /// A round of a repair is over: publishes what of it was the receiver's, and what a repair that mends several holes
    /// at once would have saved.
    fn end_round(&mut self, end: End, number: u64, now: i64, heard: i64, facts: &mut impl Facts) {
        let base = self.base_round_trip();
        let half = &mut self.halves[end];
        let (part, acked, full) = (half.part_or_zero(), half.acked, u64::from(half.full_size()));
        let Some(trouble) = half.trouble.as_deref_mut() else { return };
        let Some(round) = trouble.rounds.next(now) else { return };
        let is_near = part <= RELEASE_TOLERANCE;
        let spacing = if is_near { 0 } else { trouble.spacing };
        // The ACK of a segment follows that of the one before it by what the path takes for a segment.
        let due = (round.sent_at + part).max(heard) + spacing;
        let over = acked.saturating_sub(round.end);
        let segments = u16::try_from(over.div_ceil(full)).unwrap_or(u16::MAX);
        trouble.beyond = trouble.beyond.saturating_sub(segments);
        let fills_hole = over > 0 || trouble.sacked > acked || trouble.beyond > UNSURE_BEYOND;
        let knows_path = is_near || trouble.spacing_of >= SPACING_PROOF;
        let late = base.filter(|_| fills_hole && knows_path).map(|base| ack_held(base).max(spacing));
        let is_late = late.is_some_and(|least| now - due >= least);
        let packets = [round.number, number, number];
        if is_late {
            let times = [round.sent_at, now, now];
            let cause = Cause::LateRepairAck;
            trouble.late_ack = Some(Wait { cause, end, from: due, until: now, packets, times });
        }
        let until = if is_late { due } else { now };
        if round.sent == 1 && round.rounds > 0 && until > round.since {
            let times = [round.sent_at, now, now];
            let cause = Cause::OneHole;
            facts.take(Fact::Wait(Wait { cause, end, from: round.since, until, packets, times }));
        }
    }

    /// Something that `end` sent again passes, though the ACK of it has passed before.
    pub(crate) fn note_sent_twice(&mut self, end: End, number: u64, now: i64, facts: &mut impl Facts) {
        let half = &self.halves[end];
        let (freed_at, freed_number) = (half.freed_at.clamp(self.first, now), half.freed_number);
        let quiet_since = self.quiet_since(end, false);
        let by_timer = self.is_by_timer(end, now, quiet_since, self.base_round_trip().is_none());
        let Some(trouble) = self.halves[end].trouble.as_deref_mut() else { return };
        trouble.forestalled = trouble.forestalled.saturating_add(1);
        trouble.needless = trouble.needless.saturating_add(1);
        let cause = match trouble.quiet_since {
            _ if by_timer => needless_by(now - quiet_since),
            NEVER => Cause::NeedlessRepair,
            // After a timer the sender goes back and sends again also what had arrived.
            since => needless_by(trouble.quiet_until - since),
        };
        facts.take(Fact::Wait(Wait::new(cause, end, (freed_at, now), [freed_number, number, number])));
    }

    /// Something that `end` sent again had arrived before, says packet `number`.
    fn publish_needless(&mut self, end: End, number: u64, now: i64, facts: &mut impl Facts) {
        let first = self.first;
        let Some(trouble) = self.halves[end].trouble.as_deref_mut() else { return };
        trouble.needless = trouble.needless.saturating_add(1);
        let (repaired_at, repaired) = (trouble.repaired_at, trouble.repaired_number);
        let (cause, packets, times) = match trouble.quiet_since {
            NEVER => (Cause::NeedlessRepair, [repaired, number, number], [repaired_at, now, now]),
            since => {
                let until = trouble.quiet_until;
                let packets = [trouble.quiet_number, trouble.quiet_end, number];
                (needless_by(until - since), packets, [since, until, now])
            }
        };
        let from = times[0].clamp(first, now);
        facts.take(Fact::Wait(Wait { cause, end, from, until: now, packets, times }));
    }
}

/// What sent again for nothing after so long a silence: a probe, if it was too short for a timer.
fn needless_by(silence: i64) -> Cause {
    if silence < SHORTEST_TIMER { Cause::NeedlessProbe } else { Cause::NeedlessTimer }
}

impl Trouble {
    /// Whether an ACK up to `ack` says that something that was sent again had come before. What the network delivered
    /// twice was sent once (RFC 3708 section 2).
    fn is_needless(&mut self, tcp: &Tcp, ack: u64) -> bool {
        let Some((left, right)) = duplicate_sack(tcp) else { return false };
        let [left, right] = [left, right].map(|edge| sequence::unwrap(edge, ack));
        if left < self.again.0 || right > self.again.1 || self.needless >= self.retransmitted {
            return false;
        }
        if self.forestalled > 0 {
            self.forestalled -= 1;
            return false;
        }
        true
    }

    /// Takes the last of a run of duplicate ACKs.
    fn take_duplicate(&mut self, dup_acks: u8, now: i64) {
        self.beyond = self.beyond.saturating_add(u16::from(dup_acks > 0));
        if dup_acks >= SPACING_PROOF && dup_acks > self.spacing_of {
            self.spacing = (now - self.dup_since) / i64::from(dup_acks - 1);
            self.spacing_of = dup_acks;
        }
    }
}
