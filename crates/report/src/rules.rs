//! The list of rules, as a table and as JSON.

use std::io::{self, Write};

use serde::Serialize;
use tcpwhy_diagnose::detectors::{Recipe, Rule};
use tcpwhy_diagnose::report::Severity;

use crate::json::compact;
use crate::page::Page;
use crate::recipes::document;
use crate::terminal::{Options, mark};

/// Name and version of the list's format.
pub const FORMAT: &str = "tcpwhy-rules/1";

/// Writes the rules by severity, each with its sentence.
pub fn write(out: &mut impl Write, rules: &[&Rule], options: &Options) -> io::Result<()> {
    let page = &mut Page::new(out, options.width, options.color);
    let name_width = rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
    let mut any = false;
    for (severity, heading) in [
        (Severity::Problem, "Problems: time is being lost"),
        (Severity::Advice, "Advice: nothing is broken, and something could be better"),
        (Severity::Note, "Notes: on the traffic and on the capture"),
    ] {
        let mut of_severity = rules.iter().filter(|rule| rule.severity == severity).peekable();
        if of_severity.peek().is_none() {
            continue;
        }
        if any {
            page.blank()?;
        }
        any = true;
        page.hanging("", &page.ink.bold(heading))?;
        for rule in of_severity {
            let (sign, style) = mark(severity);
            let name = page.ink.paint(style, &format!("{sign} {:name_width$}", rule.name));
            page.hanging(&format!("  {name}  "), rule.summary())?;
        }
    }
    page.blank()?;
    page.hanging("", "`tcpwhy explain RULE` tells what a rule means and what to do.")
}

#[derive(Serialize)]
struct List<'a> {
    format: &'static str,
    version: &'a str,
    rules: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    severity: Severity,
    summary: &'static str,
    markdown: String,
    recipes: &'static [&'static Recipe],
}

/// Writes the rules as JSON: `{"format","version","rules":[{"name","severity","summary","markdown","recipes"}]}`, one
/// rule a line; `version` is that of the program.
pub fn write_json(out: &mut impl Write, rules: &[&Rule], version: &str) -> io::Result<()> {
    let rules = rules
        .iter()
        .map(|rule| Entry {
            name: rule.name,
            severity: rule.severity,
            summary: rule.summary(),
            markdown: document(rule, None),
            recipes: rule.recipes,
        })
        .collect();
    compact(out, &List { format: FORMAT, version, rules })?;
    out.write_all(b"\n")
}
