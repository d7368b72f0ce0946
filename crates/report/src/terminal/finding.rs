//! One finding: what, whose, how much; why; what to do.

use std::io;

use owo_colors::Style;
use tcpwhy_diagnose::report::{Blame, Blamed, Evidence, Finding, Fix, Severity};

use super::connection::name;
use super::survey::RuleTotal;
use super::verdict::Verdict;
use crate::number;
use crate::page::Page;
use crate::plain::plain;

const BODY: &str = "    ";
/// Packets shown of each finding; JSON has all of them.
const EVIDENCE_SHOWN: usize = 6;

/// A note of at least this confidence is not said to be uncertain.
const SURE: f64 = 0.9;

/// The fixes already printed: on the next connection with the same fault a reference to them is enough.
#[derive(Default)]
pub(super) struct Fixes(Vec<(&'static str, Vec<Fix>, String)>);

/// The sign of a severity and its colour.
pub(crate) fn mark(severity: Severity) -> (&'static str, Style) {
    match severity {
        Severity::Problem => ("✖", Style::new().bold().red()),
        Severity::Advice => ("▲", Style::new().bold().yellow()),
        Severity::Note => ("○", Style::new().bold().blue()),
    }
}

/// Writes one finding. Its sentence is left out if the verdict has just said it.
pub(super) fn write(
    page: &mut Page<'_>,
    finding: &Finding,
    verdict: &Verdict,
    fixes: &mut Fixes,
) -> io::Result<()> {
    let (sign, style) = mark(finding.severity);
    let title = page.ink.paint(style, &format!("{sign} {}", finding.rule));
    let kind = match finding.severity {
        Severity::Problem => "",
        Severity::Advice => "advice · ",
        Severity::Note => "note · ",
    };
    page.hanging(&format!("  {title}  "), &format!("{}{}", page.ink.faint(kind), blamed(&finding.blame)))?;
    page.items(BODY, &figures(finding))?;
    if !verdict.has_said(finding) {
        page.hanging(BODY, &plain(&finding.summary))?;
    }
    write_evidence(page, &finding.evidence)?;
    fixes.write(page, finding)
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

fn blamed(blame: &Blame) -> String {
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

fn figures(finding: &Finding) -> Vec<String> {
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

impl Fixes {
    fn write(&mut self, page: &mut Page<'_>, finding: &Finding) -> io::Result<()> {
        if finding.fixes.is_empty() {
            return Ok(());
        }
        let label = format!("{BODY}{}  ", page.ink.bold("fix"));
        let printed = self.0.iter().find(|(rule, fixes, _)| *rule == finding.rule && *fixes == finding.fixes);
        if let Some((_, _, place)) = printed {
            return page.hanging(&label, &format!("as for {place} above"));
        }
        let mut first = label;
        for (i, fix) in finding.fixes.iter().enumerate() {
            let title = page.ink.bold(&sentence(&plain(&fix.title)));
            page.hanging(&format!("{first}{}. ", i + 1), &format!("{title} {}", plain(&fix.how)))?;
            first = format!("{BODY}     ");
        }
        let place = finding.connection.map_or("the capture".to_owned(), |id| format!("#{id}"));
        self.0.push((finding.rule, finding.fixes.clone(), place));
        Ok(())
    }
}

/// `text` with the full stop it may lack.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() || text.ends_with(['.', '!', '?', ':', '…']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}
