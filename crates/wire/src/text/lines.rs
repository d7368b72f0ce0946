//! A stream of bytes to lines of bounded length.

use std::io::{self, BufRead, BufReader, Read};

use memchr::memchr;

/// Longest line that is kept, in bytes. tcpdump's longest are some 500; whole paragraphs of a web page on
/// one line reach a few thousand. The rest of a longer line is skipped.
pub(crate) const MAX_LINE: usize = 16 * 1024;

/// The lines of a text.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    read: BufReader<R>,
    /// Lines read so far.
    pub(crate) count: u64,
    buffer: Vec<u8>,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(read: R) -> Self {
        Self { read: BufReader::with_capacity(64 * 1024, read), count: 0, buffer: Vec::new() }
    }

    /// The next line without its end, cleaned of what pasting through mail and web pages leaves.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<String>> {
        self.buffer.clear();
        if !self.fill()? {
            return Ok(None);
        }
        self.count += 1;
        // Nearly every line is like that.
        let is_plain = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~') && *byte != b'&';
        let is_clean = self.buffer.iter().fold(true, |all, byte| all & is_plain(byte));
        Ok(Some(match str::from_utf8(&self.buffer) {
            Ok(text) if is_clean => text.to_owned(),
            _ => clean(&String::from_utf8_lossy(&self.buffer)),
        }))
    }

    /// Reads up to a line feed and keeps the line's first [`MAX_LINE`] bytes. False at the end of the text.
    fn fill(&mut self) -> io::Result<bool> {
        let mut has_read = false;
        loop {
            let available = match self.read.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                return Ok(has_read);
            }
            has_read = true;
            let end = memchr(b'\n', available);
            let part = &available[..end.unwrap_or(available.len())];
            let room = MAX_LINE - self.buffer.len();
            self.buffer.extend_from_slice(&part[..part.len().min(room)]);
            let used = end.map_or(available.len(), |end| end + 1);
            self.read.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

/// Turns no-break spaces into blanks, HTML's `&gt;` into `>`, and drops control characters but the tabulator.
fn clean(line: &str) -> String {
    let mut text = line.replace('\u{a0}', " ");
    if text.contains('&') {
        text = text.replace("&gt;", ">").replace("&lt;", "<").replace("&nbsp;", " ").replace("&amp;", "&");
    }
    text.retain(|letter| letter == '\t' || !letter.is_control() && letter != '\u{feff}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let mut lines = Lines::new(text);
        std::iter::from_fn(|| lines.next_line().unwrap()).collect()
    }

    #[test]
    fn ends_and_leftovers_of_pasting() {
        assert_eq!(lines(b"\xef\xbb\xbfa\r\nb &gt;\xc2\xa0c\n\nlast"), ["a", "b > c", "", "last"]);
        assert_eq!(lines(b"\x1b[1mbold\x07\xff\n"), ["[1mbold\u{fffd}"]);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let mut text = vec![b'x'; 3 * MAX_LINE];
        text.extend_from_slice(b"\nnext\n");
        let lines = lines(&text);
        assert_eq!(lines[0].len(), MAX_LINE);
        assert_eq!(lines[1..], ["next"]);
    }
}
