//! `tcpwhy record -p PID`: running programs, recorded by the kernel's trace events.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueHint;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tcpwhy_host::calls::Tracer;
use tcpwhy_report::terminal::Options;

use super::packets::Packets;
use super::saved::{Destination, Saved};
use super::{REPORT, UNTRACED, UNWRITTEN, keep, report};
use crate::analyze::{Asked, Results};
use crate::args::ReportFormat;
use crate::create;
use crate::html::{self, Page};
use crate::link::quantity;
use crate::printer::Printer;
use crate::stop::Stop;

/// How soon the end of the programs is noticed.
const LOOK: Duration = Duration::from_millis(50);

const LONG_ABOUT: &str = "\
Records what running programs do with their TCP sockets, and says which of their lines write what TCP then holds, as \
`tcpwhy run` does for a program that it starts. Programs of every language, Go and statically linked ones too; nothing is \
put into them, and nothing is left behind.

The kernel's own trace events tell of each call: when, how many bytes, from which line. They are for root. A call costs the \
recorded program some 2 µs more, with its stack 3.

Where packets may be captured, on loopback and where the default route leads, they are analysed as `tcpwhy FILE` does, and \
findings end with where.";

const EXAMPLES: &str = "\
Examples:
  Which line of a running server makes its clients wait? Ctrl-C ends it, and the report comes:
      sudo tcpwhy record -p 4711

  Ten seconds of two processes, for somebody else to look at:
      sudo tcpwhy record -p 4711 -p 4712 --duration 10s -o slow.pcapng
      tcpwhy slow.pcapng

Exit status: 0; 2 if nothing was recorded, or the report could not be written.";

/// `tcpwhy record`.
#[derive(Debug, clap::Args)]
#[command(long_about = LONG_ABOUT, after_long_help = EXAMPLES, after_help = "Examples and more with --help.", max_term_width = 100)]
pub(crate) struct Args {
    /// A process to record, with all its threads and what they start; several times for several
    #[arg(short, long, value_name = "PID", required = true)]
    pid: Vec<u32>,

    /// End after so long; else at Ctrl-C, or when the processes have ended
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    duration: Option<Duration>,

    /// Save packets and calls in this file, which `tcpwhy FILE` opens anywhere, and print no report
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Access rights of that file: 0640 lets the group read it
    #[arg(long, value_name = "MODE", requires = "output", default_value = "0600", value_parser = create::mode)]
    mode: u32,

    /// Do not record who makes calls, only which: halves the cost
    #[arg(long)]
    no_stacks: bool,

    /// Do not capture packets, only record calls
    #[arg(long)]
    no_capture: bool,

    /// terminal, json, csv, csv-findings, markdown
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
    if args.format == ReportFormat::Junit {
        bail!(
            "junit needs to know what fails: save with -o x.pcapng, then tcpwhy x.pcapng --format junit --fail-on RULE"
        );
    }
    args.html.apart_from(args.output.as_deref())?;
    let destination = args.output.as_deref().map(|path| Destination::open(path, args.mode)).transpose()?;
    let page = args.html.begin_in_file(1)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The second one quits without a report.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    let mut tracer = Tracer::attach(&args.pid, !args.no_stacks).context(UNTRACED)?;
    let packets = if args.no_capture { None } else { Packets::capture().ok() };
    wait(args, &tracer, &stop);
    let mut recording = tracer.finish().context("cannot read the recording")?;
    recording.about.recorder = "tcpwhy record".to_owned();
    let saved = keep(recording, packets)?;
    match destination {
        Some(destination) => destination.take(&saved)?,
        None => print(args, &saved, page)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Until the end that was asked for.
fn wait(args: &Args, tracer: &Tracer, stop: &AtomicBool) {
    if io::stderr().is_terminal() {
        // Nobody needs it if it cannot be printed.
        let _ = writeln!(io::stderr(), "Recording. Ctrl-C ends it, and the report comes.");
    }
    let start = Instant::now();
    let is_over = || args.duration.is_some_and(|duration| start.elapsed() >= duration);
    while !stop.load(Ordering::SeqCst) && !tracer.is_over() && !is_over() {
        let left = args.duration.map_or(LOOK, |duration| duration.saturating_sub(start.elapsed()));
        std::thread::sleep(left.min(LOOK));
    }
}

fn print(args: &Args, saved: &Saved, page: Option<Page>) -> Result<()> {
    let options = Options { top: args.top, ..Options::default() };
    let asked = Asked { top: args.top, ..Asked::default() };
    let out = BufWriter::with_capacity(REPORT, io::stdout());
    let mut results = Results::new(asked, Printer::new(out, args.format, options, &[])?, page);
    report(saved, "the processes' packets", &mut results)?;
    results.finish(&Stop::default()).context(UNWRITTEN).map(drop)
}
