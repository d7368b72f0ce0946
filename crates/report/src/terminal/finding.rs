//! One finding: what, whose, how much; why; what to do.

use std::io;

use owo_colors::Style;
use tcpwhy_diagnose::report::{Blame, Blamed, Evidence, Finding, Fix, Severity, Source, WhatIf};

use super::connection::{name, side};
use super::survey::RuleTotal;
use super::verdict::{Sign, Verdict};
use crate::number;
use crate::page::Page;
use crate::plain::plain;
use crate::what_if;

const BODY: &str = "    ";
/// Packets shown of each finding; JSON has all of them.
pub(crate) const EVIDENCE_SHOWN: usize = 6;

/// A note of at least this confidence is not said to be uncertain.
const SURE: f64 = 0.9;

/// What was already printed: where it comes again, a reference to it is enough.
pub(super) struct Printed<'a> {
    source: &'a dyn Source,
    fixes: Vec<(Vec<Fix>, Place)>,
    /// The packets shown for the findings of the present connection.
    packets: Vec<(Vec<u64>, &'static str)>,
    /// What fixes of the present connection would have saved.
    what_ifs: Vec<WhatIf>,
}

/// Where something was printed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    rule: &'static str,
    connection: Option<u64>,
}

/// The sign of a severity and its colour.
pub(crate) fn mark(severity: Severity) -> (&'static str, Style) {
    Sign::from(severity).look()
}

/// Writes one finding. Its sentence is left out if the verdict has just said it.
pub(super) fn write(
    page: &mut Page<'_>,
    finding: &Finding,
    verdict: &Verdict,
    printed: &mut Printed<'_>,
) -> io::Result<()> {
    write_head(page, finding)?;
    if !verdict.has_said(finding) {
        page.hanging(BODY, &plain(&finding.summary))?;
    }
    printed.evidence(page, finding)?;
    printed.fixes(page, finding)?;
    printed.what_if(page, finding)
}

/// What it is, whose, and how much.
pub(super) fn write_head(page: &mut Page<'_>, finding: &Finding) -> io::Result<()> {
    let (sign, style) = mark(finding.severity);
    let title = page.ink.paint(style, &format!("{sign} {}", finding.rule));
    let kind = match finding.severity {
        Severity::Problem => "",
        Severity::Advice => "advice · ",
        Severity::Note => "note · ",
    };
    page.hanging(&format!("  {title}  "), &format!("{}{}", page.ink.faint(kind), blamed(&finding.blame)))?;
    page.items(BODY, &figures(finding))
}

/// One rule's findings on connections, in a line.
pub(super) fn write_total(page: &mut Page<'_>, total: &RuleTotal) -> io::Result<()> {
    const RULE_COLUMNS: usize = 22;
    let (sign, style) = mark(total.severity);
    let rule = page.ink.paint(style, &format!("{sign} {:RULE_COLUMNS$}", total.rule));
    let mut items = vec![format!("on {}", number::count(total.findings))];
    if total.cost_ms > 0.0
        && let Some(id) = total.worst.connection
    {
        items.push(number::duration(total.cost_ms));
        items.push(format!("worst #{id} with {}", number::duration(total.worst.cost_ms.0)));
    }
    page.hanging(&format!("{BODY}{rule}  "), &items.join(", "))
}

/// The side to blame, with its address where it has one.
pub(crate) fn blamed(blame: &Blame) -> String {
    let who = match blame.side {
        Blamed::Client => "client",
        Blamed::Server => "server",
        Blamed::Both => "both sides",
        Blamed::Network => "the network",
        Blamed::Capture => "the capture",
    };
    match &blame.address {
        Some(address) => format!("{who} {}", name(address)),
        None => who.to_owned(),
    }
}

/// What it costs, how often, how sure that is.
pub(crate) fn figures(finding: &Finding) -> Vec<String> {
    let mut items = Vec::new();
    if finding.cost_ms.0 > 0.0 {
        items.push(format!("costs {}", number::duration(finding.cost_ms.0)));
    }
    if finding.count > 1 {
        items.push(number::plural(finding.count, "time"));
        if finding.worst_ms.0 > 0.0 {
            items.push(format!("worst {}", number::duration(finding.worst_ms.0)));
        }
    }
    if finding.severity == Severity::Note && finding.confidence >= SURE {
        return items;
    }
    items.push(format!("confidence {}", number::percent(finding.confidence, 1.0)));
    items
}

fn write_evidence(page: &mut Page<'_>, evidence: &[Evidence]) -> io::Result<()> {
    let shown = &evidence[..evidence.len().min(EVIDENCE_SHOWN)];
    let numbers: Vec<String> = shown.iter().map(|packet| number::count(packet.packet)).collect();
    let times: Vec<String> = shown.iter().map(|packet| number::moment(packet.time_ms.0)).collect();
    let number_width = numbers.iter().map(String::len).max().unwrap_or(0);
    let time_width = times.iter().map(String::len).max().unwrap_or(0);
    let mut label = "why";
    for ((packet, number), time) in shown.iter().zip(&numbers).zip(&times) {
        let place = format!("packet {number:>number_width$}  {time:>time_width$}  ");
        let first = format!("{BODY}{}  {}", page.ink.bold(label), page.ink.faint(&place));
        page.hanging(&first, &plain(&packet.note))?;
        label = "   ";
    }
    if evidence.len() > shown.len() {
        let more =
            format!("and {} more, in the JSON report", number::count((evidence.len() - shown.len()) as u64));
        page.hanging(&format!("{BODY}     "), &page.ink.faint(&more))?;
    }
    Ok(())
}

/// Ways to mend it, in order of preference.
pub(super) fn write_fixes(page: &mut Page<'_>, fixes: &[Fix]) -> io::Result<()> {
    let mut first = format!("{BODY}{}  ", page.ink.bold("fix"));
    for (i, fix) in fixes.iter().enumerate() {
        let title = page.ink.bold(&sentence(&plain(&fix.title)));
        page.hanging(&format!("{first}{}. ", i + 1), &format!("{title} {}", plain(&fix.how)))?;
        first = format!("{BODY}     ");
    }
    Ok(())
}

impl<'a> Printed<'a> {
    /// Nothing yet of `source`.
    pub(super) fn of(source: &'a dyn Source) -> Self {
        Self { source, fixes: Vec::new(), packets: Vec::new(), what_ifs: Vec::new() }
    }

    /// A new connection begins: its packets have not been shown yet.
    pub(super) fn next_connection(&mut self) {
        self.packets.clear();
        self.what_ifs.clear();
    }

    fn evidence(&mut self, page: &mut Page<'_>, finding: &Finding) -> io::Result<()> {
        let packets: Vec<u64> = finding.evidence.iter().map(|evidence| evidence.packet).collect();
        if let Some((_, rule)) = self.packets.iter().find(|(shown, _)| *shown == packets)
            && !packets.is_empty()
        {
            let label = format!("{BODY}{}  ", page.ink.bold("why"));
            return page.hanging(&label, &format!("the same packets as {rule} above"));
        }
        self.packets.push((packets, finding.rule));
        write_evidence(page, &finding.evidence)
    }

    fn fixes(&mut self, page: &mut Page<'_>, finding: &Finding) -> io::Result<()> {
        if finding.fixes.is_empty() {
            return Ok(());
        }
        let here = Place { rule: finding.rule, connection: finding.connection };
        if let Some((_, place)) = self.fixes.iter().find(|(fixes, _)| *fixes == finding.fixes) {
            let label = format!("{BODY}{}  ", page.ink.bold("fix"));
            return page.hanging(&label, &format!("as for {} above", place.seen_from(here)));
        }
        write_fixes(page, &finding.fixes)?;
        self.fixes.push((finding.fixes.clone(), here));
        Ok(())
    }

    /// What a fix would have saved. Two findings that show the same time have the same fix: once is enough.
    fn what_if(&mut self, page: &mut Page<'_>, finding: &Finding) -> io::Result<()> {
        let Some(what_if) = self.source.what_if(finding).filter(|found| !self.what_ifs.contains(found))
        else {
            return Ok(());
        };
        let place = what_if.side.map_or(String::new(), |at| format!(" on the {}", side(at)));
        let (fix, rest) = what_if::sentence(&what_if);
        let fix = page.ink.bold(&plain(&format!("{fix}{place}")));
        let trust = page.ink.faint(&what_if::likeness(&what_if));
        page.hanging(&format!("{BODY}{}  ", page.ink.bold("what if")), &format!("{fix} {rest} {trust}"))?;
        self.what_ifs.push(what_if);
        Ok(())
    }
}

impl Place {
    fn seen_from(self, here: Self) -> String {
        match self.connection {
            id if id == here.connection => self.rule.to_owned(),
            Some(id) => format!("#{id}"),
            None => "the capture".to_owned(),
        }
    }
}

/// `text` with the full stop it may lack.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() || text.ends_with(['.', '!', '?', ':', '…']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}
