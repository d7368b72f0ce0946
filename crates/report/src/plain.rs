//! Text from a capture is written by strangers: host names, file names and prose may carry escape sequences
//! that repaint the terminal, overrides that reverse what is read, or characters that cannot be seen.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// Marks that may sit on one letter. Real scripts need two (a Vietnamese vowel with its tone); a tower of
/// fifty is there to paint over the lines above.
const MARKS_ON_A_LETTER: usize = 2;

/// `text` with everything that acts on a terminal or hides from its reader written as `\u{…}`.
///
/// Line breaks and tabs become spaces: what came as one string stays on one line.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 8);
    let mut marks = 0;
    for c in text.chars() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        if matches!(c, '\n' | '\r' | '\t') {
            clean.push(' ');
        } else if is_hidden(c) || marks > MARKS_ON_A_LETTER {
            let _ = write!(clean, "{}", c.escape_unicode());
        } else {
            clean.push(c);
        }
    }
    Cow::Owned(clean)
}

/// A character that takes no column of its own and is not one of the hidden ones: it sits on the letter before.
fn is_mark(c: char) -> bool {
    !is_hidden(c) && c.width() == Some(0)
}

/// Characters that act (control codes, direction overrides) or are there and not seen (zero-width, fillers,
/// variation selectors, tags, line separators, annotations, noncharacters).
pub fn is_hidden(c: char) -> bool {
    if matches!(c, ' '..='~') {
        return false;
    }
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_left_alone_and_not_copied() {
        assert!(matches!(plain("pek.cs.example.1033"), Cow::Borrowed(_)));
        assert_eq!(plain("Zürich, 東京, नमस्ते, a → b · 5 µs"), "Zürich, 東京, नमस्ते, a → b · 5 µs");
        assert_eq!(plain("cafe\u{301}"), "cafe\u{301}");
    }

    #[test]
    fn escape_sequences_become_visible() {
        assert_eq!(plain("\x1b[2J\x1b]0;pwned\x07"), "\\u{1b}[2J\\u{1b}]0;pwned\\u{7}");
        assert_eq!(plain("c1 \u{9b}31m"), "c1 \\u{9b}31m");
        assert_eq!(plain("del\x7f bs\x08"), "del\\u{7f} bs\\u{8}");
    }

    #[test]
    fn one_string_stays_on_one_line() {
        assert_eq!(plain("name\r\n✔ Nothing is wrong\tat all"), "name  ✔ Nothing is wrong at all");
        assert_eq!(plain("a\u{2028}b\u{85}c"), "a\\u{2028}b\\u{85}c");
    }

    #[test]
    fn direction_and_invisible_tricks_become_visible() {
        for c in ['\u{202e}', '\u{2066}', '\u{200f}', '\u{61c}', '\u{200b}', '\u{200d}', '\u{feff}', '\u{ad}']
        {
            assert_eq!(plain(&format!("a{c}b")), format!("a{}b", c.escape_unicode()));
        }
        assert_eq!(plain("tag\u{e0041}"), "tag\\u{e0041}");
        assert_eq!(plain("\u{ffff}"), "\\u{ffff}");
    }

    #[test]
    fn a_tower_of_marks_is_cut() {
        let tower = format!("a{}b", "\u{301}".repeat(50));
        let clean = plain(&tower);
        assert_eq!(clean.matches('\u{301}').count(), MARKS_ON_A_LETTER);
        assert_eq!(clean.matches("\\u{301}").count(), 50 - MARKS_ON_A_LETTER);
        assert!(clean.ends_with('b'));
    }

    #[test]
    fn nothing_without_a_column_is_left_but_marks() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = format!("x{c}");
            let left = plain(&text);
            assert!(left.chars().all(|c| !is_hidden(c)), "{c:?} was left in");
        }
    }
}
