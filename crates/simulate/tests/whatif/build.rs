//! Captures of simulated connections.

use std::time::Duration;

use tcpwhy_simulate::link::Ends;
use tcpwhy_simulate::tcp::{DelayedAck, Stack, Ticks, eras};
use tcpwhy_simulate::whatif::{Answer, Fix, Gain, ask};
use tcpwhy_simulate::world::{Act, CLIENT, Program, SERVER, Setup, Side, Step, When, World, Written, packet};
use tcpwhy_wire::calls::Write;
use tcpwhy_wire::{Address, Packet, Socket};

pub(crate) const MS: Duration = Duration::from_millis(1);
const HOUR: u64 = 3_600_000_000_000;

pub(crate) fn step(when: When, act: Act) -> Step {
    Step { when, delay: Duration::ZERO, act }
}

/// A stack that delays its ACKs by so much, and no cleverer than that.
pub(crate) fn plain(delayed_ack: DelayedAck) -> Stack {
    let mut stack = eras::linux_6();
    stack.receiver.delayed_ack = delayed_ack;
    stack.ticks = Ticks::Exact;
    stack
}

/// Two programs over a path without a rate.
pub(crate) fn setup(stack: &Stack, round_trip: Duration, client: Vec<Step>, server: Vec<Step>) -> Setup {
    Setup {
        client: stack.clone(),
        server: stack.clone(),
        client_program: Program { steps: client, ..Program::default() },
        server_program: Program { steps: server, ..Program::default() },
        ends: Ends::round_trip(round_trip),
        seed: 1,
    }
}

/// So many exchanges: a request in these pieces, an answer of so many bytes.
pub(crate) fn chat(exchanges: u64, request: &[u64], answer: u64) -> (Vec<Step>, Vec<Step>) {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    let length: u64 = request.iter().sum();
    for number in 0..exchanges {
        for (piece, bytes) in request.iter().enumerate() {
            let when = if piece == 0 && number > 0 { When::Read(number * answer) } else { When::Next };
            client.push(step(when, Act::Write(*bytes)));
        }
        server.push(step(When::Read((number + 1) * length), Act::Write(answer)));
    }
    client.push(step(When::Read(exchanges * answer), Act::Shutdown));
    server.push(step(When::EndOfFile, Act::Shutdown));
    (client, server)
}

/// What a capture at one side shows, and when the last byte was read, in ms since the SYN.
pub(crate) fn capture(setup: &Setup, at: Side) -> (Vec<Packet>, f64) {
    let mut world = World::new(setup);
    world.run(HOUR);
    let packets = (1..).zip(world.seen(at)).map(|(number, seen)| packet(number, seen)).collect();
    let ends = [Side::Client, Side::Server].map(|side| world.log(side).reads.last().map_or(0, |read| read.0));
    (packets, ends[0].max(ends[1]) as f64 / 1e6)
}

/// What a capture at one side shows, and a recording of the calls of the program there.
pub(crate) fn recorded(setup: &Setup, at: Side) -> (Vec<Packet>, Vec<Write>) {
    let mut world = World::new(setup);
    world.run(HOUR);
    let packets = (1..).zip(world.seen(at)).map(|(number, seen)| packet(number, seen)).collect();
    let ends = if at == Side::Client { [CLIENT, SERVER] } else { [SERVER, CLIENT] };
    let [from, to] = ends.map(|(ip, port)| Socket { address: Address::v4(ip), port });
    let log = &world.log(at).writes;
    let starts = std::iter::once(0).chain(log.iter().map(|written| written.end));
    let of = |(written, start): (&Written, u64)| {
        let &Written { begun, done, end, more: is_corked } = written;
        Write { from, to, at: begun.cast_signed(), done: done.cast_signed(), start, end, is_corked }
    };
    (packets, log.iter().zip(starts).map(of).collect())
}

/// The answer about one connection.
pub(crate) fn answered(packets: Vec<Packet>, fixes: &[Fix]) -> Answer {
    ask(&[packets], [false; 2], fixes).expect("an answer")
}

#[track_caller]
pub(crate) fn gain(answer: &Answer, fix: Fix, side: Option<Side>) -> &Gain {
    let found = answer.gains.iter().find(|gain| gain.fix == fix && gain.side == side);
    found.unwrap_or_else(|| panic!("{fix} at {side:?} is not among {:?}", answer.gains))
}

#[track_caller]
pub(crate) fn assert_ms(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{found} ms, expected {expected} ± {within} ms");
}
