//! Held ACKs: each rule, and what is next to it and must not be held.
//!
//! The receiver is the client: data travels downward, its ACKs upward, and the link delays neither.

use std::time::Duration;

use tcpwhy_simulate::link::{
    AckHold, Direction, Drop, Ends, EventKind, Link, Segment, Settings, Successor, Tcp,
};

use crate::build::{MS, MSS, ack, arrivals, data, kinds, segment, up};

struct Client {
    link: Link<&'static str>,
    /// What has come out at the server, and when it was due.
    seen: Vec<(u64, &'static str)>,
}

impl Client {
    /// A client whose SYN and the server's have announced [`MSS`], with the numbers 0 and 0.
    fn new(hold: AckHold) -> Self {
        Self::on(&up(Settings { hold_acks: Some(hold), ..Settings::default() }))
    }

    fn on(ends: &Ends) -> Self {
        let mut client = Self { link: Link::new(ends, 1), seen: Vec::new() };
        let syn = Tcp { syn: true, mss: Some(MSS as u16), ..Tcp::default() };
        client.sends(0, segment(syn), "SYN");
        client.gets(0, segment(Tcp { ack_flag: true, ack: 1, ..syn }));
        client.sends(0, ack(1), "handshake");
        assert_eq!(client.sees(0), ["SYN", "handshake"], "neither is held");
        client
    }

    fn delay() -> Self {
        Self::new(AckHold::Delay(Duration::from_millis(200)))
    }

    fn hole_filling() -> Self {
        Self::new(AckHold::HoleFilling(Duration::from_millis(200)))
    }

    /// A segment is delivered to the client.
    fn gets(&mut self, now: u64, segment: Segment) {
        self.link.handle_packet(now, Direction::Down, segment, "down");
        assert_eq!(self.poll(now), 1);
    }

    /// Delivers what is due; says how many segments the client got.
    fn poll(&mut self, now: u64) -> usize {
        let mut got = 0;
        while let Some(delivery) = self.link.poll_deliver(now) {
            match delivery.direction {
                Direction::Up => self.seen.push((delivery.due, delivery.packet)),
                Direction::Down => got += 1,
            }
        }
        got
    }

    fn sends(&mut self, now: u64, segment: Segment, name: &'static str) {
        self.link.handle_packet(now, Direction::Up, segment, name);
    }

    /// What has come out of the link at the server until `now`, since it was last asked.
    fn sees(&mut self, now: u64) -> Vec<&'static str> {
        self.poll(now);
        self.seen.drain(..).map(|(_, name)| name).collect()
    }

    /// What happened to the client's packets after the two of the handshake.
    fn log(&mut self) -> Vec<(u64, EventKind)> {
        kinds(&mut self.link).into_iter().map(|(number, kind)| (number - 2, kind)).collect()
    }
}

fn superseded(after: u64, by: Successor) -> EventKind {
    EventKind::Superseded { after, by }
}

fn held(until: u64) -> EventKind {
    EventKind::Held { until }
}

#[test]
fn the_ack_of_a_lone_segment_waits_for_the_timer() {
    let mut client = Client::delay();
    client.gets(10 * MS, data(1, 100));
    client.sends(11 * MS, ack(101), "ack");
    assert_eq!(client.sees(11 * MS), [""; 0]);
    assert_eq!(client.link.poll_at(), Some(211 * MS));
    assert_eq!(client.sees(211 * MS - 1), [""; 0]);
    // The caller is late; the ACK's time is not.
    client.poll(250 * MS);
    assert_eq!(client.seen, [(211 * MS, "ack")]);
    assert_eq!(client.log(), [(1, held(211 * MS)), (1, EventKind::Released(200 * MS))]);
}

#[test]
fn the_ack_of_a_second_full_sized_segment_goes_at_once() {
    let mut client = Client::delay();
    client.gets(0, data(1, MSS));
    client.sends(0, ack(1 + MSS), "first");
    client.gets(5, data(1 + MSS, MSS));
    client.sends(5, ack(1 + 2 * MSS), "second");
    assert_eq!(client.sees(5), ["second"]);
    assert_eq!(client.log(), [(1, held(200 * MS)), (1, superseded(5, Successor::Ack))]);
    assert_eq!(client.link.poll_at(), None);
    // The count begins anew: a third is a lone one again.
    client.gets(6, data(1 + 2 * MSS, MSS));
    client.sends(6, ack(1 + 3 * MSS), "third");
    assert_eq!(client.sees(6), [""; 0]);
}

#[test]
fn a_second_segment_that_is_not_full_does_not_count() {
    let mut client = Client::delay();
    client.gets(0, data(1, MSS));
    client.sends(0, ack(1 + MSS), "first");
    client.gets(5, data(1 + MSS, MSS - 1));
    client.sends(5, ack(2 * MSS), "second");
    assert_eq!(client.sees(200 * MS - 1), [""; 0]);
    // It goes in the first one's place, at the first one's time.
    assert_eq!(client.sees(200 * MS), ["second"]);
    let expected = [
        (1, held(200 * MS)),
        (1, superseded(5, Successor::HeldAck)),
        (2, held(200 * MS)),
        (2, EventKind::Released(200 * MS - 5)),
    ];
    assert_eq!(client.log(), expected);
}

#[test]
fn options_come_off_a_full_sized_segment() {
    let with_options =
        |seq, payload| segment(Tcp { seq, payload, options: 12, ack_flag: true, ..Tcp::default() });
    let mut client = Client::delay();
    client.gets(0, with_options(1, MSS - 12));
    client.gets(0, with_options(MSS - 11, MSS - 12));
    client.sends(0, ack(1 + 2 * (MSS - 12)), "full");
    assert_eq!(client.sees(0), ["full"]);
}

#[test]
fn segments_count_when_they_are_acknowledged_not_when_they_come() {
    // Both are there before the host gets to its first ACK, which an old receiver would not have sent.
    let mut client = Client::delay();
    client.gets(0, data(1, MSS));
    client.gets(0, data(1 + MSS, MSS));
    client.sends(1, ack(1 + MSS), "first");
    client.sends(2, ack(1 + 2 * MSS), "second");
    assert_eq!(client.sees(2), ["second"]);
}

#[test]
fn one_ack_for_a_segment_that_offload_left_whole_goes_at_once() {
    let mut client = Client::delay();
    client.gets(0, data(1, 2 * MSS));
    client.sends(0, ack(1 + 2 * MSS), "both");
    assert_eq!(client.sees(0), ["both"]);
}

#[test]
fn data_takes_the_held_ack_along() {
    let mut client = Client::delay();
    client.gets(0, data(1, 100));
    client.sends(0, ack(101), "ack");
    let reply = segment(Tcp { seq: 1, ack: 101, payload: 5, ack_flag: true, ..Tcp::default() });
    client.sends(50 * MS, reply, "reply");
    assert_eq!(client.sees(u64::MAX), ["reply"]);
    assert_eq!(client.log(), [(1, held(200 * MS)), (1, superseded(50 * MS, Successor::Segment))]);
}

#[test]
fn a_reset_and_a_fin_take_it_along_too() {
    for flags in
        [Tcp { rst: true, ..Tcp::default() }, Tcp { fin: true, ack: 101, ack_flag: true, ..Tcp::default() }]
    {
        let mut client = Client::delay();
        client.gets(0, data(1, 100));
        client.sends(0, ack(101), "ack");
        client.sends(1, segment(flags), "end");
        assert_eq!(client.sees(u64::MAX), ["end"]);
    }
}

#[test]
fn data_that_acknowledges_less_leaves_the_held_ack() {
    let mut client = Client::delay();
    client.gets(0, data(1, 100));
    client.sends(0, ack(101), "ack");
    client.sends(1, segment(Tcp { seq: 1, ack: 1, payload: 5, ack_flag: true, ..Tcp::default() }), "older");
    assert_eq!(client.sees(1), ["older"]);
    assert_eq!(client.sees(200 * MS), ["ack"]);
}

#[test]
fn a_duplicate_ack_and_a_window_update_go_at_once() {
    let update = segment(Tcp { ack: 101, window: 9, ack_flag: true, ..Tcp::default() });
    for (provoked_by, same) in [(Some(data(500, 100)), ack(101)), (None, update)] {
        let mut client = Client::delay();
        client.gets(0, data(1, 100));
        client.sends(0, ack(101), "held");
        if let Some(out_of_order) = provoked_by {
            client.gets(1, out_of_order);
        }
        client.sends(1, same, "same");
        client.sends(1, same, "again");
        assert_eq!(client.sees(u64::MAX), ["same", "again"]);
        assert_eq!(client.log(), [(1, held(200 * MS)), (1, superseded(1, Successor::SameAck))]);
    }
}

#[test]
fn the_ack_of_a_fin_goes_at_once() {
    let mut client = Client::delay();
    client.gets(0, segment(Tcp { seq: 1, payload: 10, fin: true, ack_flag: true, ..Tcp::default() }));
    client.sends(0, ack(12), "ack");
    assert_eq!(client.sees(0), ["ack"]);
}

#[test]
fn a_delayed_ack_does_not_wait_where_a_hole_is_filled() {
    let mut client = Client::delay();
    client.gets(0, data(101, 100));
    client.sends(0, ack(1), "duplicate");
    client.gets(1, data(1, 100));
    client.sends(1, ack(201), "filled");
    assert_eq!(client.sees(1), ["duplicate", "filled"]);
}

#[test]
fn data_that_is_lost_before_the_receiver_is_not_counted() {
    let down = Settings { drops: vec![Drop::Data(2)], ..Settings::default() };
    let hold_acks = Some(AckHold::Delay(Duration::from_millis(200)));
    let mut client = Client::on(&Ends { up: Settings { hold_acks, ..Settings::default() }, down });
    client.gets(0, data(1, MSS));
    client.sends(0, ack(1 + MSS), "first");
    client.link.handle_packet(1, Direction::Down, data(1 + MSS, MSS), "lost");
    assert_eq!(client.sees(200 * MS), ["first"]);
}

#[test]
fn a_heartbeat_ticks_on_its_own() {
    let mut client = Client::new(AckHold::Heartbeat(Duration::from_millis(200)));
    let mut ticks = Vec::new();
    for n in 0..50 {
        let at = u64::from(n) * 1_030 * MS;
        client.gets(at, data(1 + n, 1));
        client.sends(at, ack(2 + n), "ack");
        ticks.push(client.link.poll_at().unwrap());
        let wait = ticks[n as usize] - at;
        assert!((1..=200 * MS).contains(&wait), "{wait}");
        assert_eq!(client.sees(ticks[n as usize]), ["ack"]);
    }
    // All are of the same timer, and the waits are spread: 1030 ms are five ticks and 30 ms.
    assert!(ticks.iter().all(|tick| tick % (200 * MS) == ticks[0] % (200 * MS)));
    let waits = ticks.iter().enumerate().map(|(n, tick)| tick - n as u64 * 1_030 * MS);
    assert!(waits.clone().min().unwrap() < 30 * MS && waits.max().unwrap() > 170 * MS);
}

#[test]
fn two_ticks_are_two_acks_for_a_game_of_small_updates() {
    // Updates every 100 ms, each ACKed at once by the host: an old receiver sends an ACK every 200 ms at most.
    let mut client = Client::new(AckHold::Heartbeat(Duration::from_millis(200)));
    for n in 0..100 {
        let at = u64::from(n) * 100 * MS;
        client.gets(at, data(1 + 12 * n, 12));
        client.sends(at, ack(13 + 12 * n), "ack");
    }
    let passed = client.sees(u64::MAX).len();
    assert!((49..=51).contains(&passed), "{passed}");
}

#[test]
fn hole_filling_holds_the_ack_of_a_filled_hole() {
    let mut client = Client::hole_filling();
    client.gets(0, data(1, MSS));
    client.sends(0, ack(1 + MSS), "in order");
    client.gets(1, data(1 + 2 * MSS, MSS));
    client.sends(1, ack(1 + MSS), "duplicate");
    assert_eq!(client.sees(1), ["in order", "duplicate"]);
    client.gets(2, data(1 + MSS, MSS));
    client.sends(2, ack(1 + 3 * MSS), "filled");
    assert_eq!(client.sees(200 * MS + 1), [""; 0]);
    assert_eq!(client.sees(200 * MS + 2), ["filled"]);
    assert_eq!(client.log(), [(3, held(200 * MS + 2)), (3, EventKind::Released(200 * MS))]);
    // The hole is gone: what follows is in order.
    client.gets(300 * MS, data(1 + 3 * MSS, MSS));
    client.sends(300 * MS, ack(1 + 4 * MSS), "after");
    assert_eq!(client.sees(300 * MS), ["after"]);
}

/// Segments 2, 4 and 6 are lost, 1, 3, 5 and 7 are there, and all ACKs of them have passed.
fn with_three_holes() -> Client {
    let mut client = Client::hole_filling();
    for n in [0, 2, 4, 6] {
        client.gets(0, data(1 + n * MSS, MSS));
        client.sends(0, ack(1 + MSS), "ack");
    }
    assert_eq!(client.sees(0).len(), 4);
    client
}

#[test]
fn the_ack_of_a_second_segment_that_fills_goes_at_once() {
    let mut client = with_three_holes();
    client.gets(1, data(1 + MSS, MSS));
    client.sends(1, ack(1 + 3 * MSS), "first hole");
    client.gets(2, data(1 + 3 * MSS, MSS));
    client.sends(2, ack(1 + 5 * MSS), "second hole");
    assert_eq!(client.sees(2), ["second hole"]);
    client.gets(3, data(1 + 5 * MSS, MSS));
    client.sends(3, ack(1 + 7 * MSS), "third hole");
    assert_eq!(client.sees(3), [""; 0]);
}

#[test]
fn a_duplicate_ack_ends_the_wait_for_a_filled_hole() {
    let mut client = with_three_holes();
    client.gets(1, data(1 + MSS, MSS));
    client.sends(1, ack(1 + 3 * MSS), "first hole");
    client.gets(2, data(1 + 7 * MSS, MSS));
    client.sends(2, ack(1 + 3 * MSS), "duplicate");
    assert_eq!(client.sees(2), ["duplicate"]);
    assert_eq!(client.log(), [(5, held(200 * MS + 1)), (5, superseded(1, Successor::SameAck))]);
}

#[test]
fn without_a_hole_hole_filling_holds_nothing() {
    let mut client = Client::hole_filling();
    for n in 0..20 {
        client.gets(0, data(1 + n * 100, 100));
        client.sends(0, ack(101 + n * 100), "ack");
    }
    assert_eq!(client.sees(0).len(), 20);
}

#[test]
fn sequence_numbers_wrap() {
    let hold = AckHold::Delay(Duration::from_millis(200));
    let mut link = Link::new(&up(Settings { hold_acks: Some(hold), ..Settings::default() }), 1);
    let start = u32::MAX - 500;
    let syn = Tcp { syn: true, seq: start, mss: Some(1_000), ..Tcp::default() };
    link.handle_packet(0, Direction::Down, segment(syn), "SYN");
    for n in 0..2 {
        link.handle_packet(0, Direction::Down, data(start.wrapping_add(1 + n * 1_000), 1_000), "data");
    }
    assert_eq!(arrivals(&mut link).len(), 3);
    link.handle_packet(0, Direction::Up, ack(start.wrapping_add(1_001)), "lone");
    assert_eq!(link.poll_deliver(0), None);
    link.handle_packet(0, Direction::Up, ack(start.wrapping_add(2_001)), "second");
    assert_eq!(link.poll_deliver(0).map(|delivery| delivery.packet), Some("second"));
}

#[test]
fn connections_do_not_meet() {
    let other = |segment: Segment| {
        let tcp = segment.tcp.map(|tcp| Tcp { flow: 8, ..tcp });
        Segment { tcp, ..segment }
    };
    let mut client = Client::delay();
    client.gets(0, data(1, 100));
    client.sends(0, ack(101), "held");
    client.gets(1, other(data(1, 100)));
    client.sends(1, other(ack(101)), "held too");
    client.sends(2, other(ack(101)), "duplicate");
    assert_eq!(client.sees(2), ["duplicate"]);
    assert_eq!(client.sees(200 * MS), ["held"]);
}

#[test]
fn a_flood_of_connections_loses_no_ack() {
    let mut client = Client::delay();
    client.gets(0, data(1, 100));
    client.sends(0, ack(101), "held");
    for flow in 100..20_000 {
        let tcp = Tcp { flow, seq: 1, payload: 1, ack_flag: true, ..Tcp::default() };
        client.gets(1, Segment { len: 41, ecn_capable: false, tcp: Some(tcp) });
    }
    assert_eq!(client.sees(200 * MS), ["held"]);
}

#[test]
fn a_connection_is_remembered_beside_some_thousands() {
    let mut client = Client::delay();
    client.gets(0, data(1, 100));
    for flow in 100..6_000 {
        let tcp = Tcp { flow, seq: 1, payload: 1, ack_flag: true, ..Tcp::default() };
        client.gets(1, Segment { len: 41, ecn_capable: false, tcp: Some(tcp) });
    }
    client.sends(1, ack(101), "held");
    assert_eq!(client.sees(200 * MS), [""; 0]);
    assert_eq!(client.sees(200 * MS + 1), ["held"]);
}
