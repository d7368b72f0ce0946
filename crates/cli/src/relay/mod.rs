//! `tcpwhy relay LISTEN TARGET`: a TCP relay that merges nothing, and what each side of it did.

pub(crate) mod address;
mod terminal;

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::process::{self, ExitCode};

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use tcpwhy_host::relay::{Event, Relay, Settings, Summary};
use tcpwhy_report::page::Page;

use crate::args::{Color, Format};
use crate::output::{self, Stdout};
use crate::stop::INTERRUPTED;
use crate::{TROUBLE, complaint};
use address::Target;

/// Name and version of the JSON.
const FORMAT: &str = "tcpwhy-relay/1";

/// What `--help` begins with.
pub(crate) const LONG_ABOUT: &str = "\
Relays TCP connections and says what each side did, where nothing can be captured.

What one side sends is passed on at once, with TCP_NODELAY on both sides. An end is passed on as an end, a reset as a \
reset; a side that takes no more is waited for, and nothing is read for it meanwhile. Each connection is reported when it \
ends, all of them at Ctrl-C, which resets those that are open; a second Ctrl-C quits at once.

LISTEN is a port, where only programs of this machine can connect (127.0.0.1:PORT), or an address with a port: \
0.0.0.0:8080 and [::]:8080 let everybody connect who reaches this machine. The target's name is looked up for each \
connection.

Segments are as this machine's kernel counts them (Linux). More segments than reads: they came while the relay was busy. \
Fewer segments than writes: the kernel merged what was written, which is what --nagle is for.";

/// `tcpwhy relay`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tcpwhy relay 8080 db.example:5432     then let the client connect to localhost:8080"
)]
pub(crate) struct Args {
    /// Where clients connect: a port of this machine, or ADDRESS:PORT
    #[arg(value_name = "LISTEN", value_parser = address::listen)]
    listen: SocketAddr,

    /// Whom to connect them to: HOST:PORT
    #[arg(value_name = "TARGET", value_parser = address::target)]
    target: Target,

    /// Leave Nagle's algorithm on, to show the harm
    #[arg(long)]
    nagle: bool,

    /// Connections open at once, at most; further clients wait
    ///
    /// Without it as many as open files are allowed, two for each connection.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    most: Option<u32>,

    /// terminal, for people, or json: one object a line (tcpwhy-relay/1)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Terminal)]
    format: Format,

    /// Colour: auto, always or never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = Color::Auto)]
    color: Color,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Target { host, port } = args.target.clone();
    let most = args.most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let relay = Relay::new(Settings { listen: args.listen, host, port, nagle: args.nagle, most })
        .map_err(|error| anyhow!("cannot relay from {}: {}", args.listen, why(&error)))?;
    end_on_ctrl_c(&relay);
    let mut log = Log { format: args.format, color: args.color, is_read: true };
    log.begin(args, &relay);
    let mut is_well = true;
    let summary = relay.run(&mut |event| match event {
        Event::Ended(connection) => log.print(
            || json!({ "event": "connection", "connection": connection }),
            |page| terminal::connection(page, &connection),
        ),
        Event::Full(most) => complaint::say(&full(most, args)),
        Event::NotAccepted(error) => {
            is_well = false;
            complaint::say(&format!("clients cannot be accepted, trying on: {error}"));
        }
    });
    log.end(&summary);
    Ok(if is_well { ExitCode::SUCCESS } else { TROUBLE.into() })
}

/// Why there is no relay, and what to try.
fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "another program listens there: try another port".to_owned(),
        ErrorKind::AddrNotAvailable => "no address of this machine".to_owned(),
        ErrorKind::PermissionDenied => "permission denied: ports below 1024 are root's, try 8080".to_owned(),
        _ => error.to_string(),
    }
}

/// The first Ctrl-C ends the relay and brings the summary, a second quits.
fn end_on_ctrl_c(relay: &Relay) {
    let stop = relay.stop();
    let mut again = false;
    // Where it fails, Ctrl-C ends the program without a summary.
    let _ = ctrlc::set_handler(move || {
        if std::mem::replace(&mut again, true) {
            process::exit(INTERRUPTED);
        }
        stop.stop();
    });
}

fn full(most: usize, args: &Args) -> String {
    let remedy = if args.most.is_some_and(|asked| most as u64 >= u64::from(asked)) {
        "as --most says"
    } else {
        "as open files allow: raise the hard limit (ulimit -Hn) for more"
    };
    format!("{most} connections are open, as many {remedy}; further clients wait until one ends")
}

/// What is printed as it happens.
struct Log {
    format: Format,
    color: Color,
    /// Somebody reads standard output. Where nobody does any more, programs still rely on the relay.
    is_read: bool,
}

impl Log {
    fn begin(&mut self, args: &Args, relay: &Relay) {
        let Target { host, port } = &args.target;
        match self.format {
            Format::Terminal => {
                let nagle = if args.nagle { "Nagle's algorithm" } else { "TCP_NODELAY" };
                let from = relay.address();
                complaint::say(&format!("{from} → {host}:{port}, {nagle} on both sides; Ctrl-C ends it"));
            }
            Format::Json => self.print(
                || {
                    json!({
                        "event": "listening",
                        "format": FORMAT,
                        "version": env!("CARGO_PKG_VERSION"),
                        "address": relay.address(),
                        "target": { "host": host, "port": port },
                        "nagle": args.nagle,
                        "most": relay.most(),
                    })
                },
                |_| Ok(()),
            ),
        }
    }

    fn end(&mut self, summary: &Summary) {
        self.print(
            || json!({ "event": "summary", "summary": summary }),
            |page| terminal::summary(page, summary),
        );
    }

    /// Prints what happened, in the form that was asked for.
    fn print(&mut self, value: impl FnOnce() -> Value, write: impl FnOnce(&mut Page<'_>) -> io::Result<()>) {
        if !self.is_read {
            return;
        }
        let mut out = output::stdout();
        let written = match self.format {
            Format::Json => serde_json::to_writer(&mut out, &value())
                .map_err(io::Error::from)
                .and_then(|()| out.write_all(b"\n")),
            Format::Terminal => write(&mut self.page(&mut out)),
        };
        if let Err(error) = written.and_then(|()| out.flush()) {
            self.is_read = false;
            if error.kind() != ErrorKind::BrokenPipe {
                complaint::say(&format!("the reports cannot be written, relaying on: {error}"));
            }
        }
    }

    fn page<'a>(&self, out: &'a mut Stdout) -> Page<'a> {
        Page::new(out, output::columns(), output::colored(self.color))
    }
}
