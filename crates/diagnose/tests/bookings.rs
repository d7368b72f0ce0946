//! A ledger interval by interval: against intervals worked out by hand, and against the ledgers of real captures.

use std::fs::File;
use std::path::{Path, PathBuf};

use tcpwhy_diagnose::ledger::Booking;
use tcpwhy_diagnose::report::{Line, Side, Source};
use tcpwhy_diagnose::{Analyzer, CaptureInfo, Diagnosis};
use tcpwhy_wire::container::{self, Opened};
use tcpwhy_wire::decode::decode_onto;
use tcpwhy_wire::text::{Item, Reader};

/// More connections than any of these captures has.
const ALL: std::ops::Range<u64> = 0..10_000;

/// Every text capture in `text`, analysed.
fn texts(text: &[u8]) -> Vec<Diagnosis> {
    let mut all = Vec::new();
    let mut analyzer = Analyzer::recording(ALL);
    for item in Reader::new(text) {
        match item {
            Item::Start(_) => analyzer = Analyzer::recording(ALL),
            Item::Packet(packet) => analyzer.push(&[packet]),
            Item::End(_) => all.push(std::mem::take(&mut analyzer).finish(CaptureInfo::default())),
        }
    }
    all
}

fn capture(path: &Path) -> Diagnosis {
    let file = File::open(path).expect("a capture");
    let Ok(Opened::Capture(mut reader)) = container::open(file) else { panic!("{}", path.display()) };
    let (mut analyzer, mut packets) = (Analyzer::recording(ALL), Vec::new());
    let mut number = 0;
    while let Some(frame) = reader.next_frame() {
        number += 1;
        // Frames of other protocols are no packets.
        let _ = decode_onto(&frame, number, &mut packets);
        analyzer.push(&packets);
        packets.clear();
    }
    analyzer.finish(CaptureInfo::default())
}

/// A folder at the repository's root.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Files of a folder whose names end so and hold one of the words.
fn files(name: &str, end: &str, words: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(name)).expect("a folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.ends_with(end) && words.iter().any(|word| name.contains(word))
    });
    paths.sort();
    paths
}

/// How many intervals the connections of a capture have on each line, after each line's sum was held against the
/// report's ledger: the same ns, turned into ms.
fn checked(diagnosis: &Diagnosis, name: &str) -> [usize; Line::ALL.len()] {
    let mut counts = [0; Line::ALL.len()];
    for connection in diagnosis.connections() {
        let bookings = diagnosis.bookings(connection.id).expect("they were asked for");
        let mut sums = [0_i64; Line::ALL.len()];
        for booking in &bookings.intervals {
            sums[booking.line as usize] += booking.until - booking.from;
            counts[booking.line as usize] += 1;
        }
        for line in Line::ALL {
            let booked = (connection.ledger_ms.get(line) * 1e6).round() as i64;
            assert_eq!(sums[line as usize], booked, "{name}, connection {}: {}", connection.id, line.name());
        }
    }
    counts
}

#[test]
fn each_line_of_the_examples_sums_to_their_ledger() {
    let mut captures = 0;
    for path in files("examples", ".txt", &[""]) {
        let text = std::fs::read(&path).expect("an example");
        for diagnosis in texts(&text) {
            checked(&diagnosis, &path.display().to_string());
            captures += 1;
        }
    }
    assert!(captures >= 7, "{captures} captures");
}

/// Every capture of the corpus with a fault that TCP makes wait, at 20 ms, from both ends.
#[test]
fn each_line_of_the_corpus_sums_to_its_ledger() {
    let mut counts = [0; Line::ALL.len()];
    let paths = files("tests/corpus", ".zst", &["20ms-client", "20ms-server"]);
    assert!(paths.len() > 100, "{} captures", paths.len());
    for path in paths {
        let diagnosis = capture(&path);
        for (sum, count) in counts.iter_mut().zip(checked(&diagnosis, &path.display().to_string())) {
            *sum += count;
        }
    }
    for line in Line::ALL.into_iter().filter(|line| *line != Line::Unexplained) {
        assert!(counts[line as usize] > 0, "no {} in all of them", line.name());
    }
}

/// The client writes 10 bytes, then 20 while the first are in flight: they leave when the ACK comes, which the server
/// held for 40 ms beyond the round trip of 10 ms. Seen by the client and by the server.
fn held_request(at_client: bool) -> Vec<Booking> {
    // How much later (or earlier) than at the client a packet passes the server, in ms.
    let [there, back] = if at_client { [0, 0] } else { [5, -5] };
    let line =
        |ms: i64, from: &str, rest: &str| format!("10:00:{:06.3} IP {from}: Flags {rest}\n", ms as f64 / 1e3);
    let (up, down) = ("10.0.0.1.40000 > 10.0.0.2.80", "10.0.0.2.80 > 10.0.0.1.40000");
    let text = [
        line(100 + there, up, "[S], seq 0, win 64240, options [mss 1460], length 0"),
        line(110 + back, down, "[S.], seq 0, ack 1, win 65160, options [mss 1460], length 0"),
        line(110 + there, up, "[.], ack 1, win 64240, length 0"),
        line(200 + there, up, "[P.], seq 1:11, ack 1, win 64240, length 10"),
        line(250 + back, down, "[.], ack 11, win 65160, length 0"),
        line(250 + there, up, "[P.], seq 11:31, ack 1, win 64240, length 20"),
        line(260 + back, down, "[P.], seq 1:31, ack 31, win 65160, length 30"),
        line(260 + there, up, "[.], ack 31, win 64240, length 0"),
    ]
    .concat();
    let all = texts(text.as_bytes());
    all[0].bookings(0).expect("they were asked for").intervals
}

/// From and until in ms since the first packet.
fn in_ms(intervals: &[Booking]) -> Vec<(i64, i64, Line, Option<Side>)> {
    let first = intervals[0].from;
    let ms = |ns: i64| (ns - first) / 1_000_000;
    intervals.iter().map(|kept| (ms(kept.from), ms(kept.until), kept.line, kept.side)).collect()
}

#[test]
fn a_hold_at_its_sender_is_the_round_trip_then_the_held_ack() {
    let client = Some(Side::Client);
    let expected = [
        (0, 10, Line::Handshake, None),
        (10, 100, Line::ClientApp, client),
        (100, 110, Line::Nagle, client),
        (110, 150, Line::DelayedAck, client),
        (150, 160, Line::Network, client),
    ];
    assert_eq!(in_ms(&held_request(true)), expected);
}

#[test]
fn a_hold_at_its_receiver_is_the_held_ack_then_the_round_trip() {
    let intervals = in_ms(&held_request(false));
    // Request 105, ACK 245, released segment 255: the ACK was held from 205 on. All less 105, the first packet.
    let client = Some(Side::Client);
    let hold: Vec<_> =
        intervals.iter().filter(|kept| matches!(kept.2, Line::Nagle | Line::DelayedAck)).collect();
    assert_eq!(hold, [&(100, 140, Line::DelayedAck, client), &(140, 150, Line::Nagle, client)]);
}

#[test]
fn nobody_asked_nothing_is_kept() {
    let mut analyzer = Analyzer::recording([1]);
    for item in
        Reader::new(&b"10:00:00.1 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 9, length 0\n"[..])
    {
        if let Item::Packet(packet) = item {
            analyzer.push(&[packet]);
        }
    }
    let diagnosis = analyzer.finish(CaptureInfo::default());
    assert_eq!((diagnosis.len(), diagnosis.bookings(0), diagnosis.bookings(1)), (1, None, None));
}
