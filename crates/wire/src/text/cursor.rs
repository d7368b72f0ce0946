//! A place in a record's text, and why reading stopped there.

/// Why a record could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text ended inside the record: a wrapped line may carry the rest.
    More,
    /// This is no record that tcpdump prints.
    No,
}

/// What was read, or why not.
pub(super) type Parsed<T> = Result<T, Stop>;

/// A place in a text. It only ever rests on character boundaries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Bytes before this place.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// What is still to be read.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The text between two places that were positions of this cursor.
    pub(super) fn between(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// The next bytes without the blanks before them.
    pub(super) fn skip_blanks(&mut self) -> &'a str {
        let rest = self.rest();
        let trimmed = match rest.as_bytes() {
            [b'!'..=b'~', ..] => rest,
            [b' ', b'!'..=b'~', ..] => &rest[1..],
            _ => rest.trim_start(),
        };
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// Steps over `literal` and the blanks before it, if it comes next.
    pub(super) fn eat(&mut self, literal: &str) -> bool {
        let found = self.skip_blanks().starts_with(literal);
        if found {
            self.at += literal.len();
        }
        found
    }

    /// Steps over `word` if it is the whole next word; a comma or a colon also ends a word.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let rest = self.skip_blanks();
        let found = rest
            .strip_prefix(word)
            .is_some_and(|after| !after.starts_with(|next: char| next.is_alphanumeric() || next == '-'));
        if found {
            self.at += word.len();
        }
        found
    }

    /// The next word: everything up to a blank.
    pub(super) fn word(&mut self) -> Parsed<&'a str> {
        let rest = self.skip_blanks();
        if rest.is_empty() {
            return Err(Stop::More);
        }
        let plain = rest.bytes().take_while(|byte| matches!(byte, b'!'..=b'~')).count();
        let length = match rest.as_bytes().get(plain) {
            None | Some(b' ') => plain,
            _ => rest[plain..].find(char::is_whitespace).map_or(rest.len(), |more| plain + more),
        };
        self.at += length;
        Ok(&rest[..length])
    }

    /// The next decimal number.
    pub(super) fn number(&mut self) -> Parsed<u32> {
        let rest = self.skip_blanks();
        if rest.is_empty() {
            return Err(Stop::More);
        }
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if rest[length..].starts_with(char::is_alphabetic) {
            return Err(Stop::No);
        }
        let value = rest[..length].parse().map_err(|_| Stop::No)?;
        self.at += length;
        Ok(value)
    }

    /// What stands between `open`, which comes next, and the `close` that ends it; pairs may be nested.
    pub(super) fn enclosed(&mut self, open: char, close: char) -> Parsed<&'a str> {
        let rest = self.skip_blanks();
        if rest.is_empty() {
            return Err(Stop::More);
        }
        let mut depth = 0_u32;
        for (offset, letter) in rest.char_indices() {
            if letter == open {
                depth += 1;
            } else if letter == close {
                depth = depth.saturating_sub(1);
            }
            if depth == 0 {
                let inside = rest.get(open.len_utf8()..offset).ok_or(Stop::No)?;
                self.at += offset + letter.len_utf8();
                return Ok(inside);
            }
        }
        Err(Stop::More)
    }
}
