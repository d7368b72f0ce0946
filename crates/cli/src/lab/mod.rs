//! `tcpwhy lab [EXPERIMENT]`: the seeds' experiments on this machine's kernel.

mod compare;
mod corpus;
mod keys;
mod markdown;
mod page;
mod score;
mod terminal;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Subcommand, ValueEnum, ValueHint};
use serde_json::json;
use tcpwhy_lab::experiments::{Experiment, Outcome};
use tcpwhy_lab::lab::Lab;
use tcpwhy_lab::place;
use tcpwhy_report::html::PACKETS;

use crate::args::Color;
use crate::output::Look;
use crate::{TROUBLE, complaint, output};
use watch::Watch;

/// Name and version of the JSON.
const FORMAT: &str = "tcpwhy-lab/1";

/// `tcpwhy lab`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Needs root, or a system where users may make namespaces.\n\nExamples:\n  tcpwhy lab                    what there is\n  tcpwhy lab netrek             one experiment\n  tcpwhy lab netrek --help      what can be changed about it\n  tcpwhy lab all --keep kept    all of them, and their captures",
    max_term_width = 100
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,

    /// terminal, for people, json, for programs (tcpwhy-lab/1), or markdown, for docs/experiments.md
    // A global argument's value is seen by the parents too, where `format` is another type.
    #[arg(id = "lab-format", long = "format", value_name = "FORMAT", global = true, value_enum, hide_possible_values = true, default_value_t = Format::Terminal)]
    format: Format,

    /// Keep captures (pcapng) and logs in this folder
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    keep: Option<PathBuf>,

    /// Write a page to look at, with the captures of all runs
    #[arg(id = "lab-html", long = "html", global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,

    /// Packets in the page, of all connections together
    #[arg(id = "lab-html-packets", long = "html-packets", global = true, value_name = "N", hide_short_help = true, default_value_t = PACKETS)]
    html_packets: u64,

    /// Seed of everything that is left to chance
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Short runs: the same story with less of it
    #[arg(long, global = true)]
    quick: bool,

    /// Use colour: auto (on a terminal), always or never
    #[arg(id = "lab-color", long = "color", global = true, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,
}

/// How an outcome is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Terminal,
    Json,
    Markdown,
}

#[derive(Debug, Subcommand)]
enum Verb {
    #[command(flatten)]
    One(Experiment),
    /// Every experiment, one after the other, and all claims at the end
    All,
    /// Hold the analysis against the labelled corpus: how often it is right, and how far off its costs are
    Score(score::Args),
    /// Hold the simulator against this machine's kernel: the same programs over the same link
    Compare(compare::Args),
    /// Record the labelled corpus again
    Corpus(corpus::Args),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let experiments = match &args.verb {
        None => {
            let page = Look::of(args.color);
            terminal::list(&Experiment::all()?, page)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Verb::One(experiment)) => vec![experiment.clone()],
        Some(Verb::All) => Experiment::all()?,
        Some(Verb::Score(score)) => return score::run(score, args.format),
        Some(Verb::Compare(compare)) => return compare::run(compare, args.format, args.keep.as_deref()),
        Some(Verb::Corpus(corpus)) => return corpus::run(corpus, args.seed),
    };
    run_each(args, &experiments)
}

/// Runs them and prints each as it ends. One that cannot run does not keep the others from it.
fn run_each(args: &Args, experiments: &[Experiment]) -> Result<ExitCode> {
    let page = page::Captures::begin(args, experiments.len())?;
    let kept = page.as_ref().map(page::Captures::folder).or(args.keep.as_deref());
    // Before the progress bar starts a thread: see there.
    place::enter()?;
    let mut outcomes = Vec::new();
    let mut failed: Vec<String> = Vec::new();
    for (i, experiment) in experiments.iter().enumerate() {
        let watch = Watch::new(experiment.name(), (i + 1, experiments.len()));
        let lab =
            Lab { quick: args.quick, seed: args.seed, keep: folder(kept, experiment), progress: &watch };
        let outcome = experiment.run(&lab);
        drop(watch);
        match outcome {
            Ok(outcome) => {
                if args.format == Format::Terminal {
                    terminal::outcome(&outcome, Look::of(args.color), i > 0)?;
                }
                outcomes.push(outcome);
            }
            Err(error) => {
                let why = format!("{error:#}");
                // Without the rights for one link there is none for the others.
                let again = failed.contains(&error.root_cause().to_string());
                failed.push(error.root_cause().to_string());
                complaint::say(&format!("{}: {why}", experiment.name()));
                if again {
                    break;
                }
            }
        }
    }
    print_all(args, experiments, &outcomes)?;
    page.map_or(Ok(()), |page| page.finish(experiments))?;
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { TROUBLE.into() })
}

/// What is printed once all have run.
fn print_all(args: &Args, experiments: &[Experiment], outcomes: &[Outcome]) -> Result<()> {
    match args.format {
        Format::Terminal if experiments.len() > 1 => terminal::summary(outcomes, Look::of(args.color)),
        Format::Terminal => Ok(()),
        Format::Json => output::print_json(
            &json!({ "format": FORMAT, "version": env!("CARGO_PKG_VERSION"), "outcomes": outcomes }),
        ),
        Format::Markdown => output::print(|out| markdown::write(out, experiments, outcomes)),
    }
}

/// Where this experiment's captures go: a folder each.
fn folder(kept: Option<&Path>, experiment: &Experiment) -> Option<PathBuf> {
    kept.map(|folder| folder.join(experiment.name()))
}
