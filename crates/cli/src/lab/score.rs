//! `tcpwhy lab score [DIR]`: how right the analysis is.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueHint;
use tcpwhy_lab::corpus::score;

use super::Format;
use crate::output;

/// `tcpwhy lab score`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The corpus's folder
    #[arg(value_hint = ValueHint::DirPath, default_value = "tests/corpus")]
    folder: PathBuf,
}

pub(super) fn run(args: &Args, format: Format) -> Result<ExitCode> {
    let score = score::score(&args.folder)?;
    let predictions = score::predict(&args.folder)?;
    match format {
        Format::Terminal => output::print(|out| {
            score::write(out, &score)?;
            score::write_predictions(out, &predictions)
        }),
        Format::Markdown => output::print(|out| {
            score::write_markdown(out, &score)?;
            score::write_predictions_markdown(out, &predictions)
        }),
        Format::Json => {
            let mut whole = serde_json::to_value(&score)?;
            whole["predictions"] = serde_json::to_value(&predictions)?;
            output::print_json(&whole)
        }
    }?;
    Ok(ExitCode::SUCCESS)
}
