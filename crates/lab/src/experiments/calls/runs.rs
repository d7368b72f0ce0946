//! What was measured of a case: rates, calls, packets, and whether two of them differ.

use std::time::Duration;

use tcpwhy_wire::Packet;

use crate::capture::Capture;
use crate::programs::calls::{Call, Queues, REQUEST};

/// Rates are counted in intervals of this length, in ns.
pub(super) const INTERVAL: i64 = 100_000_000;
/// Intervals at the beginning of a run that do not count: threads start, connections are made.
const WARM_UP: usize = 1;
/// Means that differ by less than so many standard errors do not differ.
pub(super) const ERRORS: f64 = 2.0;
/// Two runs of the same differ by up to this share on a busy machine, whatever their intervals say: the option
/// at the server, which can do nothing, was seen to make 14 %.
pub(super) const NOISE: f64 = 0.2;

/// All rounds of a case.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// Calls/s of each interval.
    pub(super) rates: Vec<f64>,
    /// Calls of all rounds.
    pub(super) calls: Vec<Call>,
    pub(super) segments: Segments,
    pub(super) queues: Queues,
}

/// Packets of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segments {
    /// Segments with data from the clients.
    pub(super) data: u64,
    /// Pure ACKs from the server.
    pub(super) acks: u64,
    /// Packets of all kinds both ways.
    pub(super) all: u64,
    /// Requests' bytes that were captured: what the counts are to be divided by.
    pub(super) bytes: u64,
}

/// A mean with its standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) count: usize,
}

/// Calls of a few clients from afar.
#[derive(Clone, Debug, Default)]
pub(super) struct OverLink {
    /// One client and the smallest buffer: the blog's trace.
    pub(super) alone: Runs,
    /// Some clients with Nagle's algorithm.
    pub(super) nagle: Runs,
    /// Some clients with `TCP_NODELAY`.
    pub(super) nodelay: Runs,
}

/// Calls/s in each whole interval of a run that lasted `time`, by when calls ended; without the warm-up.
pub(super) fn per_interval(calls: &[Call], time: Duration) -> Vec<f64> {
    let Some(first) = calls.iter().map(|call| call.start).min() else { return Vec::new() };
    let mut counts = vec![0.0; (time.as_nanos() / INTERVAL as u128) as usize];
    for call in calls {
        let end = call.start - first + (call.total * 1e6) as i64;
        if let Some(count) = counts.get_mut((end / INTERVAL) as usize) {
            *count += 1e9 / INTERVAL as f64;
        }
    }
    counts.split_off(WARM_UP.min(counts.len()))
}

pub(super) fn spread(values: impl IntoIterator<Item = f64>) -> Spread {
    let values: Vec<_> = values.into_iter().collect();
    let count = values.len();
    if count == 0 {
        return Spread::default();
    }
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Spread { mean, deviation: (squares / (count.max(2) - 1) as f64).sqrt(), count }
}

/// How far apart two means are, in standard errors of their difference; positive if `a` is larger.
fn apart(a: Spread, b: Spread) -> f64 {
    let error = |s: Spread| s.deviation.powi(2) / s.count.max(1) as f64;
    let difference = a.mean - b.mean;
    if difference == 0.0 { 0.0 } else { difference / (error(a) + error(b)).sqrt().max(f64::MIN_POSITIVE) }
}

/// Whether `a` is larger than `b` beyond what chance does.
pub(super) fn more(a: Spread, b: Spread) -> bool {
    apart(a, b) >= ERRORS && a.mean > b.mean * (1.0 + NOISE)
}

impl Segments {
    pub(super) fn add(&mut self, capture: Option<&Capture>) {
        for packet in capture.map(Capture::packets).unwrap_or_default() {
            self.count(&packet);
        }
    }

    fn count(&mut self, packet: &Packet) {
        let Some(tcp) = packet.tcp() else { return };
        self.all += 1;
        // Answers are two bytes, pieces of requests more (but for a last one of that size).
        if tcp.payload_len > 2 {
            self.data += 1;
            self.bytes += u64::from(tcp.payload_len);
        }
        self.acks += u64::from(tcp.is_pure_ack());
    }

    /// `count` for each request; also right where the capture missed some packets of each kind alike.
    pub(super) fn a_call(&self, count: u64) -> f64 {
        count as f64 * REQUEST as f64 / self.bytes.max(1) as f64
    }
}

impl Runs {
    pub(super) fn rate(&self) -> Spread {
        spread(self.rates.iter().copied())
    }

    pub(super) fn total(&self) -> Spread {
        spread(self.calls.iter().map(|call| call.total))
    }

    pub(super) fn connect(&self) -> Spread {
        spread(self.calls.iter().filter_map(|call| call.connect))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::seen::tests::packet;
    use super::*;
    use tcpwhy_wire::TcpFlags;

    pub(crate) fn calls(connect: f64, total: f64) -> Vec<Call> {
        vec![Call { start: 0, connect: Some(connect), total }; 4]
    }

    pub(crate) fn runs(rates: &[f64], connect: f64) -> Runs {
        let segments = Segments { data: 10, bytes: 10_010, ..Segments::default() };
        Runs { rates: rates.to_vec(), calls: calls(connect, connect * 2.0), segments, ..Runs::default() }
    }

    #[test]
    fn calls_count_in_the_interval_in_which_they_end() {
        let call = |start_ms: i64, total| Call { start: 7 + start_ms * 1_000_000, connect: None, total };
        let all = [call(0, 1.0), call(90, 20.0), call(150, 10.0), call(210, 5.0), call(290, 20.0)];
        // The first interval is the warm-up; the last call ends after the run.
        assert_eq!(per_interval(&all, Duration::from_millis(300)), [20.0, 10.0]);
        assert!(per_interval(&[], Duration::from_millis(300)).is_empty());
    }

    #[test]
    fn means_are_told_apart_by_their_errors() {
        let few = spread([1.0, 2.0, 3.0]);
        assert_eq!((few.mean, few.deviation, few.count), (2.0, 1.0, 3));
        // 5060 ± 75 and 3884 ± 283 over ten intervals each: 1176 / sqrt(75²/10 + 283²/10) = 12.7.
        let blog =
            [(5060.0, 75.0), (3884.0, 283.0)].map(|(mean, deviation)| Spread { mean, deviation, count: 10 });
        assert!((apart(blog[0], blog[1]) - 12.70).abs() < 0.01);
        assert_eq!(apart(few, few), 0.0);
        assert_eq!(spread([]), Spread::default());
    }

    #[test]
    fn packets_are_counted_by_the_bytes_of_requests() {
        let mut segments = Segments::default();
        segments.add(None);
        assert_eq!(segments, Segments::default());
        let packets = [
            packet(0, 1, TcpFlags::ACK, 10_000),
            packet(1, 1, TcpFlags::ACK, 10),
            packet(2, 2, TcpFlags::ACK, 0),
            packet(3, 2, TcpFlags::ACK, 2),
        ];
        for packet in &packets {
            segments.count(packet);
        }
        assert_eq!(segments, Segments { data: 2, acks: 1, all: 4, bytes: 10_010 });
        assert!((segments.a_call(segments.data) - 2.0).abs() < 1e-9);
    }
}
