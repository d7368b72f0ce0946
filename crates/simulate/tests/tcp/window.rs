//! The receiver's window: closed and opened, probed, never in silly steps, never overrun.

use tcpwhy_simulate::tcp::{Buffer, SocketOption, Stack, Wait, eras};
use tcpwhy_wire::TcpFlags;

use crate::pair::{MS, Pair, Side};

/// Connected, with a receiver of so many bytes that does not read; a MB is written.
fn stalled(a: &Stack, b: &Stack, buffer: u64) -> (Pair, u64) {
    let mut b = b.clone();
    b.receiver.buffer = Buffer::Fixed(buffer);
    // Else the window is rounded up to the scale's unit, anew with each ACK (as in Linux's tcp_select_window).
    b.window_scale = None;
    let mut pair = Pair::connected(a, &b, 20);
    pair.reads[Side::B as usize] = false;
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 1_000_000, false));
    (pair, start)
}

#[test]
fn a_full_buffer_stops_the_sender_and_reading_starts_it_again() {
    let stack = eras::linux_6();
    let (mut pair, start) = stalled(&stack, &stack, 10 * 1448);
    pair.run(start + 200 * MS);
    assert_eq!(pair.b.readable(), 10 * 1448);
    assert_eq!(pair.a.wait(), Wait::ReceiveWindow);
    assert_eq!(pair.a.info().peer_window, 0);
    pair.at(start + 200 * MS, |pair, _| pair.read_some(Side::B, u64::MAX));
    // The window update needs half a round trip; then data flows.
    pair.run(start + 210 * MS);
    let data = pair.data(Side::A, start);
    assert_eq!(data[10], (210.0, 1448));
}

#[test]
fn linux_probes_with_an_old_number_and_backs_off() {
    let stack = eras::linux_6();
    let (mut pair, start) = stalled(&stack, &stack, 10 * 1448);
    pair.run(start + 60 * MS);
    pair.sent.clear();
    pair.run(start + 3000 * MS);
    let probes: Vec<_> = pair.acks(Side::A, start);
    // The last ACK came after 20 ms or, delayed, after 64; one timeout of 220 ms, then 440, 880, on the wheel.
    assert_eq!(probes.len(), 3, "{probes:?}");
    assert!((220.0..=300.0).contains(&probes[0]), "{probes:?}");
    assert!((440.0..=480.0).contains(&(probes[1] - probes[0])), "{probes:?}");
    assert!((880.0..=960.0).contains(&(probes[2] - probes[1])), "{probes:?}");
    // Each is answered at once.
    assert_eq!(pair.acks(Side::B, start).len(), 3);
    assert_eq!(pair.b.readable(), 10 * 1448, "an old number brings no byte");
}

#[test]
fn bsd_probes_with_a_byte_not_sooner_than_5_s() {
    // No timestamps, so that five segments fill the buffer.
    let (mut pair, start) = stalled(&eras::bsd_4_4(), &eras::windows_10(), 5 * 1460);
    pair.run(start + 2000 * MS);
    pair.sent.clear();
    pair.run(start + 40_000 * MS);
    let probes = pair.data(Side::A, 0);
    assert!(probes.iter().all(|(_, len)| *len == 1), "{probes:?}");
    let gaps: Vec<_> = probes.windows(2).map(|two| two[1].0 - two[0].0).collect();
    // The timeout of 1 s doubled each time, in bounds of 5 and 60 s, on ticks of half a second.
    assert_eq!(gaps[..3], [5000.0, 5000.0, 8000.0], "{gaps:?}");
    assert_eq!(pair.b.readable(), 5 * 1460, "a full buffer takes no byte");
}

#[test]
fn a_slow_reader_opens_the_window_by_segments() {
    for b in [eras::linux_6(), eras::bsd_4_4(), eras::windows_10(), eras::linux_2_0(), eras::linux_2_1()] {
        let (mut pair, start) = stalled(&eras::linux_6(), &b, 10_000);
        for read in 0..2000 {
            pair.at(start + (100 + read) * MS, |pair, _| pair.read_some(Side::B, 200));
        }
        pair.run(start + 3000 * MS);
        let acks = pair.of(Side::B).filter(|sent| sent.has(TcpFlags::ACK));
        let mut edge = 0;
        for ack in acks {
            let window = u64::from(ack.segment.tcp.window);
            let offered = u64::from(ack.segment.tcp.ack.wrapping_sub(pair.a.initial_sequence())) + window;
            // RFC 1122 4.2.3.3: no step smaller than a segment.
            let step = offered.saturating_sub(edge);
            assert!(step == 0 || step >= 1448, "{step} bytes at {} ms", ack.time / MS);
            edge = edge.max(offered);
        }
        // And it is used: what was read came.
        assert!(pair.read[1] > 150_000, "{} bytes", pair.read[1]);
    }
}

#[test]
fn a_fin_waits_for_the_window_as_well() {
    let stack = eras::linux_6();
    let mut small = stack.clone();
    small.receiver.buffer = Buffer::Fixed(1024);
    let mut pair = Pair::connected(&stack, &small, 20);
    pair.reads[Side::B as usize] = false;
    let start = pair.now;
    pair.at(start, |pair, now| {
        pair.a.handle_write(now, 1024, false);
        pair.a.handle_shutdown(now);
    });
    pair.run(start + 150 * MS);
    assert!(!pair.of(Side::A).any(|sent| sent.has(TcpFlags::FIN)));
    pair.at(start + 150 * MS, |pair, _| pair.read_some(Side::B, u64::MAX));
    pair.run(start + 200 * MS);
    assert!(pair.b.is_at_end());
}

#[test]
fn a_small_send_buffer_stops_the_program() {
    let mut pair = Pair::connected(&eras::linux_6(), &eras::linux_6(), 20);
    let start = pair.now;
    let taken = pair.at(start, |pair, now| {
        pair.a.set(now, SocketOption::SendBuffer(9000));
        pair.a.handle_write(now, 100_000, false)
    });
    assert_eq!(taken, 9000);
    assert_eq!(pair.a.writable(), 0);
    pair.run(start + 100 * MS);
    assert_eq!(pair.a.writable(), 9000);
}

#[test]
fn the_window_grows_with_what_is_read() {
    // 80 KB a round trip of 100 ms at first; a program that reads each segment as it comes gets more.
    let stack = eras::linux_6();
    let mut pair = Pair::connected(&stack, &stack, 100);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 20_000_000, false));
    pair.run(start + 3000 * MS);
    assert!(pair.a.info().peer_window > 1 << 20, "{}", pair.a.info().peer_window);
    // One that finds a whole burst each time does not: Linux 6.18 was seen to stay at 79 KiB so.
    let mut pair = Pair::connected(&stack, &stack, 100);
    pair.reads[Side::B as usize] = false;
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 20_000_000, false));
    for read in 0..3000 {
        pair.at(start + read * MS, |pair, _| pair.read_some(Side::B, u64::MAX));
    }
    assert!((81_920..=83_000).contains(&pair.a.info().peer_window), "{}", pair.a.info().peer_window);
}
