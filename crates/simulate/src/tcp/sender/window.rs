//! The congestion window (RFC 5681, RFC 9438).

use super::super::stack::{Congestion, IdleRestart};

/// A window in segments, and how it grows.
#[derive(Debug)]
pub(super) struct Window {
    congestion: Congestion,
    initial: u32,
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

#[derive(Debug, Default)]
struct Cubic {
    /// ns; `None` before the first ACK after a reduction.
    epoch: Option<u64>,
    /// W_max.
    last_max: f64,
    origin: f64,
    /// K, in seconds.
    k: f64,
    /// The window of the Reno-friendly region.
    friendly: f64,
}

/// `HyStart`: the end of slow start is found by the length of an ACK train or a longer round trip.
#[derive(Debug, Default)]
struct Train {
    round_start: u64,
    round_end: u64,
    last_ack: u64,
    shortest_of_round: Option<u64>,
    samples: u32,
}

/// What one ACK says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: u64,
    /// Segments.
    pub(super) segments: u32,
    /// ns.
    pub(super) round_trip: Option<u64>,
    pub(super) shortest: Option<u64>,
    pub(super) una: u64,
    pub(super) next: u64,
}

/// RFC 5681 equation 4: no smaller than this.
const SMALLEST_THRESHOLD: u32 = 2;
/// RFC 9438 4.1: C.
const CUBIC_C: f64 = 0.4;
/// RFC 9438 4.6: beta; Linux's 717/1024.
const CUBIC_BETA: f64 = 717.0 / 1024.0;

impl Window {
    pub(super) fn new(congestion: Congestion, initial: u32) -> Self {
        let size = if congestion == Congestion::None { u32::MAX } else { initial.max(1) };
        Self {
            congestion,
            initial: initial.max(1),
            size,
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

    /// New data was acknowledged, and nothing is wrong.
    pub(super) fn grow(&mut self, acked: Acked) {
        if self.congestion == Congestion::None || !self.is_limited() {
            return;
        }
        let mut left = acked.segments;
        if self.is_slow_start() {
            if let Congestion::Cubic { hystart: true } = self.congestion {
                self.watch_train(acked);
            }
            let room = self.threshold.saturating_sub(self.size);
            let step = left.min(room);
            self.size += step;
            left -= step;
            if left == 0 {
                return;
            }
        }
        let per_segment = match self.congestion {
            Congestion::Cubic { .. } => self.cubic.segments_for_one(self.size, left, acked),
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

    fn watch_train(&mut self, acked: Acked) {
        const LOW_WINDOW: u32 = 16;
        const TRAIN_GAP: u64 = 2_000_000;
        // How long the sender's own bursts may stretch the train; Linux: four of its largest at the pacing rate.
        const BURST: u64 = 1_000_000;
        const SAMPLES: u32 = 8;
        const DELAY: std::ops::RangeInclusive<u64> = 4_000_000..=16_000_000;
        let train = &mut self.train;
        if acked.una >= train.round_end {
            *train = Train {
                round_start: acked.now,
                round_end: acked.next,
                last_ack: acked.now,
                ..Train::default()
            };
        }
        let (Some(shortest), Some(round_trip)) = (acked.shortest, acked.round_trip) else { return };
        if self.size < LOW_WINDOW {
            return;
        }
        if acked.now - train.last_ack <= TRAIN_GAP {
            train.last_ack = acked.now;
            if acked.now - train.round_start > (shortest + BURST) / 2 {
                self.threshold = self.size;
            }
        }
        train.samples += 1;
        let of_round = train.shortest_of_round.map_or(round_trip, |known| known.min(round_trip));
        train.shortest_of_round = Some(of_round);
        let margin = (shortest / 8).clamp(*DELAY.start(), *DELAY.end());
        if train.samples >= SAMPLES && of_round > shortest + margin {
            self.threshold = self.size;
        }
    }

    /// The threshold after a loss with `in_flight` segments out (RFC 5681 equation 4, RFC 9438 4.6).
    pub(super) fn reduced_threshold(&mut self, in_flight: u32) -> u32 {
        match self.congestion {
            Congestion::None => u32::MAX,
            Congestion::Reno => (self.size.min(in_flight.max(1)) / 2).max(SMALLEST_THRESHOLD),
            Congestion::Cubic { .. } => {
                let size = f64::from(self.size);
                // Fast convergence (RFC 9438 4.7).
                let is_less = size < self.cubic.last_max;
                self.cubic.last_max = if is_less { size * (1.0 + CUBIC_BETA) / 2.0 } else { size };
                self.cubic.epoch = None;
                ((size * CUBIC_BETA) as u32).max(SMALLEST_THRESHOLD)
            }
        }
    }

    /// After a retransmission timeout (RFC 5681 3.1: the loss window).
    pub(super) fn collapse(&mut self) {
        if self.congestion != Congestion::None {
            self.size = 1;
            self.credit = 0;
            self.cubic.epoch = None;
        }
    }

    /// Nothing was sent for `idle` ns, more than the timeout.
    pub(super) fn restart(&mut self, rule: IdleRestart, idle: u64, timeout: u64) -> bool {
        let before = self.size;
        let smallest = self.initial.min(self.size);
        match rule {
            _ if self.congestion == Congestion::None => return false,
            IdleRestart::Never => return false,
            IdleRestart::ToInitial => self.size = smallest,
            IdleRestart::Halving => {
                self.keep_threshold();
                let mut rest = idle.saturating_sub(timeout);
                while rest > 0 && self.size > smallest {
                    self.size /= 2;
                    rest = rest.saturating_sub(timeout);
                }
                self.size = self.size.max(smallest);
                self.cubic.epoch = None;
            }
        }
        self.usage.used_since = 0;
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

    /// A window that was not used for a timeout shrinks towards what was used (RFC 2861 section 3; Linux).
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
        self.usage.limited || (self.is_slow_start() && self.size < 2 * self.usage.most_out)
    }
}

impl Cubic {
    /// How many acknowledged segments make the window grow by one (RFC 9438 4.2 to 4.4).
    fn segments_for_one(&mut self, size: u32, acked_segments: u32, acked: Acked) -> u32 {
        let size_now = f64::from(size);
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                self.begin_epoch(size_now);
                self.epoch = Some(acked.now);
                acked.now
            }
        };
        let shortest = acked.shortest.unwrap_or(0);
        let seconds = (acked.now - epoch + shortest) as f64 / 1e9;
        let target = self.origin + CUBIC_C * (seconds - self.k).powi(3);
        let mut needed = if target > size_now { size_now / (target - size_now) } else { 100.0 * size_now };
        // Before the first loss there is no W_max to wait for.
        if self.last_max == 0.0 {
            needed = needed.min(20.0);
        }
        let friendliness = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA);
        self.friendly += friendliness * f64::from(acked_segments) / size_now;
        if self.friendly > size_now {
            needed = needed.min(size_now / (self.friendly - size_now));
        }
        // At most half a window a round trip (Linux).
        needed.max(2.0) as u32
    }

    fn begin_epoch(&mut self, size: f64) {
        self.friendly = size;
        if size < self.last_max {
            self.k = ((self.last_max - size) / CUBIC_C).cbrt();
            self.origin = self.last_max;
        } else {
            self.k = 0.0;
            self.origin = size;
        }
    }
}
