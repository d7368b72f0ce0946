//! Strangers' text in XML: SVG pictures and JUnit's test results.

use crate::plain::plain;

/// `text`, in which nothing acts on its reader, as XML's character data and attribute values.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobodys_text_is_markup() {
        assert_eq!(
            escaped("</text><script>'a'&\"b\""),
            "&lt;/text&gt;&lt;script&gt;&#39;a&#39;&amp;&quot;b&quot;"
        );
        assert_eq!(escaped("a\u{1b}[2J\0\u{ffff}b"), "a\\u{1b}[2J\\u{0}\\u{ffff}b");
    }
}
