//! JSON inside of HTML.

use std::io::{self, Write};

/// U+2028 and U+2029 begin so in UTF-8 and end with 0xa8 or 0xa9. Scripts of old took them for ends of lines.
const SEPARATOR: [u8; 2] = [0xe2, 0x80];

/// Writes `json` so that no HTML parser sees anything in it but text. What is escaped stands in strings only, where the
/// escape means the same.
pub(super) fn write(out: &mut (impl Write + ?Sized), json: &[u8]) -> io::Result<()> {
    let mut rest = json;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xe2)) {
        out.write_all(&rest[..at])?;
        let (unit, len) = match &rest[at..] {
            [b'<', ..] => (0x3c, 1),
            [b'>', ..] => (0x3e, 1),
            [b'&', ..] => (0x26, 1),
            [a, b, last @ (0xa8 | 0xa9), ..] if [*a, *b] == SEPARATOR => (0x2028 + u32::from(last - 0xa8), 3),
            _ => {
                out.write_all(&rest[at..=at])?;
                rest = &rest[at + 1..];
                continue;
            }
        };
        write!(out, "\\u{unit:04x}")?;
        rest = &rest[at + len..];
    }
    out.write_all(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    fn escaped(json: &str) -> String {
        let mut out = Vec::new();
        super::write(&mut out, json.as_bytes()).expect("memory takes all");
        String::from_utf8(out).expect("it was UTF-8")
    }

    #[test]
    fn nothing_is_markup() {
        let json = "[\"</script><!--&amp;\u{2028}\u{2029}€\u{2027}\"]";
        let expected = "[\"\\u003c/script\\u003e\\u003c!--\\u0026amp;\\u2028\\u2029€\u{2027}\"]";
        assert_eq!(escaped(json), expected);
    }

    proptest! {
        #[test]
        fn the_text_stays_the_same(text in "[<>&\u{2028}\u{2029}€a\"\\\\]*|.*") {
            let json = serde_json::to_string(&text).expect("a string");
            let escaped = escaped(&json);
            let is_plain = !escaped.contains(['<', '>', '&', '\u{2028}', '\u{2029}']);
            prop_assert!(is_plain, "{}", escaped);
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).expect("JSON still"), text);
        }
    }
}
