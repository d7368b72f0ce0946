//! The entry point: packets in, a [`Diagnosis`] out.

use tcpwhy_wire::{Names, Packet};

use crate::report::{Capture, Connection, Finding, Source};

/// What the container knows of a capture and the packets do not tell.
#[derive(Clone, Debug, Default)]
pub struct CaptureInfo {
    /// The file's name, or the prose line above a text's block.
    pub name: String,
    /// `pcap`, `pcapng`, `pcap.gz`, …, or `tcpdump-text`.
    pub kind: String,
    /// Frames read, of every protocol.
    pub frames: u64,
    /// Bytes of these frames on the wire.
    pub bytes: u64,
    /// Time of the first and of the last frame, ns since the epoch (or since midnight, see `has_date`).
    pub span: Option<(i64, i64)>,
    /// False for a text whose times have no date.
    pub has_date: bool,
    /// Notes of the reader: cut file, frames skipped.
    pub notes: Vec<String>,
    /// Host names of a text capture.
    pub names: Names,
}

/// Takes one capture's packets in order, in one pass.
#[derive(Debug, Default)]
pub struct Analyzer {}

impl Analyzer {
    /// An analyser for one capture.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next packets, in capture order. Batches of [`Analyzer::BATCH`] are fastest, any size works.
    pub fn push(&mut self, packets: &[Packet]) {
        let _ = packets;
    }

    /// Packets a batch should have: enough for the processor to load their connections' cache lines side by
    /// side, few enough that those lines are still in the first-level cache when their turn comes.
    pub const BATCH: usize = 32;

    /// Books what is still open and hands over the result.
    pub fn finish(self, info: CaptureInfo) -> Diagnosis {
        Diagnosis { info }
    }
}

/// One capture's result. Reports are made from it on demand, connection by connection.
#[derive(Debug)]
pub struct Diagnosis {
    info: CaptureInfo,
}

impl Source for Diagnosis {
    fn capture(&self) -> Capture {
        Capture { name: self.info.name.clone(), kind: self.info.kind.clone(), ..Capture::default() }
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        Box::new(std::iter::empty())
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        Box::new(std::iter::empty())
    }
}
