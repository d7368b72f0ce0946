//! What a connection waits for, with times worked out by hand.

use std::time::Duration;

use tcpwhy_simulate::link::{Drop, Ends, Settings};
use tcpwhy_simulate::tcp::{DelayedAck, Stack, Ticks, eras};
use tcpwhy_simulate::truth::{Line, Truth};
use tcpwhy_simulate::world::{Act, Program, Setup, Side, Step, When, World};

const MS: Duration = Duration::from_millis(1);

/// Today's Linux, with timers that end when they are set to, and a delayed ACK of 200 ms for everything but a second full
/// segment.
fn host() -> Stack {
    let mut stack = eras::linux_6();
    stack.ticks = Ticks::Exact;
    stack.receiver.delayed_ack = DelayedAck::Delay { delay: 200 * MS };
    stack
}

/// 40 ms there and back.
fn way() -> Settings {
    Settings { delay: 20 * MS, ..Settings::default() }
}

/// What a capture at `vantage` should book: lines, and from when until when in ms.
fn lines(
    client: &[Step],
    server: &[Step],
    up: Settings,
    down: Settings,
    vantage: Side,
) -> Vec<(Line, f64, f64)> {
    let program = |steps: &[Step]| Program { steps: steps.to_vec(), ..Program::default() };
    let ends = Ends { up, down };
    let setup = Setup {
        client: host(),
        server: host(),
        client_program: program(client),
        server_program: program(server),
        ends: ends.clone(),
        seed: 1,
    };
    let mut world = World::new(&setup);
    let mut truth = Truth::new(&ends);
    world.run_with(5_000_000_000, |world| truth.observe(world));
    let ms = |ns: u64| ns as f64 / 1e6;
    truth.at(vantage, &world).iter().map(|span| (span.line, ms(span.from), ms(span.until))).collect()
}

fn write(when: When, bytes: u64) -> Step {
    Step { when, delay: Duration::ZERO, act: Act::Write(bytes) }
}

/// The second piece is held until the first is ACKed: 40 ms for the way there and back, and 200 ms in between.
#[test]
fn a_held_piece_at_its_sender() {
    let pieces = [write(When::Next, 100), write(When::Next, 100)];
    let lines = lines(&pieces, &[], way(), way(), Side::Client);
    let expected = [
        (Line::Handshake, 0.0, 40.0),
        (Line::Nagle, 40.0, 80.0),
        (Line::DelayedAck, 80.0, 280.0),
        (Line::Network, 280.0, 320.0),
    ];
    assert_eq!(lines[..4], expected);
}

/// At the receiver the ACK is withheld first; then it travels, and what it releases.
#[test]
fn a_held_piece_at_its_receiver() {
    let pieces = [write(When::Next, 100), write(When::Next, 100)];
    let lines = lines(&pieces, &[], way(), way(), Side::Server);
    let expected =
        [(Line::Handshake, 20.0, 60.0), (Line::DelayedAck, 60.0, 260.0), (Line::Nagle, 260.0, 300.0)];
    assert_eq!(lines[..3], expected);
}

/// A program's time lies between the request's arrival and its answer, as each end can know it.
#[test]
fn a_server_that_takes_its_time() {
    let answer = Step { delay: 30 * MS, ..write(When::Read(100), 100) };
    let lines = lines(&[write(When::Next, 100)], &[answer], way(), way(), Side::Client);
    let expected =
        [(Line::Handshake, 0.0, 40.0), (Line::Network, 40.0, 80.0), (Line::ServerApp, 80.0, 110.0)];
    assert_eq!(lines[..3], expected);
}

/// The only segment is lost: nothing but the sender's probe, 2 x 40 + 200 ms later (RFC 8985 7.2), can tell. Its ACK,
/// a duplicate of nothing, comes 40 ms after it and 200 ms of delay.
#[test]
fn a_lost_request_waits_for_a_timer() {
    let up = Settings { drops: vec![Drop::Data(1)], ..way() };
    let lines = lines(&[write(When::Next, 100)], &[], up, way(), Side::Client);
    let [handshake, rto, recovery, ..] = lines[..] else { panic!("{lines:?}") };
    assert_eq!(handshake, (Line::Handshake, 0.0, 40.0));
    assert_eq!((rto.0, rto.1), (Line::Rto, 40.0));
    assert_eq!((recovery.0, recovery.1), (Line::Recovery, rto.2));
    assert!((200.0..=300.0).contains(&(rto.2 - rto.1)), "{rto:?}");
}

/// Ten segments of 1,500 bytes on 1 Mbit/s: 12 ms each, of which the first only travels.
#[test]
fn a_train_flows_from_its_first_segment_to_its_last() {
    let down = Settings { rate: Some(1_000_000), ..way() };
    let answer = write(When::Read(100), 10 * 1448);
    for side in [Side::Client, Side::Server] {
        let lines = lines(&[write(When::Next, 100)], &[answer], way(), down.clone(), side);
        let flows: f64 =
            lines.iter().filter(|line| line.0 == Line::Transfer).map(|line| line.2 - line.1).sum();
        assert!((flows - 9.0 * 12.0).abs() < 1e-3, "{side:?}: {flows} of {lines:?}");
    }
}
