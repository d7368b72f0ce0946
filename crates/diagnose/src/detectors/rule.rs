//! What a rule is, and the list of them all.

use super::{Recipe, Subject};
use crate::diagnosis::Diagnosis;
use crate::hops::Passage;
use crate::report::{Finding, Severity};

/// One rule: its name, the text that `tcpwhy explain`, docs/rules/ and the JSON share, and its check.
#[derive(Debug)]
pub struct Rule {
    /// Kebab-case name, after the fault.
    pub name: &'static str,
    /// How much its findings matter.
    pub severity: Severity,
    /// Markdown: one sentence, then the sections of [`Rule::HEADINGS`].
    pub doc: &'static str,
    /// What mends it in a program's own code, the best first; none where that is not a matter of a few lines.
    pub recipes: &'static [&'static Recipe],
    /// How it is found.
    pub check: Check,
}

/// What a rule looks at.
#[derive(Debug)]
pub enum Check {
    /// Each connection for itself.
    Connection(fn(&Subject<'_>, &mut Vec<Finding>)),
    /// The capture as a whole.
    Capture(fn(&Diagnosis, &mut Vec<Finding>)),
    /// Each direction of a conversation that was seen on both sides of a proxy, and which captures these are.
    Passage(fn(&Passage<'_>, [usize; 2], &mut Vec<Finding>)),
}

impl Rule {
    /// The sections every rule's text has, in this order.
    pub const HEADINGS: [&'static str; 4] =
        ["## What it means", "## How it is detected", "## What to do", "## References"];

    /// The first sentence of the text.
    pub fn summary(&self) -> &'static str {
        self.doc.lines().next().unwrap_or("").trim()
    }

    /// The rule of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        super::RULES.iter().copied().find(|rule| rule.name == name)
    }
}

/// Declares a rule from its doc comment:
/// `rule! { /// … RULE = "name", Severity::Problem, Check::Connection(check), [RECIPE, …] }`; the recipes may be left out.
macro_rules! rule {
    ($(#[doc = $doc:literal])+ $id:ident = $name:literal, $severity:expr, $check:expr $(, [$($recipe:ident),+])?) => {
        $(#[doc = $doc])+
        pub(crate) static $id: crate::detectors::Rule = crate::detectors::Rule {
            name: $name,
            severity: $severity,
            doc: concat!($($doc, "\n"),+),
            recipes: &[$($(&crate::detectors::recipes::$recipe),+)?],
            check: $check,
        };
    };
}
pub(crate) use rule;

#[cfg(test)]
mod tests {
    use super::super::RULES;
    use super::*;

    #[test]
    fn every_rule_has_its_sections_in_order_and_a_summary_of_one_sentence() {
        for rule in RULES {
            let headings: Vec<_> =
                rule.doc.lines().map(str::trim).filter(|line| line.starts_with("## ")).collect();
            assert_eq!(headings, Rule::HEADINGS, "{}", rule.name);
            assert!(rule.summary().ends_with('.'), "{}: {}", rule.name, rule.summary());
            assert!(rule.summary().len() <= 110, "{}: {}", rule.name, rule.summary());
        }
    }

    #[test]
    fn rules_are_sorted_by_name_and_unique() {
        assert!(RULES.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
