//! The first bytes: what kind of input this is.

use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::pcap::{Pcap, Variant};
use super::pcapng::{self, Pcapng};
use super::{Format, Reader};

/// Bytes that tell every kind apart: a pcapng section header's type, length and byte-order magic.
const MAGIC_LEN: usize = 12;

/// Compressed bytes asked from the input at a time.
const COMPRESSED_CHUNK: usize = 128 * 1024;

/// What an input turned out to be.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one a file")]
pub enum Opened<R: Read> {
    /// A capture file.
    Capture(Reader<R>),
    /// No capture file: perhaps text.
    Other(Other<R>),
}

/// Why an input cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is not a single byte.
    #[error("the input is empty")]
    Empty,
    /// There is not a single byte in what is compressed.
    #[error("the compressed input is empty inside")]
    EmptyInside,
    /// A compressed file in a compressed file.
    #[error("the input is compressed twice: unpack it once")]
    Nested,
    /// A format that other tools can turn into one that is read here.
    #[error("the input is {format}: {advice}")]
    Unsupported {
        /// The format's name.
        format: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// The first read failed.
    #[error("the input cannot be read: {0}")]
    Read(#[from] io::Error),
}

/// Formats that are recognised only to say what to do with them.
const UNSUPPORTED: &[(&[u8], &str, &str)] = &[
    (b"\xfd7zXZ\0", "compressed with xz", "unpack it with `xz -d` first"),
    (b"BZh", "compressed with bzip2", "unpack it with `bunzip2` first"),
    (b"\x04\x22\x4d\x18", "compressed with lz4", "unpack it with `lz4 -d` first"),
    (b"\x1f\x9d", "compressed with compress", "unpack it with `gzip -d` first"),
    (b"PK\x03\x04", "a zip archive", "unpack it with `unzip` first"),
    (b"snoop\0\0\0", "a snoop capture", "convert it with `editcap -F pcapng` first"),
    (b"GMBU", "a Network Monitor capture", "convert it with `editcap -F pcapng` first"),
];

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, 0x08, ..] => Self::Gzip,
            // A frame, or a skippable frame before it (RFC 8878 sections 3.1.1 and 3.1.2).
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// An input whose first bytes were read and put back.
type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// The input, decompressed where it has to be.
pub(super) enum Decoder<R: Read> {
    Plain(R),
    Gzip(Box<MultiGzDecoder<BufReader<R>>>),
    // The largest window it accepts is the zstd library's default, 128 MiB: its memory is bounded.
    Zstd(Box<zstd::Decoder<'static, BufReader<R>>>),
}

impl<R: Read> Decoder<R> {
    fn new(input: R, compression: Compression) -> io::Result<Self> {
        let buffered = |input| BufReader::with_capacity(COMPRESSED_CHUNK, input);
        Ok(match compression {
            Compression::None => Self::Plain(input),
            Compression::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(buffered(input)))),
            Compression::Zstd => Self::Zstd(Box::new(zstd::Decoder::with_buffer(buffered(input))?)),
        })
    }
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

/// Decompressed bytes, from the first on.
pub(super) struct Source<R: Read>(Peeked<Decoder<Peeked<R>>>);

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<R: Read> std::fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source")
    }
}

/// An input that is no capture file, from its first byte on and decompressed.
#[derive(Debug)]
pub struct Other<R: Read> {
    source: Source<R>,
    compression: Compression,
}

impl<R: Read> Other<R> {
    /// What to append to the kind of what is found inside: nothing, `.gz` or `.zst`.
    pub fn suffix(&self) -> &'static str {
        match self.compression {
            Compression::None => "",
            Compression::Gzip => ".gz",
            Compression::Zstd => ".zst",
        }
    }
}

impl<R: Read> Read for Other<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read(buffer)
    }
}

/// Finds out what `input` is, from its first bytes.
pub fn open<R: Read>(mut input: R) -> Result<Opened<R>, OpenError> {
    let magic = peek(&mut input)?;
    if magic.is_empty() {
        return Err(OpenError::Empty);
    }
    let compression = Compression::of(&magic);
    let mut decoder = Decoder::new(Cursor::new(magic).chain(input), compression)?;
    let magic = peek(&mut decoder)?;
    if magic.is_empty() {
        return Err(OpenError::EmptyInside);
    }
    if Compression::of(&magic) != Compression::None {
        return Err(OpenError::Nested);
    }
    if let Some(&(_, format, advice)) = UNSUPPORTED.iter().find(|(start, ..)| magic.starts_with(start)) {
        return Err(OpenError::Unsupported { format, advice });
    }
    let format = format(&magic);
    let source = Source(Cursor::new(magic).chain(decoder));
    Ok(match format {
        Some(format) => Opened::Capture(Reader::new(source, compression, format)),
        None => Opened::Other(Other { source, compression }),
    })
}

fn format(magic: &[u8]) -> Option<Format> {
    if let Some(variant) = magic.first_chunk().and_then(|magic| Variant::of(*magic)) {
        return Some(Format::Pcap(Pcap::new(variant)));
    }
    pcapng::begins_with(magic).then(|| Format::Pcapng(Pcapng::default()))
}

/// Up to [`MAGIC_LEN`] bytes, fewer only at the end of the input. A failure after the first byte is left for
/// the next read to meet again.
fn peek(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(MAGIC_LEN);
    match input.take(MAGIC_LEN as u64).read_to_end(&mut bytes) {
        Err(error) if bytes.is_empty() => Err(error),
        _ => Ok(bytes),
    }
}
