//! What is told of one run: the simulator's own account, and what tcpwhy's analysis makes of its packets.

use std::path::PathBuf;

use serde_json::{Value, json};
use tcpwhy_diagnose::report::{Finding, Source};
use tcpwhy_diagnose::{Analyzer, CaptureInfo, Diagnosis};
use tcpwhy_simulate::scenario::{Measured, Variant};
use tcpwhy_simulate::tcp::{Trigger, Wait};
use tcpwhy_simulate::world::{End, Seen, Side, World, packet};

/// One run.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) measured: Measured,
    /// What tcpwhy finds in a capture made at the sender, the costliest first.
    pub(super) findings: Vec<Finding>,
    /// The analysis of a capture at the sender, and of one at the receiver.
    pub(super) at_sender: Diagnosis,
    pub(super) at_receiver: Diagnosis,
    /// Files that were written.
    pub(super) kept: Vec<PathBuf>,
}

impl Account {
    pub(super) fn new(variant: &Variant, world: &World, measured: Measured, kept: Vec<PathBuf>) -> Self {
        let at_sender = diagnose(world.seen(measured.sender));
        let at_receiver = diagnose(world.seen(measured.sender.other()));
        let mut findings = at_sender.findings_of(0);
        // The costliest first; what costs nothing is no finding of a simulation.
        findings.sort_by(|a, b| {
            (b.severity, b.cost_ms.0)
                .partial_cmp(&(a.severity, a.cost_ms.0))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        findings.retain(|finding| finding.cost_ms.0 > 0.0);
        let (name, about) = (variant.name.clone(), variant.about.clone());
        Self { name, about, measured, findings, at_sender, at_receiver, kept }
    }

    /// What tcpwhy says first of the packets.
    pub(super) fn top(&self) -> Option<&Finding> {
        self.findings.first()
    }

    /// `client` or `server`.
    pub(super) fn sender(&self) -> &'static str {
        side(self.measured.sender)
    }

    /// Retransmissions, all reasons together.
    pub(super) fn retransmissions(&self) -> u32 {
        self.measured.retransmissions.values().sum()
    }

    /// The latencies that a user of this traffic would feel: of exchanges, else of writes; with their name.
    pub(super) fn latencies(&self) -> Option<(&'static str, Latencies)> {
        let Measured { exchanges, deliveries, .. } = &self.measured;
        let (name, all) = if exchanges.len() > 1 { ("answers", exchanges) } else { ("messages", deliveries) };
        (all.len() > 1).then(|| (name, Latencies::of(all)))
    }

    pub(super) fn json(&self) -> Value {
        let measured = &self.measured;
        let finding = |finding: &Finding| {
            json!({ "rule": finding.rule, "cost_ms": finding.cost_ms.0, "count": finding.count,
                "blame": finding.blame.side, "summary": finding.summary })
        };
        json!({
            "name": self.name,
            "about": self.about,
            "sender": self.sender(),
            "end": end(measured.end),
            "finished_ms": measured.finished.map(ms),
            "recovery_ms": ms(measured.recovery),
            "loss_ms": ms(measured.loss),
            "retransmissions": measured.retransmissions.iter()
                .map(|(trigger, count)| (trigger_name(*trigger), json!(count)))
                .collect::<serde_json::Map<_, _>>(),
            "lost_packets": { "queue_full": measured.lost.queue_full, "random": measured.lost.random,
                "planned": measured.lost.planned },
            "held_acks": { "count": measured.held_acks.count, "total_ms": ms(measured.held_acks.total),
                "longest_ms": ms(measured.held_acks.longest) },
            "sender_waits_ms": measured.waits.iter()
                .map(|(wait, time)| (wait_name(*wait).to_owned(), json!(ms(*time))))
                .collect::<serde_json::Map<_, _>>(),
            "latency": self.latencies().map(|(of, latencies)| json!({ "of": of, "count": latencies.count,
                "p50_ms": ms(latencies.p50), "p99_ms": ms(latencies.p99), "max_ms": ms(latencies.max) })),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
            "kept": self.kept.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        })
    }
}

/// Quantiles, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latencies {
    pub(super) count: usize,
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
}

impl Latencies {
    /// Of at least one value.
    fn of(values: &[u64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let at =
            |share: f64| sorted[((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len()) - 1];
        Self { count: sorted.len(), p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// The analysis of what one end's capture shows.
fn diagnose(seen: &[Seen]) -> Diagnosis {
    let packets: Vec<_> = (1..).zip(seen).map(|(number, seen)| packet(number, seen)).collect();
    let bytes = packets.iter().map(|packet| u64::from(packet.frame_len)).sum();
    let span = packets.first().zip(packets.last()).map(|(first, last)| (first.time, last.time));
    let mut analyzer = Analyzer::recording([0]);
    analyzer.push(&packets);
    analyzer.finish(CaptureInfo { frames: packets.len() as u64, bytes, span, ..CaptureInfo::default() })
}

pub(super) fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// Why a run ended, as the JSON names it.
fn end(end: End) -> &'static str {
    match end {
        End::Over => "over",
        End::TimeUp => "time-up",
        End::Stuck => "stuck",
    }
}

pub(super) fn trigger_name(trigger: Trigger) -> String {
    match trigger {
        Trigger::FastRetransmit => "fast retransmit",
        Trigger::Timeout => "timeout",
        Trigger::TailLossProbe => "tail-loss probe",
        Trigger::Persist => "persist timer",
    }
    .to_owned()
}

pub(super) fn wait_name(wait: Wait) -> &'static str {
    match wait {
        Wait::Handshake => "handshake",
        Wait::Program => "program",
        Wait::Acknowledgement => "acknowledgement",
        Wait::Nagle => "nagle",
        Wait::Cork => "cork",
        Wait::CongestionWindow => "congestion window",
        Wait::ReceiveWindow => "receive window",
        Wait::Recovery => "fast recovery",
        Wait::Loss => "timeout",
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// `2.19 s`, `34.1 ms`.
pub(super) fn time(ns: u64) -> String {
    match ns {
        0 => "0".to_owned(),
        1..1_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ms(ns)),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}
