//! A place in a script's text: skips space and comments, takes words and numbers, says where it stopped.

use std::fmt;

/// Where a text is no script, and what a script would have there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// What a script has in this place.
    pub expected: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: expected {}", self.line, self.column, self.expected)
    }
}

impl std::error::Error for Error {}

pub(super) type Result<T> = std::result::Result<T, Error>;

/// What the comment that only tcpwhy reads begins with.
const DIRECTIVE: &str = "tcpwhy:";

#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// The text after `// tcpwhy:` of the comments passed so far.
    pub(super) directives: Vec<(u32, &'a str)>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, directives: Vec::new() }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// That `what` should stand here. The place is counted from the text's beginning, since only errors need it.
    pub(super) fn expected(&self, what: impl Into<String>) -> Error {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Error {
            line: line_of(before),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            expected: what.into(),
        }
    }

    /// How many lines begin between `mark` and here.
    pub(super) fn lines_since(&self, mark: usize) -> u32 {
        self.text.get(mark..self.at).map_or(0, |passed| line_of(passed) - 1)
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn advance(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.text.len());
    }

    /// Skips space and comments: `//`, `/* */`, and `#` where it is the first thing on its line.
    pub(super) fn skip(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let space = rest.len() - rest.trim_start().len();
            self.advance(space);
            let rest = self.rest();
            if rest.starts_with("//") || (rest.starts_with('#') && self.is_first_on_its_line()) {
                self.skip_line();
            } else if rest.starts_with("/*") {
                let end = rest.find("*/").ok_or_else(|| self.expected("*/ at the end of the comment"))?;
                self.advance(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    fn skip_line(&mut self) {
        let line = self.rest().split('\n').next().unwrap_or_default();
        let comment = line.trim_start_matches(['/', '#']).trim();
        if let Some(directive) = comment.strip_prefix(DIRECTIVE) {
            let number = line_of(self.text.get(..self.at).unwrap_or_default());
            self.directives.push((number, directive.trim()));
        }
        self.advance(line.len());
    }

    fn is_first_on_its_line(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        before.rsplit('\n').next().is_none_or(|line| line.trim().is_empty())
    }

    /// Skips space, then takes `token` if it is there.
    pub(super) fn take(&mut self, token: &str) -> Result<bool> {
        self.skip()?;
        let here = self.rest().starts_with(token);
        if here {
            self.advance(token.len());
        }
        Ok(here)
    }

    pub(super) fn need(&mut self, token: &str) -> Result<()> {
        if self.take(token)? { Ok(()) } else { Err(self.expected(format!("'{token}'"))) }
    }

    /// The longest run of characters that `accept` takes, maybe empty. Does not skip space.
    pub(super) fn run(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.advance(end);
        &rest[..end]
    }

    /// A word of letters, digits and `_`, after space; empty where there is none.
    pub(super) fn word(&mut self) -> Result<&'a str> {
        self.skip()?;
        Ok(self.run(is_word))
    }

    /// Takes `word` if the next word is that one, and not merely begins so.
    pub(super) fn take_word(&mut self, word: &str) -> Result<bool> {
        self.skip()?;
        let rest = self.rest();
        let is_it = rest.strip_prefix(word).is_some_and(|after| !after.starts_with(is_word));
        if is_it {
            self.advance(word.len());
        }
        Ok(is_it)
    }

    /// A whole number, decimal or `0x…`, maybe negative.
    pub(super) fn integer(&mut self) -> Result<i64> {
        self.skip()?;
        let start = self.at;
        let sign = if self.rest().starts_with('-') { "-" } else { "" };
        self.advance(sign.len());
        let digits = self.run(is_word);
        let number = match digits.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16),
            None => format!("{sign}{digits}").parse(),
        };
        number.map_err(|_| {
            self.at = start;
            self.expected("a whole number")
        })
    }

    /// A whole number that fits `T`.
    pub(super) fn number<T: TryFrom<i64>>(&mut self) -> Result<T> {
        self.skip()?;
        let start = self.at;
        let number = self.integer()?;
        T::try_from(number).map_err(|_| {
            self.at = start;
            let bits = size_of::<T>() * 8;
            self.expected(format!("a number that fits {bits} bits"))
        })
    }

    /// What stands between `quote` (here now) and the next one without a backslash before it.
    pub(super) fn quoted(&mut self, quote: char) -> Result<&'a str> {
        let rest = self.rest();
        let mut escaped = false;
        for (index, c) in rest.char_indices().skip(1) {
            if c == quote && !escaped {
                self.advance(index + quote.len_utf8());
                return Ok(&rest[quote.len_utf8()..index]);
            }
            escaped = c == '\\' && !escaped;
        }
        Err(self.expected(format!("a closing {quote}")))
    }

    /// What stands up to `end`, which is taken too.
    pub(super) fn until(&mut self, end: &str) -> Result<&'a str> {
        let rest = self.rest();
        let length = rest.find(end).ok_or_else(|| self.expected(format!("a closing {end}")))?;
        self.advance(length + end.len());
        Ok(&rest[..length])
    }
}

pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn line_of(before: &str) -> u32 {
    u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
}
