//! What fixes would have saved, quoted in the normal report.
//!
//! A prediction needs a connection's packets, so it takes a second look at the file, and it takes replays. By default
//! both are bounded so that nobody notices; what would take more is left to `tcpwhy whatif`.

mod fixes;
mod packets;

use clap::ValueEnum;
use tcpwhy_diagnose::report::{Blamed, Capture, Connection, Finding, Source, WhatIf};
use tcpwhy_report::{number, terminal};
use tcpwhy_simulate::whatif::{self, Answer, Effort, Hints, Placed};

use crate::parts::Parts;
use crate::stop::Stop;
use crate::whatif::corked;
use packets::Wanted;

/// When fixes are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// Where it takes no time that anybody notices.
    #[default]
    Auto,
    /// Wherever the input is a file.
    Always,
    Never,
}

/// How much a report may take for its predictions.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Bytes that are read again, for all captures of a file together.
    bytes: u64,
    /// Packets of a capture that is read again.
    packets: u64,
    /// Work of the replays for a capture ([`Effort`]).
    effort: u64,
}

/// Effort that an answer takes for each packet of a connection, at least: five in each replay (two interfaces, arrivals,
/// timers), and four replays where not everything is as expected at once.
const LEAST_EFFORT: u64 = 20;

/// What hardly anybody notices: a second look at so many packets takes up to 100 ms, and so many replays as long again.
/// Of the labelled corpus, half of the captures take less than a millisecond more, the worst 120 ms (a debug build on a busy machine).
const UNNOTICED: Limits = Limits { bytes: 16 << 20, packets: 200_000, effort: 300_000 };
const UNLIMITED: Limits = Limits { bytes: u64::MAX, packets: u64::MAX, effort: u64::MAX };

/// Predictions for the captures of one file, one after the other.
pub(crate) struct Quoting<'a> {
    file: &'a Parts,
    /// Whether anybody asked.
    is_asked: bool,
    limits: Limits,
    /// Connections of a capture that are shown in full.
    top: usize,
    stop: &'a Stop,
    /// Captures of it that have begun.
    captures: usize,
    /// Bytes that were read again.
    again: u64,
}

impl<'a> Quoting<'a> {
    pub(crate) fn new(file: &'a Parts, when: When, top: usize, stop: &'a Stop) -> Self {
        let is_asked = when != When::Never;
        let limits = if when == When::Always { UNLIMITED } else { UNNOTICED };
        Self { file, is_asked, limits, top, stop, captures: 0, again: 0 }
    }

    /// The next capture begins.
    pub(crate) fn next_capture(&mut self) {
        self.captures += 1;
    }

    /// The present capture's report with predictions in it. `whole` has all of its connections.
    pub(crate) fn quoted<'s>(&mut self, source: &'s dyn Source, whole: &dyn Source) -> Quoted<'s> {
        Quoted { source, quotes: self.quotes(source, whole) }
    }

    fn quotes(&mut self, source: &dyn Source, whole: &dyn Source) -> Vec<Quote> {
        // A pipe can be read once only.
        let size = if self.is_asked { self.file.size() } else { None };
        let Some(size) = size.filter(|size| self.again.saturating_add(*size) <= self.limits.bytes) else {
            return Vec::new();
        };
        // After Ctrl-C somebody waits for the report, and the file has more than was read of it.
        if self.stop.requested() || source.capture().packets > self.limits.packets {
            return Vec::new();
        }
        let mut wanted = Wanted::of(whole, self.asked(source));
        let most = (self.limits.effort / LEAST_EFFORT).min(whatif::MOST_PACKETS as u64);
        wanted.retain(|wanted| wanted.count <= most);
        if wanted.is_empty() {
            return Vec::new();
        }
        self.again += size;
        let file = Parts::again(&self.file.paths());
        packets::gather(&file, self.captures - 1, &mut wanted, self.stop);
        self.predictions(&wanted)
    }

    /// What is shown in full and may be mended: findings about several connections, one by one, then those of one.
    fn asked(&self, source: &dyn Source) -> Vec<Vec<Finding>> {
        let about_several = source.findings().take_while(|finding| finding.connection.is_none());
        let about_several = about_several.filter(fixes::has_any).take(self.top).map(|finding| vec![finding]);
        let mendable = |id| source.findings_of(id).into_iter().filter(fixes::has_any).collect::<Vec<_>>();
        let about_one = terminal::shown(source, self.top).into_iter().map(mendable);
        about_several.chain(about_one).filter(|findings| !findings.is_empty()).collect()
    }

    fn predictions(&self, all: &[Wanted]) -> Vec<Quote> {
        let mut left = self.limits.effort;
        let mut quotes = Vec::new();
        for (number, wanted) in all.iter().enumerate() {
            // None takes all from those behind it.
            let effort = Effort::of(if number + 1 == all.len() { left } else { left / 2 });
            quotes.extend(predicted(wanted, &effort));
            left -= effort.spent();
        }
        quotes
    }
}

/// What fixes of these findings would have saved; nothing where the replay is not like the capture.
fn predicted(wanted: &Wanted, effort: &Effort) -> Vec<Quote> {
    let findings = &wanted.findings;
    let mut asked: Vec<Placed> = Vec::new();
    for fix in findings.iter().flat_map(fixes::of) {
        if !asked.contains(&fix) {
            asked.push(fix);
        }
    }
    let Some(packets) = wanted.connections() else { return Vec::new() };
    let hints = Hints { corked: corked(findings), writes: &wanted.writes };
    let Ok(answer) = whatif::ask_within(effort, &packets, hints, &asked) else {
        return Vec::new();
    };
    let quote = |finding: &Finding| Some((key(finding), said(finding, &answer)?));
    findings.iter().filter_map(quote).collect()
}

/// What the replay says of a finding.
fn said(finding: &Finding, answer: &Answer) -> Option<Said> {
    match fixes::most_saved(finding, answer) {
        Some(most) if most < finding.cost_ms.0 / CONTRADICTS => Some(Said::Contradicts(most)),
        _ => fixes::best(finding, answer).map(|best| Said::Saves(Box::new(best))),
    }
}

/// A replay that is like the capture and saves less than one in so many of a finding's cost, whatever fix is made, does not
/// bear the finding out: one of the two is wrong.
const CONTRADICTS: f64 = 3.0;
/// A finding that its replay does not bear out is no surer than this: as likely wrong as right.
const DOUBTED: f64 = 0.5;

/// What a replay says of a finding.
#[derive(Clone, Debug)]
enum Said {
    /// A fix saves this.
    Saves(Box<WhatIf>),
    /// The most that any of its fixes saves, ms, is far below its cost.
    Contradicts(f64),
}

/// What the replay says, and the finding it belongs to.
type Quote = (Key, Said);

/// What tells a capture's findings apart: rule, connection, blamed side, first packet of evidence.
type Key = (&'static str, Option<u64>, Blamed, Option<u64>);

fn key(finding: &Finding) -> Key {
    let packet = finding.evidence.first().map(|evidence| evidence.packet);
    (finding.rule, finding.connection, finding.blame.side, packet)
}

/// A report that knows what some fixes would have saved.
pub(crate) struct Quoted<'a> {
    source: &'a dyn Source,
    quotes: Vec<Quote>,
}

impl Source for Quoted<'_> {
    fn capture(&self) -> Capture {
        self.source.capture()
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        self.source.connections()
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        Box::new(self.source.findings().map(|finding| self.weighed(finding)))
    }

    fn skim(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        self.source.skim()
    }

    fn findings_of(&self, connection: u64) -> Vec<Finding> {
        self.source.findings_of(connection).into_iter().map(|finding| self.weighed(finding)).collect()
    }

    fn what_if(&self, finding: &Finding) -> Option<WhatIf> {
        match self.said_of(finding) {
            Some(Said::Saves(what_if)) => Some((**what_if).clone()),
            _ => None,
        }
    }
}

impl Quoted<'_> {
    fn said_of(&self, finding: &Finding) -> Option<&Said> {
        self.quotes.iter().find(|(of, _)| *of == key(finding)).map(|(_, said)| said)
    }

    /// The finding, less sure where its replay does not bear it out.
    fn weighed(&self, finding: Finding) -> Finding {
        let Some(Said::Contradicts(saved)) = self.said_of(&finding) else { return finding };
        let saved = number::duration(saved.max(0.0));
        let doubt = format!(
            "{} A replay of this connection without that would save {saved} only, so the cost is doubtful.",
            finding.summary
        );
        Finding { confidence: finding.confidence.min(DOUBTED), summary: doubt, ..finding }
    }
}
