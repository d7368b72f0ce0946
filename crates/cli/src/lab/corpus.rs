//! `tcpwhy lab corpus DIR`: records the labelled corpus.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use clap::ValueHint;
use tcpwhy_lab::corpus::{self, Case};
use tcpwhy_lab::lab::Progress;

use super::watch::Watch;
use crate::{TROUBLE, complaint, output};

/// `tcpwhy lab corpus`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The corpus's folder; without it the cases are listed
    #[arg(value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,

    /// Only cases whose names contain this; the others stay as they are in the folder
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,

    /// Runs at a time: most of a run is waiting
    #[arg(long, value_name = "N", default_value_t = 3)]
    at_a_time: usize,
}

/// Records the cases with this seed for all that a link leaves to chance.
pub(super) fn run(args: &Args, seed: u64) -> Result<ExitCode> {
    let is_wanted =
        |case: &Case| args.only.is_empty() || args.only.iter().any(|text| case.name.contains(text.as_str()));
    let mut cases: Vec<Case> = corpus::cases().into_iter().filter(is_wanted).collect();
    cases.iter_mut().for_each(|case| case.run.seed = seed);
    let Some(folder) = &args.folder else {
        output::print(|out| {
            use std::io::Write;
            cases.iter().try_for_each(|case| writeln!(out, "{}: {}", case.name, case.story))
        })?;
        return Ok(ExitCode::SUCCESS);
    };
    tcpwhy_lab::place::enter()?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let failed = AtomicU64::new(0);
    let labels = {
        let watch = Watch::new("corpus", (1, 1));
        watch.runs(cases.len() as u64);
        corpus::build(&cases, folder, args.at_a_time, &|case, error| {
            if let Some(error) = error {
                failed.fetch_add(1, Ordering::Relaxed);
                watch.line(&format!("{}: {error:#}", case.name));
            }
            watch.run(&case.name);
            watch.done();
        })
    };
    corpus::merge(labels, folder)?;
    match failed.into_inner() {
        0 => Ok(ExitCode::SUCCESS),
        failed => {
            complaint::say(&format!("{failed} cases could not be recorded; their old labels are kept"));
            Ok(TROUBLE.into())
        }
    }
}
