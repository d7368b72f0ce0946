//! The `tcpwhy` command: one file a verb, and what the verbs stand on.

use std::process::ExitCode;

use clap::Parser;

mod analyze;
mod annotate;
mod args;
mod calls;
mod complaint;
mod completions;
mod create;
mod drive;
mod explain;
mod fail_on;
mod filter;
mod hops;
mod html;
mod input;
mod lab;
mod link;
mod live;
mod man;
mod memory;
mod narrowed;
mod nothing;
mod output;
mod parts;
mod plot;
mod printer;
mod programs;
mod progress;
mod prove;
mod quote;
mod relay;
mod rules;
#[cfg(target_os = "linux")]
mod run;
#[cfg(unix)]
mod serve;
mod simulate;
mod sockets;
mod stop;
mod whatif;

use args::{Cli, Verb};

/// Exit status where the answer is yes: `--fail-on` found something.
const FOUND: u8 = 1;
/// Exit status for wrong usage and unreadable input.
const TROUBLE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return complaint::usage(&error),
    };
    let outcome = match &cli.verb {
        Some(Verb::Explain(args)) => explain::run(args),
        Some(Verb::Rules(args)) => rules::run(args),
        Some(Verb::Plot(args)) => plot::run(args),
        Some(Verb::Annotate(args)) => annotate::run(args),
        Some(Verb::Whatif(args)) => whatif::run(args),
        Some(Verb::Sockets(args)) => sockets::run(args),
        Some(Verb::Prove(args)) => prove::run(args),
        Some(Verb::Lab(args)) => lab::run(args),
        Some(Verb::Link(args)) => link::run(args),
        Some(Verb::Live(args)) => live::run(args),
        #[cfg(unix)]
        Some(Verb::Serve(args)) => serve::run(args),
        #[cfg(target_os = "linux")]
        Some(Verb::Run(args)) => run::run(args),
        #[cfg(target_os = "linux")]
        Some(Verb::Record(args)) => run::record::run(args),
        Some(Verb::Relay(args)) => relay::run(args),
        Some(Verb::Simulate(args)) => simulate::run(args),
        Some(Verb::Completions(args)) => completions::run(args),
        Some(Verb::Man(args)) => man::run(args),
        None => analyze::run(&cli.analyze),
    };
    outcome.unwrap_or_else(|error| complaint::fatal(&error))
}
