//! The figures of a score.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::case::Group;
use super::calibration::{Tenth, calibration};
use super::judge::{Found, Verdict};

/// The whole score.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// What is recorded and must not get worse.
    pub figures: Figures,
    /// How often which finding was made where a cause was (rows) or none (`(none)`).
    pub confusion: BTreeMap<String, BTreeMap<String, u64>>,
    /// By tenth of confidence, how often blames were right.
    pub calibration: Vec<Tenth>,
    /// Each case.
    pub verdicts: Vec<Verdict>,
}

/// The figures that are recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Captures.
    pub cases: u64,
    /// Of all rules together: right blames among right and false ones, 0 to 1.
    pub precision: f64,
    /// By group of cases.
    pub groups: BTreeMap<String, GroupFigures>,
    /// By rule.
    pub rules: BTreeMap<String, RuleFigures>,
    /// Of all costs.
    pub cost_error: CostError,
    /// Share of the connections' time that no line explains, 0 to 1.
    pub unexplained: f64,
}

/// How many causes of a group's cases were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupFigures {
    /// Captures.
    pub cases: u64,
    /// Causes in them.
    pub causes: u64,
    /// Causes found.
    pub found: u64,
    /// Share of them, 0 to 1; 1 where there are none.
    pub recall: f64,
    /// False blames.
    pub false_blames: u64,
}

/// One rule's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleFigures {
    /// Causes whose best name this rule is.
    pub causes: u64,
    /// Those found, by this or another of their names.
    pub found: u64,
    /// Share of them, 0 to 1; 1 where there are none.
    pub recall: f64,
    /// Right blames.
    pub right: u64,
    /// False blames.
    pub wrong: u64,
    /// Share of right ones, 0 to 1; 1 where there are none.
    pub precision: f64,
    /// Of the costs of these causes.
    pub cost_error: CostError,
}

/// How far costs are from the measured ones, each relative to the measured one; of causes that were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostError {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
}

/// Costs below this (ms) say nothing: the wake-up of a program takes as long. Their error is not counted.
const SMALLEST_COST: f64 = 1.0;

impl Found {
    /// By how much the cost is wrong, as a part of the measured cost; `None` where it cannot be judged. What
    /// lies between a cause's cost among the others and its cost alone is right.
    pub fn error(&self) -> Option<f64> {
        let cost = self.cause.cost_ms.filter(|cost| *cost >= SMALLEST_COST && !self.is_minor)?;
        let alone = self.cause.alone_ms.unwrap_or(cost);
        let (least, most) = (cost.min(alone), cost.max(alone));
        let off = (least - self.said_ms).max(self.said_ms - most).max(0.0);
        self.by.map(|_| off / cost)
    }
}

impl Score {
    /// Adds verdicts up.
    pub fn of(verdicts: Vec<Verdict>) -> Self {
        let booked: f64 = verdicts.iter().map(|verdict| verdict.booked_ms).sum();
        let unexplained: f64 = verdicts.iter().map(|verdict| verdict.unexplained_ms).sum();
        let rules = rules(&verdicts);
        let (right, wrong) = rules.values().fold((0, 0), |sum, one| (sum.0 + one.right, sum.1 + one.wrong));
        let figures = Figures {
            cases: verdicts.len() as u64,
            precision: share(right, right + wrong),
            groups: groups(&verdicts),
            rules,
            cost_error: CostError::of(verdicts.iter().flat_map(|verdict| &verdict.found)),
            unexplained: if booked > 0.0 { unexplained / booked } else { 0.0 },
        };
        Self { figures, confusion: confusion(&verdicts), calibration: calibration(&verdicts), verdicts }
    }
}

impl CostError {
    fn of<'a>(found: impl Iterator<Item = &'a Found>) -> Self {
        let mut errors: Vec<f64> = found.filter_map(Found::error).collect();
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let index = (share * errors.len() as f64) as usize;
            errors.get(index.min(errors.len().saturating_sub(1))).copied().unwrap_or(0.0)
        };
        Self { p50: at(0.5), p90: at(0.9) }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

fn groups(verdicts: &[Verdict]) -> BTreeMap<String, GroupFigures> {
    let mut groups: BTreeMap<String, GroupFigures> = BTreeMap::new();
    for verdict in verdicts {
        let figures = groups.entry(verdict.label.group.name().to_owned()).or_default();
        figures.cases += 1;
        figures.causes += verdict.found.iter().filter(|found| found.counts()).count() as u64;
        figures.found += verdict.found.iter().filter(|found| found.by.is_some()).count() as u64;
        figures.false_blames += verdict.blames.iter().filter(|blame| blame.is_false()).count() as u64;
    }
    for figures in groups.values_mut() {
        figures.recall = share(figures.found, figures.causes);
    }
    groups
}

fn rules(verdicts: &[Verdict]) -> BTreeMap<String, RuleFigures> {
    let mut rules: BTreeMap<String, RuleFigures> = BTreeMap::new();
    let all = || verdicts.iter().flat_map(|verdict| &verdict.found);
    let best = |found: &Found| found.cause.rules.first().cloned().unwrap_or_default();
    for found in all().filter(|found| found.counts()) {
        let figures = rules.entry(best(found)).or_default();
        figures.causes += 1;
        figures.found += u64::from(found.by.is_some());
    }
    for blame in verdicts.iter().flat_map(|verdict| &verdict.blames) {
        let figures = rules.entry(blame.rule.to_owned()).or_default();
        figures.right += u64::from(blame.names.is_some());
        figures.wrong += u64::from(blame.is_false());
    }
    for (rule, figures) in &mut rules {
        figures.recall = share(figures.found, figures.causes);
        figures.precision = share(figures.right, figures.right + figures.wrong);
        figures.cost_error = CostError::of(all().filter(|found| best(found) == *rule));
    }
    rules
}

/// The row of cases without a cause that a finding could name.
const NO_CAUSE: &str = "(none)";
/// The column of causes that were missed.
const MISSED: &str = "(missed)";

/// Each blame stands in the row of the cause it names; false ones in the rows of all the case's causes. What
/// a label allows stands nowhere.
fn confusion(verdicts: &[Verdict]) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut table: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let mut count = |row: &str, column: &str| {
        *table.entry(row.to_owned()).or_default().entry(column.to_owned()).or_default() += 1;
    };
    for verdict in verdicts {
        for blame in &verdict.blames {
            if let Some(cause) = &blame.names {
                count(cause, blame.rule);
            } else if blame.is_false() && verdict.found.is_empty() {
                count(NO_CAUSE, blame.rule);
            } else if blame.is_false() {
                verdict.found.iter().for_each(|found| count(&found.cause.cause, blame.rule));
            }
        }
        for found in verdict.found.iter().filter(|found| found.is_missed()) {
            count(&found.cause.cause, MISSED);
        }
    }
    table
}

impl Group {
    /// As reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Compound => "compound",
            Self::LookAlike => "look-alike",
            Self::Clean => "clean",
        }
    }
}

impl Figures {
    /// In what these figures are worse than the recorded ones.
    pub fn worse_than(&self, recorded: &Self) -> Vec<String> {
        let mut worse = Worse::default();
        worse.unless_at_least("captures", self.cases as f64, recorded.cases as f64);
        worse.unless_at_least("precision", self.precision, recorded.precision);
        for (name, then) in &recorded.groups {
            let now = self.groups.get(name).copied().unwrap_or_default();
            worse.unless_at_least(&format!("recall of {name} cases"), now.recall, then.recall);
            let (now, then) = (now.false_blames as f64, then.false_blames as f64);
            worse.unless_at_most(&format!("false blames of {name} cases"), now, then);
        }
        for (name, then) in &recorded.rules {
            // A rule that blames nothing any more and names no cause has no figures.
            let silent = RuleFigures { recall: share(0, then.causes), precision: 1.0, ..Default::default() };
            let now = self.rules.get(name).copied().unwrap_or(silent);
            worse.unless_at_least(&format!("recall of {name}"), now.recall, then.recall);
            worse.unless_at_least(&format!("precision of {name}"), now.precision, then.precision);
        }
        worse.unless_at_most("median cost error", self.cost_error.p50, recorded.cost_error.p50);
        worse.unless_at_most("90th percentile of cost errors", self.cost_error.p90, recorded.cost_error.p90);
        worse.unless_at_most("unexplained share", self.unexplained, recorded.unexplained);
        worse.0
    }
}

/// Figures that are worse than recorded, in words.
#[derive(Default)]
struct Worse(Vec<String>);

impl Worse {
    fn unless_at_least(&mut self, what: &str, now: f64, then: f64) {
        if now < then - ROUNDING {
            self.0.push(format!("{what}: {now:.4}, recorded is {then:.4}"));
        }
    }

    fn unless_at_most(&mut self, what: &str, now: f64, then: f64) {
        if now > then + ROUNDING {
            self.0.push(format!("{what}: {now:.4}, recorded is {then:.4}"));
        }
    }
}

/// Figures are stored with as many digits as f64 has; this is for the last one.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::super::super::case::Party;
    use super::super::super::label::LabelledCause;
    use super::*;

    fn found(cost: f64, alone: f64, said: f64) -> Found {
        let cause = LabelledCause {
            cause: "split-request".into(),
            rules: vec!["split-write".into()],
            side: Party::Client,
            cost_ms: Some(cost),
            alone_ms: Some(alone),
            unseen: false,
        };
        Found { cause, is_minor: false, by: Some("split-write"), said_ms: said }
    }

    #[test]
    fn a_cost_is_wrong_by_what_it_lies_outside_of_the_measured_ones() {
        assert_eq!(found(100.0, 100.0, 110.0).error(), Some(0.1));
        assert_eq!(found(100.0, 300.0, 250.0).error(), Some(0.0));
        assert_eq!(found(100.0, 300.0, 320.0).error(), Some(0.2));
        assert_eq!(found(100.0, 300.0, 50.0).error(), Some(0.5));
    }

    #[test]
    fn every_fall_is_named_and_no_rise_is() {
        let rule = |recall| RuleFigures { causes: 4, recall, precision: 1.0, ..RuleFigures::default() };
        let figures = |recall, p50| Figures {
            cases: 10,
            precision: 1.0,
            rules: [("split-write".to_owned(), rule(recall))].into(),
            cost_error: CostError { p50, p90: 0.2 },
            ..Figures::default()
        };
        let recorded = figures(0.75, 0.05);
        assert_eq!(figures(0.75, 0.05).worse_than(&recorded), Vec::<String>::new());
        assert_eq!(figures(1.0, 0.01).worse_than(&recorded), Vec::<String>::new());
        assert_eq!(figures(0.5, 0.05).worse_than(&recorded).len(), 1);
        assert_eq!(figures(0.75, 0.06).worse_than(&recorded).len(), 1);
    }
}
