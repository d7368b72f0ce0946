//! What the command line may say.

use clap::{Parser, Subcommand, ValueEnum};

#[cfg(target_os = "linux")]
use crate::run;
#[cfg(unix)]
use crate::serve;
use crate::{
    analyze, annotate, completions, explain, lab, link, live, man, plot, prove, relay, rules, simulate,
    sockets, whatif,
};

const ABOUT: &str = "Tells you why a TCP connection is slow, and which side to blame";

const LONG_ABOUT: &str = "\
Tells you why a TCP connection is slow, and which side to blame.

tcpwhy reads a capture and keeps a ledger of time: every instant of every connection is booked on exactly one \
line (waiting for the server's program, held by Nagle's algorithm, window full, a lost segment being repaired, \
…). From the ledger it makes findings: a cause, a side to blame, a cost in milliseconds, the packets that show \
it, and a fix.";

const EXAMPLES: &str = "\
Examples: tcpwhy slow.pcap                         say why it is slow
          tcpdump -i eth0 -w - port 80 | tcpwhy -  the same, live";

const LONG_EXAMPLES: &str = "\
Examples:
  Say why a connection is slow (pcap, pcapng, either of them .gz or .zst, or lines that tcpdump printed):
      tcpwhy slow.pcap
      tcpwhy mail.txt

  Record first. 96 bytes of each packet are enough; Ctrl-C ends the recording:
      sudo tcpdump -i any -s 96 -w slow.pcap port 8080

  Watch live; the report comes at Ctrl-C or when tcpdump ends. A second Ctrl-C quits without it:
      sudo tcpdump -i any -s 96 -w - port 8080 | tcpwhy -

  One host, one port, one connection of a large capture:
      tcpwhy --host 10.0.0.7 --port 5432 big.pcapng
      tcpwhy --connection 12 big.pcapng

  A capture in several files, as tcpdump -C and -G leave it:
      tcpwhy slow.pcap*

  Both sides of a proxy: what came apart and left together (also in one capture that has both):
      tcpwhy before.pcap behind.pcap

  For programs, and for CI: exit status 1 if the fault is there:
      tcpwhy --format json slow.pcap
      tcpwhy --fail-on problem test-run.pcap
      tcpwhy --fail-on nagle-delayed-ack,split-write test-run.pcap

  See it: data, ACKs, window and waits against time, as SVG or PNG:
      tcpwhy plot big.pcapng --connection 12 -o slow.svg

  Pass it on: packets with comments for Wireshark, Markdown for an issue, a table, results for a CI system:
      tcpwhy annotate slow.pcap -o marked.pcapng
      tcpwhy --format markdown slow.pcap
      tcpwhy --format csv *.pcap > connections.csv
      tcpwhy --format junit --fail-on problem test-run.pcap > tcpwhy.xml

  Read about a finding, and list them all:
      tcpwhy explain split-write
      tcpwhy rules

  A completion script for your shell, and the manual page:
      tcpwhy completions bash
      tcpwhy man

Exit status:
  0  analysed; nothing that --fail-on names was found
  1  --fail-on found what it names
  2  wrong usage; or an input that could not be read, or has nothing to tell of: no
     packet, none that --host, --port or --connection ask for, with --fail-on no TCP
     (the others are analysed all the same)

Environment:
  NO_COLOR, CLICOLOR_FORCE  as --color=never and --color=always, which win over both

A file named like a command is read as ./explain, ./rules, …";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "tcpwhy",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = EXAMPLES,
    after_long_help = LONG_EXAMPLES,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "tcpwhy [OPTIONS] <FILE>...\n       tcpwhy <COMMAND>",
    max_term_width = 80
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) analyze: analyze::Args,
}

/// Everything but the main job, which has no name.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Say what a finding means, how it is detected and how to mend it
    Explain(explain::Args),
    /// List every rule
    Rules(rules::Args),
    /// Draw one connection's data, ACKs and waits against time
    Plot(plot::Args),
    /// Copy a capture with the findings as comments, for Wireshark
    #[command(long_about = annotate::LONG_ABOUT)]
    Annotate(annotate::Args),
    /// Say what each fix would have saved, and what it would have cost
    #[command(long_about = whatif::LONG_ABOUT)]
    Whatif(whatif::Args),
    /// Watch an interface, and say what is wrong while it goes on
    Live(Box<live::Args>),
    /// Keep reports and compare them, on a page in the browser
    #[cfg(unix)]
    #[command(long_about = serve::LONG_ABOUT)]
    Serve(serve::Args),
    /// Show every TCP socket, its options, and what it waits for now
    #[command(long_about = sockets::LONG_ABOUT)]
    Sockets(sockets::Args),
    /// Run a program and say which of its lines TCP waits for
    #[cfg(target_os = "linux")]
    Run(run::Args),
    /// Do the same for programs that run, by their process id
    #[cfg(target_os = "linux")]
    Record(run::record::Args),
    /// Prove what TCP_NODELAY does for a running program
    #[command(long_about = prove::LONG_ABOUT)]
    Prove(prove::Args),
    /// Pass TCP connections on, unmerged, and say what each side did
    #[command(long_about = relay::LONG_ABOUT)]
    Relay(relay::Args),
    /// Run any two programs with an emulated link between them
    #[command(long_about = link::LONG_ABOUT)]
    Link(Box<link::Args>),
    /// Play the stories of slow TCP again on this machine's kernel
    Lab(lab::Args),
    /// Run TCPs of any era against each other in virtual time
    Simulate(simulate::Args),
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions(completions::Args),
    /// Print the manual page
    #[command(hide = true)]
    Man(man::Args),
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Terminal,
    Json,
}

/// How a report is printed: docs/formats.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Terminal,
    Json,
    Csv,
    CsvFindings,
    Markdown,
    Junit,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}
