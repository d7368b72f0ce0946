//! From changes at both sides to one line after the other, as a vantage can know it.

use super::Span;
use super::scene::Scene;
use super::watch::{Change, SIDES, Stamp, Watch};
use crate::link::{Ends, Settings};
use crate::tcp::nanos;
use crate::world::Side;

/// Bytes of an IPv4 packet that only acknowledges, with timestamps; and of a full one.
const EMPTY_PACKET: u64 = 52;
const FULL_PACKET: u64 = 1500;

/// What happens to the scene, by when it shows (ns).
#[derive(Clone, Copy, Debug)]
enum Turn {
    Change(Change),
    Busy(Side, i32),
    Left { expected: u64 },
    Arrived,
}

/// All spans up to `until` (ns) that `vantage` can know, in order.
pub(super) fn spans(watch: &Watch, ends: &Ends, vantage: Side, until: u64) -> Vec<Span> {
    let mut speakers = Speakers::new(watch, vantage);
    let mut scene = Scene::new(SIDES.map(|side| round_trip(ends, side, FULL_PACKET)));
    let mut spans = Vec::new();
    let mut now = 0;
    for (next, turn) in turns(watch, ends, vantage) {
        fill(&mut scene, now, next, speakers.next_after(now), &mut spans);
        now = now.max(next);
        match turn {
            Turn::Change(change) => scene.apply(now, change),
            Turn::Busy(side, more) => scene.busy(side, more),
            Turn::Left { expected } => {
                scene.journeys += 1;
                scene.expected = scene.expected.max(expected);
            }
            Turn::Arrived => scene.journeys -= 1,
        }
    }
    fill(&mut scene, now, until, speakers.next_after(now), &mut spans);
    spans
}

/// Books everything from `now` to `until`, between which nothing changes.
fn fill(scene: &mut Scene, mut now: u64, until: u64, speaker: Side, spans: &mut Vec<Span>) {
    while now < until {
        let choice = scene.choose(now, speaker);
        let stop = choice.until.min(until);
        scene.spend(&choice, stop - now);
        push(spans, Span { from: now, until: stop, line: choice.line });
        now = stop;
    }
}

fn push(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        Some(last) if last.line == span.line && last.until == span.from => last.until = span.until,
        _ => spans.push(span),
    }
}

fn turns(watch: &Watch, ends: &Ends, vantage: Side) -> Vec<(u64, Turn)> {
    let mut turns: Vec<_> = Vec::new();
    turns.extend(watch.changes.iter().map(|(stamp, change)| (stamp.seen_at(vantage), Turn::Change(*change))));
    for busy in &watch.busy {
        let lag = lag(ends, busy.side, vantage);
        turns.push((busy.from + lag, Turn::Busy(busy.side, 1)));
        turns.push((busy.until + lag, Turn::Busy(busy.side, -1)));
    }
    for journey in watch.journeys.iter().filter(|journey| journey.side == vantage) {
        let expected = journey.from + round_trip(ends, vantage, journey.len);
        turns.push((journey.from, Turn::Left { expected }));
        turns.push((journey.until, Turn::Arrived));
    }
    turns.sort_by_key(|(time, _)| *time);
    turns
}

/// How long after the interface of `side` sent something that shows at `vantage`.
fn lag(ends: &Ends, side: Side, vantage: Side) -> u64 {
    let (out, back) = ways(ends, side);
    let arrives = nanos(out.delay);
    if side == vantage { arrives + toll(back, EMPTY_PACKET) } else { arrives }
}

/// How long a packet of `side` of so many bytes and its ACK take without a queue, ns.
fn round_trip(ends: &Ends, side: Side, len: u64) -> u64 {
    let (out, back) = ways(ends, side);
    toll(out, len) + toll(back, EMPTY_PACKET)
}

fn ways(ends: &Ends, side: Side) -> (&Settings, &Settings) {
    match side {
        Side::Client => (&ends.up, &ends.down),
        Side::Server => (&ends.down, &ends.up),
    }
}

/// What a packet of so many bytes takes, ns.
fn toll(settings: &Settings, len: u64) -> u64 {
    nanos(settings.delay) + settings.rate.map_or(0, |rate| len * 8 * 1_000_000_000 / rate.max(1))
}

/// Who speaks when.
struct Speakers {
    times: Vec<(u64, Side)>,
    at: usize,
}

impl Speakers {
    fn new(watch: &Watch, vantage: Side) -> Self {
        let spoke = |(stamp, change): &(Stamp, Change)| match change {
            Change::Speaks { side } => Some((stamp.seen_at(vantage), *side)),
            _ => None,
        };
        let mut times: Vec<_> = watch.changes.iter().filter_map(spoke).collect();
        times.sort_by_key(|(time, _)| *time);
        Self { times, at: 0 }
    }

    /// Who speaks first after `now`; at the end, who was spoken to last.
    fn next_after(&mut self, now: u64) -> Side {
        while self.times.get(self.at).is_some_and(|(time, _)| *time <= now) {
            self.at += 1;
        }
        match (self.times.get(self.at), self.times.last()) {
            (Some((_, side)), _) => *side,
            (None, Some((_, side))) => side.other(),
            (None, None) => Side::Client,
        }
    }
}
