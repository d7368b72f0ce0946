//! A copy of a capture file with comments on its packets.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::Range;

use super::block::{Block, as_option};
use super::bytes::Order;
use super::end::End;
use super::open::{Compression, Source};
use super::pcap::{Pcap, Preamble};
use super::pcapng::copy::{Kind, Raw};
use super::pcapng::interface::IF_TSRESOL;
use super::pcapng::options::{COMMENT, options};
use super::pcapng::{MAX_BLOCK, Pcapng};
use super::window::Window;
use super::{Format, Reader};

/// Where a section header has the section's length.
const SECTION_LENGTH: Range<usize> = 16..24;

/// What a copy came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotated {
    /// Packets in it.
    pub frames: u64,
    /// Those that have got comments.
    pub commented: u64,
    /// Comments that these have got. What was there already, letter by letter, is not written again.
    pub comments: u64,
    /// What is not as one would expect: where the input is cut or damaged, what could not be written.
    pub notes: Vec<String>,
}

/// Copies a capture file, of which nothing was read, into `out` as pcapng. `summary` becomes comments on its first
/// section, `packets` comments on the packets of these numbers (from 1), each cut to 65,535 bytes.
///
/// All blocks of a pcapng file stay as they are, but for the comments. A pcap file becomes one section with one interface,
/// whose timestamps have pcap's resolution. What can be read of a damaged file is copied. Nothing is kept in memory but a
/// block of 16 MiB at most; a longer one is left out, as Wireshark reads no such file.
pub fn annotate<R: Read>(
    reader: Reader<R>,
    summary: &[String],
    packets: &BTreeMap<u64, Vec<String>>,
    out: impl Write,
) -> io::Result<Annotated> {
    let Reader { mut window, format, compression, .. } = reader;
    let mut copy = Copy {
        out,
        block: Block::new(Order::NATIVE),
        summary,
        packets,
        done: Annotated::default(),
        lost: Lost::default(),
    };
    let end = match format {
        Format::Pcap(pcap) => copy.pcap(pcap, &mut window)?,
        Format::Pcapng(pcapng) => copy.pcapng(pcapng, &mut window)?,
    };
    copy.out.flush()?;
    Ok(copy.finish(&end, compression))
}

/// A copy on its way.
struct Copy<'a, W> {
    out: W,
    block: Block,
    /// For the first section; empty afterwards.
    summary: &'a [String],
    packets: &'a BTreeMap<u64, Vec<String>>,
    done: Annotated,
    lost: Lost,
}

/// What could not be written.
#[derive(Default)]
struct Lost {
    /// Packets with comments in simple packet blocks, which have no options.
    bare: u64,
    /// Packets, or sections, whose block would become too long for its readers.
    full: u64,
    /// Blocks that are too long for Wireshark.
    long: u64,
}

impl<'a, W: Write> Copy<'a, W> {
    fn pcap<R: Read>(&mut self, mut pcap: Pcap, window: &mut Window<Source<R>>) -> io::Result<End> {
        self.own_section()?;
        let Preamble { link, snaplen, unit, resolution } = match pcap.preamble(window) {
            Ok(preamble) => preamble,
            Err(end) => return Ok(end),
        };
        self.block.begin_interface(link, snaplen);
        self.block.option(IF_TSRESOL, &[resolution]);
        self.out.write_all(self.block.end())?;
        loop {
            let frame = match pcap.next(window) {
                Ok(frame) => frame,
                Err(end) => return Ok(end),
            };
            self.done.frames += 1;
            let comments = self.of_packet();
            let comments = self.fitting(comments.iter().collect(), frame.data.len() + Block::OF_PACKET);
            self.block.begin_packet(0, frame.time as u64 / u64::from(unit), frame.original_len, frame.data);
            comments.iter().for_each(|comment| self.block.comment(comment));
            self.count(comments.len());
            self.out.write_all(self.block.end())?;
        }
    }

    fn pcapng<R: Read>(&mut self, mut pcapng: Pcapng, window: &mut Window<Source<R>>) -> io::Result<End> {
        let mut is_empty = true;
        let end = loop {
            match pcapng.next_block(window) {
                Ok(raw) => self.raw(&raw)?,
                Err(end) => break end,
            }
            is_empty = false;
        };
        // Not even the first section's header is whole. No bytes at all would be no capture file.
        if is_empty {
            self.own_section()?;
        }
        Ok(end)
    }

    /// Begins a section with the summary.
    fn own_section(&mut self) -> io::Result<()> {
        self.block.begin_section();
        self.summary.iter().for_each(|comment| self.block.comment(comment));
        self.out.write_all(self.block.end())
    }

    fn raw(&mut self, raw: &Raw<'_>) -> io::Result<()> {
        match raw.kind {
            Kind::Section => {
                let summary = std::mem::take(&mut self.summary);
                self.commented(raw, summary).map(drop)
            }
            Kind::Packet => {
                self.done.frames += 1;
                let written = self.commented(raw, self.of_packet())?;
                self.count(written);
                Ok(())
            }
            Kind::BarePacket => {
                self.done.frames += 1;
                self.lost.bare += u64::from(self.packets.contains_key(&self.done.frames));
                self.out.write_all(raw.bytes)
            }
            Kind::Other => self.out.write_all(raw.bytes),
            Kind::TooLong => {
                self.lost.long += 1;
                Ok(())
            }
        }
    }

    /// Writes a section header or a packet with comments; how many are new. They go before the options that are there: what
    /// those lack, an end or a length that is right, does no harm to what stands before.
    fn commented(&mut self, raw: &Raw<'_>, comments: &[String]) -> io::Result<usize> {
        let (start, rest) = raw.parts();
        let is_there = |comment: &&String| {
            options(raw.order, rest).any(|(code, value)| code == COMMENT && value == as_option(comment))
        };
        let new = comments.iter().filter(|comment| !is_there(comment)).collect();
        let new = self.fitting(new, raw.bytes.len());
        self.block.begin_as(raw.order, start);
        if raw.kind == Kind::Section {
            // The section becomes longer, by how much is not known yet.
            self.block.fill(SECTION_LENGTH, 0xff);
        }
        new.iter().for_each(|comment| self.block.comment(comment));
        self.out.write_all(self.block.end_with(rest))?;
        Ok(new.len())
    }

    /// The comments for the frame that was counted last.
    fn of_packet(&self) -> &'a [String] {
        self.packets.get(&self.done.frames).map_or(&[], Vec::as_slice)
    }

    /// These comments, or none where a block of so many bytes would become too long by them.
    fn fitting<'c>(&mut self, comments: Vec<&'c String>, length: usize) -> Vec<&'c String> {
        let more: usize = comments.iter().map(|comment| Block::length_of_option(as_option(comment))).sum();
        if length + more + Block::END <= MAX_BLOCK {
            return comments;
        }
        self.lost.full += 1;
        Vec::new()
    }

    /// Counts the comments of a frame.
    fn count(&mut self, comments: usize) {
        self.done.commented += u64::from(comments > 0);
        self.done.comments += comments as u64;
    }

    fn finish(self, end: &End, compression: Compression) -> Annotated {
        let Self { mut done, lost, packets, .. } = self;
        done.notes.extend(end.note(compression != Compression::None));
        let missing = packets.range(done.frames + 1..).count() as u64;
        let notes = [
            (lost.bare, "packets without their comments: simple packet blocks have none"),
            (lost.full, "packets or sections without their comments: there is no room for them"),
            (lost.long, "blocks left out: they have more than 16 MiB, and Wireshark reads no file with such"),
            (missing, "packets with comments are not there: the file is not what it was"),
        ];
        let notes = notes.into_iter().filter(|(count, _)| *count > 0);
        done.notes.extend(notes.map(|(count, what)| format!("{count} {what}.")));
        done
    }
}
