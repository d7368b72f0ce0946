//! Captures that the emulator makes itself: it sees each packet leave one host and reach the other.

use anyhow::{Result, bail};

use crate::capture::{Capture, Vantage};

/// Bytes of one capture in memory: at the lab's usual snaplen more than a million packets.
const MOST: usize = 256 << 20;
/// LINKTYPE_RAW: packets begin with the IP header.
const RAW: u16 = 101;
const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// A capture under way.
#[derive(Debug)]
pub(super) struct Tap {
    vantage: Vantage,
    snaplen: usize,
    bytes: Vec<u8>,
}

impl Tap {
    pub(super) fn new(vantage: Vantage, snaplen: u32) -> Self {
        let mut tap = Self { vantage, snaplen: snaplen as usize, bytes: Vec::new() };
        // Byte order, version 1.0, length unknown.
        let section = [&0x1A2B_3C4D_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xFF; 8]].concat();
        tap.block(SECTION_HEADER, &section, &[]);
        // if_tsresol (9): 10^-9 s; end of options.
        let interface = [&RAW.to_le_bytes()[..], &[0; 2], &snaplen.to_le_bytes(), &[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]];
        tap.block(INTERFACE, &interface.concat(), &[]);
        tap
    }

    /// A packet passed at `time`, in ns since the epoch.
    pub(super) fn record(&mut self, time: i64, packet: &[u8]) -> Result<()> {
        if self.bytes.len() > MOST {
            bail!("the capture at {} outgrows {} MiB: make the run shorter", self.vantage.name(), MOST >> 20);
        }
        let kept = &packet[..packet.len().min(self.snaplen)];
        let time = time as u64;
        let mut head = [0; 20];
        head[4..8].copy_from_slice(&((time >> 32) as u32).to_le_bytes());
        head[8..12].copy_from_slice(&(time as u32).to_le_bytes());
        head[12..16].copy_from_slice(&(kept.len() as u32).to_le_bytes());
        head[16..20].copy_from_slice(&(packet.len() as u32).to_le_bytes());
        self.block(ENHANCED_PACKET, &head, kept);
        Ok(())
    }

    pub(super) fn finish(self) -> Capture {
        Capture { vantage: self.vantage, bytes: self.bytes }
    }

    fn block(&mut self, kind: u32, head: &[u8], data: &[u8]) {
        let padding = data.len().next_multiple_of(4) - data.len();
        let length = ((12 + head.len() + data.len() + padding) as u32).to_le_bytes();
        for part in [&kind.to_le_bytes()[..], &length, head, data, &[0; 3][..padding], &length] {
            self.bytes.extend_from_slice(part);
        }
    }
}
