//! What every experiment is given.

use std::path::PathBuf;

use anyhow::Result;

use crate::place::{Path, Place};
use crate::recording::{self, Recording, Setup};

/// Told what the lab is doing, so that somebody waiting sees it.
pub trait Progress {
    /// The experiment has so many runs.
    fn runs(&self, all: u64);
    /// The next run begins.
    fn run(&self, what: &str);
    /// A run was late and is repeated.
    fn voided(&self, what: &str);
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
        let setup = Setup { path: path.clone(), seed: self.seed, snaplen: 120, middle: false };
        recording::record(&setup, work)
    }
}
