//! Tables of text: the first column to the left, the others to the right, no wider than the page.

use std::io;

use textwrap::core::display_width;

use crate::page::{Page, glued, with_units_glued};
use crate::plain::plain;

/// Columns between two cells.
const GAP: usize = 2;
/// Narrower than this the first column cannot be read any more; the rows are then written one cell a line.
const FIRST_AT_LEAST: usize = 16;

impl Page<'_> {
    /// A table. Names of columns, then cells of the first column, are broken over several lines where the page
    /// is narrow; where that is not enough, every row becomes a short list.
    pub fn table(&mut self, indent: &str, columns: &[String], rows: &[Vec<String>]) -> io::Result<()> {
        let columns = cleaned(columns);
        let rows: Vec<Vec<String>> = rows.iter().map(|row| cleaned(row)).collect();
        match Widths::fitting(&columns, &rows, self.width.saturating_sub(display_width(indent))) {
            Some(widths) => {
                let heading: Vec<String> = columns.iter().map(|name| self.ink.bold(name)).collect();
                self.row(indent, &heading, &widths)?;
                let ruler = widths.0.iter().sum::<usize>() + GAP * (widths.0.len() - 1);
                self.line(&format!("{indent}{}", self.ink.faint(&"─".repeat(ruler))))?;
                rows.iter().try_for_each(|row| self.row(indent, row, &widths))
            }
            None => rows.iter().try_for_each(|row| self.list(indent, &columns, row)),
        }
    }

    /// One row, as many lines high as its highest cell; cells stand on the last line, the first on the first.
    fn row(&mut self, indent: &str, cells: &[String], widths: &Widths) -> io::Result<()> {
        let cells: Vec<Vec<String>> = cells
            .iter()
            .zip(&widths.0)
            .map(|(cell, width)| {
                let mut lines = Vec::new();
                let mut out = Vec::new();
                Page::narrow(&mut out, *width, self.ink.color).hanging("", cell)?;
                lines.extend(String::from_utf8_lossy(&out).lines().map(str::to_owned));
                Ok(lines)
            })
            .collect::<io::Result<_>>()?;
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut text = indent.to_owned();
            for (column, (lines, width)) in cells.iter().zip(&widths.0).enumerate() {
                let below = if column == 0 { 0 } else { height - lines.len() };
                let cell =
                    line.checked_sub(below).and_then(|line| lines.get(line)).map_or("", String::as_str);
                let space = " ".repeat(width.saturating_sub(display_width(cell)));
                match column {
                    0 => text.push_str(&format!("{cell}{space}")),
                    _ => text.push_str(&format!("{:GAP$}{space}{cell}", "")),
                }
            }
            self.line(&text)?;
        }
        Ok(())
    }

    /// A row as a list: the first cell, and below it the others with their columns' names.
    fn list(&mut self, indent: &str, columns: &[String], row: &[String]) -> io::Result<()> {
        let Some((first, others)) = row.split_first() else { return Ok(()) };
        self.hanging(indent, &self.ink.bold(first))?;
        let named: Vec<String> =
            columns.iter().skip(1).zip(others).map(|(name, cell)| glued(&format!("{name} {cell}"))).collect();
        self.items(&format!("{indent}  "), &named)
    }
}

/// Cells with nothing in them that acts on a terminal; a number stays beside its unit.
fn cleaned(cells: &[String]) -> Vec<String> {
    cells.iter().map(|cell| with_units_glued(&plain(cell))).collect()
}

/// Columns that each column of a table takes.
struct Widths(Vec<usize>);

impl Widths {
    /// Widths that fit in `room`, if there are any: whole cells; else names of columns broken at spaces; else the
    /// first column broken too.
    fn fitting(columns: &[String], rows: &[Vec<String>], room: usize) -> Option<Self> {
        let cells: Vec<usize> = (0..columns.len())
            .map(|i| {
                rows.iter().filter_map(|row| row.get(i)).map(|cell| display_width(cell)).max().unwrap_or(0)
            })
            .collect();
        let of_names = |width: fn(&str) -> usize| -> Vec<usize> {
            columns.iter().zip(&cells).map(|(name, cell)| width(name).max(*cell)).collect()
        };
        let taken = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let whole = of_names(display_width);
        if taken(&whole) <= room {
            return Some(Self(whole));
        }
        let mut broken = of_names(|name| name.split(' ').map(display_width).max().unwrap_or(0));
        let over = taken(&broken).saturating_sub(room);
        let first = broken.first_mut()?;
        *first = first.checked_sub(over).filter(|left| over == 0 || *left >= FIRST_AT_LEAST)?;
        Some(Self(broken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(width: usize) -> String {
        let columns = ["game".to_owned(), "updates a second".to_owned(), "gap p50 ms".to_owned()];
        let rows = [
            vec!["TCP, with the receiver of 1998".to_owned(), "4.9".to_owned(), "200.0".to_owned()],
            vec!["UDP".to_owned(), "10.0".to_owned(), "100.1".to_owned()],
        ];
        let mut out = Vec::new();
        Page::new(&mut out, width, false).table("  ", &columns, &rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let expected = "  \
  game                            updates a second  gap p50 ms
  ────────────────────────────────────────────────────────────
  TCP, with the receiver of 1998               4.9       200.0
  UDP                                         10.0       100.1
";
        assert_eq!(printed(80), expected);
    }

    #[test]
    fn names_and_the_first_column_are_broken_where_the_page_is_narrow() {
        let expected = "  \
                      updates
                            a  gap p50
  game                 second       ms
  ────────────────────────────────────
  TCP, with the               
  receiver of 1998        4.9    200.0
  UDP                    10.0    100.1
";
        assert_eq!(printed(40).lines().count(), expected.lines().count(), "{}", printed(40));
        assert!(printed(40).lines().all(|line| display_width(line) <= 40), "{}", printed(40));
    }

    #[test]
    fn cells_cannot_act_on_the_terminal() {
        let mut out = Vec::new();
        let (columns, rows) = (["a".to_owned()], [vec!["\x1b[2J".to_owned()]]);
        Page::new(&mut out, 80, false).table("", &columns, &rows).unwrap();
        assert!(!out.contains(&0x1b));
    }
}
