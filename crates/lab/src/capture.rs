//! A capture in memory: pcapng with times in ns.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use tcpwhy_diagnose::{Analyzer, CaptureInfo, Diagnosis};
use tcpwhy_wire::Packet;
use tcpwhy_wire::container::{self, Opened};
use tcpwhy_wire::decode::decode_onto;

/// Where a capture was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vantage {
    /// At the client.
    Client,
    /// At the server.
    Server,
    /// On the one host where both run.
    Both,
    /// At the relay, on the client's side.
    RelayNear,
    /// At the relay, on the server's side.
    RelayFar,
    /// Halfway, on the link itself.
    Middle,
}

impl Vantage {
    /// As file names have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Both => "both",
            Self::RelayNear => "relay-near",
            Self::RelayFar => "relay-far",
            Self::Middle => "middle",
        }
    }
}

/// What was seen at one place.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Where.
    pub vantage: Vantage,
    /// The pcapng file.
    pub bytes: Vec<u8>,
}

impl Capture {
    /// Its packets, in order of capture.
    pub fn packets(&self) -> Vec<Packet> {
        let mut packets = Vec::new();
        if let Ok(Opened::Capture(mut reader)) = container::open(self.bytes.as_slice()) {
            while let Some(frame) = reader.next_frame() {
                let number = packets.len() as u64 + 1;
                // A packet that is neither TCP nor UDP is none of the programs'.
                let _ = decode_onto(&frame, number, &mut packets);
            }
        }
        packets
    }

    /// What tcpwhy finds in it; `name` is what the report calls it.
    pub fn diagnose(&self, name: &str) -> Diagnosis {
        let packets = self.packets();
        let mut analyzer = Analyzer::new();
        for batch in packets.chunks(Analyzer::BATCH) {
            analyzer.push(batch);
        }
        let span = packets.first().zip(packets.last()).map(|(first, last)| (first.time, last.time));
        analyzer.finish(CaptureInfo {
            name: name.to_owned(),
            kind: "pcapng".to_owned(),
            has_date: true,
            frames: packets.len() as u64,
            bytes: packets.iter().map(|packet| u64::from(packet.frame_len)).sum(),
            span,
            ..CaptureInfo::default()
        })
    }

    /// Writes the pcapng file.
    pub fn save(&self, path: &Path) -> Result<()> {
        std::fs::write(path, &self.bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}
