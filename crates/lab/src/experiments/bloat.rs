//! What a queue of seconds does to the round trip of everybody behind it, and what cures it.

use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use tcpwhy_simulate::link::{Ends, Queue};
use tcpwhy_wire::{Packet, TcpFlags};

use super::figures::{median, or_dash, time};
use super::segments::{baseline, round_trips, sent_from, with_server};
use super::{Claim, Outcome, Table, Verdict};
use crate::capture::Vantage;
use crate::clock::ms_between;
use crate::lab::Lab;
use crate::place::{Path, Place, Wire};
use crate::programs::bulk::{self, Bulk, Log, Ping};
use crate::programs::congestion::Congestion;

/// One line about it.
pub const ABOUT: &str = "A queue of seconds: the round trip under load, and what shortens it";
/// Where the story is from.
pub const SOURCE: &str = "A Java developer's blog, November 2013, \"Bufferbloat: less is more\": SO_RCVBUF of 4096 \
                          made slow calls fast; 8192 was already too much";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 40;

/// From one ping's answer to the next ping: many in a run, none of them a load.
const PING_EVERY: Duration = Duration::from_millis(50);
/// ECN marks begin where packets wait for half this time: a queue a tenth of a second long is what its rate
/// can empty between two ACKs of a slow link.
const MARKED_AFTER_S: f64 = 0.1;
/// A queue is cured if the round trip under load is at most so many times that of the idle link: the transfer's
/// own packet and one more take a round trip here.
const CURED: f64 = 4.0;
/// A link is bloated if the round trip under load is at least so many times the idle one.
const BLOATED: f64 = 10.0;
/// A transfer that gets at least this share of the rate uses the link: headers take 3.5 % of it.
const FULL: f64 = 0.85;
/// Cells of a picture.
const CELLS: usize = 24;

/// `tcpwhy lab bloat`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Rate of the link, in kbit/s
    #[arg(long, value_name = "KBIT", default_value_t = 1_000)]
    rate: u64,
    /// Round trip of the idle link, in ms
    #[arg(long, value_name = "MS", default_value_t = 23)]
    rtt: u64,
    /// Room in the queue, in KB; the first is the story's
    #[arg(long, value_name = "KB", value_delimiter = ',', default_values_t = [256, 1024])]
    queue: Vec<usize>,
    /// Receive buffers (SO_RCVBUF) to try, in bytes; the first also on the fast link
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [8192, 4096, 65_536])]
    receive_buffer: Vec<usize>,
    /// How long each transfer lasts, in s. In the first seconds sender and receiver open their windows slowly:
    /// to see a large queue full takes half a minute, and a machine that is quiet for so long
    #[arg(long, value_name = "S", default_value_t = 6)]
    seconds: u64,
    /// Rate of the fast link on which a small receive buffer shows its price, in Mbit/s
    #[arg(long, value_name = "MBIT", default_value_t = 50)]
    fast_rate: u64,
}

/// What varies from run to run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    /// kbit/s.
    rate: u64,
    /// KB.
    queue: usize,
    congestion: Congestion,
    /// Bytes; `None` is the kernel's choice.
    receive_buffer: Option<usize>,
    ecn: bool,
}

/// What came of it.
struct Run {
    case: Case,
    /// Median round trip of pings before the transfer, in ms.
    idle: Option<f64>,
    /// Median round trip of pings in the transfer's second half, in ms.
    loaded: Option<f64>,
    /// Median from data to its ACK in the sender's capture in the transfer's second half, in ms.
    data_to_ack: Option<f64>,
    /// kbit/s that the reader got in the transfer's second half.
    throughput: f64,
    /// Packets that the link dropped.
    dropped: usize,
    /// Segments with ECE or CWR besides SYNs.
    flagged: usize,
    /// Data-to-ACK round trips over the transfer: the largest of each part.
    course: Vec<f64>,
}

impl Case {
    fn path(&self, options: &Options) -> Path {
        let mut ends = Ends::round_trip(Duration::from_millis(options.rtt));
        let rate = self.rate * 1_000;
        for way in [&mut ends.up, &mut ends.down] {
            way.rate = Some(rate);
            way.queue = Queue::Bytes(self.queue * 1_024);
        }
        if self.ecn {
            let packets = rate as f64 * MARKED_AFTER_S / 2.0 / (1_500.0 * 8.0);
            ends.down.mark_above = Some((packets.round() as usize).max(1));
        }
        Path::Link(Wire::new(ends))
    }

    fn name(&self) -> String {
        let buffer = self.receive_buffer.map_or("default".to_owned(), |bytes| bytes.to_string());
        let ecn = if self.ecn { "-ecn" } else { "" };
        let Self { rate, queue, congestion, .. } = self;
        format!("bloat-{rate}kbit-{queue}KB-{}-rcvbuf-{buffer}{ecn}", congestion.name())
    }

    fn prepare(&self, place: &Place) -> Result<()> {
        let ecn = if self.ecn { "1" } else { "0" };
        for host in [&place.client, &place.server] {
            host.set("net.ipv4.tcp_ecn", ecn)?;
        }
        Ok(())
    }
}

/// Runs every case.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<Outcome> {
    let cases = if lab.quick { quick_cases(options) } else { cases(options) };
    let seconds = if lab.quick { options.seconds.min(3) } else { options.seconds };
    lab.progress.runs(cases.len() as u64);
    let runs = side_by_side(&cases, |case| measure(lab, options, case, Duration::from_secs(seconds)))?;
    let mut outcome = Outcome::new("bloat", SOURCE);
    outcome.claims = claims(options, &runs);
    outcome.tables = vec![table(options, &runs)];
    Ok(outcome)
}

/// Two runs at a time: they have nothing in common, and such slow links leave the machine idle.
fn side_by_side(cases: &[Case], measure: impl Fn(Case) -> Result<Run> + Sync) -> Result<Vec<Run>> {
    let measure = &measure;
    let pair = |cases: &[Case]| {
        thread::scope(|scope| {
            let started: Vec<_> = cases.iter().map(|&case| scope.spawn(move || measure(case))).collect();
            started
                .into_iter()
                .map(|run| run.join().map_err(|_| anyhow!("a run of the lab failed"))?)
                .collect()
        })
    };
    cases
        .chunks(2)
        .map(pair)
        .collect::<Result<Vec<Vec<Run>>>>()
        .map(|pairs| pairs.into_iter().flatten().collect())
}

/// The story's link, and then one thing changed at a time.
fn cases(options: &Options) -> Vec<Case> {
    let story = story(options);
    let queues = options.queue.iter().map(|&queue| Case { queue, ..story });
    let small = options.receive_buffer.iter().map(|&bytes| Case { receive_buffer: Some(bytes), ..story });
    let ecn = Case { ecn: true, ..story };
    let bbr = Case { congestion: Congestion::Bbr, ..story };
    queues.chain(small).chain([ecn, bbr]).chain(fast(options)).collect()
}

fn quick_cases(options: &Options) -> Vec<Case> {
    let story = story(options);
    vec![story, Case { receive_buffer: options.receive_buffer.first().copied(), ..story }]
}

fn story(options: &Options) -> Case {
    Case {
        rate: options.rate,
        queue: options.queue.first().copied().unwrap_or(256),
        congestion: Congestion::Cubic,
        receive_buffer: None,
        ecn: false,
    }
}

/// The fast link with the smallest buffer and with the kernel's.
fn fast(options: &Options) -> Vec<Case> {
    let fast = Case { rate: options.fast_rate * 1_000, ..story(options) };
    vec![fast, Case { receive_buffer: options.receive_buffer.first().copied(), ..fast }]
}

fn measure(lab: &Lab<'_>, options: &Options, case: Case, time: Duration) -> Result<Run> {
    let name = case.name();
    let todo = Bulk {
        time,
        receive_buffer: case.receive_buffer,
        congestion: case.congestion,
        ping_every: PING_EVERY,
    };
    let recording = lab.record(&name, &case.path(options), |place| {
        case.prepare(place)?;
        bulk::run(place, &todo)
    })?;
    lab.keep_log(&name, &recording.value)?;
    let packets = recording.capture(Vantage::Server).map(|capture| capture.packets()).unwrap_or_default();
    let dropped = recording.events.iter().filter(|event| event.what.starts_with("dropped")).count();
    Ok(Run { dropped, ..figures(case, &recording.value, &packets, time) })
}

/// What the client's log and the sender's capture say about the second half of the transfer: by then the queue
/// is as full as it gets.
fn figures(case: Case, log: &Log, packets: &[Packet], time: Duration) -> Run {
    let length = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let (middle, end) = (log.began + length / 2, log.began + length);
    let journeys = round_trips(&sent_from(packets, log.port));
    let late: Vec<f64> =
        journeys.iter().filter(|(at, _)| (middle..end).contains(at)).map(|(_, ms)| *ms).collect();
    let pings: Vec<Ping> = log.loaded_pings.iter().copied().filter(|(_, at)| *at >= middle).collect();
    Run {
        case,
        idle: median(&ping_ms(&log.idle_pings)),
        loaded: median(&ping_ms(&pings)),
        data_to_ack: median(&late),
        throughput: throughput(&log.reads, middle, end),
        dropped: 0,
        flagged: flagged(packets, log.port),
        course: course(&journeys, log.began, length),
    }
}

fn ping_ms(pings: &[Ping]) -> Vec<f64> {
    pings.iter().map(|(sent, answered)| ms_between(*sent, *answered)).collect()
}

/// kbit/s between two instants; `reads` are the times and sums of a reader.
fn throughput(reads: &[(i64, u64)], from: i64, to: i64) -> f64 {
    let read_by = |time| reads.iter().take_while(|(at, _)| *at <= time).last().map_or(0, |(_, bytes)| *bytes);
    (read_by(to) - read_by(from)) as f64 * 8.0 / ms_between(from, to)
}

/// Segments of the transfer that say something about congestion: `tcp[13] & 0xc0 != 0` without the SYNs, whose
/// flags mean that ECN is asked for (RFC 3168 section 6.1.1).
fn flagged(packets: &[Packet], port: u16) -> usize {
    let tcp = packets.iter().filter_map(|packet| with_server(packet, port));
    tcp.filter(|(tcp, _)| !tcp.flags.has(TcpFlags::SYN) && tcp.flags.has(TcpFlags::ECE | TcpFlags::CWR))
        .count()
}

/// The longest journey in each part of the transfer, in ms.
fn course(journeys: &[(i64, f64)], began: i64, length: i64) -> Vec<f64> {
    let mut course = vec![0.0; CELLS];
    for (at, ms) in journeys {
        let cell = (at - began).max(0).saturating_mul(CELLS as i64) / length.max(1);
        if let Some(longest) = usize::try_from(cell).ok().and_then(|cell| course.get_mut(cell)) {
            *longest = f64::max(*longest, *ms);
        }
    }
    course
}

impl Run {
    /// How many times the idle round trip a ping takes under load.
    fn stretch(&self) -> Option<f64> {
        Some(self.loaded? / self.idle?)
    }

    /// Share of the link's rate that the reader got.
    fn share(&self) -> f64 {
        self.throughput / self.case.rate as f64
    }

    /// Round trip under load and throughput, in words.
    fn words(&self) -> String {
        format!("{} at {:.0} % of the rate", or_dash(self.loaded, time), self.share() * 100.0)
    }
}

/// The claims that these runs can say something about.
fn claims(options: &Options, runs: &[Run]) -> Vec<Claim> {
    let run = |case: Case| runs.iter().find(|run| run.case == case);
    let story = story(options);
    let Some(bloated) = run(story) else { return Vec::new() };
    let [fast, fast_small] = fast(options)[..] else { return Vec::new() };
    let ecn = run(Case { ecn: true, ..story });
    let mut claims = vec![bloat_claim(bloated, runs)];
    claims.push(cure_claim(bloated, runs));
    claims.extend(run(fast).zip(run(fast_small)).map(|(fast, small)| price_claim(fast, small)));
    claims.push(signal_claim(bloated));
    claims.extend(ecn.map(|ecn| flags_claim(bloated, ecn)));
    let bbr = run(Case { congestion: Congestion::Bbr, ..story });
    claims.extend(bbr.zip(ecn).map(|(bbr, ecn)| countermeasures_claim(bbr, ecn)));
    claims
}

/// Holds if the round trip under load is at least [`BLOATED`] times the idle one.
fn bloat_claim(bloated: &Run, runs: &[Run]) -> Claim {
    let queues = runs.iter().filter(|run| Case { queue: bloated.case.queue, ..run.case } == bloated.case);
    let queues: Vec<String> =
        queues.map(|run| format!("{} with {} KB", or_dash(run.loaded, time), run.case.queue)).collect();
    Claim {
        claim: "A large buffer makes the round trip long under load",
        seed: "calls of 81 to 107 ms",
        measured: format!("idle {}, under load {} of queue", or_dash(bloated.idle, time), queues.join(", ")),
        verdict: Verdict::from(
            bloated.stretch().is_some_and(|stretch| stretch >= BLOATED),
            "the queue does not fill in this time",
        ),
    }
}

/// Holds if with one of the buffers the round trip is at most [`CURED`] times the idle one, at full rate.
fn cure_claim(bloated: &Run, runs: &[Run]) -> Claim {
    let with_buffer = |run: &&Run| {
        run.case.receive_buffer.is_some() && Case { receive_buffer: None, ..run.case } == bloated.case
    };
    let cures = |run: &Run| run.stretch().is_some_and(|stretch| stretch <= CURED) && run.share() >= FULL;
    let holds = runs.iter().filter(with_buffer).any(cures);
    let buffers: Vec<String> = runs
        .iter()
        .filter(with_buffer)
        .map(|run| format!("{}: {}", run.case.receive_buffer.unwrap_or_default(), run.words()))
        .collect();
    Claim {
        claim: "A small receive buffer cures it",
        seed: "4096 cures, 8192 does not",
        measured: format!("{}; default: {}", buffers.join(", "), bloated.words()),
        verdict: Verdict::from(holds, "every small buffer leaves a queue, or leaves the link unused"),
    }
}

/// Holds if a small buffer gets [`FULL`] of what the kernel's own buffer gets on a fast link.
fn price_claim(fast: &Run, small: &Run) -> Claim {
    let megabits = |run: &Run| run.throughput / 1e3;
    let window = small.throughput * small.idle.unwrap_or_default() / 8.0 / 1e3;
    Claim {
        claim: "Less is more: a small receive buffer costs nothing",
        seed: "",
        measured: format!(
            "at {} Mbit/s: {:.1} Mbit/s with {} bytes, {:.1} with the default",
            fast.case.rate / 1_000,
            megabits(small),
            small.case.receive_buffer.unwrap_or_default(),
            megabits(fast),
        ),
        verdict: Verdict::from(
            small.throughput >= FULL * fast.throughput,
            &format!(
                "no more than one window a round trip: {window:.1} KB; the kernel's default grows with the path"
            ),
        ),
    }
}

/// Holds if the sender leaves a part of the bloated link unused.
fn signal_claim(bloated: &Run) -> Claim {
    let because =
        "cubic and reno go by losses and ECN marks (RFC 5681, RFC 9438); the round trip sets their timer";
    Claim {
        claim: "A long round trip tells the sender of congestion, so that it sends less",
        seed: "",
        measured: bloated.words(),
        verdict: Verdict::from(bloated.share() < FULL, because),
    }
}

/// Holds if flags show the congestion of hosts that were not told to use ECN.
fn flags_claim(bloated: &Run, ecn: &Run) -> Claim {
    Claim {
        claim: "tcpdump 'tcp[13] & 0xc0 != 0' shows when the network is congested",
        seed: "it spewed output",
        measured: format!(
            "{} segments with ECE or CWR at a round trip of {}; {} with tcp_ecn=1 and a queue that marks",
            bloated.flagged,
            or_dash(bloated.loaded, time),
            ecn.flagged
        ),
        verdict: Verdict::from(
            bloated.flagged > 0,
            "the flags mean something only where both hosts agreed on ECN, and Linux asks for it only with tcp_ecn=1",
        ),
    }
}

/// Holds if neither remedy leaves a bloated round trip.
fn countermeasures_claim(bbr: &Run, ecn: &Run) -> Claim {
    let holds = [bbr, ecn].iter().all(|run| run.stretch().is_some_and(|stretch| stretch < BLOATED));
    Claim {
        claim: "Linux has taken countermeasures",
        seed: "",
        measured: format!("bbr: {}; ECN with cubic: {}", bbr.words(), ecn.words()),
        verdict: Verdict::from(holds, "they leave a queue that is many round trips long"),
    }
}

fn table(options: &Options, runs: &[Run]) -> Table {
    let title = format!("Second half of transfers over {} ms", options.rtt);
    let mut table = Table::new(
        title,
        &[
            "sender",
            "link",
            "queue",
            "SO_RCVBUF",
            "ECN",
            "idle ping",
            "loaded ping",
            "data to ACK",
            "kbit/s",
            "dropped",
            "data to ACK over time",
        ],
    );
    for run in runs {
        let case = run.case;
        table.row([
            case.congestion.name().to_owned(),
            rate_words(case.rate),
            format!("{} KB", case.queue),
            case.receive_buffer.map_or("default".to_owned(), |bytes| bytes.to_string()),
            if case.ecn { "yes" } else { "no" }.to_owned(),
            or_dash(run.idle, time),
            or_dash(run.loaded, time),
            or_dash(run.data_to_ack, time),
            format!("{:.0}", run.throughput),
            run.dropped.to_string(),
            baseline(&run.course),
        ]);
    }
    table
}

/// A rate given in kbit/s, in words.
fn rate_words(kbit: u64) -> String {
    if kbit < 1_000 { format!("{kbit} kbit/s") } else { format!("{} Mbit/s", kbit as f64 / 1e3) }
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::{Socket, Tcp, Transport};

    use super::*;

    const MS: i64 = 1_000_000;

    /// The sender's capture: 1,250 bytes every 10 ms (1 Mbit/s) whose ACKs take longer and longer.
    fn packets() -> Vec<Packet> {
        let (server, client) =
            (Socket { port: 9, ..Socket::default() }, Socket { port: 40_000, ..Socket::default() });
        let packet = |time, source, destination, tcp| Packet {
            time,
            source,
            destination,
            transport: Transport::Tcp(tcp),
            ..Packet::default()
        };
        let syn = TcpFlags(TcpFlags::SYN | TcpFlags::ACK | TcpFlags::ECE);
        let mut packets = vec![packet(0, server, client, Tcp { flags: syn, ..Tcp::default() })];
        for n in 0..10_u32 {
            let (seq, flags) = (1 + n * 1_250, TcpFlags(TcpFlags::ACK));
            let data = Tcp { seq, flags, payload_len: 1_250, ..Tcp::default() };
            let ece = TcpFlags(TcpFlags::ACK | if n == 5 { TcpFlags::ECE } else { 0 });
            let ack = Tcp { ack: seq + 1_250, flags: ece, ..Tcp::default() };
            let sent = i64::from(n) * 10 * MS;
            packets.push(packet(sent, server, client, data));
            packets.push(packet(sent + i64::from(n + 1) * 10 * MS, client, server, ack));
        }
        packets.sort_by_key(|packet| packet.time);
        packets
    }

    fn case() -> Case {
        Case { rate: 1_000, queue: 256, congestion: Congestion::Cubic, receive_buffer: None, ecn: false }
    }

    #[test]
    fn figures_are_of_the_second_half() {
        let reads = (1..=10).map(|n| (n * 10 * MS, n as u64 * 1_250)).collect();
        let log = Log {
            port: 9,
            began: 0,
            reads,
            idle_pings: vec![(-30 * MS, -7 * MS)],
            loaded_pings: vec![(0, 30 * MS), (40 * MS, 90 * MS), (95 * MS, 205 * MS)],
        };
        let run = figures(case(), &log, &packets(), Duration::from_millis(100));
        assert_eq!(run.idle, Some(23.0));
        // Of the two that were answered from 50 ms on, the nearest rank above the middle.
        assert_eq!(run.loaded, Some(110.0));
        // ACKs from 50 to 100 ms: sent at 20, 30 and 40, after 30, 40 and 50 ms.
        assert_eq!(run.data_to_ack, Some(40.0));
        assert!((run.throughput - 1_000.0).abs() < 1e-6);
        assert_eq!(run.flagged, 1);
    }

    #[test]
    fn the_course_has_the_longest_journey_of_each_part() {
        let course = course(&[(0, 5.0), (1, 7.0), (23, 9.0), (24, 11.0)], 0, 24);
        assert_eq!((course[0], course[1], course[23]), (5.0, 7.0, 9.0));
    }

    fn made(case: Case, loaded: f64, throughput: f64) -> Run {
        Run {
            case,
            idle: Some(23.0),
            loaded: Some(loaded),
            data_to_ack: None,
            throughput,
            dropped: 0,
            flagged: 0,
            course: Vec::new(),
        }
    }

    #[test]
    fn a_small_buffer_cures_only_if_the_link_stays_full() {
        let small = Case { receive_buffer: Some(4_096), ..case() };
        let bloated = made(case(), 2_000.0, 950.0);
        let verdict = |loaded, throughput| cure_claim(&bloated, &[made(small, loaded, throughput)]).verdict;
        assert_eq!(verdict(40.0, 900.0), Verdict::Holds);
        assert!(matches!(verdict(400.0, 900.0), Verdict::NoLongerHolds(_)));
        assert!(matches!(verdict(40.0, 500.0), Verdict::NoLongerHolds(_)));
    }

    #[test]
    fn a_sender_that_fills_a_bloated_link_does_not_see_the_round_trip() {
        assert!(matches!(signal_claim(&made(case(), 2_000.0, 960.0)).verdict, Verdict::NoLongerHolds(_)));
        assert_eq!(signal_claim(&made(case(), 2_000.0, 300.0)).verdict, Verdict::Holds);
    }
}
