//! What a proxy does to updates and to requests, seen from both of its sides.

use anyhow::Result;

use super::Outcome;
use crate::lab::Lab;

/// One line about it.
pub const ABOUT: &str = "A proxy between game and player, seen from both of its sides";
/// Where the story is from.
pub const SOURCE: &str = "James Cameron, Vanilla Netrek clients mailing list, 1990s: proxies such as trekhopd \
                          merge again unless they set TCP_NODELAY";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 30;

/// `tcpwhy lab relay`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {}

/// Plays through the relay.
pub fn run(_lab: &Lab<'_>, _options: &Options) -> Result<Outcome> {
    anyhow::bail!("not yet")
}
