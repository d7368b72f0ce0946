//! A rule's text, set for the terminal.

use std::io;

use owo_colors::Style;
use pulldown_cmark::{Event, HeadingLevel, Options as Markdown, Parser, Tag, TagEnd};
use tcpwhy_diagnose::detectors::{Language, Rule};
use textwrap::core::display_width;

use crate::page::{Page, glued};
use crate::recipes::document;
use crate::terminal::{Options, mark};

const INDENT: &str = "  ";

/// Writes what `rule` means, how it is detected, what to do, how `language` (or each) writes that, and where to read on.
pub fn write(
    out: &mut impl io::Write,
    rule: &Rule,
    language: Option<Language>,
    options: &Options,
) -> io::Result<()> {
    let mut page = Page::new(out, options.width, options.color);
    let (sign, style) = mark(rule.severity);
    page.line(&page.ink.paint(style, &format!("{sign} {}", rule.name)))?;
    let text = document(rule, language);
    let mut setter = Setter::new(page);
    Parser::new_ext(&text, Markdown::ENABLE_TABLES).try_for_each(|event| setter.event(event))?;
    setter.paragraph()
}

/// A doc comment's text without the space that stands before each of its lines.
pub(crate) fn markdown(doc: &str) -> String {
    let lines: Vec<&str> = doc.lines().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    lines.join("\n")
}

/// Sets one event after another; text gathers in `text` until its block ends.
struct Setter<'a> {
    page: Page<'a>,
    text: String,
    /// The cells of the table around the text.
    rows: Vec<Vec<String>>,
    /// The next number of each list around the text; none for bullets.
    lists: Vec<Option<u64>>,
    /// What stands before the block's first line, instead of the indent: a bullet or number.
    bullet: Option<String>,
    style: Style,
    heading: bool,
    code_block: bool,
    /// Where the link around the text leads, and where in `text` its own words begin.
    link: Option<(String, usize)>,
    /// Whether the next block is set off by an empty line.
    apart: bool,
}

impl<'a> Setter<'a> {
    fn new(page: Page<'a>) -> Self {
        Self {
            page,
            text: String::new(),
            rows: Vec::new(),
            lists: Vec::new(),
            bullet: None,
            style: Style::new(),
            heading: false,
            code_block: false,
            link: None,
            apart: true,
        }
    }

    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Start(tag) => self.start(tag)?,
            Event::End(tag) => self.end(tag)?,
            Event::Text(text) if self.code_block => self.code(&text)?,
            Event::Text(text) => self.words(&text, self.style),
            Event::Code(code) if code.chars().count() < self.page.width / 2 => {
                self.words(&glued(&code), self.style.cyan());
            }
            Event::Code(code) => self.words(&code, self.style.cyan()),
            Event::SoftBreak => self.text.push(' '),
            Event::HardBreak => self.paragraph()?,
            Event::Rule => self.page.blank()?,
            Event::Html(html) | Event::InlineHtml(html) => self.words(&html, self.style),
            Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::TaskListMarker(_) => {}
        }
        Ok(())
    }

    fn start(&mut self, tag: Tag<'_>) -> io::Result<()> {
        match tag {
            Tag::Heading { level, .. } => {
                self.apart = true;
                self.heading = level <= HeadingLevel::H2;
                self.style = if self.heading { Style::new().bold().yellow() } else { Style::new().bold() };
            }
            Tag::Paragraph if self.bullet.is_none() => self.apart = true,
            Tag::List(first) => {
                self.paragraph()?;
                self.apart = self.lists.is_empty();
                self.lists.push(first);
            }
            Tag::Item => self.begin_item(),
            Tag::CodeBlock(_) => self.begin_code()?,
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::Strong => self.style = self.style.bold(),
            Tag::Emphasis => self.style = self.style.italic(),
            Tag::Link { dest_url, .. } => self.link = Some((dest_url.into_string(), self.text.len())),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, tag: TagEnd) -> io::Result<()> {
        match tag {
            TagEnd::Paragraph | TagEnd::Item => self.paragraph()?,
            TagEnd::Table => self.table()?,
            TagEnd::Heading(_) => {
                self.paragraph()?;
                self.heading = false;
                self.style = Style::new();
                self.apart = false;
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::CodeBlock => self.code_block = false,
            TagEnd::Strong | TagEnd::Emphasis => self.style = Style::new(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(row) = self.rows.last_mut() {
                    row.push(cell);
                }
            }
            TagEnd::Link => self.end_link(),
            _ => {}
        }
        Ok(())
    }

    fn begin_item(&mut self) {
        self.bullet = Some(match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "• ".to_owned(),
        });
    }

    fn begin_code(&mut self) -> io::Result<()> {
        self.paragraph()?;
        self.code_block = true;
        self.page.blank()
    }

    /// Code keeps its lines: a line too long for the page is better than one that no longer compiles.
    fn code(&mut self, code: &str) -> io::Result<()> {
        self.apart = true;
        let indent = format!("{}  ", self.indent());
        code.lines().try_for_each(|line| {
            let painted = self.page.ink.paint(Style::new().cyan(), line);
            self.page.line(&format!("{indent}{painted}"))
        })
    }

    /// The address behind the link's words, unless it is the words.
    fn end_link(&mut self) {
        let Some((address, from)) = self.link.take() else { return };
        if !self.text[from..].contains(&address) {
            self.words(&format!(" <{address}>"), Style::new().bright_black());
        }
    }

    fn words(&mut self, text: &str, style: Style) {
        let painted = if style == Style::new() { text.to_owned() } else { self.page.ink.paint(style, text) };
        self.text.push_str(&painted);
    }

    /// Sets the rows gathered, their columns aligned, the last one wrapped.
    fn table(&mut self) -> io::Result<()> {
        const GAP: &str = "   ";
        let rows = std::mem::take(&mut self.rows);
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| display_width(cell)).max())
            .map(Option::unwrap_or_default)
            .collect();
        self.page.blank()?;
        self.apart = true;
        for row in rows {
            let Some((last, cells)) = row.split_last() else { continue };
            let mut first = self.indent();
            for (cell, width) in cells.iter().zip(&widths) {
                first.push_str(cell);
                first.push_str(&" ".repeat(width - display_width(cell)));
                first.push_str(GAP);
            }
            self.page.hanging(&first, last)?;
        }
        Ok(())
    }

    fn indent(&self) -> String {
        if self.heading { String::new() } else { INDENT.repeat(1 + self.lists.len()) }
    }

    /// Sets the text gathered so far.
    fn paragraph(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        if text.trim().is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.apart) {
            self.page.blank()?;
        }
        let indent = self.indent();
        match self.bullet.take() {
            Some(bullet) => {
                let outer = &indent[INDENT.len()..];
                self.page.hanging(&format!("{outer}{bullet}"), text.trim())
            }
            None => self.page.hanging(&indent, text.trim()),
        }
    }
}
