//! How the clocks of two captures differ, as far as causality tells.
//!
//! No byte leaves a proxy before it came. Bytes to the server come on the first hop and leave on the second, bytes to the
//! client the other way: each direction bounds the difference of the clocks from another side. What grows with time is the
//! difference of their rates: the line below all delays of a direction that is nearest to them (Moon, Skelly, Towsley:
//! Estimation and Removal of Clock Skew from Network Delay Measurements, INFOCOM 1999), one slope for both directions.

use super::passage::APART;

/// Clocks of computers go wrong by less than this: crystals by 50 ppm, and NTP turns a clock by 500 ppm at most (RFC 5905
/// appendix A.5.5). As a share.
const DRIFT_MOST: f64 = 500e-6;
/// Packets at one host may be stamped by processors whose clocks differ by so much, and in another order. ns.
pub(super) const JITTER: i64 = 100_000;
/// Steps of the search for the drift, each to two thirds of the interval: to a billionth.
const STEPS: u32 = 40;
/// Ways of each direction by which it is sought, evenly over all of them.
const WAYS: usize = 4_096;

/// A byte's way through the proxy: when it came and when it left, ns, each on the clock of its own capture, from the first
/// packet of its own hop (of the first hop, where one clock has seen both).
pub(super) type Way = (i64, i64);

/// How two clocks differ, and how long the proxy takes at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clocks {
    /// By how much the second clock goes faster, as a share.
    pub(super) drift: f64,
    /// The shortest time from coming to leaving, ns, to the server and to the client, with clocks that are taken to agree;
    /// `None` where no byte went that way.
    pub(super) fastest: [Option<i64>; 2],
}

impl Clocks {
    /// For bytes that one clock has seen on both hops; `None` where one left before it came.
    pub(super) fn one(ways: &[Vec<Way>; 2]) -> Option<Self> {
        let clocks = Self { drift: 0.0, fastest: fastest(ways, 0.0) };
        clocks.fastest.iter().flatten().all(|least| *least >= -JITTER).then_some(clocks)
    }

    /// For two clocks; `None` where no difference of theirs explains all bytes. Their rates are taken to agree where that
    /// explains them too, but for what nobody could tell from delays.
    pub(super) fn two(ways: &[Vec<Way>; 2]) -> Option<Self> {
        let drift = drift(&ways.each_ref().map(|ways| thinned(ways)));
        let longest = ways.iter().flatten().map(|way| way.0.saturating_abs()).max().unwrap_or(0);
        let of = |drift| Self { drift, fastest: fastest(ways, drift) };
        let is_possible = |clocks: &Self| clocks.round().is_none_or(|round| round >= -JITTER);
        let (even, found) = (of(0.0), of(drift));
        let is_even = (drift * longest as f64).abs() < APART as f64 && is_possible(&even);
        Some(if is_even { even } else { found }).filter(is_possible)
    }

    /// The shortest way through the proxy and back, with the path between the two captures, ns: in it the clocks' difference
    /// cancels out.
    pub(super) fn round(&self) -> Option<i64> {
        Some(self.fastest[0]?.saturating_add(self.fastest[1]?))
    }

    /// How far the second clock may be ahead of the first at the least and at the most, ns, both counted from their hop's
    /// first packet.
    pub(super) fn ahead(&self) -> (Option<i64>, Option<i64>) {
        (self.fastest[1].map(|least| -least), self.fastest[0])
    }

    /// How much longer than the fastest a byte took in that direction, ns.
    pub(super) fn excess(&self, direction: usize, way: Way) -> i64 {
        let least = self.fastest[direction].unwrap_or(0);
        took(direction, way, self.drift).saturating_sub(least).max(0)
    }
}

/// From coming to leaving, ns, with clocks whose rates differ by `drift` and that agree at 0.
fn took(direction: usize, (came, left): Way, drift: f64) -> i64 {
    let gained = (came as f64 * drift) as i64;
    let took = left.saturating_sub(came);
    if direction == 0 { took.saturating_sub(gained) } else { took.saturating_add(gained) }
}

/// At most twice [`WAYS`] of them, evenly.
fn thinned(ways: &[Way]) -> Vec<Way> {
    ways.iter().step_by((ways.len() / WAYS).max(1)).copied().collect()
}

fn fastest(ways: &[Vec<Way>; 2], drift: f64) -> [Option<i64>; 2] {
    [0, 1].map(|direction| ways[direction].iter().map(|way| took(direction, *way, drift)).min())
}

/// The drift with which all delays together are least. The sum is convex in the drift: delays are straight lines in it, and
/// so is what is below all of them from above.
fn drift(ways: &[Vec<Way>; 2]) -> f64 {
    let (mut low, mut high) = (-DRIFT_MOST, DRIFT_MOST);
    for _ in 0..STEPS {
        let third = (high - low) / 3.0;
        let (left, right) = (low + third, high - third);
        if cost(ways, left) <= cost(ways, right) { high = right } else { low = left }
    }
    f64::midpoint(low, high)
}

/// All delays beyond the fastest, ns; where no difference of the clocks explains both directions, that weighs more.
fn cost(ways: &[Vec<Way>; 2], drift: f64) -> f64 {
    let clocks = Clocks { drift, fastest: fastest(ways, drift) };
    let beyond = |direction: usize| {
        let all = ways[direction].iter().map(move |way| clocks.excess(direction, *way) as f64);
        all.sum::<f64>()
    };
    let count = (ways[0].len() + ways[1].len()) as f64;
    let impossible = clocks.round().map_or(0.0, |round| -(round as f64).min(0.0));
    beyond(0) + beyond(1) + impossible * count
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A conversation of so many seconds through a proxy that takes 0.2 ms, and up to 5 ms now and then; the second clock is
    /// `ahead` and goes faster by `drift`.
    fn ways(seconds: i64, ahead: i64, drift: f64) -> [Vec<Way>; 2] {
        let second = |time: i64| time + ahead + (time as f64 * drift) as i64;
        let took = |n: i64| MS / 5 + if n % 3 == 0 { 0 } else { n % 5 * MS };
        let all = || (0..seconds * 10).map(|n| (n, n * 100 * MS));
        [
            all().map(|(n, came)| (came, second(came + took(n)))).collect(),
            all().map(|(n, came)| (second(came), came + took(n))).collect(),
        ]
    }

    #[test]
    fn both_directions_bound_the_difference_between_the_clocks() {
        let clocks = Clocks::two(&ways(10, 3_000 * MS, 0.0)).expect("causality holds");
        assert_eq!(clocks.ahead(), (Some(3_000 * MS - MS / 5), Some(3_000 * MS + MS / 5)));
        assert_eq!(clocks.drift, 0.0);
        assert_eq!(clocks.excess(0, (100 * MS, 3_104 * MS + MS / 5)), 4 * MS);
    }

    #[test]
    fn clocks_of_different_rates_are_brought_together() {
        // Ten minutes at 40 ppm: 24 ms, against delays of 5 ms at most.
        let ways = ways(600, -7 * MS, 40e-6);
        let clocks = Clocks::two(&ways).expect("causality holds");
        assert!((clocks.drift - 40e-6).abs() < 0.1e-6, "{clocks:?}");
        let excess = |direction: usize| ways[direction].iter().map(move |way| clocks.excess(direction, *way));
        let worst = excess(0).chain(excess(1)).max().expect("ways");
        assert!((4 * MS..4 * MS + MS / 10).contains(&worst), "{worst}");
    }

    #[test]
    fn bytes_that_leave_before_they_come_are_others() {
        let mut ways = ways(10, 0, 0.0);
        assert!(Clocks::one(&ways).is_some());
        ways[0][6].1 -= MS;
        assert!(Clocks::one(&ways).is_none());
        // Two clocks could differ by that; but then all bytes of the other direction left too soon.
        ways[0][6].1 -= MS;
        assert!(Clocks::two(&ways).is_none());
        assert!(Clocks::two(&[ways[0].clone(), Vec::new()]).is_some());
    }

    #[test]
    fn times_as_far_apart_as_there_are_do_not_overflow() {
        let far = 1_i64 << 62;
        let ways = [vec![(-far, far), (far, -far)], vec![(far, -far), (-far, far)]];
        assert!(Clocks::one(&ways).is_none());
        let _ = Clocks::two(&ways);
    }
}
