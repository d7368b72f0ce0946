//! Game updates over TCP and over UDP: the stutter, what ends it, and what brings it back.

mod claims;
mod games;
mod live;
mod tables;

use std::time::Duration;

use anyhow::Result;

use super::Outcome;
use crate::lab::Lab;
pub(super) use games::old_senders;

/// One line about it.
pub const ABOUT: &str = "Game updates that stutter over TCP, not over UDP: Nagle merges them";
/// Where the story is from.
pub const SOURCE: &str = "James Cameron, Vanilla Netrek clients mailing list, 1990s: updates asked at 10/s \
                          stutter over TCP; TCP_NODELAY cures it";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 60;

/// `tcpwhy lab netrek`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Updates a second that the client asks for
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "10,5")]
    pub rates: Vec<f64>,

    /// Length of each game in s (4, with --quick 2)
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Round trip of the local network in ms
    #[arg(long, value_name = "MS", default_value_t = 0.3)]
    pub lan: f64,

    /// Longer round trips in ms (with --quick the last one alone)
    #[arg(long, value_name = "MS,MS", value_delimiter = ',', default_value = "20,100,300")]
    pub round_trips: Vec<f64>,

    /// Period in ms of the timer on which a receiver of the 1990s sends its delayed ACKs
    #[arg(long, value_name = "MS", default_value_t = 200.0)]
    pub ack_timer: f64,

    /// Commands a second of a client that sends too
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    pub commands: f64,

    /// When the Repair key is pressed, in s (half of the game)
    #[arg(long, value_name = "S")]
    pub repair_at: Option<f64>,

    /// Times that the client asks and is answered before the game begins
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub login_steps: usize,

    /// Small writes in each of these answers
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub login_writes: usize,

    /// Games at the same time; each is nearly idle
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub at_once: usize,

    /// One long game to watch: r is the Repair key, q ends it
    #[arg(long)]
    pub play: bool,
}

impl Options {
    fn length(&self, lab: &Lab<'_>) -> Duration {
        seconds(self.seconds.unwrap_or(if lab.quick { 2.0 } else { 4.0 }))
    }

    /// The rate that the tables turn on.
    fn rate(&self) -> f64 {
        self.rates.first().copied().filter(|rate| *rate > 0.0).unwrap_or(10.0)
    }
}

/// A duration from the command line; what is none is 0.
pub(super) fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or_default()
}

/// Plays the games, several at once.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<Outcome> {
    if options.play {
        return live::play(lab, options);
    }
    let games = games::all(lab, options);
    lab.progress.runs(games.len() as u64);
    let shown = games::play(lab, &games, options.at_once)?;
    let mut outcome = Outcome::new("netrek", SOURCE);
    outcome.claims = claims::of(&shown, options);
    outcome.tables = tables::of(&shown);
    outcome.notes = tables::notes(&shown, options);
    Ok(outcome)
}
