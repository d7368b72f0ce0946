//! `tcpwhy whatif FILE`: what each fix would have saved on a captured connection.

mod chosen;
mod json;
pub(crate) mod prediction;
mod terminal;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::ValueHint;
use tcpwhy_simulate::whatif::{self, Answer, Effort, Fix, Hints, Placed, Unfit, UnknownFix};
use tcpwhy_wire::Packet;

use crate::args::{Color, Format};
use crate::complaint;
use crate::stop::Stop;
use chosen::Chosen;
pub(crate) use chosen::{MOST_CONNECTIONS, corked, host, one_after_the_other};

pub(crate) const LONG_ABOUT: &str = "\
Says what each fix would have saved on a captured connection, and what it would have cost.

tcpwhy infers from the packets what the programs wrote and what they waited for, what the path is like and what kind \
of TCP each host has, and plays the connection again in a simulator: unchanged, and with each fix. The difference \
between the two is what the fix saves; packets and bytes are its price. Where the unchanged replay is not like the \
capture, there are no figures.";

const FIXES: &str = "\
Fixes, each at one side unless it says otherwise; without --fix all but sndbuf are tried:
  nodelay           TCP_NODELAY: small segments do not wait for ACKs
  one-write         what the program writes in pieces it writes at once
  no-cork           no TCP_CORK or MSG_MORE at the end of a message
  quickack          the receiver acknowledges at once
  keep-alive        one connection for all requests (both sides)
  initcwnd=N        an initial congestion window of N segments (32)
  no-idle-restart   the congestion window stays as it is over idle times
  rcvbuf=N          a receive buffer of N bytes from the start (16777216)
  sndbuf=N          a send buffer of N bytes
  sack              both sides use SACK (both sides)
  tlp               the sender probes for a lost tail
  no-loss           no fix, but what the path's losses cost (the path)

Examples:
  tcpwhy whatif slow.pcap                  the worst connection, every fix
  tcpwhy whatif --connection 3 slow.pcap   number 3 of the report
  tcpwhy whatif --fix nodelay,one-write slow.pcap
  tcpwhy whatif --format json slow.pcap    for programs (tcpwhy-whatif/1)

docs/whatif.md says how predictions compare with what the fixes really saved.";

/// What the replays of one question may do together: a second or two of it for any capture, and so much more for each
/// packet. Some sixty replays that take four steps for each packet take a quarter of that. A pause of years in which a timer
/// expires each second takes more.
const LEAST_EFFORT: u64 = 4_000_000;
const EFFORT_EACH: u64 = 1_000;

/// `tcpwhy whatif`.
#[derive(Debug, clap::Args)]
#[command(after_help = FIXES, max_term_width = 100)]
pub(crate) struct Args {
    /// The capture; it is read twice, so standard input will not do
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// The connection with this number in the report; without it, the one that TCP made wait longest
    #[arg(long, value_name = "N")]
    connection: Option<u64>,

    /// Only this fix; several with commas between
    #[arg(long, value_name = "FIX", value_delimiter = ',', value_parser = named)]
    fix: Vec<Fix>,

    /// terminal, for people, or json, for programs (tcpwhy-whatif/1)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Terminal)]
    format: Format,

    /// Use colour: auto (on a terminal), always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,
}

fn named(text: &str) -> Result<Fix, UnknownFix> {
    text.parse()
}

/// What was asked.
struct Asked<'a> {
    file: String,
    chosen: &'a Chosen,
    /// Connections that were played, one after the other.
    connections: usize,
    /// Whether fixes were named.
    is_narrow: bool,
}

fn most_effort(connections: &[Vec<Packet>]) -> u64 {
    let packets: usize = connections.iter().map(Vec::len).sum();
    LEAST_EFFORT + EFFORT_EACH * packets as u64
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.file == Path::new("-") {
        bail!("standard input can be read only once, and what-if reads its capture twice: give it a file");
    }
    let name = complaint::name(&args.file);
    let stop = Stop::on_ctrl_c();
    let chosen = Chosen::of(&args.file, args.connection, &stop)?;
    let fixes = if args.fix.is_empty() { Fix::ALL.to_vec() } else { args.fix.clone() };
    let (packets, writes) = chosen.packets(&args.file, &stop)?;
    let hints = Hints { corked: chosen.corked, writes: &writes };
    let placed: Vec<Placed> = fixes.iter().flat_map(|fix| fix.everywhere()).collect();
    let effort = Effort::of(most_effort(&packets));
    let answer: Result<Answer, Unfit> = whatif::ask_within(&effort, &packets, hints, &placed);
    let asked =
        Asked { file: name, chosen: &chosen, connections: packets.len(), is_narrow: !args.fix.is_empty() };
    match args.format {
        Format::Terminal => terminal::print(&asked, &answer, args.color)?,
        Format::Json => json::print(&asked, &answer)?,
    }
    Ok(ExitCode::SUCCESS)
}
