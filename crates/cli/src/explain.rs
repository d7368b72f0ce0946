//! `tcpwhy explain [RULE]`.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use tcpwhy_report::explain;
use tcpwhy_report::terminal::Options;

use crate::args::Color;
use crate::{output, rules};

/// `tcpwhy explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The rule's name as a finding shows it; without it, all are listed
    rule: Option<String>,

    /// Use colour: auto (on a terminal), always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Some(name) = &args.rule else {
        rules::print_list(args.color)?;
        return Ok(ExitCode::SUCCESS);
    };
    let rule = rules::named(name).map_err(|what| anyhow!("{name}: {what}"))?;
    let options =
        Options { width: output::columns(), color: output::colored(args.color), ..Options::default() };
    output::print(|out| explain::write(out, rule, &options))?;
    Ok(ExitCode::SUCCESS)
}
