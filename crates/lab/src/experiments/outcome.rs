//! What an experiment brings.

use serde::Serialize;

/// What an experiment brings: the verdict first, then the tables it rests on.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The experiment's name.
    pub experiment: &'static str,
    /// Where the story is from, in one line.
    pub source: &'static str,
    /// The seed's claims, each held against this kernel.
    pub claims: Vec<Claim>,
    /// What was measured.
    pub tables: Vec<Table>,
    /// What else a reader must know: runs that were void, what was left out here.
    pub notes: Vec<String>,
}

/// One claim of the seed.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// What the seed says, in our words, with its figures.
    pub claim: &'static str,
    /// What was measured here, with figures.
    pub measured: String,
    /// Whether it holds.
    pub verdict: Verdict,
}

/// Whether a claim holds on this kernel.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", content = "because")]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not, because ….
    NoLongerHolds(String),
    /// It could not be measured, because ….
    Unknown(String),
}

/// Rows of text; the first column is left-aligned, the others right-aligned.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of the columns, with units.
    pub columns: Vec<String>,
    /// As many cells each as there are columns.
    pub rows: Vec<Vec<String>>,
}
