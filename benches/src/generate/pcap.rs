//! Writes a classic pcap file, packet by packet.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use super::segment::{MAX_HEADER, Segment};

/// Microsecond timestamps, in this machine-independent (little-endian) order.
const MAGIC: u32 = 0xa1b2_c3d4;
/// The link type of Ethernet frames.
const ETHERNET: u32 = 1;
/// The captures' first second: 2026-01-01 00:00:00 UTC.
const EPOCH: u64 = 1_767_225_600;
/// What payloads are made of.
const ZEROS: [u8; 1500] = [0; 1500];

/// A pcap file being written.
#[derive(Debug)]
pub(crate) struct PcapWriter {
    out: BufWriter<File>,
    snaplen: usize,
    /// Packets written so far.
    pub(crate) packets: u64,
}

impl PcapWriter {
    /// Creates the file; of each frame at most `snaplen` bytes will be stored.
    pub(crate) fn create(path: &Path, snaplen: u32) -> Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        out.write_all(&MAGIC.to_le_bytes())?;
        out.write_all(&[2, 0, 4, 0])?;
        out.write_all(&[0; 8])?;
        out.write_all(&snaplen.to_le_bytes())?;
        out.write_all(&ETHERNET.to_le_bytes())?;
        Ok(Self { out, snaplen: snaplen as usize, packets: 0 })
    }

    /// Appends one segment.
    pub(crate) fn write(&mut self, segment: &Segment) -> Result<()> {
        let mut header = [0; MAX_HEADER];
        let header_len = segment.header(&mut header);
        let frame_len = header_len + usize::from(segment.payload);
        let stored = frame_len.min(self.snaplen);
        let seconds = (EPOCH + segment.time_us / 1_000_000) as u32;
        let micros = (segment.time_us % 1_000_000) as u32;
        for field in [seconds, micros, stored as u32, frame_len as u32] {
            self.out.write_all(&field.to_le_bytes())?;
        }
        self.out.write_all(&header[..header_len.min(stored)])?;
        self.out.write_all(&ZEROS[..stored.saturating_sub(header_len)])?;
        self.packets += 1;
        Ok(())
    }

    /// Writes what is still buffered.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.out.flush()?;
        Ok(self.packets)
    }
}
