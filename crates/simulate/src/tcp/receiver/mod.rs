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
            duplicate: None,
            waiting_since: None,
            echo: false,
            settings: settings.clone(),
        }
    }

    /// The peer's SYN has arrived.
    pub(super) fn begin(&mut self, mss: u32, window_scale: u8) {
        self.next = 1;
        self.acknowledged = 1;
        self.room.begin(mss, window_scale);
        self.delay.begin(mss);
    }

    pub(super) fn set_buffer(&mut self, bytes: u64) {
        self.room.fix(bytes);
    }

    pub(super) fn set_quick(&mut self, on: bool) {
        self.delay.set_quick(on);
    }

    /// Data, or a FIN, arrives. Whether it was of use, and whether an ACK must leave at once is asked of
    /// [`Self::must_acknowledge`] afterwards.
    pub(super) fn handle_data(&mut self, now: u64, data: Data, sending: Sending) {
        let mut end = data.start + u64::from(data.len);
        if data.reduced {
            self.echo = false;
        }
        if data.congestion {
            // Linux acknowledges marked packets quickly (tcp_ecn_check_ce).
            self.echo = true;
            self.delay.hurry(2);
        }
        if data.fin {
            self.fin = Some(end);
            end += 1;
        }
        // What lies beyond the window is dropped (RFC 9293 3.10.7.4).
        let edge = self.room.edge().max(self.next + 1);
        let end = end.min(edge);
        if data.start >= edge || end <= self.next {
            return self.take_duplicate(data.start..end);
        }
        self.waiting_since.get_or_insert(now);
        if data.start > self.next {
            self.take_early(data.start..end);
        } else {
            self.take_in_order(now, end, data, sending);
        }
    }

    fn take_duplicate(&mut self, block: Range<u64>) {
        if self.settings.dsack && block.start < block.end {
            self.duplicate = Some(block);
        }
        // RFC 9293 3.10.7.4: an unacceptable segment is answered by an ACK.
        self.delay.demand();
        self.delay.hurry(delay::MOST_QUICK);
    }

    /// RFC 5681 4.2: out of order, so at once.
    fn take_early(&mut self, block: Range<u64>) {
        if self.assembly.insert(block.clone()) && self.settings.dsack {
            self.duplicate = Some(block);
        }
        self.delay.demand();
    }

    fn take_in_order(&mut self, now: u64, end: u64, data: Data, sending: Sending) {
        let had_holes = !self.assembly.is_empty();
        let before = self.next;
        if self.settings.dsack && data.start < before {
            self.duplicate = Some(data.start..before);
        }
        self.next = self.assembly.take_from(end);
        let room_for = self.room.window(self.next, self.read);
        self.delay.note_data(now, data, sending, room_for);
        self.room.note_arrival(now, data.len, sending.round_trip);
        if had_holes && self.settings.hole_filled == HoleFilled::AtOnce {
            self.delay.demand();
        }
    }

    /// Whether an ACK must leave now; else its timer runs.
    pub(super) fn must_acknowledge(&mut self, now: u64, sending: Sending) -> bool {
        if !self.delay.is_scheduled() {
            return false;
        }
        let unacknowledged = self.next - self.acknowledged;
        let window_moves = self.room.would_offer(self.next, self.read) >= self.room.offered(self.next);
        if self.delay.is_due(unacknowledged, window_moves) {
            return true;
        }
        self.delay.arm(now, sending);
        false
    }

    /// The program reads up to `most` bytes; whether an ACK must leave because of it.
    pub(super) fn handle_read(&mut self, now: u64, most: u64) -> (u64, bool) {
        let taken = self.readable().min(most);
        self.read += taken;
        self.room.note_read(now, taken);
        let unacknowledged = self.next - self.acknowledged;
        let emptied = self.readable() == 0;
        let due = taken > 0 && self.delay.is_due_after_read(unacknowledged, emptied);
        (taken, due || (taken > 0 && self.room.should_announce(self.next, self.read)))
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
        DelayedAck::LinuxOld { min, max } | DelayedAck::Linux { min, max } => (nanos(min), nanos(max)),
    }
}
