//! Captures that the emulator makes itself: it sees each packet leave one host and reach the other.

use std::io;

use anyhow::Result;
use tcpwhy_wire::container::{Frame, Interface, LinkType, Origin, Writer};

use crate::capture::{Capture, Vantage};

/// Bytes of one capture in memory: at the lab's usual snaplen more than a million packets. Later ones are counted
/// only, so that a long run ends as it would have.
const MOST: usize = 256 << 20;

/// A capture under way.
#[derive(Debug)]
pub(super) struct Tap {
    vantage: Vantage,
    writer: Writer<Vec<u8>>,
    /// Packets that had no room.
    missing: u64,
}

impl Tap {
    /// Keeps `snaplen` bytes of each packet.
    pub(super) fn new(vantage: Vantage, snaplen: u32) -> io::Result<Self> {
        let origin = Origin { application: "tcpwhy lab", ..Origin::default() };
        let mut writer = Writer::new(Vec::new(), &origin)?;
        writer.interface(&Interface { name: vantage.name(), link: LinkType::RAW, snaplen })?;
        Ok(Self { vantage, writer, missing: 0 })
    }

    /// A packet passed at `time`, in ns since the epoch.
    pub(super) fn record(&mut self, time: i64, packet: &[u8]) -> Result<()> {
        if self.writer.get_mut().len() > MOST {
            self.missing += 1;
            return Ok(());
        }
        let original_len = u32::try_from(packet.len())?;
        self.writer
            .frame(&Frame { time, data: packet, original_len, link: LinkType::RAW, interface: 0 }, "")?;
        Ok(())
    }

    /// The capture, and how many packets it lacks.
    pub(super) fn finish(self) -> io::Result<(Capture, u64)> {
        Ok((Capture { vantage: self.vantage, bytes: self.writer.finish()? }, self.missing))
    }
}
