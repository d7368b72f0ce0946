//! A download that loses many segments at once, and a receiver that delays the ACK of each repair.

mod repairs;

use std::time::Duration;

use anyhow::Result;
use tcpwhy_simulate::link::{AckHold, Ends, Queue};

use self::repairs::{Repairs, hole_filling_acks, repairs};
use super::figures::{median, or_dash, quantile, time};
use super::segments::{baseline, sent_from};
use super::{Claim, Outcome, Table, Verdict};
use crate::capture::{Capture, Vantage};
use crate::lab::Lab;
use crate::place::{Path, Place, Wire};
use crate::programs::bursts::{self, Burst, Bursts};
use crate::programs::congestion::Congestion;

/// One line about it.
pub const ABOUT: &str = "Seconds in fast recovery: a receiver that delays the ACK of each repair";
/// Where the story is from.
pub const SOURCE: &str = "Neal Cardwell to the tcp-impl list, November 1998, \"delayed ACKs for retransmitted \
                          packets: ouch!\": 100 KB over 440 kbit/s DSL";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 50;

/// An ACK that leaves this long after its segment was delayed: no receiver's own work takes so long, and no
/// delayed ACK timer is so short.
const DELAYED_MS: f64 = 5.0;
/// A download is far from what the rate allows if it takes so many times as long.
const FAR: f64 = 2.0;
/// Cells of a picture.
const CELLS: usize = 24;

/// `tcpwhy lab recovery`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Rate of the link, in kbit/s
    #[arg(long, value_name = "KBIT", default_value_t = 440)]
    rate: u64,
    /// Round trip of short packets, in ms
    #[arg(long, value_name = "MS", default_value_t = 22)]
    rtt: u64,
    /// Bytes of the download, in KB
    #[arg(long, value_name = "KB", default_value_t = 100)]
    download: usize,
    /// Room in the queue, in packets; the first is the story's. With 16 slow start overshoots about a second
    /// after its begin, no retransmission is lost, and recovery with held ACKs lasts nearly the mail's 5 s
    #[arg(long, value_name = "PACKETS", value_delimiter = ',', default_values_t = [16, 5, 10, 28])]
    queue: Vec<usize>,
    /// How long the receiver of 1998 delays an ACK, in ms
    #[arg(long, value_name = "MS", default_value_t = 200)]
    hold: u64,
    /// First congestion window of the sender, in segments; 1998's was 1 or 2
    #[arg(long, value_name = "SEGMENTS", default_value_t = 2)]
    initial_window: u32,
    /// The sender's congestion control
    #[arg(long, value_enum, default_value_t = Congestion::Reno)]
    congestion: Congestion,
}

/// Who receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiver {
    /// This kernel.
    Today,
    /// This kernel, but the link holds the ACKs of segments that fill a hole.
    HoleFilling,
    /// This kernel, but the link holds its ACKs like a BSD of the time.
    Heartbeat,
}

impl Receiver {
    fn hold(self, hold: Duration) -> Option<AckHold> {
        match self {
            Self::Today => None,
            Self::HoleFilling => Some(AckHold::HoleFilling(hold)),
            Self::Heartbeat => Some(AckHold::Heartbeat(hold)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Today => "this kernel's",
            Self::HoleFilling => "1998: repairs' ACKs held",
            Self::Heartbeat => "BSD: lone ACKs held",
        }
    }

    fn stem(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::HoleFilling => "hole-filling",
            Self::Heartbeat => "heartbeat",
        }
    }
}

/// What varies from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    /// In packets.
    queue: usize,
    receiver: Receiver,
    sack: bool,
}

/// What came of it.
struct Run {
    case: Case,
    download: Burst,
    repairs: Repairs,
    /// From a segment that filled a hole to the ACK that left the receiver, each in ms.
    acks: Vec<f64>,
    /// The same as it looked to the sender, with the journeys of both.
    answers: Vec<f64>,
}

impl Case {
    fn path(self, options: &Options) -> Path {
        let mut ends = Ends::round_trip(Duration::from_millis(options.rtt));
        ends.down.rate = Some(options.rate * 1_000);
        ends.down.queue = Queue::Packets(self.queue);
        ends.up.hold_acks = self.receiver.hold(Duration::from_millis(options.hold));
        Path::Link(Wire::new(ends))
    }

    /// Without SACK the sender is NewReno alone: what Linux has learnt since is off.
    fn prepare(self, place: &Place, options: &Options) -> Result<()> {
        for host in [&place.client, &place.server] {
            host.set("net.ipv4.tcp_sack", if self.sack { "1" } else { "0" })?;
            // Without the option's 12 bytes a segment has 1,460, as in the story.
            host.set("net.ipv4.tcp_timestamps", "0")?;
        }
        if !self.sack {
            // RACK (RFC 8985), tail loss probes (the same), F-RTO (RFC 5682).
            for later in ["tcp_recovery", "tcp_early_retrans", "tcp_frto"] {
                place.server.set(&format!("net.ipv4.{later}"), "0")?;
            }
        }
        place.server.set_initial_window(place.client.address(), options.initial_window)
    }

    fn name(self) -> String {
        let Self { queue, receiver, sack } = self;
        format!("recovery-queue-{queue}-{}{}", receiver.stem(), if sack { "-sack" } else { "" })
    }
}

impl Run {
    fn words(&self) -> String {
        format!("{} with {} in recovery", time(self.download.ms()), time(self.repairs.ms()))
    }
}

/// Runs every case.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<Outcome> {
    let cases = if lab.quick { quick_cases(options) } else { cases(options) };
    lab.progress.runs(cases.len() as u64);
    let runs = cases.into_iter().map(|case| measure(lab, options, case)).collect::<Result<Vec<_>>>()?;
    let mut outcome = Outcome::new("recovery", SOURCE);
    outcome.claims = claims(options, &runs);
    outcome.tables = vec![table(options, &runs)];
    Ok(outcome)
}

/// The story's queue.
fn story(options: &Options) -> Case {
    Case { queue: options.queue.first().copied().unwrap_or(16), receiver: Receiver::Today, sack: false }
}

/// The story's queue with every receiver, and with SACK; other queues with the two receivers that differ.
fn cases(options: &Options) -> Vec<Case> {
    let story = story(options);
    let held = Case { receiver: Receiver::HoleFilling, ..story };
    let heartbeat = Case { receiver: Receiver::Heartbeat, ..story };
    let sack = [story, held].map(|case| Case { sack: true, ..case });
    let others =
        options.queue.iter().skip(1).flat_map(|&queue| [story, held].map(|case| Case { queue, ..case }));
    [story, held, heartbeat].into_iter().chain(sack).chain(others).collect()
}

fn quick_cases(options: &Options) -> Vec<Case> {
    let story = story(options);
    vec![story, Case { receiver: Receiver::HoleFilling, ..story }]
}

fn measure(lab: &Lab<'_>, options: &Options, case: Case) -> Result<Run> {
    let name = case.name();
    let (bytes, congestion) = (options.download * 1_000, options.congestion);
    let todo = Bursts { bytes, count: 1, silence: Duration::ZERO, congestion };
    let recording = lab.record(&name, &case.path(options), |place| {
        case.prepare(place, options)?;
        bursts::run(place, &todo)
    })?;
    lab.keep_log(&name, &recording.value)?;
    let port = recording.value.port;
    let seen = |vantage| {
        let packets = recording.capture(vantage).map(Capture::packets).unwrap_or_default();
        sent_from(&packets, port)
    };
    let (at_sender, at_receiver) = (seen(Vantage::Server), seen(Vantage::Client));
    let download = recording.value.bursts.into_iter().next();
    Ok(Run {
        case,
        download: download.unwrap_or(Burst { asked: 0, reads: Vec::new() }),
        repairs: repairs(&at_sender),
        acks: hole_filling_acks(&at_receiver),
        answers: repairs::answers(&at_sender),
    })
}

/// How long the download takes at the link's rate, in ms.
fn ideal_ms(options: &Options) -> f64 {
    options.download as f64 * 8_000.0 / options.rate as f64
}

fn claims(options: &Options, runs: &[Run]) -> Vec<Claim> {
    let story = story(options);
    let run = |case: Case| runs.iter().find(|run| run.case == case);
    let held = run(Case { receiver: Receiver::HoleFilling, ..story });
    let Some((today, held)) = run(story).zip(held) else { return Vec::new() };
    let mut claims = vec![delay_claim(today, held), seconds_claim(options, today, held)];
    claims.push(cure_claim(today, held));
    claims.extend(run(Case { sack: true, ..story }).map(|sack| holes_claim(options, today, sack)));
    claims
}

/// Holds if this kernel's ACKs of repairs are late by [`DELAYED_MS`].
fn delay_claim(today: &Run, held: &Run) -> Claim {
    let most = quantile(&today.acks, 1.0);
    let measured = format!(
        "{} after the segment, at most {}, in {} cases; held by the link: {} as the sender sees it",
        or_dash(median(&today.acks), time),
        or_dash(most, time),
        today.acks.len(),
        or_dash(median(&held.answers), time),
    );
    let verdict = match median(&today.acks) {
        None => Verdict::Unknown("no hole was filled".to_owned()),
        Some(delay) => Verdict::from(
            delay >= DELAYED_MS,
            "the receiver ACKs a segment that fills a hole at once (RFC 5681 section 4.2; asked for since 1999's RFC 2581)",
        ),
    };
    Claim {
        claim: "The receiver delays the ACK of a retransmission that fills a hole",
        seed: "possibly hundreds of ms",
        measured,
        verdict,
    }
}

/// Holds if this kernel's download takes [`FAR`] times what the rate allows.
fn seconds_claim(options: &Options, today: &Run, held: &Run) -> Claim {
    let because =
        format!("repairs are ACKed at once; with their ACKs held it is {} again", time(held.download.ms()));
    Claim {
        claim: "The download spends seconds in fast recovery",
        seed: "2 s expected, nearly 5 s in recovery",
        measured: format!(
            "{}; ACKs held: {}; the rate allows {}",
            today.words(),
            held.words(),
            time(ideal_ms(options))
        ),
        verdict: Verdict::from(today.download.ms() >= FAR * ideal_ms(options), &because),
    }
}

/// Holds if recovery with held ACKs is [`FAR`] times as long as without.
fn cure_claim(today: &Run, held: &Run) -> Claim {
    let [at_once, late] = [today, held].map(|run| run.repairs.ms());
    Claim {
        claim: "Recovery is long because of these ACKs: sent at once, they shorten it",
        seed: "",
        measured: format!("{} in recovery with ACKs at once, {} with ACKs held", time(at_once), time(late)),
        verdict: Verdict::from(late >= FAR * at_once, "recovery takes about as long with ACKs at once"),
    }
}

/// Holds if retransmissions are at least a round trip apart.
fn holes_claim(options: &Options, today: &Run, sack: &Run) -> Claim {
    let pace = |run: &Run| median(&run.repairs.gaps_ms);
    let verdict = match pace(today) {
        None => Verdict::Unknown("fewer than two segments were sent again".to_owned()),
        Some(gap) => {
            Verdict::from(gap >= options.rtt as f64, "holes are filled faster than one a round trip")
        }
    };
    Claim {
        claim: "NewReno fills one hole a round trip",
        seed: "",
        measured: format!(
            "a retransmission every {} without SACK, every {} with it",
            or_dash(pace(today), time),
            or_dash(pace(sack), time)
        ),
        verdict,
    }
}

fn table(options: &Options, runs: &[Run]) -> Table {
    let most = runs.iter().map(|run| run.download.ms()).fold(0.0, f64::max);
    let title = format!("{} KB over {} kbit/s, {} ms", options.download, options.rate, options.rtt);
    let mut table = Table::new(
        title,
        &[
            "receiver",
            "queue",
            "SACK",
            "in all",
            "recovery",
            "of it fast",
            "timeouts",
            "sent again",
            "ACK of a repair",
            "repair every",
            "read over time",
        ],
    );
    for run in runs {
        let Case { queue, receiver, sack } = run.case;
        table.row([
            receiver.name().to_owned(),
            queue.to_string(),
            if sack { "yes" } else { "no" }.to_owned(),
            time(run.download.ms()),
            time(run.repairs.ms()),
            time(run.repairs.fast_ms()),
            run.repairs.timeouts.to_string(),
            run.repairs.retransmissions.to_string(),
            or_dash(median(&run.acks), time),
            or_dash(median(&run.repairs.gaps_ms), time),
            baseline(&run.download.course(most, CELLS)),
        ]);
    }
    table
}
