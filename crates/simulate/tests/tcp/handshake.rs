//! Opening: the three-way handshake, what is agreed on, crossing SYNs, refusals.

use std::time::Duration;

use tcpwhy_simulate::link::{Drop, Ends};
use tcpwhy_simulate::tcp::{EcnUse, Endpoint, Segment, Stack, State, eras};
use tcpwhy_wire::{Tcp, TcpFlags};

use crate::pair::{MS, Pair, Side};

#[test]
fn three_segments_open_a_connection() {
    let stack = eras::linux_6();
    let mut pair = Pair::new(&stack, &stack, &Ends::round_trip(Duration::from_millis(20)), 1);
    pair.a.connect(0);
    pair.run(100 * MS);
    let seen: Vec<_> =
        pair.sent.iter().map(|sent| (sent.time / MS, sent.segment.tcp.flags.0 & 0x17)).collect();
    let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
    assert_eq!(seen, [(0, syn), (10, syn | ack), (20, ack)]);
    assert_eq!((pair.a.state(), pair.b.state()), (State::Established, State::Established));
    // 1460 less the timestamps' 12.
    assert_eq!(pair.a.info().mss, 1448);
    assert_eq!(pair.a.info().smoothed_round_trip, Duration::from_millis(20));
    // RFC 6298: three times the first round trip, but Linux's 200 ms stand in for the variance.
    assert_eq!(pair.a.info().timeout, Duration::from_millis(220));
}

#[test]
fn options_are_used_where_both_offer_them() {
    let pair = Pair::connected(&eras::linux_6(), &eras::linux_2_0(), 10);
    assert_eq!(pair.a.info().mss, 1460);
    assert_eq!(pair.b.info().mss, 1460);
    let mut pair = Pair::connected(&eras::linux_6(), &eras::linux_2_1(), 10);
    assert_eq!(pair.a.info().mss, 1448);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 100, false));
    pair.run(start + 100 * MS);
    let data = pair.of(Side::A).find(|sent| sent.segment.tcp.payload_len > 0).expect("data");
    assert!(data.segment.tcp.options.timestamps.is_some());
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second_and_then_two() {
    let stack = eras::linux_6();
    let mut ends = Ends::round_trip(Duration::from_millis(20));
    ends.up.drops = vec![Drop::Syn(1), Drop::Syn(2)];
    let mut pair = Pair::new(&stack, &stack, &ends, 1);
    pair.a.connect(0);
    pair.run(4000 * MS);
    let syns: Vec<_> =
        pair.of(Side::A).filter(|sent| sent.has(TcpFlags::SYN)).map(|sent| sent.time).collect();
    // The wheel of 4 ms is 32 ms coarse for a second (250 jiffies, level 1: 8 jiffies) and 256 ms for two.
    assert_eq!(syns.len(), 3);
    assert!((1000 * MS..=1032 * MS).contains(&syns[1]), "{syns:?}");
    assert!((2000 * MS..=2300 * MS).contains(&(syns[2] - syns[1])), "{syns:?}");
    assert_eq!(pair.a.state(), State::Established);
    // Two of them lost: it begins with one segment (tcp_init_transfer).
    assert_eq!(pair.a.info().congestion_window, 1);
}

#[test]
fn after_the_last_syn_it_is_given_up() {
    let mut stack = eras::windows_10();
    stack.sender.timeout.syn_retries = 2;
    let mut ends = Ends::round_trip(Duration::from_millis(20));
    ends.up.loss = 1.0;
    let mut pair = Pair::new(&stack, &stack, &ends, 1);
    pair.a.connect(0);
    pair.run(60_000 * MS);
    // At 0, 1 and 3 s; after 4 s more nobody answers.
    let syns: Vec<_> = pair.of(Side::A).map(|sent| sent.time / MS).collect();
    assert_eq!(syns, [0, 1000, 3000]);
    assert_eq!(pair.a.state(), State::Closed);
    assert_eq!(pair.a.poll_at(), None);
}

#[test]
fn crossing_syns_make_one_connection() {
    let stack = eras::linux_6();
    let ends = Ends::round_trip(Duration::from_millis(20));
    let mut pair = Pair::new(&stack, &stack, &ends, 1);
    pair.b = Endpoint::new(&stack, 2);
    pair.a.connect(0);
    pair.b.connect(0);
    pair.run(100 * MS);
    assert_eq!((pair.a.state(), pair.b.state()), (State::Established, State::Established));
    // RFC 9293 figure 7: both answer the SYN with SYN and ACK.
    let answers = pair.sent.iter().filter(|sent| sent.has(TcpFlags::SYN | TcpFlags::ACK));
    assert_eq!(answers.count(), 2);
    let now = pair.now;
    pair.at(now, |pair, now| pair.a.handle_write(now, 5000, false));
    pair.run(now + 1000 * MS);
    assert_eq!(pair.read, [0, 5000]);
}

#[test]
fn nobody_listens_so_the_syn_is_refused() {
    let stack = eras::linux_6();
    let mut pair = Pair::new(&stack, &stack, &Ends::round_trip(Duration::from_millis(20)), 1);
    pair.b = Endpoint::new(&stack, 2);
    pair.a.connect(0);
    pair.run(100 * MS);
    let answer = pair.of(Side::B).next().expect("an answer").segment.tcp;
    assert_eq!(answer.flags.0, TcpFlags::RST | TcpFlags::ACK);
    assert_eq!(answer.ack, pair.a.initial_sequence().wrapping_add(1));
    assert_eq!(pair.a.state(), State::Closed);
}

#[test]
fn an_answer_of_another_connection_is_refused_and_not_believed() {
    let stack = eras::linux_6();
    let mut a = Endpoint::new(&stack, 1);
    a.connect(0);
    a.poll_transmit().expect("a SYN");
    let tcp = Tcp { seq: 9, ack: 77, flags: TcpFlags(TcpFlags::SYN | TcpFlags::ACK), ..Tcp::default() };
    a.handle_segment(MS, &Segment { tcp, ..Segment::default() });
    assert_eq!(a.state(), State::SynSent);
    let reset = a.poll_transmit().expect("a reset").tcp;
    assert_eq!((reset.flags.0, reset.seq), (TcpFlags::RST, 77));
}

#[test]
fn shutting_down_while_connecting_ends_it() {
    let mut a = Endpoint::new(&eras::linux_6(), 1);
    a.connect(0);
    a.handle_shutdown(MS);
    assert_eq!((a.state(), a.poll_at()), (State::Closed, None));
}

#[test]
fn ecn_is_agreed_on_where_one_asks_and_the_other_accepts() {
    let mut asks = eras::linux_6();
    asks.ecn = Some(EcnUse::Asks);
    let sends_ect = |a: &Stack, b: &Stack| {
        let mut pair = Pair::connected(a, b, 10);
        let now = pair.now;
        pair.at(now, |pair, now| pair.a.handle_write(now, 100, false));
        pair.of(Side::A).any(|sent| sent.segment.ecn == tcpwhy_simulate::tcp::Ecn::Ect0)
    };
    assert!(sends_ect(&asks, &eras::linux_6()));
    assert!(!sends_ect(&eras::linux_6(), &eras::linux_6()));
    assert!(!sends_ect(&asks, &eras::windows_10()));
}
