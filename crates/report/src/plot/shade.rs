//! The ledger behind the marks: what TCP withheld is shaded over the height of the plot, and a strip below it shows
//! every line, also what programs and the path took.

use tcpwhy_diagnose::ledger::Booking;
use tcpwhy_diagnose::report::Line;

use super::scale::Scale;
use super::style;
use super::svg::{Area, Svg};

/// Intervals narrower than this, in pixels, are drawn together with those beside them.
const NARROW: f64 = 0.5;
/// …until they are as wide as this.
const TOGETHER: f64 = 1.0;
/// A tint weaker than this cannot be seen.
const INVISIBLE: f64 = 0.01;

/// Some pixels of time, and which part of them each line has.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: f64,
    until: f64,
    /// Pixels on each line.
    lines: [f64; Line::ALL.len()],
}

impl Stretch {
    fn at(x: f64) -> Self {
        Self { from: x, until: x, lines: [0.0; Line::ALL.len()] }
    }

    fn add(&mut self, until: f64, line: Line) {
        self.lines[line as usize] += until - self.until;
        self.until = until;
    }

    fn width(&self) -> f64 {
        self.until - self.from
    }

    /// Each line with its share, 0 to 1.
    fn shares(&self) -> impl Iterator<Item = (Line, f64)> {
        let width = self.width();
        Line::ALL.into_iter().map(move |line| (line, self.lines[line as usize] / width))
    }
}

/// `intervals` (in order of time) as far as they are in the picture; `ms` gives a time's place on the scale.
fn stretches(intervals: &[Booking], scale: &Scale, ms: impl Fn(i64) -> f64) -> Vec<Stretch> {
    let (left, right) = scale.values;
    let first = intervals.partition_point(|booking| ms(booking.until) <= left);
    let mut all = Vec::new();
    let mut narrow: Option<Stretch> = None;
    for booking in intervals[first..].iter().take_while(|booking| ms(booking.from) < right) {
        let from = scale.at(ms(booking.from).max(left));
        let until = scale.at(ms(booking.until).min(right));
        let is_wide = until - from >= NARROW;
        if let Some(stretch) = narrow.take_if(|stretch| is_wide || stretch.width() >= TOGETHER) {
            all.push(stretch);
        }
        if is_wide {
            let mut alone = Stretch::at(from);
            alone.add(until, booking.line);
            all.push(alone);
        } else {
            narrow.get_or_insert(Stretch::at(from)).add(until, booking.line);
        }
    }
    all.extend(narrow.filter(|stretch| stretch.width() > 0.0));
    all
}

/// Shades `plot` and fills `strip` below it.
pub(super) fn draw(
    svg: &mut Svg,
    (plot, strip): (&Area, &Area),
    intervals: &[Booking],
    scale: &Scale,
    ms: impl Fn(i64) -> f64,
) {
    for stretch in stretches(intervals, scale, ms) {
        let (x, width) = (stretch.from, stretch.width());
        let mut y = strip.bottom();
        for (line, share) in stretch.shares().filter(|(_, share)| *share > 0.0) {
            let height = strip.height * share;
            y -= height;
            svg.rect(&Area { x, y, width, height }, style::color(line), 1.0);
            let opacity = style::shade(line) * share;
            if opacity >= INVISIBLE {
                svg.rect(&Area { x, y: plot.y, width, height: plot.height }, style::color(line), opacity);
            }
        }
    }
}

/// How much time the part of the ledger between two moments (ns) has on each line, ns.
pub(super) fn sums(intervals: &[Booking], (from, until): (i64, i64)) -> [i64; Line::ALL.len()] {
    let mut sums = [0; Line::ALL.len()];
    for booking in intervals {
        let part = booking.until.min(until) - booking.from.max(from);
        sums[booking.line as usize] += part.max(0);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn booking(from: i64, until: i64, line: Line) -> Booking {
        Booking { from, until, line, side: None }
    }

    #[test]
    fn wide_intervals_are_exact_and_narrow_ones_share_a_pixel() {
        // A pixel is 10 ns. 100 ns of Nagle, then 1 ns each of three others, again and again, then 50 ns.
        let lines = [Line::Nagle, Line::Nagle, Line::DelayedAck];
        let mut intervals = vec![booking(0, 100, Line::Nagle)];
        intervals.extend((0..30).map(|n| booking(100 + n, 101 + n, lines[n as usize % 3])));
        intervals.push(booking(130, 180, Line::Cwnd));
        let scale = Scale { values: (0.0, 180.0), pixels: (0.0, 18.0) };
        let all = stretches(&intervals, &scale, |ns| ns as f64);
        assert_eq!((all[0].from, all[0].until), (0.0, 10.0));
        let last = all[all.len() - 1];
        assert_eq!((last.from, last.until), (13.0, 18.0));
        let between = &all[1..all.len() - 1];
        assert!((2..=4).contains(&between.len()), "{between:?}");
        let nagle: f64 = between.iter().map(|stretch| stretch.lines[Line::Nagle as usize]).sum();
        assert!((nagle - 2.0).abs() < 1e-9, "{nagle} of 3 pixels");
        let shares: f64 = between[0].shares().map(|share| share.1).sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_outside_of_the_picture_is_left_out() {
        let intervals = [booking(0, 10, Line::Rto), booking(10, 20, Line::Cwnd), booking(20, 30, Line::Rto)];
        let scale = Scale { values: (12.0, 22.0), pixels: (0.0, 100.0) };
        let all: Vec<_> =
            stretches(&intervals, &scale, |ns| ns as f64).iter().map(|s| (s.from, s.until)).collect();
        assert_eq!(all, [(0.0, 80.0), (80.0, 100.0)]);
        let sums = sums(&intervals, (12, 22));
        assert_eq!((sums[Line::Cwnd as usize], sums[Line::Rto as usize]), (8, 2));
    }
}
