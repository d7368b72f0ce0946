//! A ledger as a bar and its legend, or as one row.

use std::io;

use owo_colors::Style;
use tcpwhy_diagnose::report::{LedgerMs, Line};

use crate::number;
use crate::page::{Ink, Page};

const INDENT: &str = "    ";
/// Lines below this share have no cell in the bar and share one row of the legend.
const SMALL: f64 = 0.01;
/// Below this width the legend leaves out what the lines mean.
const WIDTH_FOR_MEANINGS: usize = 76;

/// How a line looks in the bar. Thin strokes are time in which TCP does its duty or waits for a program,
/// thick blocks are time lost: the difference shows without colour.
struct Look {
    glyph: &'static str,
    style: Style,
    meaning: &'static str,
}

fn look(line: Line) -> Look {
    let style = Style::new();
    let (glyph, style, meaning) = match line {
        Line::Handshake => ("╌", style.bright_blue(), "SYN, SYN-ACK and ACK travel"),
        Line::ClientApp => ("·", style.cyan(), "waiting for the client's program"),
        Line::ServerApp => (":", style.bright_cyan(), "waiting for the server's program"),
        Line::Idle => ("_", style.bright_black(), "nobody waits for anything"),
        Line::Network => ("─", style.blue(), "data or its ACK travels"),
        Line::Queueing => ("▄", style.bright_magenta(), "the round trip beyond the base one"),
        Line::Nagle => ("█", style.red(), "a small segment is held for an ACK"),
        Line::DelayedAck => ("▓", style.magenta(), "the ACK that would free it is held"),
        Line::Cwnd => ("▞", style.bright_yellow(), "the congestion window is full"),
        Line::Rwnd => ("▚", style.yellow(), "the receiver's window is full"),
        Line::Recovery => ("▒", style.bright_red(), "a lost segment is being repaired"),
        Line::Rto => ("░", style.bright_red(), "a timer has to expire first"),
        Line::Transfer => ("━", style.green(), "bytes flow back to back"),
        Line::Unexplained => ("?", style.bright_black(), "none of the above could be shown"),
    };
    Look { glyph, style, meaning }
}

/// Writes the bar and its legend, the biggest line first; nothing for a ledger without time.
pub(super) fn write(page: &mut Page<'_>, ledger: &LedgerMs) -> io::Result<()> {
    let booked = booked(ledger);
    let total = ledger.total();
    if booked.is_empty() {
        return Ok(());
    }
    let columns = page.width - INDENT.len();
    page.line(&format!("{INDENT}{}", bar(&booked, total, columns, page.ink)))?;
    write_legend(page, &booked, total)
}

/// Writes the bar and a legend of one row, for connections with nothing to explain.
pub(super) fn write_short(page: &mut Page<'_>, ledger: &LedgerMs) -> io::Result<()> {
    let booked = booked(ledger);
    let total = ledger.total();
    if booked.is_empty() {
        return Ok(());
    }
    page.line(&format!("{INDENT}{}", bar(&booked, total, page.width - INDENT.len(), page.ink)))?;
    let legend: Vec<String> = booked
        .iter()
        .filter(|(_, ms)| ms / total >= SMALL)
        .map(|(line, ms)| {
            let look = look(*line);
            let glyph = page.ink.paint(look.style, look.glyph);
            format!("{glyph} {} {}", line.name(), number::percent(*ms, total))
        })
        .collect();
    page.items(INDENT, &legend)
}

/// A ledger as a bar of `columns` cells, empty where no time is booked.
pub fn bar_of(ledger: &LedgerMs, columns: usize, color: bool) -> String {
    bar(&booked(ledger), ledger.total(), columns, Ink { color })
}

/// A line's cell in the bar, to explain it.
pub fn glyph(line: Line, color: bool) -> String {
    let look = look(line);
    Ink { color }.paint(look.style, look.glyph)
}

/// What a line means, in a few words.
pub(crate) fn meaning(line: Line) -> &'static str {
    look(line).meaning
}

/// The lines with time on them, most first.
pub(crate) fn booked(ledger: &LedgerMs) -> Vec<(Line, f64)> {
    let mut booked: Vec<_> =
        Line::ALL.iter().map(|line| (*line, ledger.get(*line))).filter(|(_, ms)| *ms > 0.0).collect();
    booked.sort_by(|a, b| b.1.total_cmp(&a.1));
    booked
}

/// `columns` cells, shared out by time; the biggest line takes what rounding leaves over.
fn bar(booked: &[(Line, f64)], total: f64, columns: usize, ink: Ink) -> String {
    let cells = |ms: f64| {
        let share = ms / total;
        if share < SMALL { 0 } else { ((share * columns as f64).round() as usize).max(1) }
    };
    let others: usize = booked.iter().skip(1).map(|(_, ms)| cells(*ms)).sum();
    let mut bar = String::new();
    for (i, (line, ms)) in booked.iter().enumerate() {
        let width = if i == 0 { columns.saturating_sub(others) } else { cells(*ms) };
        let look = look(*line);
        bar.push_str(&ink.paint(look.style, &look.glyph.repeat(width)));
    }
    bar
}

fn write_legend(page: &mut Page<'_>, booked: &[(Line, f64)], total: f64) -> io::Result<()> {
    let (rows, small): (Vec<_>, Vec<_>) = booked.iter().partition(|(_, ms)| ms / total >= SMALL);
    let name_width = rows.iter().map(|(line, _)| line.name().len()).max().unwrap_or(0);
    let times: Vec<String> = rows.iter().map(|(_, ms)| number::duration(*ms)).collect();
    let time_width = times.iter().map(|time| time.chars().count()).max().unwrap_or(0);
    for ((line, ms), time) in rows.iter().zip(&times) {
        let look = look(*line);
        let glyph = page.ink.paint(look.style, look.glyph);
        let name = format!("{:name_width$}", line.name());
        let name = if line.is_lost() { page.ink.bold(&name) } else { name };
        let meaning = if page.width < WIDTH_FOR_MEANINGS { "" } else { look.meaning };
        let percent = number::percent(*ms, total);
        let meaning = page.ink.faint(meaning);
        page.line(&format!("{INDENT}{glyph} {name}  {time:>time_width$}  {percent:>5}  {meaning}"))?;
    }
    if small.is_empty() {
        return Ok(());
    }
    let small: Vec<String> =
        small.iter().map(|(line, ms)| format!("{} {}", line.name(), number::duration(*ms))).collect();
    page.hanging(&format!("{INDENT}  "), &page.ink.faint(&format!("below 1 %: {}", small.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Ink = Ink { color: false };

    #[test]
    fn no_two_lines_look_alike() {
        let mut glyphs: Vec<_> = Line::ALL.iter().map(|line| look(*line).glyph).collect();
        glyphs.sort_unstable();
        glyphs.dedup();
        assert_eq!(glyphs.len(), Line::ALL.len());
    }

    #[test]
    fn the_bar_is_filled_exactly() {
        let booked = [(Line::Nagle, 50.0), (Line::DelayedAck, 30.0), (Line::Network, 19.5), (Line::Rto, 0.5)];
        assert_eq!(bar(&booked, 100.0, 20, PLAIN), "██████████▓▓▓▓▓▓────");
    }

    #[test]
    fn what_counts_has_a_cell_and_what_is_small_has_none() {
        let booked = [(Line::ServerApp, 980.0), (Line::Network, 12.0), (Line::Queueing, 8.0)];
        assert_eq!(bar(&booked, 1000.0, 20, PLAIN), ":::::::::::::::::::─");
    }
}
