//! Tables that read well in a terminal and are Markdown.

use std::fmt::Write;

/// A table: a header and rows of as many cells; all columns but the first are figures, so to the right.
pub(super) fn markdown(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let header: Vec<String> = header.iter().map(|&name| name.to_owned()).collect();
    let mut table = line(&header, &widths);
    for (column, width) in widths.iter().enumerate() {
        let _ = write!(table, "| {}{} ", "-".repeat(width - 1), if column == 0 { '-' } else { ':' });
    }
    table.push_str("|\n");
    for row in rows {
        table.push_str(&line(row, &widths));
    }
    table
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (column, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        let _ =
            if column == 0 { write!(line, "| {cell:<width$} ") } else { write!(line, "| {cell:>width$} ") };
    }
    line.push_str("|\n");
    line
}
