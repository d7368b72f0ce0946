//! The packets of one connection as plots show them: against texts whose numbers can be counted by hand.

use tcpwhy_diagnose::flow::series::Kind;
use tcpwhy_diagnose::report::Side;
use tcpwhy_diagnose::{Analyzer, CaptureInfo, Diagnosis};
use tcpwhy_wire::text::{Item, Reader};

fn recorded(text: &str) -> Diagnosis {
    let mut analyzer = Analyzer::recording([0]);
    for item in Reader::new(text.as_bytes()) {
        if let Item::Packet(packet) = item {
            analyzer.push(&[packet]);
        }
    }
    analyzer.finish(CaptureInfo::default())
}

/// `us` after 10:00, from 10.0.0.1:40000 to 10.0.0.2:80 or back.
fn line(us: u32, up: bool, rest: &str) -> String {
    let (client, server) = ("10.0.0.1.40000", "10.0.0.2.80");
    let (from, to) = if up { (client, server) } else { (server, client) };
    format!("10:00:00.{us:06} IP {from} > {to}: Flags {rest}\n")
}

#[test]
fn packets_are_as_the_analysis_took_them() {
    let text = [
        line(0, true, "[S], seq 0, win 64240, options [mss 1460,nop,wscale 7], length 0"),
        line(10_000, false, "[S.], seq 0, ack 1, win 65160, options [mss 1460,nop,wscale 7], length 0"),
        line(10_010, true, "[.], ack 1, win 502, length 0"),
        line(20_000, true, "[P.], seq 1:101, ack 1, win 502, length 100"),
        line(30_000, false, "[.], ack 101, win 502, length 0"),
        // Sent again although it was ACKed; then a keep-alive.
        line(40_000, true, "[P.], seq 1:101, ack 1, win 502, length 100"),
        line(50_000, true, "[.], seq 100:101, ack 1, win 502, length 1"),
        line(60_000, true, "[F.], seq 101, ack 1, win 502, length 0"),
    ]
    .concat();
    let diagnosis = recorded(&text);
    let series = diagnosis.series(0).expect("it was asked for");
    let marks: Vec<_> = series.marks.iter().map(|mark| (mark.from, mark.kind, mark.seq, mark.len)).collect();
    let (client, server) = (Side::Client, Side::Server);
    let expected = [
        (client, Kind::Bare, 0, 0),
        (server, Kind::Bare, 0, 0),
        (client, Kind::Bare, 1, 0),
        (client, Kind::Data, 1, 100),
        (server, Kind::Bare, 1, 0),
        (client, Kind::Retransmission, 1, 100),
        (client, Kind::Probe, 100, 1),
        (client, Kind::Bare, 101, 0),
    ];
    assert_eq!(marks, expected);
    // Scaled by 128, but for the window in the SYN.
    assert_eq!(series.marks[0].window, Some(64_240));
    assert_eq!((series.marks[2].window, series.marks[2].ack), (Some(502 * 128), Some(1)));
    assert_eq!((series.marks[4].ack, series.marks[4].edge()), (Some(101), Some(101 + 502 * 128)));
    assert_eq!((series.dropped, series.marks[3].number), (0, 4));
}

#[test]
fn sack_blocks_are_relative_to_the_data_they_report() {
    let text = [
        line(0, true, "[S], seq 4294967290, win 64240, options [mss 1460,sackOK], length 0"),
        line(10_000, false, "[S.], seq 7, ack 4294967291, win 65160, options [mss 1460,sackOK], length 0"),
        line(10_010, true, "[.], ack 8, win 64240, length 0"),
        line(20_000, true, "[P.], seq 4294967291:4294967295, ack 8, win 64240, length 4"),
        line(20_010, true, "[P.], seq 4294967295:9, ack 8, win 64240, length 10"),
        line(
            30_000,
            false,
            "[.], ack 4294967291, win 65160, options [nop,nop,sack 1 {4294967295:9}], length 0",
        ),
    ]
    .concat();
    let diagnosis = recorded(&text);
    let series = diagnosis.series(0).expect("it was asked for");
    // The SYN has 0, so the four bytes are 1 to 4 and the ten 5 to 14, over the 32-bit edge.
    let sacks: Vec<_> = series.sacks.iter().map(|sack| (sack.from, sack.ack, sack.block)).collect();
    assert_eq!(sacks, [(Side::Server, 1, (5, 15))]);
}

#[test]
fn without_a_handshake_the_first_byte_is_1_and_windows_are_unknown() {
    let text = [
        line(0, false, "[P.], seq 5000:5100, ack 900, win 64240, length 100"),
        line(10, true, "[.], ack 5100, win 0, length 0"),
    ]
    .concat();
    let diagnosis = recorded(&text);
    let marks = &diagnosis.series(0).expect("it was asked for").marks;
    assert_eq!((marks[0].from, marks[0].seq, marks[0].ack), (Side::Server, 1, Some(1)));
    assert_eq!((marks[0].window, marks[1].window), (None, Some(0)));
    assert_eq!((marks[1].seq, marks[1].ack), (1, Some(101)));
}

#[test]
fn exchanges_and_round_trips_are_as_the_analysis_took_them() {
    let text = [
        line(0, true, "[S], seq 0, win 64240, options [mss 1460,nop,wscale 7], length 0"),
        line(10_000, false, "[S.], seq 0, ack 1, win 65160, options [mss 1460,nop,wscale 7], length 0"),
        line(10_010, true, "[.], ack 1, win 502, length 0"),
        // Packets 4 to 7: a request in two segments, its ACK, and an answer that ends 35 ms after it began.
        line(20_000, true, "[P.], seq 1:101, ack 1, win 502, length 100"),
        line(20_050, true, "[P.], seq 101:151, ack 1, win 502, length 50"),
        line(31_000, false, "[.], ack 151, win 502, length 0"),
        line(55_000, false, "[P.], seq 1:201, ack 151, win 502, length 200"),
        // Packet 8 is its ACK and the next request, which the end of the capture closes.
        line(60_000, true, "[P.], seq 151:251, ack 201, win 502, length 100"),
        line(72_000, false, "[P.], seq 201:301, ack 251, win 502, length 100"),
    ]
    .concat();
    let diagnosis = recorded(&text);
    let series = diagnosis.series(0).expect("it was asked for");
    let since = |time: i64| (time - diagnosis.origin()) / 1_000;
    let exchanges: Vec<_> =
        series.exchanges.iter().map(|one| (since(one.start), since(one.end), one.number)).collect();
    assert_eq!(exchanges, [(20_000, 55_000, 4), (60_000, 72_000, 8)]);
    // Of the client's data 11 and 12 ms to the server and back, and 10 µs at least from here to the client and back; of
    // the server's 5 ms here, and 10 ms there.
    let round_trips: Vec<_> =
        series.round_trips.iter().map(|one| (one.from, since(one.time), one.rtt / 1_000)).collect();
    let (client, server) = (Side::Client, Side::Server);
    assert_eq!(round_trips, [(client, 31_000, 11_010), (server, 60_000, 15_000), (client, 72_000, 12_010)]);
}

#[test]
fn datagrams_are_marks_too() {
    let line = |us: u32, from: &str, to: &str, len: u32| {
        format!("10:00:00.{us:06} IP {from} > {to}: UDP, length {len}\n")
    };
    let (client, server) = ("10.0.0.1.5000", "10.0.0.2.53");
    let text =
        [line(0, client, server, 40), line(9_000, server, client, 80), line(9_500, server, client, 20)]
            .concat();
    let diagnosis = recorded(&text);
    let marks = &diagnosis.series(0).expect("it was asked for").marks;
    let marks: Vec<_> =
        marks.iter().map(|mark| (mark.number, mark.from, mark.kind, mark.seq, mark.len, mark.ack)).collect();
    let expected = [
        (1, Side::Client, Kind::Data, 0, 40, None),
        (2, Side::Server, Kind::Data, 0, 80, None),
        (3, Side::Server, Kind::Data, 80, 20, None),
    ];
    assert_eq!(marks, expected);
}

#[test]
fn who_is_not_recorded_has_nothing() {
    let text = line(0, true, "[S], seq 0, win 64240, length 0");
    let mut analyzer = Analyzer::recording([1]);
    for item in Reader::new(text.as_bytes()) {
        if let Item::Packet(packet) = item {
            analyzer.push(&[packet]);
        }
    }
    let diagnosis = analyzer.finish(CaptureInfo::default());
    assert!(diagnosis.series(0).is_none() && diagnosis.bookings(0).is_none());
}
