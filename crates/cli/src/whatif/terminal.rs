//! The answer for people: the verdict, then what each fix does, then what it rests on.

use std::io;

use tcpwhy_report::number::{bytes, count, duration};
use tcpwhy_report::page::Page;
use tcpwhy_report::plain::plain;
use tcpwhy_report::what_if::{percent, sentence};
use tcpwhy_simulate::whatif::{Answer, Figures, Fix, Gain, Unfit};
use tcpwhy_simulate::world::Side;

use super::{Asked, prediction};
use crate::args::Color;
use crate::output::Look;

const INDENT: &str = "  ";
/// A fix that moves less than this share of the time makes no difference worth a line.
const WORTH: f64 = 0.01;

pub(super) fn print(asked: &Asked<'_>, answer: &Result<Answer, Unfit>, color: Color) -> anyhow::Result<()> {
    Look::of(color).print(|page| {
        heading(asked, page)?;
        match answer {
            Err(why) => {
                let what = format!("No figures: this connection cannot be played again, since {why}.");
                page.hanging("", &page.ink.bold(&what))
            }
            Ok(answer) => Told { asked, answer }.write(page),
        }
    })
}

fn heading(asked: &Asked<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let connection = &asked.chosen.connection;
    let ends = format!("#{}  {} → {}", connection.id, plain(&connection.client), plain(&connection.server));
    let more = match asked.connections {
        0 | 1 => String::new(),
        many => format!("and {} more, one after the other", many - 1),
    };
    page.ruled(&page.ink.bold(&ends), &more)?;
    page.blank()
}

/// A question and its answer.
struct Told<'a> {
    asked: &'a Asked<'a>,
    answer: &'a Answer,
}

impl Told<'_> {
    fn write(&self, page: &mut Page<'_>) -> io::Result<()> {
        if !self.answer.likeness.is_good() {
            return refusal(self, page);
        }
        page.hanging("", &page.ink.bold(&verdict(self)))?;
        page.blank()?;
        table(self, page)?;
        without_difference(self, page)?;
        page.blank()?;
        notes(self, page)
    }
}

fn refusal(told: &Told<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let likeness = &told.answer.likeness;
    page.hanging("", &page.ink.bold("No figures: the replay of this connection is not like its capture."))?;
    page.blank()?;
    page.hanging(
        INDENT,
        &format!(
            "Played again unchanged, half of its {} are {} or more off, one in ten {} or more, the whole {}, the \
             number of segments {}. What a fix would have saved cannot be told from such a replay.",
            things(told),
            percent(likeness.latency_p50),
            percent(likeness.latency_p90),
            percent(likeness.total),
            percent(likeness.segments),
        ),
    )
}

/// Whether it changes enough for a line of its own; what was asked for by name always has one.
fn is_worth(told: &Told<'_>, gain: &Gain) -> bool {
    told.asked.is_narrow || gain.saved_ms.abs() >= WORTH * told.answer.unchanged.total_ms
}

fn verdict(told: &Told<'_>) -> String {
    let unchanged = &told.answer.unchanged;
    let best = told
        .answer
        .gains
        .iter()
        .find(|gain| gain.fix != Fix::NoLoss && gain.saved_ms >= WORTH * unchanged.total_ms);
    let Some(gain) = best else {
        return "None of the fixes tried would have saved any time worth the name.".to_owned();
    };
    let (fix, rest) = sentence(&prediction::of(told.answer, gain));
    format!("{fix}{} {rest}", place(told, gain))
}

fn place(told: &Told<'_>, gain: &Gain) -> String {
    let connection = &told.asked.chosen.connection;
    match gain.side {
        Some(Side::Client) => format!(" on the client, {},", plain(&connection.client)),
        Some(Side::Server) => format!(" on the server, {},", plain(&connection.server)),
        None => String::new(),
    }
}

fn table(told: &Told<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let columns = ["", "saves", "total", "p50", "p99", "packets", "bytes"].map(str::to_owned);
    let answer = told.answer;
    let mut rows = vec![row(told, "as it was".to_owned(), String::new(), &answer.unchanged)];
    for gain in answer.gains.iter().filter(|gain| is_worth(told, gain)) {
        let saved = match gain.bounds_ms {
            Some((least, most)) if duration(least) != duration(most) => {
                format!("{}–{}", duration(least), duration(most))
            }
            _ => duration(gain.saved_ms),
        };
        rows.push(row(told, named(gain.fix, gain.side), saved, &gain.figures));
    }
    page.table(INDENT, &columns, &rows)
}

fn row(told: &Told<'_>, name: String, saved: String, figures: &Figures) -> Vec<String> {
    let (packets, size) = if told.answer.likeness.has_price() {
        (count(figures.packets), bytes(figures.bytes))
    } else {
        ("?".to_owned(), "?".to_owned())
    };
    let [total, p50, p99] = [figures.total_ms, figures.p50_ms, figures.p99_ms].map(duration);
    vec![name, saved, total, p50, p99, packets, size]
}

fn named(fix: Fix, side: Option<Side>) -> String {
    match side {
        Some(Side::Client) => format!("{fix}, client"),
        Some(Side::Server) => format!("{fix}, server"),
        None => fix.to_string(),
    }
}

fn without_difference(told: &Told<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let answer = told.answer;
    let small = answer.gains.iter().filter(|gain| !is_worth(told, gain)).map(|gain| (gain.fix, gain.side));
    let all: Vec<(Fix, Option<Side>)> = small.chain(answer.idle.iter().copied()).collect();
    // A fix without effect at either side needs no side.
    let mut names: Vec<String> = Vec::new();
    for (fix, side) in &all {
        let is_both = side.is_some() && all.iter().filter(|(other, _)| other == fix).count() == 2;
        let name = if is_both { fix.to_string() } else { named(*fix, *side) };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    page.blank()?;
    let share = percent(WORTH);
    let what =
        if told.asked.is_narrow { "No difference" } else { &format!("No difference, or less than {share}") };
    page.hanging(INDENT, &format!("{what}: {}.", names.join("; ")))
}

fn notes(told: &Told<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let (answer, likeness) = (told.answer, &told.answer.likeness);
    let mut notes = vec![format!(
        "Played again unchanged, the connection is like its capture: of {} {} half are within {}, nine in ten within {}; \
         the whole is {} off.",
        count(likeness.compared as u64),
        things(told),
        percent(likeness.latency_p50),
        percent(likeness.latency_p90),
        percent(likeness.total),
    )];
    if !likeness.has_price() {
        notes.push("It has another number of ACKs, so packets and bytes are not told.".to_owned());
    }
    if answer.gains.iter().any(|gain| gain.fix == Fix::NoLoss && is_worth(told, gain)) {
        notes.push(
            "no-loss is no fix: it is what the path's losses cost, the most that better repair can save."
                .to_owned(),
        );
    }
    if answer.gains.iter().any(|gain| gain.bounds_ms.is_some()) {
        notes.push(
            "Packets do not tell exactly when updates that were held had been written; hence the bounds."
                .to_owned(),
        );
    }
    notes.push(
        "Pieces of a message are taken to be written at once, answers as long after their requests as they were."
            .to_owned(),
    );
    notes.iter().try_for_each(|note| page.hanging(INDENT, &page.ink.faint(note)))
}

fn things(told: &Told<'_>) -> &'static str {
    if told.answer.has_exchanges { "exchanges" } else { "updates" }
}
