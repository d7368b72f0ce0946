//! `tcpwhy FILE…`: the main job.

use std::io::{self, ErrorKind};
use std::mem;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueHint;
use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::report::{Finding, Source};
use tcpwhy_report::terminal::Options;

use crate::args::{Color, Format};
use crate::drive::{self, Trouble};
use crate::fail_on::FailOn;
use crate::filter::Filter;
use crate::hops::Gathering;
use crate::narrowed::Narrowed;
use crate::printer::Printer;
use crate::quote::{Quoting, When};
use crate::stop::Stop;
use crate::{FOUND, TROUBLE, complaint, output};

/// `tcpwhy FILE…`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Captures (pcap, pcapng, .gz, .zst), tcpdump's text, or - for stdin
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,

    /// terminal, or json for programs
    ///
    /// The object is described in docs/report-format.md (tcpwhy-report/1).
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Terminal)]
    format: Format,

    /// Connections to print, the worst first
    ///
    /// The others are summed up. JSON always has them all.
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Exit with status 1 if this rule, or "problem", is found
    ///
    /// Several with commas between mean any of them. `tcpwhy rules` lists them; `problem` stands for every finding
    /// that costs time.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    fail_on: Vec<FailOn>,

    /// Only packets from or to this host
    ///
    /// An address, or a name in a text capture. Several, with commas between, mean any of them.
    #[arg(long, value_name = "HOST", value_delimiter = ',', value_hint = ValueHint::Hostname)]
    host: Vec<String>,

    /// Only packets from or to this port
    ///
    /// Several, with commas between, mean any of them.
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    port: Vec<u16>,

    /// Only the connection with this number
    ///
    /// As a report with the same --host and --port numbers it.
    #[arg(long, value_name = "N")]
    connection: Option<u64>,

    /// What fixes save: auto, always, never
    ///
    /// Connections that are shown in full are played again in a simulator, as `tcpwhy whatif` does. auto does it
    /// where it takes no time that anybody notices; always also for large files and long connections. It needs a file
    /// that can be read again: standard input has no predictions.
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = When::Auto)]
    whatif: When,

    /// Colour: auto, always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_ctrl_c();
    let filter = Filter::new(&args.host, &args.port);
    let mut results = Results::new(args)?;
    let mut hops = Gathering::default();
    let mut unread = false;
    for path in &args.files {
        if stop.requested() {
            unread = true;
            complaint::about(path, "not read, after Ctrl-C");
            continue;
        }
        let mut quoting = Quoting::new(path, args.whatif, args.top, &stop);
        hops.next_file(path);
        let take = &mut |diagnosis| {
            hops.take(&diagnosis);
            results.take(diagnosis, &mut quoting)
        };
        let read = drive::captures(path, filter.as_ref(), None, &stop, take);
        match read.and_then(|()| results.end_of_file()) {
            Ok(()) => {}
            Err(Trouble::Input(what)) => {
                unread = true;
                complaint::about(path, &what);
            }
            Err(Trouble::Output(error)) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(Trouble::Output(error)) => return Err(output::failed(error)),
        }
    }
    let hops = hops.finish(filter.as_ref(), args.connection, &stop);
    let in_hops = || hops.iter().flat_map(|hops| &hops.pairs).flat_map(|pair| &pair.findings);
    let found = results.found || in_hops().any(|finding| results.is_named(finding));
    output::unless_broken_pipe(results.printer.finish(hops.as_ref()))?;
    Ok(match (unread, found) {
        (true, _) => TROUBLE.into(),
        (false, true) => FOUND.into(),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// Prints results, and remembers what the exit status depends on.
struct Results<'a> {
    args: &'a Args,
    printer: Printer,
    /// Whether something that `--fail-on` names was found.
    found: bool,
    /// Whether a capture of this file had the connection that was asked for.
    has_connection: bool,
    /// The most connections that a capture of this file had.
    connections: usize,
}

impl<'a> Results<'a> {
    fn new(args: &'a Args) -> io::Result<Self> {
        let options = Options {
            width: output::columns(),
            color: output::colored(args.color),
            top: args.top,
            ..Options::default()
        };
        let printer = Printer::new(args.format, options)?;
        Ok(Self { args, printer, found: false, has_connection: false, connections: 0 })
    }

    fn take(&mut self, diagnosis: Diagnosis, quoting: &mut Quoting<'_>) -> io::Result<()> {
        quoting.next_capture();
        let Some(id) = self.args.connection else {
            return self.print(&quoting.quoted(&diagnosis, &diagnosis));
        };
        match Narrowed::new(diagnosis, id) {
            Ok(narrowed) => {
                self.has_connection = true;
                self.print(&quoting.quoted(&narrowed, narrowed.whole()))
            }
            Err(whole) => {
                self.connections = self.connections.max(whole.connections().count());
                Ok(())
            }
        }
    }

    fn print(&mut self, source: &dyn Source) -> io::Result<()> {
        if !self.args.fail_on.is_empty() && !self.found {
            self.found = source.findings().any(|finding| self.is_named(&finding));
        }
        self.printer.print(source)
    }

    /// Whether `--fail-on` names it.
    fn is_named(&self, finding: &Finding) -> bool {
        self.args.fail_on.iter().any(|name| name.matches(finding))
    }

    /// Says so if none of the file's captures had the connection that was asked for.
    fn end_of_file(&mut self) -> Result<(), Trouble> {
        let connections = mem::take(&mut self.connections);
        match self.args.connection {
            Some(id) if !mem::take(&mut self.has_connection) => {
                let instead = match connections {
                    0 => "there is none at all".to_owned(),
                    1 => "there is only 0".to_owned(),
                    many => format!("try 0 to {}", many - 1),
                };
                Err(Trouble::Input(format!("no connection {id}, {instead}")))
            }
            _ => Ok(()),
        }
    }
}
