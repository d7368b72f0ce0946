//! Generates the benchmark captures and compares tcpwhy with other tools.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Write the captures: 6.7 GB at full size
    Generate {
        /// Folder for the captures
        #[arg(long, default_value = "benches/captures")]
        dir: PathBuf,
        /// Share of the full size
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        /// Only captures whose name begins like this (a, b, c, d, e, tiny); may be repeated
        #[arg(long)]
        only: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Args::parse().verb {
        Verb::Generate { dir, scale, only } => {
            ensure!(scale > 0.0 && scale <= 10.0, "--scale wants a number above 0 and up to 10");
            tcpwhy_benches::generate::generate(&dir, scale, &only)
        }
    }
}
