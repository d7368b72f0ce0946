//! What two settings differ by, with a confidence interval.
//!
//! Blocks come in pairs, one of each setting, in random order within the pair, so what drifts over the run is the same
//! for both. The differences of the pairs are compared with zero as Wilcoxon's signed-rank test does, which asks nothing
//! of how they are distributed but symmetry, and the random order sees to that if the option does nothing. The estimate is
//! Hodges' and Lehmann's: the median of the means of all two differences (Walsh averages); the interval is those
//! averages that the test would not reject (Hollander, Wolfe, Chicken: *Nonparametric Statistical Methods*, section 3.3).

/// Pairs below which no two-sided 95 % interval exists: five differences of one sign come by chance in 2 of 32 runs.
pub const FEWEST_PAIRS: usize = 6;

/// Chance of an interval to lie beside the truth on one side: 95 % in all.
const TAIL: f64 = 0.025;

/// Pairs that are compared; more make the interval no more useful, and the work grows with their square.
const MOST_PAIRS: usize = 500;

/// One figure in both settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Pairs of blocks that were compared.
    pub pairs: usize,
    /// The median of the blocks with the option off.
    pub off: f64,
    /// The median of the blocks with the option on.
    pub on: f64,
    /// By how much less it is with the option on; negative: more.
    pub less: f64,
    /// The lower end of the 95 % interval of `less`.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Compares pairs of (off, on). `None`: fewer than [`FEWEST_PAIRS`]. What is beyond 500 pairs is left out.
pub fn compare(pairs: &[(f64, f64)]) -> Option<Comparison> {
    let pairs = &pairs[..pairs.len().min(MOST_PAIRS)];
    if pairs.len() < FEWEST_PAIRS {
        return None;
    }
    let differences: Vec<f64> = pairs.iter().map(|(off, on)| off - on).collect();
    let averages = walsh_averages(&differences);
    let outside = ranks_outside(pairs.len());
    Some(Comparison {
        pairs: pairs.len(),
        off: median(pairs.iter().map(|pair| pair.0).collect()),
        on: median(pairs.iter().map(|pair| pair.1).collect()),
        less: median_of_sorted(&averages),
        low: averages[outside],
        high: averages[averages.len() - 1 - outside],
    })
}

/// The means of all two differences, each with itself too, in order.
fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (i, one) in differences.iter().enumerate() {
        averages.extend(differences[i..].iter().map(|other| f64::midpoint(*one, *other)));
    }
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

/// How many averages lie outside the interval on each side: the largest number of ranks that the sum of the positive
/// ones stays below with a chance of at most [`TAIL`].
fn ranks_outside(pairs: usize) -> usize {
    let chances = signed_rank_chances(pairs);
    let mut sum = 0.0;
    let within = chances.iter().take_while(|chance| {
        sum += **chance;
        sum <= TAIL
    });
    within.count().saturating_sub(1)
}

/// The chance of each sum of positive ranks, where the sign of each rank is a coin's.
fn signed_rank_chances(pairs: usize) -> Vec<f64> {
    let mut chances = vec![0.0; pairs * (pairs + 1) / 2 + 1];
    chances[0] = 1.0;
    for rank in 1..=pairs {
        for sum in (0..chances.len()).rev() {
            let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = f64::midpoint(chances[sum], with);
        }
    }
    chances
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&values)
}

/// Of at least one value.
fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_critical_values_are_those_of_the_tables() {
        // Two-sided 5 %, from printed tables of Wilcoxon's signed ranks.
        for (pairs, critical) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (15, 25), (20, 52), (25, 89)] {
            assert_eq!(ranks_outside(pairs), critical, "{pairs} pairs");
        }
    }

    #[test]
    fn a_clear_difference_has_a_narrow_interval() {
        let pairs: Vec<_> = (0..6).map(|i| (44.0 + f64::from(i) / 10.0, 0.1)).collect();
        let comparison = compare(&pairs).expect("enough pairs");
        // Differences 43.9 … 44.4; with six pairs the interval is their range.
        assert!(
            (comparison.low - 43.9).abs() < 1e-9 && (comparison.high - 44.4).abs() < 1e-9,
            "{comparison:?}"
        );
        assert!((comparison.less - 44.15).abs() < 1e-9);
        assert_eq!((comparison.on, comparison.pairs), (0.1, 6));
        assert_eq!(compare(&pairs[..5]), None);
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut skewed = || -random.f64().max(1e-9).ln();
        let mut held = 0;
        for _ in 0..2_000 {
            // Both settings alike: the truth is 0.
            let pairs: Vec<_> = (0..8).map(|_| (skewed(), skewed())).collect();
            let comparison = compare(&pairs).expect("enough pairs");
            held += i32::from(comparison.low <= 0.0 && comparison.high >= 0.0);
        }
        // Eight pairs: 1 - 2 * 5/256 = 96.1 %; four standard deviations are 1.7 %.
        assert!((1_887..=1_957).contains(&held), "{held}");
    }
}
