//! What a message is called, for people: "GET /hello.txt", "SELECT", "TLS handshake".

use std::fmt;

/// What replaces the end of a name that is too long.
const CUT: &str = "…";

/// The [`Name`] of a literal, made when the program is built: copying it costs less than writing it.
macro_rules! name {
    ($text:literal) => {
        const { &Name::fixed($text) }
    };
}
pub(super) use name;

/// A short text of printable ASCII, and `…` at its end where it was cut. It holds no values, no query strings and no
/// credentials: readers of protocols put in only verbs, codes and paths.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Name {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl Name {
    /// Bytes that a name can have.
    pub const MAX: usize = 31;

    /// `text` without what is not printable ASCII, cut to [`Self::MAX`] bytes.
    pub fn new(text: &str) -> Self {
        let mut name = Self::default();
        name.push(text.as_bytes());
        name
    }

    /// `text`, which is printable ASCII and fits: for names that are known when the program is built.
    pub(super) const fn fixed(text: &str) -> Self {
        let mut bytes = [0; Self::MAX];
        let mut at = 0;
        while at < text.len() {
            assert!(matches!(text.as_bytes()[at], b' '..=b'~'), "not printable");
            bytes[at] = text.as_bytes()[at];
            at += 1;
        }
        Self { bytes, len: at as u8 }
    }

    /// Appends what of `text` is printable ASCII: no control characters, and none that turn the line's direction.
    pub(super) fn push(&mut self, text: &[u8]) {
        let mut len = usize::from(self.len);
        for &byte in text {
            if !matches!(byte, b' '..=b'~') {
                continue;
            }
            let Some(slot) = self.bytes.get_mut(len) else {
                self.bytes[Self::MAX - CUT.len()..].copy_from_slice(CUT.as_bytes());
                break;
            };
            *slot = byte;
            len += 1;
        }
        self.len = len as u8;
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_printable_ascii_gets_in() {
        let name = Name::new("GE\u{1b}[31mT\u{202e} /\r\na\u{0}b\u{e9}\u{7f}");
        assert_eq!(name.as_str(), "GE[31mT /ab");
        assert_eq!(Name::new("").as_str(), "");
    }

    #[test]
    fn long_texts_are_cut_with_a_mark() {
        let exact = "0123456789012345678901234567890";
        assert_eq!(Name::new(exact).as_str(), exact);
        let mut name = Name::new(&format!("{exact}1"));
        assert_eq!(name.as_str(), "0123456789012345678901234567…");
        name.push(b"more");
        assert_eq!(name.as_str(), "0123456789012345678901234567…");
        assert!(name.as_str().len() <= Name::MAX);
    }
}
