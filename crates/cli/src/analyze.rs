//! `tcpwhy FILE…`: the main job.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::mem;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

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
use crate::link::quantity;
use crate::memory;
use crate::narrowed::{Named, Narrowed};
use crate::nothing::{Had, can_judge};
use crate::parts::Parts;
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

    /// Read each file as a capture of its own
    ///
    /// Files that a recorder went through (tcpdump -C and -G, dumpcap -b, editcap -c) are otherwise one capture: where their names
    /// say so, and each begins when the one before has ended.
    #[arg(long, hide_short_help = true)]
    separate: bool,

    /// Memory that the connections may take: 500MB, 4GB
    ///
    /// By default half of what the machine has, or the cgroup or ulimit where that is less. A connection takes about a
    /// kilobyte. When it is used up, half of the connections are forgotten: those that lost little and had been quiet for
    /// longest. Their time stays in the sums, and a note says how many they were.
    #[arg(long, value_name = "SIZE", hide_short_help = true, value_parser = quantity::memory)]
    memory: Option<u64>,

    #[command(flatten)]
    html: html::Args,

    /// Colour: auto, always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, hide_short_help = true, default_value_t = Color::Auto)]
    color: Color,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_ctrl_c();
    args.memory.into_iter().for_each(memory::set);
    let options = Options {
        width: output::columns(),
        color: output::colored(args.color),
        top: args.top,
        ..Options::default()
    };
    let asked = Asked {
        filter: Filter::new(&args.host, &args.port).map(Rc::new),
        connection: args.connection,
        whatif: args.whatif,
        top: args.top,
        fail_on: &args.fail_on,
        needs_something: true,
    };
    let captures = if args.separate { one_by_one(&args.files) } else { Parts::of(&args.files) };
    let page = args.html.begin(captures.len())?;
    let out: Box<dyn Write> =
        if args.html.is_stdout() { Box::new(io::sink()) } else { Box::new(output::stdout()) };
    let printer = Printer::new(out, args.format, options, &args.fail_on)?;
    let mut results = Results::new(asked, printer, page);
    let mut unread = false;
    let mut left = VecDeque::from(captures);
    while let Some(parts) = left.pop_front() {
        let told = match stop.requested() {
            true => Err(Trouble::Input("not read, after Ctrl-C".to_owned())),
            false => results.file_with_something(&parts, &stop),
        };
        match told {
            Ok(()) => {}
            Err(Trouble::Input(what)) => {
                unread = true;
                let name = parts.name();
                complaint::say(&format!("{name}: {what}"));
                output::unless_broken_pipe(results.printer.unread(&name, &what))?;
            }
            Err(Trouble::Output(error)) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(Trouble::Output(error)) => return Err(output::failed(error)),
        }
        // Files that do not go on where the one before ended.
        if let Some(others) = parts.others() {
            left.push_front(others);
        }
    }
    let found = results.finish(&stop)?;
    Ok(match (unread, found) {
        (true, _) => TROUBLE.into(),
        (false, true) => FOUND.into(),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn one_by_one(files: &[PathBuf]) -> Vec<Rc<Parts>> {
    files.iter().map(|path| Rc::new(Parts::from(path.as_path()))).collect()
}

/// What is to be told of files; by default all of each.
#[derive(Default)]
pub(crate) struct Asked<'a> {
    /// The packets that count.
    pub(crate) filter: Option<Rc<Filter>>,
    /// The only connection that counts.
    pub(crate) connection: Option<u64>,
    /// When fixes are tried.
    pub(crate) whatif: When,
    /// Connections, and sockets, that are shown in full.
    pub(crate) top: usize,
    /// What the exit status depends on.
    pub(crate) fail_on: &'a [FailOn],
    /// Whether a capture of nothing is none: no packet, none that was asked for, none that `fail_on` can judge.
    pub(crate) needs_something: bool,
}

/// Prints results, and remembers what the exit status depends on.
pub(crate) struct Results<'a, W: Write> {
    asked: Asked<'a>,
    pub(crate) printer: Printer<W>,
    page: Option<Page>,
    hops: Gathering,
    /// Whether something that `--fail-on` names was found.
    found: bool,
    /// What the captures of this file had.
    had: Had,
}

impl<'a, W: Write> Results<'a, W> {
    /// `page` is what is made of the results beside what is printed.
    pub(crate) fn new(asked: Asked<'a>, printer: Printer<W>, page: Option<Page>) -> Self {
        Self { asked, printer, page, hops: Gathering::default(), found: false, had: Had::default() }
    }

    /// Analyses a file, which has to have something that was asked for.
    fn file_with_something(&mut self, parts: &Rc<Parts>, stop: &Stop) -> Result<(), Trouble> {
        let read = self.file(parts, None, stop);
        let had = mem::take(&mut self.had);
        read?;
        let nothing = had.nothing(self.asked.filter.as_deref(), self.asked.connection);
        nothing.map_or(Ok(()), |why| Err(Trouble::Input(why)))
    }

    /// Analyses a file. `name` is what it is called where that is not its path.
    pub(crate) fn file(&mut self, parts: &Rc<Parts>, name: Option<&str>, stop: &Stop) -> Result<(), Trouble> {
        let mut quoting = Quoting::new(parts, self.asked.whatif, self.asked.top, stop);
        let filter = self.asked.filter.clone();
        self.hops.next_file(parts);
        self.page.iter_mut().for_each(|page| page.next_file(parts));
        let take = &mut |analyzed: Analyzed| {
            self.hops.take(&analyzed.diagnosis);
            self.take(analyzed, name, &mut quoting)
        };
        drive::captures(parts, filter.as_deref(), None, stop, take)
    }

    fn take(&mut self, analyzed: Analyzed, name: Option<&str>, quoting: &mut Quoting<'_>) -> io::Result<()> {
        quoting.next_capture();
        self.page.iter_mut().for_each(Page::next_capture);
        let Analyzed { diagnosis, mut recorded, programs } = analyzed;
        self.had.capture(&diagnosis, recorded.as_ref());
        let programs = &programs;
        let Some(id) = self.asked.connection else {
            let named = Named { whole: &Peopled { whole: &diagnosis, programs }, name };
            return self.print(&named, &diagnosis, recorded.as_ref(), quoting);
        };
        let Ok(narrowed) = Narrowed::new(diagnosis, id) else { return Ok(()) };
        if let Some(recorded) = &mut recorded {
            recorded.narrow(narrowed.connection());
        }
        let peopled = Peopled { whole: &narrowed, programs };
        self.print(&peopled, narrowed.whole(), recorded.as_ref(), quoting)
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
        let is_something = self.is_something(shown, recorded);
        self.had.something |= is_something;
        self.found = self.found || self.has_named(shown, recorded);
        if !is_something && (recorded.is_none() && shown.capture().packets == 0 || self.printer.is_verdict())
        {
            return Ok(());
        }
        let quoted = quoting.quoted(shown, whole);
        if let Some(page) = self.page.as_mut().filter(|_| is_something) {
            page.take(&quoted, recorded)?;
        }
        self.printer.print(&quoted, recorded)
    }

    /// Whether it has something that was asked for and, with `--fail-on`, that this can judge.
    fn is_something(&self, shown: &dyn Source, recorded: Option<&Recorded>) -> bool {
        let Asked { filter, fail_on, needs_something, .. } = &self.asked;
        let has_any = || {
            let has_calls = recorded.is_some_and(|recorded| filter.is_none() || !recorded.sockets.is_empty());
            let has_packets = filter.is_none() && shown.capture().packets > 0;
            has_calls || has_packets || shown.connections().next().is_some()
        };
        // What is found counts even where nothing to find would not.
        let is_judged =
            || fail_on.is_empty() || can_judge(fail_on, shown, recorded) || self.has_named(shown, recorded);
        !needs_something || has_any() && is_judged()
    }

    /// Whether it has something that `--fail-on` names.
    fn has_named(&self, shown: &dyn Source, recorded: Option<&Recorded>) -> bool {
        let named = self.asked.fail_on;
        let in_calls = recorded.is_some_and(Recorded::has_split_writes);
        in_calls && named.iter().any(|name| name.names(SPLIT_WRITE))
            || !named.is_empty() && shown.findings().any(|finding| is_named(named, &finding))
    }

    /// What comes next has nothing to do with what came, and alone decides the exit status.
    pub(crate) fn forget(&mut self) {
        (self.found, self.hops) = (false, Gathering::default());
    }

    /// Ends the report with what captures show together. Whether something that `--fail-on` names was found.
    pub(crate) fn finish(self, stop: &Stop) -> Result<bool> {
        let Self { asked, printer, page, hops, found, .. } = self;
        let hops = hops.finish(asked.filter.as_deref(), asked.connection, stop);
        let mut in_hops = hops.iter().flat_map(|hops| &hops.pairs).flat_map(|pair| &pair.findings);
        let found = found || in_hops.any(|finding| is_named(asked.fail_on, finding));
        output::unless_broken_pipe(printer.finish(hops.as_ref()))?;
        page.map_or(Ok(()), |page| page.finish(hops.as_ref(), asked.filter.as_deref(), stop))?;
        Ok(found)
    }
}

/// Whether `--fail-on` names it.
fn is_named(fail_on: &[FailOn], finding: &Finding) -> bool {
    fail_on.iter().any(|name| name.matches(finding))
}
