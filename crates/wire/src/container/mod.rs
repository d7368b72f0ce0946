//! Capture files to frames: pcap, pcapng, and either compressed with gzip or zstd.
//!
//! [`open()`] looks at the first bytes and answers with a [`Reader`] of frames, or hands the bytes on where they
//! are no capture file, so that the caller can try them as text. The reader streams: it holds one buffer of
//! 256 KiB (up to 1 MiB where a block is that long), lends frames out of it, and returns a frame as soon as its
//! last byte has arrived.
//!
//! Nothing in a file is believed: a file that is cut short, damaged or unreadable from some byte on yields
//! every frame before that byte, and [`Reader::notes`] says where it ended and why.
//!
//! [`Writer`] writes pcapng: for live captures, and for copies with comments.
//!
//! The records are taken apart here and not by pcap-parser 0.17, which is an oracle in the tests. On warm captures
//! of 74-byte frames, beyond the cost of `read` itself: pcap 5 ns a packet here and there, pcapng 10 ns here and
//! 40 there. It also reads some pcapng times wrong and ends at the first block that it cannot parse.

mod annotate;
mod block;
pub(crate) mod bytes;
mod end;
mod frame;
mod open;
mod pcap;
mod pcapng;
mod window;
mod write;

use std::io::Read;

pub use annotate::{Annotated, annotate};
pub(crate) use block::cut;
use end::End;
pub use frame::{Comment, Frame, LinkType, MAX_TIME};
use open::{Compression, Source};
pub use open::{OpenError, Opened, Other, open};
use pcap::Pcap;
use pcapng::Pcapng;
pub(crate) use pcapng::options::options;
use window::Window;
pub use write::{Interface, Origin, Writer};

use crate::calls::Block;

/// The largest frame a record may hold, in bytes. It is libpcap's `MAXIMUM_SNAPLEN`: tcpdump cannot be asked for
/// more, and neither libpcap nor Wireshark reads more from a network link, so a longer record is damage. The
/// lower the limit, the sooner damage is seen.
pub const MAX_FRAME: usize = 262_144;

/// What a capture file has, one after the other.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A captured frame.
    Frame(Frame<'a>),
    /// A part of a recording of calls, for [`crate::calls::Reader`].
    Calls(Block<'a>),
}

/// Reads the frames of one capture file.
///
/// To stop early, stop calling [`Reader::next_frame`]; or let the input's `read` fail, and every frame that was
/// complete by then is still delivered before the error ends up in the notes.
#[derive(Debug)]
pub struct Reader<R: Read> {
    window: Window<Source<R>>,
    format: Format,
    compression: Compression,
    frames: u64,
    end: Option<End>,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl<R: Read> Reader<R> {
    fn new(source: Source<R>, compression: Compression, format: Format) -> Self {
        Self { window: Window::new(source), format, compression, frames: 0, end: None }
    }

    /// The next frame, in file order; `None` at the end of what can be read, whatever ended it. Recorded calls are
    /// passed over.
    #[inline]
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        match self.next(false) {
            Some(Item::Frame(frame)) => Some(frame),
            Some(Item::Calls(_)) | None => None,
        }
    }

    /// The next frame, or block of calls that a recorder put between the frames.
    #[inline]
    pub fn next_item(&mut self) -> Option<Item<'_>> {
        self.next(true)
    }

    #[inline]
    fn next(&mut self, calls: bool) -> Option<Item<'_>> {
        if self.end.is_some() {
            return None;
        }
        let next = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.window).map(Item::Frame),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.window, self.frames + 1, calls),
        };
        match next {
            Ok(item) => {
                self.frames += u64::from(matches!(item, Item::Frame(_)));
                Some(item)
            }
            Err(end) => {
                self.end = Some(end);
                None
            }
        }
    }

    /// The file's kind: `pcap`, `pcapng`, `pcap.gz`, `pcapng.zst`, …
    pub fn kind(&self) -> &'static str {
        match (&self.format, self.compression) {
            (Format::Pcap(_), Compression::None) => "pcap",
            (Format::Pcap(_), Compression::Gzip) => "pcap.gz",
            (Format::Pcap(_), Compression::Zstd) => "pcap.zst",
            (Format::Pcapng(_), Compression::None) => "pcapng",
            (Format::Pcapng(_), Compression::Gzip) => "pcapng.gz",
            (Format::Pcapng(_), Compression::Zstd) => "pcapng.zst",
        }
    }

    /// Frames delivered so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The comments read so far, of the file's sections and interfaces and of single frames.
    pub fn comments(&self) -> &[Comment] {
        match &self.format {
            Format::Pcap(_) => &[],
            Format::Pcapng(pcapng) => pcapng.comments(),
        }
    }

    /// Packets the capturing host says it dropped, by the interface statistics read so far; `None` where the
    /// file has none.
    pub fn dropped(&self) -> Option<u64> {
        match &self.format {
            Format::Pcap(_) => None,
            Format::Pcapng(pcapng) => pcapng.dropped(),
        }
    }

    /// What a reader of the analysis must know of the file: where it is cut or damaged, what it lacks.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(end) = &self.end {
            notes.extend(end.note(self.compression != Compression::None));
        }
        if let Format::Pcapng(pcapng) = &self.format {
            pcapng.note(&mut notes);
        }
        notes
    }
}
