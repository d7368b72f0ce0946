//! Cases whose figures can be worked out on paper.

use std::time::Duration;

use tcpwhy_simulate::tcp::DelayedAck;
use tcpwhy_simulate::whatif::{Fix, Hints, ask};
use tcpwhy_simulate::world::{Act, Side, Step, When};

use crate::build::{MS, answered, assert_ms, capture, chat, gain, plain, recorded, setup, step};

/// A request in two pieces over 20 ms, to a server that delays its ACK by 200 ms. The first piece arrives after 10
/// ms, its ACK leaves at 210 and lets the second go at 220; that arrives at 230, the answer at 240. Ten of them, after
/// a handshake of 20 ms: 2,420 ms. Without Nagle's algorithm an exchange takes 20 ms, so that 2,200 are saved; with a
/// server that acknowledges at once it takes two round trips, so that 2,000 are.
#[test]
fn a_split_request() {
    let stack = plain(DelayedAck::Delay { delay: 200 * MS });
    let (client, server) = chat(10, &[16, 48], 100);
    let setup = setup(&stack, 20 * MS, client, server);
    for at in [Side::Client, Side::Server] {
        let (packets, total) = capture(&setup, at);
        assert_ms(total, 2420.0, 0.1);
        let answer = answered(packets, &[Fix::NoDelay, Fix::OneWrite, Fix::QuickAck]);
        assert!(answer.likeness.is_good(), "{:?}", answer.likeness);
        assert!(answer.has_exchanges);
        assert_ms(answer.unchanged.total_ms, 2420.0, 1.0);
        assert_ms(answer.unchanged.p50_ms, 240.0, 0.5);
        let client = Some(Side::Client);
        assert_ms(gain(&answer, Fix::NoDelay, client).saved_ms, 2200.0, 1.0);
        assert_ms(gain(&answer, Fix::OneWrite, client).saved_ms, 2200.0, 1.0);
        assert_ms(gain(&answer, Fix::QuickAck, Some(Side::Server)).saved_ms, 2000.0, 1.0);
        assert_ms(gain(&answer, Fix::NoDelay, client).figures.p50_ms, 20.0, 0.2);
        // Of two that save the same the one with fewer packets is the better.
        assert_eq!((answer.gains[0].fix, answer.gains[0].side), (Fix::OneWrite, client));
        // The price: what was one write of 64 bytes is two segments with TCP_NODELAY, ten times.
        let (both, one) = (gain(&answer, Fix::NoDelay, client), gain(&answer, Fix::OneWrite, client));
        assert!(both.figures.packets >= one.figures.packets + 10);
        // The server writes its answers in one piece: nothing to be changed there.
        assert!(answer.idle.contains(&(Fix::OneWrite, Some(Side::Server))));
    }
}

/// The same, but the program works for 30 ms before it writes the second piece. No packet shows that: they are those of the
/// test above, and say that an exchange would take 20 ms without Nagle's algorithm. It would take 50, so that 1,900 are
/// saved and not 2,200, and there are no two pieces to be written as one.
#[test]
fn work_between_two_pieces_shows_in_the_calls_alone() {
    let stack = plain(DelayedAck::Delay { delay: 200 * MS });
    let (mut client, server) = chat(10, &[16, 48], 100);
    client.iter_mut().filter(|step| step.act == Act::Write(48)).for_each(|step| step.delay = 30 * MS);
    let setup = setup(&stack, 20 * MS, client, server);
    let (packets, writes) = recorded(&setup, Side::Client);
    let fixes = [Fix::NoDelay, Fix::OneWrite];
    let alone = answered(packets.clone(), &fixes);
    let client = Some(Side::Client);
    assert_ms(gain(&alone, Fix::NoDelay, client).saved_ms, 2200.0, 1.0);
    let hints = Hints { writes: &writes, ..Hints::default() };
    let answer = ask(std::slice::from_ref(&packets), hints, &fixes).expect("an answer");
    assert!(answer.likeness.is_good(), "{:?}", answer.likeness);
    assert_ms(answer.unchanged.total_ms, 2420.0, 1.0);
    assert_ms(gain(&answer, Fix::NoDelay, client).saved_ms, 1900.0, 1.0);
    assert!(answer.idle.contains(&(Fix::OneWrite, client)), "{:?}", answer.gains);
    // A recording that lacks a write is worth no more than none.
    let hints = Hints { writes: &writes[1..], ..Hints::default() };
    assert_eq!(ask(&[packets], hints, &fixes), Ok(alone));
}

/// 12 bytes every 100 ms over 310 ms, from 0 to 1,800. The first leaves at once, its ACK comes at 310 and lets those of
/// 100, 200 and 300 go in one segment, and so on: the k-th segment leaves at 310 k, and the oldest update in it, of
/// 300 k - 200, comes 200 + 10 k ms late. From k = 1 to 6: 210 + 220 + 230 + 240 + 250 + 260 = 1,410 ms.
#[test]
fn merged_updates() {
    let stack = plain(DelayedAck::Off);
    let update = |number: u64| Step {
        delay: if number == 0 { Duration::ZERO } else { 100 * MS },
        ..step(When::Next, Act::Write(12))
    };
    let mut server: Vec<Step> = (0..19).map(update).collect();
    server.push(step(When::Drained, Act::Shutdown));
    let setup = setup(&stack, 310 * MS, vec![step(When::EndOfFile, Act::Shutdown)], server);
    for at in [Side::Client, Side::Server] {
        let answer = answered(capture(&setup, at).0, &[Fix::NoDelay]);
        assert!(answer.likeness.is_good(), "{:?}", answer.likeness);
        assert!(!answer.has_exchanges);
        assert_eq!(answer.likeness.compared, 19, "every update counts by itself");
        let nodelay = gain(&answer, Fix::NoDelay, Some(Side::Server));
        assert_ms(nodelay.saved_ms, 1410.0, 15.0);
        assert_ms(nodelay.figures.p99_ms, 155.0, 0.5);
        // 19 segments instead of 7, and an ACK for each.
        let more = nodelay.figures.packets - answer.unchanged.packets;
        assert_eq!(more, 24);
    }
}

/// Three connections with one exchange each, 20 ms away and 5 ms apart: 40 ms each with its handshake, 130 in all.
/// On one connection only the first one has a handshake: 90.
#[test]
fn a_connection_for_each_request() {
    let stack = plain(DelayedAck::Off);
    let (client, server) = chat(1, &[64], 64);
    let setup = setup(&stack, 20 * MS, client, server);
    let (packets, total) = capture(&setup, Side::Client);
    assert_ms(total, 40.0, 0.1);
    let connections: Vec<_> = (0..3)
        .map(|number: i64| {
            let mut packets = packets.clone();
            packets.iter_mut().for_each(|packet| packet.time += number * 45_000_000);
            packets
        })
        .collect();
    let answer = ask(&connections, [false; 2], &[Fix::KeepAlive]).expect("an answer");
    assert_ms(answer.unchanged.total_ms, 130.0, 0.5);
    let kept = gain(&answer, Fix::KeepAlive, None);
    assert_ms(kept.saved_ms, 40.0, 0.5);
    assert_ms(kept.figures.p50_ms, 20.0, 0.5);
}

/// An answer of 28,960 bytes is twenty segments: ten leave at once, ten more with the first ACK. Over 100 ms an exchange
/// takes two round trips; with an initial window of 20 it takes one.
#[test]
fn a_larger_initial_window() {
    let stack = plain(DelayedAck::Off);
    let (client, server) = chat(1, &[64], 28_960);
    let setup = setup(&stack, 100 * MS, client, server);
    let (packets, total) = capture(&setup, Side::Server);
    assert_ms(total, 300.0, 1.0);
    let answer = answered(packets, &[Fix::InitialWindow(20)]);
    let larger = gain(&answer, Fix::InitialWindow(20), Some(Side::Server));
    assert_ms(larger.saved_ms, 100.0, 1.0);
    assert!(answer.idle.contains(&(Fix::InitialWindow(20), Some(Side::Client))));
}
