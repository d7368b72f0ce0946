//! What packets leave open about stacks and path is tried out: of several guesses that one is taken whose replay is
//! most like the capture.

use super::effort::Effort;
use super::likeness::Likeness;
use super::replay::Replay;
use super::scene::Scene;
use super::stack;
use crate::tcp::{Buffer, Congestion, DelayedAck, HoleFilled, Stack, Ticks};
use crate::world::{Setup, Side};

const SECOND: i64 = 1_000_000_000;
/// A replay this near to its capture needs no other guess.
const NEAR: f64 = 0.02;
/// Phases of a heartbeat that are tried: of 200 ms, the best is off by a few ms.
const PHASES: u64 = 24;

/// Settles what is open about a scene; its unchanged replay, if any came to its end.
pub(super) fn settle(scene: &mut Scene, effort: &Effort) -> Option<Replay> {
    let mut best =
        play(scene, &scene.setup, effort).map(|(replay, distance)| (scene.setup.clone(), replay, distance));
    for question in QUESTIONS.iter().chain(QUESTIONS) {
        if best.as_ref().is_some_and(|(_, _, distance)| *distance < NEAR) {
            break;
        }
        let base = best.as_ref().map_or(&scene.setup, |(setup, _, _)| setup).clone();
        for setup in question(scene, &base) {
            let Some((replay, distance)) = play(scene, &setup, effort) else { continue };
            if best.as_ref().is_none_or(|(_, _, least)| distance < *least) {
                best = Some((setup, replay, distance));
            }
        }
    }
    let (setup, replay, _) = best?;
    scene.setup = setup;
    Some(replay)
}

/// A connection that takes several times as long as its capture is not like it, ns.
pub(super) fn longest(scene: &Scene) -> i64 {
    scene.lasted.saturating_mul(3).saturating_add(10 * SECOND)
}

fn play(scene: &Scene, setup: &Setup, effort: &Effort) -> Option<(Replay, f64)> {
    let replay = Replay::of(setup, &scene.spans, longest(scene), effort)?;
    let distance = Likeness::of(&[(scene, &replay)]).distance();
    Some((replay, distance))
}

type Question = fn(&Scene, &Setup) -> Vec<Setup>;

const QUESTIONS: &[Question] =
    &[delayed_acks_of_server, delayed_acks_of_client, rate, congestion, buffers, hole_filled];

fn delayed_acks_of_server(scene: &Scene, base: &Setup) -> Vec<Setup> {
    delayed_acks(scene, base, Side::Server)
}

fn delayed_acks_of_client(scene: &Scene, base: &Setup) -> Vec<Setup> {
    delayed_acks(scene, base, Side::Client)
}

fn delayed_acks(scene: &Scene, base: &Setup, side: Side) -> Vec<Setup> {
    let mut all = Vec::new();
    for kind in stack::receivers(&scene.hosts[side as usize]) {
        let setup = with(base, side, |stack| stack.receiver.delayed_ack = kind);
        // Where the ticks of a heartbeat are is left to the seed.
        let seeds =
            if matches!(kind, DelayedAck::Heartbeat { .. }) { 1..=PHASES } else { base.seed..=base.seed };
        all.extend(seeds.map(|seed| Setup { seed, ..setup.clone() }));
        // What was measured has the clock's ticks in it.
        all.push(with(&setup, side, |stack| stack.ticks = Ticks::Exact));
    }
    all
}

/// What looks like a bottleneck's rate may be the sender's own pace.
fn rate(_: &Scene, base: &Setup) -> Vec<Setup> {
    let mut setup = base.clone();
    (setup.ends.up.rate, setup.ends.down.rate) = (None, None);
    vec![setup]
}

fn congestion(_: &Scene, base: &Setup) -> Vec<Setup> {
    let of_both = |congestion| {
        let setup = with(base, Side::Client, |stack| stack.sender.congestion = congestion);
        with(&setup, Side::Server, |stack| stack.sender.congestion = congestion)
    };
    vec![of_both(Congestion::Reno), of_both(Congestion::Cubic { hystart: false })]
}

/// A host that reads before it acknowledges offers all of its buffer, another one a segment less than it has.
fn buffers(scene: &Scene, base: &Setup) -> Vec<Setup> {
    let mut all = Vec::new();
    for side in [Side::Client, Side::Server] {
        let largest = scene.hosts[side as usize].largest_window;
        for bytes in [largest, largest + u64::from(scene.mss)] {
            all.push(with(base, side, |stack| stack.receiver.buffer = Buffer::Fixed(bytes)));
        }
    }
    all
}

fn hole_filled(_: &Scene, base: &Setup) -> Vec<Setup> {
    let late = |side| with(base, side, |stack| stack.receiver.hole_filled = HoleFilled::Late);
    vec![late(Side::Client), late(Side::Server)]
}

fn with(base: &Setup, side: Side, change: impl FnOnce(&mut Stack)) -> Setup {
    let mut setup = base.clone();
    match side {
        Side::Client => change(&mut setup.client),
        Side::Server => change(&mut setup.server),
    }
    setup
}
