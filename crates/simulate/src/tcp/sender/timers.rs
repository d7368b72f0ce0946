//! What time does: retransmission (RFC 6298 section 5), the probe for a lost tail (RFC 8985 section 7), the
//! reordering timer (RFC 8985 6.3), and the persist timer (RFC 9293 3.8.6.1).

use super::super::info::{CongestionState, Trigger};
use super::super::stack::WindowProbe;
use super::flight::Sent;
use super::round_trip::shifted;
use super::{Chunk, Sender, nanos};

/// Deadlines in ns.
#[derive(Debug, Default)]
pub(super) struct Timers {
    retransmission: Option<u64>,
    probe: Option<u64>,
    pub(super) reordering: Option<u64>,
    persist: Option<u64>,
    persist_backoff: u32,
    /// Timeouts since the peer last acknowledged anything new.
    in_a_row: u32,
    /// When the device has sent the last segment, where that lets a held one go (autocorking).
    pub(super) autocork: Option<u64>,
}

/// Linux's `TCP_RTO_MIN`: the shortest persist wait, and what a probe adds while one segment is out.
const LINUX_FLOOR: u64 = 200_000_000;
/// Linux's `TCP_TIMEOUT_MIN`: two jiffies of 1 ms.
const PROBE_SLACK: u64 = 2_000_000;

impl Sender {
    /// The next deadline in ns.
    pub(in crate::tcp) fn poll_at(&self) -> Option<u64> {
        let timers = &self.timers;
        let autocork = timers.autocork.filter(|_| self.next < self.end());
        [timers.retransmission, timers.probe, timers.reordering, timers.persist, autocork]
            .into_iter()
            .flatten()
            .min()
    }

    /// Deadlines up to `now` are over. Returns whether the connection must be given up.
    pub(in crate::tcp) fn handle_timer(&mut self, now: u64) -> bool {
        let is_over = |deadline: Option<u64>| deadline.is_some_and(|deadline| deadline <= now);
        if is_over(self.timers.autocork) {
            self.timers.autocork = None;
            self.send(now, false);
        }
        if is_over(self.timers.reordering) {
            self.find_losses_by_time(now);
            self.recover_if_lost();
            self.send(now, false);
        }
        if is_over(self.timers.probe) {
            self.timers.probe = None;
            self.send_tail_probe(now);
        }
        if is_over(self.timers.persist) {
            self.timers.persist = None;
            self.send_window_probe(now);
        }
        if is_over(self.timers.retransmission) {
            self.timers.retransmission = None;
            return self.retransmission_timeout(now);
        }
        false
    }

    /// RFC 6298 5.1: while anything is outstanding, the timer runs.
    pub(super) fn arm_retransmission(&mut self, now: u64) {
        self.timers.probe = None;
        self.timers.retransmission =
            (!self.flight.is_empty()).then(|| self.round_trip.deadline(now, self.round_trip.timeout()));
    }

    /// RFC 6298 5.2 and 5.3, and the probe instead of it where it comes sooner.
    pub(super) fn arm_after_ack(&mut self, now: u64) {
        if self.flight.is_empty() {
            self.timers.retransmission = None;
            self.timers.probe = None;
        } else if self.repairing.forward_at() == Some(now) {
            self.timers.in_a_row = 0;
            self.arm_retransmission(now);
            self.arm_probe(now);
        }
    }

    pub(super) fn arm_after_new_data(&mut self, now: u64) {
        if self.timers.retransmission.is_none() && self.timers.probe.is_none() {
            self.arm_retransmission(now);
        }
        self.arm_probe(now);
    }

    /// RFC 8985 7.2.
    fn arm_probe(&mut self, now: u64) {
        let is_calm = matches!(self.repairing.state(), CongestionState::Open | CongestionState::Reduced);
        let wanted = self.settings.tail_loss_probe && self.uses_sack() && is_calm && self.una > 0;
        if !wanted || self.flight.is_empty() || self.flight.sacked() > 0 || self.repairing.has_probe() {
            return;
        }
        let Some(smoothed) = self.round_trip.smoothed() else { return };
        let slack = if self.flight.len() == 1 { LINUX_FLOOR } else { PROBE_SLACK };
        // Not later than the timeout, which runs from the oldest segment, or from the ACK that has just come.
        let head_sent = self.flight.first().map_or(now, |head| head.last_sent);
        let from = if self.repairing.forward_at() == Some(now) { now } else { head_sent };
        let timeout = self.round_trip.deadline(from, self.round_trip.timeout());
        let deadline = self.round_trip.deadline(now, 2 * smoothed + slack);
        self.timers.probe = Some(if timeout > now { deadline.min(timeout) } else { deadline });
        self.timers.retransmission = None;
    }

    /// RFC 8985 7.3: new data where there is some and the peer takes it, else the last segment again.
    fn send_tail_probe(&mut self, now: u64) {
        let left = self.written.saturating_sub(self.next).min(u64::from(self.agreed.mss));
        if left > 0 && self.next + left <= self.peer.edge {
            let segment = Sent { end: self.next + left, push: true, ..self.new_segment(now) };
            self.transmit_new(now, segment);
            self.last_sent = now;
            self.repairing.probe_sent(self.next, false);
        } else if !self.flight.is_empty() {
            let last = self.flight.len() as usize - 1;
            self.retransmit(now, last, Trigger::TailLossProbe);
            self.repairing.probe_sent(self.next, true);
        }
        self.arm_retransmission(now);
    }

    /// RFC 6298 5.4 to 5.7. Returns whether it was one SYN too many.
    fn retransmission_timeout(&mut self, now: u64) -> bool {
        if self.flight.is_empty() {
            return false;
        }
        let is_syn = self.una == 0;
        let timeout = self.settings.timeout;
        let most = if is_syn { timeout.syn_retries } else { timeout.retries };
        if self.timers.in_a_row >= most {
            return true;
        }
        self.timers.in_a_row += 1;
        if !is_syn {
            self.collapse(now);
        } else if self.timers.in_a_row > 1 {
            // Linux's tcp_init_transfer: one lost SYN may be a timeout that was too short.
            self.window.begin_with_one();
        }
        self.round_trip.back_off();
        self.retransmit(now, 0, Trigger::Timeout);
        self.arm_retransmission(now);
        false
    }

    /// Something is to be sent, nothing is out, and nothing may leave: only this timer can change that.
    pub(super) fn arm_persist(&mut self, now: u64) {
        let is_stuck = self.flight.is_empty() && self.next < self.end() && self.una > 0;
        if !is_stuck {
            self.timers.persist = None;
            self.timers.persist_backoff = 0;
        } else if self.timers.persist.is_none() {
            let (least, most) = match self.settings.probe {
                WindowProbe::OldNumber => (LINUX_FLOOR, nanos(self.settings.timeout.max)),
                WindowProbe::NewByte { min, max } => (nanos(min), nanos(max).max(nanos(min))),
            };
            let wait = shifted(self.round_trip.base_timeout(), self.timers.persist_backoff);
            let wait = wait.clamp(least, most);
            self.timers.persist = Some(self.round_trip.deadline(now, wait));
        }
    }

    fn send_window_probe(&mut self, now: u64) {
        let room = self.peer.edge.saturating_sub(self.next);
        let left = self.written.saturating_sub(self.next);
        let payload = left.min(room).min(u64::from(self.agreed.mss));
        let fin = self.finished && payload == left && payload < room;
        if payload > 0 || fin {
            // RFC 1122 4.2.3.4's override: what fits, however small. On Linux this also ends a cork.
            let end = self.next + payload + u64::from(fin);
            let segment = Sent { end, fin, push: true, ..self.new_segment(now) };
            self.transmit_new(now, segment);
            self.last_sent = now;
            self.arm_after_new_data(now);
            return;
        }
        self.timers.persist_backoff += 1;
        let (start, payload) = match self.settings.probe {
            WindowProbe::OldNumber => (self.next - 1, 0),
            // The end of the stream is no byte.
            WindowProbe::NewByte { .. } if left == 0 => (self.next - 1, 0),
            WindowProbe::NewByte { .. } => {
                self.probed = Some(self.next);
                (self.next, 1)
            }
        };
        let plain =
            Chunk { start, payload, syn: false, fin: false, push: false, repeat: false, reduced: false };
        self.out.push_back(plain);
        self.arm_persist(now);
    }

    fn new_segment(&self, now: u64) -> Sent {
        Self::sent(self.next, now)
    }
}
