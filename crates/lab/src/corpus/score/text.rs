//! A score for people.

use std::io::{Result, Write};

use super::calibration::Tenth;
use super::figures::{CostError, Score};
use super::predict::{Prediction, Row, rows};

/// Writes the tables, then each miss and each false blame.
pub fn write(out: &mut dyn Write, score: &Score) -> Result<()> {
    let figures = &score.figures;
    writeln!(out, "{} captures\n", figures.cases)?;
    writeln!(
        out,
        "{:<12} {:>6} {:>7} {:>7} {:>8} {:>13}",
        "cases", "number", "causes", "found", "recall", "false blames"
    )?;
    for (name, group) in &figures.groups {
        writeln!(
            out,
            "{name:<12} {:>6} {:>7} {:>7} {:>8.3} {:>13}",
            group.cases, group.causes, group.found, group.recall, group.false_blames
        )?;
    }
    writeln!(
        out,
        "\n{:<24} {:>7} {:>9} {:>9} {:>12} {:>12}",
        "rule", "causes", "recall", "precision", "cost p50", "cost p90"
    )?;
    for (name, rule) in &figures.rules {
        writeln!(
            out,
            "{name:<24} {:>7} {:>9.3} {:>9.3} {:>12} {:>12}",
            rule.causes,
            rule.recall,
            rule.precision,
            percent(rule.cost_error.p50),
            percent(rule.cost_error.p90)
        )?;
    }
    let CostError { p50, p90 } = figures.cost_error;
    writeln!(out, "\nprecision {:.3}", figures.precision)?;
    writeln!(out, "cost error: half below {}, 90 % below {}", percent(p50), percent(p90))?;
    writeln!(out, "unexplained {} of the time", percent(figures.unexplained))?;
    writeln!(out, "\nCause, and what was found:")?;
    for (cause, row) in &score.confusion {
        let cells: Vec<String> = row.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
        writeln!(out, "  {cause:<24} {}", cells.join(", "))?;
    }
    write_calibration(out, &score.calibration)?;
    misses(out, score)?;
    false_blames(out, score)?;
    wrong_costs(out, score)
}

/// Writes the tables for a page.
pub fn write_markdown(out: &mut dyn Write, score: &Score) -> Result<()> {
    let figures = &score.figures;
    writeln!(
        out,
        "| cases | captures | causes | recall | false blames |\n| --- | ---: | ---: | ---: | ---: |"
    )?;
    for (name, group) in &figures.groups {
        let false_blames = group.false_blames;
        writeln!(
            out,
            "| {name} | {} | {} | {:.3} | {false_blames} |",
            group.cases, group.causes, group.recall
        )?;
    }
    writeln!(out, "\n| rule | causes | recall | precision | median cost error |")?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: |")?;
    for (name, rule) in &figures.rules {
        let (recall, precision) = (rule.recall, rule.precision);
        let error = if rule.causes == 0 { String::new() } else { percent(rule.cost_error.p50) };
        writeln!(out, "| {name} | {} | {recall:.3} | {precision:.3} | {error} |", rule.causes)?;
    }
    let CostError { p50, p90 } = figures.cost_error;
    writeln!(
        out,
        "\nOf all {} captures: precision {:.3}; half of the costs are within {} of the measured ones, 90 % within {}; \
         {} of the time is unexplained.",
        figures.cases,
        figures.precision,
        percent(p50),
        percent(p90),
        percent(figures.unexplained)
    )
}

/// How often blames of each tenth of confidence were right.
fn write_calibration(out: &mut dyn Write, tenths: &[Tenth]) -> Result<()> {
    writeln!(out, "\n{:<24} {:>7} {:>9} {:>9}", "confidence", "blames", "said", "right")?;
    for tenth in tenths {
        let Some(was) = tenth.was() else { continue };
        let name = format!("{:.1} to {:.1}", tenth.from, tenth.from + 0.1);
        let (said, was) = (percent(tenth.said), percent(was));
        writeln!(out, "{name:<24} {:>7} {said:>9} {was:>9}", tenth.blames)?;
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn misses(out: &mut dyn Write, score: &Score) -> Result<()> {
    writeln!(out, "\nMissed:")?;
    for verdict in &score.verdicts {
        for found in verdict.found.iter().filter(|found| found.is_missed()) {
            let cost = found.cause.cost_ms.map_or_else(String::new, |cost| format!(", {cost:.1} ms"));
            writeln!(
                out,
                "  {}: {}{cost} of {:.1} ms",
                verdict.label.name, found.cause.cause, verdict.label.total_ms
            )?;
        }
    }
    Ok(())
}

fn false_blames(out: &mut dyn Write, score: &Score) -> Result<()> {
    writeln!(out, "\nFalse blames:")?;
    for verdict in &score.verdicts {
        for blame in verdict.blames.iter().filter(|blame| blame.is_false()) {
            writeln!(
                out,
                "  {}: {} on {:?}, {:.1} ms of {:.1} ms: {}",
                verdict.label.name,
                blame.rule,
                blame.side,
                blame.cost_ms,
                verdict.label.total_ms,
                blame.summary
            )?;
        }
    }
    Ok(())
}

/// Costs further off than this are listed.
const FAR_OFF: f64 = 0.10;

fn wrong_costs(out: &mut dyn Write, score: &Score) -> Result<()> {
    writeln!(out, "\nCosts more than {} off:", percent(FAR_OFF))?;
    for verdict in &score.verdicts {
        for found in verdict.found.iter().filter(|found| found.error().is_some_and(|error| error > FAR_OFF)) {
            writeln!(
                out,
                "  {}: {} cost {:.1} ms, {} says {:.1} ms",
                verdict.label.name,
                found.cause.cause,
                found.cause.cost_ms.unwrap_or_default(),
                found.by.unwrap_or_default(),
                found.said_ms
            )?;
        }
    }
    Ok(())
}

/// Writes how what-if's predictions compare with what really removing each cause saved.
pub fn write_predictions(out: &mut dyn Write, predictions: &[Prediction]) -> Result<()> {
    writeln!(out, "\nWhat if, against what removing the cause really saved:\n")?;
    writeln!(
        out,
        "{:<24} {:>8} {:>7} {:>11} {:>11} {:>11} {:>11}",
        "cause", "captures", "silent", "saving p50", "saving p90", "time p50", "wrong sign"
    )?;
    for row in rows(predictions) {
        let [save, save_90, after] = errors(&row);
        let (name, captures, silent, wrong) = (row.name, row.captures, row.silent, row.wrong_signs);
        writeln!(
            out,
            "{name:<24} {captures:>8} {silent:>7} {save:>11} {save_90:>11} {after:>11} {wrong:>11}"
        )?;
    }
    writeln!(out, "\nNo prediction:")?;
    for prediction in predictions {
        if let Some(why) = &prediction.silent {
            writeln!(out, "  {}: {}: {why}", prediction.name, prediction.cause)?;
        }
    }
    Ok(())
}

/// Half and nine tenths of the savings' errors, half of those of the time with the fix.
fn errors(row: &Row) -> [String; 3] {
    let saving = row.saving.as_ref();
    let all = [
        saving.map(|error| error.p50),
        saving.map(|error| error.p90),
        row.after.as_ref().map(|error| error.p50),
    ];
    all.map(|error| error.map_or_else(|| "–".to_owned(), percent))
}

/// Writes the same for a page.
pub fn write_predictions_markdown(out: &mut dyn Write, predictions: &[Prediction]) -> Result<()> {
    writeln!(
        out,
        "\n| cause | captures | no prediction | saving: half within | 90 % within | time with the fix: half within | \
         wrong sign |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    )?;
    for row in rows(predictions) {
        let [save, save_90, after] = errors(&row);
        let (name, captures, silent, wrong) = (row.name, row.captures, row.silent, row.wrong_signs);
        writeln!(out, "| {name} | {captures} | {silent} | {save} | {save_90} | {after} | {wrong} |")?;
    }
    Ok(())
}
