//! What silence costs a kept connection, and what the first window costs a new one.

use std::time::Duration;

use anyhow::Result;
use tcpwhy_simulate::link::Ends;

use super::figures::{median, or_dash, time};
use super::segments::baseline;
use super::{Claim, Outcome, Table, Verdict};
use crate::lab::Lab;
use crate::place::{Path, Wire};
use crate::programs::bursts::{self, Burst, Bursts};
use crate::programs::congestion::Congestion;

/// One line about it.
pub const ABOUT: &str = "Bursts after silence: slow start again, and the first window's cost";
/// Where the story is from.
pub const SOURCE: &str = "A Java developer's blog, January 2014, \"Further Adventures in TCP\": pool connections, but \
                          beware of slow-start restart; a new connection's window is 10 segments and grows slowly";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 40;

/// Every sender, with the sysctl on and off.
const SENDERS: [Congestion; 3] = [Congestion::Reno, Congestion::Cubic, Congestion::Bbr];
/// The sysctl of RFC 2861's and RFC 5681 section 4.1's restart.
const RESTART: &str = "net.ipv4.tcp_slow_start_after_idle";
/// First windows in segments: of RFC 2001's and RFC 6928's time, and what content networks use.
const FIRST_WINDOWS: [u32; 3] = [2, 10, 40];
/// Cells of a picture in a round trip.
const CELLS_A_ROUND_TRIP: f64 = 4.0;

/// `tcpwhy lab idle`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Round trip, in ms
    #[arg(long, value_name = "MS", default_value_t = 100)]
    rtt: u64,
    /// Rate of the link, in Mbit/s
    #[arg(long, value_name = "MBIT", default_value_t = 100)]
    rate: u64,
    /// Bytes of each burst, in KB
    #[arg(long, value_name = "KB", default_value_t = 200)]
    burst: usize,
    /// Silence before each further burst, in ms; a sender restarts after one retransmission timeout
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    silence: u64,
    /// Bursts of each connection
    #[arg(long, value_name = "N", default_value_t = 3)]
    bursts: usize,
    /// Bytes of the download on a new connection, in KB
    #[arg(long, value_name = "KB", default_value_t = 100)]
    download: usize,
}

impl Options {
    /// The same story in less time: the silence is still longer than a retransmission timeout.
    fn shortened(&self) -> Self {
        Self { bursts: 2, silence: self.silence / 2, ..self.clone() }
    }

    fn path(&self) -> Path {
        let mut ends = Ends::round_trip(Duration::from_millis(self.rtt));
        ends.up.rate = Some(self.rate * 1_000_000);
        ends.down.rate = ends.up.rate;
        Path::Link(Wire::new(ends))
    }

    fn rtt_ms(&self) -> f64 {
        self.rtt as f64
    }
}

/// One kept connection.
struct Kept {
    congestion: Congestion,
    restart: bool,
    bursts: Vec<Burst>,
}

impl Kept {
    /// Median time of the bursts after silence, in ms.
    fn after_silence(&self) -> Option<f64> {
        let times: Vec<f64> = self.bursts.iter().skip(1).map(Burst::ms).collect();
        median(&times)
    }
}

/// Runs the bursts on kept connections and the download on new ones.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<Outcome> {
    let options = &if lab.quick { options.shortened() } else { options.clone() };
    let senders = if lab.quick { &SENDERS[1..2] } else { &SENDERS[..] };
    lab.progress.runs((senders.len() * 2 + FIRST_WINDOWS.len()) as u64);
    let mut kept = Vec::new();
    for &congestion in senders {
        for restart in [true, false] {
            kept.push(keep(lab, options, congestion, restart)?);
        }
    }
    let new = FIRST_WINDOWS.iter().map(|&window| Ok((window, download(lab, options, window)?)));
    let new = new.collect::<Result<Vec<_>>>()?;
    let mut outcome = Outcome::new("idle", SOURCE);
    outcome.claims = claims(options, &kept, &new);
    outcome.tables = vec![kept_table(options, &kept), new_table(options, &new)];
    Ok(outcome)
}

/// Bursts on one kept connection.
fn keep(lab: &Lab<'_>, options: &Options, congestion: Congestion, restart: bool) -> Result<Kept> {
    let (bytes, silence) = (options.burst * 1_000, Duration::from_millis(options.silence));
    let todo = Bursts { bytes, count: options.bursts, silence, congestion };
    let name = format!("idle-{}-restart-{}", congestion.name(), u8::from(restart));
    let recording = lab.record(&name, &options.path(), |place| {
        place.server.set(RESTART, if restart { "1" } else { "0" })?;
        bursts::run(place, &todo)
    })?;
    lab.keep_log(&name, &recording.value)?;
    Ok(Kept { congestion, restart, bursts: recording.value.bursts })
}

/// One download on a new connection whose first window is `window` segments.
fn download(lab: &Lab<'_>, options: &Options, window: u32) -> Result<Burst> {
    let (bytes, congestion) = (options.download * 1_000, Congestion::Cubic);
    let todo = Bursts { bytes, count: 1, silence: Duration::ZERO, congestion };
    let name = format!("idle-initial-window-{window}");
    let recording = lab.record(&name, &options.path(), |place| {
        place.server.set_initial_window(place.client.address(), window)?;
        bursts::run(place, &todo)
    })?;
    lab.keep_log(&name, &recording.value)?;
    Ok(recording.value.bursts.into_iter().next().unwrap_or(Burst { asked: 0, reads: Vec::new() }))
}

fn claims(options: &Options, kept: &[Kept], new: &[(u32, Burst)]) -> Vec<Claim> {
    let mut claims = vec![restart_claim(options, kept)];
    claims.extend(bbr_claim(options, kept));
    claims.push(window_claim(options, new));
    claims
}

/// What `restart` costs that sender a burst, as (with, without), in ms.
fn cost(kept: &[Kept], congestion: Congestion) -> Option<(f64, f64)> {
    let of = |restart| {
        kept.iter().find(|kept| kept.congestion == congestion && kept.restart == restart)?.after_silence()
    };
    of(true).zip(of(false))
}

/// Holds if a burst after silence takes at least a round trip longer with the restart, for every sender that is
/// not BBR.
fn restart_claim(options: &Options, kept: &[Kept]) -> Claim {
    let senders = [Congestion::Cubic, Congestion::Reno];
    let costs: Vec<_> = senders.iter().filter_map(|&name| Some((name.name(), cost(kept, name)?))).collect();
    let measured: Vec<String> = costs
        .iter()
        .map(|(name, (with, without))| {
            format!("{name} {} with restart, {} without", time(*with), time(*without))
        })
        .collect();
    let holds = costs.iter().all(|(_, (with, without))| with - without > options.rtt_ms());
    Claim {
        claim: "A kept connection that was idle grows its window from the start again; turn that off",
        seed: "",
        measured: measured.join("; "),
        verdict: Verdict::from(holds, "a burst after silence is not a round trip slower with the restart"),
    }
}

/// Holds if the setting makes a round trip's difference to BBR too.
fn bbr_claim(options: &Options, kept: &[Kept]) -> Option<Claim> {
    let (with, without) = cost(kept, Congestion::Bbr)?;
    let holds = with - without > options.rtt_ms();
    let because =
        "bbr keeps a model of the path instead of a window that has to grow, and ignores the setting";
    Some(Claim {
        claim: "The setting decides how a sender restarts",
        seed: "",
        measured: format!("bbr {} with restart, {} without", time(with), time(without)),
        verdict: Verdict::from(holds, because),
    })
}

/// Holds if each larger first window saves at least half a round trip: a whole one is what it saves, less
/// what more bytes at once take on the link.
fn window_claim(options: &Options, new: &[(u32, Burst)]) -> Claim {
    let times: Vec<f64> = new.iter().map(|(_, burst)| burst.ms()).collect();
    let measured: Vec<String> =
        new.iter().map(|(window, burst)| format!("{} from {window}", time(burst.ms()))).collect();
    let holds = times.windows(2).all(|pair| pair[0] - pair[1] > options.rtt_ms() / 2.0);
    Claim {
        claim: "A new connection starts with a small window that grows with the ACKs",
        seed: "10 segments",
        measured: format!("{} KB: {} segments", options.download, measured.join(", ")),
        verdict: Verdict::from(holds, "a larger first window saves no round trip"),
    }
}

/// The bytes of a burst as they arrived, a cell for each part of a round trip, up to `most` ms.
fn arrivals(burst: &Burst, options: &Options, most: f64) -> String {
    let cells = (most / options.rtt_ms() * CELLS_A_ROUND_TRIP).ceil() as usize;
    baseline(&burst.course(most, cells))
}

fn kept_table(options: &Options, kept: &[Kept]) -> Table {
    let most = kept.iter().flat_map(|kept| &kept.bursts).map(Burst::ms).fold(0.0, f64::max);
    let silence = time(options.silence as f64);
    let title = format!("{} KB a burst, round trip {} ms", options.burst, options.rtt);
    let mut table = Table::new(
        title,
        &[
            "sender",
            "restart",
            "first burst",
            &format!("after {silence} of silence"),
            "arrivals after silence",
        ],
    );
    for kept in kept {
        let (first, last) = (kept.bursts.first(), kept.bursts.last());
        table.row([
            kept.congestion.name().to_owned(),
            if kept.restart { "yes" } else { "no" }.to_owned(),
            or_dash(first.map(Burst::ms), time),
            or_dash(kept.after_silence(), time),
            last.map(|burst| arrivals(burst, options, most)).unwrap_or_default(),
        ]);
    }
    table
}

fn new_table(options: &Options, new: &[(u32, Burst)]) -> Table {
    let most = new.iter().map(|(_, burst)| burst.ms()).fold(0.0, f64::max);
    let title = format!("{} KB on a new connection, round trip {} ms", options.download, options.rtt);
    let mut table = Table::new(title, &["first window", "time", "round trips", "arrivals"]);
    for (window, burst) in new {
        table.row([
            format!("{window} segments"),
            time(burst.ms()),
            format!("{:.1}", burst.ms() / options.rtt_ms()),
            arrivals(burst, options, most),
        ]);
    }
    table
}
