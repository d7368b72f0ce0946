//! `tcpwhy explain [RULE]`.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tcpwhy_diagnose::detectors::Language;
use tcpwhy_report::explain;
use tcpwhy_report::terminal::Options;

use crate::args::Color;
use crate::{output, rules};

/// Stands for every language.
const ALL: &str = "all";

/// `tcpwhy explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The rule's name as a finding shows it; without it, all are listed
    rule: Option<String>,

    /// The language of the lines of code that mend it
    #[arg(
        long,
        ignore_case = true,
        default_value = Language::C.key(),
        value_parser = language(),
        requires = "rule"
    )]
    language: Shown,

    /// Use colour: auto (on a terminal), always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,
}

/// In which language a fix is shown.
#[derive(Clone, Copy, Debug)]
enum Shown {
    In(Language),
    InAll,
}

fn language() -> impl TypedValueParser<Value = Shown> {
    let values = Language::ALL.map(|language| PossibleValue::new(language.key()).aliases(aliases(language)));
    PossibleValuesParser::new(values.into_iter().chain([PossibleValue::new(ALL)])).map(|word| {
        let meant = |language: &Language| {
            [language.key()].iter().chain(aliases(*language)).any(|known| word.eq_ignore_ascii_case(known))
        };
        Language::ALL.into_iter().find(meant).map_or(Shown::InAll, Shown::In)
    })
}

/// What else people call a language.
fn aliases(language: Language) -> &'static [&'static str] {
    match language {
        Language::C => &["c++", "cpp"],
        Language::Python => &["py"],
        Language::Go => &["golang"],
        Language::NodeJs => &["js", "node", "node.js", "nodejs", "typescript"],
        Language::CSharp => &["c#", "cs", "dotnet"],
        Language::Java | Language::Rust => &[],
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Some(name) = &args.rule else {
        rules::print_list(args.color)?;
        return Ok(ExitCode::SUCCESS);
    };
    let rule = rules::named(name).map_err(|what| anyhow!("{name}: {what}"))?;
    let language = match args.language {
        Shown::In(language) => Some(language),
        Shown::InAll => None,
    };
    let options =
        Options { width: output::columns(), color: output::colored(args.color), ..Options::default() };
    output::print(|out| explain::write(out, rule, language, &options))?;
    Ok(ExitCode::SUCCESS)
}
