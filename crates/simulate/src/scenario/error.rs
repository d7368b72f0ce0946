//! What is wrong with a scenario.

use std::fmt;

/// Why a file is no scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The line it is about, from 1; `None` where it is about the whole.
    pub line: Option<usize>,
    /// What is wrong, and what to try.
    pub what: String,
}

/// Names no more alike than this are not suggested (Jaro-Winkler, 0 to 1): `rat` is still `rate`.
const ALIKE: f64 = 0.75;

impl ScenarioError {
    pub(super) fn about(what: impl Into<String>) -> Self {
        Self { line: None, what: what.into() }
    }

    /// The parser's complaint with the line it is about, and a suggestion where a name is unknown.
    pub(super) fn of_parser(text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let message = error.message().trim().replace('\n', " ");
        Self {
            line,
            what: suggestion(&message).map_or(message.clone(), |name| format!("{message}: is it `{name}`?")),
        }
    }
}

/// The name that resembles the unknown one: the parser says "unknown field `a`, expected one of `b`, `c`".
fn suggestion(message: &str) -> Option<&str> {
    let mut names = message.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    closest(names.next()?, names)
}

/// The name that resembles `unknown` most, if any does.
pub(super) fn closest<'a>(unknown: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |name: &str| strsim::jaro_winkler(unknown, name);
    let best = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > ALIKE).then_some(best)
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for ScenarioError {}
