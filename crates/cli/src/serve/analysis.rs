//! One capture of the folder, analysed as `tcpwhy FILE` does it, without a terminal.

use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::StatusCode;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use tcpwhy_diagnose::report::{LedgerMs, Ms, Severity, Source};
use tcpwhy_report::comparison::{Digest, RuleTotal};
use tcpwhy_report::{html, terminal};

use super::answer::{Outcome, Problem};
use super::folder;
use super::store::Report;
use crate::calls::Located;
use crate::drive::{self, Analyzed, Trouble};
use crate::hops::Gathering;
use crate::html::Page;
use crate::parts::Parts;
use crate::programs::Peopled;
use crate::quote::{Quoting, When};
use crate::stop::Stop;

/// Bytes of a page, compressed: several times what the largest captures make, and small enough to be in memory.
const MOST_BYTES: usize = 64 << 20;
/// Connections whose fixes are tried, as `tcpwhy FILE` does it.
const TOP: usize = 5;
/// Rules that the list names.
const RULES: usize = 4;

/// What the list of reports shows of one.
#[derive(Debug, Serialize)]
struct Summary {
    verdict: String,
    packets: u64,
    bytes: u64,
    connections: u64,
    /// How long they lasted, added up.
    connected_ms: Ms,
    ledger_ms: LedgerMs,
    /// The rules that found most.
    rules: Vec<RuleTotal>,
    /// Rules beyond those.
    more_rules: usize,
}

/// Makes the report of a capture in the folder.
pub(super) fn make(capture: &str, stop: &Stop) -> Outcome<Report> {
    let entry = folder::entry_of(capture.to_owned(), &folder::open(capture)?).map_err(Problem::here)?;
    let mut making = Making::default();
    let page = making.read(Path::new(capture), stop)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let text = |value: serde_json::Result<String>| value.map_err(Problem::here);
    Ok(Report {
        capture: entry.name,
        size: entry.size,
        modified_ms: entry.modified_ms,
        made_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        summary: text(serde_json::to_string(&making.summary()))?,
        digest: text(serde_json::to_string(&making.digest))?,
        page,
    })
}

fn unread(trouble: Trouble) -> Problem {
    match trouble {
        Trouble::Input(why) => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, why),
        Trouble::Output(error) => Problem::here(error),
    }
}

/// What becomes of a file's captures.
#[derive(Default)]
struct Making {
    digest: Digest,
    /// Of the capture that lost most, and how much that was.
    verdict: Option<(f64, String)>,
    captures: usize,
}

impl Making {
    /// Reads the capture; its page, compressed.
    fn read(&mut self, path: &Path, stop: &Stop) -> Outcome<Vec<u8>> {
        let mut page = Page::new(1, html::PACKETS).map_err(Problem::here)?;
        let file = Rc::new(Parts::from(path));
        page.next_file(&file);
        let mut quoting = Quoting::new(&file, When::Auto, TOP, stop);
        let mut hops = Gathering::default();
        hops.next_file(&file);
        let read =
            drive::captures(&file, None, None, stop, &mut |Analyzed { diagnosis, recorded, programs }| {
                hops.take(&diagnosis);
                page.next_capture();
                quoting.next_capture();
                let peopled = Peopled { whole: &diagnosis, programs: &programs };
                let located = recorded.as_ref().map(|recorded| Located::new(&peopled, recorded));
                let shown: &dyn Source = located.as_ref().map_or(&peopled, |located| located);
                self.take(shown);
                page.take(&quoting.quoted(shown, &diagnosis), recorded.as_ref())
            });
        read.map_err(unread)?;
        let hops = hops.finish(None, None, stop);
        let mut out = GzEncoder::new(Bounded { bytes: Vec::new(), stop }, Compression::default());
        let written = page.write(hops.as_ref(), None, stop, &mut out);
        written.and_then(|()| out.finish()).map(|out| out.bytes).map_err(Problem::here)
    }

    fn take(&mut self, source: &dyn Source) {
        self.captures += 1;
        self.digest.add(source);
        let lost = source.capture().ledger_ms.lost();
        if self.verdict.as_ref().is_none_or(|(most, _)| lost > *most) {
            self.verdict = Some((lost, terminal::verdict(source)));
        }
    }

    fn summary(&self) -> Summary {
        let digest = &self.digest;
        let verdict = self.verdict.as_ref().map_or(String::new(), |(_, verdict)| verdict.clone());
        let others = self.captures.saturating_sub(1);
        let mut rules = rules(digest);
        let more_rules = rules.len().saturating_sub(RULES);
        rules.truncate(RULES);
        Summary {
            verdict: if others > 0 {
                format!("{verdict} (The worst of {} captures.)", others + 1)
            } else {
                verdict
            },
            packets: digest.packets,
            bytes: digest.bytes,
            connections: digest.connections,
            connected_ms: digest.connected_ms,
            ledger_ms: digest.ledger_ms,
            rules,
            more_rules,
        }
    }
}

/// All problems, by rule, the costliest first.
fn rules(digest: &Digest) -> Vec<RuleTotal> {
    let mut all: Vec<RuleTotal> = Vec::new();
    let findings = digest.services.iter().flat_map(|service| &service.findings).chain(&digest.findings);
    for total in findings.filter(|total| total.severity == Severity::Problem) {
        match all.iter_mut().find(|sum| sum.rule == total.rule) {
            Some(sum) => {
                sum.findings += total.findings;
                sum.count += total.count;
                sum.cost_ms.0 += total.cost_ms.0;
            }
            None => all.push(total.clone()),
        }
    }
    all.sort_by(|a, b| b.cost_ms.0.total_cmp(&a.cost_ms.0));
    all
}

/// Memory up to a limit, until somebody stops it.
struct Bounded<'a> {
    bytes: Vec<u8>,
    stop: &'a Stop,
}

impl Write for Bounded<'_> {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.stop.requested() {
            return Err(io::Error::other("stopped"));
        }
        if self.bytes.len() + more.len() > MOST_BYTES {
            return Err(io::Error::other(format!("its report is larger than {MOST_BYTES} bytes")));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
