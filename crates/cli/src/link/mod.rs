//! `tcpwhy link -- CMD`: any two programs with an emulated link between them, and why TCP waited on it.

mod direction;
mod programs;
pub(crate) mod quantity;
pub(crate) mod signals;
mod sockets;
mod summary;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::ValueHint;
use tcpwhy_lab::place::{self, Wire};
use tcpwhy_lab::recording::{self, Recording, Setup};

use crate::args::{Color, Format};
use crate::create;
use direction::Options;
use programs::{Ended, Programs};
use signals::Signals;
use summary::Run;

pub(crate) const LONG_ABOUT: &str = "\
Runs a command behind an emulated link, and says why its connections waited.

Two hosts are made, each with this kernel's TCP and nothing else: no route leads out. The command runs on one, the \
peer on the other, and packets between them pass the link: drops by plan, loss, the queue with its rate, then the \
delay. Needs root, or a system where users may make namespaces.

The peer (--peer) is a line for the shell. It is started first, and the command when the peer listens, or after \
10 s. When the command has ended the peer is ended too. What the peer prints goes to standard error. Without \
--peer, start programs on the other host yourself: nsenter --net=$TCPWHY_PEER_NET CMD.

Without a command, on a terminal, you get a shell on the client's host.

{peer} in the command is the peer's address. Both programs find the other's address in TCPWHY_PEER and their own \
in TCPWHY_LOCAL.

The report goes to standard error, or into --output; standard output is the command's, and so is the exit status.";

const EXAMPLES: &str = "\
Examples:
  A download over a DSL line of 1998: 440 kbit/s, 11 ms each way, room for 20 packets:
      tcpwhy link --delay 11ms --rate 440kbit --queue 20 \\
          --peer 'python3 -m http.server 8000' -- curl -so /dev/null http://{peer}:8000/file

  The same with every 100th packet lost, other luck, captures kept:
      tcpwhy link --delay 11ms --rate 440kbit --loss 1% --seed 2 --capture dsl --peer … -- …

  Fast down, slow up:
      tcpwhy link --delay 10ms --down-rate 16mbit --up-rate 1mbit --queue 50 --peer … -- …

  A database 20 ms away, with a shell to try things in:
      tcpwhy link --delay 10ms --peer 'redis-server --protected-mode no'
      redis-cli -h $TCPWHY_PEER

  The third data segment of the answer is lost, whatever the seed:
      tcpwhy link --delay 20ms --down-drop-data 3 --peer … -- …

  The receiver of 1995, which delays each ACK up to 200 ms:
      tcpwhy link --up-hold-acks heartbeat:200ms --peer … -- …

Exit status: that of the command, 128 + n if signal n ended it; 2 if nothing was run, or the
report or the captures could not be written.";

/// Linux makes no smaller segments than 48 bytes with their options (sysctl `net.ipv4.tcp_min_snd_mss`): with 40 bytes
/// of headers, packets for a smaller MTU would be fragments.
const SMALLEST_MTU: i64 = 88;

/// `tcpwhy link`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "Examples and more with --help.", max_term_width = 100)]
pub(crate) struct Args {
    /// The command on the client's host, and its arguments; {peer} in them is the peer's address
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// The program on the other host, a line for the shell; the command starts when it listens
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    peer: Option<String>,

    /// Seed of all chances; the same seed has the same luck
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Largest IP packet in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(SMALLEST_MTU..=65_535))]
    mtu: u32,

    /// Hosts leave cutting segments at the MTU to the link, as to a network card (TSO)
    #[arg(long)]
    offload: bool,

    /// Keep the captures of both ends in this folder: client.pcapng and server.pcapng
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    capture: Option<PathBuf>,

    /// Bytes kept of each packet in captures
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(60..))]
    snaplen: u32,

    /// Write the report into this file instead of to standard error
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// terminal, for people, or json, for programs (tcpwhy-link/1)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Terminal)]
    format: Format,

    /// Connections to print, the worst first
    #[arg(long, value_name = "N", default_value_t = 1)]
    top: usize,

    /// Use colour: auto (on a terminal), always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,

    #[command(flatten)]
    link: Options,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let ends = args.link.ends()?;
    let programs = Programs { command: command(args)?, peer: args.peer.clone() };
    if let Some(folder) = &args.capture {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    // Made now: once the command has run it would be too late to say that there is no such folder.
    let output = args.output.as_ref().map(|path| {
        create::report(path)
            .and_then(create::emptied)
            .with_context(|| format!("cannot write {}", path.display()))
    });
    let output = output.transpose()?;
    let path = place::Path::Link(Wire { ends, mtu: args.mtu, offload: args.offload });
    let setup = Setup { path, seed: args.seed, snaplen: args.snaplen, middle: false };
    // Before anything starts a thread: see there.
    place::enter()?;
    let signals = Signals::listen().context("cannot listen to signals")?;
    let (recording, is_void) =
        recording::record_once(&setup, |place| programs::run(place, &programs, &signals))?;
    let kept = args.capture.as_ref().map_or(Ok(()), |folder| save(&recording, folder));
    let status = recording.value.status;
    let kept_in = args.capture.as_deref().filter(|_| kept.is_ok());
    let run = Run { setup: &setup, programs: &programs, recording: &recording, kept_in, is_void };
    // The run cannot be repeated: what can be saved of it is.
    let printed = summary::print(args, &run, output);
    kept.and(printed)?;
    Ok(status.into())
}

/// What to run on the client's host.
fn command(args: &Args) -> Result<Vec<OsString>> {
    if !args.command.is_empty() {
        return Ok(args.command.clone());
    }
    if !io::stdin().is_terminal() {
        bail!(
            "nothing to run: give a command behind --, as in tcpwhy link --delay 20ms -- ping -c 3 {{peer}}"
        );
    }
    Ok(vec![std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())])
}

fn save(recording: &Recording<Ended>, folder: &Path) -> Result<()> {
    for capture in &recording.captures {
        let path = folder.join(format!("{}.pcapng", capture.vantage.name()));
        if let Err(error) = capture.save(&path) {
            // Half a capture would pass for a whole one.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
    }
    Ok(())
}
