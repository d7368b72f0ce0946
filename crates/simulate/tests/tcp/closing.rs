//! Closing: FINs in either order and at once, half-close, resets.

use tcpwhy_simulate::tcp::{Endpoint, State, eras};
use tcpwhy_wire::TcpFlags;

use crate::pair::{MS, Pair, Side};

fn fins(pair: &Pair) -> Vec<(Side, u64)> {
    let fins = pair.sent.iter().filter(|sent| sent.has(TcpFlags::FIN));
    fins.map(|sent| (sent.from, sent.time / MS)).collect()
}

#[test]
fn the_one_that_closes_first_waits() {
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_close(now));
    pair.run(start + 15 * MS);
    assert_eq!((pair.a.state(), pair.b.state()), (State::FinWait1, State::CloseWait));
    assert!(pair.b.is_at_end());
    // Linux lets the ACK of a FIN wait for its own FIN (tcp_fin): 40 ms, a jiffy or two more on the wheel.
    pair.run(start + 70 * MS);
    assert_eq!(pair.a.state(), State::FinWait2);
    let acks = pair.acks(Side::B, start);
    assert!(acks.len() == 1 && (50.0..=58.0).contains(&acks[0]), "{acks:?}");
    pair.at(start + 100 * MS, |pair, now| pair.b.handle_close(now));
    pair.run(start + 120 * MS);
    assert_eq!((pair.a.state(), pair.b.state()), (State::TimeWait, State::Closed));
    assert_eq!(fins(&pair), [(Side::A, start / MS), (Side::B, start / MS + 100)]);
    // TCP_TIMEWAIT_LEN.
    pair.run(start + 60_111 * MS);
    assert_eq!((pair.a.state(), pair.a.poll_at()), (State::Closed, None));
}

#[test]
fn a_fin_that_is_answered_at_once_needs_three_segments() {
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_close(now));
    pair.at(start + 10 * MS, |pair, now| pair.b.handle_close(now));
    pair.run(start + 100 * MS);
    assert_eq!((pair.a.state(), pair.b.state()), (State::TimeWait, State::Closed));
    assert_eq!(pair.sent.len(), 3, "FIN, FIN with ACK, ACK");
}

#[test]
fn both_close_at_once() {
    for (a, b) in [(eras::linux_6(), eras::linux_6()), (eras::bsd_4_4(), eras::linux_2_0())] {
        let mut pair = Pair::connected(&a, &b, 20);
        let start = pair.now;
        pair.at(start, |pair, now| {
            pair.a.handle_close(now);
            pair.b.handle_close(now);
        });
        pair.run(start + 15 * MS);
        assert_eq!((pair.a.state(), pair.b.state()), (State::Closing, State::Closing));
        pair.run(start + 300 * MS);
        assert_eq!((pair.a.state(), pair.b.state()), (State::TimeWait, State::TimeWait));
    }
}

#[test]
fn after_a_half_close_the_other_direction_goes_on() {
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    let start = pair.now;
    pair.at(start, |pair, now| {
        pair.a.handle_write(now, 10_000, false);
        pair.a.handle_shutdown(now);
    });
    pair.at(start + 100 * MS, |pair, now| {
        assert!(pair.b.is_at_end());
        pair.b.handle_write(now, 50_000, false);
        pair.b.handle_shutdown(now);
    });
    pair.run(start + 1000 * MS);
    assert_eq!(pair.read, [50_000, 10_000]);
    assert_eq!((pair.a.state(), pair.b.state()), (State::TimeWait, State::Closed));
}

#[test]
fn a_peer_that_has_forgotten_the_connection_resets_it() {
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    let start = pair.now;
    // B restarts: a new one listens.
    pair.b = Endpoint::new(&stack, 99);
    pair.b.listen();
    pair.at(start, |pair, now| pair.a.handle_shutdown(now));
    pair.run(start + 100 * MS);
    assert!(pair.of(Side::B).all(|sent| sent.has(TcpFlags::RST)));
    assert_eq!(pair.a.state(), State::Closed);
}

#[test]
fn what_lies_beyond_a_fin_is_not_taken() {
    let mut pair = Pair::connected(&eras::windows_10(), &eras::windows_10(), 20);
    let at = |pair: &Pair, offset: u32, len, flags| tcpwhy_simulate::tcp::Segment {
        tcp: tcpwhy_wire::Tcp {
            seq: pair.a.initial_sequence().wrapping_add(1 + offset),
            ack: pair.b.initial_sequence().wrapping_add(1),
            payload_len: len,
            flags: TcpFlags(TcpFlags::ACK | flags),
            ..Default::default()
        },
        ..Default::default()
    };
    let now = pair.now;
    // A peer that goes on behind its own end, before and after saying so.
    for segment in [at(&pair, 200, 300, 0), at(&pair, 0, 250, TcpFlags::FIN), at(&pair, 100, 900, 0)] {
        pair.b.handle_segment(now, &segment);
        let readable = pair.b.readable();
        assert!(readable <= 500, "{readable}");
    }
    assert!(pair.b.is_at_end());
}

#[test]
fn unread_data_makes_closing_a_reset() {
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    pair.reads[Side::B as usize] = false;
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 100, false));
    // RFC 2525 2.17.
    pair.at(start + 30 * MS, |pair, now| pair.b.handle_close(now));
    pair.run(start + 100 * MS);
    assert!(pair.of(Side::B).last().expect("a segment").has(TcpFlags::RST));
    assert_eq!((pair.a.state(), pair.b.state()), (State::Closed, State::Closed));
}

#[test]
fn data_after_the_close_is_answered_by_a_reset() {
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    let start = pair.now;
    pair.at(start, |pair, now| pair.b.handle_close(now));
    pair.at(start + 30 * MS, |pair, now| pair.a.handle_write(now, 100, false));
    pair.run(start + 100 * MS);
    assert!(pair.of(Side::B).any(|sent| sent.has(TcpFlags::RST)));
    assert_eq!(pair.a.state(), State::Closed);
}

#[test]
fn a_reset_that_is_not_at_the_edge_is_asked_about() {
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    let next = pair.b.initial_sequence().wrapping_add(1);
    let reset = |seq| tcpwhy_simulate::tcp::Segment {
        tcp: tcpwhy_wire::Tcp { seq, flags: TcpFlags(TcpFlags::RST), ..Default::default() },
        ..Default::default()
    };
    let now = pair.now;
    pair.a.handle_segment(now, &reset(next.wrapping_add(100)));
    assert_eq!(pair.a.state(), State::Established);
    assert!(pair.a.poll_transmit().is_some_and(|ack| ack.is_pure_ack()), "RFC 5961: a challenge");
    pair.a.handle_segment(now, &reset(next.wrapping_sub(1)));
    assert_eq!(pair.a.state(), State::Established);
    assert!(pair.a.poll_transmit().is_none(), "outside of the window it is nothing");
    pair.a.handle_segment(now, &reset(next));
    assert_eq!(pair.a.state(), State::Closed);
}

#[test]
fn a_peer_that_is_gone_is_given_up() {
    let mut stack = eras::windows_10();
    stack.sender.timeout.retries = 3;
    let mut ends = tcpwhy_simulate::link::Ends::round_trip(std::time::Duration::from_millis(20));
    // Everything of A after its handshake is lost.
    ends.up.drops = (3..1000).map(tcpwhy_simulate::link::Drop::Packet).collect();
    let mut pair = Pair::new(&stack, &stack, &ends, 3);
    pair.a.connect(0);
    pair.at(30 * MS, |pair, now| pair.a.handle_write(now, 100, false));
    pair.run(120_000 * MS);
    // The probe for a lost tail, then three timeouts; no more.
    assert_eq!(pair.data(Side::A, 0).len(), 1 + 1 + 3);
    assert_eq!((pair.a.state(), pair.a.poll_at()), (State::Closed, None));
}
