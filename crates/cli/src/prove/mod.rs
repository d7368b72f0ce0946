//! `tcpwhy prove`: an option of a running program's sockets, switched off and on to see what it changes.

mod choice;
mod guard;
mod json;
mod newcomers;
mod outcome;
mod packets;
mod signals;
mod terminal;
mod trial;

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use clap::ValueEnum;
use tcpwhy_diagnose::trial::FEWEST_PAIRS;
use tcpwhy_host::process;
use tcpwhy_host::switch::TcpOption;

use crate::args::{Color, Format};
use crate::link::quantity;
use crate::output::{self, Look};
use choice::Pointer;

pub(crate) const LONG_ABOUT: &str = "\
Proves what TCP_NODELAY, or TCP_QUICKACK, does for a running program, without restarting it: switches the option off and \
on on its connections, in blocks of equal length and random order, measures each block, and says by how much the two \
settings differ, with a 95 % interval. Works on programs of every language.

With the right to see packets (CAP_NET_RAW), exchanges are timed from the first segment of the request to the last of \
the answer. Without it, the sockets are looked at a thousand times a second for how long what was written waits before it \
leaves.

What was there is put back at the end, at Ctrl-C and after errors; should tcpwhy itself be killed, a second process does it.";

const EXAMPLES: &str = "\
Examples:
  The only connection of a process; one of several, by an end's address or by its descriptor:
      sudo tcpwhy prove -p 4711
      sudo tcpwhy prove -p 4711 --connection 10.0.0.7:5432
      sudo tcpwhy prove -p 4711 --connection 8

  Cure a server without a restart: what it accepts from now on inherits the option:
      sudo tcpwhy prove -p 4711 --all --listener --keep

Exit status: 0 with an answer, be it that the option does nothing; 3 without one (too little traffic, blocks that differ too much
among themselves, or broken off); 2 if nothing was tried.

docs/prove.md explains the measures, the interval and the JSON.";

/// Exit status of a trial that gave no answer: a script must not take it for one.
const NO_ANSWER: u8 = 3;

/// Blocks that have a 95 % interval.
const BLOCKS: usize = 2 * FEWEST_PAIRS;

/// Blocks beyond which nothing becomes clearer.
const MOST_BLOCKS: usize = 1_000;

/// `tcpwhy prove`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "Examples and more with --help.", max_term_width = 100)]
pub(crate) struct Args {
    /// The program's process
    #[arg(short, long, value_name = "PID", required_unless_present = "put_back")]
    pid: Option<u32>,

    /// Only this connection: the address of one of its ends, or its descriptor in the program
    #[arg(short, long, value_name = "ADDR:PORT|FD")]
    connection: Option<Pointer>,

    /// All connections of the process, those that it opens meanwhile too, without asking
    #[arg(short, long, visible_alias = "yes", conflicts_with = "connection")]
    all: bool,

    /// What to switch
    #[arg(short, long, value_enum, default_value_t = Switch::Nodelay)]
    option: Switch,

    /// Blocks of time, half of them with the option on
    #[arg(long, value_name = "N", default_value_t = BLOCKS)]
    blocks: usize,

    /// Length of a block; what happens in its first 250 ms is not counted
    #[arg(long, value_name = "TIME", value_parser = quantity::time, default_value = "2s")]
    block: Duration,

    /// Order of the blocks, to repeat a run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Leave the option on at the end, if the run is not broken off
    #[arg(long)]
    keep: bool,

    /// With --keep: switch it on for listening sockets too, so that later connections inherit it
    #[arg(long, requires = "keep")]
    listener: bool,

    /// terminal, for people, or json, for programs (tcpwhy-prove/1)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Terminal)]
    format: Format,

    /// Use colour: auto (on a terminal), always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,

    /// Be the second process
    #[arg(long, hide = true, exclusive = true)]
    put_back: bool,
}

/// Options that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// TCP_NODELAY: the program's small writes leave at once
    Nodelay,
    /// TCP_QUICKACK: what comes is acknowledged at once
    Quickack,
}

impl Switch {
    fn option(self) -> TcpOption {
        match self {
            Self::Nodelay => TcpOption::NoDelay,
            Self::Quickack => TcpOption::QuickAck,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Some(pid) = args.pid else { return guard::run() };
    ensure!(
        args.blocks.is_multiple_of(2),
        "--blocks {}: half of them have the option on: try {}",
        args.blocks,
        args.blocks + 1
    );
    ensure!(args.blocks >= BLOCKS, "--blocks {}: fewer than {BLOCKS} prove nothing at 95 %", args.blocks);
    ensure!(
        args.blocks <= MOST_BLOCKS,
        "--blocks {}: at most {MOST_BLOCKS}; make them longer with --block",
        args.blocks
    );
    ensure!(
        args.block >= 2 * trial::SETTLING,
        "--block: at least {} ms, half of which is settling",
        2 * trial::SETTLING.as_millis()
    );
    let pid = process::leader(pid).unwrap_or(pid);
    let _alone = alone(pid)?;
    let chosen = choice::choose(args, pid)?;
    let outcome = trial::run(args, pid, chosen)?;
    match args.format {
        Format::Terminal => Look::of(args.color).print(|page| terminal::write(page, &outcome))?,
        Format::Json => output::print_json(&json::of(&outcome))?,
    }
    Ok(if outcome.has_answer() { ExitCode::SUCCESS } else { NO_ANSWER.into() })
}

/// Keeps a second tcpwhy away from the process for as long as it lives: each would take the other's switches for the
/// program's. The name is the kernel's, so nothing is left of it.
fn alone(pid: u32) -> Result<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("tcpwhy-prove-{pid}"))?;
    UnixListener::bind_addr(&name).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow!("another tcpwhy prove is at work on process {pid}"),
        _ => error.into(),
    })
}
