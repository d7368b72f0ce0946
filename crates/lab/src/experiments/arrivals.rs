//! What a server sent, as it passed one place: rates, sizes and gaps from a capture.

use tcpwhy_wire::{Packet, Transport};

use super::figures;
use crate::capture::Capture;
use crate::clock::ms_between;

/// Runs of equal sizes listed at most; the rest is `…`.
const RUNS_LISTED: usize = 6;

/// One segment or datagram with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// ns since the epoch.
    pub(super) time: i64,
    /// Bytes of payload.
    pub(super) bytes: u32,
}

/// What the server sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals(pub(super) Vec<Arrival>);

impl Arrivals {
    /// What the server on `port` sent with data since `since` (ns), retransmissions too.
    pub(super) fn of(capture: &Capture, port: u16, since: i64) -> Self {
        Self::which(capture, |packet| packet.source.port == port && packet.time >= since)
    }

    /// What was sent to `port` with data.
    pub(super) fn towards(capture: &Capture, port: u16) -> Self {
        Self::which(capture, |packet| packet.destination.port == port)
    }

    fn which(capture: &Capture, wanted: impl Fn(&Packet) -> bool) -> Self {
        let packets = capture.packets();
        let with_data = packets.iter().filter(|packet| wanted(packet) && payload(packet) > 0);
        Self(with_data.map(|packet| Arrival { time: packet.time, bytes: payload(packet) }).collect())
    }

    /// How long after each of these its last byte was in one of `later`, the same stream at another place; in ms.
    /// Where segments were lost or repeated the figures are wrong.
    pub(super) fn until(&self, later: &Self) -> Vec<f64> {
        let ends = |arrivals: &Self| -> Vec<(i64, u64)> {
            let sum = |sum: &mut u64, arrival: &Arrival| {
                *sum += u64::from(arrival.bytes);
                Some((arrival.time, *sum))
            };
            arrivals.0.iter().scan(0, sum).collect()
        };
        let later = ends(later);
        let delay = |(time, end): (i64, u64)| {
            let covered = later.get(later.partition_point(|(_, other)| *other < end))?;
            Some(ms_between(time, covered.0))
        };
        ends(self).into_iter().filter_map(delay).collect()
    }

    /// Segments a second, between the first and the last.
    pub(super) fn rate(&self) -> Option<f64> {
        let (first, last) = (self.0.first()?, self.0.last()?);
        let seconds = (last.time - first.time) as f64 / 1e9;
        (seconds > 0.0).then(|| (self.0.len() - 1) as f64 / seconds)
    }

    /// Time between each two, in ms.
    pub(super) fn gaps(&self) -> Vec<f64> {
        self.0.windows(2).map(|two| ms_between(two[0].time, two[1].time)).collect()
    }

    /// Bytes of the middle one.
    pub(super) fn usual_size(&self) -> Option<f64> {
        figures::median(&self.0.iter().map(|arrival| f64::from(arrival.bytes)).collect::<Vec<_>>())
    }

    /// Those of the `second`-th second after `start` (ns).
    pub(super) fn second(&self, start: i64, second: i64) -> Self {
        let (from, until) = (start + second * 1_000_000_000, start + (second + 1) * 1_000_000_000);
        let inside = |arrival: &&Arrival| (from..until).contains(&arrival.time);
        Self(self.0.iter().filter(inside).copied().collect())
    }

    /// `12 5×24 36`: sizes in bytes, equal ones in a row together.
    pub(super) fn sizes(&self) -> String {
        let runs = self.0.chunk_by(|one, next| one.bytes == next.bytes);
        let mut sizes: Vec<String> = runs
            .map(|run| match run {
                [one] => one.bytes.to_string(),
                [one, ..] => format!("{}×{}", run.len(), one.bytes),
                [] => String::new(),
            })
            .collect();
        if sizes.len() > RUNS_LISTED {
            sizes.truncate(RUNS_LISTED);
            sizes.push("…".to_owned());
        }
        sizes.join(" ")
    }
}

/// Packets and bytes (of IP packets and above) in both directions since `since` (ns).
pub(super) fn load(capture: &Capture, since: i64) -> (u64, u64) {
    let packets = capture.packets();
    let counted = packets.iter().filter(|packet| packet.time >= since);
    counted.fold((0, 0), |(packets, bytes), packet| (packets + 1, bytes + u64::from(packet.frame_len)))
}

fn payload(packet: &Packet) -> u32 {
    match packet.transport {
        Transport::Tcp(tcp) => tcp.payload_len,
        Transport::Udp(udp) => udp.payload_len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_gaps_and_seconds_are_of_what_arrived() {
        let arrival = |ms: i64, bytes| Arrival { time: ms * 1_000_000, bytes };
        let arrivals = Arrivals(vec![arrival(0, 12), arrival(200, 24), arrival(400, 24), arrival(1_000, 36)]);
        assert_eq!(arrivals.rate(), Some(3.0));
        assert_eq!(arrivals.gaps(), [200.0, 200.0, 600.0]);
        assert_eq!(arrivals.second(0, 0).sizes(), "12 2×24");
        assert_eq!(arrivals.second(0, 1).sizes(), "36");
        assert_eq!(arrivals.usual_size(), Some(24.0));
        assert_eq!(Arrivals::default().rate(), None);
    }

    #[test]
    fn a_segment_is_passed_on_with_its_last_byte() {
        let arrival = |ms: i64, bytes| Arrival { time: ms * 1_000_000, bytes };
        let before = Arrivals(vec![arrival(0, 12), arrival(100, 12), arrival(200, 12)]);
        let after = Arrivals(vec![arrival(1, 12), arrival(201, 24)]);
        assert_eq!(before.until(&after), [1.0, 101.0, 1.0]);
        assert_eq!(before.until(&Arrivals::default()), [0.0; 0]);
    }
}
