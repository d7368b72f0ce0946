//! Which games are played, and playing them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tcpwhy_simulate::link::{AckHold, Ends};

use super::{Options, seconds};
use crate::capture::Vantage;
use crate::experiments::arrivals::{self, Arrivals};
use crate::lab::Lab;
use crate::place::{Path, Place, Wire, join};
use crate::programs::login::Login;
use crate::programs::relay;
use crate::programs::updates::{self, Carrier, Game, Played, Playing};

/// Whose delayed ACK the client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    /// This kernel's.
    Today,
    /// That of the 1990s: the link holds its pure ACKs until the next tick of a timer.
    Old,
}

impl Receiver {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Today => "today's",
            Self::Old => "1990s'",
        }
    }
}

/// What a game is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The mail's own measurements, on a local network.
    Mail,
    /// The same over longer round trips.
    Far,
    /// The Repair key.
    Repair,
    /// Through a relay.
    Relay,
    /// Joining.
    Login,
}

/// A game to play.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) part: Part,
    /// What is different about it.
    pub(super) mode: &'static str,
    pub(super) receiver: Receiver,
    pub(super) round_trip_ms: f64,
    pub(super) game: Game,
    pub(super) relay: Option<relay::Options>,
    pub(super) path: Path,
}

impl Plan {
    /// The file names of its captures.
    fn name(&self) -> String {
        let mode: String =
            self.mode.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let receiver = if self.receiver == Receiver::Old { "old-receiver" } else { "todays-receiver" };
        format!("{:?}-{mode}-{}s-{}ms-{receiver}", self.part, self.game.rate, self.round_trip_ms)
            .to_lowercase()
    }
}

/// A game that was played.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) plan: Plan,
    pub(super) played: Played,
    /// What arrived at the client once the game had begun.
    pub(super) arrivals: Arrivals,
    /// Packets and bytes both ways.
    pub(super) load: (u64, u64),
    /// Runs that were late and void.
    pub(super) voided: u32,
}

impl Shown {
    /// Segments a second at the client.
    pub(super) fn rate(&self) -> f64 {
        self.arrivals.rate().unwrap_or(0.0)
    }

    /// Updates in each segment, on average.
    pub(super) fn merged(&self) -> f64 {
        self.played.written.len() as f64 / self.arrivals.0.len().max(1) as f64
    }
}

/// A link of that round trip, with that receiver at the client.
pub(super) fn link(round_trip_ms: f64, receiver: Receiver, options: &Options) -> Wire {
    let mut ends = Ends::round_trip(seconds(round_trip_ms / 1e3));
    if receiver == Receiver::Old {
        ends.up.hold_acks = Some(AckHold::Heartbeat(seconds(options.ack_timer / 1e3)));
    }
    Wire::new(ends)
}

/// Every game of the experiment.
pub(super) fn all(lab: &Lab<'_>, options: &Options) -> Vec<Plan> {
    let mut plans = mail(lab, options);
    plans.extend(far(lab, options));
    plans.extend(relayed(lab, options));
    plans.extend(login(options));
    plans
}

/// A game over one link.
fn plan(part: Part, mode: &'static str, receiver: Receiver, rtt: f64, game: Game, options: &Options) -> Plan {
    let path = Path::Link(link(rtt, receiver, options));
    Plan { part, mode, receiver, round_trip_ms: rtt, game, relay: None, path }
}

/// What the mail measured: TCP and UDP at both rates, TCP with the option, a client that sends too, the key.
fn mail(lab: &Lab<'_>, options: &Options) -> Vec<Plan> {
    use Receiver::{Old, Today};
    let (lan, length) = (options.lan, options.length(lab));
    let tcp = |rate| Game::tcp(rate, length);
    let mut plans = Vec::new();
    for &rate in options.rates.iter().filter(|rate| **rate > 0.0) {
        let udp = Game { carrier: Carrier::Udp, ..tcp(rate) };
        plans.push(plan(Part::Mail, "TCP", Old, lan, tcp(rate), options));
        plans.push(plan(Part::Mail, "TCP", Today, lan, tcp(rate), options));
        plans.push(plan(Part::Mail, "UDP", Today, lan, udp, options));
    }
    let base = tcp(options.rate());
    let cured = Game { nodelay: true, ..base.clone() };
    plans.push(plan(Part::Mail, "TCP_NODELAY", Old, lan, cured, options));
    let sending = Game { commands: options.commands, ..base.clone() };
    plans.push(plan(Part::Mail, "TCP, client sends", Old, lan, sending, options));
    let at = options.repair_at.map_or(length, seconds);
    // Twice the length: as much before the key as after it.
    let repaired = Game { repair_at: Some(at), length: length * 2, ..base };
    plans.push(plan(Part::Repair, "Repair", Old, lan, repaired, options));
    plans
}

/// The same over longer round trips.
fn far(lab: &Lab<'_>, options: &Options) -> Vec<Plan> {
    let mut round_trips = options.round_trips.clone();
    if lab.quick {
        round_trips.drain(..round_trips.len().saturating_sub(1));
    }
    let base = Game::tcp(options.rate(), options.length(lab));
    let of = |rtt: f64| {
        let cured = Game { nodelay: true, ..base.clone() };
        [
            plan(Part::Far, "TCP", Receiver::Today, rtt, base.clone(), options),
            plan(Part::Far, "TCP", Receiver::Old, rtt, base.clone(), options),
            plan(Part::Far, "TCP_NODELAY", Receiver::Old, rtt, cured, options),
        ]
    };
    round_trips.into_iter().flat_map(of).collect()
}

/// A server with the option, and a relay without and with it. Both relay and client are old receivers.
fn relayed(lab: &Lab<'_>, options: &Options) -> Vec<Plan> {
    let receiver = Receiver::Old;
    let game = Game { nodelay: true, ..Game::tcp(options.rate(), options.length(lab)) };
    let hop = || link(options.lan, receiver, options);
    let through = |mode, relay| Plan {
        part: Part::Relay,
        mode,
        receiver,
        round_trip_ms: 2.0 * options.lan,
        game: game.clone(),
        relay: Some(relay),
        path: Path::TwoHops { near: hop(), far: hop() },
    };
    vec![
        through("plain relay", relay::Options::default()),
        through("relay, TCP_NODELAY", relay::Options::BOTH),
    ]
}

/// Joining, without and with the option, at both receivers.
fn login(options: &Options) -> Vec<Plan> {
    let login = Login { steps: options.login_steps, writes: options.login_writes };
    // The first update is the first frame, and enough.
    let join = Game { login, ..Game::tcp(options.rate(), Duration::from_millis(1)) };
    let of = |receiver| {
        let cured = Game { nodelay: true, ..join.clone() };
        [
            plan(Part::Login, "TCP", receiver, options.lan, join.clone(), options),
            plan(Part::Login, "TCP_NODELAY", receiver, options.lan, cured, options),
        ]
    };
    [Receiver::Old, Receiver::Today].into_iter().flat_map(of).collect()
}

/// Plays them, `at_once` at a time; in the order of `plans`.
pub(super) fn play(lab: &Lab<'_>, plans: &[Plan], at_once: usize) -> Result<Vec<Shown>> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once.clamp(1, plans.len().max(1)) {
            scope.spawn(|| {
                let take = || {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    plans.get(at).map(|plan| (at, plan))
                };
                while let Some((at, plan)) = take() {
                    let result = one(lab, plan);
                    if result.is_err() {
                        // The others would fail alike; those under way are waited for.
                        next.store(plans.len(), Ordering::Relaxed);
                    }
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

fn one(lab: &Lab<'_>, plan: &Plan) -> Result<Shown> {
    let name = plan.name();
    let recording = lab.record(&name, &plan.path, |place| {
        if plan.receiver == Receiver::Old {
            old_senders(place)?;
        }
        let (playing, relay) = start(place, &plan.game, plan.relay)?;
        let played = playing.finish();
        let relayed = relay.map(join).transpose();
        let played = played?;
        relayed?;
        Ok(played)
    })?;
    lab.keep_log(&name, &recording.value)?;
    let capture = recording.capture(Vantage::Client).context("the client's capture is missing")?;
    let begun = recording.value.written.first().copied().unwrap_or_default();
    let arrivals = Arrivals::of(capture, recording.value.port, begun);
    let load = arrivals::load(capture, if plan.part == Part::Login { 0 } else { begun });
    Ok(Shown { plan: plan.clone(), arrivals, load, voided: recording.voided, played: recording.value })
}

/// Senders as they were: no tail loss probe (RFC 8985 section 7), which would repeat what an old receiver holds the
/// ACK of, and no retransmission before 1 s (RFC 6298 2.4; Linux' own least is 200 ms, the old ACK timer's period).
pub(in crate::experiments) fn old_senders(place: &Place) -> Result<()> {
    for seat in [Some(&place.server), place.relay.as_ref()].into_iter().flatten() {
        seat.set("net.ipv4.tcp_early_retrans", "0")?;
        // Kernels before 6.11 have no such sysctl.
        if std::path::Path::new("/proc/sys/net/ipv4/tcp_rto_min_us").exists() {
            seat.set("net.ipv4.tcp_rto_min_us", "1000000")?;
        }
    }
    Ok(())
}

/// Starts a game, and the relay if there is one.
pub(super) fn start(
    place: &Place,
    game: &Game,
    relay: Option<relay::Options>,
) -> Result<(Playing, Option<std::thread::JoinHandle<Result<()>>>)> {
    let mut thread = None;
    let playing = updates::start(place, game, |server| match (relay, &place.relay) {
        (Some(options), Some(seat)) => {
            let (address, relaying) = relay::start(seat, server, options)?;
            thread = Some(relaying);
            Ok(address)
        }
        _ => Ok(server),
    })?;
    Ok((playing, thread))
}
