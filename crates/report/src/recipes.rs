//! A rule's fixes in code as a section of its text.

use std::fmt::Write as _;

use tcpwhy_diagnose::detectors::{Language, Recipe, Rule};

use crate::explain::markdown;

/// Before what the section stands: after what to do.
const NEXT: &str = "## References";

/// All of a rule's text as Markdown, with its fixes in the code of `language`, or of all.
pub(crate) fn document(rule: &Rule, language: Option<Language>) -> String {
    let text = markdown(rule.doc);
    if rule.recipes.is_empty() {
        return text;
    }
    let section = match language {
        Some(language) => in_one(rule.recipes, language),
        None => in_all(rule.recipes),
    };
    let (before, after) = text.split_at(text.find(NEXT).unwrap_or(text.len()));
    format!("{before}{section}{after}")
}

fn in_one(recipes: &[&Recipe], language: Language) -> String {
    let mut section = format!("## In code ({})\n", language.name());
    let known: Vec<_> =
        recipes.iter().filter_map(|recipe| Some((recipe.title, recipe.code_in(language)?))).collect();
    for (title, code) in &known {
        let _ = write!(section, "### {title}\n{}", fenced(language, code));
    }
    if known.is_empty() {
        let _ = writeln!(section, "{} has no call for it.\n", language.name());
    }
    let others = Language::ALL
        .into_iter()
        .filter(|other| *other != language && recipes.iter().any(|recipe| recipe.code_in(*other).is_some()));
    let keys: Vec<_> = others.map(Language::key).collect();
    let _ = writeln!(section, "Other languages: `--language` {}, all.\n", keys.join(", "));
    section
}

fn in_all(recipes: &[&Recipe]) -> String {
    let mut section = "## In code\n".to_owned();
    for recipe in recipes {
        let _ = writeln!(section, "### {}\n", recipe.title);
        for (language, code) in recipe.code {
            let _ = write!(section, "{}:\n{}", language.name(), fenced(*language, code));
        }
    }
    section
}

fn fenced(language: Language, code: &str) -> String {
    format!("\n```{}\n{code}\n```\n\n", language.key())
}
