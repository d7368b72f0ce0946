//! Game updates over TCP and over UDP.

use anyhow::Result;

use super::Outcome;
use crate::lab::Lab;

/// One line about it.
pub const ABOUT: &str = "Game updates that stutter over TCP, not over UDP: Nagle merges them";
/// Where the story is from.
pub const SOURCE: &str = "James Cameron, Vanilla Netrek clients mailing list, 1990s: \
                          \"Netrek on TCP sucks, here's why ... and how to fix\"";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 75;

/// `tcpwhy lab netrek`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {}

/// Plays the games.
pub fn run(_lab: &Lab<'_>, _options: &Options) -> Result<Outcome> {
    anyhow::bail!("not yet")
}
