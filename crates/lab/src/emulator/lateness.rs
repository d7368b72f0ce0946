//! How late packets were, and when a run is void.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::place::Path;
use crate::recording::Lateness;

/// The 99th percentile above which a run is void: the waits that tcpwhy tells apart differ by more.
const P99: Duration = Duration::from_millis(1);
/// No packet may be later than this on a short path: the kernel's own timers are no more exact (4 ms a tick at
/// HZ=250).
const WORST: Duration = Duration::from_millis(4);
/// On a long path, no packet may be later than this share of the way.
const WORST_SHARE: u32 = 20;

/// Collects how late each packet was, in bounded memory.
#[derive(Debug)]
pub(super) struct Tally(Histogram<u64>);

impl Tally {
    /// Times are kept to 3 digits, up to the hour that no run takes.
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3)?;
        histogram.auto(true);
        Ok(Self(histogram))
    }

    /// A packet was so many ns late.
    pub(super) fn add(&mut self, late: u64) {
        self.0.saturating_record(late);
    }

    pub(super) fn sum_up(&self, lost: u64) -> Lateness {
        let us = |ns: u64| ns as f64 / 1e3;
        Lateness {
            packets: self.0.len(),
            p50_us: us(self.0.value_at_quantile(0.5)),
            p99_us: us(self.0.value_at_quantile(0.99)),
            max_us: us(self.0.max()),
            lost,
        }
    }
}

/// Whether the emulator was too late for the run to count.
pub(crate) fn is_void(lateness: &Lateness, path: &Path) -> bool {
    let us = |limit: Duration| limit.as_secs_f64() * 1e6;
    lateness.lost > 0
        || lateness.p99_us > us(P99)
        || lateness.max_us > us(WORST.max(shortest_way(path) / WORST_SHARE))
}

/// The shortest one-way delay of the path's links.
fn shortest_way(path: &Path) -> Duration {
    let wires = match path {
        Path::Loopback { .. } => vec![],
        Path::Link(wire) => vec![wire],
        Path::TwoHops { near, far } => vec![near, far],
    };
    let delays = wires.iter().flat_map(|wire| [wire.ends.up.delay, wire.ends.down.delay]);
    delays.min().unwrap_or_default()
}
