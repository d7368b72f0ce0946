//! Many threads call a server of one thread: does Nagle's algorithm help it, and what does a connection cost?

mod claims;
mod runs;
mod tables;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use tcpwhy_simulate::link::Ends;

use super::Outcome;
use crate::capture::Vantage;
use crate::lab::Lab;
use crate::place::{Path, Wire};
use crate::programs::calls::{self, Log, REQUEST};
use claims::claims;
use runs::{OverLink, Runs, per_interval};
use tables::{notes, rates, rates_over_link};

/// One line about it.
pub const ABOUT: &str = "200 threads call a server of one: Nagle helps, connect() costs, SO_RCVBUF";
/// Where the story is from.
pub const SOURCE: &str = "A Java developer's blog, November 2013 and January 2014: \"To Nagle or Not\", \"Bufferbloat: less is more\", \
     \"Further Adventures in TCP\"";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 55;

/// Clients on the link: few enough that the emulator keeps up.
const ON_LINK: usize = 20;
/// Quick runs: seconds, threads.
const QUICK: (f64, usize) = (0.3, 50);

/// `tcpwhy lab calls`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Client threads.
    #[arg(long, default_value_t = 200)]
    pub threads: usize,
    /// Seconds of each run.
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// How often each run is made; the rounds follow each other, so that a slow minute spoils all alike.
    #[arg(long, default_value_t = 2)]
    pub rounds: usize,
    /// Bytes of the client's `send()` calls where it does not send a request as one: the blog's traces show 1,024.
    #[arg(long, default_value_t = 1_024)]
    pub write: usize,
    /// Connections that may wait for `accept()`.
    #[arg(long, default_value_t = 256)]
    pub backlog: i32,
    /// Largest packet of the loopback interface in bytes.
    #[arg(long, default_value_t = 1_500)]
    pub mtu: u32,
    /// Round trip in ms of the link on which the handshake's share is measured: the blog's was 7.
    #[arg(long, default_value_t = 7.0)]
    pub round_trip: f64,
}

/// How a run differs from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    pooled: bool,
    /// Requests in several `send()` calls.
    split: bool,
    rcvbuf: Option<usize>,
    client_nodelay: bool,
    server_nodelay: bool,
}

/// The blog's server before any change.
const PLAIN: Case =
    Case { pooled: false, split: true, rcvbuf: None, client_nodelay: false, server_nodelay: false };
const NODELAY: Case = Case { client_nodelay: true, ..PLAIN };
const AT_SERVER: Case = Case { server_nodelay: true, ..PLAIN };
const POOLED: Case = Case { pooled: true, ..PLAIN };
/// The buffers that the blog tried.
const BUFFERS: [Option<usize>; 3] = [Some(4096), Some(8192), None];

impl Case {
    fn name(&self) -> String {
        let connection = if self.pooled { "pooled" } else { "new" };
        let sends = if self.split { "split" } else { "one send" };
        let option = match (self.client_nodelay, self.server_nodelay) {
            (true, _) => ", NODELAY",
            (false, true) => ", NODELAY at server",
            (false, false) => "",
        };
        let buffer = self.rcvbuf.map_or(String::new(), |bytes| format!(", RCVBUF {bytes}"));
        format!("{connection}, {sends}{option}{buffer}")
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for pooled in [false, true] {
        for rcvbuf in BUFFERS {
            for client_nodelay in [false, true] {
                cases.push(Case { pooled, rcvbuf, client_nodelay, ..PLAIN });
            }
        }
        let whole = Case { pooled, split: false, ..PLAIN };
        cases.extend([whole, Case { client_nodelay: true, ..whole }]);
    }
    cases.push(AT_SERVER);
    cases
}

/// Calls the server in many ways.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<Outcome> {
    ensure!(options.threads > 0 && options.rounds > 0, "--threads and --rounds must not be 0");
    let cases = cases();
    let rounds = if lab.quick { 1 } else { options.rounds };
    lab.progress.runs((cases.len() * rounds + 3) as u64);
    let mut runs: BTreeMap<Case, Runs> = BTreeMap::new();
    for round in 0..rounds {
        for case in &cases {
            call(lab, options, *case, round, runs.entry(*case).or_default())?;
        }
    }
    let link = OverLink {
        alone: over_a_link(lab, options, 1, Case { rcvbuf: Some(4096), ..PLAIN })?,
        nagle: over_a_link(lab, options, ON_LINK, PLAIN)?,
        nodelay: over_a_link(lab, options, ON_LINK, NODELAY)?,
    };
    Ok(Outcome {
        claims: claims(&runs, &link),
        tables: vec![rates(&cases, &runs, options), rates_over_link(&link, options)],
        notes: notes(&runs, options),
        ..Outcome::new("calls", SOURCE)
    })
}

fn programs(lab: &Lab<'_>, options: &Options, case: Case) -> Result<calls::Options> {
    let (seconds, threads) =
        if lab.quick { (QUICK.0, options.threads.min(QUICK.1)) } else { (options.seconds, options.threads) };
    Ok(calls::Options {
        threads,
        time: Duration::try_from_secs_f64(seconds)?,
        pooled: case.pooled,
        write: if case.split { options.write } else { REQUEST },
        client_nodelay: case.client_nodelay,
        server_nodelay: case.server_nodelay,
        rcvbuf: case.rcvbuf,
        backlog: options.backlog,
    })
}

fn call(lab: &Lab<'_>, options: &Options, case: Case, round: usize, runs: &mut Runs) -> Result<()> {
    let played = programs(lab, options, case)?;
    let name =
        format!("calls-{}-{}", case.name().replace(", ", "-").replace(' ', "-").to_lowercase(), round + 1);
    let recording =
        lab.record(&name, &Path::Loopback { mtu: options.mtu }, |place| calls::play(place, &played))?;
    lab.keep_log(&name, &recording.value)?;
    let Log { calls, queues, .. } = &recording.value;
    runs.rates.extend(per_interval(calls, played.time));
    runs.calls.extend(calls);
    runs.segments.add(recording.capture(Vantage::Both));
    if queues.most >= runs.queues.most {
        runs.queues = *queues;
    }
    Ok(())
}

fn over_a_link(lab: &Lab<'_>, options: &Options, threads: usize, case: Case) -> Result<Runs> {
    let round_trip = Duration::try_from_secs_f64(options.round_trip / 1e3)?;
    let path = Path::Link(Wire::new(Ends::round_trip(round_trip)));
    let played = calls::Options { threads, ..programs(lab, options, case)? };
    let option = if case.client_nodelay { "-nodelay" } else { "" };
    let name = format!("calls-link-{threads}-clients{option}");
    let recording = lab.record(&name, &path, |place| calls::play(place, &played))?;
    lab.keep_log(&name, &recording.value)?;
    let mut runs = Runs::default();
    runs.segments.add(recording.capture(Vantage::Client));
    runs.rates = per_interval(&recording.value.calls, played.time);
    runs.calls = recording.value.calls;
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_every_buffer_with_and_without_a_pool_and_the_option() {
        let cases = cases();
        assert_eq!(cases.len(), 2 * (3 * 2 + 2) + 1);
        for case in [PLAIN, NODELAY, AT_SERVER, POOLED, Case { rcvbuf: Some(8192), pooled: true, ..NODELAY }]
        {
            assert_eq!(cases.iter().filter(|other| **other == case).count(), 1, "{}", case.name());
        }
        assert_eq!(AT_SERVER.name(), "new, split, NODELAY at server");
        assert_eq!(Case { rcvbuf: Some(4096), ..POOLED }.name(), "pooled, split, RCVBUF 4096");
    }
}
