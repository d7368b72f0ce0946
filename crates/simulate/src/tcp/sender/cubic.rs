//! CUBIC (RFC 9438) and the end of slow start by `HyStart`, as Linux has them (`tcp_cubic.c`).

use super::window::Acked;

/// RFC 9438 4.1: C, in segments per second cubed.
const C: f64 = 0.4;
/// RFC 9438 4.6: beta; Linux's 717/1024.
pub(super) const BETA: f64 = 717.0 / 1024.0;

/// The curve since the last reduction.
#[derive(Debug, Default)]
pub(super) struct Cubic {
    /// ns; `None` before the first ACK after a reduction.
    epoch: Option<u64>,
    /// RFC 9438's W_max, in segments; zero before the first loss.
    last_max: f64,
    origin: f64,
    /// K, in seconds.
    k: f64,
    /// The window of the Reno-friendly region, in segments.
    friendly: f64,
}

impl Cubic {
    /// How many acknowledged segments make a window of `size` grow by one (RFC 9438 4.2 to 4.4). `shortest` is the
    /// shortest round trip in ns.
    pub(super) fn segments_for_one(&mut self, size: u32, acked: u32, now: u64, shortest: u64) -> u32 {
        let size_now = f64::from(size);
        if self.epoch.is_none() {
            self.begin_epoch(size_now);
        }
        let epoch = *self.epoch.get_or_insert(now);
        let seconds = (now.saturating_sub(epoch) + shortest) as f64 / 1e9;
        let target = self.origin + C * (seconds - self.k).powi(3);
        let mut needed = if target > size_now { size_now / (target - size_now) } else { 100.0 * size_now };
        // Before the first loss there is no W_max to wait for.
        if self.last_max == 0.0 {
            needed = needed.min(20.0);
        }
        let friendliness = 3.0 * (1.0 - BETA) / (1.0 + BETA);
        self.friendly += friendliness * f64::from(acked) / size_now;
        if self.friendly > size_now {
            needed = needed.min(size_now / (self.friendly - size_now));
        }
        // At most half a window a round trip (Linux).
        needed.max(2.0) as u32
    }

    fn begin_epoch(&mut self, size: f64) {
        self.friendly = size;
        if size < self.last_max {
            self.k = ((self.last_max - size) / C).cbrt();
            self.origin = self.last_max;
        } else {
            self.k = 0.0;
            self.origin = size;
        }
    }

    /// A loss or a mark at this window; fast convergence (RFC 9438 4.7).
    pub(super) fn note_reduction(&mut self, size: u32) {
        let size = f64::from(size);
        self.last_max = if size < self.last_max { size * (1.0 + BETA) / 2.0 } else { size };
        self.epoch = None;
    }

    /// Time in which nothing was sent does not count (`cubictcp_cwnd_event`).
    pub(super) fn shift(&mut self, now: u64, idle: u64) {
        self.epoch = self.epoch.map(|epoch| (epoch + idle).min(now));
    }

    /// Whether the last reduction is less than a second ago: its round trips say nothing of slow start
    /// (`cubictcp_acked`).
    pub(super) fn is_young(&self, now: u64) -> bool {
        const YOUTH: u64 = 1_000_000_000;
        self.epoch.is_some_and(|epoch| now.saturating_sub(epoch) < YOUTH)
    }
}

/// `HyStart`: the ACKs of one round trip.
#[derive(Debug, Default)]
pub(super) struct Train {
    round_start: u64,
    round_end: u64,
    last_ack: u64,
    shortest_of_round: Option<u64>,
    samples: u32,
}

impl Train {
    /// Whether slow start has gone far enough (`hystart_update`): an unbroken train of ACKs lasts half of the shortest
    /// round trip, or the round trips have grown.
    pub(super) fn is_long(&mut self, acked: Acked, window: u32) -> bool {
        /// `hystart_low_window`, in segments.
        const LOW_WINDOW: u32 = 16;
        /// `hystart_ack_delta_us`: ACKs of one train follow each other so closely, in ns.
        const TRAIN_GAP: u64 = 2_000_000;
        /// How long the sender's own bursts may stretch the train, in ns (`hystart_ack_delay`: four of its largest
        /// at the pacing rate, and no more than this).
        const BURST: u64 = 1_000_000;
        let (Some(shortest), Some(round_trip)) = (acked.shortest, acked.round_trip) else { return false };
        let now = acked.now;
        if acked.una > self.round_end {
            *self = Self { round_start: now, round_end: acked.next, last_ack: now, ..Self::default() };
        }
        if window < LOW_WINDOW {
            return false;
        }
        let in_train = now - self.last_ack <= TRAIN_GAP;
        if in_train {
            self.last_ack = now;
        }
        let is_long_train = in_train && now - self.round_start > (shortest + BURST) / 2;
        self.is_delayed(round_trip, shortest) || is_long_train
    }

    /// Whether the shortest round trip of this round is longer than the shortest of all by more than an eighth, 4 to
    /// 16 ms (`HYSTART_DELAY_THRESH`).
    fn is_delayed(&mut self, round_trip: u64, shortest: u64) -> bool {
        /// `HYSTART_MIN_SAMPLES`: so many go before the judgement.
        const SAMPLES: u32 = 8;
        const MARGIN: std::ops::RangeInclusive<u64> = 4_000_000..=16_000_000;
        let of_round = self.shortest_of_round.map_or(round_trip, |known| known.min(round_trip));
        self.shortest_of_round = Some(of_round);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        of_round > shortest + (shortest / 8).clamp(*MARGIN.start(), *MARGIN.end())
    }
}
