//! `--html` of the lab: a page of all captures that its runs made.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use tcpwhy_lab::experiments::Experiment;

use super::Args;
use crate::html::{self, Page};

/// Captures that an experiment makes, about: it shares the page's room among them.
const EACH: usize = 8;
/// File systems stamp times by a clock that is behind by a tick or two.
const COARSE: Duration = Duration::from_secs(1);

/// The captures of a page.
pub(super) struct Captures {
    page: Page,
    /// Where runs keep them: the folder that was asked for, or one that goes with this.
    folder: PathBuf,
    _gone: Option<tempfile::TempDir>,
    /// The folder may have older ones.
    since: SystemTime,
}

impl Captures {
    /// Of so many experiments, if a page is wanted.
    pub(super) fn begin(args: &Args, experiments: usize) -> Result<Option<Self>> {
        let page = html::Args { html: args.html.clone(), html_packets: args.html_packets };
        let Some(page) = page.begin_in_file(EACH * experiments)? else { return Ok(None) };
        let gone = match &args.keep {
            Some(_) => None,
            None => Some(tempfile::tempdir().context("no folder for the captures")?),
        };
        let folder = gone.as_ref().map(tempfile::TempDir::path).or(args.keep.as_deref());
        let folder = folder.map(Path::to_owned).unwrap_or_default();
        Ok(Some(Self { page, folder, _gone: gone, since: SystemTime::now() - COARSE }))
    }

    /// Where runs are to keep theirs.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the page: each experiment's captures in the order in which they were made.
    pub(super) fn finish(self, experiments: &[Experiment]) -> Result<()> {
        let mut captures = Vec::new();
        for experiment in experiments {
            let name = experiment.name();
            // One that could not run has none.
            let mut made = made(&self.folder.join(name), self.since).unwrap_or_default();
            made.sort();
            captures.extend(made.into_iter().map(|(_, path)| {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let called = format!("{name}: {stem}");
                (path, called)
            }));
        }
        html::of_captures(self.page, &captures)
    }
}

/// The captures in a folder that were made since then, and when.
fn made(folder: &Path, since: SystemTime) -> std::io::Result<Vec<(SystemTime, PathBuf)>> {
    let mut made = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let when = path.metadata()?.modified()?;
        if when >= since && path.extension().is_some_and(|extension| extension == "pcapng") {
            made.push((when, path));
        }
    }
    Ok(made)
}
