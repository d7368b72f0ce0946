//! What holds for every link, whatever its settings and its packets.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use tcpwhy_simulate::link::{
    AckHold, Delivery, Direction, Drop, Ends, Event, EventKind, Link, Queue, Segment, Settings, Tcp,
};

use crate::build::{drain, events};

/// What enters: how long after the one before, which way, what.
type Entry = (u64, Direction, Segment);

prop_compose! {
    fn settings()(
        (delay, jitter, reorder_by) in (0..5_000_u64, 0..5_000_u64, 0..5_000_u64),
        rate in prop::option::of(1_000..10_000_000_000_u64),
        queue in prop_oneof![
            Just(Queue::Unlimited),
            (0..8_usize).prop_map(Queue::Packets),
            (0..9_000_usize).prop_map(Queue::Bytes),
        ],
        (loss, reorder, duplicate) in (0.0..0.3, 0.0..0.3, 0.0..0.3),
        drops in prop::collection::vec(
            prop_oneof![(0..9_u64).prop_map(Drop::Packet), (0..9_u64).prop_map(Drop::Data)], 0..3),
        mark_above in prop::option::of(0..4_usize),
        hold_acks in prop::option::of((0..3_usize, 0..9_000_u64).prop_map(|(kind, us)| {
            let time = Duration::from_micros(us);
            [AckHold::Heartbeat(time), AckHold::Delay(time), AckHold::HoleFilling(time)][kind]
        })),
    ) -> Settings {
        let us = Duration::from_micros;
        let (delay, jitter, reorder_by) = (us(delay), us(jitter), us(reorder_by));
        Settings { delay, jitter, rate, queue, loss, drops, reorder, reorder_by, duplicate, mark_above, hold_acks }
    }
}

prop_compose! {
    fn ends()(up in settings(), down in settings()) -> Ends {
        Ends { up, down }
    }
}

prop_compose! {
    /// Segments of two connections whose numbers are close, so that they meet.
    fn entry()(
        wait in prop_oneof![Just(0), 0..3_000_000_u64],
        upward: bool,
        ecn_capable: bool,
        is_tcp in prop::bool::weighted(0.9),
        (flow, seq, ack) in (0..2_u64, 0..8_u32, 0..8_u32),
        payload in prop_oneof![Just(0), Just(0), Just(700), Just(1_400)],
        flags in prop::array::uniform4(prop::bool::weighted(0.05)),
        ack_flag in prop::bool::weighted(0.95),
    ) -> Entry {
        let [syn, fin, rst, psh] = flags;
        let (seq, ack) = (seq * 700, ack * 700);
        let mss = syn.then_some(1_400);
        let tcp = Tcp { flow, seq, ack, payload, mss, syn, fin, rst, psh, ack_flag, ..Tcp::default() };
        let segment = Segment { len: 40 + payload as usize, ecn_capable, tcp: is_tcp.then_some(tcp) };
        (wait, if upward { Direction::Up } else { Direction::Down }, segment)
    }
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec(entry(), 0..120)
}

/// A packet's direction and its number in it.
type Name = (bool, u64);

/// Sends all entries through a link, polls it whenever it wants to be, and gives what came out.
fn run(ends: &Ends, seed: u64, entries: &[Entry]) -> (Vec<Delivery<Name>>, Vec<Event>) {
    let mut link = Link::new(ends, seed);
    let (mut now, mut numbers, mut arrived) = (0, [0, 0], Vec::new());
    for (wait, direction, segment) in entries {
        now += wait;
        while let Some(at) = link.poll_at().filter(|at| *at <= now) {
            while let Some(delivery) = link.poll_deliver(at) {
                assert_eq!(delivery.due, at, "a link that is polled in time delivers in time");
                arrived.push(delivery);
            }
            assert!(link.poll_at().is_none_or(|next| next > at));
        }
        let up = *direction == Direction::Up;
        numbers[usize::from(up)] += 1;
        link.handle_packet(now, *direction, *segment, (up, numbers[usize::from(up)]));
    }
    arrived.extend(drain(&mut link));
    (arrived, events(&mut link))
}

fn name(event: &Event) -> Name {
    (event.direction == Direction::Up, event.number)
}

proptest! {
    #[test]
    fn every_packet_arrives_or_is_said_to_be_gone(ends in ends(), seed: u64, entries in entries()) {
        let (arrived, events) = run(&ends, seed, &entries);
        let mut copies = BTreeMap::<Name, i32>::new();
        for delivery in &arrived {
            *copies.entry(delivery.packet).or_default() += 1;
        }
        for event in &events {
            *copies.entry(name(event)).or_default() += match event.kind {
                EventKind::Dropped(_) | EventKind::Superseded { .. } => 1,
                EventKind::Duplicated => -1,
                _ => 0,
            };
        }
        prop_assert_eq!(copies.len(), entries.len());
        prop_assert!(copies.values().all(|copies| *copies == 1));
    }

    #[test]
    fn the_same_seed_gives_the_same(ends in ends(), seed: u64, entries in entries()) {
        prop_assert_eq!(run(&ends, seed, &entries), run(&ends, seed, &entries));
    }

    #[test]
    fn jitter_keeps_the_order(up in settings(), seed: u64, entries in entries()) {
        let up = Settings { reorder: 0.0, hold_acks: None, ..up };
        let (arrived, _) = run(&Ends { up, down: Settings::default() }, seed, &entries);
        let numbers = arrived.iter().filter(|delivery| delivery.direction == Direction::Up);
        prop_assert!(numbers.map(|delivery| delivery.packet.1).is_sorted());
    }

    #[test]
    fn what_is_held_is_let_go_in_time_or_superseded(ends in ends(), seed: u64, entries in entries()) {
        let (_, events) = run(&ends, seed, &entries);
        let mut deadlines = BTreeMap::new();
        for event in &events {
            match event.kind {
                EventKind::Held { until } => {
                    prop_assert!(until >= event.time);
                    prop_assert_eq!(deadlines.insert(name(event), until), None);
                }
                EventKind::Released(_) => {
                    prop_assert_eq!(deadlines.remove(&name(event)), Some(event.time));
                }
                EventKind::Superseded { .. } => {
                    let until = deadlines.remove(&name(event));
                    prop_assert!(until.is_some_and(|until| until >= event.time));
                }
                _ => {}
            }
        }
        prop_assert!(deadlines.is_empty());
    }

    #[test]
    fn marks_are_for_the_ecn_capable_alone(ends in ends(), seed: u64, entries in entries()) {
        let (arrived, _) = run(&ends, seed, &entries);
        for delivery in arrived.iter().filter(|delivery| delivery.mark_ce) {
            let same_way = entries.iter().filter(|entry| entry.1 == delivery.direction);
            let entry = same_way.clone().nth(delivery.packet.1 as usize - 1);
            prop_assert!(entry.is_some_and(|(_, _, segment)| segment.ecn_capable));
        }
    }

    /// A caller who is late gets everything with the times of one who is not, as long as nothing enters that
    /// depends on it.
    #[test]
    fn lateness_changes_no_due_time(ends in ends(), seed: u64, entries in entries()) {
        let enter = || {
            let mut link = Link::new(&ends, seed);
            let mut now = 0;
            for (number, (wait, direction, segment)) in entries.iter().enumerate() {
                now += wait;
                link.handle_packet(now, *direction, *segment, (false, number as u64));
            }
            link
        };
        let in_time = drain(&mut enter());
        let mut link = enter();
        let late: Vec<_> = std::iter::from_fn(|| link.poll_deliver(u64::MAX)).collect();
        prop_assert_eq!(in_time, late);
    }
}
