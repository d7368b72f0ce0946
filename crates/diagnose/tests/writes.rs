//! A recording of the program's calls beside the packets: the same packets, written at different times. The figures are
//! worked out by hand from the lines.

use tcpwhy_diagnose::report::{Line, Source};
use tcpwhy_diagnose::{Analyzer, CaptureInfo};
use tcpwhy_wire::Socket;
use tcpwhy_wire::calls::Write;
use tcpwhy_wire::text::{Item, Reader};

const MS: i64 = 1_000_000;
/// The capture's times have no date: they count from midnight.
const TEN: i64 = 10 * 3_600_000 * MS;

/// Captured at the client, 10 ms from the server. Two pieces of 10 bytes; the second leaves on the ACK of the first, which
/// comes 50 ms after it.
const HELD: &str = "\
10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460], length 0
10:00:00.010000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460], length 0
10:00:00.010000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 500, win 64240, length 0
10:00:00.020000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 100:110, ack 500, win 64240, length 10
10:00:00.070000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 110, win 64240, length 0
10:00:00.070050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 110:120, ack 500, win 64240, length 10
10:00:00.080100 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], seq 500:505, ack 120, win 64240, length 5
";

/// The same, but nothing holds the second piece: no ACK has come, and Nagle's algorithm is off.
const FREE: &str = "\
10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460], length 0
10:00:00.010000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460], length 0
10:00:00.010000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 500, win 64240, length 0
10:00:00.020000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 100:110, ack 500, win 64240, length 10
10:00:00.060000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 110:120, ack 500, win 64240, length 10
10:00:00.070050 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], seq 500:505, ack 120, win 64240, length 5
";

/// A write of the client's at so many µs after ten, of these bytes of the stream.
fn write(us: i64, start: u64, end: u64) -> Write {
    let socket = |ip: [u8; 4], port| Socket::from(std::net::SocketAddr::from((ip, port)));
    let at = TEN + us * 1_000;
    let (from, to) = (socket([10, 0, 0, 1], 40_000), socket([10, 0, 0, 2], 80));
    Write { from, to, at, done: at + 1_000, start, end, is_corked: false }
}

/// ms on nagle, delayed-ack and client-app.
fn booked(text: &str, writes: &[Write]) -> [f64; 3] {
    let mut analyzer = Analyzer::new();
    let mut writes = writes.iter().peekable();
    for item in Reader::new(text.as_bytes()) {
        if let Item::Packet(packet) = item {
            while let Some(write) = writes.next_if(|write| write.at <= packet.time) {
                analyzer.push_write(write);
            }
            analyzer.push(&[packet]);
        }
    }
    let diagnosis = analyzer.finish(CaptureInfo::default());
    let connection = diagnosis.connections().next().expect("one connection");
    [Line::Nagle, Line::DelayedAck, Line::ClientApp]
        .map(|line| (connection.ledger_ms.get(line) * 1e3).round() / 1e3)
}

#[test]
fn a_hold_begins_with_its_write() {
    // Written right behind the first: until 30 ms no ACK could have come, then the receiver's was late.
    let [nagle, delayed, app] = booked(HELD, &[write(19_990, 0, 10), write(20_010, 10, 20)]);
    assert_eq!((nagle, delayed), (9.99, 40.05));
    // Written in between: the ACK was late already.
    let [nagle, delayed, later] = booked(HELD, &[write(19_990, 0, 10), write(50_000, 10, 20)]);
    assert_eq!((nagle, delayed), (0.0, 20.05));
    // From 30 ms on, when nothing travelled any longer, to the write.
    assert_eq!(later, app + 20.0);
}

#[test]
fn what_is_written_just_when_the_ack_comes_was_not_held() {
    let [nagle, delayed, _] = booked(HELD, &[write(19_990, 0, 10), write(70_030, 10, 20)]);
    assert_eq!((nagle, delayed), (0.0, 0.0));
    let [nagle, delayed, _] = booked(FREE, &[write(19_990, 0, 10), write(59_990, 10, 20)]);
    assert_eq!((nagle, delayed), (0.0, 0.0));
}

#[test]
fn bytes_that_no_recorded_call_wrote_leave_it_to_the_packets() {
    let alone = booked(HELD, &[]);
    assert!(alone[0] + alone[1] > 49.0, "packets alone take the whole wait for a hold: {alone:?}");
    assert_eq!(booked(HELD, &[write(19_990, 0, 10)]), alone);
    // The recording began in the middle of the stream, or lost a call.
    assert_eq!(booked(HELD, &[write(19_990, 5, 10), write(50_000, 10, 20)]), alone);
    assert_eq!(booked(HELD, &[write(19_990, 0, 10), write(50_000, 12, 20)]), alone);
}

#[test]
fn a_cork_that_its_program_pulls_holds_nothing_longer() {
    let corked = Write { is_corked: true, ..write(20_010, 10, 20) };
    let pulled = [write(19_990, 0, 10), corked, write(70_030, 20, 20)];
    assert_eq!(booked(HELD, &pulled)[..2], [0.0, 0.0]);
    // Never pulled, the flag alone does not keep it beyond the ACK (Linux).
    assert_eq!(booked(HELD, &[write(19_990, 0, 10), corked])[..2], [9.99, 40.05]);
}
