//! What the generated captures hold, as counted while they were written.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

const FILE: &str = "manifest.json";

/// One capture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Capture {
    /// Short name.
    pub name: String,
    /// File name, in the manifest's folder.
    pub file: String,
    /// What is in it.
    pub what: String,
    /// Packets.
    pub packets: u64,
    /// TCP connections.
    pub connections: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// All captures of one folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// In order of name.
    pub captures: Vec<Capture>,
}

impl Manifest {
    /// Reads the manifest of `dir`.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("no captures in {}: run `generate` first", dir.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    /// Reads the manifest of `dir`, where there is a good one.
    pub fn load_or_empty(dir: &Path) -> Self {
        Self::load(dir).unwrap_or_default()
    }

    /// Adds a capture, or replaces the one of that name.
    pub fn put(&mut self, capture: Capture) {
        self.captures.retain(|known| known.name != capture.name);
        self.captures.push(capture);
        self.captures.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// The capture of that name.
    pub fn named(&self, name: &str) -> Option<&Capture> {
        self.captures.iter().find(|capture| capture.name == name)
    }

    /// Writes the manifest into `dir`.
    pub fn save(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(dir.join(FILE), text + "\n")
            .with_context(|| format!("cannot write the manifest into {}", dir.display()))
    }
}
