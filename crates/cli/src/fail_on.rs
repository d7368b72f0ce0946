//! `--fail-on`: which findings turn the exit status to 1.

use std::str::FromStr;

use tcpwhy_diagnose::detectors::{Rule, tells};
use tcpwhy_diagnose::report::{Finding, Severity};
use tcpwhy_report::junit::Criteria;

use crate::calls::SPLIT_WRITE;
use crate::rules;

/// The word for any problem.
const PROBLEM: &str = "problem";

/// One of the things named.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FailOn {
    /// Every finding that costs time.
    Problem,
    /// The findings of one rule, whatever their severity.
    Rule(&'static Rule),
}

impl FailOn {
    pub(crate) fn matches(self, finding: &Finding) -> bool {
        match self {
            Self::Problem => finding.severity == Severity::Problem,
            Self::Rule(rule) => tells(finding.rule, rule.name),
        }
    }
}

impl FailOn {
    /// Whether problems of this rule are meant.
    pub(crate) fn names(self, name: &str) -> bool {
        match self {
            Self::Problem => true,
            Self::Rule(rule) => rule.name == name,
        }
    }
}

impl FailOn {
    /// The rule that calls alone can never show.
    pub(crate) fn beyond_calls(self) -> Option<&'static str> {
        match self {
            Self::Rule(rule) if rule.name != SPLIT_WRITE => Some(rule.name),
            Self::Problem | Self::Rule(_) => None,
        }
    }
}

/// What JUnit's failures are.
pub(crate) fn criteria(all: &[FailOn]) -> Criteria {
    let rules = all.iter().filter_map(|one| match one {
        FailOn::Problem => None,
        FailOn::Rule(rule) => Some(rule.name),
    });
    Criteria { problems: all.iter().any(|one| matches!(one, FailOn::Problem)), rules: rules.collect() }
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == PROBLEM { Ok(Self::Problem) } else { rules::named(name).map(Self::Rule) }
    }
}
