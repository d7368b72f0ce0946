//! What every experiment is given.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::place::{Path, Place};
use crate::recording::{self, Recording, Setup};

/// Bytes kept of each packet: IP and TCP headers with all their options.
const SNAPLEN: u32 = 120;

/// Told what the lab is doing, so that somebody waiting sees it. Several runs may be under way at once.
pub trait Progress: Sync {
    /// The experiment has so many runs.
    fn runs(&self, all: u64);
    /// The next run begins.
    fn run(&self, what: &str);
    /// A run was late and is repeated.
    fn voided(&self, what: &str);
    /// A run is over.
    fn done(&self) {}
    /// A line for somebody who watches a run from within.
    fn line(&self, _text: &str) {}
    /// A key that was pressed since it was last asked, where somebody watches.
    fn key(&self) -> Option<char> {
        None
    }
}

/// What every experiment is given.
pub struct Lab<'a> {
    /// Short runs, for tests: the same story with fewer repetitions.
    pub quick: bool,
    /// Seed of all chances.
    pub seed: u64,
    /// Folder for captures and logs.
    pub keep: Option<PathBuf>,
    /// Told of each run.
    pub progress: &'a dyn Progress,
}

impl Lab<'_> {
    /// Records one run under `name` (a file name's stem), and keeps its captures where that is wanted.
    pub fn record<T>(
        &self,
        name: &str,
        path: &Path,
        work: impl Fn(&Place) -> Result<T>,
    ) -> Result<Recording<T>> {
        self.progress.run(name);
        let setup = Setup { path: path.clone(), seed: self.seed, snaplen: SNAPLEN, middle: false };
        let recording = recording::record(&setup, work).with_context(|| name.to_owned())?;
        (0..recording.voided).for_each(|_| self.progress.voided(name));
        self.keep_captures(name, &setup, &recording)?;
        self.progress.done();
        Ok(recording)
    }

    /// Keeps what a program logged in the run `name`, where logs are wanted.
    pub fn keep_log(&self, name: &str, log: &impl Serialize) -> Result<()> {
        let Some(folder) = &self.keep else { return Ok(()) };
        let path = folder.join(format!("{name}.log.json"));
        let text = serde_json::to_string_pretty(log)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn keep_captures<T>(&self, name: &str, setup: &Setup, recording: &Recording<T>) -> Result<()> {
        let Some(folder) = &self.keep else { return Ok(()) };
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        for capture in &recording.captures {
            capture.save(&folder.join(format!("{name}-{}.pcapng", capture.vantage.name())))?;
        }
        let Recording { lateness, voided, events, .. } = recording;
        let command: Vec<_> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        self.keep_log(
            &format!("{name}.run"),
            &serde_json::json!({
                "command": command, "setup": setup, "lateness": lateness, "voided": voided, "events": events,
            }),
        )
    }
}
