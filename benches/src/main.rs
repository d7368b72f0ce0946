//! Generates the benchmark captures and compares tcpwhy with other tools.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};
use tcpwhy_benches::calls::{self, Deed};
use tcpwhy_benches::compare::{self, Clock, Options};
use tcpwhy_benches::generate;
use tcpwhy_benches::link;
use tcpwhy_benches::live;
use tcpwhy_benches::manifest::Manifest;
use tcpwhy_benches::relay;

/// Where the large captures are, seen from the workspace's root.
const CAPTURES: &str = "benches/captures";
/// The release binary of the workspace.
const TCPWHY: &str = "target/release/tcpwhy";

#[derive(Parser)]
#[command(about)]
struct Args {
    /// Without a verb: generate what is missing, then compare
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Write the captures: 6.7 GB at full size
    Generate {
        /// Folder for the captures
        #[arg(long, default_value = CAPTURES)]
        dir: PathBuf,
        /// Share of the full size
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        /// Only captures whose name begins like this (a, b, c, d, e, tiny); may be repeated
        #[arg(long)]
        only: Vec<String>,
    },
    /// Time tcpwhy beside tcptrace, tshark and reading alone
    Compare {
        /// Folder of the captures
        #[arg(long, default_value = CAPTURES)]
        dir: PathBuf,
        /// The tcpwhy to measure
        #[arg(long, default_value = TCPWHY)]
        tool: PathBuf,
        /// A tool to leave out (tshark, tcptrace, "tcpwhy json", "read only"); may be repeated
        #[arg(long)]
        without: Vec<String>,
        /// What speeds are reckoned by
        #[arg(long, default_value = "wall")]
        clock: Clock,
        /// Only captures whose name begins like this; may be repeated
        #[arg(long)]
        only: Vec<String>,
    },
    /// How exact and how fast the lab's emulated link is; with root's rights
    Link,
    /// How many packets a second a live capture takes, beside tcpdump; with root's rights
    Live {
        /// The tcpwhy to measure
        #[arg(long, default_value = TCPWHY)]
        tool: PathBuf,
    },
    /// What a recorded call costs, beside strace
    Recorder,
    /// What the recorder is measured by
    #[command(hide = true)]
    Do { deed: Deed, calls: u32 },
    /// How fast a relay passes data on, beside socat and no relay
    Relay {
        /// The tcpwhy to measure
        #[arg(long, default_value = TCPWHY)]
        tool: PathBuf,
    },
}

fn main() -> Result<()> {
    match Args::parse().verb {
        None => bench(),
        Some(Verb::Generate { dir, scale, only }) => {
            ensure!(scale > 0.0 && scale <= 10.0, "--scale wants a number above 0 and up to 10");
            generate::generate(&dir, scale, &only)
        }
        Some(Verb::Compare { dir, tool, without, clock, only }) => {
            compare::compare(&Options { dir: &dir, tcpwhy: &tool, without: &without, only: &only, clock })
        }
        Some(Verb::Link) => link::bench(),
        Some(Verb::Live { tool }) => live::bench(&tool),
        Some(Verb::Recorder) => calls::bench(),
        Some(Verb::Do { deed, calls }) => calls::play(deed, calls),
        Some(Verb::Relay { tool }) => relay::bench(&tool),
    }
}

fn bench() -> Result<()> {
    let dir = Path::new(CAPTURES);
    if Manifest::load(dir).is_err() {
        generate::generate(dir, 1.0, &[])?;
    }
    let tcpwhy = Path::new(TCPWHY);
    compare::compare(&Options { dir, tcpwhy, without: &[], only: &[], clock: Clock::Wall })?;
    link::bench()?;
    live::bench(tcpwhy)?;
    calls::bench()?;
    relay::bench(tcpwhy)
}
