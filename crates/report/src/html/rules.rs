//! What rules mean, as HTML: the one piece of HTML in a page's data. It is made of the project's own texts.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Options, Parser, html};
use serde::Serialize;
use tcpwhy_diagnose::detectors::{RULES, Recipe};

use crate::explain::markdown;

/// What a rule means.
#[derive(Clone, Debug, Serialize)]
pub struct RuleText {
    /// One sentence.
    pub summary: &'static str,
    /// All of its documentation, as HTML.
    pub html: String,
    /// Its fixes in code; the page shows them in the reader's language.
    pub recipes: &'static [&'static Recipe],
}

/// The texts of the rules with these names.
pub fn texts(names: &BTreeSet<&'static str>) -> BTreeMap<&'static str, RuleText> {
    let named = RULES.iter().filter(|rule| names.contains(rule.name));
    named
        .map(|rule| {
            let text = markdown(rule.doc);
            let mut html = String::new();
            html::push_html(&mut html, Parser::new_ext(&text, Options::ENABLE_TABLES));
            (rule.name, RuleText { summary: rule.summary(), html, recipes: rule.recipes })
        })
        .collect()
}
