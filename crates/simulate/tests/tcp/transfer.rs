//! Whole transfers: every era with every other; the stories that the eras are for.

use std::time::Duration;

use tcpwhy_simulate::link::{Drop, Ends, Queue};
use tcpwhy_simulate::tcp::{HoleFilled, State, eras};

use crate::pair::{MS, Pair, Side};

const SIZE: u64 = 100_000;

#[test]
fn every_era_is_found_by_its_name() {
    for era in eras::ERAS {
        assert_eq!(eras::named(era.name), Some((era.stack)()));
    }
    assert_eq!(eras::named("linux-7"), None);
}

/// Both write 100 KB at once, block where their buffer is full, and close; returns when it was over, in ms.
fn exchange(pair: &mut Pair) -> u64 {
    let mut left = [SIZE, SIZE];
    pair.a.connect(0);
    for now in (0..).map(|ms| ms * MS) {
        pair.run(now);
        for (side, left) in left.iter_mut().enumerate() {
            let endpoint = if side == 0 { &mut pair.a } else { &mut pair.b };
            if *left > 0 && endpoint.writable() > 0 {
                *left -= endpoint.handle_write(now, *left, false);
                if *left == 0 {
                    endpoint.handle_shutdown(now);
                }
            }
        }
        let closed = |state| matches!(state, State::Closed | State::TimeWait);
        if closed(pair.a.state()) && closed(pair.b.state()) {
            return now / MS;
        }
        assert!(now < 600_000 * MS, "{:?} {:?} {:?}", pair.read, pair.a.info(), pair.b.info());
    }
    unreachable!()
}

#[test]
fn every_era_talks_to_every_other() {
    for a in eras::ERAS {
        for b in eras::ERAS {
            let mut ends = Ends::round_trip(Duration::from_millis(20));
            ends.up.rate = Some(10_000_000);
            ends.down.rate = Some(10_000_000);
            let mut pair = Pair::new(&(a.stack)(), &(b.stack)(), &ends, 3);
            let took = exchange(&mut pair);
            assert_eq!(pair.read, [SIZE, SIZE], "{} and {}", a.name, b.name);
            // 100 KB at 10 Mbit/s take 84 ms; the smallest window, 8,760 bytes a round trip, 12 of them; delayed
            // ACKs at a window of one segment some hundreds.
            assert!((84..2500).contains(&took), "{} and {}: {took} ms", a.name, b.name);
            let repeated = pair.a.info().retransmitted + pair.b.info().retransmitted;
            assert_eq!(repeated, 0, "{} and {}", a.name, b.name);
        }
    }
}

#[test]
fn every_era_mends_losses() {
    for a in eras::ERAS {
        for b in eras::ERAS {
            let mut ends = Ends::round_trip(Duration::from_millis(20));
            ends.up.drops = [5, 6, 9, 20, 40, 41].map(Drop::Data).to_vec();
            ends.down.drops = [5, 6, 9, 20, 40, 41].map(Drop::Data).to_vec();
            let mut pair = Pair::new(&(a.stack)(), &(b.stack)(), &ends, 3);
            let took = exchange(&mut pair);
            assert_eq!(pair.read, [SIZE, SIZE], "{} and {}", a.name, b.name);
            assert!(took < 20_000, "{} and {}: {took} ms", a.name, b.name);
        }
    }
}

/// The Netrek trace: updates of 12 bytes, ten a second, from Linux to Digital UNIX on one Ethernet.
#[test]
fn netrek_stutters_on_digital_unix() {
    let mut pair = Pair::connected(&eras::linux_2_0(), &eras::digital_unix(), 1);
    let start = pair.now;
    for update in 0..100 {
        pair.at(start + update * 100 * MS, |pair, now| pair.a.handle_write(now, 12, false));
    }
    pair.run(start + 11_000 * MS);
    let data = pair.data(Side::A, start);
    // "requested rate = 10 Hz, actual rate < 5 Hz": after the first, a segment of two updates every 200 ms.
    assert!((50..=53).contains(&data.len()), "{}", data.len());
    let steady = &data[3..data.len() - 3];
    assert!(steady.iter().all(|(_, len)| *len == 24), "{steady:?}");
    assert!(steady.windows(2).all(|two| (two[1].0 - two[0].0 - 200.0).abs() < 2.0));
}

/// Cardwell's transfer: 100 KB over 440 kbit/s, 22 ms, a queue that slow start overruns.
fn cardwell(hole_filled: HoleFilled, queue: usize) -> u64 {
    let mut ends = Ends::round_trip(Duration::from_millis(22));
    ends.up.rate = Some(440_000);
    ends.up.queue = Queue::Packets(queue);
    let mut b = eras::linux_2_0();
    b.receiver.hole_filled = hole_filled;
    let mut pair = Pair::new(&eras::linux_2_1(), &b, &ends, 1);
    pair.a.connect(0);
    let mut left = SIZE;
    for now in (50..).map(|ms| ms * MS) {
        pair.run(now);
        left -= pair.a.handle_write(now, left.min(pair.a.writable()), true);
        if pair.read[1] == SIZE {
            return now / MS;
        }
    }
    unreachable!()
}

#[test]
fn cardwell_waits_where_holes_are_acknowledged_late() {
    // His queue is not known; this one makes five holes at the end of slow start.
    let (late, at_once) = (cardwell(HoleFilled::Late, 15), cardwell(HoleFilled::AtOnce, 15));
    // "should have taken about 2 seconds"
    assert!((1900..3000).contains(&at_once), "{at_once} ms");
    assert!(late > at_once + 500, "{late} ms, {at_once} ms");
}

/// 1 MB over 20 Mbit/s and 100 ms. Linux 6.18 was seen to leave slow start 50 ms into its fifth round, at 245 segments,
/// and to send the last one 784 ms after its SYN.
#[test]
fn slow_start_ends_where_the_kernel_ends_it() {
    let mut ends = Ends::round_trip(Duration::from_millis(100));
    ends.up.rate = Some(20_000_000);
    let mut pair = Pair::new(&eras::linux_6(), &eras::linux_6(), &ends, 1);
    pair.a.connect(0);
    pair.at(100 * MS, |pair, now| pair.a.handle_write(now, 1_000_000, false));
    pair.run(2000 * MS);
    // The round's ACKs come a segment each, every 0.6 ms, and are a train of half a round trip at the 84th: 160 + 84.
    let threshold = pair.a.info().slow_start_threshold;
    assert!((240..=250).contains(&threshold), "{threshold}");
    let last = pair.data(Side::A, 0).last().map_or(0.0, |(at, _)| *at);
    assert!((770.0..=800.0).contains(&last), "{last}");
}
