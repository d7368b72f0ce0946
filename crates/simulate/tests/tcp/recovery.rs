//! Losses and marks: what is sent again when, and what becomes of the window.

use std::time::Duration;

use tcpwhy_simulate::link::{Drop, Ends};
use tcpwhy_simulate::tcp::{
    CongestionState, DelayedAck, EcnUse, EventKind, IdleRestart, Repair, Stack, Trigger, Wait, eras,
};
use tcpwhy_wire::TcpFlags;

use crate::pair::{MS, Pair, Side};

const ROUND_TRIP: u64 = 20;

/// A sender without timestamps (1460 a segment) and exact timers, whose window begins with 10 segments.
fn sender() -> Stack {
    let mut stack = eras::windows_10();
    stack.sender.timeout = eras::linux_6().sender.timeout;
    stack
}

/// One that acknowledges every segment.
fn receiver() -> Stack {
    let mut stack = eras::windows_10();
    stack.receiver.delayed_ack = DelayedAck::Off;
    stack
}

/// Connected over a path that loses these; `Drop::Data` counts A's data segments.
fn losing(a: &Stack, b: &Stack, drops: &[Drop]) -> (Pair, u64) {
    let mut ends = Ends::round_trip(Duration::from_millis(ROUND_TRIP));
    ends.up.drops = drops.to_vec();
    let mut pair = Pair::new(a, b, &ends, 7);
    pair.a.connect(0);
    pair.run(50 * MS);
    pair.sent.clear();
    (pair, 50 * MS)
}

/// When which repeats left, in ms, and why: numbers of segments, counted from 1.
fn repeats(pair: &mut Pair, start: u64) -> Vec<(u64, u64, Trigger)> {
    let events = std::iter::from_fn(|| pair.a.poll_event());
    let repeats = events.filter_map(|event| match event.kind {
        EventKind::Retransmitted { start: offset, trigger } => {
            Some(((event.time - start) / MS, offset / 1460 + 1, trigger))
        }
        _ => None,
    });
    repeats.collect()
}

#[test]
fn one_loss_is_mended_after_three_duplicates() {
    for repair in [Repair::Reno, Repair::NewReno, Repair::Sack] {
        for rack in [false, true] {
            let mut a = sender();
            (a.sender.repair, a.sender.rack) = (repair, rack);
            let (mut pair, start) = losing(&a, &receiver(), &[Drop::Data(2)]);
            pair.at(start, |pair, now| pair.a.handle_write(now, 14_600, false));
            pair.run(start + 1000 * MS);
            assert_eq!(repeats(&mut pair, start), [(20, 2, Trigger::FastRetransmit)], "{repair:?}");
            assert_eq!(pair.read[1], 14_600);
            // CUBIC: 717/1024 of 11 (the first ACK opened it by one) is 7.7.
            assert_eq!(pair.a.info().slow_start_threshold, 7, "{repair:?}");
        }
    }
}

#[test]
fn tahoe_begins_anew_and_the_timer_alone_takes_its_time() {
    let mut a = sender();
    a.sender.repair = Repair::Tahoe;
    let (mut pair, start) = losing(&a, &receiver(), &[Drop::Data(2)]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 14_600, false));
    pair.run(start + 20 * MS);
    assert_eq!((pair.a.info().congestion_window, pair.a.info().congestion_state), (1, CongestionState::Loss));
    a.sender.repair = Repair::TimerOnly;
    let (mut pair, start) = losing(&a, &receiver(), &[Drop::Data(2)]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 14_600, false));
    pair.run(start + 1000 * MS);
    // The first segment's ACK started the timer at 20: 20 + 200 ms.
    assert_eq!(repeats(&mut pair, start)[0], (240, 2, Trigger::Timeout));
}

#[test]
fn newreno_mends_one_hole_a_round_trip_and_sack_all_of_them() {
    let holes = [Drop::Data(2), Drop::Data(4), Drop::Data(6)];
    let fast = Trigger::FastRetransmit;
    let mut a = sender();
    (a.sender.repair, a.sender.rack, a.sender.tail_loss_probe) = (Repair::NewReno, false, false);
    let (mut pair, start) = losing(&a, &receiver(), &holes);
    pair.at(start, |pair, now| pair.a.handle_write(now, 14_600, false));
    pair.run(start + 1000 * MS);
    assert_eq!(repeats(&mut pair, start), [(20, 2, fast), (40, 4, fast), (60, 6, fast)]);
    for rack in [false, true] {
        a.sender.repair = Repair::Sack;
        a.sender.rack = rack;
        let (mut pair, start) = losing(&a, &receiver(), &holes);
        pair.at(start, |pair, now| pair.a.handle_write(now, 14_600, false));
        pair.run(start + 1000 * MS);
        assert_eq!(repeats(&mut pair, start), [(20, 2, fast), (20, 4, fast), (20, 6, fast)]);
    }
}

#[test]
fn with_a_late_receiver_each_hole_costs_its_delay_as_well() {
    // Cardwell: the receiver waits with the ACK of what fills the hole.
    let mut a = sender();
    (a.sender.repair, a.sender.rack, a.sender.tail_loss_probe) = (Repair::NewReno, false, false);
    // No PSH, so that nothing shortens its wait.
    let (mut pair, start) = losing(&a, &eras::linux_2_0(), &[Drop::Data(2), Drop::Data(4), Drop::Data(6)]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 14_600, true));
    pair.run(start + 5000 * MS);
    let times: Vec<_> = repeats(&mut pair, start).iter().map(|(at, hole, _)| (*at, *hole)).collect();
    // The wait was 330 ms at first and halved with each of the ten that came together, to 30 ms or less; hole by hole
    // it grows by half and a round trip. In jiffies of 10 ms.
    assert_eq!(times[0], (20, 2));
    assert_eq!(times.iter().map(|(_, hole)| *hole).collect::<Vec<_>>(), [2, 4, 6]);
    let gaps = [times[1].0 - times[0].0, times[2].0 - times[1].0];
    assert!(gaps[0] > 30 && gaps[1] > gaps[0] + gaps[0] / 3, "{times:?}");
}

#[test]
fn reno_needs_new_duplicates_for_every_hole() {
    let mut a = sender();
    (a.sender.repair, a.sender.rack, a.sender.tail_loss_probe) = (Repair::Reno, false, false);
    let (mut pair, start) = losing(&a, &receiver(), &[Drop::Data(2), Drop::Data(4)]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 14_600, false));
    pair.run(start + 1000 * MS);
    let repeats = repeats(&mut pair, start);
    // Everything was written: no new data brings duplicates, so that only the timer is left for the second hole. It
    // began anew with the ACK at 40.
    assert_eq!(repeats[0], (20, 2, Trigger::FastRetransmit));
    assert_eq!(repeats[1], (260, 4, Trigger::Timeout));
}

#[test]
fn timeouts_double() {
    let mut a = sender();
    a.sender.tail_loss_probe = false;
    let lost = [Drop::Data(1), Drop::Data(2), Drop::Data(3)];
    let (mut pair, start) = losing(&a, &receiver(), &lost);
    pair.at(start, |pair, now| pair.a.handle_write(now, 100, false));
    pair.run(start + 5000 * MS);
    // Linux: the round trip and 200 ms.
    let timeout = Trigger::Timeout;
    assert_eq!(repeats(&mut pair, start), [(220, 1, timeout), (660, 1, timeout), (1540, 1, timeout)]);
    // Karn: the back-off stays until something was sent once and acknowledged.
    assert_eq!(pair.a.info().timeout, Duration::from_millis(1760));
    pair.at(start + 5000 * MS, |pair, now| pair.a.handle_write(now, 100, false));
    pair.run(start + 5100 * MS);
    assert_eq!(pair.a.info().timeout, Duration::from_millis(220));
}

#[test]
fn timestamps_end_the_back_off_at_once() {
    let mut a = eras::linux_6();
    a.sender.tail_loss_probe = false;
    let (mut pair, start) = losing(&a, &eras::linux_6(), &[Drop::Data(1), Drop::Data(2)]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 100, false));
    pair.run(start + 2000 * MS);
    assert_eq!(pair.read[1], 100);
    assert_eq!(pair.a.info().backoff, 0);
    assert!(pair.a.info().timeout < Duration::from_millis(230));
}

#[test]
fn bsd_waits_for_its_second_tick() {
    let (mut pair, start) = losing(&eras::bsd_4_4(), &eras::bsd_4_4(), &[Drop::Data(1)]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 100, false));
    pair.run(start + 5000 * MS);
    // 1 s is two slow ticks; at 50 ms the first of them comes at 500.
    assert_eq!(repeats(&mut pair, 0), [(1000, 1, Trigger::Timeout)]);
}

#[test]
fn a_lost_tail_is_probed_after_two_round_trips() {
    let (mut pair, start) = losing(&sender(), &receiver(), &[Drop::Data(5)]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 5 * 1460, false));
    pair.run(start + 1000 * MS);
    // The ACK of the fourth started it, at 20: only one is out, so 2 x 20 + 200 ms, but no later than the timeout of
    // 220.
    assert_eq!(repeats(&mut pair, start), [(240, 5, Trigger::TailLossProbe)]);
    // Two lost: 2 x 20 + 2 ms after the ACK of the third; its SACK shows the other, after a quarter of a round trip
    // in which it might have been reordered.
    let (mut pair, start) = losing(&sender(), &receiver(), &[Drop::Data(4), Drop::Data(5)]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 5 * 1460, false));
    pair.run(start + 1000 * MS);
    let (probe, fast) = (Trigger::TailLossProbe, Trigger::FastRetransmit);
    assert_eq!(repeats(&mut pair, start), [(62, 5, probe), (82, 4, fast)]);
}

/// What is left of a window of 10 after a probe that was not needed: the ACK was only late.
fn window_after_a_needless_probe(reports_duplicates: bool) -> u32 {
    let mut b = receiver();
    b.receiver.dsack = reports_duplicates;
    b.receiver.delayed_ack = DelayedAck::Delay { delay: Duration::from_millis(1000) };
    let (mut pair, start) = losing(&sender(), &b, &[]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 100, false));
    pair.run(start + 500 * MS);
    assert_eq!(repeats(&mut pair, start), [(220, 1, Trigger::TailLossProbe)]);
    // Two segments, which the peer acknowledges at once.
    pair.at(start + 500 * MS, |pair, now| pair.a.handle_write(now, 2920, false));
    pair.run(start + 2000 * MS);
    pair.a.info().congestion_window
}

#[test]
fn a_needless_probe_costs_nothing_where_the_peer_reports_the_duplicate() {
    assert_eq!(window_after_a_needless_probe(true), 10);
    // Else it looks like a loss that the probe has mended (RFC 8985 7.4.2): 0.7 of it.
    assert_eq!(window_after_a_needless_probe(false), 7);
}

#[test]
fn a_repeat_that_is_lost_as_well_is_found_by_time() {
    let (mut pair, start) = losing(&sender(), &receiver(), &[Drop::Data(2), Drop::Data(11)]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 60 * 1460, false));
    pair.run(start + 1000 * MS);
    // The 11th segment that enters is the repeat or new data of the same burst; whatever it was, no timer is needed.
    let repeats = repeats(&mut pair, start);
    assert!(repeats.iter().all(|(_, _, trigger)| *trigger == Trigger::FastRetransmit), "{repeats:?}");
    assert_eq!(pair.read[1], 60 * 1460);
}

#[test]
fn proportional_reduction_ends_at_the_threshold() {
    let (mut pair, start) = losing(&sender(), &receiver(), &[Drop::Data(30)]);
    pair.at(start, |pair, now| pair.a.handle_write(now, 200 * 1460, false));
    let mut before = 0;
    while pair.a.info().congestion_state != CongestionState::Recovery {
        before = pair.a.info().congestion_window;
        let now = pair.now;
        pair.run(now + MS);
    }
    let threshold = pair.a.info().slow_start_threshold;
    assert_eq!(threshold, before * 717 / 1024);
    assert_eq!(pair.a.wait(), Wait::Recovery);
    while pair.a.info().congestion_state == CongestionState::Recovery {
        let info = pair.a.info();
        let out = info.unacknowledged - info.sacked - info.lost + info.retransmitting;
        assert!(out <= before, "{out} of {before}");
        let now = pair.now;
        pair.run(now + MS);
    }
    assert!(pair.a.info().congestion_window.abs_diff(threshold) <= 2, "{:?}", pair.a.info());
}

#[test]
fn marks_reduce_the_window_once_a_round_trip() {
    let mut a = eras::linux_6();
    a.ecn = Some(EcnUse::Asks);
    let mut ends = Ends::round_trip(Duration::from_millis(ROUND_TRIP));
    ends.up.rate = Some(10_000_000);
    ends.up.mark_above = Some(5);
    let mut pair = Pair::new(&a, &eras::linux_6(), &ends, 7);
    pair.a.connect(0);
    pair.at(50 * MS, |pair, now| pair.a.handle_write(now, 500_000, false));
    pair.run(3000 * MS);
    assert_eq!(pair.read[1], 500_000);
    let reduced: Vec<_> = std::iter::from_fn(|| pair.a.poll_event())
        .filter(|event| event.kind == EventKind::EcnReduced)
        .map(|event| event.time)
        .collect();
    assert!(reduced.len() > 1);
    assert!(reduced.windows(2).all(|two| two[1] - two[0] >= ROUND_TRIP * MS), "{reduced:?}");
    // Each is announced in the next new segment.
    let announced =
        pair.of(Side::A).filter(|sent| sent.has(TcpFlags::CWR) && !sent.has(TcpFlags::SYN)).count();
    assert_eq!(announced, reduced.len());
    assert!(pair.of(Side::A).all(|sent| sent.segment.tcp.payload_len == 0 || sent.time > 0));
    assert_eq!(pair.a.info().retransmitted, 0);
}

#[test]
fn reordering_is_undone_by_timestamps() {
    // The second segment comes 15 ms later than the ten around it: more than RACK's patience of a quarter round trip.
    let mut ends = Ends::round_trip(Duration::from_millis(ROUND_TRIP));
    ends.up.reorder_by = Duration::from_millis(15);
    ends.up.reorder = 0.2;
    let mut undone = 0;
    for seed in 0..20 {
        let mut pair = Pair::new(&eras::linux_6(), &eras::linux_6(), &ends, seed);
        pair.a.connect(0);
        pair.at(50 * MS, |pair, now| pair.a.handle_write(now, 100_000, false));
        pair.run(2000 * MS);
        assert_eq!(pair.read[1], 100_000);
        undone += std::iter::from_fn(|| pair.a.poll_event())
            .filter(|event| event.kind == EventKind::Undone)
            .count();
    }
    assert!(undone >= 10, "{undone} of 20");
}

/// Two transfers of 40 segments with 2 s between them, the second at the peer's request or not: the window when the
/// second begins, and how many segments leave at once.
fn second_burst(stack: &Stack, requested: bool) -> usize {
    let mut pair = Pair::connected(stack, &receiver(), ROUND_TRIP);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 40 * 1460, false));
    let again = start + 2000 * MS;
    if requested {
        pair.at(again - 10 * MS, |pair, now| pair.b.handle_write(now, 10, false));
    }
    pair.at(again, |pair, now| pair.a.handle_write(now, 40 * 1460, false));
    pair.data(Side::A, again).iter().filter(|(at, _)| *at == 0.0).count()
}

#[test]
fn after_an_idle_time_the_window_restarts_as_each_stack_has_it() {
    let with = |rule| {
        let mut stack = sender();
        stack.sender.idle_restart = rule;
        stack.sender.window_validation = false;
        stack
    };
    // IW10, all of it acknowledged, 20, 40 and more: the whole burst leaves.
    assert_eq!(second_burst(&with(IdleRestart::Never), false), 40);
    assert_eq!(second_burst(&with(IdleRestart::ToInitial), false), 10);
    // Nine timeouts of 220 ms: 50 / 2 / 2 ... and no less than 10.
    assert_eq!(second_burst(&with(IdleRestart::Halving), false), 10);
    assert_eq!(second_burst(&with(IdleRestart::UnlessHeard), false), 1);
    // An answer to a request is no idle sender's, by BSD's rule.
    assert_eq!(second_burst(&with(IdleRestart::UnlessHeard), true), 40);
    assert_eq!(second_burst(&with(IdleRestart::ToInitial), true), 10);
}

#[test]
fn slow_start_grows_by_acks_or_by_segments() {
    // Delayed ACKs: one for two segments.
    let grown = |byte_counting| {
        let mut a = sender();
        a.sender.byte_counting = byte_counting;
        let mut pair = Pair::connected(&a, &eras::windows_10(), ROUND_TRIP);
        let start = pair.now;
        pair.at(start, |pair, now| pair.a.handle_write(now, 100 * 1460, false));
        pair.run(start + 25 * MS);
        pair.a.info().congestion_window
    };
    // Ten segments, five ACKs.
    assert_eq!((grown(true), grown(false)), (20, 15));
}

#[test]
fn a_window_that_is_not_used_does_not_grow_where_it_is_validated() {
    let grown = |validated| {
        let mut a = sender();
        a.sender.window_validation = validated;
        let mut pair = Pair::connected(&a, &receiver(), ROUND_TRIP);
        let start = pair.now;
        for write in 0..20 {
            pair.at(start + write * 30 * MS, |pair, now| pair.a.handle_write(now, 1460, false));
        }
        pair.run(start + 1000 * MS);
        pair.a.info().congestion_window
    };
    assert_eq!((grown(true), grown(false)), (10, 30));
}
