//! The congestion window (RFC 5681, RFC 9438).

use super::super::stack::{Congestion, IdleRestart, Sending};
use super::cubic::{BETA, Cubic, Train};

/// A window in segments, and how it grows.
#[derive(Debug)]
pub(super) struct Window {
    congestion: Congestion,
    initial: u32,
    byte_counting: bool,
    is_validated: bool,
    pub(super) size: u32,
    pub(super) threshold: u32,
    /// Segments acknowledged that have not yet made the window grow.
    credit: u32,
    cubic: Cubic,
    train: Train,
    usage: Usage,
}

/// Whether the window is what limits the sender: one that is not used does not grow (RFC 7661; Linux).
#[derive(Debug, Default)]
struct Usage {
    limited: bool,
    most_out: u32,
    round_end: u64,
    /// When it was last used up, and the most that was out since then.
    full_at: u64,
    used_since: u32,
}

/// What one ACK says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: u64,
    /// Segments.
    pub(super) segments: u32,
    /// ns; of the latest segment that it acknowledges.
    pub(super) round_trip: Option<u64>,
    pub(super) shortest: Option<u64>,
    pub(super) una: u64,
    pub(super) next: u64,
}

/// RFC 5681 equation 4: no smaller than this.
const SMALLEST_THRESHOLD: u32 = 2;

impl Window {
    pub(super) fn new(settings: &Sending) -> Self {
        let initial = settings.initial_window.max(1);
        let is_free = settings.congestion == Congestion::None;
        Self {
            congestion: settings.congestion,
            initial,
            byte_counting: settings.byte_counting,
            is_validated: settings.window_validation,
            size: if is_free { u32::MAX } else { initial },
            threshold: u32::MAX,
            credit: 0,
            cubic: Cubic::default(),
            train: Train::default(),
            usage: Usage::default(),
        }
    }

    pub(super) fn is_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// The SYN was lost: one segment to begin with (RFC 6298 5.7's effect, RFC 3390 section 1).
    pub(super) fn begin_with_one(&mut self) {
        if self.congestion != Congestion::None {
            self.size = 1;
        }
    }

    /// A round trip was measured: slow start may end by it (Linux's `cubictcp_acked`).
    pub(super) fn note_round_trip(&mut self, acked: Acked) {
        let watches = self.congestion == Congestion::Cubic { hystart: true } && self.is_slow_start();
        if watches && !self.cubic.is_young(acked.now) && self.train.is_long(acked, self.size) {
            self.threshold = self.size;
        }
    }

    /// New data was acknowledged, and nothing is wrong.
    pub(super) fn grow(&mut self, acked: Acked) {
        if self.congestion == Congestion::None || !self.is_limited() {
            return;
        }
        let mut left = if self.byte_counting { acked.segments } else { 1 };
        if self.is_slow_start() {
            let room = self.threshold.saturating_sub(self.size);
            let step = left.min(room);
            self.size += step;
            left -= step;
            if left == 0 {
                return;
            }
        }
        let per_segment = match self.congestion {
            Congestion::Cubic { .. } => {
                self.cubic.segments_for_one(self.size, left, acked.now, acked.shortest.unwrap_or(0))
            }
            _ => self.size,
        };
        self.creep(per_segment, left);
    }

    /// One more segment for `needed` that were acknowledged (RFC 5681 3.1, by counting).
    fn creep(&mut self, needed: u32, acked: u32) {
        if self.credit >= needed {
            self.credit = 0;
            self.size += 1;
        }
        self.credit += acked;
        if self.credit >= needed {
            let steps = self.credit / needed;
            self.credit -= steps * needed;
            self.size += steps;
        }
    }

    /// The threshold after a loss with `in_flight` segments out (RFC 5681 equation 4, RFC 9438 4.6).
    pub(super) fn reduced_threshold(&mut self, in_flight: u32) -> u32 {
        match self.congestion {
            Congestion::None => u32::MAX,
            Congestion::Reno => (self.size.min(in_flight.max(1)) / 2).max(SMALLEST_THRESHOLD),
            Congestion::Cubic { .. } => {
                self.cubic.note_reduction(self.size);
                ((f64::from(self.size) * BETA) as u32).max(SMALLEST_THRESHOLD)
            }
        }
    }

    /// After a retransmission timeout (RFC 5681 3.1: the loss window), with so many segments that are not taken for
    /// lost.
    pub(super) fn collapse(&mut self, in_network: u32) {
        if self.congestion != Congestion::None {
            self.size = in_network + 1;
            self.credit = 0;
            // bictcp_reset: what was learnt of the path is forgotten.
            self.cubic = Cubic::default();
            self.train = Train::default();
        }
    }

    /// Something is sent after `idle` ns in which nothing was out.
    pub(super) fn note_start(&mut self, now: u64, idle: u64) {
        self.cubic.shift(now, idle);
    }

    /// Nothing was sent for `idle` ns, more than the timeout. Whether the window is smaller now.
    pub(super) fn restart(&mut self, now: u64, rule: IdleRestart, idle: u64, timeout: u64) -> bool {
        let before = self.size;
        let smallest = self.initial.min(self.size);
        match rule {
            _ if self.congestion == Congestion::None => return false,
            IdleRestart::Never => return false,
            IdleRestart::ToInitial => self.size = smallest,
            IdleRestart::UnlessHeard => self.size = 1,
            IdleRestart::Halving => {
                self.keep_threshold();
                let mut rest = idle.saturating_sub(timeout);
                while rest > 0 && self.size > smallest {
                    self.size /= 2;
                    rest = rest.saturating_sub(timeout);
                }
                self.size = self.size.max(smallest);
            }
        }
        self.usage.used_since = 0;
        self.usage.full_at = now;
        self.size < before
    }

    /// `tcp_current_ssthresh`: three quarters of the window is remembered.
    fn keep_threshold(&mut self) {
        self.threshold = self.threshold.max(self.size / 2 + self.size / 4);
    }

    /// Something was sent; whether the window stopped it (`tcp_cwnd_validate`).
    pub(super) fn note_usage(&mut self, now: u64, out: u32, limited: bool, una: u64, next: u64) {
        let usage = &mut self.usage;
        if una >= usage.round_end || limited || (!usage.limited && out > usage.most_out) {
            usage.limited = limited;
            usage.most_out = out;
            usage.round_end = next;
        }
        if self.is_limited() {
            self.usage.full_at = now;
            self.usage.used_since = 0;
        } else {
            self.usage.used_since = self.usage.used_since.max(out);
        }
    }

    /// A window that was not used for a timeout shrinks towards what was used (RFC 2861 section 3; Linux's
    /// `tcp_cwnd_application_limited`).
    pub(super) fn shrink_unused(&mut self, now: u64, timeout: u64) {
        if self.congestion == Congestion::None
            || self.is_limited()
            || now.saturating_sub(self.usage.full_at) < timeout
        {
            return;
        }
        let used = self.usage.used_since.max(self.initial);
        if used < self.size {
            self.keep_threshold();
            self.size = u32::midpoint(self.size, used);
        }
        self.usage.full_at = now;
        self.usage.used_since = 0;
    }

    fn is_limited(&self) -> bool {
        !self.is_validated
            || self.usage.limited
            || (self.is_slow_start() && self.size < 2 * self.usage.most_out)
    }
}
