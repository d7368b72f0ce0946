//! The model as cells.

use ansi_to_tui::IntoText;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Clear, Paragraph};
use tcpwhy_diagnose::report::{self, Program, Severity};
use tcpwhy_report::number;
use tcpwhy_report::page::shortened;
use tcpwhy_report::plain::plain;
use tcpwhy_report::terminal::{NO_PROGRAM, bar_of, glyph};

use super::super::names::{self, Names};
use super::keys::KEYS;
use super::model::{Model, Page, Row};

/// Columns of a time, `2 min 05 s`, and the space behind it.
const TIME: usize = 11;
/// Columns of a rule's name of the longer kind, with its sign and how many more there are.
const RULE: usize = 22;
/// The narrowest and the widest bar.
const BAR: std::ops::RangeInclusive<usize> = 10..=40;
/// Columns of two ends of IPv4 at most, `255.255.255.255:65535 → …`, and the space behind them.
const ENDS: usize = 46;
/// The fewest and the most columns of two programs' names of at most 15 bytes, and the space behind them.
const PROGRAMS: std::ops::RangeInclusive<usize> = 26..=35;
/// Lines of findings below the connections, and their headline, of a screen of this many lines or more.
const NEWS: u16 = 6;
const LINES_FOR_NEWS: u16 = 16;

/// Draws all of it.
pub(super) fn draw(model: &mut Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(0), Constraint::Length(1)]).areas(area);
    frame.render_widget(Clear, area);
    frame.render_widget(head_of(model, head.width.into()), head);
    match model.page {
        Page::Connections => connections(model, frame, body),
        Page::Report(line) => model.page = Page::Report(report(model, frame, body, line)),
        Page::Help => frame.render_widget(help(), body),
    }
    frame.render_widget(foot_of(model, foot.width.into()), foot);
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// Text that others wrote, or a number with its glued unit, on one line.
fn clean(text: &str) -> String {
    plain(&text.replace('\u{a0}', " ")).into_owned()
}

/// The capture in a line, and one below it that stays free or says what is wrong.
fn head_of(model: &Model, width: usize) -> Text<'static> {
    let mut what = format!(" tcpwhy live · {}", clean(&model.interface));
    if !model.filter.is_empty() {
        what.push_str(&format!(" · {}", clean(&model.filter)));
    }
    let figures = format!(
        "{} · {} packets · {}/s · {} connections ",
        clean(&number::duration(model.elapsed.as_secs_f64().floor() * 1e3)),
        number::count(model.packets),
        number::count(model.rate.round() as u64),
        number::count(model.connections as u64),
    );
    let room = width.saturating_sub(figures.chars().count() + 2);
    let what = shortened(&what, room);
    let gap = " ".repeat(width.saturating_sub(what.chars().count() + figures.chars().count()));
    let line = Line::from(vec![Span::styled(what, bold()), Span::raw(gap), Span::raw(figures)])
        .style(Style::new().add_modifier(Modifier::REVERSED));
    Text::from(vec![line, Line::styled(shortened(&below_head(model), width), bold())])
}

/// What makes the figures unsure, and the programs of the chosen connection.
fn below_head(model: &Model) -> String {
    let mut items = troubles(model);
    let chosen = model.chosen().filter(|_| model.page != Page::Help);
    let programs = chosen.and_then(|row| names::described(&model.names.of_connection(&row.connection)));
    items.extend(programs.map(|programs| clean(&programs)));
    format!(" {}", items.join(" · "))
}

fn troubles(model: &Model) -> Vec<String> {
    let mut troubles = Vec::new();
    if model.is_frozen() {
        troubles.push("frozen".to_owned());
    }
    if model.dropped > 0 {
        troubles.push(format!("the kernel dropped {} packets", number::count(model.dropped)));
    }
    if model.forgotten > 0 {
        troubles.push(format!("{} connections forgotten", number::count(model.forgotten)));
    }
    troubles
}

fn connections(model: &mut Model, frame: &mut Frame<'_>, area: Rect) {
    let news = if area.height >= LINES_FOR_NEWS { NEWS } else { 0 };
    let [table, legend, below] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(1), Constraint::Length(news)]).areas(area);
    let columns = Columns::of(area.width.into());
    let lines = usize::from(table.height.saturating_sub(1));
    let first = (model.at + 1).saturating_sub(lines);
    let shown = &model.rows[first.min(model.rows.len())..model.rows.len().min(first + lines)];
    let mut text = vec![columns.headline()];
    for (i, row) in shown.iter().enumerate() {
        text.push(columns.line(row, &model.names, first + i == model.at, model.color));
    }
    if model.rows.is_empty() {
        let none = if model.text.is_empty() { "  nothing yet" } else { "  no connection has this text" };
        text.push(Line::styled(none, faint()));
    }
    frame.render_widget(Text::from(text), table);
    frame.render_widget(legend_of(shown, legend.width.into(), model.color), legend);
    frame.render_widget(news_of(model, below), below);
}

/// How the screen's width is shared out.
struct Columns {
    bar: usize,
    ends: usize,
    /// 0 on narrow screens: there the head has them, of the chosen connection.
    programs: usize,
}

impl Columns {
    fn of(width: usize) -> Self {
        let free = width.saturating_sub(1 + TIME + RULE + 2);
        let room = free.saturating_sub(BAR.start() + ENDS);
        let programs = if room < *PROGRAMS.start() { 0 } else { room.min(*PROGRAMS.end()) };
        let free = free - programs;
        let bar = free.saturating_sub(ENDS).clamp(*BAR.start(), *BAR.end());
        Self { bar, ends: free.saturating_sub(bar), programs }
    }

    fn headline(&self) -> Line<'static> {
        let time = ["where its time went", "its time"].into_iter().find(|title| title.len() <= self.bar);
        let title = format!(
            " {:TIME$}{:bar$}  {:ends$}{:programs$}found",
            "lost",
            time.unwrap_or_default(),
            "client → server",
            if self.programs > 0 { "programs" } else { "" },
            bar = self.bar,
            ends = self.ends,
            programs = self.programs,
        );
        Line::styled(title, faint())
    }

    fn line(&self, row: &Row, names: &Names, is_chosen: bool, color: bool) -> Line<'static> {
        let lost = clean(&number::duration(row.lost()));
        let ends = pair([&row.connection.client, &row.connection.server], self.ends);
        let mut spans =
            vec![Span::raw(if is_chosen { ">" } else { " " }), Span::raw(format!("{lost:TIME$}"))];
        spans.extend(painted(&bar_of(&row.connection.ledger_ms, self.bar, color), self.bar));
        spans.push(Span::raw(format!("  {ends}")));
        if self.programs > 0 {
            spans.push(Span::raw(programs(&names.of_connection(&row.connection), self.programs)));
        }
        if let Some((severity, rule, _)) = row.findings.first() {
            let (sign, style) = sign(*severity, color);
            spans.push(Span::styled(format!("{sign} {rule}"), style));
            if let more @ 1.. = row.findings.len() - 1 {
                spans.push(Span::styled(format!(" +{more}"), faint()));
            }
        }
        let line = Line::from(spans);
        if is_chosen { line.style(bold()) } else { line }
    }
}

/// The names of both ends' programs, filled up to `columns`; blank where none is known.
fn programs(programs: &[Option<Program>; 2], columns: usize) -> String {
    if programs.iter().all(Option::is_none) {
        return " ".repeat(columns);
    }
    let name =
        |program: &'_ Option<Program>| program.as_ref().map_or(NO_PROGRAM.to_owned(), |one| one.name.clone());
    let [client, server] = programs.each_ref().map(name);
    pair([&client, &server], columns)
}

/// `one → other`, each cut in its middle where there is no room for both, filled up to `columns`.
fn pair(ends: [&str; 2], columns: usize) -> String {
    let half = columns.saturating_sub(" →  ".chars().count()) / 2;
    let [one, other] = ends.map(|end| shortened(&clean(end), half.max(1)));
    let text = format!("{one} → {other}");
    let gap = " ".repeat(columns.saturating_sub(Span::raw(text.as_str()).width()));
    text + &gap
}

fn sign(severity: Severity, color: bool) -> (char, Style) {
    use ratatui::style::Color;
    let (sign, hue) = match severity {
        Severity::Problem => ('✖', Color::Red),
        Severity::Advice => ('▲', Color::Yellow),
        Severity::Note => ('○', Color::Blue),
    };
    (sign, if color { bold().fg(hue) } else { bold() })
}

/// Text with a terminal's colours as spans, filled up to `columns`.
fn painted(text: &str, columns: usize) -> Vec<Span<'static>> {
    let text = text.into_text().unwrap_or_default();
    let mut spans: Vec<Span<'static>> = text.lines.into_iter().flat_map(|line| line.spans).collect();
    let taken: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" ".repeat(columns.saturating_sub(taken))));
    spans
}

/// What the bars' cells mean: the lines that the shown connections have, the most time first, as many as fit.
fn legend_of(shown: &[Row], width: usize, color: bool) -> Line<'static> {
    let time =
        |line: report::Line| -> f64 { shown.iter().map(|row| row.connection.ledger_ms.get(line)).sum() };
    let mut lines: Vec<_> = report::Line::ALL.into_iter().filter(|line| time(*line) > 0.0).collect();
    lines.sort_by(|a, b| time(*b).total_cmp(&time(*a)));
    let mut spans = vec![Span::raw(" ")];
    let mut taken = 1;
    for line in lines {
        let columns = line.name().len() + 4;
        if taken + columns > width {
            break;
        }
        taken += columns;
        spans.extend(painted(&glyph(line, color), 1));
        spans.push(Span::styled(format!(" {}  ", line.name()), faint()));
    }
    Line::from(spans)
}

fn news_of(model: &Model, area: Rect) -> Text<'static> {
    if area.height == 0 {
        return Text::default();
    }
    let width = usize::from(area.width);
    let mut lines = vec![Line::styled(format!(" findings, the latest first {}", "─".repeat(width)), faint())];
    for (since, news) in model.news.iter().rev().take(usize::from(area.height) - 1) {
        let (sign, style) = sign(news.finding.severity, model.color);
        let since = clean(&number::duration(since.as_secs_f64().floor() * 1e3));
        lines.push(Line::from(vec![
            Span::styled(format!(" {since:TIME$}"), faint()),
            Span::styled(format!("{sign} {}  ", news.finding.rule), style),
            Span::raw(clean(&news.finding.summary)),
        ]));
    }
    Text::from(lines)
}

/// The chosen connection's report from `line` on, or from as far as there is text.
fn report(model: &Model, frame: &mut Frame<'_>, area: Rect, line: u16) -> u16 {
    let text = model.report(area.width.into()).into_text().unwrap_or_default();
    let most = text.lines.len().saturating_sub(usize::from(area.height));
    let line = line.min(u16::try_from(most).unwrap_or(u16::MAX));
    frame.render_widget(Paragraph::new(text).scroll((line, 0)), area);
    line
}

fn help() -> Text<'static> {
    let key = |(keys, what): &(&'static str, &'static str)| {
        Line::from(vec![Span::styled(format!("  {keys:24}"), bold()), Span::raw(*what)])
    };
    Text::from(KEYS.iter().map(key).collect::<Vec<_>>())
}

fn foot_of(model: &Model, width: usize) -> Line<'static> {
    if let Some(said) = &model.said {
        return Line::styled(format!(" {}", clean(said)), bold());
    }
    if model.is_typing {
        return Line::styled(format!(" only with: {}▏  Enter, or Esc for all", clean(&model.text)), bold());
    }
    let text = match model.page {
        Page::Connections => {
            let only =
                if model.text.is_empty() { String::new() } else { format!(": {}", clean(&model.text)) };
            let order = model.order.name();
            format!(" q end  ↵ open  s by {order}  / only{only}  space freeze  w save  ? help")
        }
        _ => " Esc back  ↑↓ move  space freeze  w save the packets  q back".to_owned(),
    };
    Line::styled(shortened(&text, width), faint())
}
