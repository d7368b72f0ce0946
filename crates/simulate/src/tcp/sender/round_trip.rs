//! Round trips and the retransmission timeout (RFC 6298).

use std::time::Duration;

use super::super::stack::{Estimator, Ticks, Timeout};

/// The estimator. All times are ns.
#[derive(Debug)]
pub(super) struct RoundTrip {
    settings: Timeout,
    ticks: Ticks,
    smoothed: Option<u64>,
    /// RFC 6298's RTTVAR; with Linux's rule four times its mean deviation.
    variation: u64,
    linux: LinuxDeviation,
    /// The congestion window at the last sample, in segments.
    window: u32,
    shortest: Option<u64>,
    /// Timeouts in a row.
    backoff: u32,
}

/// Linux follows the largest deviation of each round (`tcp_rtt_estimator`). In ns, four times the deviation.
#[derive(Debug, Default)]
struct LinuxDeviation {
    mean: u64,
    largest: u64,
    /// The round ends when this offset is acknowledged.
    round_end: u64,
}

impl RoundTrip {
    pub(super) fn new(settings: Timeout, ticks: Ticks) -> Self {
        Self {
            settings,
            ticks,
            smoothed: None,
            variation: 0,
            linux: LinuxDeviation::default(),
            window: 1,
            shortest: None,
            backoff: 0,
        }
    }

    pub(super) fn smoothed(&self) -> Option<u64> {
        self.smoothed
    }

    pub(super) fn variation(&self) -> u64 {
        self.variation
    }

    pub(super) fn shortest(&self) -> Option<u64> {
        self.shortest
    }

    pub(super) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// One more timeout: the next one takes twice as long (RFC 6298 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(30);
    }

    /// A path has shown that it is so short.
    pub(super) fn note_shortest(&mut self, round_trip: u64) {
        self.shortest = Some(self.shortest.map_or(round_trip, |shortest| shortest.min(round_trip)));
    }

    /// A sample that was measured while `una` of `next` offsets were acknowledged. It ends the back-off (Karn's
    /// second rule: not before). `window` is the congestion window in segments.
    pub(super) fn sample(&mut self, round_trip: u64, una: u64, next: u64, window: u32) {
        self.backoff = 0;
        self.window = window;
        // tcp_rcv of 2.0 and tcp_ack of 2.2: the SYN's round trip is no sample. A mere receiver keeps the first
        // timeout.
        if self.settings.estimator == Estimator::LinuxOld && una <= 1 {
            return;
        }
        match self.settings.estimator {
            Estimator::Linux => self.sample_as_linux(round_trip, una, next),
            Estimator::Standard | Estimator::LinuxOld => self.sample_as_standard(round_trip),
        }
    }

    /// RFC 6298 2.2 and 2.3.
    fn sample_as_standard(&mut self, round_trip: u64) {
        match self.smoothed {
            None => {
                self.smoothed = Some(round_trip);
                self.variation = round_trip / 2;
            }
            Some(smoothed) => {
                self.variation = (3 * self.variation + smoothed.abs_diff(round_trip)) / 4;
                self.smoothed = Some((7 * smoothed + round_trip) / 8);
            }
        }
    }

    /// `tcp_rtt_estimator`: a deviation downwards counts an eighth, and the timeout follows the largest mean
    /// deviation of a round at once but shrinks by a quarter a round.
    fn sample_as_linux(&mut self, round_trip: u64, una: u64, next: u64) {
        let floor = nanos(self.settings.min);
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(round_trip);
            self.linux.mean = 2 * round_trip;
            self.linux.largest = self.linux.mean.max(floor);
            self.variation = self.linux.largest;
            self.linux.round_end = next;
            return;
        };
        let is_less = round_trip < smoothed;
        let change = smoothed.abs_diff(round_trip).cast_signed() - (self.linux.mean / 4).cast_signed();
        let change = if is_less && change > 0 { change / 8 } else { change };
        self.linux.mean = self.linux.mean.saturating_add_signed(change);
        self.smoothed = Some((7 * smoothed + round_trip) / 8);
        self.linux.largest = self.linux.largest.max(self.linux.mean);
        self.variation = self.variation.max(self.linux.largest);
        if una > self.linux.round_end {
            self.variation -= (self.variation - self.linux.largest.min(self.variation)) / 4;
            self.linux.round_end = next;
            self.linux.largest = floor;
        }
    }

    /// The timeout without back-off, in ns.
    pub(super) fn base_timeout(&self) -> u64 {
        let Some(smoothed) = self.smoothed else { return nanos(self.settings.initial) };
        let (min, max) = (nanos(self.settings.min), nanos(self.settings.max));
        // RFC 6298 2.2: G, the clock's granularity.
        let granularity = match self.ticks {
            Ticks::Every(tick) => nanos(tick),
            _ => 0,
        };
        let timeout = match self.settings.estimator {
            Estimator::Linux => return (smoothed + self.variation).min(max),
            Estimator::Standard => smoothed + (4 * self.variation).max(granularity),
            Estimator::LinuxOld => {
                let timeout = smoothed + 4 * self.variation;
                timeout + timeout / 4 + (timeout >> (self.window - 1).min(63))
            }
        };
        timeout.clamp(min, max)
    }

    /// The timeout, in ns.
    pub(super) fn timeout(&self) -> u64 {
        shifted(self.base_timeout(), self.backoff).min(nanos(self.settings.max))
    }

    /// When a timer that is set at `now` for `wait` ns ends.
    pub(super) fn deadline(&self, now: u64, wait: u64) -> u64 {
        self.ticks.deadline(now, wait)
    }
}

/// Doubled so often.
pub(super) fn shifted(wait: u64, times: u32) -> u64 {
    u64::try_from(u128::from(wait) << times.min(64)).unwrap_or(u64::MAX)
}

/// In ns.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
