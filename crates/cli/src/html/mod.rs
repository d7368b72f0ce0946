//! `--html FILE`: the report as a page to look at, beside the one that is printed.
//!
//! What the page lists is chosen while the captures pass; whose packets it has is known only after the last of them, so that
//! takes a second look at the files.

mod gathered;
mod tables;
mod target;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use clap::ValueHint;
use tcpwhy_diagnose::detectors::Language;
use tcpwhy_diagnose::hops::Hops;
use tcpwhy_diagnose::report::Source;
use tcpwhy_report::html::{self, Chosen, Data, Limits, Listed, texts};
use tcpwhy_report::json::Writer;
use tcpwhy_report::number;
use tcpwhy_report::page::GLUE;
use tcpwhy_report::terminal::Options;

use crate::analyze::{Asked, Results};
use crate::args::ReportFormat;
use crate::calls::Recorded;
use crate::complaint;
use crate::drive::Trouble;
use crate::filter::Filter;
use crate::parts::Parts;
use crate::printer::Printer;
use crate::stop::Stop;
use gathered::{Gathered, Place};
use target::Target;

/// Captures in one page. A text may have any number of blocks.
const MOST_CAPTURES: usize = 500;
/// Sockets whose calls the page tells, of each recording.
const MOST_SOCKETS: usize = 500;
/// Conversations through a proxy that it tells.
const MOST_PAIRS: usize = 500;

const WITHOUT: &str =
    "this tcpwhy was built without the page: run `make viewer`, then build again (cargo build --release)";

/// The page's options.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Write the report as an interactive page, too
    ///
    /// One file, for a browser: it loads nothing and can be sent to others. - is standard output, instead of the report.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Packets in the page, of all connections together
    ///
    /// Connections with findings come first, then the busiest. Of one with more packets than there is room for, every
    /// second, third, … is there, and all near the evidence of findings. 0 for none.
    #[arg(long, value_name = "N", requires = "html", hide_short_help = true, default_value_t = html::PACKETS)]
    pub(crate) html_packets: u64,
}

impl Args {
    /// Whether the page goes to standard output, where nothing else may go then.
    pub(crate) fn is_stdout(&self) -> bool {
        self.html.as_deref() == Some(Path::new("-"))
    }

    /// The page of about so many captures, if one is wanted; said now if it cannot be made.
    pub(crate) fn begin(&self, captures: usize) -> Result<Option<Page>> {
        self.html.as_deref().map(|path| self.page(captures, || Target::new(path))).transpose()
    }

    fn page(&self, captures: usize, target: impl FnOnce() -> Result<Target>) -> Result<Page> {
        let page = Page::new(captures, self.html_packets)?;
        Ok(Page { target: Some(target()?), ..page })
    }

    /// The same where standard output is taken.
    pub(crate) fn begin_in_file(&self, captures: usize) -> Result<Option<Page>> {
        self.refuse_stdout()?;
        self.begin(captures)
    }

    /// The same for one capture by who is about to give up the right to write there.
    pub(crate) fn begin_held(&self) -> Result<Option<Page>> {
        self.refuse_stdout()?;
        self.html.as_deref().map(|path| self.page(1, || Target::held(path))).transpose()
    }

    /// Refuses to write the page over what else is written, packets or calls.
    pub(crate) fn apart_from(&self, other: Option<&Path>) -> Result<()> {
        match &self.html {
            Some(page) if Some(page.as_path()) == other => {
                bail!("{} cannot be both: give the page a name of its own", page.display())
            }
            _ => Ok(()),
        }
    }

    fn refuse_stdout(&self) -> Result<()> {
        if self.is_stdout() {
            bail!("--html - is for captures: name a file here");
        }
        Ok(())
    }
}

/// Analyses captures that were made for it, each under its name, and writes the page.
pub(crate) fn of_captures(page: Page, captures: &[(PathBuf, String)]) -> Result<()> {
    let options = Options::default();
    let asked = Asked { top: options.top, ..Asked::default() };
    let printer = Printer::new(io::sink(), ReportFormat::Terminal, options, &[])?;
    let (mut results, stop) = (Results::new(asked, printer, Some(page)), Stop::default());
    for (path, name) in captures {
        match results.file(&Rc::new(path.as_path().into()), Some(name), &stop) {
            Ok(()) => {}
            Err(Trouble::Input(why)) => bail!("{}: {why}", path.display()),
            Err(Trouble::Output(error)) => return Err(error.into()),
        }
    }
    // Two captures of the same packets are no two hops.
    results.forget();
    results.finish(&stop).map(drop)
}

/// A page on its way.
pub(crate) struct Page {
    template: &'static str,
    /// Where [`Page::finish`] writes it.
    target: Option<Target>,
    /// For each capture, and what all together have left.
    limits: Limits,
    room: Limits,
    /// Packets.
    budget: u64,
    report: Writer<Vec<u8>>,
    captures: Vec<Gathered>,
    rules: BTreeSet<&'static str>,
    /// The file that is being read, where it can be read again.
    file: Option<Rc<Parts>>,
    /// Which capture of it comes next.
    next: usize,
    /// Captures beyond those that a page has.
    left_out: usize,
}

impl Page {
    /// The page of about so many captures with so many packets, for [`Page::write`].
    pub(crate) fn new(captures: usize, packets: u64) -> Result<Self> {
        Ok(Self {
            template: html::template::REPORT.context(WITHOUT)?,
            target: None,
            limits: Limits::one_of(captures),
            room: Limits::one_of(1),
            budget: packets,
            report: Writer::begin(Vec::new(), env!("CARGO_PKG_VERSION"))?,
            captures: Vec::new(),
            rules: BTreeSet::new(),
            file: None,
            next: 0,
            left_out: 0,
        })
    }

    /// The file that it goes into, where that is held open.
    pub(crate) fn file(&self) -> Option<&File> {
        self.target.as_ref().and_then(Target::file)
    }

    /// The next file begins.
    pub(crate) fn next_file(&mut self, file: &Rc<Parts>) {
        self.next = 0;
        // A pipe can be read once only.
        self.file = file.size().is_some().then(|| Rc::clone(file));
    }

    /// The next capture of the present file begins.
    pub(crate) fn next_capture(&mut self) {
        self.next += 1;
    }

    /// Takes the present capture's report; `recorded` is what was recorded beside the packets.
    pub(crate) fn take(&mut self, source: &dyn Source, recorded: Option<&Recorded>) -> io::Result<()> {
        let place = match &self.file {
            Some(file) => Place::In { file: file.paths(), capture: self.next.saturating_sub(1) },
            None => Place::Nowhere(tables::UNREADABLE),
        };
        self.take_at(source, recorded, place)
    }

    /// The same of a capture whose packets are nowhere, for this reason.
    pub(crate) fn take_alone(&mut self, source: &dyn Source, why: &'static str) -> io::Result<()> {
        self.take_at(source, None, Place::Nowhere(why))
    }

    fn take_at(&mut self, source: &dyn Source, recorded: Option<&Recorded>, place: Place) -> io::Result<()> {
        if self.captures.len() >= MOST_CAPTURES {
            self.left_out += 1;
            return Ok(());
        }
        let chosen = Chosen::of(source, self.limits.within(self.room));
        self.room = self.room.beside(&chosen);
        let calls = recorded.map(|recorded| recorded.first(MOST_SOCKETS));
        self.report.recorded_capture(&Listed::of(source, &chosen), calls.as_ref())?;
        self.rules.extend(&chosen.rules);
        self.captures.push(Gathered::new(source, chosen, place));
        Ok(())
    }

    /// Writes the page to where the arguments say, and says so.
    pub(crate) fn finish(mut self, hops: Option<&Hops>, filter: Option<&Filter>, stop: &Stop) -> Result<()> {
        let Some(target) = self.target.take().filter(|_| !self.captures.is_empty()) else {
            // Why is said already, and a page of nothing would take the place of one with something.
            return Ok(());
        };
        let left_out = self.left_out;
        let bytes = target.write(|out| self.write(hops, filter, stop, out))?;
        if let Some(path) = target.path() {
            let size = number::bytes(bytes).replace(GLUE, " ");
            complaint::say(&format!("the page is {}, {size}: open it in a browser", path.display()));
        }
        if left_out > 0 {
            let left_out = number::count(left_out as u64);
            complaint::say(&format!("the page has {MOST_CAPTURES} captures; {left_out} more are not in it"));
        }
        Ok(())
    }

    /// Looks for packets and writes the page; `hops` are the conversations that its captures show on two hops.
    pub(crate) fn write(
        mut self,
        hops: Option<&Hops>,
        filter: Option<&Filter>,
        stop: &Stop,
        mut out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let hops = hops.map(|hops| {
            let pairs = hops.pairs.iter().take(MOST_PAIRS).cloned().collect();
            Hops { pairs, notes: hops.notes.clone() }
        });
        let in_hops = hops.iter().flat_map(|hops| &hops.pairs).flat_map(|pair| &pair.findings);
        for finding in in_hops {
            self.rules.insert(finding.rule);
            for evidence in &finding.evidence {
                let capture = evidence.capture.and_then(|capture| self.captures.get_mut(capture));
                capture.map(|gathered| gathered.shared_evidence.insert(evidence.packet));
            }
        }
        let tables = tables::look_again(&mut self.captures, self.budget, filter, stop);
        let captures: Vec<_> = self.captures.into_iter().map(|gathered| gathered.page).collect();
        let page = html::Page {
            format: html::FORMAT,
            captures: &captures,
            languages: &Language::ALL,
            rules: &texts(&self.rules),
        };
        let report = self.report.end_with(hops.as_ref())?;
        let data = Data { report: &report, page: &page, tables: &tables };
        html::write(&mut out, self.template, &data)
    }
}
