//! No text makes the reader panic, lose its order or grow without bound.

use proptest::prelude::*;
use tcpwhy_wire::text::{Item, Reader};

use super::{capture, captures};

const LINES: [&str; 8] = [
    "21:02:34.756601 nestor.4566 > idda.1033: P 1529:1541(12) ack 72 win 32120 <mss 1460,sack 1 {1:2}> (DF)",
    "12:00:00.5 IP 10.0.0.1.5 > 10.0.0.2.80: Flags [P.], seq 1:29, ack 1, win 64, options [TS val 1 ecr 2,sack 1 {1:2}], length 28: HTTP: GET /",
    "12:00:00.5 IP (tos 0x0, ttl 64, id 1, flags [DF], proto TCP (6), length 80)",
    "12:00:00.5 00:00:00:00:00:01 > 00:00:00:00:00:02, ethertype IPv4 (0x0800), length 74: 10.0.0.1.5 > 10.0.0.2.80: UDP, length 9",
    "-00:00:00.000001 IP6 fe80::1.443 > ::1.5: Flags [SEW], seq 4294967295:0, win 65535, length 1",
    "12:00:00.6 IP 10.0.0.1.53 > 10.0.0.2.53: 4660 1/0/0 A 10.0.0.9 (45)",
    "9999999999.999999999 a.1 > b.2: udp 4294967295",
    "Some heading:",
];

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        for item in Reader::new(bytes.as_slice()) {
            prop_assert!(!matches!(item, Item::Packet(packet) if packet.number == 0));
        }
    }

    #[test]
    fn any_text(text in "(\\PC|\n|\t| > |: |12:00:00\\.5 |IP ){0,300}") {
        captures(&text);
    }

    #[test]
    fn mutated_packets(
        picks in prop::collection::vec(0..LINES.len(), 1..12),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<char>(), 0..4_u8), 0..20),
    ) {
        let mut text: Vec<char> = picks.iter().flat_map(|&pick| LINES[pick].chars().chain(['\n'])).collect();
        for (place, letter, kind) in edits {
            let at = place.index(text.len());
            match kind {
                0 => text[at] = letter,
                1 => text.insert(at, letter),
                2 => text.insert(at, '\n'),
                _ if text.len() > 1 => { text.remove(at); }
                _ => {}
            }
        }
        let text: String = text.into_iter().collect();
        for capture in captures(&text) {
            prop_assert!(capture.packets.windows(2).all(|pair| pair[0].number < pair[1].number));
            prop_assert!(capture.packets.last().is_none_or(|last| last.number <= capture.end.packets));
            prop_assert!(capture.name().is_none_or(|name| name.chars().count() <= 80));
        }
    }
}

#[test]
fn a_line_without_end_is_skipped() {
    let text = format!("{}\n{}\n", "12:00:00.5 IP ".repeat(200_000), LINES[0]);
    assert_eq!(capture(&text).packets.len(), 1);
}

#[test]
fn a_record_that_never_completes_takes_no_more_than_its_share() {
    let text = format!("12:00:00.5 IP a.1 > b.2: 1 A?\n{}{}\n", "x\n".repeat(100_000), LINES[0]);
    let last = captures(&text).pop().expect("the packet at the end");
    assert_eq!(last.packets.len(), 1);
}

#[test]
fn more_names_than_are_kept() {
    use std::fmt::Write as _;
    let mut text = String::new();
    for host in 0..40_000 {
        writeln!(text, "12:00:00.5 from{host}.1 > to{host}.2: udp 1").expect("a string takes all");
    }
    let capture = capture(&text);
    // 65,536 names are two hosts of 32,768 packets.
    assert_eq!(capture.packets.len(), 32_768);
    assert!(capture.end.notes[1].contains("65536 host names"), "{:?}", capture.end.notes);
}
