//! Outcomes as the page docs/experiments.md.

use std::io::{self, Write};

use tcpwhy_lab::experiments::{Claim, Experiment, Outcome, Table, Verdict};

use super::terminal::tally;

/// Says where the page comes from. Figures differ from run to run, so nothing compares it.
const HEAD: &str = "<!-- Written by `make lab`: what `tcpwhy lab all` measured, not a text to edit. -->

# Experiments

Five people told, between the 1990s and 2022, why TCP was slow where they were. `tcpwhy lab` plays their stories
again with real programs on this machine's kernel, over an emulated link where the story has one; LIMITATIONS.md
says what an emulated link cannot do. Each claim stands here with the author's figure and with ours. Figures come
from captures and from the programs' own logs, not from tcpwhy's analysis, unless the line says so.
";

pub(super) fn write(
    out: &mut impl Write,
    experiments: &[Experiment],
    outcomes: &[Outcome],
) -> io::Result<()> {
    writeln!(out, "{HEAD}")?;
    writeln!(out, "Kernel: {}. {}\n", kernel(), tally(outcomes))?;
    writeln!(out, "| experiment | claim | verdict |\n| --- | --- | --- |")?;
    for outcome in outcomes {
        for claim in &outcome.claims {
            let name = outcome.experiment;
            writeln!(out, "| [{name}](#{name}) | {} | {} |", cell(claim.claim), told(claim))?;
        }
    }
    for outcome in outcomes {
        let about = experiments.iter().find(|experiment| experiment.name() == outcome.experiment);
        one(out, outcome, about.map_or("", Experiment::about))?;
    }
    Ok(())
}

fn kernel() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

fn told(claim: &Claim) -> String {
    let word = claim.word();
    match &claim.verdict {
        Verdict::Holds => format!("✔ {word}"),
        Verdict::NoLongerHolds(because) => format!("✖ {word}: {}", cell(because)),
        Verdict::Unknown(because) => format!("? {word}: {}", cell(because)),
    }
}

fn one(out: &mut impl Write, outcome: &Outcome, about: &str) -> io::Result<()> {
    writeln!(out, "\n## {}\n\n{}. Source: {}.\n", outcome.experiment, about, outcome.source)?;
    writeln!(out, "```sh\ntcpwhy lab {}\n```\n", outcome.experiment)?;
    writeln!(out, "| claim | seed | here | |\n| --- | --- | --- | --- |")?;
    for claim in &outcome.claims {
        let (text, seed, here) = (cell(claim.claim), cell(claim.seed), cell(&claim.measured));
        writeln!(out, "| {text} | {seed} | {here} | {} |", told(claim))?;
    }
    outcome.tables.iter().try_for_each(|table| rows(out, table))?;
    if !outcome.notes.is_empty() {
        writeln!(out)?;
    }
    outcome.notes.iter().try_for_each(|note| writeln!(out, "- {note}"))
}

fn rows(out: &mut impl Write, table: &Table) -> io::Result<()> {
    let line = |cells: &[String]| -> String {
        let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        format!("| {} |", cells.join(" | "))
    };
    let numbers = " ---: |".repeat(table.columns.len().saturating_sub(1));
    writeln!(out, "\n**{}**\n\n{}\n| --- |{numbers}", table.title, line(&table.columns))?;
    table.rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))
}

/// Text that does not end its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
