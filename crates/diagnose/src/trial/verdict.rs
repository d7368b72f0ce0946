//! What a trial proved.

use super::{Block, Comparison, compare};

/// Messages without which a block says nothing: the median of fewer is any of them.
const FEWEST_MESSAGES: u64 = 5;

/// A difference that nobody would feel, as a share of what it was with the option off.
const SMALL_SHARE: f64 = 0.1;

/// A difference that is none, in ms: what it takes a machine to wake a program up, more or less. Nagle's algorithm costs
/// a round trip, and with delayed ACKs 40 ms.
const SMALL_MS: f64 = 0.1;

/// A figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// From the first segment of a request to the last of its answer.
    Latency,
    /// Time in the send queue.
    Wait,
    /// From one update to the next.
    Gap,
}

impl Measure {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Latency, Self::Wait, Self::Gap];

    /// As JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "exchange",
            Self::Wait => "wait",
            Self::Gap => "gap",
        }
    }

    /// What a block says of it, in ms; `None` where too little happened in it.
    pub fn of(self, block: &Block) -> Option<f64> {
        match self {
            Self::Latency => block.latency_ms.filter(|_| block.exchanges >= FEWEST_MESSAGES),
            Self::Wait => block.wait_ms.filter(|_| block.sends >= FEWEST_MESSAGES),
            Self::Gap => block.gap_ms.filter(|_| block.segments.is_some_and(|n| n >= FEWEST_MESSAGES)),
        }
    }

    /// Compares the settings in those pairs of blocks in which enough happened. `None`: in too few.
    pub fn compare(self, pairs: &[[Block; 2]]) -> Option<Comparison> {
        let told = pairs.iter().filter_map(|[one, other]| {
            let (off, on) = if one.is_on { (other, one) } else { (one, other) };
            Some((self.of(off)?, self.of(on)?))
        });
        compare(&told.collect::<Vec<_>>())
    }
}

/// What a comparison proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Faster with the option.
    Faster,
    /// Slower with the option.
    Slower,
    /// No difference that anybody would feel.
    NoEffect,
    /// The interval holds both: a difference that matters, and none.
    Unclear,
    /// Too little happened.
    TooLittle,
}

impl Verdict {
    /// As JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "proved",
            Self::Slower => "slower",
            Self::NoEffect => "no-effect",
            Self::Unclear => "unclear",
            Self::TooLittle => "not-enough-traffic",
        }
    }
}

/// Judges a comparison of times in ms; `None`: too little happened.
pub fn judge(comparison: Option<&Comparison>) -> Verdict {
    let Some(comparison) = comparison else { return Verdict::TooLittle };
    let Comparison { off, less, low, high, .. } = *comparison;
    let small = (off * SMALL_SHARE).max(SMALL_MS);
    if low > 0.0 && less >= small {
        Verdict::Faster
    } else if high < 0.0 && less <= -small {
        Verdict::Slower
    } else if low > -small && high < small {
        Verdict::NoEffect
    } else {
        Verdict::Unclear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(off: f64, less: f64, low: f64, high: f64) -> Verdict {
        judge(Some(&Comparison { pairs: 6, off, on: off - less, less, low, high }))
    }

    #[test]
    fn the_interval_decides_and_what_nobody_feels_is_nothing() {
        assert_eq!(judged(44.0, 43.9, 43.0, 44.1), Verdict::Faster);
        assert_eq!(judged(1.0, -43.0, -44.0, -42.0), Verdict::Slower);
        assert_eq!(judged(0.08, 0.01, 0.005, 0.02), Verdict::NoEffect, "10 µs");
        assert_eq!(judged(44.0, 1.0, 0.5, 2.0), Verdict::NoEffect, "a fortieth");
        assert_eq!(judged(44.0, 10.0, -1.0, 30.0), Verdict::Unclear);
        assert_eq!(judged(44.0, 4.0, 0.5, 6.0), Verdict::Unclear);
        assert_eq!(judge(None), Verdict::TooLittle);
    }

    fn block(is_on: bool, exchanges: u64, latency_ms: f64) -> Block {
        Block { is_on, exchanges, latency_ms: Some(latency_ms), ..Block::default() }
    }

    #[test]
    fn pairs_are_compared_in_whatever_order_they_came() {
        let pairs: Vec<_> = (0..8)
            .map(|i| {
                let (off, on) = (block(false, 50, 44.0), block(true, 900, 0.1));
                if i % 2 == 0 { [off, on] } else { [on, off] }
            })
            .collect();
        let comparison = Measure::Latency.compare(&pairs).expect("enough");
        assert_eq!((comparison.off, comparison.on, comparison.pairs), (44.0, 0.1, 8));
        // Three blocks with next to nothing in them leave five pairs.
        let mut idle = pairs;
        idle.iter_mut().take(3).for_each(|pair| pair[0].exchanges = 4);
        assert_eq!(Measure::Latency.compare(&idle), None);
        assert_eq!(Measure::Wait.compare(&idle), None, "nothing was looked at");
    }
}
