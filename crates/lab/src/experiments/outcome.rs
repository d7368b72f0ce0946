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

impl Outcome {
    /// An outcome with nothing in it yet.
    pub fn new(experiment: &'static str, source: &'static str) -> Self {
        Self { experiment, source, claims: Vec::new(), tables: Vec::new(), notes: Vec::new() }
    }
}

/// One claim of the seed.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// What the seed says, in our words: one short sentence.
    pub claim: &'static str,
    /// The seed's own figure; empty where it gives none.
    pub seed: &'static str,
    /// What was measured here, with figures of the same kind.
    pub measured: String,
    /// Whether it holds.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Claim {
    /// The verdict in words. What no seed says cannot have held once: that it does not hold is all there is to say.
    pub fn word(&self) -> &'static str {
        match &self.verdict {
            Verdict::Holds => "holds",
            Verdict::NoLongerHolds(_) if self.seed.is_empty() => "does not hold here",
            Verdict::NoLongerHolds(_) => "no longer holds",
            Verdict::Unknown(_) => "could not be measured",
        }
    }
}

/// Whether a claim holds on this kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", content = "because")]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not, because ….
    NoLongerHolds(String),
    /// It could not be measured, because ….
    Unknown(String),
}

impl Verdict {
    /// It holds if `holds`; else not, because `why`.
    pub fn from(holds: bool, why: &str) -> Self {
        if holds { Self::Holds } else { Self::NoLongerHolds(why.to_owned()) }
    }
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

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Self { title: title.into(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}
