//! `tcpwhy run -- CMD`: a program with a recorder in it, and the lines whose writes TCP holds.

mod child;
mod located;
mod messages;
mod packets;
mod program;
mod report;
mod sites;
mod sockets;
mod symbols;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::{ValueEnum, ValueHint};
use tcpwhy_host::calls::{Fix, Recorder};

use crate::FOUND;
use crate::fail_on::FailOn;
use packets::Packets;
use report::Telling;

const LONG_ABOUT: &str = "\
Runs a command with a recorder in it, and says which lines write what TCP then holds.

The recorder is a library that the loader puts into the command and into every program that it starts. It writes down \
each call on a TCP socket (when, how many bytes, from which line) and changes nothing else. Lines need the program's \
debug information (-g); without it there are functions, without symbols files.

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

Exit status: that of the command, 128 + n if signal n ended it; 1 if the command succeeded and
--fail-on found what it names; 2 if nothing was run, or the report could not be written.";

/// A cure for one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Cure {
    Nodelay,
    Quickack,
}

/// `tcpwhy run`.
#[derive(Debug, clap::Args)]
#[command(long_about = LONG_ABOUT, after_long_help = EXAMPLES, after_help = "Examples and more with --help.", max_term_width = 100)]
pub(crate) struct Args {
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// Set TCP_NODELAY on every connection, or TCP_QUICKACK around every read: nodelay, quickack
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

    /// Exit with status 1 if this rule, or "problem", is found in a command that succeeded
    ///
    /// Several with commas between mean any of them. Where packets cannot be captured, split-write alone can be found.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    fail_on: Vec<FailOn>,

    /// Write the report into this file instead of to standard error
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Sockets to print, those with most split messages first
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // Made now: once the command has run it would be too late to say that there is no such folder.
    let file = args
        .output
        .as_ref()
        .map(|path| File::create(path).with_context(|| format!("cannot write {}", path.display())));
    let mut out: Box<dyn Write> = match file.transpose()? {
        Some(file) => Box::new(file),
        None => Box::new(io::stderr()),
    };
    let fix = args.fix.map(|cure| match cure {
        Cure::Nodelay => Fix::Nodelay,
        Cure::Quickack => Fix::Quickack,
    });
    if args.compare {
        // What the second run, which is cured, ends with is what counts.
        print(out.as_mut(), b"Without the fix:\n\n")?;
        once(args, None, out.as_mut())?;
        print(out.as_mut(), b"\nWith it:\n\n")?;
    }
    once(args, fix, out.as_mut())
}

/// Runs the command and reports.
fn once(args: &Args, fix: Option<Fix>, out: &mut dyn Write) -> Result<ExitCode> {
    let mut recorder = Recorder::new().context("cannot prepare the recording")?;
    let (program, arguments) = args.command.split_first().context("nothing to run")?;
    let mut command = Command::new(program);
    command.args(arguments);
    recorder.watch(&mut command, !args.no_stacks, fix);
    // Nobody without the rights needs to be told twice that only calls are there.
    let packets = if args.no_capture { None } else { Packets::capture().ok() };
    let status = child::run(&mut command)?;
    let recording = recorder.recording().context("cannot read the recording")?;
    let telling = Telling {
        recording: &recording,
        fix,
        top: args.top,
        unseen: program::why_unseen(program),
        fail_on: &args.fail_on,
    };
    // As a whole: lines of the command's children may come meanwhile.
    let mut text = Vec::new();
    let found = telling.print(packets, &mut text).context("cannot make the report")?;
    print(out, &text)?;
    let code = child::code(status);
    Ok(if code == 0 && found { FOUND } else { code }.into())
}

fn print(out: &mut dyn Write, text: &[u8]) -> Result<()> {
    out.write_all(text).context("cannot write the report")
}
