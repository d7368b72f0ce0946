//! What tcpdump printed, back to packets.
//!
//! [`Reader`] takes any text — a log, a mail, a web page — and gives the packets in it, in the forms tcpdump
//! has used since the 1990s: with and without `-n`, `-e`, `-v`, `-S`, `-x`, `-A` and any of the `-t` options,
//! IPv4 and IPv6, TCP and UDP, wrapped by mail programs, quoted with `>`, indented, between prose.
//!
//! A run of packets is one capture, named by the nearest line of prose above it; prose ends it, and so does
//! the line tcpdump prints when it starts. Blank lines, ellipses, tcpdump's closing counts and lines of a log
//! (a time, but no packet) neither end nor name one.
//!
//! What a text does not say is filled in: sequence numbers become absolute where the text has an absolute
//! one to count from (the `numbers` module has the rule), a pure ACK gets the number its sender had reached, and
//! [`Packet::frame_len`] is an estimate (headers of the usual length, no link layer) unless `-e` or `-v`
//! printed it. Windows stay unscaled, as tcpdump prints them. Host names become
//! addresses of [`Names`]; a host without a port has port 0.

mod assemble;
mod capture;
mod clock;
mod cursor;
mod heading;
mod host;
pub(crate) mod lines;
mod numbers;
mod options;
mod record;
mod stamp;
mod tcp;
mod udp;

use std::collections::VecDeque;
use std::io::{self, Read};

use crate::packet::{Names, Packet};
use assemble::{Assembler, Event};
use capture::{Capture, Count};
use cursor::{Cursor, Stop};
use heading::Kind;
use lines::Lines;

/// What a text holds, in its order: every capture is a [`Item::Start`], its packets, and an [`Item::End`].
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A capture begins.
    Start(Start),
    /// A TCP or UDP packet of it.
    Packet(Packet),
    /// The capture is over.
    End(End),
}

/// The beginning of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The line of prose above it, or else the command: at most 80 characters. `None` if there is neither.
    pub name: Option<String>,
    /// The line of the text its first packet is on, from 1.
    pub line: u64,
    /// Whether its times have a date (`-tt`, `-tttt`). Without one they count from midnight or, as `-ttt` and
    /// `-ttttt` print them, from the first packet. Local times count as UTC.
    pub has_date: bool,
}

/// The end of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The names of its hosts.
    pub names: Names,
    /// Its packets, also those that are neither TCP nor UDP and those that could not be read.
    pub packets: u64,
    /// What the reader of the report should know: whole sentences.
    pub notes: Vec<String>,
}

/// Reads the captures in a text, one item at a time, in bounded memory.
#[derive(Debug)]
pub struct Reader<R> {
    lines: Lines<R>,
    assembler: Assembler,
    events: VecDeque<Event>,
    ready: VecDeque<Item>,
    capture: Option<Capture>,
    between: Between,
    unread: Count,
    timeless: u64,
    error: Option<io::Error>,
    is_over: bool,
}

/// What has been seen since the last packet, or since the last prose.
#[derive(Debug, Default)]
struct Between {
    prose: Option<String>,
    command: Option<String>,
    /// Another run of tcpdump began.
    is_new_run: bool,
    /// Packets that cannot begin a capture: not TCP or UDP, or not readable.
    others: u64,
    unread: Count,
}

impl Between {
    fn ends_capture(&self) -> bool {
        self.is_new_run || self.prose.is_some() || self.command.is_some()
    }
}

impl<R: Read> Reader<R> {
    /// A reader of `read`, which needs no buffer of its own.
    pub fn new(read: R) -> Self {
        Self {
            lines: Lines::new(read),
            assembler: Assembler::default(),
            events: VecDeque::new(),
            ready: VecDeque::new(),
            capture: None,
            between: Between::default(),
            unread: Count::default(),
            timeless: 0,
            error: None,
            is_over: false,
        }
    }

    /// How many lines of the whole text so far resemble packets but could not be read, and the first one's
    /// number: what to say of a text that gave no packet.
    pub fn unread(&self) -> Option<(u64, u64)> {
        self.unread.first.map(|first| (self.unread.count, first))
    }

    /// How many packets so far have no time (`tcpdump -t`) and were left out.
    pub fn timeless(&self) -> u64 {
        self.timeless
    }

    /// Why the text could not be read to its end.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// The host names of the capture that the last item belongs to, as far as they have been read.
    pub fn names(&self) -> Option<&Names> {
        // Packets are let go in one go with their capture's end, which has the names then.
        let ended = self.ready.iter().find_map(|item| match item {
            Item::End(end) => Some(&end.names),
            Item::Start(_) | Item::Packet(_) => None,
        });
        ended.or_else(|| self.capture.as_ref().map(Capture::names))
    }

    /// Reads a line, and at the end of the text lets go of everything that waits.
    fn advance(&mut self) {
        let events = &mut self.events;
        match self.lines.next_line() {
            Ok(Some(line)) => {
                self.assembler.line(&line, self.lines.count, &mut |event| events.push_back(event));
            }
            end => {
                self.error = end.err();
                self.assembler.flush(&mut |event| events.push_back(event));
                self.is_over = true;
            }
        }
        while let Some(event) = self.events.pop_front() {
            self.handle(event);
        }
        if self.is_over {
            self.end_capture();
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Record { text, line } => self.record(&text, line),
            Event::Timeless => {
                self.timeless += 1;
                if let Some(capture) = &mut self.capture {
                    capture.timeless += 1;
                }
            }
            Event::Between(kind) => self.between(kind),
        }
    }

    fn between(&mut self, kind: Kind) {
        match kind {
            Kind::Nothing => return,
            Kind::RunStart => self.between.is_new_run = true,
            Kind::Command(name) => self.between.command = Some(name),
            Kind::Prose(name) => self.between.prose = Some(name),
        }
        // What resembled packets above the prose belongs to no capture below it.
        (self.between.others, self.between.unread) = (0, Count::default());
    }

    fn record(&mut self, text: &str, line: u64) {
        let reading = match record::read(text) {
            Ok(reading) => reading,
            Err(Stop::More | Stop::No) => {
                if record::resembles_packet(text) {
                    self.unreadable(text, line);
                }
                return;
            }
        };
        if self
            .capture
            .as_ref()
            .is_some_and(|open| self.between.ends_capture() || !open.suits(reading.record.stamp))
        {
            self.end_capture();
        }
        match (&reading.record.content, &mut self.capture) {
            (record::Content::Other, Some(capture)) => capture.pass(reading.record.stamp, &mut self.ready),
            (record::Content::Other, None) => self.between.others += 1,
            (record::Content::Transport { .. }, _) => self.packet(&reading.record, line),
        }
    }

    fn packet(&mut self, record: &record::Record, line: u64) {
        let capture = match &mut self.capture {
            Some(capture) => capture,
            none => {
                let between = std::mem::take(&mut self.between);
                let name = between.prose.or(between.command);
                let start = Start { name, line, has_date: Capture::has_date(record.stamp) };
                self.ready.push_back(Item::Start(start));
                none.insert(Capture::new(record.stamp, between.others, between.unread))
            }
        };
        if !capture.take(record, line, &mut self.ready) {
            self.unread.add(line);
        }
    }

    fn unreadable(&mut self, text: &str, line: u64) {
        self.unread.add(line);
        match &mut self.capture {
            Some(capture) if !self.between.ends_capture() => {
                capture.miss(line, stamp::take(&mut Cursor::new(text)), &mut self.ready);
            }
            _ => self.between.unread.add(line),
        }
    }

    fn end_capture(&mut self) {
        if let Some(capture) = self.capture.take() {
            let mut end = capture.end(&mut self.ready);
            end.notes.extend(self.error.as_ref().map(|error| {
                format!("The text could not be read beyond line {}: {error}.", self.lines.count)
            }));
            self.ready.push_back(Item::End(end));
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        while self.ready.is_empty() && !self.is_over {
            self.advance();
        }
        self.ready.pop_front()
    }
}
