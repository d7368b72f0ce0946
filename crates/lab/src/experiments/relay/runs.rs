//! One run through a relay, and what its two captures show.

use anyhow::{Context, Result};
use tcpwhy_diagnose::report::{Finding, Severity, Source};
use tcpwhy_simulate::link::{AckHold, Ends};

use super::Options;
use crate::capture::{Capture, Vantage};
use crate::experiments::arrivals::Arrivals;
use crate::experiments::figures::time;
use crate::experiments::netrek::{old_senders, seconds};
use crate::lab::Lab;
use crate::place::{Path, Place, Wire, join};
use crate::programs::relay::{self, Options as Set};
use crate::programs::requests::{self, Requests};
use crate::programs::updates::{self, Game};
use crate::recording::Recording;

/// What a relay made of what came in.
#[derive(Debug)]
pub(super) struct Passed {
    /// On which of its sockets it set the option.
    pub(super) relay: &'static str,
    incoming: Arrivals,
    outgoing: Arrivals,
    /// How long each incoming segment stayed, in ms.
    pub(super) added: Vec<f64>,
    /// How long each answer took, in ms.
    pub(super) answers: Vec<f64>,
    /// What tcpwhy finds in each capture.
    pub(super) says: Says,
    /// Runs that were late and void.
    pub(super) voided: u32,
}

impl Passed {
    /// Segments a second that came in.
    pub(super) fn rate_in(&self) -> f64 {
        self.incoming.rate().unwrap_or(0.0)
    }

    /// Segments a second that went out.
    pub(super) fn rate_out(&self) -> f64 {
        self.outgoing.rate().unwrap_or(0.0)
    }

    /// Segments out for one that came in.
    pub(super) fn kept(&self) -> f64 {
        self.outgoing.0.len() as f64 / self.incoming.0.len().max(1) as f64
    }

    fn new<T>(
        relay: &'static str,
        recording: &Recording<T>,
        sides: (Arrivals, Arrivals),
        says: Says,
    ) -> Self {
        let (incoming, outgoing) = sides;
        let added = incoming.until(&outgoing);
        Self { relay, incoming, outgoing, added, answers: Vec::new(), says, voided: recording.voided }
    }
}

/// What tcpwhy finds, in a line each.
#[derive(Debug)]
pub(super) struct Says {
    pub(super) near: String,
    pub(super) far: String,
}

impl Says {
    fn of(near: &Capture, far: &Capture) -> Self {
        Self { near: problems(near), far: problems(far) }
    }
}

/// The problems with their cost, the dearest first; the worst two.
fn problems(capture: &Capture) -> String {
    let mut found: Vec<Finding> = capture
        .diagnose(capture.vantage.name())
        .findings()
        .filter(|finding| finding.severity == Severity::Problem)
        .collect();
    found.sort_by(|a, b| b.cost_ms.0.total_cmp(&a.cost_ms.0));
    let told: Vec<String> =
        found.iter().take(2).map(|finding| format!("{} {}", finding.rule, time(finding.cost_ms.0))).collect();
    if told.is_empty() { "no problem".to_owned() } else { told.join(", ") }
}

/// A hop on either side; the client of a game may be an old receiver.
fn path(options: &Options, old: bool) -> Path {
    let ends = Ends::round_trip(seconds(options.round_trip / 1e3));
    let mut near = ends.clone();
    if old {
        near.up.hold_acks = Some(AckHold::Heartbeat(seconds(options.ack_timer / 1e3)));
    }
    Path::TwoHops { near: Wire::new(near), far: Wire::new(ends) }
}

fn sides<T>(recording: &Recording<T>) -> Result<(&Capture, &Capture)> {
    let near =
        recording.capture(Vantage::RelayNear).context("the capture on the client's side is missing")?;
    let far = recording.capture(Vantage::RelayFar).context("the capture on the server's side is missing")?;
    Ok((near, far))
}

/// Runs `work` with a relay between client and server, which it is told how to reach.
fn through<T>(
    place: &Place,
    set: Set,
    work: impl FnOnce(&mut dyn FnMut(std::net::SocketAddr) -> Result<std::net::SocketAddr>) -> Result<T>,
) -> Result<T> {
    let seat = place.relay.as_ref().context("there is no relay on this path")?;
    let mut thread = None;
    let value = work(&mut |server| {
        let (address, relaying) = relay::start(seat, server, set)?;
        thread = Some(relaying);
        Ok(address)
    });
    let relayed = thread.map(join).transpose();
    let value = value?;
    relayed?;
    Ok(value)
}

/// A game's updates, from the server through the relay to the client.
pub(super) fn updates(lab: &Lab<'_>, options: &Options, relay: &'static str, set: Set) -> Result<Passed> {
    let length = options.seconds.unwrap_or(if lab.quick { 2.0 } else { 6.0 });
    let game = Game { nodelay: options.server_nodelay, ..Game::tcp(options.rate, seconds(length)) };
    let old = options.ack_timer > 0.0;
    let name = format!("updates-{}", relay.replace(['\'', ' '], "-"));
    let recording = lab.record(&name, &path(options, old), |place| {
        if old {
            old_senders(place)?;
        }
        through(place, set, |by| updates::start(place, &game, by)?.finish())
    })?;
    lab.keep_log(&name, &recording.value)?;
    let (near, far) = sides(&recording)?;
    let played = &recording.value;
    let passed = (Arrivals::of(far, played.server_port, 0), Arrivals::of(near, played.port, 0));
    Ok(Passed::new(relay, &recording, passed, Says::of(near, far)))
}

/// Requests in two pieces, from the client through the relay to the server.
pub(super) fn requests(lab: &Lab<'_>, options: &Options, relay: &'static str, set: Set) -> Result<Passed> {
    let count = options.requests.unwrap_or(if lab.quick { 15 } else { 60 });
    let asked = Requests { count, nodelay: options.client_nodelay, work: seconds(options.work / 1e3) };
    let name = format!("requests-{}", relay.replace(['\'', ' '], "-"));
    let recording = lab.record(&name, &path(options, false), |place| {
        through(place, set, |by| requests::run(place, asked, by))
    })?;
    lab.keep_log(&name, &recording.value)?;
    let (near, far) = sides(&recording)?;
    let answered = &recording.value;
    let passed = (Arrivals::towards(near, answered.port), Arrivals::towards(far, answered.server_port));
    let passed = Passed::new(relay, &recording, passed, Says::of(near, far));
    Ok(Passed { answers: answered.times.clone(), ..passed })
}
