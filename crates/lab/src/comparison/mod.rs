//! The same programs over the same link, once on this machine's kernel and once in the simulator: do messages take
//! as long, and are the same segments sent?

mod translate;

use std::collections::HashMap;
use std::path::Path as FilePath;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use tcpwhy_simulate::link::Ends;
use tcpwhy_wire::{Packet, TcpFlags};

use crate::capture::Vantage;
use crate::corpus::{self, Run, Traffic};
use crate::experiments::figures::quantile;
use crate::place::{Path, Wire};
use crate::programs::chat::Chat;
use crate::programs::message::Message;
use crate::programs::socket::Options;

/// The simulator has no BBR, which kernels here use unless told otherwise.
const CONGESTION: &str = "cubic";

/// A socket that was born with BBR stays paced whatever it is told later. No host but the first may have CUBIC as its
/// default.
const BORN_WITH: &str = "reno";

/// A run that both can make.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Which experiment it belongs to: `nagle`, `window`, ….
    pub experiment: &'static str,
    /// The case's name in the corpus, or its own.
    pub name: String,
    run: Run,
}

/// What came of it. Times in ms.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Which experiment.
    pub experiment: &'static str,
    /// Which case.
    pub name: String,
    /// Messages of the programs.
    pub messages: usize,
    /// Median message latency: kernel, simulator.
    pub p50_ms: [f64; 2],
    /// 99th percentile: kernel, simulator.
    pub p99_ms: [f64; 2],
    /// Data segments sent: kernel, simulator.
    pub segments: [usize; 2],
    /// Share of the kernel's data segments that the simulator sent too, byte for byte the same ranges, 0 to 1.
    pub same_segments: f64,
    /// Share of the kernel's pure ACKs with a number that the simulator acknowledged alone too, 0 to 1.
    pub same_acks: f64,
}

impl Comparison {
    /// How far the simulator's median and 99th percentile are from the kernel's, as shares of the kernel's.
    pub fn errors(&self) -> [f64; 2] {
        [self.p50_ms, self.p99_ms].map(|[kernel, simulator]| (simulator - kernel) / kernel)
    }
}

/// All runs that both can make.
pub fn runs() -> Vec<Compared> {
    let cases = corpus::cases().into_iter().filter_map(|case| {
        let mut run = case.run;
        each_socket(&mut run, |options| {
            options.congestion.get_or_insert(CONGESTION);
        });
        run.congestion = Some(BORN_WITH);
        translate::translated(&run)?;
        Some(Compared { experiment: experiment(&case.name), name: case.name, run })
    });
    cases.chain(idle()).collect()
}

/// Which of the lab's experiments a case of the corpus belongs to.
fn experiment(name: &str) -> &'static str {
    const WORDS: [(&str, &[&str]); 4] = [
        ("recovery", &["lost", "loss", "holes", "tail"]),
        ("window", &["window", "reader", "buffer"]),
        ("program", &["slow-server", "slow-client", "work", "think", "flush", "pause"]),
        ("nagle", &["split", "merged", "cork", "more-on", "two-at-once", "delayed-ack", "nodelay"]),
    ];
    WORDS
        .iter()
        .find(|(_, words)| words.iter().any(|word| name.contains(word)))
        .map_or("other", |(experiment, _)| experiment)
}

fn each_socket(run: &mut Run, mut change: impl FnMut(&mut Options)) {
    let [client, server] = match &mut run.traffic {
        Traffic::Chat(chat) => [&mut chat.client, &mut chat.server],
        Traffic::Stream(stream) => [&mut stream.client, &mut stream.server],
        Traffic::Transfer(transfer) => [&mut transfer.client, &mut transfer.server],
    };
    change(client);
    change(server);
}

/// Bursts after silence, with and without restart.
fn idle() -> impl Iterator<Item = Compared> {
    const BURST: usize = 100_000;
    const SILENCE: Duration = Duration::from_millis(1_500);
    let settings = [20, 100].into_iter().flat_map(|round_trip| {
        ["reno", "cubic"]
            .into_iter()
            .flat_map(move |congestion| [true, false].map(|restart| (round_trip, congestion, restart)))
    });
    settings.map(|(round_trip, congestion, restart)| {
        let mut ends = Ends::round_trip(Duration::from_millis(round_trip));
        (ends.up.rate, ends.down.rate) = (Some(100_000_000), Some(100_000_000));
        let client = Options { congestion: Some(congestion), ..Options::default() };
        let chat =
            Chat { exchanges: 5, request: vec![BURST], client_think: SILENCE, client, ..Chat::default() };
        let run = Run {
            traffic: Traffic::Chat(chat),
            path: Path::Link(Wire::new(ends)),
            initial_window: None,
            wide_windows: false,
            keeps_window: !restart,
            ecn: false,
            no_sack: false,
            congestion: Some(BORN_WITH),
            seed: 1,
        };
        let word = if restart { "restart" } else { "no-restart" };
        Compared { experiment: "idle", name: format!("bursts-{congestion}-{word}-{round_trip}ms"), run }
    })
}

impl Compared {
    /// Makes it on the kernel and in the simulator. The captures at the client go into `keep`, if there is one. An
    /// error is the kernel's run's, or that of writing.
    pub fn compare(&self, keep: Option<&FilePath>) -> Result<Comparison> {
        let recording = self.run.record()?;
        let kernels = recording.capture(Vantage::Client).context("no capture at the client")?;
        let setup = translate::translated(&self.run).context("the simulator cannot make this run")?;
        let (messages, simulators) = translate::simulated(&self.run, &setup)?;
        if let Some(folder) = keep {
            std::fs::create_dir_all(folder)?;
            kernels.save(&folder.join(format!("{}-kernel.pcapng", self.name)))?;
            simulators.save(&folder.join(format!("{}-simulator.pcapng", self.name)))?;
        }
        let (real, packets) = (kernels.packets(), simulators.packets());
        let [real_data, data] = [&real, &packets].map(|packets| sent(packets, |tcp| tcp.payload_len > 0));
        let [real_acks, acks] = [&real, &packets].map(|packets| sent(packets, |tcp| tcp.payload_len == 0));
        Ok(Comparison {
            experiment: self.experiment,
            name: self.name.clone(),
            messages: recording.value.len(),
            p50_ms: [latency(&recording.value, 0.5), latency(&messages, 0.5)],
            p99_ms: [latency(&recording.value, 0.99), latency(&messages, 0.99)],
            segments: [real_data.len(), data.len()],
            same_segments: same(&real_data, &data),
            same_acks: same(&real_acks, &acks),
        })
    }
}

/// ms.
fn latency(messages: &[Message], q: f64) -> f64 {
    let times: Vec<f64> =
        messages.iter().map(|message| (message.read - message.written) as f64 / 1e6).collect();
    quantile(&times, q).unwrap_or(f64::NAN)
}

/// A segment by what it says, free of ports and initial numbers: whether the client sent it, its first byte, its
/// length, what it acknowledges.
type Said = (bool, u32, u32, u32);

/// The segments that `wanted` wants, handshake, FINs and RSTs aside. Data counts whatever it acknowledges.
fn sent(packets: &[Packet], wanted: impl Fn(&tcpwhy_wire::Tcp) -> bool) -> Vec<Said> {
    let mut first = HashMap::new();
    let mut said = Vec::new();
    let Some(client) = packets.first().map(|packet| packet.source) else { return said };
    for packet in packets {
        let Some(tcp) = packet.tcp() else { continue };
        let is_clients = packet.source == client;
        if tcp.flags.has(TcpFlags::SYN) {
            first.insert(is_clients, tcp.seq);
            continue;
        }
        if tcp.flags.has(TcpFlags::FIN | TcpFlags::RST) && tcp.payload_len == 0 || !wanted(tcp) {
            continue;
        }
        let from = |whose: bool| first.get(&whose).copied().unwrap_or(0);
        let ack = if tcp.payload_len > 0 { 0 } else { tcp.ack.wrapping_sub(from(!is_clients)) };
        said.push((is_clients, tcp.seq.wrapping_sub(from(is_clients)), tcp.payload_len, ack));
    }
    said
}

/// Which share of the left ones the right ones have too.
fn same(left: &[Said], right: &[Said]) -> f64 {
    let mut counts: HashMap<&Said, usize> = HashMap::new();
    for said in right {
        *counts.entry(said).or_default() += 1;
    }
    let found = left.iter().filter(|said| {
        counts.get_mut(said).is_some_and(|count| {
            let is_left = *count > 0;
            *count -= usize::from(is_left);
            is_left
        })
    });
    let found = found.count();
    if left.is_empty() { 1.0 } else { found as f64 / left.len() as f64 }
}
