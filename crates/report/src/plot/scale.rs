//! From values to pixels, and round numbers to write at an axis.

use super::svg::fine;

/// Maps a range of values to a range of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    /// First and last value.
    pub(super) values: (f64, f64),
    /// Where they are.
    pub(super) pixels: (f64, f64),
}

impl Scale {
    /// Where a value is.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value - self.values.0) / self.span();
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// Last value less first.
    pub(super) fn span(&self) -> f64 {
        self.values.1 - self.values.0
    }
}

/// Where an axis has ticks, and what is written there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    /// Value and label.
    pub(super) marks: Vec<(f64, String)>,
    /// The labels' unit.
    pub(super) unit: &'static str,
}

/// A tick needs so many pixels across, and so many upright.
pub(super) const ACROSS: f64 = 90.0;
pub(super) const UPRIGHT: f64 = 44.0;

/// Units of time, as how many ms they have, and up to which span they are read with ease.
const TIME: [(&str, f64, f64); 4] =
    [("µs", 1e-3, 1.5), ("ms", 1.0, 2_000.0), ("s", 1e3, 600_000.0), ("min", 6e4, f64::INFINITY)];
/// Units of bytes, decimal as in the report.
const BYTES: [(&str, f64, f64); 4] =
    [("bytes", 1.0, 10_000.0), ("kB", 1e3, 1e7), ("MB", 1e6, 1e10), ("GB", 1e9, f64::INFINITY)];
/// A label with more digits before its point is hard to read: the next larger unit is taken.
const LARGEST_LABEL: f64 = 99_999.0;

impl Ticks {
    /// For a scale in ms.
    pub(super) fn of_time(scale: &Scale) -> Self {
        Self::of(scale, &TIME, ACROSS)
    }

    /// For a scale in bytes.
    pub(super) fn of_bytes(scale: &Scale) -> Self {
        Self::of(scale, &BYTES, UPRIGHT)
    }

    fn of(scale: &Scale, units: &[(&'static str, f64, f64)], room: f64) -> Self {
        let span = scale.span();
        let largest = scale.values.0.abs().max(scale.values.1.abs());
        let fits = |unit: &&(&'static str, f64, f64)| span <= unit.2 && largest / unit.1 <= LARGEST_LABEL;
        let &(unit, size, _) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
        let most = ((scale.pixels.1 - scale.pixels.0).abs() / room).max(2.0);
        let step = round_step(span / size / most);
        let first = (scale.values.0 / size / step).ceil() as i64;
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let marks = (first..)
            .map(|n| n as f64 * step)
            .take_while(|value| *value <= scale.values.1 / size * (1.0 + f64::EPSILON))
            .take(MOST)
            .map(|value| (value * size, label(value, decimals)))
            .collect();
        Self { marks, unit }
    }
}

/// More ticks than a picture has room for: a bound, should rounding ever fail.
const MOST: usize = 1_000;

/// `value` with so many decimals; zero without a sign.
fn label(value: f64, decimals: usize) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if decimals == 0 {
        fine(value)
    } else {
        format!("{value:.decimals$}")
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(f64::MIN_POSITIVE).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= least * 0.999_999);
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: (f64, f64), pixels: f64) -> (Vec<String>, &'static str) {
        let ticks = Ticks::of_time(&Scale { values, pixels: (0.0, pixels) });
        (ticks.marks.into_iter().map(|mark| mark.1).collect(), ticks.unit)
    }

    #[test]
    fn ticks_are_round_and_have_room() {
        // 400 pixels have room for four steps of 90: 250 ms each at least, so 500.
        assert_eq!(labels((0.0, 1_000.0), 400.0), (["0", "500", "1000"].map(str::to_owned).to_vec(), "ms"));
        assert_eq!(labels((0.0, 5_000.0), 450.0).0, ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(labels((0.0, 5_000.0), 450.0).1, "s");
        assert_eq!(labels((3_600_010.0, 3_600_050.0), 400.0), {
            let labels = ["3600.01", "3600.02", "3600.03", "3600.04", "3600.05"];
            (labels.map(str::to_owned).to_vec(), "s")
        });
    }

    #[test]
    fn values_are_where_they_belong() {
        let scale = Scale { values: (10.0, 20.0), pixels: (100.0, 0.0) };
        assert_eq!((scale.at(10.0), scale.at(15.0), scale.at(20.0)), (100.0, 50.0, 0.0));
    }
}
