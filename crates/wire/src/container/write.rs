//! Frames to pcapng: one section, times in nanoseconds, the writing host's byte order.

use std::io::{self, Write};

use super::pcapng::interface::{IF_TSRESOL, ISB_IFDROP};
use super::pcapng::options::COMMENT;
use super::pcapng::{
    BYTE_ORDER_MAGIC, CALLS, ENHANCED_PACKET, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, SECTION_HEADER,
};
use super::{Frame, LinkType, MAX_FRAME};

const OPT_ENDOFOPT: u16 = 0;
const SHB_HARDWARE: u16 = 2;
const SHB_OS: u16 = 3;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;

/// `if_tsresol`: units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writes a pcapng file. Each block goes out in one `write_all`, so that whoever reads along meets whole blocks;
/// give it a [`io::BufWriter`] where nobody does. Nothing is allocated for a frame.
#[derive(Debug)]
pub struct Writer<W: Write> {
    output: W,
    /// The block that is being built.
    block: Vec<u8>,
    has_options: bool,
    /// Link type and most bytes stored of a frame, of each interface.
    interfaces: Vec<(LinkType, usize)>,
}

/// Where a file comes from; what is empty is left out. Texts are cut to 65,535 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// A remark on the whole file.
    pub comment: &'a str,
    /// The machine.
    pub hardware: &'a str,
    /// The operating system.
    pub os: &'a str,
    /// The program that writes the file.
    pub application: &'a str,
}

/// What frames are captured on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interface<'a> {
    /// Its name; left out where empty.
    pub name: &'a str,
    /// What its frames begin with.
    pub link: LinkType,
    /// Bytes kept of a frame; 0 keeps [`MAX_FRAME`].
    pub snaplen: u32,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(output: W, origin: &Origin<'_>) -> io::Result<Self> {
        let mut writer = Self { output, block: Vec::new(), has_options: false, interfaces: Vec::new() };
        writer.begin(SECTION_HEADER);
        writer.u32(u32::from_be_bytes(BYTE_ORDER_MAGIC));
        // Version 1.0; the section's length is not known.
        writer.u16(1);
        writer.u16(0);
        writer.u64(u64::MAX);
        writer.text(COMMENT, origin.comment);
        writer.text(SHB_HARDWARE, origin.hardware);
        writer.text(SHB_OS, origin.os);
        writer.text(SHB_USERAPPL, origin.application);
        writer.end()?;
        Ok(writer)
    }

    /// Describes an interface; its number, counted from 0, is what [`Frame::interface`] names. Fails where
    /// pcapng's 16 bits do not hold the link type.
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<u32> {
        let link = u16::try_from(interface.link.0)
            .map_err(|_| invalid(format!("pcapng has no link type {}", interface.link.0)))?;
        self.begin(INTERFACE_DESCRIPTION);
        self.u16(link);
        self.u16(0);
        self.u32(interface.snaplen);
        self.text(IF_NAME, interface.name);
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.end()?;
        let most = match interface.snaplen as usize {
            0 => MAX_FRAME,
            snaplen => snaplen.min(MAX_FRAME),
        };
        self.interfaces.push((interface.link, most));
        Ok(self.interfaces.len() as u32 - 1)
    }

    /// How many interfaces are described.
    pub fn interfaces(&self) -> usize {
        self.interfaces.len()
    }

    /// Writes a frame, cut to its interface's snapshot length. A comment is left out where empty, and cut to
    /// 65,535 bytes. Fails where the frame's interface is not described or has another link type.
    pub fn frame(&mut self, frame: &Frame<'_>, comment: &str) -> io::Result<()> {
        let Some(&(link, most)) = self.interfaces.get(frame.interface as usize) else {
            return Err(invalid(format!("interface {} is not described", frame.interface)));
        };
        if link != frame.link {
            return Err(invalid(format!(
                "a frame of link type {} on an interface of {}",
                frame.link.0, link.0
            )));
        }
        let data = &frame.data[..frame.data.len().min(most)];
        self.begin(ENHANCED_PACKET);
        self.u32(frame.interface);
        self.time(frame.time);
        self.u32(data.len() as u32);
        self.u32(frame.original_len);
        self.block.extend_from_slice(data);
        self.pad();
        self.text(COMMENT, comment);
        self.end()
    }

    /// Writes a block of recorded calls, of which [`crate::calls`] makes the body.
    pub fn calls(&mut self, body: &[u8]) -> io::Result<()> {
        self.begin(CALLS);
        self.block.extend_from_slice(body);
        self.pad();
        self.end()
    }

    /// Says how many frames an interface has dropped from the beginning to `time`, in ns since the epoch. Belongs
    /// at the file's end; later figures replace earlier ones.
    pub fn dropped(&mut self, interface: u32, time: i64, frames: u64) -> io::Result<()> {
        self.begin(INTERFACE_STATISTICS);
        self.u32(interface);
        self.time(time);
        self.option(ISB_IFDROP, &frames.to_ne_bytes());
        self.end()
    }

    /// Flushes the output and gives it back.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }

    /// The output so far, to flush it, say.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.output
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.has_options = false;
        self.u32(kind);
        self.u32(0); // The length, which `end` knows.
    }

    /// Ends the list of options where there is one, puts the length in both its places, and writes the block.
    fn end(&mut self) -> io::Result<()> {
        if self.has_options {
            // Writers must end a list, says the draft; readers must not rely on it.
            self.u16(OPT_ENDOFOPT);
            self.u16(0);
        }
        let length = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&length.to_ne_bytes());
        self.u32(length);
        self.output.write_all(&self.block)
    }

    fn u16(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_ne_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_ne_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.block.extend_from_slice(&value.to_ne_bytes());
    }

    /// The upper half first, whatever the byte order. pcapng has no time before the epoch.
    fn time(&mut self, time: i64) {
        let nanos = time.max(0) as u64;
        self.u32((nanos >> 32) as u32);
        self.u32(nanos as u32);
    }

    fn text(&mut self, code: u16, text: &str) {
        if !text.is_empty() {
            self.option(code, cut(text, usize::from(u16::MAX)).as_bytes());
        }
    }

    /// An option of 65,535 bytes at most.
    fn option(&mut self, code: u16, value: &[u8]) {
        self.has_options = true;
        self.u16(code);
        self.u16(value.len() as u16);
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }
}

/// As much of a text as fits into `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
