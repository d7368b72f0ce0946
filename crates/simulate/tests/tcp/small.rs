//! Small segments: Nagle's algorithm and its variants, corks, `MSG_MORE`.

use tcpwhy_simulate::tcp::{DelayedAck, Nagle, SocketOption, Stack, Wait, eras};

use crate::pair::{MS, Pair, Side};

/// A sender with this rule, and a peer 100 ms away and back that acknowledges everything at once. No timestamps: 1460
/// bytes a segment.
fn pair(nagle: Nagle) -> Pair {
    let mut sender = eras::windows_10();
    sender.sender.nagle = nagle;
    let mut receiver = eras::windows_10();
    receiver.receiver.delayed_ack = DelayedAck::Off;
    Pair::connected(&sender, &receiver, 100)
}

/// What leaves, with its time in ms, when the program writes so many bytes at such times.
fn leaves(nagle: Nagle, writes: &[(u64, u64)]) -> Vec<(f64, u32)> {
    let mut pair = pair(nagle);
    let start = pair.now;
    for (at, len) in writes {
        pair.at(start + at * MS, |pair, now| pair.a.handle_write(now, *len, false));
    }
    pair.run(start + 1000 * MS);
    pair.data(Side::A, start)
}

#[test]
fn a_second_small_write_waits_for_the_ack_of_the_first() {
    let writes = [(0, 100), (10, 100), (20, 100)];
    for nagle in [Nagle::Rfc896, Nagle::Bsd, Nagle::HalfSegment, Nagle::Minshall] {
        assert_eq!(leaves(nagle, &writes), [(0.0, 100), (100.0, 200)], "{nagle:?}");
    }
    assert_eq!(leaves(Nagle::Off, &writes), [(0.0, 100), (10.0, 100), (20.0, 100)]);
}

#[test]
fn a_small_write_behind_a_full_segment_waits_only_where_any_segment_counts() {
    let writes = [(0, 1460), (10, 100)];
    for nagle in [Nagle::Rfc896, Nagle::Bsd, Nagle::HalfSegment] {
        assert_eq!(leaves(nagle, &writes), [(0.0, 1460), (100.0, 100)], "{nagle:?}");
    }
    // Minshall: no *small* segment is out.
    assert_eq!(leaves(Nagle::Minshall, &writes), [(0.0, 1460), (10.0, 100)]);
}

#[test]
fn the_tail_of_one_large_write() {
    let writes = [(0, 1560)];
    for nagle in [Nagle::Rfc896, Nagle::HalfSegment] {
        assert_eq!(leaves(nagle, &writes), [(0.0, 1460), (100.0, 100)], "{nagle:?}");
    }
    // Net/3 asks before the first segment whether anything is out; Minshall asks for small ones.
    for nagle in [Nagle::Bsd, Nagle::Minshall] {
        assert_eq!(leaves(nagle, &writes), [(0.0, 1460), (0.0, 100)], "{nagle:?}");
    }
    // Written while something is out, it waits on BSD as well: for all of it.
    let writes = [(0, 1460), (10, 1560)];
    assert_eq!(leaves(Nagle::Bsd, &writes), [(0.0, 1460), (10.0, 1460), (110.0, 100)]);
    assert_eq!(leaves(Nagle::Minshall, &writes), [(0.0, 1460), (10.0, 1460), (10.0, 100)]);
}

#[test]
fn half_a_segment_is_enough_for_linux_2_1() {
    assert_eq!(leaves(Nagle::HalfSegment, &[(0, 100), (10, 730)]), [(0.0, 100), (10.0, 730)]);
    assert_eq!(leaves(Nagle::HalfSegment, &[(0, 100), (10, 729)]), [(0.0, 100), (100.0, 729)]);
}

#[test]
fn nodelay_lets_go_what_is_held() {
    let mut pair = pair(Nagle::Rfc896);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 100, false));
    pair.at(start + 10 * MS, |pair, now| pair.a.handle_write(now, 50, false));
    assert_eq!(pair.a.wait(), Wait::Nagle);
    pair.at(start + 30 * MS, |pair, now| pair.a.set(now, SocketOption::NoDelay(true)));
    assert_eq!(pair.data(Side::A, start), [(0.0, 100), (30.0, 50)]);
}

#[test]
fn a_fin_takes_the_held_tail_with_it() {
    let mut pair = pair(Nagle::Minshall);
    let start = pair.now;
    pair.at(start, |pair, now| pair.a.handle_write(now, 100, false));
    pair.at(start + 10 * MS, |pair, now| pair.a.handle_write(now, 50, false));
    pair.at(start + 20 * MS, |pair, now| pair.a.handle_shutdown(now));
    assert_eq!(pair.data(Side::A, start), [(0.0, 100), (20.0, 50)]);
}

/// Linux, 10 ms away and back.
fn linux(change: impl FnOnce(&mut Stack)) -> (Pair, u64) {
    let mut stack = eras::linux_6();
    change(&mut stack);
    let pair = Pair::connected(&stack, &eras::linux_6(), 10);
    let start = pair.now;
    (pair, start)
}

#[test]
fn a_cork_holds_small_segments_until_it_is_drawn() {
    let (mut pair, start) = linux(|_| {});
    pair.at(start, |pair, now| {
        pair.a.set(now, SocketOption::Cork(true));
        pair.a.handle_write(now, 1448 + 100, false);
    });
    assert_eq!(pair.data(Side::A, start), [(0.0, 1448)]);
    pair.run(start + 20 * MS);
    assert_eq!(pair.a.wait(), Wait::Cork);
    pair.at(start + 50 * MS, |pair, now| pair.a.handle_write(now, 10, false));
    pair.at(start + 60 * MS, |pair, now| pair.a.set(now, SocketOption::Cork(false)));
    assert_eq!(pair.data(Side::A, start), [(0.0, 1448), (60.0, 110)]);
}

#[test]
fn a_cork_that_is_never_drawn_gives_way_after_one_timeout() {
    let (mut pair, start) = linux(|_| {});
    pair.at(start, |pair, now| {
        pair.a.set(now, SocketOption::Cork(true));
        pair.a.handle_write(now, 100, false);
    });
    pair.run(start + 1000 * MS);
    let data = pair.data(Side::A, start);
    // tcp_check_probe_timer: one RTO, 200 ms and the round trip, on the wheel.
    assert_eq!(data.len(), 1);
    assert!((210.0..=216.0).contains(&data[0].0), "{data:?}");
}

#[test]
fn nodelay_pushes_through_a_cork() {
    let (mut pair, start) = linux(|_| {});
    pair.at(start, |pair, now| {
        pair.a.set(now, SocketOption::Cork(true));
        pair.a.handle_write(now, 100, false);
    });
    pair.at(start + 30 * MS, |pair, now| pair.a.set(now, SocketOption::NoDelay(true)));
    // What is written later is corked again.
    pair.at(start + 40 * MS, |pair, now| pair.a.handle_write(now, 10, false));
    pair.run(start + 60 * MS);
    assert_eq!(pair.data(Side::A, start), [(30.0, 100)]);
}

#[test]
fn msg_more_holds_its_own_tail_and_no_longer_than_the_next_push() {
    let (mut pair, start) = linux(|_| {});
    pair.at(start, |pair, now| pair.a.handle_write(now, 100, true));
    pair.at(start + 30 * MS, |pair, now| pair.a.handle_write(now, 20, false));
    assert_eq!(pair.data(Side::A, start), [(30.0, 120)]);
    // An ACK pushes as well: MSG_MORE is of the call, not of the socket.
    let later = start + 500 * MS;
    pair.at(later, |pair, now| pair.a.handle_write(now, 1448, false));
    pair.at(later + 2 * MS, |pair, now| pair.a.handle_write(now, 30, true));
    pair.run(later + 100 * MS);
    assert_eq!(pair.data(Side::A, later)[1..], [(0.0, 1448), (10.0, 30)]);
}

#[test]
fn autocorking_waits_for_the_device() {
    let (mut pair, start) =
        linux(|stack| stack.sender.autocork = Some(std::time::Duration::from_micros(500)));
    pair.at(start, |pair, now| {
        pair.a.set(now, SocketOption::NoDelay(true));
        for _ in 0..5 {
            pair.a.handle_write(now, 100, false);
        }
    });
    pair.run(start + 100 * MS);
    assert_eq!(pair.data(Side::A, start), [(0.0, 100), (0.5, 400)]);
}
