//! Scenarios: small TOML files that say who talks to whom, about what, over which path, and which variants of it are
//! to be compared. docs/simulator.md describes every key.

mod built_in;
mod error;
mod file;
mod measure;
mod programs;
mod quantity;
mod setup;
mod step;

use std::collections::BTreeSet;
use std::time::Duration;

pub use built_in::{BUILT_IN, named};
pub use error::ScenarioError;
use file::{File, Part};
pub use measure::{Held, Lost, Measured, run};

use crate::world::Setup;

/// What a file describes.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A short name for headings and file names.
    pub name: String,
    /// What it shows, in a sentence or two.
    pub about: String,
    /// Where the story or its numbers come from; may be empty.
    pub source: String,
    /// When a run is stopped that has not ended by itself.
    pub until: Duration,
    /// What is run.
    pub runs: Runs,
}

/// One thing after the other, or a table.
#[derive(Clone, Debug)]
pub enum Runs {
    /// Variants, side by side; at least one.
    Variants(Vec<Variant>),
    /// Every row with every column.
    Table(Table),
}

/// One way to run a scenario.
#[derive(Clone, Debug)]
pub struct Variant {
    /// A short name.
    pub name: String,
    /// What is special about it; may be empty.
    pub about: String,
    /// What the simulator needs.
    pub setup: Setup,
}

/// Rows and columns; what differs from run to run is the seed.
#[derive(Clone, Debug)]
pub struct Table {
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Row by row.
    pub cells: Vec<Variant>,
    /// Runs of each cell, with seeds that follow each other.
    pub seeds: u32,
}

/// A run that has not ended by itself ends here.
const UNTIL: Duration = Duration::from_secs(300);
/// Runs of a cell without `seeds`, and the most.
const SEEDS: (u32, u32) = (9, 101);
/// Variants, or cells of a table.
const MOST_RUNS: usize = 400;

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// What is wrong, with its line where one can be named.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let file: File = toml::from_str(text).map_err(|error| ScenarioError::of_parser(text, &error))?;
        let base = Part {
            name: file.name.clone(),
            about: String::new(),
            client: file.client,
            server: file.server,
            link: file.link,
            traffic: file.traffic,
        };
        let seed = file.seed.unwrap_or(1);
        let is_table = !file.row.is_empty() || !file.column.is_empty();
        if is_table && !file.variant.is_empty() {
            return Err(ScenarioError::about("[[variant]] and [[row]] with [[column]] exclude each other"));
        }
        let runs = if is_table {
            Runs::Table(table(&base, &file.row, &file.column, seed, file.seeds)?)
        } else {
            Runs::Variants(variants(&base, &file.variant, seed)?)
        };
        Ok(Self {
            name: file.name,
            about: file.about,
            source: file.source,
            until: file.until.map_or(UNTIL, |until| until.0),
            runs,
        })
    }

    /// The same with another seed.
    pub fn with_seed(mut self, seed: u64) -> Self {
        let variants = match &mut self.runs {
            Runs::Variants(variants) => variants,
            Runs::Table(table) => &mut table.cells,
        };
        for variant in variants {
            variant.setup.seed = seed;
        }
        self
    }
}

fn variants(base: &Part, parts: &[Part], seed: u64) -> Result<Vec<Variant>, ScenarioError> {
    if parts.is_empty() {
        return Ok(vec![variant(base, base, seed)?]);
    }
    check_names("variant", parts)?;
    parts.iter().map(|part| variant(base, part, seed)).collect()
}

fn variant(base: &Part, part: &Part, seed: u64) -> Result<Variant, ScenarioError> {
    let setup = setup::setup(&part.over(base), seed)
        .map_err(|error| ScenarioError { what: format!("{}: {}", part.name, error.what), ..error })?;
    Ok(Variant { name: part.name.clone(), about: part.about.clone(), setup })
}

fn table(
    base: &Part,
    rows: &[Part],
    columns: &[Part],
    seed: u64,
    seeds: Option<u32>,
) -> Result<Table, ScenarioError> {
    check_names("row", rows)?;
    check_names("column", columns)?;
    let seeds = seeds.unwrap_or(SEEDS.0);
    if seeds == 0 || seeds > SEEDS.1 {
        return Err(ScenarioError::about(format!("seeds: from 1 to {}", SEEDS.1)));
    }
    if rows.len() * columns.len() > MOST_RUNS {
        return Err(ScenarioError::about(format!("more than {MOST_RUNS} cells")));
    }
    let mut cells = Vec::new();
    for row in rows {
        for column in columns {
            let mut cell = column.over(&row.over(base));
            cell.name = format!("{}, {}", row.name, column.name);
            cells.push(variant(&cell, &cell, seed)?);
        }
    }
    let names = |parts: &[Part]| parts.iter().map(|part| part.name.clone()).collect();
    Ok(Table { rows: names(rows), columns: names(columns), cells, seeds })
}

/// Each has a name of its own.
fn check_names(what: &str, parts: &[Part]) -> Result<(), ScenarioError> {
    if parts.is_empty() || parts.len() > MOST_RUNS {
        return Err(ScenarioError::about(format!("from 1 to {MOST_RUNS} times [[{what}]]")));
    }
    let mut names = BTreeSet::new();
    for part in parts {
        if part.name.is_empty() {
            return Err(ScenarioError::about(format!("a [[{what}]] without name")));
        }
        if !names.insert(&part.name) {
            return Err(ScenarioError::about(format!("two [[{what}]] are called {}", part.name)));
        }
    }
    Ok(())
}
