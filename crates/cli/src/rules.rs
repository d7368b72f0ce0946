//! `tcpwhy rules`, and finding a rule by its name.

use std::process::ExitCode;

use anyhow::Result;
use tcpwhy_diagnose::detectors::{RULES, Rule};
use tcpwhy_report::rules;
use tcpwhy_report::terminal::Options;

use crate::args::{Color, Format};
use crate::output;

/// How alike two names must be (Jaro-Winkler, 0 to 1) for one to be meant by the other; clap's own suggestions
/// use the same figure.
const ALIKE: f64 = 0.7;

/// Names suggested at most.
const SUGGESTIONS: usize = 3;

/// `tcpwhy rules`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// terminal, for people, or json, for programs (tcpwhy-rules/1)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Terminal)]
    format: Format,

    /// Use colour: auto (on a terminal), always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match args.format {
        Format::Terminal => print_list(args.color)?,
        Format::Json => output::print(|out| rules::write_json(out, RULES, env!("CARGO_PKG_VERSION")))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the list for people.
pub(crate) fn print_list(color: Color) -> Result<()> {
    let options = Options { width: output::columns(), color: output::colored(color), ..Options::default() };
    output::print(|out| rules::write(out, RULES, &options))
}

/// The rule of that name, or what to say: the names that may have been meant.
pub(crate) fn named(name: &str) -> Result<&'static Rule, String> {
    Rule::named(name).ok_or_else(|| {
        let nearest = nearest(name, RULES.iter().map(|rule| rule.name));
        if nearest.is_empty() {
            "no such rule, try: tcpwhy rules".to_owned()
        } else {
            format!("no such rule, did you mean {}?", nearest.join(" or "))
        }
    })
}

/// Those of `known` that `name` may be meant for, the likeliest first.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut alike: Vec<_> = known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(likeness, known)| *likeness > ALIKE || (name.len() > 2 && known.contains(name)))
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    alike.into_iter().map(|(_, known)| known).take(SUGGESTIONS).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typing_errors_and_halves_find_their_rule() {
        let known = ["nagle-delayed-ack", "nagle-hold", "zero-window", "slow-server"];
        assert_eq!(nearest("nagel-delayed-ack", known.into_iter())[0], "nagle-delayed-ack");
        assert_eq!(nearest("zerowindow", known.into_iter()), ["zero-window"]);
        assert_eq!(nearest("server", known.into_iter()), ["slow-server"]);
        assert!(nearest("xyz", known.into_iter()).is_empty());
    }
}
