//! Every row with every column: seconds, the median of several seeds and their range.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tcpwhy_simulate::scenario::{self, Scenario, Table, Variant};

use super::terminal::heading;
use super::{Args, Format, markdown, print_json};
use crate::output::{self, Look};

/// The seconds of one cell's runs, sorted; infinite where a run did not end.
struct Cell(Vec<f64>);

pub(super) fn run(args: &Args, scenario: &Scenario, table: &Table, until: Duration) -> Result<()> {
    let cells: Vec<Cell> =
        table.cells.iter().map(|cell| seconds(cell, table.seeds, args.seed, until)).collect();
    let rows: Vec<&[Cell]> = cells.chunks(table.columns.len()).collect();
    if args.format == Format::Json {
        let of_row = |(name, row): (&String, &&[Cell])| {
            let cells =
                table.columns.iter().zip(row.iter()).map(|(column, cell)| (column.clone(), cell.json()));
            (name.clone(), cells.collect::<serde_json::Map<_, _>>().into())
        };
        let all: serde_json::Map<_, _> = table.rows.iter().zip(&rows).map(of_row).collect();
        return print_json(scenario, &json!({ "seconds": all, "seeds": table.seeds }));
    }
    let columns: Vec<String> =
        std::iter::once("seconds".to_owned()).chain(table.columns.iter().cloned()).collect();
    let text: Vec<Vec<String>> = table
        .rows
        .iter()
        .zip(&rows)
        .map(|(name, row)| std::iter::once(name.clone()).chain(row.iter().map(Cell::text)).collect())
        .collect();
    match args.format {
        Format::Markdown => output::print(|out| {
            markdown::heading(out, scenario)?;
            markdown::table(out, &columns, &text)
        }),
        _ => Look::of(args.color).print(|page| {
            heading(page, scenario)?;
            page.blank()?;
            page.table("  ", &columns, &text)
        }),
    }
}

/// The same run with seeds that follow each other.
fn seconds(cell: &Variant, seeds: u32, first: Option<u64>, until: Duration) -> Cell {
    let first = first.unwrap_or(cell.setup.seed);
    let mut all: Vec<f64> = (0..seeds)
        .map(|n| {
            let mut variant = cell.clone();
            variant.setup.seed = first.wrapping_add(u64::from(n));
            let (_, measured) = scenario::run(&variant, until);
            measured.finished.map_or(f64::INFINITY, |ns| ns as f64 / 1e9)
        })
        .collect();
    all.sort_by(f64::total_cmp);
    Cell(all)
}

impl Cell {
    fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    /// `2.19`, or with its range where runs differ: `2.19 (2.02–2.40)`.
    fn text(&self) -> String {
        let number =
            |seconds: f64| if seconds.is_finite() { format!("{seconds:.2}") } else { "∞".to_owned() };
        let (low, high) = (number(self.0[0]), number(self.0[self.0.len() - 1]));
        let median = number(self.median());
        if low == high { median } else { format!("{median} ({low}–{high})") }
    }

    fn json(&self) -> serde_json::Value {
        json!({ "median": self.median(), "least": self.0[0], "most": self.0[self.0.len() - 1] })
    }
}
