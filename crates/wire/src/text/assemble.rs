//! Lines to whole records: puts wrapped lines together again and tells packets from the text around them.

use super::cursor::{Cursor, Stop};
use super::heading::{self, Kind};
use super::record;
use super::stamp::{self, Origin};

/// Longest record, in bytes; tcpdump's longest TCP lines have some 500.
const MAX_RECORD: usize = 8 * 1024;

/// Most lines one record may be wrapped to: 500 characters at 40 columns, and some.
const MAX_JOINS: u32 = 16;

/// Columns at which mail programs and terminals wrap. A line is taken for wrapped if it ends before
/// the upper bound and its successor's first word would have gone beyond the lower one.
const WRAP_COLUMNS: std::ops::RangeInclusive<usize> = 64..=100;

/// Blanks by which tcpdump indents what it prints of a packet's payload (`-v`).
const DETAIL_INDENT: usize = 4;

/// Words behind a time among which one shows that tcpdump printed it: interface, direction, link layer, host.
const MAX_PREFIX_WORDS: usize = 8;

/// What a text consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A line, or several joined, that begins like a packet.
    Record {
        /// Its text, all lines joined by blanks.
        text: String,
        /// The number of its first line, from 1.
        line: u64,
    },
    /// A packet without a time (`tcpdump -t`).
    Timeless,
    /// A line that is no packet.
    Between(Kind),
}

/// A record that may go on on the next line.
#[derive(Debug)]
struct Pending {
    text: String,
    line: u64,
    /// Quote marks in front of its first line.
    quotes: usize,
    indent: usize,
    /// Characters of its last line as it stood in the text.
    width: usize,
    joins: u32,
    /// How far the text is a record; `None` until a line that may belong to it asks.
    extent: Option<Extent>,
    /// Length of the text when it was last a whole record.
    whole: Option<usize>,
}

/// Puts records together, one line at a time.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    pending: Option<Pending>,
    /// Indentation of the packet just above, while no blank line has passed.
    above: Option<usize>,
    /// Inside the payload that `-A` prints, up to the next packet.
    in_payload: bool,
    /// Every packet so far had its payload printed below it.
    prints_payload: bool,
    /// The widest line that was certainly wrapped; 0 before the first.
    widest_wrap: usize,
}

impl Assembler {
    /// Takes line `number` and hands what is complete with it to `emit`.
    pub(super) fn line(&mut self, raw: &str, number: u64, emit: &mut impl FnMut(Event)) {
        let (quotes, indent, body) = unquote(raw, usize::MAX);
        if body.is_empty() {
            self.flush(emit);
            // A payload's blank lines are indented too (-v).
            self.above = self.above.filter(|_| raw.contains('\t'));
        } else if begins_like_packet(body) {
            self.prints_payload &= self.in_payload;
            self.in_payload = false;
            self.flush(emit);
            self.pending = Some(Pending::new(body, number, quotes, indent, raw.chars().count()));
        } else if !self.pending.as_mut().is_some_and(|pending| pending.join(raw, body, &mut self.widest_wrap))
        {
            self.flush(emit);
            self.between(body, indent, raw.contains('\t'), emit);
        }
    }

    /// Hands over the record that was still open; at the end of the text nothing else is left.
    pub(super) fn flush(&mut self, emit: &mut impl FnMut(Event)) {
        if let Some(pending) = self.pending.take() {
            self.above = Some(pending.indent);
            emit(Event::Record { line: pending.line, text: pending.finish() });
        }
    }

    fn between(&mut self, body: &str, indent: usize, has_tab: bool, emit: &mut impl FnMut(Event)) {
        if self.in_payload {
            return;
        }
        if let Some(above) = self.above {
            let is_detail = has_tab || indent >= above + DETAIL_INDENT;
            self.in_payload = self.prints_payload || is_printed_payload(body);
            self.prints_payload = self.in_payload;
            // A tunnelled packet follows its tunnel's line without a time of its own.
            if is_detail || self.in_payload || is_timeless_packet(body) {
                return;
            }
        }
        self.above = None;
        if is_timeless_packet(body) {
            emit(Event::Timeless);
            return;
        }
        match heading::classify(body) {
            Kind::Nothing => {}
            kind => emit(Event::Between(kind)),
        }
    }
}

/// How much of a text is a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Not enough yet.
    Partial,
    /// Up to this byte.
    Whole(usize),
    /// Nothing.
    None,
}

fn extent(text: &str) -> (Extent, bool) {
    match record::read(text) {
        Ok(reading) => (Extent::Whole(reading.consumed), reading.open),
        Err(Stop::More) => (Extent::Partial, false),
        Err(Stop::No) => (Extent::None, false),
    }
}

impl Pending {
    fn new(body: &str, line: u64, quotes: usize, indent: usize, width: usize) -> Self {
        Self { text: body.to_owned(), line, quotes, indent, width, joins: 0, extent: None, whole: None }
    }

    /// Appends the line if the record goes on there; `body` is it without any quote marks.
    ///
    /// A line belongs to the record if more of the record can be read with it than without. Where free text
    /// may follow, its width has to look like a wrap as well.
    fn join(&mut self, raw: &str, body: &str, widest_wrap: &mut usize) -> bool {
        let before = *self.extent.get_or_insert_with(|| extent(&self.text).0);
        if before == Extent::None
            || heading::is_hex_dump(body)
            || self.joins >= MAX_JOINS
            || self.text.len() + raw.len() > MAX_RECORD
        {
            return false;
        }
        // The record's own quote marks go; one more `>` may be the arrow between its hosts.
        if before != Extent::Partial && is_printed_payload(body) {
            return false;
        }
        let (_, _, own) = unquote(raw, self.quotes);
        let looks_wrapped = self.looks_wrapped(body, *widest_wrap);
        let fits = |extent: (Extent, bool)| match extent {
            (Extent::None, _) => false,
            (Extent::Partial, _) => before == Extent::Partial || looks_wrapped,
            (Extent::Whole(end), open) => {
                let is_longer = !matches!(before, Extent::Whole(old) if old >= end);
                is_longer && (!open || looks_wrapped || before == Extent::Partial)
            }
        };
        let mut joins = vec![(" ", own)];
        if own != body {
            joins.push((" ", body));
        }
        // A terminal's edge cuts words as well.
        if looks_wrapped {
            joins.push(("", own));
        }
        let joined = joins.into_iter().find_map(|(by, part)| {
            let joined = [&self.text, by, part].concat();
            let found = extent(&joined);
            fits(found).then_some((joined, found.0))
        });
        let Some((joined, extent)) = joined else { return false };
        match before {
            Extent::Whole(_) => self.whole = Some(self.text.len()),
            _ => *widest_wrap = self.width.max(*widest_wrap),
        }
        self.extent = Some(extent);
        self.text = joined;
        self.joins += 1;
        self.width = raw.chars().count();
        true
    }

    /// The record's text, without lines that promised more of it in vain.
    fn finish(mut self) -> String {
        if let (Some(Extent::Partial), Some(whole)) = (self.extent, self.whole) {
            self.text.truncate(whole);
        }
        self.text
    }

    /// Whether the line above ends where lines of this text wrap, so that `next` had no room on it.
    fn looks_wrapped(&self, next: &str, widest_wrap: usize) -> bool {
        let column = if widest_wrap == 0 { usize::MAX } else { widest_wrap }.min(*WRAP_COLUMNS.start());
        let first_word = next.split_whitespace().next().map_or(0, |word| word.chars().count());
        self.width <= *WRAP_COLUMNS.end() && self.width + 1 + first_word > column
    }
}

/// Takes indentation and at most `most` quote marks off a line: the marks, the last indentation, the rest.
fn unquote(line: &str, most: usize) -> (usize, usize, &str) {
    let mut rest = line.trim_end();
    let mut quotes = 0;
    loop {
        let body = rest.trim_start();
        let indent = rest.len() - body.len();
        match body.strip_prefix('>') {
            Some(inner) if quotes < most => (rest, quotes) = (inner, quotes + 1),
            _ => return (quotes, indent, body),
        }
    }
}

/// A time, and behind it what may be a packet. A time of day is enough, other numbers have to be followed by
/// more: prose is full of numbers.
fn begins_like_packet(body: &str) -> bool {
    let mut cursor = Cursor::new(body);
    let Some(stamp) = stamp::take(&mut cursor) else { return false };
    let mut words = cursor.rest().split_whitespace().take(MAX_PREFIX_WORDS).peekable();
    let is_alone = words.peek().is_none() && body.contains('.');
    let is_time = matches!(stamp.origin, Origin::Midnight | Origin::Epoch);
    is_time || is_alone || words.any(|word| matches!(word, ">" | "IP" | "IP6" | "arp" | "ARP," | "ethertype"))
}

/// `IP a.80 > b.33: …` as `tcpdump -t` prints it.
fn is_timeless_packet(body: &str) -> bool {
    (body.starts_with("IP ") || body.starts_with("IP6 ")) && body.contains(" > ")
}

/// The first line of what `-A` prints: an IP header's bytes, most of them dots.
fn is_printed_payload(body: &str) -> bool {
    let dots = body.matches('.').count();
    (body.starts_with('E') || body.starts_with('`')) && dots >= 5 && dots * 3 >= body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<Event> {
        let (mut assembler, mut events) = (Assembler::default(), Vec::new());
        for (line, number) in text.lines().zip(1..) {
            assembler.line(line, number, &mut |event| events.push(event));
        }
        assembler.flush(&mut |event| events.push(event));
        events
    }

    fn record(text: &str, line: u64) -> Event {
        Event::Record { text: text.to_owned(), line }
    }

    #[test]
    fn a_wrap_at_every_blank() {
        let whole = "21:02:34.756601 nestor.4566 > idda.1033: P 1529:1541(12) ack 72 win 32120 (DF)";
        for (at, _) in whole.match_indices(' ') {
            for quote in ["", "> ", "> > ", "  "] {
                let text = format!("{quote}{}\n{quote}{}", &whole[..at], &whole[at + 1..]);
                assert_eq!(events(&text), [record(whole, 1)], "{text}");
            }
        }
    }

    #[test]
    fn prose_behind_a_packet_is_left_alone() {
        let packet = "21:02:34.706616 idda.1033 > nestor.4566: P 60:72(12) ack 1529 win 33580";
        for prose in ["(see above)", "42 is the answer", "> he wrote", "ack is late", "James"] {
            let events = events(&format!("{packet}\n{prose}"));
            assert_eq!(events[0], record(packet, 1));
            assert_eq!(events.len(), 2, "{prose}");
        }
    }

    #[test]
    fn what_v_and_x_and_a_add_is_passed_over() {
        let text = "12:00:00.5 IP (tos 0x0, ttl 64, id 1, offset 0, flags [DF], proto TCP (6), length 80)\n    \
                    10.0.0.1.5 > 10.0.0.2.80: Flags [P.], cksum 0x1 (correct), seq 1:29, ack 1, win 64, length 28: HTTP, length: 28\n\
                    \tGET / HTTP/1.1\n\tHost: x\n\t\n\
                    12:00:00.6 IP 10.0.0.1.5 > 10.0.0.2.80: Flags [.], ack 1, win 64, length 0\n\
                    E..4V.@.@...............F...Ng.....@.(.....\nHost: x\n\nno name\n\
                    12:00:00.7 IP 10.0.0.1.5 > 10.0.0.2.80: Flags [.], ack 1, win 64, length 0\n\
                    \t0x0000:  4500 003c 560c 4000 4006 e6ad 7f00 0001  E..<V.@.@.......\n";
        let events = events(text);
        assert_eq!(events.len(), 3, "{events:?}");
    }

    #[test]
    fn lines_without_a_time_are_told_apart() {
        let text = "IP 10.0.0.1.5 > 10.0.0.2.80: Flags [.], ack 1, win 64, length 0";
        assert_eq!(events(text), [Event::Timeless]);
    }
}
