//! What a rule is, and the list of them all.

use crate::report::Severity;

/// One rule: its name, and the text that `tcpwhy explain`, docs/rules/ and the JSON share.
#[derive(Debug)]
pub struct Rule {
    /// Kebab-case name, after the fault.
    pub name: &'static str,
    /// How much its findings matter.
    pub severity: Severity,
    /// Markdown: one sentence, then the sections of [`Rule::HEADINGS`].
    pub doc: &'static str,
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
        RULES.iter().copied().find(|rule| rule.name == name)
    }
}

/// Declares a rule from its doc comment: `rule! { /// … RULE = "name", Severity::Problem }`.
macro_rules! rule {
    ($(#[doc = $doc:literal])+ $id:ident = $name:literal, $severity:expr) => {
        $(#[doc = $doc])+
        pub static $id: crate::detectors::Rule = crate::detectors::Rule {
            name: $name,
            severity: $severity,
            doc: concat!($($doc, "\n"),+),
        };
    };
}
pub(crate) use rule;

/// Every rule, by name.
pub static RULES: &[&Rule] = &[];
