//! What may leave now: the windows, Nagle's algorithm, corks, silly windows (RFC 9293 3.8.6.2.1, RFC 1122 4.2.3.4).

use super::super::info::{CongestionState, EventKind, Trigger, Wait};
use super::super::stack::{Counting, IdleRestart, Nagle};
use super::flight::Sent;
use super::offload::Lot;
use super::{Chunk, Sender, nanos};

impl Sender {
    /// Sends the SYN.
    pub(in crate::tcp) fn connect(&mut self, now: u64) {
        if self.next == 0 {
            let syn = Sent { end: 1, syn: true, ..Self::sent(0, now) };
            self.transmit_new(now, syn);
            self.arm_retransmission(now);
        }
    }

    pub(super) fn sent(start: u64, now: u64) -> Sent {
        Sent {
            start,
            end: start,
            syn: false,
            fin: false,
            push: false,
            last_sent: now,
            repeats: 0,
            sacked: false,
            lost: false,
            resent: false,
        }
    }

    /// Sends all that may leave: repairs first, then new data. `more` is `MSG_MORE`, which holds a small segment
    /// back from this call only (Linux's `tcp_push`).
    pub(in crate::tcp) fn send(&mut self, now: u64, more: bool) {
        if self.una == 0 {
            return;
        }
        self.send_repairs(now);
        let before = self.next;
        self.restart_after_idle(now);
        // BSD looks once a call whether anything is unacknowledged, not before each segment.
        let idle_before = self.flight.is_empty();
        let mut lot = Lot::default();
        self.stopped = loop {
            let room = self.room_of_lot();
            match self.next_segment(now, more, idle_before) {
                Ok(segment) => self.transmit_new(now, segment),
                Err(wait) => break wait,
            }
            self.fill_lot(&mut lot, room);
        };
        self.close_lot(&mut lot);
        if self.next > before {
            if idle_before {
                self.window.note_start(now, now - self.last_sent);
            }
            self.note_new_data(now);
        }
        self.arm_persist(now);
    }

    fn note_new_data(&mut self, now: u64) {
        let limited = self.stopped == Wait::CongestionWindow || !self.has_window(0);
        self.window.note_usage(now, self.flight.len(), limited, self.una, self.next);
        let is_calm = self.repairing.state() == CongestionState::Open;
        if self.settings.idle_restart == IdleRestart::Halving && is_calm {
            self.window.shrink_unused(now, self.round_trip.timeout());
        }
        self.last_sent = now;
        self.arm_after_new_data(now);
    }

    fn restart_after_idle(&mut self, now: u64) {
        if self.next >= self.end() || !self.flight.is_empty() || self.last_sent == 0 {
            return;
        }
        let rule = self.settings.idle_restart;
        let since = if rule == IdleRestart::UnlessHeard { self.last_heard } else { self.last_sent };
        let (idle, timeout) = (now - since, self.round_trip.timeout());
        if idle > timeout && self.window.restart(now, rule, idle, timeout) {
            self.note(now, EventKind::IdleRestart);
        }
    }

    /// The next new segment, or why none may leave.
    fn next_segment(&self, now: u64, more: bool, idle_before: bool) -> Result<Sent, Wait> {
        if self.next >= self.end() {
            return Err(if self.flight.is_empty() { Wait::Program } else { Wait::Acknowledgement });
        }
        let mss = u64::from(self.segment_size());
        let left = self.written - self.next;
        let payload = left.min(mss);
        let fin = self.finished && payload == left;
        // The FIN takes a number of the peer's window as well (RFC 9293 3.4).
        if payload + u64::from(fin) > self.peer.edge.saturating_sub(self.next) {
            return Err(Wait::ReceiveWindow);
        }
        let end = self.next + payload;
        let may_leave = if payload < mss && !fin && end > self.pushed_end {
            self.may_leave_small(now, payload, more, idle_before)
        } else {
            Ok(())
        };
        let recovering = self.repairing.state() >= CongestionState::Recovery;
        let rests = !self.settings.new_data_in_recovery && self.repairing.has_holes(self.una);
        if rests || !self.has_window(payload) {
            let full = if recovering { Wait::Recovery } else { Wait::CongestionWindow };
            // What both hold back Nagle's algorithm would hold in any window.
            return Err(if may_leave == Err(Wait::Nagle) && !recovering { Wait::Nagle } else { full });
        }
        may_leave?;
        let next_push = self.pushes.partition_point(|push| *push <= self.next);
        let push = self.pushes.get(next_push).is_some_and(|push| *push <= end);
        Ok(Sent { end: end + u64::from(fin), fin, push, ..Self::sent(self.next, now) })
    }

    /// A full segment; half of a window that was never larger than two (RFC 1122 4.2.3.4, rule 3; Linux's
    /// `tcp_bound_to_half_wnd`, which leaves windows below the default segment alone).
    fn segment_size(&self) -> u32 {
        const DEFAULT: u64 = 536;
        let largest = self.peer.largest;
        let bound = if largest > DEFAULT { largest / 2 } else { largest };
        self.agreed.mss.min(u32::try_from(bound).unwrap_or(u32::MAX).max(1))
    }

    /// Whether the congestion window takes one more segment with so many bytes.
    pub(super) fn has_window(&self, payload: u64) -> bool {
        let pipe = self.flight.in_network();
        let gone = self.repairing.duplicates_left_network(self.settings.limited_transmit);
        match self.settings.counting {
            Counting::Segments => pipe.segments.saturating_sub(gone) < self.window.size,
            Counting::Bytes => {
                let mss = u64::from(self.agreed.mss);
                let in_network = pipe.bytes.saturating_sub(u64::from(gone) * mss);
                in_network + payload.max(1) <= u64::from(self.window.size) * mss
            }
        }
    }

    fn may_leave_small(&self, now: u64, payload: u64, more: bool, idle_before: bool) -> Result<(), Wait> {
        if self.wishes.cork || more {
            return Err(Wait::Cork);
        }
        let is_held = match self.settings.nagle {
            _ if self.wishes.no_delay => false,
            Nagle::Off => false,
            Nagle::Rfc896 => !self.flight.is_empty(),
            Nagle::Bsd => !idle_before,
            Nagle::HalfSegment => !self.flight.is_empty() && payload < u64::from(self.agreed.mss / 2),
            Nagle::Minshall => !self.flight.is_empty() && self.small_end > self.una,
        };
        if is_held {
            return Err(Wait::Nagle);
        }
        let device_is_busy = self.settings.autocork.is_some() && now < self.device_busy;
        if device_is_busy && !self.flight.is_empty() { Err(Wait::Cork) } else { Ok(()) }
    }

    pub(super) fn transmit_new(&mut self, now: u64, segment: Sent) {
        let payload = segment.payload();
        if payload > 0 && payload < self.segment_size() {
            self.small_end = segment.end;
        }
        self.next = segment.end;
        self.flight.push(segment);
        self.repairing.note_sent();
        let reduced = self.say_reduced && payload > 0;
        self.say_reduced &= !reduced;
        self.device_busy = now + self.settings.autocork.map_or(0, nanos);
        self.timers.autocork = self.settings.autocork.map(|_| self.device_busy);
        self.out.push_back(Chunk {
            start: segment.start,
            payload,
            syn: segment.syn,
            fin: segment.fin,
            push: segment.push,
            repeat: false,
            reduced,
        });
    }

    /// Sends the segment at `index` of the flight again.
    pub(super) fn retransmit(&mut self, now: u64, index: usize, trigger: Trigger) {
        let mss = self.segment_size();
        self.flight.split(index, mss);
        let Some(sent) = self.flight.get(index).copied() else { return };
        self.flight.change(index, |sent| {
            sent.last_sent = now;
            sent.repeats += 1;
            sent.resent = true;
        });
        self.retransmitted += 1;
        self.repairing.note_retransmission(now);
        self.note(now, EventKind::Retransmitted { start: sent.start, trigger });
        self.out.push_back(Chunk {
            start: sent.start,
            payload: sent.payload(),
            syn: sent.syn,
            fin: sent.fin,
            push: sent.push,
            repeat: true,
            reduced: false,
        });
    }
}
