//! Delay, rate, queue, loss, marks, order.

use std::time::Duration;

use tcpwhy_simulate::link::{Direction, Drop, Ends, EventKind, Link, Loss, Queue, Segment, Settings, Tcp};

use crate::build::{MS, arrivals, data, drain, kinds, packet, segment, send, up};

#[test]
fn without_settings_packets_arrive_as_they_enter() {
    let mut link = Link::new(&Ends::default(), 1);
    send(&mut link, 5, packet(100), 'a');
    link.handle_packet(5, Direction::Down, packet(100), 'b');
    assert_eq!(link.poll_at(), Some(5));
    let first = link.poll_deliver(5).unwrap();
    assert_eq!((first.direction, first.due, first.mark_ce, first.packet), (Direction::Up, 5, false, 'a'));
    assert_eq!(link.poll_deliver(5).map(|second| second.packet), Some('b'));
    assert_eq!((link.poll_deliver(u64::MAX), link.poll_at(), link.poll_event()), (None, None, None));
}

#[test]
fn each_direction_takes_half_a_round_trip() {
    let mut link = Link::new(&Ends::round_trip(Duration::from_millis(20)), 1);
    send(&mut link, 0, packet(100), 'a');
    link.handle_packet(3 * MS, Direction::Down, packet(100), 'b');
    assert_eq!(arrivals(&mut link), [(10 * MS, 'a'), (13 * MS, 'b')]);
}

#[test]
fn a_train_takes_its_bits_over_the_rate_to_the_nanosecond() {
    // 700 bytes at 440 kbit/s take 12,727,272.72… ns: the fractions must not get lost.
    let rate = Some(440_000);
    let mut link = Link::new(&up(Settings { rate, ..Settings::default() }), 1);
    for n in 1..=1_000 {
        send(&mut link, 0, packet(700), n);
    }
    for (due, n) in arrivals(&mut link) {
        assert_eq!(due, n * 700 * 8 * 1_000_000_000 / 440_000);
    }
}

#[test]
fn an_idle_link_begins_anew() {
    let settings = Settings { rate: Some(8_000_000), delay: Duration::from_millis(1), ..Settings::default() };
    let mut link = Link::new(&up(settings), 1);
    send(&mut link, 0, packet(1_000), 'a');
    send(&mut link, MS / 2, packet(1_000), 'b');
    send(&mut link, 9 * MS, packet(1_000), 'c');
    assert_eq!(arrivals(&mut link), [(2 * MS, 'a'), (3 * MS, 'b'), (11 * MS, 'c')]);
}

#[test]
fn no_fraction_is_left_over_from_an_earlier_train() {
    // A byte at 7 Mbit/s takes 1142.857 ns.
    let mut link = Link::new(&up(Settings { rate: Some(7_000_000), ..Settings::default() }), 1);
    send(&mut link, 0, packet(1), 'a');
    send(&mut link, 10_000, packet(1), 'b');
    assert_eq!(arrivals(&mut link), [(1_142, 'a'), (11_142, 'b')]);
}

/// A packet of 1,000 bytes takes a millisecond.
fn slow(queue: Queue) -> Settings {
    Settings { rate: Some(8_000_000), queue, ..Settings::default() }
}

const FULL: EventKind = EventKind::Dropped(Loss::QueueFull);

#[test]
fn a_queue_of_packets_does_not_count_the_one_being_sent() {
    let mut link = Link::new(&up(slow(Queue::Packets(2))), 1);
    for name in 1..=4 {
        send(&mut link, 0, packet(1_000), name);
    }
    // At 1 ms the first has left and the second is being sent: there is room for one.
    send(&mut link, MS, packet(1_000), 5);
    send(&mut link, MS, packet(1_000), 6);
    assert_eq!(kinds(&mut link), [(4, FULL), (6, FULL)]);
    assert_eq!(arrivals(&mut link), [(MS, 1), (2 * MS, 2), (3 * MS, 3), (4 * MS, 5)]);
}

#[test]
fn a_queue_of_bytes_takes_what_fits() {
    let mut link = Link::new(&up(slow(Queue::Bytes(1_500))), 1);
    for (name, len) in [(1, 1_000), (2, 1_000), (3, 501), (4, 500)] {
        send(&mut link, 0, packet(len), name);
    }
    assert_eq!(kinds(&mut link), [(3, FULL)]);
    assert_eq!(arrivals(&mut link), [(MS, 1), (2 * MS, 2), (2 * MS + MS / 2, 4)]);
}

#[test]
fn a_link_without_a_queue_sends_what_finds_it_idle() {
    let mut link = Link::new(&up(slow(Queue::Packets(0))), 1);
    for (at, name) in [(0, 'a'), (MS - 1, 'b'), (MS, 'c')] {
        send(&mut link, at, packet(1_000), name);
    }
    assert_eq!(arrivals(&mut link), [(MS, 'a'), (2 * MS, 'c')]);
}

/// Which of eight TCP segments a drop takes: SYN, data, ACK, data with PSH, twice, the second time without SYN.
fn taken_by(drop: Drop) -> Vec<u64> {
    let mut link = Link::new(&up(Settings { drops: vec![drop], ..Settings::default() }), 1);
    let syn = segment(Tcp { syn: true, ..Tcp::default() });
    let ack = segment(Tcp { ack_flag: true, psh: true, ..Tcp::default() });
    let tail = segment(Tcp { psh: true, payload: 9, ..Tcp::default() });
    for each in [syn, data(1, 100), ack, tail, syn, data(1, 100), packet(50), tail] {
        send(&mut link, 0, each, ());
    }
    let dropped = EventKind::Dropped(Loss::Planned(drop));
    kinds(&mut link).into_iter().inspect(|(_, kind)| assert_eq!(*kind, dropped)).map(|(n, _)| n).collect()
}

#[test]
fn drops_by_plan() {
    assert_eq!(taken_by(Drop::Packet(7)), [7]);
    assert_eq!(taken_by(Drop::Data(1)), [2]);
    assert_eq!(taken_by(Drop::Data(2)), [4]);
    // A retransmission counts anew, and is not the segment that it repeats.
    assert_eq!(taken_by(Drop::Data(3)), [6]);
    assert_eq!(taken_by(Drop::Tail(2)), [8]);
    assert_eq!(taken_by(Drop::Syn(2)), [5]);
    assert_eq!(taken_by(Drop::Syn(3)), []);
    assert_eq!(taken_by(Drop::Packet(0)), []);
    // The byte's first segment, once.
    assert_eq!(taken_by(Drop::Byte(100)), [2]);
    assert_eq!(taken_by(Drop::Byte(101)), []);
}

#[test]
fn a_byte_that_is_listed_twice_is_lost_twice() {
    let drops = vec![Drop::Byte(150), Drop::Byte(150)];
    let mut link = Link::new(&up(Settings { drops, ..Settings::default() }), 1);
    // The SYN has u32::MAX - 49: byte 150 is number 100, behind the wrap.
    let syn = segment(Tcp { syn: true, seq: u32::MAX - 49, ..Tcp::default() });
    for (n, each) in [syn, data(0, 100), data(100, 100), data(90, 20), data(100, 1)].into_iter().enumerate() {
        send(&mut link, 0, each, n);
    }
    assert_eq!(arrivals(&mut link), [(0, 0), (0, 1), (0, 4)]);
}

#[test]
fn a_plan_does_not_count_the_other_direction() {
    let mut link = Link::new(&up(Settings { drops: vec![Drop::Data(2)], ..Settings::default() }), 1);
    send(&mut link, 0, data(1, 10), 'a');
    link.handle_packet(0, Direction::Down, data(1, 10), 'b');
    send(&mut link, 0, data(11, 10), 'c');
    assert_eq!(arrivals(&mut link), [(0, 'a'), (0, 'b')]);
}

#[test]
fn only_ecn_capable_packets_that_find_a_queue_are_marked() {
    let mut link = Link::new(&up(Settings { mark_above: Some(2), ..slow(Queue::Unlimited) }), 1);
    let capable = Segment { ecn_capable: true, ..packet(1_000) };
    for each in [capable, capable, capable, capable, packet(1_000), capable] {
        send(&mut link, 0, each, ());
    }
    assert_eq!(kinds(&mut link), [(4, EventKind::Marked), (6, EventKind::Marked)]);
    let marks: Vec<bool> = drain(&mut link).iter().map(|delivery| delivery.mark_ce).collect();
    assert_eq!(marks, [false, false, false, true, false, true]);
}

#[test]
fn an_overtaken_packet_arrives_later_and_holds_nobody_up() {
    let settings = Settings {
        reorder: 0.1,
        reorder_by: Duration::from_millis(5),
        delay: Duration::from_millis(1),
        ..Settings::default()
    };
    let mut link = Link::new(&up(settings), 3);
    for n in 0..1_000 {
        send(&mut link, n * MS, packet(100), n);
    }
    let late: Vec<u64> = kinds(&mut link).iter().map(|(number, _)| number - 1).collect();
    assert!((50..150).contains(&late.len()), "about a tenth: {}", late.len());
    for (due, n) in arrivals(&mut link) {
        assert_eq!(due, (n + 1 + if late.contains(&n) { 5 } else { 0 }) * MS);
    }
}

#[test]
fn shares_are_kept() {
    let settings = Settings { loss: 0.2, duplicate: 0.1, ..Settings::default() };
    let mut link = Link::new(&up(settings), 5);
    for n in 0..10_000 {
        send(&mut link, n, packet(100), n);
    }
    let happened = kinds(&mut link);
    let count = |kind| happened.iter().filter(|(_, other)| *other == kind).count();
    let (lost, twice) = (count(EventKind::Dropped(Loss::Random)), count(EventKind::Duplicated));
    // Five standard deviations of a binomial distribution: 40 and 27.
    assert!((1_800..=2_200).contains(&lost), "{lost}");
    assert!((660..=940).contains(&twice), "{twice}");
    assert_eq!(arrivals(&mut link).len(), 10_000 - lost + twice);
}

#[test]
fn a_change_of_one_setting_leaves_the_luck_of_the_others() {
    let lost = |settings: Settings, other: bool| {
        let mut link = Link::new(&up(settings), 9);
        for n in 0..1_000 {
            send(&mut link, n, packet(100), ());
            if other {
                link.handle_packet(n, Direction::Down, packet(100), ());
            }
        }
        let lost = |(_, kind): &(u64, EventKind)| *kind == EventKind::Dropped(Loss::Random);
        kinds(&mut link).into_iter().filter(lost).collect::<Vec<_>>()
    };
    let plain = Settings { loss: 0.1, ..Settings::default() };
    let jitter = Settings { jitter: Duration::from_millis(3), duplicate: 0.5, ..plain.clone() };
    assert!(!lost(plain.clone(), false).is_empty());
    assert_eq!(lost(plain.clone(), false), lost(jitter, false));
    assert_eq!(lost(plain.clone(), false), lost(plain, true));
}

#[test]
fn settings_that_make_no_sense_do_no_harm() {
    let settings = Settings {
        rate: Some(0),
        loss: f64::NAN,
        reorder: -1.0,
        duplicate: 7.0,
        delay: Duration::MAX,
        jitter: Duration::MAX,
        ..Settings::default()
    };
    let mut link = Link::new(&up(settings), 1);
    for n in 0..100 {
        send(&mut link, u64::MAX - 100 + n, packet(usize::MAX), n);
    }
    assert_eq!(arrivals(&mut link).len(), 200);
}

#[test]
fn a_clock_that_goes_back_stands_still() {
    let mut link = Link::new(&up(slow(Queue::Unlimited)), 1);
    send(&mut link, 5 * MS, packet(1_000), 'a');
    send(&mut link, MS, packet(1_000), 'b');
    assert_eq!(arrivals(&mut link), [(6 * MS, 'a'), (7 * MS, 'b')]);
}

#[test]
fn events_that_nobody_asks_for_take_bounded_memory() {
    let mut link = Link::new(&up(Settings { loss: 1.0, ..Settings::default() }), 1);
    for n in 0..70_000 {
        send(&mut link, n, packet(100), ());
    }
    assert_eq!(link.lost_events(), 70_000 - 65_536);
    assert_eq!(link.poll_event().map(|event| event.number), Some(70_000 - 65_536 + 1));
}
