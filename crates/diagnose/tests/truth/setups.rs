//! Random connections: stacks, programs and paths, all from one seed.

use std::time::Duration;

use fastrand::Rng;
use tcpwhy_simulate::link::{Ends, Queue, Settings};
use tcpwhy_simulate::tcp::{Buffer, DelayedAck, EcnUse, IdleRestart, Nagle, SocketOption, Stack, eras};
use tcpwhy_simulate::world::{Act, Program, Reader, Setup, Step, When};

/// The connection of that number.
pub(crate) fn setup(number: u64) -> (&'static str, Setup) {
    let mut rng = Rng::with_seed(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut client = stack(&mut rng);
    let mut server = stack(&mut rng);
    let ends = ends(&mut rng);
    if ends.up.mark_above.is_some() {
        (client.ecn, server.ecn) = (Some(EcnUse::Asks), Some(EcnUse::Accepts));
    }
    let (name, [mut client_program, mut server_program]) = programs(&mut rng, &ends);
    for program in [&mut client_program, &mut server_program] {
        if rng.u8(..4) == 0 {
            program.options.push(SocketOption::NoDelay(true));
        }
    }
    if name == "corked" {
        // No other stack has MSG_MORE.
        server = eras::linux_6();
    }
    if name == "small-buffer" {
        for stack in [&mut client, &mut server] {
            stack.sender.send_buffer = Some(rng.u64(4_000..65_000));
        }
    }
    (name, Setup { client, server, client_program, server_program, ends, seed: number })
}

/// Half of all hosts are today's Linux, some of them with other settings; the rest is what else there was and is.
fn stack(rng: &mut Rng) -> Stack {
    let mut stack = match rng.u8(..10) {
        0 => eras::linux_2_0(),
        1 => eras::linux_2_1(),
        2 => eras::bsd_4_4(),
        3 => eras::digital_unix(),
        4 => eras::windows_10(),
        _ => eras::linux_6(),
    };
    match rng.u8(..12) {
        0 => stack.sender.idle_restart = IdleRestart::Never,
        1 => stack.sender.nagle = Nagle::Rfc896,
        2 => stack.receiver.delayed_ack = DelayedAck::Delay { delay: ms(200) },
        3 => stack.sender.initial_window = rng.u32(1..5),
        4 => stack.sack = false,
        5 => stack.receiver.buffer = Buffer::Fixed(rng.u64(8_000..64_000)),
        _ => {}
    }
    stack
}

fn ends(rng: &mut Rng) -> Ends {
    let half = micros(log(rng, 200.0, 200_000.0) / 2.0);
    let rate = rng.bool().then(|| log(rng, 1e5, 1e10) as u64);
    let queue = match rng.u8(..3) {
        0 => Queue::Unlimited,
        _ => Queue::Packets(log(rng, 10.0, 1000.0) as usize),
    };
    let mut way = Settings { delay: half, rate, queue, ..Settings::default() };
    if rng.u8(..10) < 3 {
        way.loss = log(rng, 0.001, 0.05);
    }
    match rng.u8(..20) {
        0 => (way.reorder, way.reorder_by) = (0.02, half / 4),
        1 => way.duplicate = 0.01,
        2 => way.mark_above = Some(rng.usize(2..20)),
        3 => way.jitter = half.mul_f64(rng.f64()),
        _ => {}
    }
    let mut down = way.clone();
    if rng.u8(..4) == 0 {
        // A line that is slower upwards.
        way.rate = way.rate.map(|rate| (rate / rng.u64(1..10)).max(100_000));
    }
    if rng.bool() {
        way.loss = 0.0;
    } else if rng.bool() {
        down.loss = 0.0;
    }
    Ends { up: way, down }
}

fn programs(rng: &mut Rng, ends: &Ends) -> (&'static str, [Program; 2]) {
    match rng.u8(..20) {
        0..=3 => ("exchanges", exchanges(rng, 1, 0.0)),
        4..=6 => ("split-writes", exchanges(rng, 3, 0.3)),
        7 | 8 => ("updates", updates(rng)),
        9..=12 => ("transfer", transfer(rng, ends)),
        13 | 14 => ("slow-reader", slow_reader(rng, ends)),
        15 | 16 => ("bursts", bursts(rng, ends)),
        17 => ("small-buffer", transfer(rng, ends)),
        18 => ("commands", commands(rng)),
        _ => ("corked", corked(rng)),
    }
}

fn step(when: When, delay: Duration, act: Act) -> Step {
    Step { when, delay, act }
}

fn program(steps: Vec<Step>) -> Program {
    Program { steps, ..Program::default() }
}

/// The client closes when it has read everything, then the server.
fn closing(mut client: Vec<Step>, mut server: Vec<Step>, answers: u64) -> [Program; 2] {
    client.push(step(When::Read(answers), Duration::ZERO, Act::Close));
    server.push(step(When::EndOfFile, Duration::ZERO, Act::Close));
    [program(client), program(server)]
}

/// Requests and answers, each in up to so many writes; `mute` is the share of requests that have no answer.
fn exchanges(rng: &mut Rng, pieces: u32, mute: f64) -> [Program; 2] {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    let (mut asked, mut answered) = (0, 0);
    let (size, think, pause) = (log(rng, 20.0, 30_000.0), log(rng, 0.05, 150.0), log(rng, 0.05, 150.0));
    for _ in 0..rng.u32(3..40) {
        let request = rng.u64(10..2000);
        let mut when = When::Read(answered);
        let mut delay = ms_f(pause * rng.f64());
        for part in parts(rng, request, pieces) {
            client.push(step(when, delay, Act::Write(part)));
            (when, delay) = (When::Next, Duration::ZERO);
        }
        asked += request;
        if rng.f64() < mute {
            continue;
        }
        let answer = (size * (0.3 + rng.f64())) as u64 + 1;
        (when, delay) = (When::Read(asked), ms_f(think * (0.3 + rng.f64())));
        for part in parts(rng, answer, pieces) {
            server.push(step(when, delay, Act::Write(part)));
            (when, delay) = (When::Next, Duration::ZERO);
        }
        answered += answer;
    }
    closing(client, server, answered)
}

fn parts(rng: &mut Rng, whole: u64, pieces: u32) -> Vec<u64> {
    let pieces = u64::from(rng.u32(1..=pieces)).min(whole);
    let part = whole / pieces;
    (0..pieces).map(|number| if number == 0 { whole - part * (pieces - 1) } else { part }).collect()
}

/// A game: small messages at an even pace from one side or both.
fn updates(rng: &mut Rng) -> [Program; 2] {
    let count = rng.u32(30..150);
    let beat = |rng: &mut Rng| {
        let (period, len) = (rng.u32(5..100), rng.u64(8..400));
        let at = |number: u32| When::At(ms(u64::from(period * (number + 1))));
        (0..count).map(|number| step(at(number), Duration::ZERO, Act::Write(len))).collect::<Vec<_>>()
    };
    let mut client = vec![step(When::Next, Duration::ZERO, Act::Write(20))];
    let server = beat(rng);
    let mut options = Vec::new();
    if rng.u8(..8) == 0 {
        client.extend(beat(rng));
        // Whoever sends both ways has mostly learnt of Nagle's algorithm.
        options.extend((rng.u8(..4) > 0).then_some(SocketOption::NoDelay(true)));
    }
    client.push(step(When::EndOfFile, Duration::ZERO, Act::Close));
    let mut server = server;
    server[0].when = When::Read(20);
    server.push(step(When::Drained, Duration::ZERO, Act::Close));
    [client, server].map(|steps| Program { options: options.clone(), ..program(steps) })
}

/// Bytes that take up to some seconds on that path.
fn amount(rng: &mut Rng, ends: &Ends) -> u64 {
    let rate = ends.down.rate.into_iter().chain(ends.up.rate).min().unwrap_or(u64::MAX);
    let most = (rate / 8 * 3).clamp(20_000, 1_000_000);
    log(rng, 10_000.0, most as f64) as u64
}

/// A download or an upload.
fn transfer(rng: &mut Rng, ends: &Ends) -> [Program; 2] {
    let bytes = amount(rng, ends);
    let think = ms_f(rng.f64() * 50.0);
    if rng.bool() {
        let client = vec![step(When::Next, Duration::ZERO, Act::Write(150))];
        closing(client, vec![step(When::Read(150), think, Act::Write(bytes))], bytes)
    } else {
        let client = vec![step(When::Next, think, Act::Write(bytes))];
        closing(client, vec![step(When::Read(bytes), think, Act::Write(100))], 100)
    }
}

/// A download whose reader pauses.
fn slow_reader(rng: &mut Rng, ends: &Ends) -> [Program; 2] {
    let [mut client, server] = transfer(rng, ends);
    client.reader = Reader {
        wakes_after: ms_f(log(rng, 0.05, 20.0)),
        at_most: log(rng, 1000.0, 100_000.0) as u64,
        pause: ms_f(log(rng, 0.5, 50.0)),
        not_before: ms_f(rng.f64() * 300.0),
        ..Reader::default()
    };
    client.options.push(SocketOption::ReceiveBuffer(rng.u64(8_000..64_000)));
    [client, server]
}

/// Answers of some size with pauses longer than a timeout between them.
fn bursts(rng: &mut Rng, ends: &Ends) -> [Program; 2] {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    let (mut asked, mut answered) = (0, 0);
    for _ in 0..rng.u32(2..6) {
        client.push(step(When::Read(answered), ms(rng.u64(300..1500)), Act::Write(200)));
        asked += 200;
        let bytes = amount(rng, ends) / 2;
        server.push(step(When::Read(asked), ms_f(rng.f64() * 20.0), Act::Write(bytes)));
        answered += bytes;
    }
    closing(client, server, answered)
}

/// A MUD: commands of which some have answers, some none, typed ahead.
fn commands(rng: &mut Rng) -> [Program; 2] {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    let (mut asked, mut answered) = (0, 0);
    for _ in 0..rng.u32(10..60) {
        let ahead = rng.u8(..3) == 0;
        let when = if ahead { When::Next } else { When::Read(answered) };
        client.push(step(when, ms_f(log(rng, 0.05, 80.0)), Act::Write(rng.u64(5..60))));
        let Some(Step { act: Act::Write(len), .. }) = client.last() else { continue };
        asked += len;
        if rng.bool() {
            let answer = rng.u64(20..600);
            server.push(step(When::Read(asked), ms_f(log(rng, 0.02, 5.0)), Act::Write(answer)));
            answered += answer;
        }
    }
    closing(client, server, answered)
}

/// Answers written with `MSG_MORE` that are let go, or are not.
fn corked(rng: &mut Rng) -> [Program; 2] {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    let (mut asked, mut answered) = (0, 0);
    let forgets = rng.u8(..8) == 0;
    for _ in 0..rng.u32(10..25) {
        client.push(step(When::Read(answered), ms_f(rng.f64() * 30.0), Act::Write(100)));
        asked += 100;
        let (head, body) = (rng.u64(50..3000), rng.u64(50..3000));
        server.push(step(When::Read(asked), ms_f(rng.f64() * 5.0), Act::WriteMore(head)));
        let last = if forgets { Act::WriteMore(body) } else { Act::Write(body) };
        server.push(step(When::Next, ms_f(rng.f64() * 5.0), last));
        answered += head + body;
    }
    closing(client, server, answered)
}

/// Evenly spread over the magnitudes between two numbers.
pub(crate) fn log(rng: &mut Rng, least: f64, most: f64) -> f64 {
    (least.ln() + rng.f64() * (most.ln() - least.ln())).exp()
}

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn ms_f(number: f64) -> Duration {
    Duration::from_secs_f64(number / 1e3)
}

fn micros(number: f64) -> Duration {
    Duration::from_secs_f64(number / 1e6)
}
