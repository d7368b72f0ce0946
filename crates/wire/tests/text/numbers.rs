//! Relative sequence numbers, absolute ones, and texts that do not say which.

use super::{Capture, capture};

/// Lines of a conversation between C and S, a millisecond apart.
fn conversation(lines: &[&str]) -> Capture {
    let line = |(index, line): (usize, &&str)| {
        let (from, rest) = line.split_once(' ').expect("direction and header");
        let ends = if from == "C" { "10.0.0.1.5000 > 10.0.0.2.80" } else { "10.0.0.2.80 > 10.0.0.1.5000" };
        format!("12:00:00.{index:03} IP {ends}: Flags {rest}\n")
    };
    capture(&lines.iter().enumerate().map(line).collect::<String>())
}

fn numbers(capture: &Capture) -> Vec<(u32, u32)> {
    (0..capture.packets.len()).map(|index| (capture.tcp(index).seq, capture.tcp(index).ack)).collect()
}

#[test]
fn relative_and_absolute_text_agree() {
    let relative = conversation(&[
        "C [S], seq 4294967290, win 1, length 0",
        "S [S.], seq 7000000, ack 4294967291, win 1, length 0",
        "C [P.], seq 1:11, ack 1, win 1, length 10",
        "S [.], ack 11, win 1, length 0",
        "S [P.], seq 1:5, ack 11, win 1, length 4",
    ]);
    let absolute = conversation(&[
        "C [S], seq 4294967290, win 1, length 0",
        "S [S.], seq 7000000, ack 4294967291, win 1, length 0",
        "C [P.], seq 4294967291:5, ack 7000001, win 1, length 10",
        "S [.], ack 5, win 1, length 0",
        "S [P.], seq 7000001:7000005, ack 5, win 1, length 4",
    ]);
    let expected = [
        (4_294_967_290, 0),
        (7_000_000, 4_294_967_291),
        (4_294_967_291, 7_000_001),
        (7_000_001, 5),
        (7_000_001, 5),
    ];
    assert_eq!(numbers(&relative), expected);
    assert_eq!(numbers(&absolute), expected);
}

#[test]
fn mid_stream_the_first_segment_is_absolute() {
    let relative = conversation(&[
        "C [P.], seq 500000000:500000100, ack 900000000, win 1, length 100",
        "S [.], ack 100, win 1, length 0",
        "S [P.], seq 1:51, ack 100, win 1, length 50",
    ]);
    // tcpdump's bases are 500000000 and 900000000 - 1.
    let expected = [(500_000_000, 900_000_000), (900_000_000, 500_000_100), (900_000_000, 500_000_100)];
    assert_eq!(numbers(&relative), expected);
    let absolute = conversation(&[
        "C [P.], seq 500000000:500000100, ack 900000000, win 1, length 100",
        "S [.], ack 500000100, win 1, length 0",
        "S [P.], seq 900000000:900000050, ack 500000100, win 1, length 50",
    ]);
    assert_eq!(numbers(&absolute), expected);
}

#[test]
fn a_cut_out_piece_keeps_its_relative_numbers() {
    let piece = conversation(&[
        "S [.], ack 2001, win 1, length 0",
        "S [P.], seq 801:901, ack 2001, win 1, length 100",
        "C [P.], seq 2001:2011, ack 901, win 1, length 10",
        "S [P.], seq 901:2901, ack 2011, win 1, length 2000",
    ]);
    // The first pure ACK prints no sequence number; the next line tells it.
    assert_eq!(numbers(&piece), [(801, 2001), (801, 2001), (2001, 901), (901, 2011)]);
}

#[test]
fn pure_acks_of_one_side_only() {
    let acks = conversation(&["C [.], ack 5000, win 1, length 0", "C [.], ack 6000, win 1, length 0"]);
    assert_eq!(numbers(&acks), [(0, 5000), (0, 6000)]);
}

#[test]
fn a_syn_ack_left_out_by_hand() {
    let text = conversation(&[
        "C [S], seq 3000000000, win 1, length 0",
        "C [.], ack 1, win 1, length 0",
        "C [P.], seq 1:101, ack 1, win 1, length 100",
    ]);
    // The server's numbers stay relative: nothing in the text is absolute.
    assert_eq!(numbers(&text), [(3_000_000_000, 0), (3_000_000_001, 1), (3_000_000_001, 1)]);
}

#[test]
fn a_bare_reset_is_absolute() {
    let text = conversation(&[
        "C [S], seq 3000000000, win 1, length 0",
        "S [S.], seq 100, ack 3000000001, win 1, length 0",
        "C [P.], seq 1:101, ack 1, win 1, length 100",
        "C [R], seq 3000000101, win 0, length 0",
    ]);
    assert_eq!(numbers(&text)[3].0, 3_000_000_101);
    // In a piece with relative numbers only, the reset's own number leads nowhere.
    let piece = conversation(&[
        "C [P.], seq 1:101, ack 1, win 1, length 100",
        "S [.], ack 101, win 1, length 0",
        "C [R], seq 3000000101, win 0, length 0",
    ]);
    assert_eq!(numbers(&piece)[2].0, 101);
}

#[test]
fn ports_used_again_begin_anew() {
    let text = conversation(&[
        "C [S], seq 1000000000, win 1, length 0",
        "S [S.], seq 2000000000, ack 1000000001, win 1, length 0",
        "C [F.], seq 1, ack 1, win 1, length 0",
        "C [S], seq 3000000000, win 1, length 0",
        "S [S.], seq 4000000000, ack 3000000001, win 1, length 0",
        "C [.], ack 1, win 1, length 0",
    ]);
    assert_eq!(numbers(&text)[2], (1_000_000_001, 2_000_000_001));
    assert_eq!(numbers(&text)[5], (3_000_000_001, 4_000_000_001));
}

#[test]
fn sack_blocks_are_relative_from_the_first_segment_on() {
    let text = conversation(&[
        "C [.], ack 900000000, win 1, options [nop,nop,sack 1 {1449:2897}], length 0",
        "C [.], ack 1, win 1, options [nop,nop,sack 1 {1449:4345}], length 0",
    ]);
    // The base is 900000000 - 1.
    assert_eq!(text.tcp(0).options.sack.as_slice(), &[(900_001_448, 900_002_896)]);
    assert_eq!(text.tcp(1).options.sack.as_slice(), &[(900_001_448, 900_004_344)]);
}
