//! The window that is offered (RFC 9293 3.8.6, RFC 1122 4.2.3.3).

use super::super::stack::{Buffer, Receiving};

#[derive(Debug)]
pub(super) struct Room {
    avoids_silly: bool,
    buffer: Buffer,
    /// Bytes for unread data now, and what they may grow to as segments arrive.
    size: u64,
    most: u64,
    /// Bytes that arrived out of order: they take memory where the buffer is memory.
    early: u64,
    /// The first offset beyond what was offered; it never goes back (RFC 9293 3.8.6).
    edge: u64,
    mss: u64,
    scale: u8,
    /// What the program read in the round trip that began at this time (ns), for tuning.
    round_start: u64,
    read_in_round: u64,
    /// The most that it read in a round before.
    read_before: Option<u64>,
    round_trip: u64,
}

/// Without scaling, the window field's limit (RFC 7323 section 2).
const UNSCALED: u64 = 65_535;
/// Linux 2.0 offers no more (`MAX_WINDOW`), in bytes.
const MOST_OLD: u64 = 32_767;

impl Room {
    pub(super) fn new(settings: &Receiving, mss: u32) -> Self {
        let (size, most) = match settings.buffer {
            Buffer::Fixed(bytes) => (bytes, bytes),
            Buffer::Tuned { initial, buffer, .. } => (initial, buffer),
            Buffer::Memory { bytes, .. } => (bytes / 2, bytes / 2),
        };
        Self {
            avoids_silly: settings.silly_window_avoidance,
            buffer: settings.buffer,
            size,
            most,
            early: 0,
            edge: 0,
            mss: u64::from(mss),
            scale: 0,
            round_start: 0,
            read_in_round: 0,
            read_before: None,
            round_trip: 0,
        }
    }

    pub(super) fn begin(&mut self, mss: u32, scale: u8) {
        self.mss = u64::from(mss);
        self.scale = scale;
    }

    pub(super) fn fix(&mut self, bytes: u64) {
        self.buffer = Buffer::Fixed(bytes);
        (self.size, self.most) = (bytes, bytes);
    }

    /// So many bytes lie above a hole.
    pub(super) fn note_early(&mut self, bytes: u64) {
        self.early = bytes;
    }

    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// What is offered beyond `next`, in bytes.
    pub(super) fn offered(&self, next: u64) -> u64 {
        self.edge.saturating_sub(next)
    }

    /// What could be offered if nothing had been.
    pub(super) fn window(&self, next: u64, read: u64) -> u64 {
        let unread = next.saturating_sub(read);
        let Buffer::Memory { bytes, per_segment } = self.buffer else {
            return self.size.min(self.most.saturating_sub(unread));
        };
        let queued = unread + self.early;
        let segments = queued.div_ceil(self.mss.max(1));
        let free = bytes.saturating_sub(queued + segments * u64::from(per_segment)) / 2;
        // Whole segments (tcp_new_window of 2.0.3x, __tcp_select_window of 2.2).
        free.min(MOST_OLD) / self.mss.max(1) * self.mss
    }

    /// What would be offered now.
    pub(super) fn would_offer(&self, next: u64, read: u64) -> u64 {
        let field_limit = UNSCALED << self.scale;
        let free = self.window(next, read).min(field_limit);
        // RFC 1122 4.2.3.3: the edge moves by a segment or half the buffer, or not at all.
        let step = self.mss.min(self.size / 2).max(1);
        let free = if self.avoids_silly && free < step { 0 } else { free };
        let edge = (next + free).max(self.edge);
        let is_small_step = self.avoids_silly && self.edge > next && edge - self.edge < step;
        let edge = if is_small_step { self.edge } else { edge };
        // The field counts in units of the scale; rounding down must not shrink the window.
        let unit = 1 << self.scale;
        let window = (edge - next).div_ceil(unit) * unit;
        window.min(field_limit)
    }

    /// Offers it: the edge moves.
    pub(super) fn offer(&mut self, next: u64, read: u64) -> u64 {
        let window = self.would_offer(next, read);
        self.edge = self.edge.max(next + window);
        window
    }

    /// Whether the program's reading has opened the window so far that the peer must hear of it: twice what it
    /// knows (Linux's `tcp_cleanup_rbuf`), which includes any opening of a closed one.
    pub(super) fn should_announce(&self, next: u64, read: u64) -> bool {
        let offered = self.offered(next);
        if 2 * offered > self.most {
            return false;
        }
        let window = self.would_offer(next, read);
        window > 0 && window >= 2 * offered && window > offered
    }

    /// BSD: the reading would open it by two segments or half the buffer (`tcp_output`). `segment` is the full one,
    /// its options included.
    pub(super) fn should_announce_as_bsd(&self, next: u64, read: u64, segment: u64) -> bool {
        let opens = self.window(next, read).min(UNSCALED << self.scale).saturating_sub(self.offered(next));
        opens >= 2 * segment || 2 * opens >= self.most
    }

    /// Whether the window may grow because of it.
    pub(super) fn note_arrival(&mut self, now: u64, len: u32, round_trip: Option<u64>) -> bool {
        // tcp_grow_window: small segments take more memory than they bring.
        const FULL_ENOUGH: u32 = 128;
        let grows = len >= FULL_ENOUGH && self.size < self.most;
        if grows {
            self.size = self.most.min(self.size + 2 * self.mss);
        }
        self.round_trip = round_trip.unwrap_or(self.round_trip);
        if self.round_start == 0 {
            self.round_start = now;
        }
        grows
    }

    /// Linux's `tcp_rcv_space_adjust`: twice what the program read in a round trip, and as much again as that has grown
    /// since the round before. What waits unread (`unread`) when the round ends counts against it (since 6.16): a
    /// program that comes late to a burst gets no larger window for it.
    pub(super) fn note_read(&mut self, now: u64, taken: u64, unread: u64) {
        let Buffer::Tuned { max, .. } = self.buffer else { return };
        let is_under_way = self.round_trip == 0 || now - self.round_start < self.round_trip;
        if taken == 0 || is_under_way {
            self.read_in_round += taken;
            return;
        }
        // tcp_recvmsg asks after each segment that it has copied: the first one ends the round.
        let first = taken.min(self.mss);
        let read = (self.read_in_round + first).saturating_sub(taken - first + unread);
        self.read_in_round = taken - first;
        self.round_start = now;
        // Linux begins with TCP_INIT_CWND segments.
        let before = self.read_before.unwrap_or(10 * self.mss).max(1);
        if read > before {
            let wanted = 2 * read + 16 * self.mss;
            let growth = u128::from(wanted) * u128::from(read - before) / u128::from(before);
            let wanted = u128::from(wanted) + 2 * growth;
            self.most = self.most.max(u64::try_from(wanted).unwrap_or(max).min(max));
            self.read_before = Some(read);
        }
    }
}
