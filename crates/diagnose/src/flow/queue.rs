//! Round trips far beyond the base one, and whose data was waiting in between.

use super::connection::Connection;
use super::fact::End;

/// A queue this long stands still: queue management lets one last for as long as a round trip may take, 100 ms for most
/// paths, and drops or marks what stays longer (RFC 8289 section 4.3, RFC 8290 section 5.2.2). ns.
pub(crate) const LONG_QUEUE: i64 = 100_000_000;

/// What the round trips of one direction's data showed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    /// Round trips whose ACK the receiver did not hold back, since the first long queue.
    pub(crate) samples: u32,
    /// Those with a long queue; the time they lasted, and the time in their queues, ns.
    pub(crate) long: u32,
    pub(crate) lasted: i64,
    pub(crate) queued: i64,
    /// The longest: in its queue, ns; the packet of its ACK, and when that passed.
    pub(crate) worst: i64,
    pub(crate) worst_packet: (u64, i64),
    /// Most bytes on their way at one of them.
    pub(crate) in_flight: u64,
    /// Round trips that began with nothing of this sender on its way, and those of them with a long queue.
    pub(crate) alone: u32,
    pub(crate) alone_long: u32,
    /// Bytes ACKed from one of them to the next, and in which time, ns: the path's rate as this sender got it.
    pub(crate) carried: u64,
    pub(crate) carried_in: i64,
    /// The one before: what was ACKed then, and when; 0 where it was a short one.
    before: (u64, i64),
}

impl Queue {
    fn add(&mut self, round_trip: i64, queued: i64, acked: u64, number: u64, now: i64) {
        self.long = self.long.saturating_add(1);
        self.lasted += round_trip;
        self.queued += queued;
        if queued > self.worst {
            (self.worst, self.worst_packet) = (queued, (number, now));
        }
        if self.before.1 != 0 {
            self.carried += acked - self.before.0;
            self.carried_in += now - self.before.1;
        }
        self.before = (acked, now);
    }

    /// The rate at which its data went through the queue, bytes a second.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.carried > 0 && self.carried_in > 0).then(|| self.carried as f64 * 1e9 / self.carried_in as f64)
    }

    /// The average queue, ns.
    pub(crate) fn mean(&self) -> i64 {
        self.queued / i64::from(self.long.max(1))
    }
}

impl Connection {
    /// Whether the round trip of `end`'s data that has just ended is worth a look.
    #[inline]
    pub(crate) fn may_be_queued(&self, end: End) -> bool {
        let half = &self.halves[end];
        half.rtt.saturating_sub(half.part) >= LONG_QUEUE || self.sending(end).is_some()
    }

    /// Takes a round trip of `end`'s data that packet `number` has just ended with an ACK for so many `bytes`, of
    /// `was_in_flight`.
    #[cold]
    pub(crate) fn note_round_trip(
        &mut self,
        end: End,
        bytes: u64,
        was_in_flight: u64,
        number: u64,
        now: i64,
    ) {
        let Some(base) = self.base_round_trip() else { return };
        let half = &self.halves[end];
        let full = u64::from(half.full_size());
        // The receiver ACKs two full segments at once (RFC 1122 section 4.2.3.2), unless its program does not read.
        let is_prompt = was_in_flight >= 2 * full && (half.in_flight() > 0 || bytes >= 2 * full);
        // The ACK of what lies behind a hole waits for the hole.
        // Where the capture has no pure ACKs, each that it has came with an answer.
        let is_filtered = self.halves[1 - end].pure_acks == 0;
        if is_filtered || !is_prompt || half.freed_without_reading() || half.is_repairing() || half.has_hole()
        {
            return;
        }
        let queued = half.rtt - half.part_or_zero();
        let is_long = queued >= LONG_QUEUE.max(base);
        let (round_trip, acked, was_alone) = (half.rtt, half.acked, half.sample_alone);
        if !is_long && self.sending(end).is_none() {
            return;
        }
        let queue = &mut self.sending_mut(end).queue;
        queue.samples = queue.samples.saturating_add(1);
        queue.alone += u32::from(was_alone);
        if is_long {
            queue.alone_long += u32::from(was_alone);
            queue.in_flight = queue.in_flight.max(was_in_flight);
            queue.add(round_trip, queued, acked, number, now);
        } else {
            queue.forget();
        }
    }
}

impl Queue {
    /// The queue is short again: what is carried until it is long does not count.
    fn forget(&mut self) {
        self.before = (0, 0);
    }
}
