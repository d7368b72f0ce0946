//! Runs as Markdown, for docs/simulator.md.

use std::io::{self, Write};

use tcpwhy_report::plain::plain;
use tcpwhy_simulate::scenario::Scenario;

use super::account::Account;
use super::terminal;

pub(super) fn write(out: &mut impl Write, scenario: &Scenario, accounts: &[Account]) -> io::Result<()> {
    heading(out, scenario)?;
    for account in accounts {
        let about = if account.about.is_empty() { String::new() } else { format!(" ({})", account.about) };
        let sentence = terminal::sentence(account);
        writeln!(out, "- **{}**{}: {sentence}", cell(&account.name), cell(&about))?;
    }
    let (columns, rows) = terminal::rows(accounts);
    table(out, &columns, &rows)?;
    writeln!(out)?;
    for account in accounts {
        let found = account.top().map_or("nothing that costs time".to_owned(), |top| {
            format!("`{}`: {}", top.rule, plain(&top.summary))
        });
        writeln!(out, "- tcpwhy on **{}**: {found}", cell(&account.name))?;
    }
    Ok(())
}

pub(super) fn heading(out: &mut impl Write, scenario: &Scenario) -> io::Result<()> {
    writeln!(out, "### {}\n\n{}", cell(&scenario.name), cell(&scenario.about))?;
    if !scenario.source.is_empty() {
        writeln!(out, "Source: {}.", cell(&scenario.source))?;
    }
    writeln!(out)
}

/// The first column to the left, the others to the right.
pub(super) fn table(out: &mut impl Write, columns: &[String], rows: &[Vec<String>]) -> io::Result<()> {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        format!("| {} |", cells.join(" | "))
    };
    let numbers = " ---: |".repeat(columns.len().saturating_sub(1));
    writeln!(out, "\n{}\n| --- |{numbers}", line(columns))?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))
}

/// Text that does not end its cell.
fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|").replace('\n', " ")
}
