//! `tcpwhy simulate [SCENARIO]`: two TCPs of any era over any path, in virtual time.

mod account;
mod keep;
mod list;
mod markdown;
mod plot;
mod script;
mod table;
mod terminal;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{ValueEnum, ValueHint};
use serde_json::json;
use tcpwhy_simulate::scenario::{self, Runs, Scenario};

use crate::args::Color;
use crate::html;
use crate::output::Look;
use crate::{TROUBLE, output};
use account::Account;

/// Name and version of the JSON.
const FORMAT: &str = "tcpwhy-simulate/1";
/// A scenario is a page; what is longer is something else.
const LONGEST_FILE: u64 = 1 << 20;
/// Virtual time of one run: a slip of the keyboard would otherwise fill the memory.
const LONGEST_RUN: Duration = Duration::from_secs(86_400);

const AFTER_HELP: &str = "\
Examples:
  tcpwhy simulate                         the scenarios that come with tcpwhy
  tcpwhy simulate dsl-1998                Cardwell's download of 1998
  tcpwhy simulate dsl-1998 --keep kept    and its packets, for Wireshark
  tcpwhy simulate dsl-1998 --plot x.svg   and the two time-sequence plots
  tcpwhy simulate dsl-1998-table          every receiver, every way to repair
  tcpwhy simulate --show tail-loss        a scenario's file, to begin with
  tcpwhy simulate mine.toml               your own
  tcpwhy simulate test.pkt                a script of packetdrill

A scenario says who talks to whom, about what, over which path, and what is
to be compared:

  name = \"mine\"
  [client]
  stack = \"windows-10\"        # `tcpwhy simulate` lists the names
  [server]
  stack = \"linux-6\"
  nodelay = true              # any option or setting of it
  [link]
  rate = \"10 mbit\"
  round-trip = \"40 ms\"
  queue = \"20 packets\"
  [traffic]
  requests = { request = \"100 B\", answer = \"20 KB\", pieces = 3, count = 50 }
  [[variant]]
  name = \"as it is\"
  [[variant]]
  name = \"one write\"
  traffic.requests = { request = \"100 B\", answer = \"20 KB\", count = 50 }

Time is virtual: the same scenario and seed give the same packets on every
machine. docs/simulator.md has every key.

Exit status:
  0  all runs ended; a script passed
  1  a script did not pass
  2  wrong usage, an unreadable file, or a run whose data did not all arrive";

/// `tcpwhy simulate`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Args {
    /// The name of a scenario, a file of one (.toml), or a script of packetdrill (.pkt); without it, the list of names
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    scenario: Option<PathBuf>,

    /// Print the scenario's file instead of running it
    #[arg(long, requires = "scenario")]
    show: bool,

    /// Seed of everything that is left to chance, instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Run only the variant of this name
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,

    /// End each run at this virtual time: 30s
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    max_time: Option<Duration>,

    /// Keep the packets in this folder, as each end's capture shows them (pcapng, times in ns)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    keep: Option<PathBuf>,

    /// Draw the variants' time-sequence plots side by side: x.svg or x.png
    #[arg(long, value_name = "PICTURE", value_hint = ValueHint::FilePath)]
    plot: Option<PathBuf>,

    #[command(flatten)]
    html: html::Args,

    /// terminal, for people, json, for programs (tcpwhy-simulate/1), or markdown
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true, default_value_t = Format::Terminal)]
    format: Format,

    /// Use colour: auto (on a terminal), always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Terminal,
    Json,
    Markdown,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Some(name) = &args.scenario else {
        list::print(args)?;
        return Ok(ExitCode::SUCCESS);
    };
    if name.extension() == Some(OsStr::new("pkt")) {
        return script::run(args, name);
    }
    let text = text(name)?;
    if args.show {
        output::print(|out| out.write_all(text.as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let scenario = parse(name, &text)?;
    let until = args.max_time.unwrap_or(scenario.until);
    ensure!(until <= LONGEST_RUN, "more than a day of virtual time");
    match &scenario.runs {
        Runs::Table(runs) => {
            let only_numbers = args.keep.is_none() && args.plot.is_none() && args.html.html.is_none();
            ensure!(
                only_numbers,
                "--keep, --plot and --html need a scenario with variants: a table has too many runs"
            );
            table::run(args, &scenario, runs, until)?;
            Ok(ExitCode::SUCCESS)
        }
        Runs::Variants(_) => variants(args, only(scenario, args.variant.as_deref())?, until),
    }
}

/// Runs the variants one after the other and prints them side by side.
fn variants(args: &Args, scenario: Scenario, until: Duration) -> Result<ExitCode> {
    let scenario = match args.seed {
        Some(seed) => scenario.with_seed(seed),
        None => scenario,
    };
    let Runs::Variants(variants) = &scenario.runs else { bail!("a table has no variants") };
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let page = args.html.begin_in_file(2 * variants.len())?;
    let gone = tempfile::tempdir().context("no folder for the captures")?;
    let folder = args.keep.as_deref().or(page.as_ref().map(|_| gone.path()));
    let (mut accounts, mut taken, mut captures) = (Vec::new(), BTreeSet::new(), Vec::new());
    for variant in variants {
        let (world, measured) = scenario::run(variant, until);
        let stem = keep::stem(&variant.name, &mut taken);
        let kept = folder.map(|folder| keep::save(&world, &stem, folder)).transpose()?.unwrap_or_default();
        captures.extend(
            kept.iter().zip(["client", "server"]).map(|(path, end)| {
                (path.clone(), format!("{}: {}, at the {end}", scenario.name, variant.name))
            }),
        );
        let kept = if args.keep.is_some() { kept } else { Vec::new() };
        accounts.push(Account::new(variant, &world, measured, kept));
    }
    if let Some(path) = &args.plot {
        plot::save(&scenario, &accounts, path)?;
    }
    page.map_or(Ok(()), |page| html::of_captures(page, &captures))?;
    match args.format {
        Format::Terminal => terminal::print(&scenario, &accounts, Look::of(args.color))?,
        Format::Markdown => output::print(|out| markdown::write(out, &scenario, &accounts))?,
        Format::Json => {
            let runs: Vec<_> = accounts.iter().map(Account::json).collect();
            print_json(&scenario, &json!({ "variants": runs }))?;
        }
    }
    let all_ended = accounts.iter().all(|account| account.measured.finished.is_some());
    Ok(if all_ended { ExitCode::SUCCESS } else { TROUBLE.into() })
}

fn print_json(scenario: &Scenario, result: &serde_json::Value) -> Result<()> {
    output::print_json(&json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "scenario": scenario.name,
        "about": scenario.about,
        "source": scenario.source,
        "result": result,
    }))
}

/// The scenario's text: one that comes with tcpwhy, or a file.
fn text(name: &Path) -> Result<String> {
    let known = name.to_str().and_then(scenario::named);
    if let Some(text) = known {
        return Ok(text.to_owned());
    }
    if name.extension() == Some(OsStr::new("toml")) || name.exists() {
        return read(name);
    }
    let names: Vec<_> = scenario::BUILT_IN.iter().map(|(name, _)| *name).collect();
    let wanted = name.to_string_lossy();
    let like = names.iter().max_by(|a, b| strsim::jaro(&wanted, a).total_cmp(&strsim::jaro(&wanted, b)));
    let like = like.map_or("", |name| name);
    Err(anyhow!(
        "no scenario is called {wanted}: is it {like}? `tcpwhy simulate` lists them; a file ends with .toml"
    ))
}

fn read(path: &Path) -> Result<String> {
    let about = || format!("{}", path.display());
    let length = std::fs::metadata(path).with_context(about)?.len();
    ensure!(length <= LONGEST_FILE, "{}: longer than a megabyte, which no scenario is", path.display());
    std::fs::read_to_string(path).with_context(about)
}

fn parse(name: &Path, text: &str) -> Result<Scenario> {
    let mut scenario = Scenario::parse(text).map_err(|error| anyhow!("{}: {error}", name.display()))?;
    if scenario.name.is_empty() {
        scenario.name = name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    if let Runs::Variants(variants) = &mut scenario.runs {
        // A scenario without variants is its only one.
        variants
            .iter_mut()
            .filter(|one| one.name.is_empty())
            .for_each(|one| one.name.clone_from(&scenario.name));
    }
    Ok(scenario)
}

/// The scenario with only the variant that was asked for.
fn only(mut scenario: Scenario, wanted: Option<&str>) -> Result<Scenario> {
    let (Some(wanted), Runs::Variants(variants)) = (wanted, &mut scenario.runs) else { return Ok(scenario) };
    let names: Vec<_> = variants.iter().map(|variant| variant.name.clone()).collect();
    variants.retain(|variant| variant.name == wanted);
    ensure!(!variants.is_empty(), "no variant is called {wanted}: {}", names.join(", "));
    Ok(scenario)
}

/// `30s`, `1500ms`.
fn seconds(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("min", 60.0)];
    let parsed = units.iter().find_map(|(unit, factor)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Duration::try_from_secs_f64(number * factor).ok()
    });
    parsed.ok_or_else(|| "try 30s or 1500ms".to_owned())
}
