//! The experiments: one file each. A seed's claim, what was measured here, and whether it holds.
//!
//! A file has
//! - `ABOUT`: one line, in `tcpwhy lab`'s list and in the help;
//! - `SOURCE`: who told the story, when, and what they saw;
//! - `SECONDS`: roughly how long a run with the defaults takes;
//! - `Options`: clap's flags. Every option that the story turns on is one, and the defaults tell the story;
//! - `run(&Lab, &Options) -> Result<Outcome>`, which begins by telling [`Progress::runs`] how many runs it makes.
//!
//! [`Progress::runs`]: crate::lab::Progress::runs

use anyhow::{Context, Result};
use clap::{Args, Command};

use crate::lab::Lab;

mod arrivals;
pub mod figures;
mod outcome;
mod seen;
mod segments;

pub mod bloat;
pub mod calls;
pub mod gateway;
pub mod idle;
pub mod mud;
pub mod netrek;
pub mod recovery;
pub mod relay;
pub mod upload;

pub use outcome::{Claim, Outcome, Table, Verdict};

/// Declares the experiments, in the order in which `tcpwhy lab` lists and `tcpwhy lab all` runs them.
macro_rules! experiments {
    ($($Name:ident in $module:ident),* $(,)?) => {
        /// An experiment with its options. As a clap subcommand it has the module's name.
        #[derive(Clone, Debug, clap::Subcommand)]
        pub enum Experiment {
            $(
                #[doc = concat!("`tcpwhy lab ", stringify!($module), "`.")]
                #[command(name = stringify!($module), about = $module::ABOUT, long_about = None, after_help = $module::SOURCE)]
                $Name($module::Options),
            )*
        }

        impl Experiment {
            /// All of them with their defaults.
            pub fn all() -> Result<Vec<Self>> {
                Ok(vec![$(Self::$Name(defaults()?)),*])
            }

            /// As the command line has it.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$Name(_) => stringify!($module)),* }
            }

            /// One line about it.
            pub fn about(&self) -> &'static str {
                match self { $(Self::$Name(_) => $module::ABOUT),* }
            }

            /// Roughly how long it takes, in s.
            pub fn seconds(&self) -> u64 {
                match self { $(Self::$Name(_) => $module::SECONDS),* }
            }

            /// Runs it.
            pub fn run(&self, lab: &Lab<'_>) -> Result<Outcome> {
                match self { $(Self::$Name(options) => $module::run(lab, options)),* }
            }
        }
    };
}

experiments! {
    Netrek in netrek,
    Relay in relay,
    Mud in mud,
    Gateway in gateway,
    Calls in calls,
    Upload in upload,
    Idle in idle,
    Bloat in bloat,
    Recovery in recovery,
}

/// The options as they are when none is given.
fn defaults<T: Args>() -> Result<T> {
    let command = T::augment_args(Command::new("defaults").no_binary_name(true));
    let matches =
        command.try_get_matches_from([""; 0]).context("the experiment has an option without default")?;
    Ok(T::from_arg_matches(&matches)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_a_default_and_every_line_fits() {
        for experiment in Experiment::all().unwrap() {
            assert!(experiment.about().len() <= 80, "{}", experiment.name());
            assert!(experiment.seconds() > 0, "{}", experiment.name());
        }
    }
}
