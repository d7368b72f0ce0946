//! Joins the stages: bytes to frames to packets to a diagnosis, in one pass and one thread.

use std::cell::Cell;
use std::io::{self, Cursor, Read};
use std::rc::Rc;

use tcpwhy_diagnose::flow::series::Wanted as Recording;
use tcpwhy_diagnose::{Analyzer, CaptureInfo, Diagnosis};
use tcpwhy_report::annotate;
use tcpwhy_wire::calls::{Write, Writes};
use tcpwhy_wire::container::{self, Item as InFile, Opened, Other, Reader};
use tcpwhy_wire::decode::{Tally, decode_onto};
use tcpwhy_wire::text::{self, End, Item, Start};
use tcpwhy_wire::{Names, Packet, Socket};

use crate::calls::{self, Recorded};
use crate::complaint;
use crate::filter::Filter;
use crate::input::Input;
use crate::memory;
use crate::parts::{Parts, joined};
use crate::programs::Programs;
use crate::progress::Progress;
use crate::stop::Stop;

/// Bytes that show whether an input that is no capture file can be text: no text has a NUL, and hardly any
/// binary file has none so far.
pub(crate) const START: u64 = 512;

/// Comments repeated in the notes; a file with more has tools of its own.
const COMMENTS: usize = 10;

/// Why there is no (further) result.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The input cannot be read: why, and what to try.
    Input(String),
    /// The result cannot be written.
    Output(io::Error),
}

/// What a capture came to.
#[derive(Debug)]
pub(crate) struct Analyzed {
    pub(crate) diagnosis: Diagnosis,
    /// What calls of programs tell, where the file is a recording of both.
    pub(crate) recorded: Option<Recorded>,
    /// The programs at ends of connections, as far as the file tells.
    pub(crate) programs: Programs,
}

/// Takes each result as soon as it is there.
pub(crate) type Taker<'a> = &'a mut dyn FnMut(Analyzed) -> io::Result<()>;

/// Analyses the captures in one input: one in a capture file, or in the files of a set, one a block of packets in a
/// text. `recorded` is the number of a connection whose packets are kept.
pub(crate) fn captures(
    parts: &Parts,
    filter: Option<&Filter>,
    recorded: Option<u64>,
    stop: &Stop,
    take: Taker<'_>,
) -> Result<(), Trouble> {
    recording(parts, filter, recorded.as_slice(), stop, take)
}

/// The same with the packets of several connections kept.
pub(crate) fn recording(
    parts: &Parts,
    filter: Option<&Filter>,
    recorded: &[u64],
    stop: &Stop,
    take: Taker<'_>,
) -> Result<(), Trouble> {
    let all = |_| recorded.iter().copied().map(Recording::all).collect();
    recording_parts(parts, filter, &all, stop, take)
}

/// What is recorded of a capture: of the one that has so many others before it in its input.
pub(crate) type Recordings<'a> = &'a dyn Fn(usize) -> Vec<Recording>;

/// The same with what is wanted of each capture, which may be a part of some connections.
pub(crate) fn recording_parts(
    parts: &Parts,
    filter: Option<&Filter>,
    recorded: Recordings<'_>,
    stop: &Stop,
    take: Taker<'_>,
) -> Result<(), Trouble> {
    read(parts, Wanted { filter, recorded, tap: None }, stop, take)
}

/// What an input has, in the order of time.
#[derive(Clone, Copy)]
pub(crate) enum Seen<'a> {
    Packet(&'a Packet),
    /// What a program wrote whose calls were recorded.
    Write(&'a Write),
}

impl Seen<'_> {
    /// Who sent it to whom.
    pub(crate) fn ends(self) -> (Socket, Socket) {
        match self {
            Self::Packet(packet) => (packet.source, packet.destination),
            Self::Write(write) => (write.from, write.to),
        }
    }
}

/// Sees each packet and write instead of the analyser; with it the names of a text's hosts.
pub(crate) type Tap<'a> = &'a dyn Fn(Seen<'_>, Option<&Names>);

/// Shows all packets of an input, which are not analysed: `take` gets empty results, one for each capture in it.
pub(crate) fn tapped(parts: &Parts, stop: &Stop, tap: Tap<'_>, take: Taker<'_>) -> Result<(), Trouble> {
    read(parts, Wanted { filter: None, recorded: &|_| Vec::new(), tap: Some(tap) }, stop, take)
}

/// What somebody wants of an input's packets.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    filter: Option<&'a Filter>,
    recorded: Recordings<'a>,
    tap: Option<Tap<'a>>,
}

fn read(parts: &Parts, wanted: Wanted<'_>, stop: &Stop, take: Taker<'_>) -> Result<(), Trouble> {
    parts.begin();
    let input = Input::open(parts.first(), stop).map_err(|error| unreadable(&error))?;
    let progress = input.progress();
    let run = Run { parts, wanted, captures: Cell::new(0), progress: &progress, stop };
    let mut take = |diagnosis| {
        progress.clear();
        stop.reading(false);
        let taken = take(diagnosis);
        stop.reading(true);
        taken
    };
    stop.reading(true);
    let result = run.input(input, &mut take);
    stop.reading(false);
    progress.clear();
    result
}

/// What stays the same for one input.
struct Run<'a> {
    parts: &'a Parts,
    wanted: Wanted<'a>,
    /// Captures that have begun.
    captures: Cell<usize>,
    progress: &'a Rc<Progress>,
    stop: &'a Stop,
}

impl Run<'_> {
    fn input(&self, input: Input, take: Taker<'_>) -> Result<(), Trouble> {
        match container::open(input) {
            Ok(Opened::Capture(reader)) => take(self.capture_file(reader)).map_err(Trouble::Output),
            Ok(Opened::Other(other)) => self.text(other, take),
            Err(error) => Err(Trouble::Input(complaint::no_capture(&error))),
        }
    }

    /// A text: every run of packets in it is a capture.
    fn text(&self, mut other: Other<Input>, take: Taker<'_>) -> Result<(), Trouble> {
        let kind = format!("tcpdump-text{}", other.suffix());
        let mut start = Vec::new();
        other.by_ref().take(START).read_to_end(&mut start).map_err(|error| unreadable(&error))?;
        if start.contains(&0) {
            return Err(Trouble::Input(complaint::no_text(&start).to_owned()));
        }
        let mut reader = text::Reader::new(Cursor::new(start).chain(other));
        let mut captures = 0;
        while let Some(item) = reader.next() {
            if let Item::Start(start) = item {
                let name = self.name_of(&start, captures);
                captures += 1;
                take(self.text_capture(&mut reader, name, &kind, start.has_date)).map_err(Trouble::Output)?;
            }
        }
        match reader.error() {
            _ if captures > 0 => Ok(()),
            Some(error) => Err(unreadable(error)),
            None => Err(Trouble::Input(complaint::no_packets(reader.unread(), reader.timeless()))),
        }
    }

    /// What the text says above its packets; else the file's name, with the line where it is not the first.
    fn name_of(&self, start: &Start, captures_before: u32) -> String {
        match &start.name {
            Some(name) => name.clone(),
            None if captures_before == 0 => self.parts.name(),
            None => format!("{}, line {}", self.parts.name(), start.line),
        }
    }

    /// The packets of the capture that has just begun.
    fn text_capture<R: Read>(
        &self,
        reader: &mut text::Reader<R>,
        name: String,
        kind: &str,
        has_date: bool,
    ) -> Analyzed {
        let mut gathering = Gathering::new(self);
        let mut end = End::default();
        while let Some(item) = reader.next() {
            match item {
                Item::Packet(packet) => {
                    gathering.count(packet.time, packet.frame_len);
                    gathering.push(packet, reader.names());
                }
                Item::End(last) => {
                    end = last;
                    break;
                }
                // Every capture ends before the next begins.
                Item::Start(_) => {}
            }
        }
        // Packets of other protocols count too, but are only counted.
        gathering.frames = end.packets;
        let End { names, notes, .. } = end;
        let info =
            CaptureInfo { name, kind: kind.to_owned(), has_date, notes, names, ..CaptureInfo::default() };
        gathering.finish(info)
    }

    fn capture_file(&self, mut reader: Reader<Input>) -> Analyzed {
        let mut gathering = Gathering::new(self);
        let (kind, mut tally) = (reader.kind().to_owned(), Tally::default());
        let (mut of_files, mut remarks, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let before = gathering.frames;
            gathering.file(&mut reader, &mut tally);
            remarks.extend(comments(&reader, before));
            of_files.push(reader.notes());
            ends.push(gathering.frames);
            match self.next_file(&gathering) {
                Some(next) => reader = next,
                None => break,
            }
        }
        gathering.push_calls(i64::MAX);
        let paths = self.parts.paths();
        let mut notes = Vec::from_iter(joined::notes(&paths, &ends));
        notes.extend(joined::of_files(&paths, of_files));
        notes.extend(tally.notes());
        notes.append(&mut remarks);
        let name = self.parts.name();
        gathering.finish(CaptureInfo { name, kind, has_date: true, notes, ..CaptureInfo::default() })
    }

    /// The file in which the capture goes on.
    fn next_file(&self, gathering: &Gathering<'_>) -> Option<Reader<Input>> {
        if self.stop.requested() {
            return None;
        }
        let next = self.parts.go_on(gathering.span)?;
        let input = Input::go_on(next, self.stop, self.progress).ok();
        if let Some(Ok(Opened::Capture(reader))) = input.map(container::open) {
            return Some(reader);
        }
        // It was there a moment ago. Why it is not, is told when it is read as a capture of its own.
        self.parts.go_back();
        None
    }
}

/// What somebody wrote into the file about it or its packets. What `tcpwhy annotate` did, the report itself says.
///
/// `before` is how many frames files before it had.
fn comments(reader: &Reader<Input>, before: u64) -> Vec<String> {
    let (ours, all): (Vec<_>, Vec<_>) =
        reader.comments().iter().partition(|comment| comment.text.starts_with(annotate::MARK));
    let mut notes: Vec<String> = all
        .iter()
        .take(COMMENTS)
        .map(|comment| match comment.frame {
            Some(number) => format!("Comment on packet {}: {}", before + number, comment.text),
            None => format!("Comment: {}", comment.text),
        })
        .collect();
    if all.len() > COMMENTS {
        notes.push(format!("And {} more comments in the file.", all.len() - COMMENTS));
    }
    if !ours.is_empty() {
        notes.push("The file has comments of tcpwhy annotate, which are not repeated here.".to_owned());
    }
    notes
}

fn unreadable(error: &io::Error) -> Trouble {
    Trouble::Input(complaint::unreadable(error))
}

/// One capture on its way into the analyser.
struct Gathering<'a> {
    run: &'a Run<'a>,
    analyzer: Analyzer,
    batch: Vec<Packet>,
    calls: calls::Gathering,
    writes: Writes,
    /// Frames so far, of every protocol.
    frames: u64,
    /// Their bytes on the wire.
    bytes: u64,
    /// Time of the first frame and the latest time seen, in ns.
    span: Option<(i64, i64)>,
    /// Packets that the filter kept.
    kept: u64,
}

impl<'a> Gathering<'a> {
    fn new(run: &'a Run<'a>) -> Self {
        let before = run.captures.replace(run.captures.get() + 1);
        Self {
            run,
            analyzer: Analyzer::recording_parts((run.wanted.recorded)(before)).within(memory::budget()),
            batch: Vec::with_capacity(Analyzer::BATCH),
            calls: calls::Gathering::new(),
            writes: Writes::default(),
            frames: 0,
            bytes: 0,
            span: None,
            kept: 0,
        }
    }

    /// Takes what a file has.
    fn file(&mut self, reader: &mut Reader<Input>, tally: &mut Tally) {
        while let Some(item) = reader.next_item() {
            let frame = match item {
                InFile::Frame(frame) => frame,
                InFile::Calls(block) => {
                    self.calls.take(block);
                    self.push_calls(self.latest());
                    continue;
                }
            };
            self.push_calls(frame.time);
            self.count(frame.time, frame.original_len);
            match decode_onto(&frame, self.frames, &mut self.batch) {
                Ok(()) => self.flush_if_full(None),
                Err(reason) => tally.add(reason),
            }
        }
    }

    /// Counts a frame, whatever it holds.
    #[inline]
    fn count(&mut self, time: i64, len: u32) {
        self.frames += 1;
        self.bytes += u64::from(len);
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first, last.max(time)));
    }

    /// Takes the packet that was in the frame last counted; `names` are those of a text's hosts.
    #[inline]
    fn push(&mut self, packet: Packet, names: Option<&Names>) {
        self.batch.push(packet);
        self.flush_if_full(names);
    }

    /// The time of the latest frame.
    fn latest(&self) -> i64 {
        self.span.map_or(0, |(_, latest)| latest)
    }

    /// Takes the recorded calls that began by `time`, when the next frame was captured: they are between the packets
    /// before and that one.
    #[inline]
    fn push_calls(&mut self, time: i64) {
        while let Some((call, ends)) = self.calls.call_by(time) {
            let ends = ends.map(|(own, peer)| (own.into(), peer.into()));
            if let Some(write) = self.writes.take(&call, ends) {
                self.push_write(&write);
            }
        }
    }

    /// Takes a write behind all packets so far.
    fn push_write(&mut self, write: &Write) {
        self.flush(None);
        match self.run.wanted.tap {
            Some(tap) => tap(Seen::Write(write), None),
            None => self.analyzer.push_write(write),
        }
    }

    #[inline]
    fn flush_if_full(&mut self, names: Option<&Names>) {
        if self.batch.len() == Analyzer::BATCH {
            self.flush(names);
        }
    }

    fn flush(&mut self, names: Option<&Names>) {
        if let Some(filter) = self.run.wanted.filter {
            self.batch.retain(|packet| filter.keeps(packet, names));
            self.kept += self.batch.len() as u64;
        }
        if let Some(tap) = self.run.wanted.tap {
            self.batch.iter().for_each(|packet| tap(Seen::Packet(packet), names));
        } else {
            self.analyzer.push(&self.batch);
        }
        self.batch.clear();
        self.run.progress.set_packets(self.frames);
    }

    fn finish(mut self, mut info: CaptureInfo) -> Analyzed {
        self.flush(Some(&info.names));
        if let Some(filter) = self.run.wanted.filter {
            let (kept, all) = (self.kept, self.frames);
            info.notes.push(format!("Narrowed down to {}: {kept} of {all} packets.", filter.describe()));
        }
        let programs = self.calls.programs();
        let mut recorded = self.calls.finish();
        if let (Some(filter), Some(recorded)) = (self.run.wanted.filter, &mut recorded) {
            recorded.sockets.retain(|socket| filter.keeps_one_between(socket.local, socket.peer));
        }
        let info = CaptureInfo { frames: self.frames, bytes: self.bytes, span: self.span, ..info };
        Analyzed { diagnosis: self.analyzer.finish(info), recorded, programs }
    }
}
