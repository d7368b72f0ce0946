//! One capture as terminal text: the verdict, the capture, what its connections come to, the worst of them each
//! with its ledger and findings, the rest in a line.

mod connection;
mod finding;
mod hops;
mod ledger;
mod survey;
mod verdict;

use std::io;

use tcpwhy_diagnose::report::{Capture, Source};

use crate::number;
use crate::page::{GLUE, Page, glued, shortened};
use crate::plain::plain;
pub use connection::{NO_PROGRAM, programs};
pub(crate) use connection::{exchange_figures, figures as connection_figures, programs_of};
use finding::Printed;
pub(crate) use finding::{EVIDENCE_SHOWN, blamed, figures, mark, sentence};
pub use hops::write_hops;
pub use ledger::{bar_of, glyph};
pub(crate) use ledger::{booked, meaning};
use survey::Survey;
pub use verdict::Sign;
use verdict::Verdict;

/// How the text is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal; no line is wider. Below 40 it counts as 40.
    pub width: usize,
    /// Whether to use the terminal's colours. Nothing is told by colour alone.
    pub color: bool,
    /// How many connections are shown in full, the worst first.
    pub top: usize,
    /// Whether another capture's text stands above: then a double rule sets this one apart.
    pub follows: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { width: 80, color: false, top: 5, follows: false }
    }
}

/// Writes one capture's report.
///
/// Reads `source` in one pass (a second one finds the verdict's connection if it is not among the worst) and
/// keeps `top` connections of it.
pub fn write(out: &mut impl io::Write, source: &dyn Source, options: &Options) -> io::Result<()> {
    let (survey, verdict) = surveyed(source, options.top);
    let page = &mut Page::new(out, options.width, options.color);
    if options.follows {
        rule_between(page)?;
    }
    verdict.write(page)?;
    page.blank()?;
    write_capture(page, &survey)?;
    write_together(page, &survey)?;
    let mut printed = Printed::of(source);
    if verdict.is_about_all() {
        write_about_all(page, &survey, &verdict, &mut printed)?;
    }
    for entry in &survey.shown {
        page.blank()?;
        connection::write(page, entry, survey.connections == 1, &verdict, &mut printed)?;
    }
    if !verdict.is_about_all() {
        write_about_all(page, &survey, &verdict, &mut printed)?;
    }
    write_rest(page, &survey, options.top)?;
    write_hint(page, &survey, &verdict)
}

/// Sets what follows apart from the capture above.
fn rule_between(page: &mut Page<'_>) -> io::Result<()> {
    page.blank()?;
    page.line(&page.ink.faint(&"═".repeat(page.width)))?;
    page.blank()
}

/// The connections that [`write()`] shows in full, in this order, by their ids.
pub fn shown(source: &dyn Source, top: usize) -> Vec<u64> {
    surveyed(source, top).0.shown.iter().map(|entry| entry.connection.id).collect()
}

/// The worst connections, with the verdict's first.
fn surveyed(source: &dyn Source, top: usize) -> (Survey, Verdict) {
    let mut survey = Survey::of(source, top);
    let verdict = Verdict::of(&survey);
    if let Some(id) = verdict.connection() {
        survey.bring_forward(source, id, top);
    }
    (survey, verdict)
}

/// The verdict alone, without colour: what the text says first.
pub fn verdict(source: &dyn Source) -> String {
    Verdict::of(&Survey::of(source, 1)).text().replace(GLUE, " ")
}

/// The verdict with its sign.
pub fn signed_verdict(source: &dyn Source) -> (Sign, String) {
    let verdict = Verdict::of(&Survey::of(source, 1));
    (verdict.sign(), verdict.text().replace(GLUE, " "))
}

/// The same in its two parts: what to read first, and what may follow.
pub(crate) fn verdict_parts(source: &dyn Source) -> (String, String) {
    let (head, detail) = Verdict::of(&Survey::of(source, 1)).parts();
    (head.replace(GLUE, " "), detail.replace(GLUE, " "))
}

/// The capture on a line or two, and what its reader must know.
fn write_capture(page: &mut Page<'_>, survey: &Survey) -> io::Result<()> {
    const INDENT: &str = "  ";
    let Capture { name, kind, packets, bytes, start, duration_ms, notes, .. } = &survey.capture;
    let name = shortened(&plain(name), page.width - INDENT.len());
    let mut items = vec![page.ink.bold(&name), plain(kind).into_owned(), number::plural(*packets, "packet")];
    items.push(number::bytes(*bytes));
    items.push(number::duration(duration_ms.0));
    items.push(number::plural(survey.connections, "connection"));
    if let Some(start) = start {
        items.push(format!("from {}", plain(&readable(start))));
    }
    page.items(INDENT, &items)?;
    let mut first = "  note  ".to_owned();
    for note in notes {
        page.hanging(&page.ink.faint(&first), &plain(note))?;
        first = " ".repeat(first.len());
    }
    Ok(())
}

/// `2026-03-02 02:57:11 UTC` from RFC 3339; the time of day as it is but for the fraction.
pub(crate) fn readable(start: &str) -> String {
    let whole = start.split('.').next().unwrap_or(start);
    let utc = if start.ends_with('Z') { " UTC" } else { "" };
    format!("{}{utc}", whole.trim_end_matches('Z').replacen('T', " ", 1))
}

/// Findings about the whole capture or about several connections.
fn write_about_all(
    page: &mut Page<'_>,
    survey: &Survey,
    verdict: &Verdict,
    printed: &mut Printed<'_>,
) -> io::Result<()> {
    if survey.about_all.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.ruled(&page.ink.bold("The capture as a whole"), "")?;
    for found in &survey.about_all {
        page.blank()?;
        finding::write(page, found, verdict, printed)?;
    }
    if survey.about_all_left > 0 {
        page.blank()?;
        page.hanging(
            "  ",
            &format!("and {} of these kinds.", number::plural(survey.about_all_left, "more finding")),
        )?;
    }
    Ok(())
}

/// The connections not shown, in one line.
fn write_rest(page: &mut Page<'_>, survey: &Survey, top: usize) -> io::Result<()> {
    let rest = survey.rest;
    if rest.connections == 0 {
        return Ok(());
    }
    page.blank()?;
    let lost = if rest.lost_ms > 0.0 {
        format!(
            "{} lost in all, {} in the worst",
            number::duration(rest.lost_ms),
            number::duration(rest.worst_ms)
        )
    } else {
        "no time lost".to_owned()
    };
    let more = number::plural(rest.connections, "more connection");
    let hint = glued(&format!("(`--top {}`, `--connection N`).", (top * 4).max(20)));
    page.hanging("", &format!("{} {lost} {hint}", page.ink.bold(&format!("And {more}:"))))
}

/// What all connections wait for and suffer from, where not all of them are shown.
fn write_together(page: &mut Page<'_>, survey: &Survey) -> io::Result<()> {
    if survey.rest.connections == 0 || survey.rules.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.ruled(&page.ink.bold("All connections together"), "")?;
    page.blank()?;
    ledger::write(page, &survey.capture.ledger_ms)?;
    let mut of_connections = survey.rules.iter().filter(|total| total.worst.connection.is_some()).peekable();
    if of_connections.peek().is_some() {
        page.blank()?;
    }
    of_connections.try_for_each(|total| finding::write_total(page, total))
}

/// Where to read on.
fn write_hint(page: &mut Page<'_>, survey: &Survey, verdict: &Verdict) -> io::Result<()> {
    let shown = survey.about_all.iter().chain(survey.shown.iter().flat_map(|entry| &entry.findings));
    let mut rules: Vec<&str> = verdict.rule().into_iter().collect();
    for finding in shown {
        if !rules.contains(&finding.rule) {
            rules.push(finding.rule);
        }
    }
    let Some((first, others)) = rules.split_first() else { return Ok(()) };
    page.blank()?;
    let mut text = format!("tcpwhy{GLUE}explain{GLUE}{first}");
    if !others.is_empty() {
        text = format!("{text}  (or {})", others.join(", "));
    }
    page.hanging(&page.ink.faint("More: "), &text)
}
