//! The receiving half: what has arrived, what is acknowledged when, what window is offered.
//!
//! `assembly` keeps what arrived out of order, `delay` decides how long an ACK waits, `room` what is offered.

mod assembly;
mod delay;
mod room;

use std::ops::Range;

use assembly::Assembly;
use delay::Delay;
use room::Room;

use super::sender::nanos;
use super::stack::{DelayedAck, HoleFilled, Receiving, Ticks};

/// What an arriving segment carries for the receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    /// Offset of its first byte.
    pub(super) start: u64,
    /// Bytes.
    pub(super) len: u32,
    pub(super) fin: bool,
    pub(super) push: bool,
    /// This side may still send a FIN of its own: the ACK of the peer's can ride on it.
    pub(super) may_answer: bool,
    /// Bytes of its TCP header, options included: Linux guesses the peer's segment size with it.
    pub(super) header: u32,
    /// The network marked it (RFC 3168).
    pub(super) congestion: bool,
    /// Its sender says that it has reduced its window.
    pub(super) reduced: bool,
}

/// What the receiver must know of the sending half to decide about ACKs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    /// Smoothed round trip and timeout, in ns.
    pub(super) round_trip: Option<u64>,
    pub(super) timeout: u64,
}

#[derive(Debug)]
pub(super) struct Receiver {
    settings: Receiving,
    /// The next offset that is expected; up to where the program has read; up to where was acknowledged.
    next: u64,
    read: u64,
    acknowledged: u64,
    assembly: Assembly,
    delay: Delay,
    room: Room,
    fin: Option<u64>,
    /// Payload and options of the peer's full segments, in bytes.
    full_segment: u64,
    /// The block of a duplicate, to be reported in the next ACK (RFC 2883).
    duplicate: Option<Range<u64>>,
    /// When the oldest data that was not acknowledged arrived, in ns.
    waiting_since: Option<u64>,
    /// Marks are echoed until the peer says that it has reduced (RFC 3168 6.1.3).
    echo: bool,
}

impl Receiver {
    /// `phase` places the heartbeat of stacks that have one, in ns.
    pub(super) fn new(settings: &Receiving, ticks: Ticks, mss: u32, phase: u64) -> Self {
        Self {
            next: 0,
            read: 1,
            acknowledged: 0,
            assembly: Assembly::default(),
            delay: Delay::new(settings.delayed_ack, ticks, phase),
            room: Room::new(settings, mss),
            fin: None,
            full_segment: u64::from(mss),
            duplicate: None,
            waiting_since: None,
            echo: false,
            settings: settings.clone(),
        }
    }

    /// The peer's SYN has arrived. Its full segments hold `mss` bytes besides `options` of options.
    pub(super) fn begin(&mut self, mss: u32, options: u32, window_scale: u8) {
        self.next = 1;
        self.acknowledged = 1;
        self.full_segment = u64::from(mss + options);
        self.room.begin(mss, window_scale);
        self.delay.begin(mss);
    }

    pub(super) fn set_buffer(&mut self, bytes: u64) {
        self.room.fix(bytes);
    }

    /// Whether an ACK must leave because of it.
    pub(super) fn set_quick(&mut self, on: bool) -> bool {
        self.delay.set_quick(on) && self.readable() == 0
    }

    /// Data, or a FIN, arrives. Whether it was of use, and whether an ACK must leave at once is asked of
    /// [`Self::must_acknowledge`] afterwards.
    pub(super) fn handle_data(&mut self, now: u64, data: Data, sending: Sending) {
        let end = data.start + u64::from(data.len) + u64::from(data.fin);
        self.note_marks(data);
        // What lies beyond the window is dropped (RFC 9293 3.10.7.4); a bare FIN needs no room.
        let is_bare_fin = data.fin && data.len == 0 && data.start == self.next;
        let edge = self.room.edge().max(self.next + u64::from(is_bare_fin));
        let edge = self.fin.map_or(edge, |fin| edge.min(fin + 1));
        if end <= self.next {
            return self.take_duplicate(Some(data.start..end));
        }
        if data.start >= edge || edge <= self.next {
            return self.take_duplicate(None);
        }
        if data.fin && end > self.next {
            self.fin.get_or_insert(end - 1);
        }
        let end = end.min(edge);
        self.waiting_since.get_or_insert(now);
        if data.start > self.next {
            self.take_early(now, data.start..end, sending);
        } else {
            self.take_in_order(now, end, data, sending);
        }
    }

    /// RFC 3168 6.1.3: marks are echoed until the peer says that it has reduced.
    fn note_marks(&mut self, data: Data) {
        if data.reduced {
            self.echo = false;
            // The peer's window may be very small now (Linux's tcp_ecn_accept_cwr).
            self.delay.demand_if_linux();
        }
        if data.congestion && !self.echo {
            // Linux acknowledges marked packets quickly (tcp_ecn_check_ce).
            self.echo = true;
            self.delay.hurry(2);
        }
    }

    /// Nothing new in it. `block` is what had arrived before, unless it lies beyond the window.
    fn take_duplicate(&mut self, block: Option<Range<u64>>) {
        let block = block.filter(|block| self.settings.dsack && block.start < block.end);
        self.duplicate = block.or(self.duplicate.take());
        // RFC 9293 3.10.7.4: an unacceptable segment is answered by an ACK.
        self.delay.demand();
        self.delay.hurry(delay::MOST_QUICK);
    }

    /// RFC 5681 4.2: out of order, so at once.
    fn take_early(&mut self, now: u64, block: Range<u64>, sending: Sending) {
        self.delay.note_early(now, sending);
        if self.assembly.insert(block.clone()) && self.settings.dsack {
            self.duplicate = Some(block);
        }
        self.room.note_early(self.assembly.bytes());
        self.delay.demand();
    }

    fn take_in_order(&mut self, now: u64, end: u64, data: Data, sending: Sending) {
        let had_holes = !self.assembly.is_empty();
        let before = self.next;
        if self.settings.dsack && data.start < before {
            self.duplicate = Some(data.start..before);
        }
        if self.settings.dsack && self.duplicate.is_none() {
            self.duplicate = self.assembly.first_within(end);
        }
        self.next = self.assembly.take_from(end);
        self.room.note_early(self.assembly.bytes());
        let room_for = self.room.window(self.next, self.read);
        self.delay.note_data(now, data, sending, room_for);
        if self.room.note_arrival(now, data.len, sending.round_trip) {
            self.delay.note_growth();
        }
        let is_due = match self.settings.hole_filled {
            HoleFilled::AtOnce => had_holes,
            HoleFilled::LastLate => !self.assembly.is_empty(),
            HoleFilled::Late => false,
        };
        if is_due {
            self.delay.demand();
        }
    }

    /// Whether an ACK must leave now; else its timer runs.
    pub(super) fn must_acknowledge(&mut self, now: u64, sending: Sending) -> bool {
        if !self.delay.is_scheduled() {
            return false;
        }
        let unacknowledged = self.next - self.acknowledged;
        // __tcp_ack_snd_check: else the program's reading will send it.
        let window_moves = self.room.window(self.next, self.read) >= self.room.offered(self.acknowledged);
        self.delay.is_due(unacknowledged, window_moves) || self.delay.arm(now, sending)
    }

    /// The program reads up to `most` bytes; whether an ACK must leave because of it.
    pub(super) fn handle_read(&mut self, now: u64, most: u64) -> (u64, bool) {
        let taken = self.readable().min(most);
        self.read += taken;
        self.room.note_read(now, taken, self.readable());
        let unacknowledged = self.next - self.acknowledged;
        let emptied = self.readable() == 0 && self.assembly.is_empty();
        let opens = if self.delay.is_heartbeat() {
            self.room.should_announce_as_bsd(self.next, self.read, self.full_segment)
        } else {
            self.room.should_announce(self.next, self.read)
        };
        (taken, taken > 0 && (opens || self.delay.is_due_after_read(unacknowledged, emptied)))
    }

    /// Bytes in order that the program has not read.
    pub(super) fn readable(&self) -> u64 {
        let end = self.next - u64::from(self.has_finished());
        end.saturating_sub(self.read)
    }

    /// Whether everything up to the peer's FIN has arrived.
    pub(super) fn has_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether a segment may begin there (RFC 9293 3.4).
    pub(super) fn may_take(&self, start: u64) -> bool {
        start >= self.next && start < self.room.edge()
    }

    /// Bytes received in order.
    pub(super) fn received(&self) -> u64 {
        self.next.saturating_sub(1 + u64::from(self.has_finished()))
    }

    /// The SACK blocks of the next ACK: a duplicate first (RFC 2883), then the latest arrival (RFC 2018 section 4).
    pub(super) fn blocks(&mut self, most: usize) -> Vec<Range<u64>> {
        let duplicate = self.duplicate.take();
        duplicate.into_iter().chain(self.assembly.recent().cloned()).take(most).collect()
    }

    /// Whether the next ACK echoes congestion.
    pub(super) fn echoes(&self) -> bool {
        self.echo
    }

    /// The first offset beyond what an acknowledgement would offer now.
    pub(super) fn would_offer_up_to(&self) -> u64 {
        self.next + self.room.would_offer(self.next, self.read)
    }

    /// An acknowledgement leaves, alone or with data. Returns how long the oldest data waited for it, in ns, and the
    /// window to offer in bytes.
    pub(super) fn acknowledge(&mut self, now: u64, with_data: bool) -> (Option<u64>, u64) {
        let waited = self.waiting_since.take().map(|since| now - since);
        self.acknowledged = self.next;
        self.delay.note_sent(now, with_data);
        (waited, self.room.offer(self.next, self.read))
    }

    /// Everything is over: no timer runs.
    pub(super) fn stop(&mut self) {
        self.delay.stop();
        self.waiting_since = None;
    }

    pub(super) fn poll_at(&self) -> Option<u64> {
        self.delay.poll_at()
    }

    /// Since when an ACK waits here, in ns: the truth about delayed ACKs.
    pub(super) fn holds_since(&self) -> Option<u64> {
        self.delay.poll_at().and(self.waiting_since)
    }

    /// Whether the timer says to acknowledge now.
    pub(super) fn handle_timer(&mut self, now: u64, timeout: u64) -> bool {
        self.delay.handle_timer(now, timeout)
    }
}

/// The bounds of a stack's delay, in ns.
fn bounds(delayed_ack: DelayedAck) -> (u64, u64) {
    match delayed_ack {
        DelayedAck::Off => (0, 0),
        DelayedAck::Heartbeat { period } => (0, nanos(period)),
        DelayedAck::Delay { delay } => (nanos(delay), nanos(delay)),
        DelayedAck::LinuxOld { min, max }
        | DelayedAck::Linux21 { min, max }
        | DelayedAck::Linux { min, max } => (nanos(min), nanos(max)),
    }
}
