//! `tcpwhy sockets`: every TCP socket with its program and its options, and what it seems to wait for.

mod json;
mod live;
mod row;
mod saved;
mod sentence;
mod table;
mod terminal;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::ValueHint;

use crate::args::{Color, Format};
use crate::link::quantity;
use crate::output;
use row::Row;
use terminal::Shown;

pub(crate) const LONG_ABOUT: &str = "\
Shows every TCP socket: its program, state, queues, windows and round trip, and as they are in the running program \
TCP_NODELAY, TCP_CORK, TCP_QUICKACK and buffer sizes. The sockets that seem to wait for something come \
first, each with a sentence: a small segment that Nagle's algorithm or a cork holds back, a closed window, \
retransmissions, a program that does not read or accept.

Nothing is changed. Options are read from a duplicate of the program's descriptor, closed again at once. Without root, \
other users' programs and options stay unknown, and the table says so.

One look shows where bytes lie now; --watch takes a hundred looks a second and counts.";

const EXAMPLES: &str = "\
Examples:
  All sockets of the machine; of two processes, also where they live in another network namespace:
      sudo tcpwhy sockets
      sudo tcpwhy sockets -p 4711,4712

  How often is one held by Nagle's algorithm? Ctrl-C, or ten seconds, for the sum:
      sudo tcpwhy sockets -p 4711 --watch --duration 10s

  From a machine where tcpwhy cannot be installed (a mail around it does no harm):
      ssh server ss -tinemp | tcpwhy sockets --from -
      ssh server cat /proc/net/tcp /proc/net/tcp6 | tcpwhy sockets --from -

In the table, `unread` are bytes that the program has not read, `send-q` those that the peer has not acknowledged, of \
which `unsent` have not left. docs/sockets.md explains every column and the JSON.";

/// How long one look is from the next.
const LOOK_EVERY: &str = "10ms";

/// `tcpwhy sockets`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "Examples and more with --help.", max_term_width = 100)]
pub(crate) struct Args {
    /// Only the sockets of this process; several with commas between
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',')]
    pids: Vec<u32>,

    /// Only listening sockets
    #[arg(short, long)]
    listening: bool,

    /// Every socket: TIME-WAIT too, and more than a hundred
    #[arg(short, long)]
    all: bool,

    /// Of every socket, all that is known
    #[arg(long)]
    details: bool,

    /// Look again and again, and tell each second, or each TIME, how often each socket waited
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "1s", value_parser = quantity::time, conflicts_with_all = ["from", "details"])]
    watch: Option<Duration>,

    /// End --watch after this time
    #[arg(long, value_name = "TIME", value_parser = quantity::time, requires = "watch")]
    duration: Option<Duration>,

    /// Time from one look of --watch to the next
    #[arg(long, value_name = "TIME", value_parser = quantity::time, default_value = LOOK_EVERY, requires = "watch")]
    look_every: Duration,

    /// Read a saved /proc/net/tcp, ss -tinemp or netstat -tan instead; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "pids")]
    from: Option<PathBuf>,

    /// terminal, for people, or json, for programs (tcpwhy-sockets/1)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Terminal)]
    format: Format,

    /// Use colour: auto (on a terminal), always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,
}

/// One look at all sockets that were asked for.
struct Look {
    /// What told of them: `kernel`, or the tool or file that a saved text is from.
    source: &'static str,
    rows: Vec<Row>,
    /// What to know before trusting the rest.
    notes: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(every) = args.watch {
        return watch::run(args, every);
    }
    let mut look = match &args.from {
        Some(path) => saved::look(path)?,
        None => live::Live::new(&args.pids)?.look()?,
    };
    keep_listening(args, &mut look);
    match args.format {
        Format::Terminal => {
            let shown = Shown { all: args.all, details: args.details, listening: args.listening };
            terminal::print(&look, shown, args.color)?;
        }
        Format::Json => output::print(|out| json::write(out, &look))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn keep_listening(args: &Args, look: &mut Look) {
    if args.listening {
        look.rows.retain(|row| row.socket.state == tcpwhy_wire::sockets::State::Listen);
    }
}
