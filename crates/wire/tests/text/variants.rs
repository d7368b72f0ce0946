//! One small capture as tcpdump 4.99 prints it with different options: a connection that loses a segment,
//! negotiates ECN and wraps its sequence numbers, a ping, a datagram, and a refused connection over IPv6.

use super::{Capture, capture};

/// Sequence number, acknowledgment number, payload, window, flags: by the program that made the packets.
/// The client's numbers wrap in packet 4: 4294967001 + 500 = 205 modulo 2^32.
const TCP: [(usize, u32, u32, u32, u16, u16); 14] = [
    (1, 4_294_967_000, 0, 0, 64240, 0xc2),
    (2, 1_000_000, 4_294_967_001, 0, 65160, 0x52),
    (3, 4_294_967_001, 1_000_001, 0, 502, 0x10),
    (4, 4_294_967_001, 1_000_001, 500, 502, 0x18),
    (5, 1_000_001, 205, 0, 500, 0x10),
    (6, 1_000_001, 205, 1448, 500, 0x10),
    (7, 1_002_897, 205, 1000, 500, 0x98),
    (8, 205, 1_001_449, 0, 490, 0x50),
    (9, 1_001_449, 205, 1448, 500, 0x10),
    (10, 205, 1_003_897, 0, 480, 0x10),
    (12, 205, 1_003_897, 0, 480, 0x11),
    (13, 1_003_897, 0, 0, 0, 0x04),
    (15, 77, 0, 0, 64800, 0x02),
    (16, 0, 78, 0, 0, 0x14),
];

/// Microseconds from each packet that is TCP or UDP to the first one.
const SINCE_FIRST: [i64; 15] = [
    0, 100, 150, 157, 40_370, 40_383, 40_386, 40_636, 240_747, 240_756, 1_240_765, 1_240_855, 1_240_875,
    1_240_881, 1_240_883,
];

/// Bytes of the frames: Ethernet's 14, IP's 20 or 40, TCP's 20 and its options.
const FRAMES: [u32; 15] = [74, 74, 66, 566, 66, 1514, 1066, 78, 1514, 66, 66, 54, 54, 78, 74];

/// 21:59:46.105835 after midnight, and on 19 January 2014.
const TIME_OF_DAY: i64 = 79_186_105_835_000;
const EPOCH: i64 = 1_390_168_786_105_835_000;

fn check(text: &str, first_time: i64) -> Capture {
    let capture = capture(text);
    assert_eq!(capture.end.packets, 16);
    assert!(capture.end.notes[0].starts_with("1 packet is neither TCP nor UDP"), "{:?}", capture.end.notes);
    for (packet, micros) in capture.packets.iter().zip(SINCE_FIRST) {
        assert_eq!(packet.time, first_time + micros * 1000, "packet {}", packet.number);
    }
    for (number, seq, ack, payload_len, window, flags) in TCP {
        let index = capture.packets.iter().position(|packet| packet.number == number as u64);
        let tcp = capture.tcp(index.expect("the packet is there"));
        let found = (number, tcp.seq, tcp.ack, tcp.payload_len, tcp.window, tcp.flags.0);
        assert_eq!(found, (number, seq, ack, payload_len, window, flags));
    }
    check_options(&capture);
    check_ends(&capture);
    capture
}

fn check_options(capture: &Capture) {
    let syn_ack = capture.tcp(1).options;
    assert_eq!((syn_ack.mss, syn_ack.window_scale, syn_ack.sack_permitted), (Some(1460), Some(10), true));
    assert_eq!(syn_ack.timestamps, Some((9000, 1000)));
    assert_eq!(capture.tcp(7).options.sack.as_slice(), &[(1_002_897, 1_003_897)]);
}

fn check_ends(capture: &Capture) {
    assert_eq!(
        (capture.source(0).as_str(), capture.destination(0).as_str()),
        ("10.0.0.1:40000", "10.0.0.2:8080")
    );
    assert_eq!((capture.source(12).as_str(), capture.payload_lens()[12]), ("10.0.0.1:5555", 12));
    assert_eq!(
        (capture.source(13).as_str(), capture.destination(13).as_str()),
        ("[fe80::1]:40001", "[fe80::2]:443")
    );
    assert!(capture.end.names.is_empty());
}

#[test]
fn times_of_day() {
    let plain = check(include_str!("data/plain.txt"), TIME_OF_DAY);
    assert!(!plain.start.has_date);
    // Without -e a frame is its IP packet.
    let expected: Vec<u32> = FRAMES.iter().map(|frame| frame - 14).collect();
    assert_eq!(plain.packets.iter().map(|packet| packet.frame_len).collect::<Vec<_>>(), expected);
}

#[test]
fn absolute_numbers() {
    check(include_str!("data/absolute.txt"), TIME_OF_DAY);
}

#[test]
fn two_lines_a_packet() {
    check(include_str!("data/v.txt"), TIME_OF_DAY);
}

#[test]
fn payload_dumps() {
    check(include_str!("data/hex.txt"), TIME_OF_DAY);
    check(include_str!("data/ascii.txt"), TIME_OF_DAY);
}

#[test]
fn link_level_headers_give_the_frame() {
    for text in [include_str!("data/e.txt"), include_str!("data/evvS.txt")] {
        let capture = check(text, TIME_OF_DAY);
        assert_eq!(capture.packets.iter().map(|packet| packet.frame_len).collect::<Vec<_>>(), FRAMES);
    }
}

#[test]
fn dates_and_epochs() {
    for text in [include_str!("data/epoch.txt"), include_str!("data/date.txt")] {
        assert!(check(text, EPOCH).start.has_date);
    }
}

#[test]
fn times_since_a_packet_before() {
    check(include_str!("data/since.txt"), 0);
    let deltas = check(include_str!("data/delta.txt"), 0);
    assert!(deltas.end.notes[1].contains("-ttt"), "{:?}", deltas.end.notes);
}

#[test]
fn cut_off_blanks_of_delta_times_do_not_matter() {
    let text: String =
        include_str!("data/delta.txt").lines().map(|line| format!("{}\n", line.trim())).collect();
    check(&text, 0);
}
