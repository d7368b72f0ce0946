//! Captures that do not show each frame once, from the first on: what they keep of a simulated connection.

use fastrand::Rng;
use tcpwhy_simulate::truth::Span;
use tcpwhy_wire::Packet;

use crate::setups::log;

/// Share of the frames with which a gap of the capture begins: a ring that is full now and then, up to a recorder that
/// hardly keeps up.
const GAPS: (f64, f64) = (0.001, 0.03);
/// Frames in a gap that is not of one.
const GAP: std::ops::Range<usize> = 2..20;
/// How much later copies pass: what a bridge takes from one port to the next, up to a full frame's time on a mirror port of
/// 100 Mbit/s. ns.
const COPY_LAG: (f64, f64) = (1_000.0, 120_000.0);

/// What a capture keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kept {
    /// Less than what passed: frames that were on the wire and arrived are not in it.
    Lacking,
    /// Each frame, and again within microseconds: a mirror port that sends both directions, a bridge and its port.
    Twice,
    /// What passed after it began, in the middle of the connection.
    Middle,
}

impl Kept {
    pub(crate) const ALL: [Self; 3] = [Self::Lacking, Self::Twice, Self::Middle];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lacking => "lacking",
            Self::Twice => "twice",
            Self::Middle => "middle",
        }
    }

    /// What it keeps of the frames that passed, by chance; empty where nothing is left to keep.
    pub(crate) fn packets(self, passed: &[Packet], seed: u64) -> Vec<Packet> {
        let mut rng = Rng::with_seed(seed ^ 0x6b65_7074);
        let mut kept = match self {
            Self::Lacking => lacking(passed, &mut rng),
            Self::Twice => twice(passed, &mut rng),
            Self::Middle => middle(passed, &mut rng),
        };
        (1..).zip(&mut kept).for_each(|(number, packet)| packet.number = number);
        kept
    }
}

/// Each gap is of one frame, or of several in a row.
fn lacking(passed: &[Packet], rng: &mut Rng) -> Vec<Packet> {
    let share = log(rng, GAPS.0, GAPS.1);
    let mut gap = 0;
    let mut kept = passed.to_vec();
    kept.retain(|_| {
        if gap == 0 && rng.f64() < share {
            gap = if rng.bool() { 1 } else { rng.usize(GAP) };
        }
        let is_lacking = gap > 0;
        gap = gap.saturating_sub(1);
        !is_lacking
    });
    kept
}

/// Copies pass `COPY_LAG` later, whatever the other side says meanwhile; but for an answer, which a host gives when the
/// frame and its copies have passed. The simulator's hosts take no time for it.
fn twice(passed: &[Packet], rng: &mut Rng) -> Vec<Packet> {
    let lag = log(rng, COPY_LAG.0, COPY_LAG.1) as i64;
    let mut kept = Vec::with_capacity(passed.len() * 2);
    for (index, packet) in passed.iter().enumerate() {
        let mut at_once = passed[index + 1..].iter().take_while(|later| later.time == packet.time);
        let is_answered = at_once.any(|later| later.source != packet.source);
        let lag = if is_answered { 0 } else { lag };
        kept.push((packet.time, index, *packet));
        kept.push((packet.time + lag, index, Packet { time: packet.time + lag, ..*packet }));
    }
    kept.sort_by_key(|(time, index, _)| (*time, *index));
    kept.into_iter().map(|(_, _, packet)| packet).collect()
}

/// From one of the first three quarters of the packets on, after the first data.
fn middle(passed: &[Packet], rng: &mut Rng) -> Vec<Packet> {
    let has_data = |packet: &Packet| packet.tcp().is_some_and(|tcp| tcp.payload_len > 0);
    let from = passed.iter().position(has_data).map_or(passed.len(), |first| first + 1);
    let until = passed.len() * 3 / 4;
    if from < until { passed[rng.usize(from..until)..].to_vec() } else { Vec::new() }
}

/// The part of the truth in which the capture ran: from its first packet to its last.
pub(crate) fn while_captured(truth: &[Span], kept: &[Packet]) -> Vec<Span> {
    let Some((first, last)) = kept.first().zip(kept.last()) else { return Vec::new() };
    let [first, last] = [first, last].map(|packet| packet.time.cast_unsigned());
    let cut = |span: &Span| Span { from: span.from.max(first), until: span.until.min(last), ..*span };
    truth.iter().map(cut).filter(|span| span.from < span.until).collect()
}
