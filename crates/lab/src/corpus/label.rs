//! What is stored of a case: `cases.json`, one line each.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::case::{Group, Party};
use super::matrix::cases;
use crate::capture::Vantage;

/// The list's file name in the corpus's folder.
const CASES: &str = "cases.json";

/// One capture and the truth about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Label {
    /// The case's name and the vantage.
    pub name: String,
    /// The capture's file name.
    pub file: String,
    /// What the programs and the path do.
    pub story: String,
    /// What kind of case it is.
    pub group: Group,
    /// Where the capture was made.
    pub vantage: String,
    /// The path in words.
    pub path: String,
    /// Seed of the link's chances.
    pub seed: u64,
    /// What is wrong.
    pub causes: Vec<LabelledCause>,
    /// Rules that are true of it besides.
    pub allowed: Vec<String>,
    /// Messages that the programs exchanged.
    pub messages: u64,
    /// From the first message written to the last one read, in ms.
    pub total_ms: f64,
    /// For how long some message was later than without any cause, in ms.
    pub late_ms: f64,
}

/// One cause and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelledCause {
    /// Its name in tables.
    pub cause: String,
    /// Rules that name it, the best name first.
    pub rules: Vec<String>,
    /// Who is to blame.
    pub side: Party,
    /// What its removal saves, in ms; none for what costs no time.
    pub cost_ms: Option<f64>,
    /// What it costs where it is the only cause, in ms. Causes change each other's cost: a server that works
    /// for long ACKs at once, which makes its client's split writes cheaper.
    pub alone_ms: Option<f64>,
    /// This capture cannot show it: the lost segment never came here, and nothing came behind it. Whoever is
    /// blamed for the time instead is blamed wrongly all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen: bool,
}

impl Label {
    /// The case's name: the label's without the vantage.
    pub fn case(&self) -> &str {
        let vantage = self.name.strip_suffix(&self.vantage).unwrap_or(&self.name);
        vantage.strip_suffix('-').unwrap_or(vantage)
    }
}

impl Vantage {
    /// Whether this is where the sender or receiver on `side` runs.
    pub(super) fn is_at(self, side: Party) -> bool {
        matches!(
            (self, side),
            (Self::Client, Party::Client) | (Self::Server, Party::Server) | (Self::Both, _)
        )
    }
}

/// Writes the list, one case a line.
pub(super) fn save(labels: &[Label], folder: &Path) -> Result<()> {
    let path = folder.join(CASES);
    let mut text = Vec::new();
    writeln!(text, "[")?;
    for (number, label) in labels.iter().enumerate() {
        let comma = if number + 1 < labels.len() { "," } else { "" };
        writeln!(text, "{}{comma}", serde_json::to_string(label)?)?;
    }
    writeln!(text, "]")?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Puts new labels in the place of the old ones with their names, drops those of cases that are no more with
/// their captures, and writes the list in the order of the matrix.
pub fn merge(new: Vec<Label>, folder: &Path) -> Result<()> {
    let order: HashMap<String, usize> =
        cases().into_iter().enumerate().map(|(place, case)| (case.name, place)).collect();
    let all = if folder.join(CASES).exists() { load(folder)? } else { Vec::new() };
    let place = |label: &Label| order.get(label.case()).copied();
    let (kept, gone): (Vec<Label>, Vec<Label>) = all
        .into_iter()
        .partition(|old| place(old).is_some() && new.iter().all(|label| label.case() != old.case()));
    for old in gone.iter().filter(|old| new.iter().all(|label| label.file != old.file)) {
        let path = folder.join(&old.file);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let mut all: Vec<Label> = kept.into_iter().chain(new).collect();
    all.sort_by_key(|label| (place(label), label.name.clone()));
    save(&all, folder)
}

/// Reads the list.
pub fn load(folder: &Path) -> Result<Vec<Label>> {
    let path = folder.join(CASES);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))
}
