//! Whether waits ended on the kernel's clock tick or at any moment.
//!
//! Linux ends a socket's timers in the timer interrupt, which comes once a tick: on one host the ends of such waits,
//! taken modulo the tick, all fall on one spot. A program that sleeps is woken by a high-resolution timer, at any
//! moment, and drifts by its own time on top: 50 µs of timer slack and what it does, each round.

use std::f64::consts::TAU;

/// What a tick's multiple may be: 4 ms (HZ=250, the usual setting; at 1000 the timer wheel rounds waits of 64 ms to
/// half a second up to 8 ms, a multiple of it), and 10 ms divided by three (HZ=300; HZ=100 has three times that).
/// As so many of them in [`COMMON`].
const TICKS: [i64; 2] = [5, 6];
/// 20 ms: a whole number of each of [`TICKS`]. ns.
const COMMON: i64 = 20_000_000;
/// What one end weighs after the next: some 16 of the latest ends count, so that the clocks of two hosts, a few 10 µs
/// apart each second, do not smear the spot of a long connection.
const FORGET: f64 = 15.0 / 16.0;
/// Length of the mean of unit vectors, one an end, from which on their phases are one spot: deviations of 0.2 ms of
/// 4 ms. Measured: 0.03 to 0.1 ms at the timer's host and over an emulated path.
const ONE_SPOT: f64 = 0.95;
/// Below this the phases deviate by more than 0.64 ms of 4 ms: no jitter of a quiet path does that.
const ANYWHERE: f64 = 0.6;
/// From so many ends on, one spot proves the timer: by chance that many phases lie as close in fewer than one case in
/// a thousand, and a sleep of whole ticks has drifted by half a millisecond, its slack and its program's own time.
const PROOF: u32 = 8;
/// Fewer ends than this say nothing.
const FEWEST: u32 = 3;

/// What ended the waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// A timer of the kernel.
    ByTick,
    /// Either.
    Unclear,
    /// A program.
    AnyTime,
}

/// The phases of a side's ends against each tick: sums of unit vectors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ticks {
    count: u32,
    weight: f64,
    sums: [(f64, f64); TICKS.len()],
}

impl Ticks {
    /// Takes the end of one wait, ns.
    pub(crate) fn add(&mut self, time: i64) {
        self.count = self.count.saturating_add(1);
        self.weight = self.weight * FORGET + 1.0;
        for (sum, ticks) in self.sums.iter_mut().zip(TICKS) {
            let (sin, cos) = (TAU * ((time.rem_euclid(COMMON) * ticks) as f64 / COMMON as f64)).sin_cos();
            *sum = (sum.0 * FORGET + cos, sum.1 * FORGET + sin);
        }
    }

    /// What ended the waits, as far as can be told by a capture that is near their host or not: far from it the
    /// path's jitter smears the spot.
    pub(crate) fn ended(&self, is_near: bool) -> Ended {
        if self.count < FEWEST {
            return Ended::AnyTime;
        }
        let lengths = self.sums.iter().map(|sum| sum.0.hypot(sum.1) / self.weight);
        match lengths.fold(0.0, f64::max) {
            length if length >= ONE_SPOT && self.count >= PROOF => Ended::ByTick,
            length if length >= ONE_SPOT || !is_near && length >= ANYWHERE => Ended::Unclear,
            _ => Ended::AnyTime,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ends at these times, in µs, show at their host.
    fn ended(times: impl IntoIterator<Item = i64>) -> Ended {
        let mut ticks = Ticks::default();
        times.into_iter().for_each(|time| ticks.add(time * 1_000));
        ticks.ended(true)
    }

    #[test]
    fn ends_on_one_spot_of_the_tick_are_the_timers() {
        // 3.34 to 3.44 ms after a tick of 4 ms, as captured: 204 or 208 ms apart, give or take.
        let captured = [31_370, 235_410, 443_350, 647_340, 855_380, 1_059_350, 1_267_380, 1_471_440];
        assert_eq!(ended(captured), Ended::ByTick);
        assert_eq!(ended((0..9).map(|n| 7_000 + n * 210_000)), Ended::ByTick);
        assert_eq!(ended((0..9).map(|n| 7_000 + n * 620_000 / 3)), Ended::ByTick);
    }

    #[test]
    fn a_sleep_of_whole_ticks_drifts() {
        // 204 ms and 0.15 ms of its own each round: after fifteen rounds more than half a tick.
        assert_eq!(ended((0..15).map(|n| n * 204_150)), Ended::AnyTime);
        assert_eq!(ended((0..15).map(|n| n * 207_300)), Ended::AnyTime);
    }

    #[test]
    fn a_few_ends_prove_nothing() {
        assert_eq!(ended((0..7).map(|n| n * 204_000)), Ended::Unclear);
        assert_eq!(ended((0..2).map(|n| n * 204_000)), Ended::AnyTime);
    }

    #[test]
    fn what_jitter_smears_is_unclear_from_afar() {
        let mut ticks = Ticks::default();
        // 0 to 1.4 ms late: deviations of some 0.45 ms.
        (0..20_i64).for_each(|n| ticks.add(n * 204_000_000 + n * 7 % 15 * 100_000));
        assert_eq!(ticks.ended(false), Ended::Unclear);
        assert_eq!(ticks.ended(true), Ended::AnyTime);
    }

    #[test]
    fn two_clocks_that_drift_apart_do_not_hide_the_tick() {
        // 30 µs a second, for a minute.
        assert_eq!(ended((0..300).map(|n| n * 204_000 + n * 6)), Ended::ByTick);
    }
}
