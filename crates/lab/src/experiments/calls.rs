//! Many threads call a server of one thread: does Nagle's algorithm help it, and what does a connection cost?

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use tcpwhy_simulate::link::Ends;
use tcpwhy_wire::Packet;

use super::figures::time;
use super::seen::{is_pure_ack, tcp_of};
use super::{Claim, Outcome, Table, Verdict};
use crate::capture::{Capture, Vantage};
use crate::lab::Lab;
use crate::place::{Path, Wire};
use crate::programs::calls::{self, Call, Log, Queues, REQUEST};

/// One line about it.
pub const ABOUT: &str = "200 threads call a server of one: Nagle helps, connect() costs, SO_RCVBUF";
/// Where the story is from.
pub const SOURCE: &str = "A Java developer's blog, November 2013 and January 2014: \"To Nagle or Not\", \"Bufferbloat: less is more\", \
     \"Further Adventures in TCP\"";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 55;

/// Rates are counted in intervals of this length, in ns.
const INTERVAL: i64 = 100_000_000;
/// Intervals at the beginning of a run that do not count: threads start, connections are made.
const WARM_UP: usize = 1;
/// Means that differ by less than so many standard errors do not differ.
const ERRORS: f64 = 2.0;
/// The blog finds a handshake to be a fifth of a call; from here on it is of that order.
const FIFTH: f64 = 0.15;
/// Two runs of the same differ by up to this share on a busy machine, whatever their intervals say: the option
/// at the server, which can do nothing, was seen to make 14 %.
const NOISE: f64 = 0.2;
/// Nagle's algorithm has merged something if it saves this share of the segments.
const MERGED: f64 = 0.02;
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

/// All rounds of a case.
#[derive(Clone, Debug, Default)]
struct Runs {
    /// Calls/s of each interval.
    rates: Vec<f64>,
    /// Calls of all rounds.
    calls: Vec<Call>,
    segments: Segments,
    queues: Queues,
}

/// Packets of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Segments {
    /// Segments with data from the clients.
    data: u64,
    /// Pure ACKs from the server.
    acks: u64,
    /// Packets of all kinds both ways.
    all: u64,
    /// Requests' bytes that were captured: what the counts are to be divided by.
    bytes: u64,
}

/// A mean with its standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Spread {
    mean: f64,
    deviation: f64,
    count: usize,
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

/// Calls of a few clients from afar.
#[derive(Clone, Debug, Default)]
struct OverLink {
    /// One client and the smallest buffer: the blog's trace.
    alone: Runs,
    /// Some clients with Nagle's algorithm.
    nagle: Runs,
    /// Some clients with `TCP_NODELAY`.
    nodelay: Runs,
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

/// Calls/s in each whole interval of a run that lasted `time`, by when calls ended; without the warm-up.
fn per_interval(calls: &[Call], time: Duration) -> Vec<f64> {
    let Some(first) = calls.iter().map(|call| call.start).min() else { return Vec::new() };
    let mut counts = vec![0.0; (time.as_nanos() / INTERVAL as u128) as usize];
    for call in calls {
        let end = call.start - first + (call.total * 1e6) as i64;
        if let Some(count) = counts.get_mut((end / INTERVAL) as usize) {
            *count += 1e9 / INTERVAL as f64;
        }
    }
    counts.split_off(WARM_UP.min(counts.len()))
}

fn spread(values: impl IntoIterator<Item = f64>) -> Spread {
    let values: Vec<_> = values.into_iter().collect();
    let count = values.len();
    if count == 0 {
        return Spread::default();
    }
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Spread { mean, deviation: (squares / (count.max(2) - 1) as f64).sqrt(), count }
}

/// How far apart two means are, in standard errors of their difference; positive if `a` is larger.
fn apart(a: Spread, b: Spread) -> f64 {
    let error = |s: Spread| s.deviation.powi(2) / s.count.max(1) as f64;
    let difference = a.mean - b.mean;
    if difference == 0.0 { 0.0 } else { difference / (error(a) + error(b)).sqrt().max(f64::MIN_POSITIVE) }
}

/// Whether `a` is larger than `b` beyond what chance does.
fn more(a: Spread, b: Spread) -> bool {
    apart(a, b) >= ERRORS && a.mean > b.mean * (1.0 + NOISE)
}

impl Segments {
    fn add(&mut self, capture: Option<&Capture>) {
        for packet in capture.map(Capture::packets).unwrap_or_default() {
            self.count(&packet);
        }
    }

    fn count(&mut self, packet: &Packet) {
        let Some(tcp) = tcp_of(packet) else { return };
        self.all += 1;
        // Answers are two bytes, pieces of requests more (but for a last one of that size).
        if tcp.payload_len > 2 {
            self.data += 1;
            self.bytes += u64::from(tcp.payload_len);
        }
        self.acks += u64::from(is_pure_ack(tcp));
    }

    /// `count` for each request; also right where the capture missed some packets of each kind alike.
    fn a_call(&self, count: u64) -> f64 {
        count as f64 * REQUEST as f64 / self.bytes.max(1) as f64
    }
}

impl Runs {
    fn rate(&self) -> Spread {
        spread(self.rates.iter().copied())
    }

    fn total(&self) -> Spread {
        spread(self.calls.iter().map(|call| call.total))
    }

    fn connect(&self) -> Spread {
        spread(self.calls.iter().filter_map(|call| call.connect))
    }
}

fn rates(cases: &[Case], runs: &BTreeMap<Case, Runs>, options: &Options) -> Table {
    let title = format!(
        "Calls of {REQUEST} bytes, {} threads over loopback (MTU {}); split: {} bytes a send()",
        options.threads, options.mtu, options.write
    );
    let mut table = Table::new(title, &COLUMNS);
    for case in cases {
        if let Some(runs) = runs.get(case) {
            table.row(row(case.name(), runs));
        }
    }
    table
}

fn rates_over_link(link: &OverLink, options: &Options) -> Table {
    let title = format!("The same over a link with a round trip of {} ms, new, split", options.round_trip);
    let mut table = Table::new(title, &COLUMNS);
    table.row(row("1 client, RCVBUF 4096".to_owned(), &link.alone));
    table.row(row(format!("{ON_LINK} clients"), &link.nagle));
    table.row(row(format!("{ON_LINK} clients, NODELAY"), &link.nodelay));
    table
}

/// The columns of both tables.
const COLUMNS: [&str; 7] =
    ["connection, sends", "calls/s", "± s.d.", "call", "connect()", "data segments", "packets/call"];

fn row(name: String, runs: &Runs) -> [String; COLUMNS.len()] {
    let (rate, connect) = (runs.rate(), runs.connect());
    [
        name,
        format!("{:.0}", rate.mean),
        format!("{:.0}", rate.deviation),
        time(runs.total().mean),
        if connect.count > 0 { time(connect.mean) } else { "–".to_owned() },
        format!("{:.1}", runs.segments.a_call(runs.segments.data)),
        format!("{:.1}", runs.segments.a_call(runs.segments.all)),
    ]
}

fn claims(runs: &BTreeMap<Case, Runs>, link: &OverLink) -> Vec<Claim> {
    let mut claims = Vec::new();
    if let (Some(plain), Some(nodelay)) = (runs.get(&PLAIN), runs.get(&NODELAY)) {
        claims.push(nagle_helps(plain, nodelay, link));
        claims.push(connects_faster(plain, nodelay));
        claims.extend(runs.get(&AT_SERVER).map(|server| no_matter(plain, server)));
        claims.extend(runs.get(&POOLED).map(|pooled| pool(plain, pooled)));
        claims.extend(small_buffer(runs));
    }
    claims.push(handshake(&link.alone.calls));
    claims.push(queues(runs));
    claims
}

/// `5060 ± 75`.
fn shown(rate: Spread) -> String {
    format!("{:.0} ± {:.0}", rate.mean, rate.deviation)
}

/// It helped if there are more calls *because* there are fewer segments: rates alone differ by chance.
fn nagle_helps(plain: &Runs, nodelay: &Runs, link: &OverLink) -> Claim {
    let (on, off) = (plain.rate(), nodelay.rate());
    let merged = merges(plain, nodelay);
    let merged_afar = merges(&link.nagle, &link.nodelay);
    let helped = merged && more(on, off) || merged_afar && more(link.nagle.rate(), link.nodelay.rate());
    let why = match (merged, merged_afar) {
        (false, false) => "nothing is merged: every piece is ACKed before the next is written",
        (false, true) => {
            "over loopback every piece is ACKed before the next is written, so nothing is merged; over the link \
             some is, and calls are no more for it"
        }
        (true, _) => "segments are saved, but there are no more calls for it",
    };
    Claim {
        claim: "Nagle's algorithm at the clients lets the server answer more calls",
        seed: "5060 ± 75 against 3884 ± 283 calls/s",
        measured: format!(
            "{} against {} calls/s, {:.1} and {:.1} data segments a call; over the link {} against {}, {:.1} and \
             {:.1}",
            shown(on),
            shown(off),
            plain.segments.a_call(plain.segments.data),
            nodelay.segments.a_call(nodelay.segments.data),
            shown(link.nagle.rate()),
            shown(link.nodelay.rate()),
            link.nagle.segments.a_call(link.nagle.segments.data),
            link.nodelay.segments.a_call(link.nodelay.segments.data)
        ),
        verdict: Verdict::from(helped, why),
    }
}

/// Whether Nagle's algorithm saves segments.
fn merges(nagle: &Runs, nodelay: &Runs) -> bool {
    let data = |runs: &Runs| runs.segments.a_call(runs.segments.data);
    data(nagle) < data(nodelay) * (1.0 - MERGED)
}

/// Thousands of calls have a small error, and yet depend on how busy the machine was: so the segments must
/// differ too.
fn connects_faster(plain: &Runs, nodelay: &Runs) -> Claim {
    let (on, off) = (plain.connect(), nodelay.connect());
    Claim {
        claim: "With it connect() is faster",
        seed: "13 against 20 ms",
        measured: format!("{} against {}", time(on.mean), time(off.mean)),
        verdict: Verdict::from(
            merges(plain, nodelay) && more(off, on),
            "connect() sends no data: it follows the load alone",
        ),
    }
}

fn no_matter(plain: &Runs, server: &Runs) -> Claim {
    let (off, on) = (plain.rate(), server.rate());
    let same = !more(on, off) && !more(off, on);
    Claim {
        claim: "The option on the server makes no difference: two bytes go in one segment",
        seed: "none",
        measured: format!("{} with, {} without, calls/s", shown(on), shown(off)),
        verdict: Verdict::from(same, "it does here, beyond the noise"),
    }
}

fn pool(plain: &Runs, pooled: &Runs) -> Claim {
    let (new, kept) = (plain.rate(), pooled.rate());
    Claim {
        claim: "Keep connections and pool them: calls get faster",
        seed: "a handshake a call less",
        measured: format!("{} pooled, {} new, calls/s", shown(kept), shown(new)),
        verdict: Verdict::from(
            more(kept, new),
            "a new connection starts in quick-ACK mode, which spares split requests the delayed ACK that they \
             meet on a kept one",
        ),
    }
}

fn small_buffer(runs: &BTreeMap<Case, Runs>) -> Option<Claim> {
    let rate = |rcvbuf| runs.get(&Case { rcvbuf, ..PLAIN }).map(Runs::rate);
    let (small, larger, default) = (rate(Some(4096))?, rate(Some(8192))?, rate(None)?);
    Some(Claim {
        claim: "SO_RCVBUF of 4096 at the server cures a low rate of calls; from 8192 on it is low",
        seed: "700 to 2600 calls/s",
        measured: format!("4096: {}, 8192: {}, default: {}", shown(small), shown(larger), shown(default)),
        verdict: Verdict::from(
            more(small, default) && more(small, larger),
            "a small buffer does not help here: the window is then smaller than a request, which waits for the \
             server to read; the queue that the blog suffered from was elsewhere",
        ),
    })
}

fn handshake(calls: &[Call]) -> Claim {
    let connect = spread(calls.iter().filter_map(|call| call.connect)).mean;
    let total = spread(calls.iter().map(|call| call.total)).mean;
    let share = connect / total.max(f64::MIN_POSITIVE);
    Claim {
        claim: "The handshake is a fifth of a call to a server with small buffers, some ms away",
        seed: "7 of 34 ms, 20 %",
        measured: format!("{} of {}, {:.0} %", time(connect), time(total), share * 100.0),
        verdict: match calls.is_empty() {
            true => Verdict::Unknown("no call came back".to_owned()),
            false => Verdict::from(share >= FIFTH, "calls take longer beside it"),
        },
    }
}

fn queues(runs: &BTreeMap<Case, Runs>) -> Claim {
    let most = runs.values().map(|runs| runs.queues).max_by_key(|queues| queues.most).unwrap_or_default();
    Claim {
        claim: "/proc/net/tcp shows whole requests that wait in the server's receive queues",
        seed: "0x271A = 10,010 B",
        measured: format!(
            "{} B on one of {} connections; {} with a whole request; {} not yet accepted",
            most.most, most.established, most.whole, most.backlog
        ),
        verdict: Verdict::from(most.whole > 0, "the server had read everything when it was looked at"),
    }
}

fn notes(runs: &BTreeMap<Case, Runs>, options: &Options) -> Vec<String> {
    let mut notes = vec![
        format!(
            "Clients, server and network share this machine's CPUs, so a call costs what its packets cost; the \
             blog's clients were two other computers. Means are of intervals of {} ms; two differ if they are {} \
             standard errors and {:.0} % apart.",
            INTERVAL / 1_000_000,
            ERRORS,
            NOISE * 100.0
        ),
        format!(
            "The blog's trace begins with a segment of 1,024 bytes and ends with one of 298: requests were \
             written in pieces of that size. `--write {REQUEST}` writes them as one."
        ),
    ];
    if let (Some(kept), Some(cured)) = (runs.get(&POOLED), runs.get(&Case { client_nodelay: true, ..POOLED }))
    {
        let (kept, cured) = (kept.total().mean, cured.total().mean);
        notes.push(format!(
            "On kept connections a call takes {} with Nagle's algorithm and {} without, at --write {}.",
            time(kept),
            time(cured),
            options.write
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::seen::tests::packet;
    use super::*;
    use tcpwhy_wire::TcpFlags;

    fn calls(connect: f64, total: f64) -> Vec<Call> {
        vec![Call { start: 0, connect: Some(connect), total }; 4]
    }

    fn runs(rates: &[f64], connect: f64) -> Runs {
        let segments = Segments { data: 10, bytes: 10_010, ..Segments::default() };
        Runs { rates: rates.to_vec(), calls: calls(connect, connect * 2.0), segments, ..Runs::default() }
    }

    /// The blog's call from afar, and nothing that Nagle's algorithm changes.
    fn link(connect: f64, total: f64) -> OverLink {
        let few = runs(&[900.0, 910.0], 7.0);
        let alone = Runs { calls: calls(connect, total), ..Runs::default() };
        OverLink { alone, nagle: few.clone(), nodelay: few }
    }

    #[test]
    fn calls_count_in_the_interval_in_which_they_end() {
        let call = |start_ms: i64, total| Call { start: 7 + start_ms * 1_000_000, connect: None, total };
        let all = [call(0, 1.0), call(90, 20.0), call(150, 10.0), call(210, 5.0), call(290, 20.0)];
        // The first interval is the warm-up; the last call ends after the run.
        assert_eq!(per_interval(&all, Duration::from_millis(300)), [20.0, 10.0]);
        assert!(per_interval(&[], Duration::from_millis(300)).is_empty());
    }

    #[test]
    fn means_are_told_apart_by_their_errors() {
        let few = spread([1.0, 2.0, 3.0]);
        assert_eq!((few.mean, few.deviation, few.count), (2.0, 1.0, 3));
        // 5060 ± 75 and 3884 ± 283 over ten intervals each: 1176 / sqrt(75²/10 + 283²/10) = 12.7.
        let blog =
            [(5060.0, 75.0), (3884.0, 283.0)].map(|(mean, deviation)| Spread { mean, deviation, count: 10 });
        assert!((apart(blog[0], blog[1]) - 12.70).abs() < 0.01);
        assert_eq!(apart(few, few), 0.0);
        assert_eq!(spread([]), Spread::default());
    }

    #[test]
    fn packets_are_counted_by_the_bytes_of_requests() {
        let mut segments = Segments::default();
        segments.add(None);
        assert_eq!(segments, Segments::default());
        let packets = [
            packet(0, 1, TcpFlags::ACK, 10_000),
            packet(1, 1, TcpFlags::ACK, 10),
            packet(2, 2, TcpFlags::ACK, 0),
            packet(3, 2, TcpFlags::ACK, 2),
        ];
        for packet in &packets {
            segments.count(packet);
        }
        assert_eq!(segments, Segments { data: 2, acks: 1, all: 4, bytes: 10_010 });
        assert!((segments.a_call(segments.data) - 2.0).abs() < 1e-9);
    }

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

    #[test]
    fn the_table_has_a_row_a_case() {
        let of_case = BTreeMap::from([(PLAIN, runs(&[4990.0, 5010.0], 13.0)), (POOLED, Runs::default())]);
        let options = Options {
            threads: 200,
            seconds: 1.0,
            rounds: 1,
            write: 1024,
            backlog: 50,
            mtu: 1500,
            round_trip: 7.0,
        };
        let table = rates(&cases(), &of_case, &options);
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[0][..5], ["new, split", "5000", "14", "26.0 ms", "13.0 ms"]);
        assert_eq!(table.rows[1][4], "–");
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
    }

    #[test]
    fn claims_follow_the_figures() {
        let mut told = BTreeMap::from([
            (PLAIN, runs(&[5000.0, 5100.0], 13.0)),
            (NODELAY, runs(&[3800.0, 3900.0], 20.0)),
            (AT_SERVER, runs(&[5010.0, 5090.0], 13.0)),
            (POOLED, runs(&[6500.0, 6600.0], 13.0)),
            (Case { rcvbuf: Some(4096), ..PLAIN }, runs(&[7000.0, 7100.0], 13.0)),
            (Case { rcvbuf: Some(8192), ..PLAIN }, runs(&[5000.0, 5100.0], 13.0)),
        ]);
        let queues = Queues { whole: 1, most: 10_010, ..Queues::default() };
        told.entry(PLAIN).and_modify(|runs| {
            runs.queues = queues;
            runs.segments.data = 8;
        });
        let verdicts = |told: &BTreeMap<Case, Runs>, link: &OverLink| {
            claims(told, link).iter().map(|claim| claim.verdict == Verdict::Holds).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(&told, &link(7.0, 34.0)), [true; 7]);

        // More calls without fewer segments are chance; fewer segments over the link without more calls too.
        told.entry(PLAIN).and_modify(|runs| runs.segments.data = 10);
        let mut merged = link(7.0, 34.0);
        merged.nagle.segments.data = 8;
        assert!(!verdicts(&told, &merged)[0]);
        merged.nagle.rates = vec![1900.0, 1910.0];
        assert!(verdicts(&told, &merged)[0]);

        // Nagle's algorithm costs, the buffers do not matter, nothing waits, and the handshake is a tenth.
        told.insert(NODELAY, runs(&[6000.0, 6100.0], 13.0));
        told.insert(Case { rcvbuf: Some(4096), ..PLAIN }, runs(&[5000.0, 5100.0], 13.0));
        told.insert(AT_SERVER, runs(&[2000.0, 2010.0], 13.0));
        told.insert(POOLED, runs(&[2000.0, 2010.0], 13.0));
        told.insert(PLAIN, runs(&[5000.0, 5100.0], 13.0));
        assert_eq!(verdicts(&told, &link(3.4, 34.0)), [false; 7]);
        assert!(matches!(handshake(&[]).verdict, Verdict::Unknown(_)));
    }
}
