//! One run: its captures, the link's log, what the programs returned.

use anyhow::Result;
use serde::Serialize;

use crate::capture::{Capture, Vantage};
use crate::place::{Path, Place};

/// How a run is set up.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    /// What joins client and server.
    pub path: Path,
    /// Seed of the link's chances.
    pub seed: u64,
    /// Bytes kept of each packet, from the IP header on.
    pub snaplen: u32,
    /// Whether to capture on the link too.
    pub middle: bool,
}

/// How late the emulator was, over all packets of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Lateness {
    /// Packets delivered.
    pub packets: u64,
    /// Median, in µs.
    pub p50_us: f64,
    /// In µs.
    pub p99_us: f64,
    /// In µs.
    pub max_us: f64,
}

/// A run that was in time.
#[derive(Debug)]
pub struct Recording<T> {
    /// What the programs returned.
    pub value: T,
    /// What was seen, one capture a vantage.
    pub captures: Vec<Capture>,
    /// How late the emulator was; `None` without one.
    pub lateness: Option<Lateness>,
    /// Runs before this one that were late and are void.
    pub voided: u32,
    /// What the link did to packets besides delaying them.
    pub events: Vec<Event>,
}

/// What a link did to one packet, besides delaying it.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// When, in ns since the epoch.
    pub time: i64,
    /// In words: `dropped: queue full`, `ACK held 200.0 ms`, ….
    pub what: String,
}

impl<T> Recording<T> {
    /// The capture made there, if one was.
    pub fn capture(&self, vantage: Vantage) -> Option<&Capture> {
        self.captures.iter().find(|capture| capture.vantage == vantage)
    }
}

/// Makes the namespaces and the link, runs `work` in them, and takes everything down. Repeats it from the
/// start where the emulator was late.
pub fn record<T>(_setup: &Setup, _work: impl Fn(&Place) -> Result<T>) -> Result<Recording<T>> {
    anyhow::bail!("not yet")
}
