//! `tcpwhy FILE…`: the main job.

use std::io::{self, ErrorKind, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueHint;
use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::report::{Finding, Source};
use tcpwhy_report::terminal::Options;

use crate::args::{Color, ReportFormat};
use crate::calls::{Located, Recorded, SPLIT_WRITE};
use crate::drive::{self, Analyzed, Trouble};
use crate::fail_on::FailOn;
use crate::filter::Filter;
use crate::hops::Gathering;
use crate::html::{self, Page};
use crate::narrowed::{Named, Narrowed};
use crate::printer::Printer;
use crate::programs::Peopled;
use crate::quote::{Quoting, When};
use crate::stop::Stop;
use crate::{FOUND, TROUBLE, complaint, output};

/// `tcpwhy FILE…`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Captures (pcap, pcapng, .gz, .zst), tcpdump's text, or - for stdin
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,

    /// terminal, json, csv, csv-findings, markdown, junit
    ///
    /// json is tcpwhy-report/2 (docs/report-format.md); csv has a row for each connection, with its ledger, csv-findings
    /// one for each finding; markdown is for issues and chats; junit, for CI systems, needs --fail-on. docs/formats.md.
    #[arg(long, value_enum, hide_possible_values = true, hide_default_value = true, default_value_t = ReportFormat::Terminal)]
    format: ReportFormat,

    /// Connections to print, the worst first
    ///
    /// The others are summed up. JSON always has them all.
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Exit with status 1 if this rule, or "problem", is found
    ///
    /// Several with commas between mean any of them. `tcpwhy rules` lists them; `problem` stands for every finding
    /// that costs time.
    #[arg(long, value_name = "RULE", value_delimiter = ',', required_if_eq("format", "junit"))]
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
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, hide_short_help = true, default_value_t = When::Auto)]
    whatif: When,

    #[command(flatten)]
    html: html::Args,

    /// Colour: auto, always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, hide_short_help = true, default_value_t = Color::Auto)]
    color: Color,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_ctrl_c();
    let options = Options {
        width: output::columns(),
        color: output::colored(args.color),
        top: args.top,
        ..Options::default()
    };
    let asked = Asked {
        filter: Filter::new(&args.host, &args.port),
        connection: args.connection,
        whatif: args.whatif,
        top: args.top,
        fail_on: &args.fail_on,
    };
    let page = args.html.begin(args.files.len())?;
    let out: Box<dyn Write> =
        if args.html.is_stdout() { Box::new(io::sink()) } else { Box::new(output::stdout()) };
    let printer = Printer::new(out, args.format, options, &args.fail_on)?;
    let mut results = Results::new(asked, printer, page);
    let mut unread = false;
    for path in &args.files {
        if stop.requested() {
            unread = true;
            complaint::about(path, "not read, after Ctrl-C");
            continue;
        }
        match results.file(path, None, &stop) {
            Ok(()) => {}
            Err(Trouble::Input(what)) => {
                unread = true;
                complaint::about(path, &what);
                output::unless_broken_pipe(results.printer.unread(&complaint::name(path), &what))?;
            }
            Err(Trouble::Output(error)) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(Trouble::Output(error)) => return Err(output::failed(error)),
        }
    }
    let found = results.finish(&stop)?;
    Ok(match (unread, found) {
        (true, _) => TROUBLE.into(),
        (false, true) => FOUND.into(),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// What is to be told of files.
pub(crate) struct Asked<'a> {
    /// The packets that count.
    pub(crate) filter: Option<Filter>,
    /// The only connection that counts.
    pub(crate) connection: Option<u64>,
    /// When fixes are tried.
    pub(crate) whatif: When,
    /// Connections, and sockets, that are shown in full.
    pub(crate) top: usize,
    /// What the exit status depends on.
    pub(crate) fail_on: &'a [FailOn],
}

/// Prints results, and remembers what the exit status depends on.
pub(crate) struct Results<'a, W: Write> {
    asked: Asked<'a>,
    pub(crate) printer: Printer<W>,
    page: Option<Page>,
    hops: Gathering,
    /// Whether something that `--fail-on` names was found.
    found: bool,
    /// Whether a capture of this file had the connection that was asked for.
    has_connection: bool,
    /// The most connections that a capture of this file had.
    connections: usize,
}

impl<'a, W: Write> Results<'a, W> {
    /// `page` is what is made of the results beside what is printed.
    pub(crate) fn new(asked: Asked<'a>, printer: Printer<W>, page: Option<Page>) -> Self {
        Self {
            asked,
            printer,
            page,
            hops: Gathering::default(),
            found: false,
            has_connection: false,
            connections: 0,
        }
    }

    /// Analyses a file. `name` is what it is called where that is not its path.
    pub(crate) fn file(&mut self, path: &Path, name: Option<&str>, stop: &Stop) -> Result<(), Trouble> {
        let mut quoting = Quoting::new(path, self.asked.whatif, self.asked.top, stop);
        let filter = self.asked.filter.take();
        self.hops.next_file(path);
        self.page.iter_mut().for_each(|page| page.next_file(path));
        let take = &mut |analyzed: Analyzed| {
            self.hops.take(&analyzed.diagnosis);
            self.take(analyzed, name, &mut quoting)
        };
        let read = drive::captures(path, filter.as_ref(), None, stop, take);
        self.asked.filter = filter;
        read.and_then(|()| self.end_of_file())
    }

    fn take(&mut self, analyzed: Analyzed, name: Option<&str>, quoting: &mut Quoting<'_>) -> io::Result<()> {
        quoting.next_capture();
        self.page.iter_mut().for_each(Page::next_capture);
        let Analyzed { diagnosis, mut recorded, programs } = analyzed;
        let programs = &programs;
        let Some(id) = self.asked.connection else {
            let named = Named { whole: &Peopled { whole: &diagnosis, programs }, name };
            return self.print(&named, &diagnosis, recorded.as_ref(), quoting);
        };
        match Narrowed::new(diagnosis, id) {
            Ok(narrowed) => {
                self.has_connection = true;
                if let Some(recorded) = &mut recorded {
                    recorded.narrow(narrowed.connection());
                }
                let peopled = Peopled { whole: &narrowed, programs };
                self.print(&peopled, narrowed.whole(), recorded.as_ref(), quoting)
            }
            Err(whole) => {
                self.connections = self.connections.max(whole.connections().count());
                Ok(())
            }
        }
    }

    /// Prints what is shown of `whole`.
    fn print(
        &mut self,
        shown: &dyn Source,
        whole: &Diagnosis,
        recorded: Option<&Recorded>,
        quoting: &mut Quoting<'_>,
    ) -> io::Result<()> {
        let located = recorded.map(|recorded| Located::new(shown, recorded));
        let shown = located.as_ref().map_or(shown, |located| located);
        let named = self.asked.fail_on;
        if !named.is_empty() && !self.found {
            let in_calls = recorded.is_some_and(Recorded::has_split_writes);
            self.found = in_calls && named.iter().any(|name| name.names(SPLIT_WRITE))
                || shown.findings().any(|finding| is_named(named, &finding));
        }
        let quoted = quoting.quoted(shown, whole);
        if let Some(page) = &mut self.page {
            page.take(&quoted, recorded)?;
        }
        self.printer.print(&quoted, recorded)
    }

    /// What comes next has nothing to do with what came, and alone decides the exit status.
    pub(crate) fn forget(&mut self) {
        (self.found, self.hops) = (false, Gathering::default());
    }

    /// Ends the report with what captures show together. Whether something that `--fail-on` names was found.
    pub(crate) fn finish(self, stop: &Stop) -> Result<bool> {
        let Self { asked, printer, page, hops, found, .. } = self;
        let hops = hops.finish(asked.filter.as_ref(), asked.connection, stop);
        let mut in_hops = hops.iter().flat_map(|hops| &hops.pairs).flat_map(|pair| &pair.findings);
        let found = found || in_hops.any(|finding| is_named(asked.fail_on, finding));
        output::unless_broken_pipe(printer.finish(hops.as_ref()))?;
        page.map_or(Ok(()), |page| page.finish(hops.as_ref(), asked.filter.as_ref(), stop))?;
        Ok(found)
    }

    /// Says so if none of the file's captures had the connection that was asked for.
    fn end_of_file(&mut self) -> Result<(), Trouble> {
        let connections = mem::take(&mut self.connections);
        match self.asked.connection {
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

/// Whether `--fail-on` names it.
fn is_named(fail_on: &[FailOn], finding: &Finding) -> bool {
    fail_on.iter().any(|name| name.matches(finding))
}
