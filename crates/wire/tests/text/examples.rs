//! The captures in examples/, counted by hand.

use std::path::Path;

use super::{capture, captures};

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_whole_mail_is_four_captures() {
    let mail = captures(&example("netrek-mail.txt"));
    let found: Vec<_> =
        mail.iter().map(|part| (part.name().unwrap_or_default(), part.packets.len())).collect();
    let expected = [
        ("Netrek over TCP, 10 updates asked per second", 24),
        ("Netrek over TCP, 5 updates asked per second", 22),
        ("Netrek over UDP, 10 updates asked per second", 22),
        ("Netrek over TCP with TCP_NODELAY, 10 updates asked per second", 32),
    ];
    assert_eq!(found, expected);
    assert!(mail.iter().all(|part| part.end.notes.is_empty()));
}

#[test]
fn wrapped_or_not_the_packets_are_the_same() {
    let mail = captures(&example("netrek-mail.txt"));
    let files = ["netrek-tcp-10.txt", "netrek-tcp-5.txt", "netrek-udp-10.txt", "netrek-patched-10.txt"];
    for (part, file) in mail.iter().zip(files) {
        let alone = capture(&example(file));
        assert_eq!(alone.packets, part.packets, "{file}");
        assert_eq!(alone.name(), part.name(), "{file}");
    }
}

#[test]
fn the_old_mail_has_only_relative_numbers_and_keeps_them() {
    let trace = capture(&example("netrek-tcp-10.txt"));
    // 21:02:34.706616 idda.1033 > nestor.4566: P 60:72(12) ack 1529 win 33580
    let first = trace.tcp(0);
    assert_eq!((first.seq, first.ack, first.payload_len, first.window), (60, 1529, 12, 33580));
    assert_eq!(trace.packets[0].time, 75_754_706_616_000);
    assert_eq!((trace.source(0).as_str(), trace.destination(0).as_str()), ("idda:1033", "nestor:4566"));
    // 21:02:34.726616 nestor.4566 > idda.1033: . ack 72: a pure ACK, at what the peer has acknowledged.
    assert_eq!((trace.tcp(1).seq, trace.tcp(1).ack), (1529, 72));
    // The last update before the client speaks: P 1757:1817(60).
    assert_eq!((trace.tcp(22).seq, trace.tcp(22).payload_len), (1757, 60));
    // 288 bytes of updates, from 1529 to 1817.
    let updates = trace.payload_lens().iter().sum::<u32>() - 24;
    assert_eq!(updates, 1817 - 1529);
}

#[test]
fn udp_carries_its_lengths() {
    let trace = capture(&example("netrek-udp-10.txt"));
    let lens = trace.payload_lens();
    assert_eq!((lens[0], lens[1], lens[16], lens[20], lens[21]), (12, 16, 28, 24, 12));
}

#[test]
fn the_upload_is_ten_thousand_and_ten_bytes() {
    let trace = capture(&example("upload-10010.txt"));
    assert_eq!(trace.packets.len(), 19);
    assert_eq!((trace.source(0).as_str(), trace.destination(0).as_str()), ("CLIENT", "SERVER"));
    let up: u32 = (0..19)
        .filter(|&index| trace.source(index) == "CLIENT")
        .map(|index| trace.tcp(index).payload_len)
        .sum();
    assert_eq!((up, trace.payload_lens().iter().sum::<u32>()), (10_010, 10_012));
    let (syn, last_ack) = (trace.tcp(0), trace.tcp(15));
    assert_eq!(syn.options.mss, Some(1460));
    // `ack 10011` behind a SYN at 3624779548.
    assert_eq!(last_ack.ack, 3_624_779_548 + 10_011);
    // `Flags [R.], seq 3, ack 10011` behind a SYN-ACK at 4258144914.
    assert_eq!(trace.tcp(17).seq, 4_258_144_914 + 3);
}

#[test]
fn four_segments_with_cwr() {
    let trace = capture(&example("ecn-cwr.txt"));
    assert_eq!(trace.payload_lens(), [1448, 1024, 1024, 1024]);
    assert_eq!(trace.source(2), "192.168.1.65:51628");
    // CWR and ACK.
    assert!((0..4).all(|index| trace.tcp(index).flags.0 == 0x90));
    assert_eq!((trace.tcp(3).seq, trace.tcp(3).ack), (2_890_777_132, 4_156_581_585));
}
