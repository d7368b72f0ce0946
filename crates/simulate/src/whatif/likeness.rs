//! Whether the unchanged replay is like the capture.

use std::fmt;

use serde::Serialize;

use super::replay::Replay;
use super::scene::Scene;

/// How far the replay is from the capture. All are shares: 0.05 is 5 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Likeness {
    /// Exchanges or updates that were compared.
    pub compared: usize,
    /// The median of how far each one's latency is off.
    pub latency_p50: f64,
    /// The 90th percentile.
    pub latency_p90: f64,
    /// How far the time from the SYN to the end of the last one is off.
    pub total: f64,
    /// How far the number of segments with data is off.
    pub segments: f64,
    /// How far the number of all packets is off, those that only acknowledge included.
    pub packets: f64,
}

/// A replay that is further off says nothing. An exchange is as long as its hosts and the path made it that once: a
/// tenth in the middle leaves room for their mood, and the sum must be nearer, since it is what a fix is measured by.
const MOST_P50: f64 = 0.10;
const MOST_TOTAL: f64 = 0.10;
/// One in ten may be what no replay can know: a host that was busy, a packet lost before the capture.
const MOST_P90: f64 = 0.50;
/// Of segments, which the order of events moulds.
const MOST_SEGMENTS: f64 = 0.25;
/// Of packets: pure ACKs come and go with the hosts' mood. Beyond this a price in packets would be a guess.
const MOST_PACKETS: f64 = 0.25;
/// Latencies nearer than this to each other are alike: what hosts need to wake a program; ns.
const ALIKE: f64 = 300_000.0;

impl fmt::Display for Likeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [total, half, most, segments] =
            [self.total, self.latency_p50, self.latency_p90, self.segments].map(|share| share * 100.0);
        write!(
            f,
            "the replay is {total:.0} % off in all; of {} latencies half are off by up to {half:.0} %, nine in ten by up to \
             {most:.0} %; {segments:.0} % more or fewer segments",
            self.compared
        )
    }
}

impl Likeness {
    /// Compares connections with their replays.
    pub(super) fn of(pairs: &[(&Scene, &Replay)]) -> Self {
        let mut errors = Vec::new();
        let (mut ended, mut segments, mut packets) = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0));
        for (scene, replay) in pairs {
            let mut last = 0;
            for (captured, played) in scene.captured.iter().zip(&replay.spans) {
                let Some((from, until)) = *captured else { continue };
                last = last.max(until);
                errors.push(off((until - from) as f64, (played.1 - played.0) as f64, ALIKE));
            }
            ended = (ended.0 + (last + scene.parts.0[0] / 2) as f64, ended.1 + replay.ended as f64);
            segments = (segments.0 + scene.segments as f64, segments.1 + replay.segments as f64);
            packets = (packets.0 + scene.packets as f64, packets.1 + replay.packets as f64);
        }
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| errors.get((errors.len() as f64 * share) as usize).copied().unwrap_or(0.0);
        Self {
            compared: errors.len(),
            latency_p50: at(0.5),
            latency_p90: at(0.9),
            total: off(ended.0, ended.1, ALIKE),
            segments: off(segments.0, segments.1, 1.0),
            packets: off(packets.0, packets.1, 1.0),
        }
    }

    /// Whether figures may be drawn from the replay.
    pub fn is_good(&self) -> bool {
        self.compared > 0
            && self.latency_p50 <= MOST_P50
            && self.latency_p90 <= MOST_P90
            && self.total <= MOST_TOTAL
            && self.segments <= MOST_SEGMENTS
    }

    /// Whether the price in packets and bytes may be told too.
    pub fn has_price(&self) -> bool {
        self.packets <= MOST_PACKETS
    }

    /// One number to compare replays by: the smaller the more alike.
    pub(super) fn distance(&self) -> f64 {
        self.latency_p50 + self.latency_p90 / 2.0 + 2.0 * self.total + (self.segments + self.packets) / 4.0
    }
}

/// How far `played` is from `captured`, as a share of it.
fn off(captured: f64, played: f64, alike: f64) -> f64 {
    let difference = (played - captured).abs();
    if difference <= alike { 0.0 } else { difference / captured.abs().max(alike) }
}
