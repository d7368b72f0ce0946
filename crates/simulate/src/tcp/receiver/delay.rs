//! How long an ACK waits (RFC 1122 4.2.3.2, RFC 5681 4.2), as each stack does it.

use super::super::sender::nanos;
use super::super::stack::{DelayedAck, Ticks};
use super::{Data, Sending, bounds};

/// Linux's `TCP_MAX_QUICKACKS`.
pub(super) const MOST_QUICK: u32 = 16;
/// Linux's `TCP_MSS_DEFAULT`, its first guess of the peer's segment size.
const MSS_DEFAULT: u32 = 536;
/// Linux's `TCP_MIN_MSS`.
const MSS_MIN: u32 = 88;
/// Linux 2.0's first guess of the wait, `HZ/3` in jiffies of 10 ms; ns.
const OLD_FIRST_WAIT: u64 = 330_000_000;
/// Linux 2.0 waits no longer than `HZ/50` after a segment with PSH; ns.
const OLD_PUSHED_WAIT: u64 = 20_000_000;

#[derive(Debug)]
pub(super) struct Delay {
    kind: DelayedAck,
    ticks: Ticks,
    /// Where the heartbeat's ticks are, in ns.
    phase: u64,
    /// There is something to acknowledge.
    scheduled: bool,
    /// It must be acknowledged at once.
    demanded: bool,
    deadline: Option<u64>,
    /// Payload bytes of the peer's full segments, as far as is known.
    segment: u32,
    last_small: u32,
    /// Bytes that came in order since the last ACK, each segment's own: what a filled hole sets free does not count.
    arrived: u64,
    /// Segments that came in order since the last ACK.
    segments: u32,
    linux: Linux,
}

/// What Linux keeps in `icsk_ack`. Times are ns.
#[derive(Debug, Default)]
struct Linux {
    /// ACKs that are still sent at once.
    quick: u32,
    /// The two programs answer each other ("ping-pong").
    conversation: bool,
    /// The adaptive wait; zero before the first data.
    wait: u64,
    last_arrival: u64,
    pushed: bool,
    pushed_again: bool,
}

impl Delay {
    pub(super) fn new(kind: DelayedAck, ticks: Ticks, phase: u64) -> Self {
        Self {
            kind,
            ticks,
            phase,
            scheduled: false,
            demanded: false,
            deadline: None,
            segment: MSS_DEFAULT,
            last_small: 0,
            arrived: 0,
            segments: 0,
            linux: Linux::default(),
        }
    }

    pub(super) fn begin(&mut self, mss: u32) {
        // Linux measures the peer's segments (tcp_initialize_rcv_mss); 2.0 took its own.
        let measures = matches!(self.kind, DelayedAck::Linux { .. } | DelayedAck::Linux21 { .. });
        self.segment = if measures { mss.min(MSS_DEFAULT) } else { mss };
    }

    /// `TCP_QUICKACK`: no conversation, or one. Whether what is pending must be acknowledged where everything is read
    /// (`__tcp_sock_set_quickack`).
    pub(super) fn set_quick(&mut self, on: bool) -> bool {
        self.linux.conversation = !on;
        on && self.scheduled
    }

    pub(super) fn is_scheduled(&self) -> bool {
        self.scheduled
    }

    pub(super) fn poll_at(&self) -> Option<u64> {
        self.deadline
    }

    /// The next ACK leaves at once.
    pub(super) fn demand(&mut self) {
        self.scheduled = true;
        self.demanded = true;
    }

    pub(super) fn demand_if_linux(&mut self) {
        self.demanded |= matches!(self.kind, DelayedAck::Linux { .. });
    }

    /// The window grows: on Linux the sender hears of it at once (`tcp_grow_window`).
    pub(super) fn note_growth(&mut self) {
        if let DelayedAck::Linux { .. } = self.kind {
            self.linux.quick |= 1;
        }
    }

    /// Linux: so many ACKs leave at once, and the conversation is over.
    pub(super) fn hurry(&mut self, quick: u32) {
        if let DelayedAck::Linux { min, .. } = self.kind {
            self.linux.quick = self.linux.quick.max(quick);
            self.linux.conversation = false;
            self.linux.wait = nanos(min);
        }
    }

    /// Data came in order. `window` is the room for more, in bytes.
    pub(super) fn note_data(&mut self, now: u64, data: Data, sending: Sending, window: u64) {
        self.scheduled = true;
        self.arrived += u64::from(data.len);
        self.segments += 1;
        match self.kind {
            DelayedAck::Linux { min, .. } => {
                self.measure_segment(data);
                self.adapt(now, nanos(min), sending.timeout, window);
            }
            DelayedAck::LinuxOld { min, .. } => {
                self.adapt_old(now, nanos(min), sending.timeout);
                self.linux.pushed = data.push;
            }
            DelayedAck::Linux21 { min, .. } => {
                // The first data is acknowledged at once, to help the sender out of slow start.
                self.demanded |= self.linux.wait == 0;
                self.segment = self.segment.max(data.len);
                self.adapt_old(now, nanos(min), sending.timeout);
                if data.push && data.len < self.segment / 2 {
                    self.linux.wait = OLD_PUSHED_WAIT;
                }
            }
            _ => {}
        }
        self.linux.last_arrival = now;
        self.note_fin(data);
    }

    /// Linux lets the ACK of a FIN wait for its own (`tcp_fin`: a conversation); others send it at once.
    fn note_fin(&mut self, data: Data) {
        if data.fin && data.may_answer && matches!(self.kind, DelayedAck::Linux { .. }) {
            self.linux.conversation = true;
        } else {
            self.demanded |= data.fin;
        }
    }

    /// Data came out of order: Linux of old takes its arrival into account all the same.
    pub(super) fn note_early(&mut self, now: u64, sending: Sending) {
        if let DelayedAck::LinuxOld { min, .. } | DelayedAck::Linux21 { min, .. } = self.kind {
            self.adapt_old(now, nanos(min), sending.timeout);
            self.linux.last_arrival = now;
        }
    }

    /// `tcp_measure_rcv_mss`: two small segments of one size are a small segment size; a small one is the end of a
    /// write.
    fn measure_segment(&mut self, data: Data) {
        let last = std::mem::take(&mut self.last_small);
        if data.len >= self.segment {
            self.segment = data.len;
            self.linux.pushed |= data.push;
            return;
        }
        let with_header = data.len + data.header;
        if with_header >= MSS_DEFAULT + 20 || (with_header >= MSS_MIN + 20 && !data.push) {
            self.last_small = data.len;
            if data.len == last {
                self.segment = data.len;
                return;
            }
        }
        self.linux.pushed_again |= self.linux.pushed;
        self.linux.pushed = true;
    }

    /// `tcp_event_data_recv`.
    fn adapt(&mut self, now: u64, min: u64, timeout: u64, window: u64) {
        let linux = &mut self.linux;
        let quick = ((window / (2 * u64::from(self.segment.max(1)))) as u32).clamp(2, MOST_QUICK);
        if linux.wait == 0 {
            linux.quick = linux.quick.max(quick);
            linux.wait = min;
            return;
        }
        let gap = now - linux.last_arrival;
        if gap <= min / 2 {
            linux.wait = linux.wait / 2 + min / 2;
        } else if gap < linux.wait {
            linux.wait = (linux.wait / 2 + gap).min(timeout);
        } else if gap > timeout {
            linux.quick = linux.quick.max(quick);
        }
    }

    /// Linux 2.0 and 2.1 (`tcp_delack_estimator`): half the old wait and the whole new gap, so that the wait grows
    /// where each gap is the wait before it and a round trip. `min` is a jiffy, the shortest gap.
    fn adapt_old(&mut self, now: u64, min: u64, timeout: u64) {
        let is_21 = matches!(self.kind, DelayedAck::Linux21 { .. });
        let linux = &mut self.linux;
        if linux.wait == 0 {
            linux.wait = if is_21 { min } else { OLD_FIRST_WAIT };
            return;
        }
        let gap = (now - linux.last_arrival).max(min);
        linux.wait = if gap > timeout { timeout } else { linux.wait / 2 + gap };
    }

    /// Whether the ACK leaves at once. `window_moves`: the window need not shrink for what arrived.
    pub(super) fn is_due(&self, unacknowledged: u64, window_moves: bool) -> bool {
        if self.demanded {
            return true;
        }
        let segment = u64::from(self.segment);
        match self.kind {
            DelayedAck::Off => true,
            DelayedAck::Linux { .. } => (unacknowledged > segment && window_moves) || self.is_quick(),
            DelayedAck::LinuxOld { .. } => self.arrived >= 2 * segment,
            DelayedAck::Linux21 { .. } => unacknowledged >= 2 * segment,
            DelayedAck::Delay { .. } => self.segments >= 2,
            // Left to the program's reading.
            DelayedAck::Heartbeat { .. } => false,
        }
    }

    pub(super) fn is_heartbeat(&self) -> bool {
        matches!(self.kind, DelayedAck::Heartbeat { .. })
    }

    fn is_quick(&self) -> bool {
        self.linux.quick > 0 && !self.linux.conversation
    }

    /// `tcp_cleanup_rbuf`: reading sends an ACK that the arrival did not.
    pub(super) fn is_due_after_read(&self, unacknowledged: u64, emptied: bool) -> bool {
        if !matches!(self.kind, DelayedAck::Linux { .. }) || !self.scheduled {
            return false;
        }
        let ends_write = self.linux.pushed_again || (self.linux.pushed && !self.linux.conversation);
        unacknowledged > u64::from(self.segment) || (ends_write && emptied)
    }

    /// Starts the timer where it does not run. Whether that is about to end, so that the ACK leaves at once.
    pub(super) fn arm(&mut self, now: u64, sending: Sending) -> bool {
        let (min, max) = bounds(self.kind);
        let deadline = match self.kind {
            DelayedAck::Off => now,
            DelayedAck::Heartbeat { .. } => next_tick(now, max.max(1), self.phase),
            DelayedAck::Delay { .. } => self.ticks.deadline(now, max),
            DelayedAck::Linux21 { .. } => self.ticks.deadline(now, self.linux.wait.clamp(min, max)),
            DelayedAck::LinuxOld { .. } => {
                let longest = if self.linux.pushed { OLD_PUSHED_WAIT.min(max) } else { max };
                self.ticks.deadline(now, self.linux.wait.clamp(min, longest))
            }
            DelayedAck::Linux { .. } => {
                let wait = self.linux_wait(min, max, sending.round_trip);
                // tcp_send_delayed_ack: a timer that ends within a quarter of the wait is not worth its while.
                if self.deadline.is_some_and(|known| known <= now + wait / 4) {
                    return true;
                }
                self.ticks.deadline(now, wait)
            }
        };
        self.deadline = Some(self.deadline.map_or(deadline, |known| known.min(deadline)));
        false
    }

    /// `tcp_send_delayed_ack`.
    fn linux_wait(&self, min: u64, max: u64, round_trip: Option<u64>) -> u64 {
        const HALF_SECOND: u64 = 500_000_000;
        // Before any data icsk_ack.ato is zero: the ACK of a bare FIN waits for the next jiffy only.
        let wait = self.linux.wait;
        if wait <= min {
            return wait;
        }
        let is_waiting_for_more = self.linux.conversation || self.linux.pushed;
        let longest = if is_waiting_for_more { max } else { HALF_SECOND };
        let longest = round_trip.map_or(longest, |round_trip| longest.min(round_trip.max(min)));
        wait.min(longest).min(max)
    }

    /// Whether the timer lets the ACK go.
    pub(super) fn handle_timer(&mut self, now: u64, timeout: u64) -> bool {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return false;
        }
        self.deadline = None;
        if let DelayedAck::Linux { min, .. } = self.kind {
            // tcp_delack_timer_handler: an ACK that had to wait so long was no conversation.
            if self.linux.conversation {
                self.linux.conversation = false;
                self.linux.wait = nanos(min);
            } else {
                self.linux.wait = (2 * self.linux.wait).min(timeout);
            }
        }
        self.scheduled
    }

    /// An acknowledgement left.
    pub(super) fn note_sent(&mut self, now: u64, with_data: bool) {
        let DelayedAck::Linux { min, .. } = self.kind else { return self.clear() };
        if self.linux.quick > 0 && self.scheduled {
            self.linux.quick -= 1;
            if self.linux.quick == 0 {
                self.linux.wait = nanos(min);
            }
        }
        // tcp_event_data_sent: an answer within the wait makes it a conversation.
        let answers = self.linux.wait > 0 && now - self.linux.last_arrival < self.linux.wait;
        self.linux.conversation |= with_data && answers;
        self.clear();
    }

    /// Nothing is to be acknowledged any more.
    pub(super) fn stop(&mut self) {
        self.clear();
    }

    fn clear(&mut self) {
        self.scheduled = false;
        self.demanded = false;
        self.arrived = 0;
        self.segments = 0;
        self.deadline = None;
        self.linux.pushed = false;
        self.linux.pushed_again = false;
    }
}

/// The first tick after `now` of a timer with this period.
fn next_tick(now: u64, period: u64, phase: u64) -> u64 {
    let phase = phase % period;
    let since = (now + period - phase) % period;
    now + period - since
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_ticks_at_its_phase() {
        assert_eq!(next_tick(0, 200, 50), 50);
        assert_eq!(next_tick(50, 200, 50), 250);
        assert_eq!(next_tick(249, 200, 50), 250);
        assert_eq!(next_tick(1000, 200, 0), 1200);
    }
}
