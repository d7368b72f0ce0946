//! A page of text of a given width: wrapping, hanging indents, colour where the terminal has it.

use std::io;

use owo_colors::Style;
use textwrap::core::display_width;
use textwrap::{WordSeparator, WordSplitter, WrapAlgorithm};

/// Stands for a space at which a line must not be broken; written as a space.
pub const GLUE: char = '\u{a0}';

/// Narrower than this nothing is readable, and wider lines are the smaller evil.
const NARROWEST: usize = 40;

/// Words that stay with the number before them.
const UNITS: [&str; 11] = ["ms", "s", "µs", "us", "%", "B", "kB", "MB", "GB", "min", "bytes"];

/// Ends every style.
const RESET: &str = "\x1b[0m";

/// Colours text, or leaves it alone.
#[derive(Clone, Copy, Debug)]
pub struct Ink {
    /// Whether there are colours.
    pub color: bool,
}

impl Ink {
    /// `text` in `style`.
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.color && !text.trim().is_empty() { style.style(text).to_string() } else { text.to_owned() }
    }

    /// What matters.
    pub fn bold(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// What is good, bad or unclear.
    pub fn verdict(self, painted: Painted, text: &str) -> String {
        let style = Style::new().bold();
        let style = match painted {
            Painted::Good => style.green(),
            Painted::Bad => style.red(),
            Painted::Unclear => style.yellow(),
        };
        self.paint(style, text)
    }

    /// What may be overlooked.
    pub fn faint(self, text: &str) -> String {
        self.paint(Style::new().bright_black(), text)
    }
}

/// What a sign says at a glance. Its glyph tells it without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Painted {
    /// As it should be.
    Good,
    /// Not so.
    Bad,
    /// Nobody knows.
    Unclear,
}

impl Painted {
    /// `✔`, `✖` or `?`.
    pub fn glyph(self) -> &'static str {
        match self {
            Self::Good => "✔",
            Self::Bad => "✖",
            Self::Unclear => "?",
        }
    }
}

/// Writes lines no wider than `width` columns.
pub struct Page<'a> {
    out: &'a mut dyn io::Write,
    /// Columns a line has.
    pub width: usize,
    /// Colours, or none.
    pub ink: Ink,
}

impl<'a> Page<'a> {
    /// A page on `out`; narrower than 40 columns counts as 40.
    pub fn new(out: &'a mut dyn io::Write, width: usize, color: bool) -> Self {
        Self { out, width: width.max(NARROWEST), ink: Ink { color } }
    }

    /// A page as narrow as a cell of a table.
    pub(crate) fn narrow(out: &'a mut dyn io::Write, width: usize, color: bool) -> Self {
        Self { out, width, ink: Ink { color } }
    }

    /// An empty line.
    pub fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// One line as it is; the caller saw to its width.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}", text.replace(GLUE, " ").trim_end())
    }

    /// `text` wrapped, its first line behind `first`, the others behind as many columns of nothing.
    pub fn hanging(&mut self, first: &str, text: &str) -> io::Result<()> {
        let rest = " ".repeat(display_width(first));
        self.wrapped(first, &rest, text)
    }

    /// `text` wrapped, its first line behind `first`, the others behind `rest`.
    pub fn wrapped(&mut self, first: &str, rest: &str, text: &str) -> io::Result<()> {
        let options = textwrap::Options::new(self.width)
            .initial_indent(first)
            .subsequent_indent(rest)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .wrap_algorithm(WrapAlgorithm::FirstFit);
        let mut open = String::new();
        for (i, line) in textwrap::wrap(&with_units_glued(text), options).iter().enumerate() {
            let (indent, words) = line.split_at(if i == 0 { 0 } else { rest.len().min(line.len()) });
            let begun = std::mem::take(&mut open);
            open = left_open(&begun, words).to_owned();
            let close = if open.is_empty() { "" } else { RESET };
            self.line(&format!("{indent}{begun}{words}{close}"))?;
        }
        Ok(())
    }

    /// `left`, a rule across the page, `right` if there is any; wrapped without the rule where they do not fit.
    pub fn ruled(&mut self, left: &str, right: &str) -> io::Result<()> {
        const SHORTEST_RULE: usize = 3;
        if right.is_empty() {
            let columns = self.width.saturating_sub(display_width(left) + 1);
            return self.line(&format!("{left} {}", self.ink.faint(&"─".repeat(columns))));
        }
        let taken = display_width(left) + display_width(right) + 2;
        if taken + SHORTEST_RULE > self.width {
            return self.wrapped("", "  ", &format!("{left} {right}"));
        }
        let rule = self.ink.faint(&"─".repeat(self.width - taken));
        self.line(&format!("{left} {rule} {right}"))
    }

    /// Items in a row with dots between them; a line ends between items wherever that is possible.
    pub fn items(&mut self, indent: &str, items: &[String]) -> io::Result<()> {
        let dot = format!(" {} ", self.ink.faint("·"));
        let mut row = String::new();
        for item in items {
            let with_item = display_width(indent) + display_width(&row) + display_width(item) + 3;
            if !row.is_empty() && with_item > self.width {
                self.hanging(indent, &std::mem::take(&mut row))?;
            }
            if !row.is_empty() {
                row.push_str(&dot);
            }
            row.push_str(item);
        }
        if row.is_empty() { Ok(()) } else { self.hanging(indent, &row) }
    }
}

/// The style that `line`, begun in style `begun`, leaves open. Pagers forget it at the line's end, so it is
/// closed there and begun again on the next line.
fn left_open<'t>(begun: &'t str, line: &'t str) -> &'t str {
    let Some(at) = line.rfind("\x1b[") else { return begun };
    let Some(end) = line[at..].find('m') else { return begun };
    let last = &line[at..=at + end];
    if last == RESET { "" } else { last }
}

/// `text` in a form that is not broken at its spaces.
pub fn glued(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// Keeps `200 ms` and its like together.
pub(crate) fn with_units_glued(text: &str) -> String {
    let mut glued = String::with_capacity(text.len());
    for (i, word) in text.split(' ').enumerate() {
        if i > 0 {
            let bare = word.trim_end_matches(['.', ',', ';', ':', ')']);
            let after_number = glued.ends_with(|c: char| c.is_ascii_digit());
            glued.push(if after_number && UNITS.contains(&bare) { GLUE } else { ' ' });
        }
        glued.push_str(word);
    }
    glued
}

/// `text` cut in its middle to at most `columns`, keeping the ends, which tell names apart.
pub fn shortened(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    let half = columns.saturating_sub(1) / 2;
    let head = fitting(text.chars(), half);
    let tail: String = fitting(text.chars().rev(), half).chars().rev().collect();
    format!("{head}…{tail}")
}

/// As many of `chars` as fit in `columns`.
fn fitting(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    chars
        .map_while(|c| {
            left = left.checked_sub(display_width(c.encode_utf8(&mut [0; 4])))?;
            Some(c)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize, write: impl FnOnce(&mut Page<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut Page::new(&mut out, width, false)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_number_and_its_unit_stay_together() {
        let text = "The peer acknowledges the last update only after 200 ms.";
        let lines = page(51, |page| page.hanging("", text));
        assert_eq!(lines, "The peer acknowledges the last update only after\n200 ms.\n");
    }

    #[test]
    fn words_wider_than_the_page_are_cut() {
        let lines = page(40, |page| page.hanging("  ", &"x".repeat(100)));
        assert!(lines.lines().all(|line| line.len() <= 40), "{lines}");
        assert_eq!(lines.matches('x').count(), 100);
    }

    #[test]
    fn colour_takes_no_columns() {
        let mut out = Vec::new();
        let mut page = Page::new(&mut out, 40, true);
        let red = page.ink.bold("1234567890");
        page.hanging("", &format!("{red} {red} {red} 1234567")).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 1);
    }

    #[test]
    fn a_style_does_not_cross_the_end_of_a_line() {
        let mut out = Vec::new();
        let mut page = Page::new(&mut out, 40, true);
        let bold = page.ink.bold(&"word ".repeat(12));
        page.hanging("  ", &format!("{bold} plain")).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "  \x1b[1mword word word word word word word\x1b[0m\n  \x1b[1mword word word word word \x1b[0m plain\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn names_lose_their_middle() {
        assert_eq!(shortened("abcdefghij", 10), "abcdefghij");
        assert_eq!(shortened("abcdefghijk", 9), "abcd…hijk");
        assert_eq!(shortened("東京東京東京", 7), "東…京");
    }

    #[test]
    fn items_are_not_torn() {
        let items =
            ["base RTT 1.20 ms".to_owned(), "captured at the server".to_owned(), "31 packets".to_owned()];
        assert_eq!(
            page(45, |page| page.items("  ", &items)),
            "  base RTT 1.20 ms · captured at the server\n  31 packets\n"
        );
    }
}
