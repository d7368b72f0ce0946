//! `tcpwhy run -- CMD`: a program with a recorder in it, and the lines whose writes TCP holds.

mod child;
mod packets;
mod program;
pub(crate) mod record;
mod saved;
mod symbols;
mod watching;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use clap::{ValueEnum, ValueHint};
use tcpwhy_host::calls::Fix;
use tcpwhy_report::plain::plain;
use tcpwhy_report::terminal::Options;
use tcpwhy_wire::calls::Recording;

use crate::FOUND;
use crate::analyze::{Asked, Results};
use crate::args::ReportFormat;
use crate::create;
use crate::drive::Trouble;
use crate::fail_on::FailOn;
use crate::html;
use crate::printer::Printer;
use crate::stop::Stop;
use packets::Packets;
use saved::{Destination, Saved};
use watching::Watching;

const LONG_ABOUT: &str = "\
Runs a command with a recorder in it, and says which lines write what TCP then holds.

The recorder is a library that the loader puts into the command and into every program that it starts. It writes down \
each call on a TCP socket (when, how many bytes, from which line) and changes nothing else. Lines need the program's \
debug information (-g); without it there are functions, without symbols files.

Into Go programs and statically linked ones the loader puts nothing: those are recorded by the kernel's trace events, for \
which tcpwhy has to be root. Running programs are for `tcpwhy record`.

Where packets may be captured (root, or CAP_NET_RAW), on loopback and where the default route leads, they are analysed \
as `tcpwhy FILE` does, and findings end with where. Elsewhere there are the calls alone.

The report goes to standard error, or into --output; standard output is the command's, and so is the exit status.";

const EXAMPLES: &str = "\
Examples:
  Which line of the server makes its clients wait?
      tcpwhy run -- ./server --port 8080

  Would TCP_NODELAY mend it? The recorder sets it on every connection, for this run only:
      tcpwhy run --fix nodelay -- ./server --port 8080

  For CI: fail if the tests make a connection whose messages Nagle's algorithm may hold:
      tcpwhy run --fail-on split-write -- make test

  Both, one after the other:
      tcpwhy run --fix nodelay --compare -- ./benchmark

  Keep it, and look at it elsewhere:
      tcpwhy run --record slow.pcapng -- ./server
      tcpwhy slow.pcapng

Exit status: that of the command, 128 + n if signal n ended it; 1 if the command succeeded and
--fail-on found what it names; 2 if nothing was run, or the report or the recording could not be written.";

/// Bytes of a report that are written at once.
const REPORT: usize = 1 << 20;
const UNWRITTEN: &str = "cannot write the report";
const UNTRACED: &str = "cannot record by the kernel's trace events";

/// A cure for one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Cure {
    Nodelay,
    Quickack,
    CorkOff,
}

/// `tcpwhy run`.
#[derive(Debug, clap::Args)]
#[command(long_about = LONG_ABOUT, after_long_help = EXAMPLES, after_help = "Examples and more with --help.", max_term_width = 100)]
pub(crate) struct Args {
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// Try a cure: nodelay, quickack, cork-off
    ///
    /// TCP_NODELAY on every connection, TCP_QUICKACK around every read, or no TCP_CORK and MSG_MORE, whatever the program
    /// says.
    #[arg(long, value_enum, value_name = "FIX", hide_possible_values = true)]
    fix: Option<Cure>,

    /// Do not record who makes calls, only which: halves the cost
    #[arg(long)]
    no_stacks: bool,

    /// Run the command twice, without --fix and with it
    #[arg(long, requires = "fix")]
    compare: bool,

    /// Do not capture packets, only record calls
    #[arg(long)]
    no_capture: bool,

    /// Record by the kernel's trace events, which see every program; needs root, and costs ten times as much
    ///
    /// Done anyway for a command that is a Go program or statically linked, since the loader puts nothing into those.
    #[arg(long, conflicts_with = "fix")]
    kernel: bool,

    /// Exit with status 1 if this rule, or "problem", is found in a command that succeeded
    ///
    /// Several with commas between mean any of them. Where packets cannot be captured, split-write alone can be found.
    #[arg(long, value_name = "RULE", value_delimiter = ',', required_if_eq("format", "junit"))]
    fail_on: Vec<FailOn>,

    /// Save packets and calls in this file, which `tcpwhy FILE` opens anywhere
    ///
    /// A pcapng file; Wireshark opens it too and passes over the calls. docs/recording.md describes it. With --compare, that of
    /// the run without the fix, and beside it, with the fix's name at the end of its own, that of the run with it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record: Option<PathBuf>,

    /// Access rights of that file: 0640 lets the group read it
    #[arg(long, value_name = "MODE", requires = "record", default_value = "0600", value_parser = create::mode)]
    mode: u32,

    /// Write the report into this file instead of to standard error
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// terminal, json, csv, csv-findings, markdown, junit
    ///
    /// As `tcpwhy FILE --format` prints them: docs/formats.md. json and markdown have the calls in them.
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Terminal)]
    format: ReportFormat,

    /// Sockets to print, those with most split messages first
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    #[command(flatten)]
    html: html::Args,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let cured = args.record.as_deref().zip(args.fix).filter(|_| args.compare);
    let cured = cured.map(|(path, fix)| beside(path, fix));
    for other in [&args.record, &cured, &args.output] {
        args.html.apart_from(other.as_deref())?;
    }
    // Made now: once the command has run it would be too late to say that there is no such folder.
    let file = args.output.as_ref().map(|path| {
        create::report(path)
            .and_then(create::emptied)
            .with_context(|| format!("cannot write {}", path.display()))
    });
    let out: Box<dyn Write> = match file.transpose()? {
        Some(file) => Box::new(file),
        None => Box::new(io::stderr()),
    };
    let destination = args.record.as_deref().map(|path| Destination::open(path, args.mode)).transpose()?;
    let beside = cured.as_deref().map(|path| Destination::open(path, args.mode)).transpose()?;
    let options = Options { top: args.top, ..Options::default() };
    // As a whole: lines of the command's children may come meanwhile.
    let out = BufWriter::with_capacity(REPORT, out);
    let asked = Asked { top: args.top, fail_on: &args.fail_on, ..Asked::default() };
    let page = args.html.begin_in_file(1 + usize::from(args.compare))?;
    let mut results = Results::new(asked, Printer::new(out, args.format, options, &args.fail_on)?, page);
    // The page is made at the end, and of both.
    let mut without = None;
    if args.compare {
        results.printer.heading("Without the fix:").context(UNWRITTEN)?;
        without = Some(once(args, None, &mut results)?);
        // What the second run, which is cured, ends with is what counts.
        results.forget();
        let kept = cured.as_ref().map(|path| format!(", saved as {}", plain(&path.to_string_lossy())));
        let heading = format!("With it{}:", kept.unwrap_or_default());
        results.printer.heading(&heading).context(UNWRITTEN)?;
    }
    let (code, saved) = once(args, args.fix, &mut results)?;
    let found = results.finish(&Stop::default()).context(UNWRITTEN)?;
    if let Some(destination) = destination {
        destination.take(without.as_ref().map_or(&saved, |(_, without)| without))?;
    }
    if let Some(beside) = beside {
        beside.take(&saved)?;
    }
    Ok(if code == 0 && found { FOUND } else { code }.into())
}

/// The name of the second recording: `slow-nodelay.pcapng` beside `slow.pcapng`.
fn beside(path: &Path, fix: Cure) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{}", fix.name()));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Runs the command and reports; the exit status, and what was recorded.
fn once(args: &Args, cure: Option<Cure>, results: &mut Results<'_, impl Write>) -> Result<(u8, Saved)> {
    let (program, arguments) = args.command.split_first().context("nothing to run")?;
    let mut command = Command::new(program);
    command.args(arguments);
    let mut watching = Watching::begin(args, cure, &mut command)?;
    let (packets, no_packets) = packets(args)?;
    let status = child::run(&mut command)?;
    let mut recording = watching.finish().context("cannot read the recording")?;
    recording.about.recorder = "tcpwhy run".to_owned();
    recording.about.fix = cure.map(Cure::name).unwrap_or_default();
    recording.about.no_packets = no_packets;
    let saved = keep(recording, packets)?;
    report(&saved, "the command's packets", results)?;
    Ok((child::code(status), saved))
}

/// Begins to capture, if that is wanted; where it cannot be done, why, in a sentence.
fn packets(args: &Args) -> Result<(Option<Packets>, String)> {
    let rule = args.fail_on.iter().find_map(|named| named.beyond_calls());
    match (rule, args.no_capture) {
        (Some(rule), true) => bail!("--fail-on {rule} needs packets, which --no-capture leaves out"),
        (None, true) => return Ok((None, String::new())),
        (_, false) => {}
    }
    match (Packets::capture(), rule) {
        (Ok(packets), _) => Ok((Some(packets), String::new())),
        (Err(error), Some(rule)) => {
            bail!("--fail-on {rule} needs packets, which only root or CAP_NET_RAW may capture: {error}")
        }
        (Err(error), None) => {
            let why = format!("Calls alone: only root or CAP_NET_RAW may capture packets ({error}).");
            Ok((None, why))
        }
    }
}

fn keep(recording: Recording, packets: Option<Packets>) -> Result<Saved> {
    let folder = std::env::temp_dir();
    Saved::new(recording, packets)
        .with_context(|| format!("cannot keep the recording in {}", folder.display()))
}

fn report(saved: &Saved, name: &str, results: &mut Results<'_, impl Write>) -> Result<()> {
    match results.file(&Rc::new(saved.path().into()), Some(name), &Stop::default()) {
        Ok(()) => Ok(()),
        Err(Trouble::Output(error)) => Err(error).context(UNWRITTEN),
        Err(Trouble::Input(why)) => bail!("cannot read the recording: {why}"),
    }
}

impl Cure {
    fn fix(self) -> Fix {
        match self {
            Self::Nodelay => Fix::Nodelay,
            Self::Quickack => Fix::Quickack,
            Self::CorkOff => Fix::CorkOff,
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
