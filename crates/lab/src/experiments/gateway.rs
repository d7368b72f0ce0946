//! Pings of 5 to 60 KB through a gateway, sent from one big buffer and from chains of small ones.

use std::time::Duration;

use anyhow::{Result, ensure};
use tcpwhy_simulate::link::Ends;

use super::figures::{median, quantile, time};
use super::seen::{self, Silences};
use super::{Claim, Outcome, Table, Verdict};
use crate::capture::Vantage;
use crate::lab::Lab;
use crate::place::{Path, Wire};
use crate::programs::gateway::{self, BACKENDS, Log, Ping, Side, Strategy};

/// One line about it.
pub const ABOUT: &str = "Pings through a game's gateway take 1, 42 or 85 ms once buffers are small";
/// Where the story is from.
pub const SOURCE: &str = "coding-my-life, cnblogs.com, May 2022: socket buffers that are too small set off Nagle's \
                          algorithm (in Chinese)";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 50;

/// The text's middle class of latencies in ms; each class is one wait for a delayed ACK more.
const CLASS: f64 = 42.0;
/// Names of the classes.
const CLASSES: [&str; 5] = ["~0", "~42", "~85", "~130", "more"];
/// A class with fewer than this share of pings is a stray, not a class.
const STRAY: f64 = 0.05;
/// What the text calls normal is below 3 ms; a busy machine may take longer, but never half a wait. ms.
const NORMAL: f64 = CLASS / 2.0;
/// The text sees latencies "below 1 ms" with the option, and prints 0 and 1.
const CURED: f64 = 1.5;
/// Largest packets in bytes.
const LOOPBACK: u32 = 65_536;
const ETHERNET: u32 = 1_500;
/// Pings of a quick run.
const QUICK: u32 = 10;
/// Pings that the log table shows.
const SHOWN: usize = 6;

/// `tcpwhy lab gateway`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Pings in each run.
    #[arg(long, default_value_t = 60)]
    pub pings: u32,
    /// Seconds from one ping to the next; 0: as fast as they come back. The text's client waits 1.
    #[arg(long, default_value_t = 0.0)]
    pub every: f64,
    /// Shortest string in bytes.
    #[arg(long, default_value_t = 5_000)]
    pub min: usize,
    /// Longest string in bytes.
    #[arg(long, default_value_t = 60_000)]
    pub max: usize,
    /// Bytes of one small buffer in the chain.
    #[arg(long, default_value_t = 8_192)]
    pub small: usize,
    /// Bytes of the one big buffer.
    #[arg(long, default_value_t = 81_920)]
    pub big: usize,
}

/// What joins the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Loopback,
    LoopbackAtEthernetsMtu,
    Link,
}

impl Over {
    fn path(self) -> Path {
        match self {
            Self::Loopback => Path::Loopback { mtu: LOOPBACK },
            Self::LoopbackAtEthernetsMtu => Path::Loopback { mtu: ETHERNET },
            Self::Link => Path::Link(Wire::new(Ends::default())),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::LoopbackAtEthernetsMtu => "loopback-1500",
            Self::Link => "link-1500",
        }
    }
}

/// How the programs of one run are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    over: Over,
    client: (Strategy, bool),
    servers: (Strategy, bool),
}

impl Case {
    /// The same on all sides.
    fn all(over: Over, strategy: Strategy, nodelay: bool) -> Self {
        Self { over, client: (strategy, nodelay), servers: (strategy, nodelay) }
    }

    /// As a row's name has it.
    fn name(&self) -> String {
        let side = |(strategy, nodelay): (Strategy, bool)| {
            let how = match strategy {
                Strategy::Whole => "one big buffer",
                Strategy::Chained => "chained",
                Strategy::Writev => "chained, writev()",
                Strategy::More => "chained, MSG_MORE",
            };
            if nodelay { format!("{how}, NODELAY") } else { how.to_owned() }
        };
        match (side(self.client), side(self.servers)) {
            (client, servers) if client == servers => client,
            (client, servers) => format!("client {client}; servers {servers}"),
        }
    }
}

/// What the text's author had first, and after the change.
const BIG: Case =
    Case { over: Over::Loopback, client: (Strategy::Whole, false), servers: (Strategy::Whole, false) };
const CHAINED: Case =
    Case { over: Over::Loopback, client: (Strategy::Chained, false), servers: (Strategy::Chained, false) };
/// One side big, the other small.
const BIG_CLIENT: Case = Case { client: (Strategy::Whole, false), ..CHAINED };
const BIG_SERVERS: Case = Case { servers: (Strategy::Whole, false), ..CHAINED };
/// The option on one side, and on both.
const OPTION_AT_CLIENT: Case = Case { client: (Strategy::Chained, true), ..CHAINED };
const OPTION_AT_SERVERS: Case = Case { servers: (Strategy::Chained, true), ..CHAINED };
const OPTION: Case = Case { client: (Strategy::Chained, true), ..OPTION_AT_SERVERS };

fn cases() -> Vec<Case> {
    use Strategy::{Chained, More, Whole, Writev};
    let mut cases = vec![BIG, CHAINED, BIG_CLIENT, BIG_SERVERS, OPTION_AT_CLIENT, OPTION_AT_SERVERS, OPTION];
    for (strategy, nodelay) in [(Whole, true), (Writev, false), (Writev, true), (More, false), (More, true)] {
        cases.push(Case::all(Over::Loopback, strategy, nodelay));
    }
    for strategy in [Whole, Chained, Writev, More] {
        cases.extend([false, true].map(|nodelay| Case::all(Over::Link, strategy, nodelay)));
    }
    cases.extend([Chained, More].map(|strategy| Case::all(Over::LoopbackAtEthernetsMtu, strategy, false)));
    cases
}

/// One run.
struct Run {
    case: Case,
    log: Log,
    silences: Silences,
    finding: String,
}

/// Pings through gateways built in many ways.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<Outcome> {
    ensure!(options.min <= options.max, "--min is above --max");
    ensure!(options.pings > 0 && options.small > 0 && options.big > 0, "pings and buffers must not be 0");
    let cases = cases();
    lab.progress.runs(cases.len() as u64);
    let runs = cases.into_iter().map(|case| play(lab, options, case)).collect::<Result<Vec<_>>>()?;
    let mut tables = Vec::new();
    for (case, title) in [
        (CHAINED, "The log, chained buffers over loopback: latencies in ms"),
        (OPTION, "The log, the same with TCP_NODELAY on all sockets"),
    ] {
        tables.extend(find(&runs, case).map(|run| log_table(title, &run.log)));
    }
    let over =
        |wanted: &[Over]| runs.iter().filter(|run| wanted.contains(&run.case.over)).collect::<Vec<_>>();
    let loopback = over(&[Over::Loopback]);
    let ethernet = over(&[Over::Link, Over::LoopbackAtEthernetsMtu]);
    tables.push(latencies("Pings over loopback (MTU 65,536), share by latency in ms", &loopback));
    tables.push(latencies("Pings at an MTU of 1500, share by latency in ms", &ethernet));
    tables.push(at_gateway(
        "As the gateway saw it: latency of AREA1, AREA2 and WORLD over loopback",
        &loopback,
    ));
    let claims = claims(&runs);
    Ok(Outcome { claims, tables, notes: notes(&runs, options), ..Outcome::new("gateway", SOURCE) })
}

fn play(lab: &Lab<'_>, options: &Options, case: Case) -> Result<Run> {
    let side = |(strategy, nodelay)| Side {
        strategy,
        nodelay,
        buffer: if strategy == Strategy::Whole { options.big } else { options.small },
    };
    let played = gateway::Options {
        client: side(case.client),
        servers: side(case.servers),
        sizes: options.min..=options.max,
        pings: if lab.quick { options.pings.min(QUICK) } else { options.pings },
        every: (options.every > 0.0).then(|| Duration::try_from_secs_f64(options.every)).transpose()?,
        seed: lab.seed,
    };
    let words = case.name().replace(|letter: char| !letter.is_alphanumeric(), " ");
    let words: Vec<_> = words.split_whitespace().collect();
    let name = format!("gateway-{}-{}", case.over.name(), words.join("-").to_lowercase());
    let recording = lab.record(&name, &case.over.path(), |place| gateway::play(place, &played))?;
    lab.keep_log(&name, &recording.value)?;
    let vantage = if case.over == Over::Link { Vantage::Client } else { Vantage::Both };
    let capture = recording.capture(vantage);
    let silences = capture.map(|capture| seen::silences(&capture.packets())).unwrap_or_default();
    Ok(Run { case, silences, finding: seen::finding(capture), log: recording.value })
}

fn find(runs: &[Run], case: Case) -> Option<&Run> {
    runs.iter().find(|run| run.case == case)
}

/// How many waits for a delayed ACK a latency in ms has, up to the last class.
fn class(ms: f64) -> usize {
    ((ms / CLASS).round().max(0.0) as usize).min(CLASSES.len() - 1)
}

/// The share of each class, 0 to 1.
fn shares(latencies: &[f64]) -> [f64; CLASSES.len()] {
    let mut shares = [0.0; CLASSES.len()];
    for ms in latencies {
        shares[class(*ms)] += 1.0 / latencies.len() as f64;
    }
    shares
}

fn of_pings(log: &Log) -> Vec<f64> {
    log.pings.iter().map(|ping| ping.latency).collect()
}

fn of_backends(log: &Log) -> Vec<f64> {
    log.pings.iter().flat_map(|ping| ping.backends).collect()
}

/// The author's table: sequence, latency, bytes, and what the gateway saw of each backend.
fn log_table(title: &str, log: &Log) -> Table {
    let columns: Vec<_> = ["ping", "latency", "bytes"].into_iter().chain(BACKENDS).collect();
    let mut table = Table::new(title, &columns);
    for Ping { sequence, latency, bytes, backends, .. } in log.pings.iter().take(SHOWN) {
        let mut row = vec![sequence.to_string(), format!("{latency:.0}"), bytes.to_string()];
        row.extend(backends.iter().map(|ms| format!("{ms:.0}")));
        table.row(row);
    }
    table
}

/// A share as a table has it; nothing is a dot, so that the classes stand out.
fn percent(share: f64) -> String {
    if share == 0.0 { "·".to_owned() } else { format!("{:.0} %", share * 100.0) }
}

fn latencies(title: &str, runs: &[&Run]) -> Table {
    let columns: Vec<_> =
        ["programs"].into_iter().chain(CLASSES).chain(["p50", "p99", "tcpwhy says"]).collect();
    let mut table = Table::new(title, &columns);
    for run in runs {
        let all = of_pings(&run.log);
        let at = |q| quantile(&all, q).map_or("–".to_owned(), time);
        let name = match run.case.over {
            Over::LoopbackAtEthernetsMtu => format!("{} (loopback)", run.case.name()),
            Over::Loopback | Over::Link => run.case.name(),
        };
        let mut row = vec![name];
        row.extend(shares(&all).map(percent));
        row.extend([at(0.5), at(0.99), run.finding.clone()]);
        table.row(row);
    }
    table
}

fn at_gateway(title: &str, runs: &[&Run]) -> Table {
    let columns: Vec<_> = ["programs"].into_iter().chain(CLASSES).chain(["p50"]).collect();
    let mut table = Table::new(title, &columns);
    for run in runs {
        let all = of_backends(&run.log);
        let mut row = vec![run.case.name()];
        row.extend(shares(&all).map(percent));
        row.push(median(&all).map_or("–".to_owned(), time));
        table.row(row);
    }
    table
}

/// The share of `latencies` that the text would call abnormal.
fn abnormal(latencies: &[f64]) -> f64 {
    latencies.iter().filter(|ms| **ms > NORMAL).count() as f64 / latencies.len().max(1) as f64
}

fn claims(runs: &[Run]) -> Vec<Claim> {
    let pings = |case| find(runs, case).map(|run| of_pings(&run.log)).unwrap_or_default();
    let mut claims = Vec::new();
    if let Some(chained) = find(runs, CHAINED) {
        claims.push(at_random(&of_backends(&chained.log)));
        claims.push(big_cures(&pings(BIG)));
        claims.push(one_big_side(&pings(CHAINED), &pings(BIG_CLIENT), &pings(BIG_SERVERS)));
        claims.push(option_cures(&pings(OPTION)));
        claims.push(forty_a_side(&pings(CHAINED), &pings(OPTION_AT_CLIENT), &pings(OPTION_AT_SERVERS)));
        claims.push(cpu_clock(&chained.log));
        claims.push(timer(&chained.silences));
    }
    claims.push(Claim {
        claim: "Windows has no such latency",
        seed: "none",
        measured: "not measured".to_owned(),
        verdict: Verdict::Unknown("the lab runs on Linux only".to_owned()),
    });
    claims
}

fn at_random(latencies: &[f64]) -> Claim {
    let shares = shares(latencies);
    let seen: Vec<_> = CLASSES
        .iter()
        .zip(shares)
        .filter(|(_, share)| *share >= STRAY)
        .map(|(class, share)| format!("{class} ms in {:.0} %", share * 100.0))
        .collect();
    let all_three = shares[..3].iter().all(|share| *share >= STRAY);
    Claim {
        claim: "With chained small buffers the latency of AREA1, AREA2 and WORLD jumps between three values",
        seed: "1, 42 or 85 ms",
        measured: seen.join(", "),
        verdict: Verdict::from(all_three, "not all three are seen at the gateway"),
    }
}

fn big_cures(big: &[f64]) -> Claim {
    let share = abnormal(big);
    Claim {
        claim: "With one big buffer on all sides the latency is normal",
        seed: "1-2 ms",
        measured: median_and_share(big),
        verdict: Verdict::from(share < STRAY, "some pings wait all the same"),
    }
}

/// `0.21 ms; 2 % above 21 ms`.
fn median_and_share(latencies: &[f64]) -> String {
    let p50 = median(latencies).map_or("nothing".to_owned(), time);
    format!("{p50}; {:.0} % above {NORMAL} ms", abnormal(latencies) * 100.0)
}

fn one_big_side(chained: &[f64], client: &[f64], servers: &[f64]) -> Claim {
    let [both, client, servers] = [chained, client, servers].map(abnormal);
    let mostly = client > 0.5 && servers > 0.5;
    Claim {
        claim: "A big buffer on one side alone helps a little; most pings are slow all the same",
        seed: "most",
        measured: format!(
            "slow: client big {:.0} %, servers big {:.0} %, none {:.0} %",
            client * 100.0,
            servers * 100.0,
            both * 100.0
        ),
        verdict: Verdict::from(mostly, "one big side cures most pings"),
    }
}

fn option_cures(option: &[f64]) -> Claim {
    let cured = median(option).is_some_and(|ms| ms < CURED) && abnormal(option) < STRAY;
    Claim {
        claim: "TCP_NODELAY on all sockets brings the latency below 1 ms",
        seed: "0-1 ms",
        measured: median_and_share(option),
        verdict: Verdict::from(cured, "waits remain"),
    }
}

/// The text counts 40 ms for each side without the option.
fn forty_a_side(neither: &[f64], client: &[f64], servers: &[f64]) -> Claim {
    let [neither, client, servers] =
        [neither, client, servers].map(|latencies| median(latencies).unwrap_or_default());
    let as_told = class(neither) == 2 && class(client) == 1 && class(servers) == 1;
    Claim {
        claim: "A side without the option costs 40 ms a round trip, two sides 80",
        seed: "40 and 80 ms",
        measured: format!(
            "none {}, client only {}, servers only {} (median)",
            time(neither),
            time(client),
            time(servers)
        ),
        verdict: Verdict::from(
            as_told,
            "each hop waits for itself: a ping takes four (client, gateway, backend, and back), and all servers' \
             hops lack or have the option together",
        ),
    }
}

fn cpu_clock(log: &Log) -> Claim {
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e3 / log.pings.len().max(1) as f64;
    let (client, gateway) = (each(log.client_cpu), each(log.gateway_cpu));
    Claim {
        claim: "The process's CPU clock does not show the latency, the wall clock does",
        seed: "below 1 ms",
        measured: format!("CPU a ping: client {}, gateway {}", time(client), time(gateway)),
        verdict: Verdict::from(client < 1.0 && gateway < 1.0, "the programs compute longer here"),
    }
}

fn timer(silences: &Silences) -> Claim {
    let timed_out = silences.lengths.len() - silences.by_ack;
    // A backend that answers after a wait looks like a silence that data ended, so some remain.
    let mostly_by_ack = silences.by_ack > timed_out;
    Claim {
        claim: "The sender collects data until a timeout, or until an ACK comes",
        seed: "~40 ms",
        measured: silences.in_words(),
        verdict: Verdict::from(
            !mostly_by_ack,
            "there is no timeout: the ACK frees the data, and the 40 ms are the receiver's for delaying it",
        ),
    }
}

fn notes(runs: &[Run], options: &Options) -> Vec<String> {
    let p50 = |over| {
        let run = find(runs, Case::all(over, Strategy::Chained, false))?;
        median(&of_pings(&run.log)).map(time)
    };
    let mut notes = Vec::new();
    if let (Some(loopback), Some(link), Some(small)) =
        (p50(Over::Loopback), p50(Over::Link), p50(Over::LoopbackAtEthernetsMtu))
    {
        notes.push(format!(
            "The path decides: chained buffers without the option take {loopback} over loopback, {link} over an \
             emulated link with an MTU of 1500, {small} over loopback with that MTU (medians). A full-sized \
             segment is never held, and two of them draw an ACK; over loopback no buffer of {} bytes fills a \
             segment of 65,483.",
            options.small
        ));
    }
    notes.push(
        "Every string was compared with what was sent, at the gateway and at the client: all were intact."
            .to_owned(),
    );
    if options.every == 0.0 {
        notes.push(
            "Pings followed each other at once; `--every 1` sends one a second, as the text's client."
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(latencies: &[f64]) -> Log {
        let ping = |(index, ms): (usize, &f64)| Ping {
            sequence: index as u32 + 1,
            sent: 0,
            bytes: 42_225,
            latency: *ms,
            backends: [*ms / 2.0; 3],
        };
        Log {
            pings: latencies.iter().enumerate().map(ping).collect(),
            client_cpu: Duration::from_millis(1),
            gateway_cpu: Duration::from_millis(2),
        }
    }

    fn ran(case: Case, latencies: &[f64]) -> Run {
        let silences = Silences { lengths: vec![42.0; 4], by_ack: 3 };
        Run { case, log: log(latencies), silences, finding: "split-write, 1.00 s".to_owned() }
    }

    #[test]
    fn latencies_fall_into_the_classes_of_the_text() {
        let cases = [(0.2, 0), (3.0, 0), (42.0, 1), (44.3, 1), (85.0, 2), (88.1, 2), (132.0, 3), (900.0, 4)];
        for (ms, expected) in cases {
            assert_eq!(class(ms), expected, "{ms}");
        }
        assert_eq!(shares(&[1.0, 42.0, 43.0, 88.0]), [0.25, 0.5, 0.25, 0.0, 0.0]);
        assert_eq!(shares(&[]), [0.0; 5]);
    }

    #[test]
    fn the_log_has_the_columns_of_the_text() {
        let table = log_table("", &log(&[1.2, 84.0]));
        assert_eq!(table.columns, ["ping", "latency", "bytes", "AREA1", "AREA2", "WORLD"]);
        assert_eq!(table.rows, [["1", "1", "42225", "1", "1", "1"], ["2", "84", "42225", "42", "42", "42"]]);
    }

    #[test]
    fn tables_have_a_row_a_run() {
        let runs = [
            ran(CHAINED, &[1.0, 43.0]),
            ran(Case::all(Over::LoopbackAtEthernetsMtu, Strategy::More, false), &[0.5]),
        ];
        let table = latencies("", &runs.iter().collect::<Vec<_>>());
        assert_eq!(table.rows[0][..6], ["chained", "50 %", "50 %", "·", "·", "·"]);
        assert_eq!(table.rows[1][0], "chained, MSG_MORE (loopback)");
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        let table = at_gateway("", &runs.iter().collect::<Vec<_>>());
        assert_eq!(table.rows[0], ["chained", "50 %", "50 %", "·", "·", "·", "21.5 ms"]);
    }

    #[test]
    fn the_run_list_has_every_strategy_over_both_paths_once() {
        let cases = cases();
        for over in [Over::Loopback, Over::Link] {
            for strategy in [Strategy::Whole, Strategy::Chained, Strategy::Writev, Strategy::More] {
                for nodelay in [false, true] {
                    let wanted = Case::all(over, strategy, nodelay);
                    assert_eq!(cases.iter().filter(|case| **case == wanted).count(), 1, "{wanted:?}");
                }
            }
        }
        assert_eq!(BIG_CLIENT.name(), "client one big buffer; servers chained");
        assert_eq!(OPTION_AT_CLIENT.name(), "client chained, NODELAY; servers chained");
    }

    #[test]
    fn claims_follow_the_figures() {
        // The text's world: backends at 1, 42, 85 (half of what pings take here).
        let told = |servers: &[f64]| {
            claims(&[
                ran(BIG, &[1.0, 2.0]),
                ran(CHAINED, &[1.0, 84.0, 170.0]),
                ran(BIG_CLIENT, &[44.0, 1.0, 44.0]),
                ran(BIG_SERVERS, &[44.0, 1.0, 44.0]),
                ran(OPTION, servers),
                ran(OPTION_AT_CLIENT, &[42.0]),
                ran(OPTION_AT_SERVERS, &[42.0]),
            ])
        };
        let holds: Vec<_> = told(&[0.4, 0.6]).iter().map(|claim| claim.verdict == Verdict::Holds).collect();
        // All but the sender's timeout; and Windows cannot be asked.
        assert_eq!(holds, [true, true, true, true, true, true, false, false]);
        assert_ne!(told(&[0.4, 44.0])[3].verdict, Verdict::Holds);
        assert!(matches!(told(&[0.4])[7].verdict, Verdict::Unknown(_)));
    }
}
