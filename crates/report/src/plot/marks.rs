//! Bars and stairs, drawn as often as the picture has room for: what lies closer than a pixel becomes one mark.

use super::svg::{Svg, command};

/// Tenths of a pixel in a column: marks closer than half a pixel are one.
const COLUMN: i64 = 5;
/// Bars of one column that are so close, in tenths of a pixel, are one.
const CLOSE: i64 = 10;
/// A coordinate beyond this, tenths of a pixel, is far outside of every picture: hostile sequence numbers must not make
/// long numbers.
const FAR: f64 = 1e6;

/// Tenths of a pixel.
fn tenths(pixel: f64) -> i64 {
    (pixel * 10.0).clamp(-FAR, FAR).round() as i64
}

/// The middle of the column that a place is in, tenths of a pixel.
fn column(x: f64) -> i64 {
    tenths(x).div_euclid(COLUMN) * COLUMN
}

/// Vertical bars of one kind.
#[derive(Debug, Default)]
pub(super) struct Bars(Vec<(i64, i64, i64)>);

impl Bars {
    /// A bar at `x` between two heights, at least `least` pixels high.
    pub(super) fn add(&mut self, x: f64, ends: (f64, f64), least: f64) {
        let (top, bottom) = (ends.0.min(ends.1), ends.0.max(ends.1));
        let missing = ((least - (bottom - top)) / 2.0).max(0.0);
        self.0.push((column(x), tenths(top - missing), tenths(bottom + missing)));
    }

    /// As an SVG path.
    pub(super) fn path(mut self) -> String {
        self.0.sort_unstable();
        let mut path = String::new();
        let mut bars = self.0.into_iter();
        let Some(mut bar) = bars.next() else { return path };
        for next in bars {
            if next.0 == bar.0 && next.1 <= bar.2 + CLOSE {
                bar.2 = bar.2.max(next.2);
            } else {
                write_bar(&mut path, bar);
                bar = next;
            }
        }
        write_bar(&mut path, bar);
        path
    }
}

fn write_bar(path: &mut String, (x, top, bottom): (i64, i64, i64)) {
    command(path, 'M', x);
    command(path, ' ', top);
    command(path, 'V', bottom);
}

/// Rectangles of one kind.
#[derive(Debug, Default)]
pub(super) struct Boxes {
    path: String,
    /// Those narrower than a pixel.
    narrow: Bars,
}

impl Boxes {
    /// A rectangle between two places and two heights.
    pub(super) fn add(&mut self, (left, right): (f64, f64), heights: (f64, f64)) {
        if right - left < 1.0 {
            return self.narrow.add(left, heights, 1.0);
        }
        let (top, bottom) = (heights.0.min(heights.1), heights.0.max(heights.1));
        let (left, right, top, bottom) = (tenths(left), tenths(right), tenths(top), tenths(bottom));
        for (letter, at) in [('M', left), (' ', top), ('H', right), ('V', bottom), ('H', left)] {
            command(&mut self.path, letter, at);
        }
        self.path.push('Z');
    }

    /// Draws all of them; `name` as in [`Svg::lines`].
    pub(super) fn draw(self, svg: &mut Svg, name: &str, color: &str) {
        svg.areas(name, &self.path, color);
        svg.lines(name, &self.narrow.path(), color, 1.0);
    }
}

/// A line that stays at one height until it jumps to the next.
#[derive(Debug, Default)]
pub(super) struct Stairs {
    path: String,
    /// Where the path ends.
    at: Option<(i64, i64)>,
    /// The present column: lowest, highest and last height in it.
    pending: Option<(i64, [i64; 3])>,
}

impl Stairs {
    /// From `x` on the line is at `y`. Places come from left to right.
    pub(super) fn to(&mut self, x: f64, y: f64) {
        let (x, y) = (column(x), tenths(y));
        match &mut self.pending {
            Some((column, [low, high, last])) if *column == x => {
                (*low, *high, *last) = ((*low).min(y), (*high).max(y), y);
            }
            _ => {
                self.flush();
                self.pending = Some((x, [y; 3]));
            }
        }
    }

    /// Nobody knows where the line is until it goes on.
    pub(super) fn lift(&mut self) {
        self.flush();
        self.at = None;
    }

    /// As an SVG path; the last step reaches to `x`.
    pub(super) fn path(mut self, x: f64) -> String {
        self.flush();
        if let Some((from, _)) = self.at
            && tenths(x) > from
        {
            command(&mut self.path, 'H', tenths(x));
        }
        self.path
    }

    fn flush(&mut self) {
        let Some((x, [low, high, last])) = self.pending.take() else { return };
        let before = match self.at {
            Some((_, before)) => before,
            None => {
                command(&mut self.path, 'M', x);
                command(&mut self.path, ' ', last);
                last
            }
        };
        if self.at.is_some() && [low, high, last] == [before; 3] {
            return;
        }
        if self.at.is_some() {
            command(&mut self.path, 'H', x);
        }
        let beyond_low = (low < before.min(last)).then_some(low);
        let beyond_high = (high > before.max(last)).then_some(high);
        let mut at = before;
        for height in [beyond_low, beyond_high, Some(last)].into_iter().flatten() {
            if height != at {
                command(&mut self.path, 'V', height);
                at = height;
            }
        }
        self.at = Some((x, last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_closer_than_a_pixel_are_one() {
        let mut bars = Bars::default();
        // Three segments back to back in one column, one half a pixel away, one far above.
        for (x, ends) in
            [(10.1, (50.0, 40.0)), (10.2, (40.0, 30.0)), (10.3, (29.5, 20.0)), (10.6, (50.0, 40.0))]
        {
            bars.add(x, ends, 0.0);
        }
        bars.add(10.0, (5.0, 1.0), 0.0);
        assert_eq!(bars.path(), "M10 1V5M10 20V50M10.5 40V50");
    }

    #[test]
    fn small_bars_can_be_seen() {
        let mut bars = Bars::default();
        bars.add(7.0, (20.0, 20.0), 3.0);
        assert_eq!(bars.path(), "M7 18.5V21.5");
    }

    #[test]
    fn boxes_narrower_than_a_pixel_are_bars() {
        let mut boxes = Boxes::default();
        boxes.add((10.0, 20.5), (50.0, 40.0));
        boxes.add((30.0, 30.4), (50.0, 40.0));
        assert_eq!((boxes.path.as_str(), boxes.narrow.path().as_str()), ("M10 40H20.5V50H10Z", "M30 40V50"));
    }

    #[test]
    fn stairs_keep_their_height_until_they_jump() {
        let mut stairs = Stairs::default();
        for (x, y) in [(0.0, 90.0), (5.0, 90.0), (10.0, 50.0), (20.0, 30.0)] {
            stairs.to(x, y);
        }
        assert_eq!(stairs.path(25.0), "M0 90H10V50H20V30H25");
    }

    #[test]
    fn a_column_shows_its_extremes_and_where_it_ends() {
        let mut stairs = Stairs::default();
        stairs.to(0.0, 50.0);
        for y in [60.0, 10.0, 40.0, 45.0] {
            stairs.to(10.1, y);
        }
        assert_eq!(stairs.path(20.0), "M0 50H10V10V60V45H20");
    }

    #[test]
    fn a_lifted_line_has_a_gap() {
        let mut stairs = Stairs::default();
        stairs.to(0.0, 50.0);
        stairs.to(5.0, 40.0);
        stairs.lift();
        stairs.to(10.0, 30.0);
        assert_eq!(stairs.path(12.0), "M0 50H5V40M10 30H12");
    }

    #[test]
    fn the_number_of_marks_is_bounded_by_the_picture() {
        let (mut bars, mut stairs) = (Bars::default(), Stairs::default());
        for n in 0..200_000 {
            let (x, y) = (f64::from(n) * 1_000.0 / 200_000.0, f64::from(n % 700));
            bars.add(x, (y, y + 1.0), 2.0);
            stairs.to(x, y);
        }
        let (bars, stairs) = (bars.path(), stairs.path(1_000.0));
        // 2,000 columns of half a pixel, each with some bars or a few steps of about five characters.
        assert!(bars.len() < 200_000 && stairs.len() < 100_000, "{}, {}", bars.len(), stairs.len());
        // Not fewer than two steps for each of them, "H1V2" at least.
        assert!(stairs.len() > 2_000 * 4, "{}", stairs.len());
    }
}
