//! Connections with a cause, and the same ones without it: the difference is what the fix has to predict.

use std::time::Duration;

use tcpwhy_simulate::link::Drop;
use tcpwhy_simulate::tcp::{Buffer, DelayedAck, IdleRestart, SocketOption, Stack, eras};
use tcpwhy_simulate::whatif::Fix;
use tcpwhy_simulate::world::{Act, Setup, Side, When};

use crate::build::{MS, answered, assert_ms, capture, chat, gain, setup, step};

/// How far a prediction may be off, as a share of what the cause costs; and in ms, where that is little.
const WITHIN: f64 = 0.05;
const LITTLE: f64 = 1.0;

/// The prediction is what really taking the cause out saves, from wherever the capture was made.
#[track_caller]
fn check(with: &Setup, fix: Fix, side: Option<Side>, cure: impl Fn(&mut Setup)) {
    let mut without = with.clone();
    cure(&mut without);
    for at in [Side::Client, Side::Server] {
        let ((packets, slow), (_, quick)) = (capture(with, at), capture(&without, at));
        assert!(slow > quick, "the cause costs nothing");
        let answer = answered(packets, &[fix]);
        assert!(answer.likeness.is_good(), "{:?}", answer.likeness);
        let saved = gain(&answer, fix, side).saved_ms;
        assert_ms(saved, slow - quick, ((slow - quick) * WITHIN).max(LITTLE));
    }
}

fn linux() -> Stack {
    eras::linux_6()
}

#[test]
fn nagle_and_linux_delayed_acks() {
    let (client, server) = chat(30, &[16, 48], 200);
    for round_trip in [1, 20, 100] {
        let with = setup(&linux(), round_trip * MS, client.clone(), server.clone());
        check(&with, Fix::NoDelay, Some(Side::Client), |setup| {
            setup.client_program.options.push(SocketOption::NoDelay(true));
        });
    }
}

#[test]
fn a_heartbeat_of_200_ms() {
    let (client, server) = chat(20, &[16, 48], 200);
    let mut with = setup(&linux(), 20 * MS, client, server);
    with.server.receiver.delayed_ack = DelayedAck::Heartbeat { period: 200 * MS };
    check(&with, Fix::QuickAck, Some(Side::Server), |setup| {
        setup.server.receiver.delayed_ack = DelayedAck::Off;
    });
}

#[test]
fn a_receive_buffer_smaller_than_the_path() {
    let client = vec![step(When::Next, Act::Write(500_000)), step(When::Read(2), Act::Shutdown)];
    let server = vec![step(When::Read(500_000), Act::Write(2)), step(When::EndOfFile, Act::Shutdown)];
    let mut with = setup(&linux(), 50 * MS, client, server);
    with.server.receiver.buffer = Buffer::Fixed(20_000);
    check(&with, Fix::ReceiveBuffer(16 << 20), Some(Side::Server), |setup| {
        setup.server.receiver.buffer = Buffer::Fixed(16 << 20);
    });
}

#[test]
fn slow_start_after_idle_times() {
    let (mut client, server) = chat(8, &[64], 100_000);
    client.iter_mut().filter(|step| step.when != When::Next).for_each(|step| {
        step.delay = Duration::from_secs(3);
    });
    let with = setup(&linux(), 80 * MS, client, server);
    check(&with, Fix::NoIdleRestart, Some(Side::Server), |setup| {
        setup.server.sender.idle_restart = IdleRestart::Never;
    });
}

#[test]
fn a_lost_request_and_a_lost_syn() {
    let (client, server) = chat(10, &[64], 64);
    for (drop, up) in [(Drop::Data(5), true), (Drop::Syn(1), true), (Drop::Data(5), false)] {
        let mut with = setup(&linux(), 30 * MS, client.clone(), server.clone());
        let way = if up { &mut with.ends.up } else { &mut with.ends.down };
        way.drops.push(drop);
        // At the far end a lone lost segment cannot be seen; at its own it can.
        let at = if up { Side::Client } else { Side::Server };
        let mut without = with.clone();
        (without.ends.up.drops, without.ends.down.drops) = (Vec::new(), Vec::new());
        let ((packets, slow), (_, quick)) = (capture(&with, at), capture(&without, at));
        let answer = answered(packets, &[Fix::NoLoss]);
        assert_ms(gain(&answer, Fix::NoLoss, None).saved_ms, slow - quick, (slow - quick) * WITHIN);
    }
}

#[test]
fn holes_in_a_download() {
    let client = vec![step(When::Next, Act::Write(64)), step(When::Read(400_000), Act::Shutdown)];
    let server = vec![step(When::Read(64), Act::Write(400_000)), step(When::EndOfFile, Act::Shutdown)];
    let mut with = setup(&linux(), 40 * MS, client, server);
    with.ends.down.drops = vec![Drop::Data(60), Drop::Data(61), Drop::Data(70)];
    check(&with, Fix::NoLoss, None, |setup| setup.ends.down.drops.clear());
}

/// A request that takes its server 70 ms is no wait that a fix could end.
#[test]
fn what_programs_take_is_left_to_them() {
    let (client, mut server) = chat(10, &[64], 64);
    server.iter_mut().filter(|step| step.when != When::EndOfFile).for_each(|step| step.delay = 70 * MS);
    let (packets, total) = capture(&setup(&linux(), 20 * MS, client, server), Side::Client);
    let answer = answered(packets, &Fix::ALL);
    assert!(answer.likeness.is_good(), "{:?}", answer.likeness);
    for gain in &answer.gains {
        assert!(gain.saved_ms.abs() < total * 0.01, "{gain:?} of {total} ms");
    }
}
