//! Whether waits ended on the kernel's clock tick or at any moment.
//!
//! Linux ends a socket's timers in the timer interrupt, which comes once a tick: on one host the ends of such waits,
//! taken modulo the tick, all fall on one spot. A program that sleeps is woken by a high-resolution timer, at any
//! moment, and drifts by its own time on top: 50 µs of timer slack and what it does, each round.

/// What a tick's multiple may be: 4 ms (HZ=250, the usual setting; at 1000 the timer wheel rounds waits of 64 ms to
/// half a second up to 8 ms, a multiple of it), and 10 ms divided by three (HZ=300; HZ=100 has three times that).
/// As so many of them in [`COMMON`].
const TICKS: [i64; 2] = [5, 6];
/// 20 ms: a whole number of each of [`TICKS`]. ns.
const COMMON: i64 = 20_000_000;
/// What one end weighs after the next: some 16 of the latest ends count, so that the clocks of two hosts, a few 10 µs
/// apart each second, do not smear the spot of a long connection.
const FORGET: f32 = 15.0 / 16.0;
/// A tick is divided into so many parts, 0.2 ms each of 4 ms.
const PARTS: usize = 20;
/// So many neighbouring parts are one spot, 0.6 ms of 4 ms. Measured: 0.04 to 0.13 ms at the timer's host and over an
/// emulated path, up to 0.5 ms late where the host was busy.
const SPOT: usize = 3;
/// Share of the ends on one spot from which on they are the timer's: a busy host is late with one in four.
const ON_ONE_SPOT: f32 = 0.75;
/// Far from the host the path's jitter may have smeared so many of them over more.
const SMEARED: f32 = 0.55;
/// From so many ends on, one spot proves the timer: by chance that many phases lie as close in fewer than one case in
/// a thousand, and a sleep of whole ticks, which drifts by 0.1 ms and more each round, has left the spot.
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

/// The phases of a side's ends against each tick: how many fell on each part of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ticks {
    count: u32,
    weight: f32,
    parts: [[f32; PARTS]; TICKS.len()],
}

impl Ticks {
    /// Takes the end of one wait, ns.
    pub(crate) fn add(&mut self, time: i64) {
        self.count = self.count.saturating_add(1);
        self.weight = self.weight * FORGET + 1.0;
        for (parts, ticks) in self.parts.iter_mut().zip(TICKS) {
            parts.iter_mut().for_each(|part| *part *= FORGET);
            let tick = COMMON / ticks;
            let part = time.rem_euclid(tick) * PARTS as i64 / (tick + 1);
            parts[part as usize] += 1.0;
        }
    }

    /// The largest share of the ends on one spot of a tick.
    fn on_one_spot(&self) -> f32 {
        let spot =
            |parts: &[f32; PARTS], at: usize| -> f32 { (0..SPOT).map(|n| parts[(at + n) % PARTS]).sum() };
        let spots = self.parts.iter().flat_map(|parts| (0..PARTS).map(move |at| spot(parts, at)));
        spots.fold(0.0, f32::max) / self.weight
    }

    /// What ended the waits, as far as can be told by a capture that is near their host or not: far from it the
    /// path's jitter smears the spot.
    pub(crate) fn ended(&self, is_near: bool) -> Ended {
        if self.count < FEWEST {
            return Ended::AnyTime;
        }
        match self.on_one_spot() {
            share if share >= ON_ONE_SPOT && self.count >= PROOF => Ended::ByTick,
            share if share >= ON_ONE_SPOT || !is_near && share >= SMEARED => Ended::Unclear,
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
    fn a_busy_host_is_late_now_and_then() {
        // µs after a tick of 4 ms, of twelve ends captured while programs were compiled on the same two processors.
        let late = [3_375, 3_349, 3_792, 3_355, 3_387, 3_356, 3_365, 3_351, 3_385, 3_646, 3_406, 4_181];
        assert_eq!(ended((0_i64..).zip(late).map(|(n, late)| n * 208_000 + late)), Ended::ByTick);
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
        // 0 to 0.9 ms late, evenly: two in three on one spot.
        (0..20_i64).for_each(|n| ticks.add(n * 204_000_000 + n * 7 % 10 * 100_000));
        assert_eq!(ticks.ended(false), Ended::Unclear);
        assert_eq!(ticks.ended(true), Ended::AnyTime);
    }

    #[test]
    fn two_clocks_that_drift_apart_do_not_hide_the_tick() {
        // 30 µs a second, for a minute.
        assert_eq!(ended((0..300).map(|n| n * 204_000 + n * 6)), Ended::ByTick);
    }
}
