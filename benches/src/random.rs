//! Reproducible randomness: the same seed writes the same capture, byte for byte, on every machine.

/// The `SplitMix64` generator (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A generator whose whole sequence follows from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Any of `low..=high`, close enough to evenly for traffic.
    pub(crate) fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        low + self.bits() % (high - low + 1)
    }

    /// True once in `n` calls on average.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.bits().is_multiple_of(n)
    }
}
