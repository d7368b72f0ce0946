//! What-if against the labelled corpus: what it predicts is what really removing a cause saved.

use std::path::Path;
use std::sync::LazyLock;

use tcpwhy_lab::corpus::score::{CostError, Prediction, predict, rows};

static PREDICTIONS: LazyLock<Vec<Prediction>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    predict(&folder).expect("the stored corpus")
});

/// The median of how far predictions may be off, of the savings and of the time that is left.
const MEDIAN: f64 = 0.10;

#[test]
fn half_of_the_predictions_are_within_ten_percent() {
    let rows = rows(&PREDICTIONS);
    let all = rows.last().expect("a row for all");
    assert!(all.captures >= 150, "{} captures", all.captures);
    let median = |error: &Option<CostError>| error.as_ref().map_or(f64::INFINITY, |error| error.p50);
    assert!(median(&all.saving) <= MEDIAN && median(&all.after) <= MEDIAN, "{all:?}");
}

#[test]
fn no_prediction_has_the_wrong_sign() {
    let wrong: Vec<&Prediction> = PREDICTIONS.iter().filter(|one| one.has_wrong_sign()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Silence is honest, and no use: of ten captures at least nine have a figure.
#[test]
fn most_captures_can_be_played_again() {
    let silent = PREDICTIONS.iter().filter(|one| one.predicted.is_none()).count();
    assert!(silent * 10 <= PREDICTIONS.len(), "{silent} of {} have no prediction", PREDICTIONS.len());
}

/// No cause is one that can never be predicted.
#[test]
fn every_cause_can_be_predicted() {
    let rows = rows(&PREDICTIONS);
    assert!(rows.len() > 10, "{} causes", rows.len());
    let silent: Vec<&str> =
        rows.iter().filter(|row| row.silent == row.captures).map(|row| row.name.as_str()).collect();
    assert!(silent.is_empty(), "{silent:?}");
}
