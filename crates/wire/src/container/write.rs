//! Frames to pcapng: one section, times in nanoseconds, the writing host's byte order.

use std::io::{self, Write};

use super::block::Block;
use super::bytes::Order;
use super::pcapng::interface::{IF_TSRESOL, ISB_IFDROP};
use super::pcapng::{CALLS, INTERFACE_STATISTICS};
use super::{Frame, LinkType, MAX_FRAME};

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
    block: Block,
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
        let mut writer = Self { output, block: Block::new(Order::NATIVE), interfaces: Vec::new() };
        writer.block.begin_section();
        writer.block.comment(origin.comment);
        writer.block.text(SHB_HARDWARE, origin.hardware);
        writer.block.text(SHB_OS, origin.os);
        writer.block.text(SHB_USERAPPL, origin.application);
        writer.write()?;
        Ok(writer)
    }

    /// Describes an interface; its number, counted from 0, is what [`Frame::interface`] names. Fails where
    /// pcapng's 16 bits do not hold the link type.
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<u32> {
        let link = u16::try_from(interface.link.0)
            .map_err(|_| invalid(format!("pcapng has no link type {}", interface.link.0)))?;
        self.block.begin_interface(link, interface.snaplen);
        self.block.text(IF_NAME, interface.name);
        self.block.option(IF_TSRESOL, &[NANOSECONDS]);
        self.write()?;
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
        self.block.begin_packet(frame.interface, ticks(frame.time), frame.original_len, data);
        self.block.comment(comment);
        self.write()
    }

    /// Writes a block of recorded calls, of which [`crate::calls`] makes the body.
    pub fn calls(&mut self, body: &[u8]) -> io::Result<()> {
        self.block.begin(CALLS);
        self.block.padded(body);
        self.write()
    }

    /// Says how many frames an interface has dropped from the beginning to `time`, in ns since the epoch. Belongs
    /// at the file's end; later figures replace earlier ones.
    pub fn dropped(&mut self, interface: u32, time: i64, frames: u64) -> io::Result<()> {
        self.block.begin(INTERFACE_STATISTICS);
        self.block.u32(interface);
        self.block.ticks(ticks(time));
        self.block.option(ISB_IFDROP, &frames.to_ne_bytes());
        self.write()
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

    /// Writes the block that was built.
    fn write(&mut self) -> io::Result<()> {
        self.output.write_all(self.block.end())
    }
}

/// A time in ns as a timestamp: pcapng has none before the epoch.
fn ticks(time: i64) -> u64 {
    time.max(0) as u64
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
