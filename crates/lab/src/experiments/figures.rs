//! Figures for tables: quantiles, times in words, and pictures one line high.

/// The heights that a cell of a [`picture`] can have, after the empty one.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The value below which the share `q` (0 to 1) of `values` lies, by the nearest rank; `None` without values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * q.clamp(0.0, 1.0)).round() as usize).copied()
}

/// The middle one of `values`; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// A length of time given in ms, with three digits and the unit that fits: `36 µs`, `1.23 ms`, `40.1 ms`, `2.05 s`.
pub fn time(ms: f64) -> String {
    let digits = |value: f64| match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    };
    match ms {
        _ if !ms.is_finite() => "?".to_owned(),
        _ if ms.abs() < 0.9995 => format!("{:.0} µs", ms * 1e3),
        _ if ms < 999.5 => format!("{} ms", digits(ms)),
        _ => format!("{} s", digits(ms / 1e3)),
    }
}

/// `value` or, where there is none, a dash.
pub fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

/// Values as a row of bars between 0 and the largest; what is above 0 has at least the lowest bar.
pub fn picture(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let cell = |value: &f64| match value / most {
        share if share > 0.0 => HEIGHTS[((share * 8.0).ceil() as usize).clamp(1, 8) - 1],
        _ => ' ',
    };
    values.iter().map(cell).collect()
}

/// How many of `values` lie in each of `cells` equal parts of 0 to `most`; what lies above counts in the last.
pub fn histogram(values: &[f64], most: f64, cells: usize) -> Vec<f64> {
    let mut counts = vec![0.0; cells.max(1)];
    let last = counts.len() - 1;
    for value in values {
        let cell = (value / most * cells as f64).clamp(0.0, last as f64) as usize;
        counts[cell] += 1.0;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values = [5.0, 1.0, 3.0, 2.0, 4.0];
        assert_eq!(median(&values), Some(3.0));
        assert_eq!(quantile(&values, 1.0), Some(5.0));
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let cases = [
            (0.036, "36 µs"),
            (0.9999, "1.00 ms"),
            (40.12, "40.1 ms"),
            (999.7, "1.00 s"),
            (2_050.0, "2.05 s"),
        ];
        for (ms, text) in cases {
            assert_eq!(time(ms), text);
        }
    }

    #[test]
    fn pictures_are_high_where_values_are() {
        assert_eq!(picture(&[0.0, 1.0, 4.0, 8.0]), " ▁▄█");
        assert_eq!(picture(&[0.0, 0.0]), "  ");
        assert_eq!(histogram(&[0.0, 9.0, 10.0, 99.0], 20.0, 4), [1.0, 1.0, 1.0, 1.0]);
    }
}
