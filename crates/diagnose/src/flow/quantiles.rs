//! Quantiles of durations in little memory: a sparse histogram with logarithmic buckets.

/// Buckets per doubling: a value is known to one part in 64, so a quantile is at most 0.8 % off.
const PER_OCTAVE: u64 = 64;

/// Durations kept one by one before they are counted in buckets: two cache lines of them, so that counting one
/// more touches little memory. Most connections never have more.
const ONE_BY_ONE: usize = 64;

/// A histogram of durations in µs. Memory grows with the number of *different* durations, to at most
/// 64 buckets a doubling: 1,500 of 8 bytes between 1 µs and 18 hours.
#[derive(Clone, Debug, Default)]
pub struct Quantiles {
    /// Buckets of durations that are not in `buckets` yet.
    recent: Vec<u16>,
    /// Bucket number and count, by bucket.
    buckets: Box<[(u16, u32)]>,
    count: u64,
    /// The sum of all, ns.
    sum: i64,
    /// The longest duration; in neither of the two above.
    max: i64,
}

impl Quantiles {
    /// Counts one duration, in ns; a negative one counts as 0.
    pub fn add(&mut self, duration: i64) {
        let duration = duration.max(0);
        self.count += 1;
        self.sum = self.sum.saturating_add(duration);
        let longest = self.max.max(duration);
        let other = self.max.min(duration);
        self.max = longest;
        if self.count == 1 {
            return;
        }
        if self.recent.len() == ONE_BY_ONE {
            self.buckets = self.sorted(None).into_boxed_slice();
            self.recent.clear();
        }
        self.recent.push(bucket_of(other));
    }

    /// Bytes on the heap.
    pub(crate) fn heap(&self) -> usize {
        self.recent.capacity() * size_of::<u16>() + size_of_val(&*self.buckets)
    }

    /// These and others.
    pub(crate) fn with(self, other: &Self) -> Self {
        let mut all = self.all();
        for (bucket, count) in other.all() {
            match all.binary_search_by_key(&bucket, |entry| entry.0) {
                Ok(at) => all[at].1 = all[at].1.saturating_add(count),
                Err(at) => all.insert(at, (bucket, count)),
            }
        }
        // The longest one is kept apart.
        if let Some(last) = all.last_mut() {
            last.1 -= 1;
        }
        all.retain(|entry| entry.1 > 0);
        Self {
            recent: Vec::new(),
            buckets: all.into_boxed_slice(),
            count: self.count + other.count,
            sum: self.sum.saturating_add(other.sum),
            max: self.max.max(other.max),
        }
    }

    /// All buckets with their counts, sorted.
    fn all(&self) -> Vec<(u16, u32)> {
        self.sorted((self.count > 0).then(|| bucket_of(self.max)))
    }

    fn sorted(&self, longest: Option<u16>) -> Vec<(u16, u32)> {
        let mut all = self.buckets.to_vec();
        for bucket in self.recent.iter().chain(&longest) {
            match all.binary_search_by_key(bucket, |entry| entry.0) {
                Ok(at) => all[at].1 = all[at].1.saturating_add(1),
                Err(at) => all.insert(at, (*bucket, 1)),
            }
        }
        all
    }

    /// The sum of all durations, ns.
    pub fn sum(&self) -> i64 {
        self.sum
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest, in ns, exactly.
    pub fn max(&self) -> i64 {
        self.max
    }

    /// The duration in ns that a share `q` (0 to 1) of all do not exceed; 0 where nothing was counted.
    pub fn quantile(&self, q: f64) -> i64 {
        let rank = ((self.count as f64 * q).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in self.all() {
            seen += u64::from(count);
            if seen >= rank {
                return middle_of(bucket).min(self.max.max(0));
            }
        }
        0
    }

    /// The sum of all durations, each counted up to `most` ns only, and the sum of all in full.
    pub(crate) fn sums_within(&self, most: i64) -> (i64, i64) {
        self.all().into_iter().fold((0, 0), |(within, all), (bucket, count)| {
            let duration = middle_of(bucket).min(self.max);
            let count = i64::from(count);
            (
                within.saturating_add(duration.min(most).saturating_mul(count)),
                all.saturating_add(duration.saturating_mul(count)),
            )
        })
    }

    /// The sum of the durations below `limit`, and the sum of all, ns.
    pub(crate) fn split_at(&self, limit: i64) -> (i64, i64) {
        self.all().into_iter().fold((0, 0), |(below, all), (bucket, count)| {
            let sum = middle_of(bucket).min(self.max).saturating_mul(i64::from(count));
            let below = if bucket < bucket_of(limit) { i64::saturating_add(below, sum) } else { below };
            (below, i64::saturating_add(all, sum))
        })
    }

    /// How many lie between `low` and `high` (ns), to the resolution of a bucket.
    pub(crate) fn between(&self, low: i64, high: i64) -> u64 {
        let range = bucket_of(low)..=bucket_of(high);
        self.all().iter().filter(|entry| range.contains(&entry.0)).map(|entry| u64::from(entry.1)).sum()
    }
}

/// Below this many µs every µs has a bucket of its own.
const LINEAR: u64 = 2 * PER_OCTAVE;

fn bucket_of(duration: i64) -> u16 {
    let micros = u64::try_from(duration.saturating_add(500) / 1_000).unwrap_or(0);
    if micros < LINEAR {
        return micros as u16;
    }
    let octave = u64::from(63 - micros.leading_zeros()) - u64::from(PER_OCTAVE.trailing_zeros());
    (octave * PER_OCTAVE + (micros >> octave)) as u16
}

fn middle_of(bucket: u16) -> i64 {
    let bucket = u64::from(bucket);
    if bucket < LINEAR {
        return bucket as i64 * 1_000;
    }
    let octave = bucket / PER_OCTAVE - 1;
    let low = (bucket - octave * PER_OCTAVE) << octave;
    (low * 1_000 + (500 << octave)).min(i64::MAX as u64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn quantiles_of_a_hundred() {
        let mut quantiles = Quantiles::default();
        (1..=100).for_each(|ms| quantiles.add(ms * MS));
        assert_eq!(quantiles.count(), 100);
        assert_eq!(quantiles.max(), 100 * MS);
        for (q, expected) in [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)] {
            let off = (quantiles.quantile(q) - expected * MS).abs() as f64 / (expected * MS) as f64;
            assert!(off < 0.01, "{q}: {}", quantiles.quantile(q));
        }
        assert_eq!(quantiles.between(40 * MS, 60 * MS), 21);
    }

    #[test]
    fn two_histograms_make_one() {
        let (mut some, mut others) = (Quantiles::default(), Quantiles::default());
        (1..=60).for_each(|ms| some.add(ms * MS));
        (61..=100).for_each(|ms| others.add(ms * MS));
        let both = some.with(&others);
        assert_eq!((both.count(), both.max(), both.between(0, 200 * MS)), (100, 100 * MS, 100));
        assert_eq!(Quantiles::default().with(&Quantiles::default()).count(), 0);
    }

    #[test]
    fn nothing_counted_is_zero() {
        assert_eq!(Quantiles::default().quantile(0.5), 0);
    }

    proptest! {
        #[test]
        fn one_value_comes_back_within_a_percent(duration in 0..i64::MAX) {
            let mut quantiles = Quantiles::default();
            quantiles.add(duration);
            let off = (quantiles.quantile(0.5) - duration).abs();
            prop_assert!(off <= duration / 100 + 500, "{duration} {off}");
        }

        #[test]
        fn buckets_rise_with_the_value(a in 0..i64::MAX, b in 0..i64::MAX) {
            prop_assert!((a <= b) == (bucket_of(a) <= bucket_of(b)) || bucket_of(a) == bucket_of(b));
        }
    }
}
