//! When an ACK leaves: at once, after a wait, on a heartbeat, when the program reads.

use std::time::Duration;

use tcpwhy_simulate::tcp::{Buffer, DelayedAck, Segment, SocketOption, Stack, eras};
use tcpwhy_wire::{Tcp, TcpFlags};

use crate::pair::{MS, Pair, Side};

/// `count` writes of `len` bytes, `gap` ms apart; the times of B's pure ACKs, in ms since each write's arrival.
fn ack_delays(pair: &mut Pair, count: u64, len: u64, gap: u64) -> Vec<f64> {
    let start = pair.now;
    let half = 10;
    let now = start;
    pair.at(now, |pair, now| pair.a.set(now, SocketOption::NoDelay(true)));
    for write in 0..count {
        pair.at(start + write * gap * MS, |pair, now| pair.a.handle_write(now, len, false));
    }
    pair.run(start + (count * gap + 40) * MS);
    let acks = pair.acks(Side::B, start);
    acks.iter().enumerate().map(|(nth, at)| at - (nth as u64 * gap + half) as f64).collect()
}

#[test]
fn linux_acknowledges_the_first_sixteen_at_once_and_then_after_40_ms() {
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    pair.reads[Side::B as usize] = false;
    let delays = ack_delays(&mut pair, 20, 100, 60);
    // TCP_MAX_QUICKACKS: the window has room for more than 16 pairs of its first guess of a segment, 536.
    assert!(delays[..16].iter().all(|delay| *delay == 0.0), "{delays:?}");
    // 40 ms on a wheel of 4 ms.
    assert!(delays[16..].iter().all(|delay| (40.0..=44.0).contains(delay)), "{delays:?}");
    assert_eq!(delays.len(), 20);
}

#[test]
fn on_linux_a_prompt_reader_sends_the_ack_of_a_small_segment() {
    // tcp_cleanup_rbuf: a write's end was read, the buffer is empty, and nobody answers.
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    let delays = ack_delays(&mut pair, 30, 100, 60);
    assert_eq!(delays, [0.0; 30]);
}

#[test]
fn on_linux_a_conversation_needs_no_pure_acks() {
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    let start = pair.now;
    for exchange in 0..10 {
        let at = start + exchange * 20 * MS;
        pair.at(at, |pair, now| pair.a.handle_write(now, 100, false));
        pair.at(at + 10 * MS, |pair, now| pair.b.handle_write(now, 100, false));
    }
    pair.run(start + 1000 * MS);
    // Each side acknowledges the first data at once, before its program answers; from then on answers do it, and
    // the last answer waits.
    assert_eq!(pair.acks(Side::B, start), [10.0]);
    let of_a = pair.acks(Side::A, start);
    assert_eq!(of_a.len(), 2, "{of_a:?}");
    assert_eq!(of_a[0], 20.0);
    assert!((240.0..=244.0).contains(&of_a[1]), "{of_a:?}");
}

#[test]
fn after_quickack_the_conversation_is_over() {
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 20);
    let start = pair.now;
    for exchange in 0..3 {
        let at = start + exchange * 20 * MS;
        pair.at(at, |pair, now| pair.a.handle_write(now, 100, false));
        pair.at(at + 10 * MS, |pair, now| pair.b.handle_write(now, 100, false));
    }
    // 5 ms after the last answer, which would wait for 40.
    pair.at(start + 65 * MS, |pair, now| pair.a.set(now, SocketOption::QuickAck(true)));
    assert_eq!(pair.acks(Side::A, start), [20.0, 65.0]);
}

#[test]
fn linux_waits_with_the_ack_of_one_full_segment_but_not_of_two() {
    let mut stack = eras::linux_6();
    // One that grows would be told at once (tcp_grow_window).
    stack.receiver.buffer = Buffer::Fixed(65_536);
    let mut pair = Pair::connected(&stack, &stack, 20);
    ack_delays(&mut pair, 16, 100, 60);
    let start = pair.now;
    pair.sent.clear();
    // MSG_MORE: full segments, no PSH.
    pair.at(start, |pair, now| pair.a.handle_write(now, 1448, true));
    pair.at(start + 100 * MS, |pair, now| pair.a.handle_write(now, 2 * 1448, true));
    pair.run(start + 300 * MS);
    let acks = pair.acks(Side::B, start);
    assert_eq!(acks.len(), 2, "{acks:?}");
    assert!((50.0..=54.0).contains(&acks[0]), "{acks:?}");
    assert_eq!(acks[1], 110.0);
    // Where the program does not read, even two wait (__tcp_ack_snd_check: the window would shrink).
    pair.reads[Side::B as usize] = false;
    pair.at(start + 300 * MS, |pair, now| pair.a.handle_write(now, 2 * 1448, true));
    pair.run(start + 400 * MS);
    let acks = pair.acks(Side::B, start);
    assert!((350.0..=354.0).contains(&acks[2]), "{acks:?}");
}

#[test]
fn a_heartbeat_acknowledges_on_its_tick_whenever_the_data_came() {
    let mut pair = Pair::connected(&eras::linux_2_0(), &eras::digital_unix(), 20);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.set(now, SocketOption::NoDelay(true)));
    // Netrek's patched server: 12 bytes ten times a second.
    for update in 0..20 {
        pair.at(start + update * 100 * MS, |pair, now| pair.a.handle_write(now, 12, false));
    }
    pair.run(start + 2500 * MS);
    let acks = pair.acks(Side::B, start);
    // Two updates a tick, as in the trace.
    assert!((10..=11).contains(&acks.len()), "{acks:?}");
    assert!(acks.windows(2).all(|two| (two[1] - two[0] - 200.0).abs() < 1e-3), "{acks:?}");
}

#[test]
fn bsd_acknowledges_when_the_program_has_read_two_segments() {
    // No timestamps: 1460 each, six fill the window.
    let mut pair = Pair::connected(&eras::windows_10(), &eras::bsd_4_4(), 20);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 6 * 1460, false));
    pair.run(start + 15 * MS);
    assert_eq!(pair.acks(Side::B, start), [10.0; 3]);
    // With timestamps 2 x 1448 is less than 2 x 1460: every third (Brakmo and Peterson 1995).
    let mut pair = Pair::connected(&eras::linux_6(), &eras::bsd_4_4(), 20);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 6 * 1448, false));
    pair.run(start + 15 * MS);
    assert_eq!(pair.acks(Side::B, start), [10.0; 2]);
    // A program that does not read leaves it to the heartbeat.
    let mut pair = Pair::connected(&eras::windows_10(), &eras::bsd_4_4(), 20);
    pair.reads[Side::B as usize] = false;
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 4 * 1460, false));
    pair.run(start + 300 * MS);
    let acks = pair.acks(Side::B, start);
    assert_eq!(acks.len(), 1, "{acks:?}");
    assert!(acks[0] > 10.0 && acks[0] <= 210.0);
}

#[test]
fn windows_acknowledges_every_second_segment_of_any_size() {
    let stack = eras::windows_10();
    let mut pair = Pair::connected(&stack, &stack, 20);
    let start = pair.now;
    pair.at(start, |pair, now| {
        pair.a.set(now, SocketOption::NoDelay(true));
        for _ in 0..3 {
            pair.a.handle_write(now, 10, false);
        }
    });
    pair.run(start + 100 * MS);
    assert_eq!(pair.acks(Side::B, start), [10.0, 50.0]);
}

/// Linux 2.0: everything in jiffies of 10 ms.
#[test]
fn the_wait_of_linux_2_0_follows_the_gaps() {
    // A sender that does not repeat meanwhile.
    let mut sender = eras::windows_10();
    sender.sender.timeout.min = Duration::from_secs(2);
    let mut pair = Pair::connected(&sender, &eras::linux_2_0(), 20);
    let start = pair.now;
    assert_eq!(start % (10 * MS), 0);
    let full = |pair: &mut Pair, now| pair.a.handle_write(now, 1460, true);
    // The first waits for HZ/3.
    pair.at(start, full);
    // 400 ms later: 330/2 + 400 is more than HZ/2.
    pair.at(start + 400 * MS, full);
    // 100 ms after its ACK: 565/2 + 600, but PSH: HZ/50.
    pair.at(start + 1000 * MS, |pair, now| pair.a.handle_write(now, 1460, false));
    // Then, 50 ms later and no PSH: 882/2 + 50 = 491 ms, in jiffies up to the 500th.
    pair.at(start + 1050 * MS, full);
    // Two full segments do not wait.
    pair.at(start + 2000 * MS, |pair, now| pair.a.handle_write(now, 2920, true));
    pair.run(start + 3000 * MS);
    assert_eq!(pair.acks(Side::B, start), [340.0, 910.0, 1030.0, 1560.0, 2010.0]);
}

#[test]
fn linux_2_1_is_quick_at_first_and_after_small_writes() {
    let mut pair = Pair::connected(&eras::windows_10(), &eras::linux_2_1(), 20);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 1460, true));
    pair.at(start + 100 * MS, |pair, now| pair.a.handle_write(now, 100, false));
    pair.at(start + 200 * MS, |pair, now| pair.a.handle_write(now, 1460, true));
    pair.run(start + 1000 * MS);
    // At once; 20 ms; 20/2 + 100 ms.
    assert_eq!(pair.acks(Side::B, start), [10.0, 130.0, 320.0]);
}

/// `A` as it would send `len` bytes at `offset`, to a peer without options.
fn segment(pair: &Pair, offset: u32, len: u32) -> Segment {
    let tcp = Tcp {
        seq: pair.a.initial_sequence().wrapping_add(1 + offset),
        ack: pair.b.initial_sequence().wrapping_add(1),
        window: 32_120,
        payload_len: len,
        flags: TcpFlags(TcpFlags::ACK),
        ..Tcp::default()
    };
    Segment { tcp, ..Segment::default() }
}

/// Segments 1 and 3 of four arrive and then 0 and 2, at once; how many ACKs B sent of its own accord after each.
fn acks_around_holes(stack: &Stack) -> [usize; 4] {
    let mut pair = Pair::connected(&eras::linux_2_0(), stack, 20);
    // Some traffic first, lest quick ACKs at the start hide what is asked.
    let mut count = 0;
    let mut feed = |pair: &mut Pair, nth: u32| {
        let now = pair.now;
        pair.b.handle_segment(now, &segment(pair, nth * 1460, 1460));
        count = 0;
        while pair.b.poll_transmit().is_some() {
            count += 1;
        }
        count
    };
    feed(&mut pair, 0);
    feed(&mut pair, 1);
    let now = pair.now;
    pair.run(now + 1000 * MS);
    [3, 5, 2, 4].map(|nth| feed(&mut pair, nth))
}

#[test]
fn what_fills_a_hole_is_acknowledged_at_once_by_most() {
    for stack in [eras::linux_6(), eras::windows_10(), eras::bsd_4_4(), eras::digital_unix()] {
        assert_eq!(acks_around_holes(&stack), [1, 1, 1, 1], "{stack:?}");
    }
    // Cardwell's receiver: what fits at the edge waits, unless two full segments have come since the last ACK.
    assert_eq!(acks_around_holes(&eras::linux_2_0()), [1, 1, 0, 1]);
}

#[test]
fn linux_2_1_waits_with_the_last_hole_only_if_it_sets_free_little() {
    // The last fill makes two segments that are not acknowledged: at once, by that rule.
    assert_eq!(acks_around_holes(&eras::linux_2_1()), [1, 1, 1, 1]);
    let mut pair = Pair::connected(&eras::linux_2_0(), &eras::linux_2_1(), 20);
    let mut feed = |offset, len| {
        let now = pair.now;
        pair.b.handle_segment(now, &segment(&pair, offset, len));
        std::iter::from_fn(|| pair.b.poll_transmit()).count()
    };
    assert_eq!(feed(0, 1460), 1, "the first data");
    assert_eq!(feed(1460 + 700, 700), 1, "out of order");
    assert_eq!(feed(1460, 700), 0, "1400 bytes in all are less than two segments");
}

#[test]
fn duplicates_are_acknowledged_at_once_and_reported() {
    let mut pair = Pair::connected(&eras::linux_6(), &eras::linux_6(), 20);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 100, false));
    pair.run(start + 100 * MS);
    let copy = pair.of(Side::A).find(|sent| sent.segment.tcp.payload_len > 0).expect("data").segment;
    let now = pair.now;
    pair.b.handle_segment(now, &copy);
    let ack = pair.b.poll_transmit().expect("an ACK").tcp;
    // RFC 2883: the first block is the duplicate.
    assert_eq!(ack.options.sack.as_slice(), [(copy.tcp.seq, copy.tcp.seq.wrapping_add(100))]);
}

#[test]
fn without_delay_every_segment_is_acknowledged() {
    let mut stack = eras::linux_6();
    stack.receiver.delayed_ack = DelayedAck::Off;
    let mut pair = Pair::connected(&eras::linux_6(), &stack, 20);
    assert_eq!(ack_delays(&mut pair, 20, 100, 60), [0.0; 20]);
    assert_eq!(Duration::from_millis(20), pair.a.info().smoothed_round_trip);
}
