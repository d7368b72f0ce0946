//! The program's own time: what passes between a request that has arrived and the answer, and between the parts of one.

use super::connection::Connection;
use super::fact::{Awaited, Cause, End, Fact, Facts, Wait};
use super::half::NEVER;
use super::release::{ACK_HELD, LATE_MACHINE, SLOW_SHARE};

/// A pause of a server's counts from an ACK on that passed earlier than this share of the round trip to the sender: a later
/// one cannot have reached it yet.
const EARLIEST_SHARE: i64 = 2;
/// A program that takes this long to answer is worth remembering: shorter answers are work, and remembering one
/// costs a cache miss and 150 bytes. ns.
const SLOW_ANSWER: i64 = 2_000_000;
/// So many full segments in a row may fill a queue of the path, and have several ACKs, none of which was delayed for
/// long (RFC 1122 section 4.2.3.2).
const QUEUEING_BURST: u32 = 4;
/// A request that is ACKed only so late, by its answer or by what its own retransmission drew, shows no slow program:
/// a stack ACKs within this time whatever its program does (Linux `TCP_DELACK_MAX`), and the shortest
/// retransmission timer lasts as long (`TCP_RTO_MIN`), so the answer with the ACK in it was probably lost. ns.
pub(crate) const LATEST_ACK: i64 = 200_000_000;
/// …but one that comes by itself may be a delayed ACK of any stack, of which this is the latest (RFC 1122 section
/// 4.2.3.2). ns.
pub(crate) const LATEST_PURE_ACK: i64 = 500_000_000;

impl Connection {
    /// The program's own time before it answered the other side's data, or before a server went on with its answer.
    pub(crate) fn note_answer(&mut self, end: End, now: i64, number: u64, facts: &mut impl Facts) {
        let least = SLOW_ANSWER.max(self.reaction_part(end) / SLOW_SHARE);
        if self.last_spoke() == end && self.halves[end].sent_at != NEVER {
            return self.note_pause(end, now, number, least, facts);
        }
        // Who has more on its way than the other side has heard of does not answer.
        let is_sending = self.halves[end].in_flight() > 0;
        let is_first = self.halves[1 - end].sent_at == NEVER && self.established == NEVER;
        if is_sending || is_first {
            return;
        }
        let cause = match self.awaited(end, now) {
            Awaited::Yes if self.was_silent(end) => Cause::SilentAnswer,
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
            self.publish_program(Cause::NoAnswer, end, now, number, SLOW_ANSWER, facts);
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
}
