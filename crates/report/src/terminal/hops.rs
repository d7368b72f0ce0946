//! A conversation on both sides of a proxy: what came on one hop and left on the other.

use std::io;

use owo_colors::Style;
use tcpwhy_diagnose::hops::{HopReport, Hops, Pair, Passed};
use tcpwhy_diagnose::report::{Finding, Severity};

use super::connection::name;
use super::finding::{self, mark};
use super::{Options, rule_between};
use crate::number;
use crate::page::{Page, shortened};
use crate::plain::plain;

const INDENT: &str = "    ";
/// What is kept no longer than this is passed on at once, ms.
const AT_ONCE: f64 = 1.0;

/// Writes what several captures, or one, show on both sides of proxies, below their reports.
pub fn write_hops(out: &mut impl io::Write, hops: &Hops, options: &Options) -> io::Result<()> {
    let page = &mut Page::new(out, options.width, options.color);
    rule_between(page)?;
    if !hops.pairs.is_empty() {
        write_verdict(page, hops)?;
    }
    for pair in &hops.pairs {
        page.blank()?;
        write_pair(page, pair)?;
    }
    if !hops.pairs.is_empty() && !hops.notes.is_empty() {
        page.blank()?;
    }
    let mut first = page.ink.faint("note  ");
    for note in &hops.notes {
        page.hanging(&first, &plain(note))?;
        first = "      ".to_owned();
    }
    let found = hops.pairs.iter().flat_map(|pair| &pair.findings).next();
    let Some(Finding { rule, .. }) = found else { return Ok(()) };
    page.blank()?;
    page.hanging(&page.ink.faint("More: "), &format!("tcpwhy explain {rule}"))
}

fn write_verdict(page: &mut Page<'_>, hops: &Hops) -> io::Result<()> {
    let findings: Vec<&Finding> = hops.pairs.iter().flat_map(|pair| &pair.findings).collect();
    let worst = findings.iter().max_by(|a, b| a.cost_ms.0.total_cmp(&b.cost_ms.0));
    let seen = match hops.pairs.len() {
        1 => "A conversation was seen on both of its sides.".to_owned(),
        many => format!("{} conversations were seen on both sides.", number::count(many as u64)),
    };
    let ((sign, style), head) = match worst {
        Some(worst) => {
            let whose =
                worst.blame.address.as_deref().map_or(String::new(), |address| format!(" {}", name(address)));
            let cost = number::duration(worst.cost_ms.0);
            (
                mark(Severity::Problem),
                format!("The proxy{whose} merges what passes through it: {cost} of waiting."),
            )
        }
        None => (("✔", Style::new().bold().green()), "The proxy merges nothing.".to_owned()),
    };
    let sign = page.ink.paint(style, sign);
    page.hanging(&format!("{sign} "), &format!("{} {seen}", page.ink.bold(&head)))
}

fn write_pair(page: &mut Page<'_>, pair: &Pair) -> io::Result<()> {
    let ends = format!("{} → proxy → {}", name(&pair.first.client), name(&pair.second.server));
    page.ruled(&page.ink.bold(&ends), "")?;
    write_hop(page, "before", &pair.first)?;
    write_hop(page, "behind", &pair.second)?;
    page.hanging(&format!("{INDENT}clocks  "), &clocks(pair))?;
    page.blank()?;
    let sides = [("to the server", '→'), ("to the client", '←')];
    for ((to, arrow), passed) in sides.into_iter().zip(pair.passed()) {
        let text = passed.map_or("nothing".to_owned(), through);
        page.hanging(&format!("{INDENT}{arrow} {to}  "), &text)?;
    }
    for finding in &pair.findings {
        page.blank()?;
        write_finding(page, finding, pair)?;
    }
    Ok(())
}

fn write_hop(page: &mut Page<'_>, place: &str, hop: &HopReport) -> io::Result<()> {
    let ends = format!("{} → {}", name(&hop.client), name(&hop.server));
    let of = page.ink.faint(&format!("#{} of {}", hop.connection, capture(page, hop)));
    page.hanging(&format!("{INDENT}{place}  "), &format!("{ends}  {of}"))
}

/// What a hop's capture is called, without its folders: they stand above.
fn capture(page: &Page<'_>, hop: &HopReport) -> String {
    let name = plain(&hop.name);
    shortened(name.rsplit(['/', '\\']).next().unwrap_or_default(), page.width / 2)
}

fn clocks(pair: &Pair) -> String {
    let drift = match pair.clock_drift_ppm {
        ppm if ppm.abs() < 0.1 => String::new(),
        ppm => format!(", and going {:.1} ppm {}", ppm.abs(), if ppm > 0.0 { "faster" } else { "slower" }),
    };
    match pair.clock_ahead_ms {
        _ if pair.first.capture == pair.second.capture => "one for both".to_owned(),
        (Some(least), Some(most)) => {
            let (least, most) = (least.0, most.0);
            format!("the one behind is ahead by {} to {}{drift}", signed(least), signed(most))
        }
        _ => format!("not comparable: data went one way only{drift}"),
    }
}

fn signed(ms: f64) -> String {
    if ms < 0.0 { format!("-{}", number::duration(-ms)) } else { number::duration(ms) }
}

/// `804 B: 59 pieces came, 32 left; half of them stayed 13.8 ms or longer, the longest 213 ms`.
fn through(passed: &Passed) -> String {
    let Passed { bytes, came, left, fastest_ms, age_p50_ms, age_max_ms } = passed;
    let stayed = match (age_p50_ms.0, age_max_ms.0) {
        (_, max) if max < AT_ONCE => {
            format!("all passed on at once; they differ by {}", number::duration(max))
        }
        (p50, max) => {
            format!("they stayed for {} (median), {} at most", number::duration(p50), number::duration(max))
        }
    };
    let came = number::plural(*came, "piece");
    let stayed = match fastest_ms {
        Some(fastest) if fastest.0 >= AT_ONCE => {
            format!("all took {} at least; beyond that {stayed}", number::duration(fastest.0))
        }
        _ => stayed,
    };
    format!("{}: {came} came, {} left; {stayed}", number::bytes(*bytes), number::count(*left))
}

fn write_finding(page: &mut Page<'_>, found: &Finding, pair: &Pair) -> io::Result<()> {
    finding::write_head(page, found)?;
    page.hanging(INDENT, &plain(&found.summary))?;
    let mut label = "why";
    for packet in &found.evidence {
        // One capture numbers the packets of both hops.
        let hop = match packet.capture {
            _ if pair.first.capture == pair.second.capture => "",
            Some(capture) if capture == pair.first.capture => "before  ",
            _ => "behind  ",
        };
        let (number, time) = (number::count(packet.packet), number::moment(packet.time_ms.0));
        let place = format!("{hop}packet {number:>4}  {time:>10}  ");
        let first = format!("{INDENT}{}  {}", page.ink.bold(label), page.ink.faint(&place));
        page.hanging(&first, &plain(&packet.note))?;
        label = "   ";
    }
    finding::write_fixes(page, &found.fixes)
}
