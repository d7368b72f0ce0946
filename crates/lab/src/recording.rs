//! One run: its captures, the link's log, what the programs returned.

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::capture::{Capture, Vantage};
use crate::emulator::{self, Emulator};
use crate::place::{self, Path, Place, Recorded, Recorder};

/// How often a run is made before the lab gives up on a machine that is too busy for it.
const ATTEMPTS: u32 = 10;

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
    /// Packets that a host sent faster than the emulator could take them, or keep them, and that were lost so.
    pub lost: u64,
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
    /// Packets that the captures lack, since they were full. Of runs that can be repeated none is left so.
    pub missing: u64,
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

impl<T> Recording<Result<T>> {
    /// The same, if the programs succeeded.
    fn opened(self) -> Result<Recording<T>> {
        let Self { value, captures, lateness, voided, missing, events } = self;
        Ok(Recording { value: value?, captures, lateness, voided, missing, events })
    }
}

/// Makes the namespaces and the link, runs `work` in them, and takes everything down. Repeats it from the
/// start where the emulator was late.
pub fn record<T>(setup: &Setup, work: impl Fn(&Place) -> Result<T>) -> Result<Recording<T>> {
    let mut latest = Lateness::default();
    for voided in 0..ATTEMPTS {
        let recording = attempt(setup, voided, &work)?;
        match recording.lateness {
            Some(lateness) if emulator::is_void(&lateness, &setup.path) => latest = lateness,
            // Late packets may be why the programs failed: only a run that was in time counts.
            _ => {
                let recording = recording.opened()?;
                let missing = recording.missing;
                ensure!(
                    missing == 0,
                    "the captures lack {missing} packets, being full: make the run shorter"
                );
                return Ok(recording);
            }
        }
    }
    let Lateness { packets, p50_us, p99_us, max_us, lost } = latest;
    bail!(
        "this machine is too busy: {ATTEMPTS} runs were late, the last one's {packets} packets by \
         {p50_us:.0} µs (median), {p99_us:.0} µs (99th percentile) and {max_us:.0} µs (worst), and {lost} \
         packets were lost"
    )
}

/// One run of something that cannot be repeated, a user's command, say; and whether it is void.
pub fn record_once<T>(setup: &Setup, work: impl FnOnce(&Place) -> Result<T>) -> Result<(Recording<T>, bool)> {
    let recording = attempt(setup, 0, work)?;
    let is_void = recording.lateness.is_some_and(|lateness| emulator::is_void(&lateness, &setup.path));
    Ok((recording.opened()?, is_void))
}

/// One run, whether late or not.
fn attempt<T>(
    setup: &Setup,
    voided: u32,
    work: impl FnOnce(&Place) -> Result<T>,
) -> Result<Recording<Result<T>>> {
    let place::Built { place, lines } = place::build(&setup.path)?;
    if lines.is_empty() {
        let recorder = Recorder::start(&place.client, setup.snaplen)?;
        let value = work(&place);
        let Recorded { capture, dropped } = recorder.finish()?;
        ensure!(dropped == 0, "the capture lacks {dropped} packets: this machine is too busy for it");
        let captures = vec![capture];
        return Ok(Recording { value, captures, lateness: None, voided, missing: 0, events: Vec::new() });
    }
    let emulator = Emulator::start(lines, setup)?;
    let value = work(&place);
    let emulator::Observed { captures, missing, events, lateness } =
        emulator.stop().context("the emulator stopped")?;
    Ok(Recording { value, captures, lateness: Some(lateness), voided, missing, events })
}
