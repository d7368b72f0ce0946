//! What the marks and colours mean, below the picture.

use super::style;
use super::svg::{Area, Svg, Type};

/// Height of a row, pixels.
const ROW: f64 = 18.0;
const SIZE: f64 = 11.0;
/// Width of a sample with its gap, and between two entries.
const SAMPLE: f64 = 18.0;
const GAP: f64 = 16.0;

/// How an entry's sample looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// A vertical bar.
    Bar,
    /// A line across.
    Line,
    /// A filled box.
    Swatch,
    /// Words alone.
    Nothing,
}

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) sample: Sample,
    pub(super) color: &'static str,
    pub(super) text: String,
}

impl Entry {
    pub(super) fn new(sample: Sample, color: &'static str, text: impl Into<String>) -> Self {
        Self { sample, color, text: text.into() }
    }

    fn width(&self) -> f64 {
        let sample = if self.sample == Sample::Nothing { 0.0 } else { SAMPLE };
        sample + self.text.chars().count() as f64 * SIZE * style::CHARACTER + GAP
    }
}

/// Entries on as many rows as they need; each group begins a row.
#[derive(Debug)]
pub(super) struct Legend(Vec<Vec<Entry>>);

impl Legend {
    /// For a picture so many pixels wide.
    pub(super) fn new(groups: Vec<Vec<Entry>>, width: f64) -> Self {
        let mut rows = Vec::new();
        for group in groups.into_iter().filter(|group| !group.is_empty()) {
            let (mut row, mut used) = (Vec::new(), 0.0);
            for entry in group {
                if used + entry.width() > width && !row.is_empty() {
                    rows.push(std::mem::take(&mut row));
                    used = 0.0;
                }
                used += entry.width();
                row.push(entry);
            }
            rows.push(row);
        }
        Self(rows)
    }

    /// Pixels it needs from top to bottom.
    pub(super) fn height(&self) -> f64 {
        self.0.len() as f64 * ROW
    }

    /// Draws it with its upper left corner at (x, y).
    pub(super) fn draw(&self, svg: &mut Svg, (left, top): (f64, f64)) {
        for (number, row) in self.0.iter().enumerate() {
            let y = top + number as f64 * ROW;
            let mut x = left;
            for entry in row {
                draw_entry(svg, (x, y), entry);
                x += entry.width();
            }
        }
    }
}

fn draw_entry(svg: &mut Svg, (x, y): (f64, f64), entry: &Entry) {
    let middle = y + ROW / 2.0;
    let filled = match entry.sample {
        Sample::Bar => Some(Area { x: x + 5.0, y: middle - 5.0, width: 2.5, height: 10.0 }),
        Sample::Line => Some(Area { x, y: middle - 0.8, width: 13.0, height: 1.6 }),
        Sample::Swatch => Some(Area { x, y: middle - 5.0, width: 13.0, height: 10.0 }),
        Sample::Nothing => None,
    };
    if let Some(area) = filled {
        svg.rect(&area, entry.color, 1.0);
        if entry.sample == Sample::Swatch {
            svg.outline(&area, style::FRAME);
        }
    }
    let indent = if filled.is_some() { SAMPLE } else { 0.0 };
    svg.text((x + indent, middle + SIZE * 0.36), &entry.text, Type::plain(SIZE, style::INK));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_flow_and_groups_begin_a_row() {
        let entry = || Entry::new(Sample::Bar, style::DATA, "0123456789");
        // 18 + 10 characters of 6.71 + 16: 101.1 pixels each.
        let legend = Legend::new(vec![vec![entry(), entry(), entry()], vec![], vec![entry()]], 210.0);
        assert_eq!(legend.0.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(legend.height(), 54.0);
    }
}
