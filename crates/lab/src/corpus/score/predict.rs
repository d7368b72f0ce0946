//! What-if against reality: what each fix was predicted to save, and what it saved when it was really made.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use tcpwhy_diagnose::report::{Blamed, Source};
use tcpwhy_simulate::whatif::{Answer, Corked, Fix, Gain, Unfit, ask, connections};
use tcpwhy_simulate::world::Side;

use super::super::case::Party;
use super::super::label::{self, Label, LabelledCause};
use super::figures::CostError;
use crate::capture::{Capture, Vantage};

/// One cause of one capture whose removal is a fix.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// The label's name.
    pub name: String,
    /// The cause.
    pub cause: String,
    /// The fix, as `tcpwhy whatif --fix` names it.
    pub fix: String,
    /// What removing the cause really saved, in ms.
    pub measured_ms: f64,
    /// How long the run took without it, in ms.
    pub after_ms: f64,
    /// What the fix is said to save and how long it then takes, in ms; none where no figure was given.
    pub predicted: Option<(f64, f64)>,
    /// Why there is none.
    pub silent: Option<String>,
    /// Whether somebody waits for answers, so that the whole takes less time with the fix.
    pub has_exchanges: bool,
}

impl Prediction {
    /// How far the saving is off, as a share of the measured one.
    pub fn saving_error(&self) -> Option<f64> {
        let (saved, _) = self.predicted?;
        Some((saved - self.measured_ms).abs() / self.measured_ms.abs())
    }

    /// How far the time with the fix is off, as a share of the measured one, where the whole takes less time with it.
    pub fn after_error(&self) -> Option<f64> {
        let (_, after) = self.predicted.filter(|_| self.has_exchanges)?;
        Some((after - self.after_ms).abs() / self.after_ms)
    }

    /// Whether it was said to save what it costs, or to cost what it saves.
    pub fn has_wrong_sign(&self) -> bool {
        self.predicted.is_some_and(|(saved, _)| (saved > 0.0) != (self.measured_ms > 0.0))
    }
}

/// Predictions of one cause, or of all.
#[derive(Clone, Debug)]
pub struct Row {
    /// The cause, or `all`.
    pub name: String,
    /// Captures with it.
    pub captures: usize,
    /// Captures of which nothing was predicted.
    pub silent: usize,
    /// Errors of the savings, if there are any.
    pub saving: Option<CostError>,
    /// Errors of the time with the fix, if there are any.
    pub after: Option<CostError>,
    /// Savings that were none, or the other way round.
    pub wrong_signs: usize,
}

/// One row a cause in the order of their names, and one for all.
pub fn rows(predictions: &[Prediction]) -> Vec<Row> {
    let names: BTreeSet<&str> = predictions.iter().map(|prediction| prediction.cause.as_str()).collect();
    let of = |name: &str, chosen: &[&Prediction]| Row {
        name: name.to_owned(),
        captures: chosen.len(),
        silent: chosen.iter().filter(|prediction| prediction.predicted.is_none()).count(),
        saving: quantiles(chosen.iter().filter_map(|prediction| prediction.saving_error())),
        after: quantiles(chosen.iter().filter_map(|prediction| prediction.after_error())),
        wrong_signs: chosen.iter().filter(|prediction| prediction.has_wrong_sign()).count(),
    };
    let mut rows: Vec<Row> = names
        .iter()
        .map(|name| of(name, &predictions.iter().filter(|one| one.cause == *name).collect::<Vec<_>>()))
        .collect();
    rows.push(of("all", &predictions.iter().collect::<Vec<_>>()));
    rows
}

fn quantiles(errors: impl Iterator<Item = f64>) -> Option<CostError> {
    let mut errors: Vec<f64> = errors.collect();
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| errors.get((errors.len() as f64 * share) as usize).copied();
    Some(CostError { p50: at(0.5)?, p90: at(0.9)? })
}

/// Less than this share of a run's time: from run to run the same programs differ by as much.
const MINOR: f64 = 0.05;

/// Predicts every fix that the labels of `folder` know the truth about.
pub fn predict(folder: &Path) -> Result<Vec<Prediction>> {
    let mut all = Vec::new();
    for label in label::load(folder)? {
        let causes: Vec<Cured<'_>> =
            label.causes.iter().filter_map(|cause| Cured::of(&label, cause)).collect();
        if causes.is_empty() {
            continue;
        }
        let path = folder.join(&label.file);
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let capture = Capture { vantage: Vantage::Middle, bytes };
        let fixes: Vec<Fix> = causes.iter().map(|cured| cured.fix).collect();
        let answer = ask(&connections(&capture.packets()), corked(&capture, &label.file), &fixes);
        all.extend(causes.iter().map(|cured| cured.prediction(&label, &answer)));
    }
    Ok(all)
}

/// A cause, the fix that does what its removal did, and where.
struct Cured<'a> {
    cause: &'a LabelledCause,
    fix: Fix,
    sides: &'static [Side],
}

impl<'a> Cured<'a> {
    /// `None` for what is no fix, for what this capture cannot show, and for what is too little to be measured.
    fn of(label: &Label, cause: &'a LabelledCause) -> Option<Self> {
        let is_known = !cause.unseen && cause.cost_ms.is_some_and(|cost| cost >= MINOR * label.total_ms);
        let fix = match cause.cause.as_str() {
            "split-request" | "split-response" => Fix::OneWrite,
            "cork" => Fix::NoCork,
            "merged-updates" | "nagle-burst" => Fix::NoDelay,
            "handshake-per-request" => Fix::KeepAlive,
            "small-receive-window" => Fix::ReceiveBuffer(16 << 20),
            "delayed-ack" => Fix::QuickAck,
            "tail-loss" | "loss" | "random-loss" => Fix::NoLoss,
            _ => return None,
        };
        let sides: &[Side] = match cause.side {
            Party::Client => &[Side::Client],
            Party::Server => &[Side::Server],
            _ => &[Side::Client, Side::Server],
        };
        is_known.then_some(Self { cause, fix, sides })
    }

    fn prediction(&self, label: &Label, answer: &Result<Answer, Unfit>) -> Prediction {
        let measured_ms = self.cause.cost_ms.unwrap_or(0.0);
        let silent = match answer {
            Err(unfit) => Some(unfit.to_string()),
            Ok(answer) if !answer.likeness.is_good() => Some(answer.likeness.to_string()),
            Ok(_) => None,
        };
        let answer = answer.as_ref().ok().filter(|_| silent.is_none());
        // A fix that changes nothing saves nothing.
        let saved = answer.map(|answer| self.gain(answer).map_or(0.0, |gain| gain.saved_ms));
        Prediction {
            name: label.name.clone(),
            cause: self.cause.cause.clone(),
            fix: self.fix.to_string(),
            measured_ms,
            after_ms: label.total_ms - measured_ms,
            predicted: saved.map(|saved| (saved, label.total_ms - saved)),
            silent,
            has_exchanges: answer.is_some_and(|answer| answer.has_exchanges),
        }
    }

    fn gain<'b>(&self, answer: &'b Answer) -> Option<&'b Gain> {
        let is_here = |gain: &Gain| gain.side.is_none_or(|side| self.sides.contains(&side));
        answer.gains.iter().find(|gain| gain.fix == self.fix && is_here(gain))
    }
}

/// As the command does it: corks are the analysis's to find.
fn corked(capture: &Capture, name: &str) -> Corked {
    let mut corked = [false; 2];
    for finding in capture.diagnose(name).findings().filter(|finding| finding.rule == "cork-timeout") {
        match finding.blame.side {
            Blamed::Client => corked[0] = true,
            Blamed::Server => corked[1] = true,
            _ => {}
        }
    }
    corked
}
