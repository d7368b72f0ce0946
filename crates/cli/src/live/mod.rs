//! `tcpwhy live`: what is wrong on an interface, while it goes on.

mod announce;
mod capture;
mod holders;
mod kept;
mod links;
mod names;
mod open;
mod plain;
mod screen;
mod sink;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueHint;
use tcpwhy_diagnose::report::Source;
use tcpwhy_host::privileges;
use tcpwhy_report::terminal::Options;

use crate::args::{Color, ReportFormat};
use crate::fail_on::FailOn;
use crate::html::{self, Page};
use crate::nothing::can_judge;
use crate::printer::Printer;
use crate::programs::Peopled;
use crate::stop::Stop;
use crate::{FOUND, TROUBLE, complaint, create, output};
use capture::Limits;

const LONG_ABOUT: &str = "\
Captures on an interface, says what it finds as it finds it, and ends with the report: after --duration or --count \
packets, at Ctrl-C, SIGTERM or SIGHUP. On a terminal there is a screen meanwhile (? lists its keys), elsewhere a line for each finding.

Needs the right to capture: run it with sudo, or give it to the program once: sudo setcap cap_net_raw+ep tcpwhy. \
As soon as the socket is open the right is given up: root becomes the user who called sudo, or nobody.

FILTER is in the language of tcpdump (man pcap-filter). Hosts, nets, ports, tcp, udp, src and dst with and, or, not \
and parentheses work everywhere; the rest of the language where libpcap is installed. Link-layer headers cannot be \
asked for.

The packets of days do not fit in memory and are not kept. Of connections the worst and the latest are kept; how many \
were forgotten is said.";

const EXAMPLES: &str = "\
Examples:
  What the default route's interface sees of port 8080:
      sudo tcpwhy live port 8080

  Between programs on this machine, for 10 seconds, for another program:
      sudo tcpwhy live -i lo --duration 10s --format json

  All interfaces, and the packets in a file for later:
      sudo tcpwhy live -i any --write slow.pcapng 'host 10.0.0.7 and not port 22'";

/// `tcpwhy live`.
#[derive(Debug, clap::Args)]
#[command(long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Which packets, in tcpdump's language: 'port 8080 and host 10.0.0.7'
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,

    /// The interface, or any [default: that of the default route]
    #[arg(short, long, value_name = "NAME")]
    interface: Option<String>,

    /// Ask the interface for packets to other hosts, too
    #[arg(long)]
    promiscuous: bool,

    /// Bytes kept of each packet
    ///
    /// The analysis needs headers only; a tunnel's come twice.
    #[arg(short, long, value_name = "BYTES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(68..))]
    snaplen: u32,

    /// End after this time: 10s, 5min, 2h
    #[arg(long, value_name = "TIME", value_parser = open::time)]
    duration: Option<Duration>,

    /// End after so many packets
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Write the packets into this file, too (pcapng)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    write: Option<PathBuf>,

    /// Access rights of that file: 0640 lets the group read it
    #[arg(long, value_name = "MODE", requires = "write", default_value = "0600", value_parser = create::mode)]
    mode: u32,

    /// Lines instead of a screen, on a terminal too
    #[arg(long)]
    lines: bool,

    /// terminal, for people; or the report alone: json, csv, csv-findings, markdown, junit
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Terminal)]
    format: ReportFormat,

    /// Connections that the report shows in full, the worst first
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Exit with status 1 if this rule, or "problem", is found
    #[arg(long, value_name = "RULE", value_delimiter = ',', required_if_eq("format", "junit"))]
    fail_on: Vec<FailOn>,

    #[command(flatten)]
    html: html::Args,

    /// Colour: auto, always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,

    /// End when standard input does
    #[arg(long, hide = true)]
    until_input_ends: bool,

    /// Be the second process
    #[arg(long, hide = true, exclusive = true)]
    say_holders: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.say_holders {
        return holders::run();
    }
    args.html.apart_from(args.write.as_deref())?;
    let page = args.html.begin_held()?;
    if let Some(file) = page.as_ref().and_then(Page::file) {
        create::hand_over(file, privileges::heir()).context("the page cannot be given to its reader")?;
    }
    let mut opened = open::open(args)?;
    let written = opened.written.take();
    let stop = Stop::on_signals();
    let limits = Limits { duration: args.duration, packets: args.count };
    let is_screen = !args.lines && args.format == ReportFormat::Terminal && screen::is_possible();
    if args.until_input_ends {
        let stop = stop.clone();
        thread::spawn(move || {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            stop.request();
        });
    }
    let running = capture::start(opened, limits, is_screen, &stop)?;
    stop.reading(true);
    let shown = if is_screen { screen::show(&running, args.color) } else { plain::show(&running, args) };
    stop.request();
    let ended = running.end();
    stop.reading(false);
    let (diagnosis, programs, broke_off) = ended?;
    let report = Peopled { whole: &diagnosis, programs: &programs };
    output::unless_broken_pipe(shown)?;
    let options = Options {
        width: output::columns(),
        color: output::colored(args.color),
        top: args.top,
        ..Options::default()
    };
    let found = report.skim().any(|finding| args.fail_on.iter().any(|name| name.matches(&finding)));
    let mut printer = Printer::new(output::stdout(), args.format, options, &args.fail_on)?;
    output::unless_broken_pipe(printer.print(&report, None).and_then(|()| printer.finish(None)))?;
    page.map_or(Ok(()), |page| write_page(page, &report, written.as_ref()))?;
    if let Some(reason) = broke_off {
        return Err(reason);
    }
    if !args.fail_on.is_empty() && !found && !can_judge(&args.fail_on, &report, None) {
        complaint::say(
            "--fail-on has nothing to judge: no TCP packet was captured (another --interface, or filter?)",
        );
        return Ok(TROUBLE.into());
    }
    Ok(if found { FOUND.into() } else { ExitCode::SUCCESS })
}

/// Why a page has no packets.
const NOT_KEPT: &str =
    "A live capture does not keep its packets: --write FILE saves them, in a file that can be read again.";

/// Writes the page, with packets from the file that was written.
fn write_page(mut page: Page, report: &dyn Source, file: Option<&File>) -> Result<()> {
    match file {
        Some(file) => {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            page.next_file(&Rc::new(Path::new(&path).into()));
            page.next_capture();
            page.take(report, None)?;
        }
        None => page.take_alone(report, NOT_KEPT)?,
    }
    // Who asked for the end of the capture with Ctrl-C wants the page of it.
    page.finish(None, None, &Stop::default())
}
