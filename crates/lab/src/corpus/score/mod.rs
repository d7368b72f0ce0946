//! How right an analysis is, against labels that it has not seen.
//!
//! A *blame* is a finding that says something is wrong: of severity `problem`, or with a cost and a side other
//! than the capture. A blame is right if its rule and side are those of one of the case's causes; it is false
//! if they are not, unless the label allows the rule.

mod calibration;
mod figures;
mod judge;
mod predict;
mod text;

use std::path::Path;

use anyhow::{Context, Result};

pub use calibration::Tenth;
pub use figures::{CostError, Figures, GroupFigures, RuleFigures, Score};
pub use judge::{Blame, Found, Verdict, judge};
pub use predict::{Prediction, Row, predict, rows};
pub use text::{write, write_markdown, write_predictions, write_predictions_markdown};

use super::label;
use crate::capture::{Capture, Vantage};

/// Runs the analyser over the corpus in `folder`.
pub fn score(folder: &Path) -> Result<Score> {
    let mut verdicts = Vec::new();
    for label in label::load(folder)? {
        let path = folder.join(&label.file);
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        // Only the bytes matter to the analyser: where it was made is what it has to find out.
        let capture = Capture { vantage: Vantage::Middle, bytes };
        let diagnosis = capture.diagnose(&label.file);
        verdicts.push(judge(label, &diagnosis));
    }
    Ok(Score::of(verdicts))
}
