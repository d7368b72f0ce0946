//! What the flow layer makes of small conversations, written as tcpdump prints them. Times and figures are
//! worked out by hand from the lines.

use tcpwhy_diagnose::report::{Connection, Finding, Line, Source, Vantage};
use tcpwhy_diagnose::{Analyzer, CaptureInfo, Diagnosis};
use tcpwhy_wire::text::{Item, Reader};
use tcpwhy_wire::{Address, Packet, Socket, Tcp, TcpFlags, Transport};

const CLIENT: &str = "10.0.0.1.40000";
const SERVER: &str = "10.0.0.2.80";

fn diagnose(text: &str) -> Diagnosis {
    let reader = Reader::new(text.as_bytes());
    let mut analyzer = Analyzer::new();
    let mut info = CaptureInfo::default();
    for item in reader {
        match item {
            Item::Packet(packet) => {
                info.frames += 1;
                info.span = Some((info.span.map_or(packet.time, |span| span.0), packet.time));
                analyzer.push(&[packet]);
            }
            Item::End(end) => info.names = end.names,
            Item::Start(_) => {}
        }
    }
    let diagnosis = analyzer.finish(info);
    assert!(!diagnosis.is_empty(), "no packet in:\n{text}");
    diagnosis
}

fn connections(text: &str) -> Vec<Connection> {
    diagnose(text).connections().collect()
}

/// The only connection.
fn one(text: &str) -> Connection {
    let mut all = connections(text);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn rules(text: &str) -> Vec<&'static str> {
    diagnose(text).findings().map(|finding: Finding| finding.rule).collect()
}

/// One line at `us` after ten o'clock.
fn line(us: u64, from: &str, rest: &str) -> String {
    let to = if from == CLIENT { SERVER } else { CLIENT };
    format!("10:00:{:02}.{:06} IP {from} > {to}: Flags {rest}\n", us / 1_000_000, us % 1_000_000)
}

/// SYN at 0, SYN-ACK and ACK at these times; the server's window and scale.
fn handshake(syn_ack: u64, ack: u64, window: u32, options: &str) -> String {
    line(0, CLIENT, "[S], seq 99, win 64240, options [mss 1460,wscale 7], length 0")
        + &line(
            syn_ack,
            SERVER,
            &format!("[S.], seq 499, ack 100, win {window}, options [mss 1460{options}], length 0"),
        )
        + &line(ack, CLIENT, "[.], ack 1, win 502, length 0")
}

fn data(us: u64, from: &str, seq: u64, len: u64) -> String {
    line(us, from, &format!("[P.], seq {seq}:{}, ack 1, win 502, length {len}", seq + len))
}

fn ack(us: u64, from: &str, ack: u64, window: u32) -> String {
    line(us, from, &format!("[.], ack {ack}, win {window}, length 0"))
}

#[test]
fn the_side_near_the_capture_is_told_from_the_handshake() {
    // SYN to SYN-ACK is the way to the server and back, SYN-ACK to ACK the way to the client and back.
    for (syn_ack, ack, vantage) in [
        (20_000, 20_050, Vantage::Client),
        (50, 20_050, Vantage::Server),
        (10_000, 20_000, Vantage::Middle),
        (10, 20, Vantage::Unknown),
    ] {
        let found = one(&handshake(syn_ack, ack, 65_160, ""));
        assert_eq!(found.vantage, vantage, "{syn_ack} {ack}");
        assert_eq!(found.base_rtt_ms.map(|rtt| (rtt.0 * 1e3).round()), Some(ack as f64), "{vantage:?}");
        assert!((found.ledger_ms.get(Line::Handshake) - ack as f64 / 1e3).abs() < 1e-6, "{vantage:?}");
    }
}

/// A segment from client to server or back, at `us`.
fn segment(number: u64, us: i64, is_client: bool, (seq, ack): (u32, u32), payload_len: u32) -> Packet {
    let [client, server] =
        [(1, 40_000), (2, 80)].map(|(host, port)| Socket { address: Address::v4([10, 0, 0, host]), port });
    let (source, destination) = if is_client { (client, server) } else { (server, client) };
    let flags = TcpFlags(TcpFlags::ACK);
    let tcp = Tcp { seq, ack, payload_len, window: 502, flags, ..Tcp::default() };
    Packet {
        number,
        time: us * 1_000,
        frame_len: 60,
        source,
        destination,
        transport: Transport::Tcp(tcp),
        ..Packet::default()
    }
}

#[test]
fn sequence_numbers_wrap_at_32_bits() {
    // Three segments of 100 bytes; the second goes over the edge: 2^32 - 50 to 50.
    let edge = u32::MAX - 149;
    let packets = [
        segment(1, 0, true, (edge, 1), 100),
        segment(2, 10_000, true, (edge + 100, 1), 100),
        segment(3, 20_000, true, (50, 1), 100),
        segment(4, 30_000, false, (1, 150), 0),
        segment(5, 40_000, true, (150, 1), 100),
    ];
    let mut analyzer = Analyzer::new();
    analyzer.push(&packets);
    let diagnosis = analyzer.finish(CaptureInfo { span: Some((0, 40_000_000)), ..CaptureInfo::default() });
    let found = diagnosis.connections().next().expect("one connection");
    assert_eq!(found.bytes.to_server, 400);
    // Neither lost, nor sent again, nor missing from the capture.
    assert_eq!(diagnosis.findings().count(), 0);
    assert_eq!((found.ledger_ms.get(Line::Recovery), found.ledger_ms.get(Line::Rto)), (0.0, 0.0));
}

#[test]
fn a_scaled_window_has_room_where_an_unscaled_one_would_not() {
    // Two full segments, an ACK 10 ms later, and two more: the window of 30 is 30 × 128 = 3,840 bytes with the
    // option, which is more than two segments (2,920) and less than three.
    let upload = |scale: &str, window: u32| {
        let mut text = handshake(10_000, 10_050, window, scale);
        for round in 0..6_u64 {
            let (now, seq) = (11_000 + 10_100 * round, 1 + 2_920 * round);
            let window = if scale.is_empty() { window } else { window / 128 };
            text += &data(now, CLIENT, seq, 1_460);
            text += &data(now + 10, CLIENT, seq + 1_460, 1_460);
            text += &ack(now + 10_050, SERVER, seq + 2_920, window);
        }
        text
    };
    let small = one(&upload(",wscale 7", 3_840));
    // Five stops of about 10.09 ms each.
    assert!((50.0..=51.0).contains(&small.ledger_ms.get(Line::Rwnd)), "{:?}", small.ledger_ms);
    let roomy = one(&upload(",wscale 7", 64_000));
    assert_eq!(roomy.ledger_ms.get(Line::Rwnd), 0.0);
    assert!((50.0..=51.0).contains(&roomy.ledger_ms.get(Line::Cwnd)), "{:?}", roomy.ledger_ms);
    let unscaled = one(&upload("", 3_840));
    assert!((50.0..=51.0).contains(&unscaled.ledger_ms.get(Line::Rwnd)), "{:?}", unscaled.ledger_ms);
}

#[test]
fn a_new_syn_on_the_same_ports_is_a_new_connection() {
    let first = handshake(100, 200, 65_160, "") + &data(300, CLIENT, 1, 50);
    let second = line(5_000_000, CLIENT, "[S], seq 7777, win 64240, options [mss 1460,wscale 7], length 0")
        + &line(5_000_100, SERVER, "[S.], seq 8888, ack 7778, win 65160, options [mss 1460], length 0")
        + &line(5_000_200, CLIENT, "[.], ack 1, win 502, length 0");
    let found = connections(&(first + &second));
    assert_eq!(found.iter().map(|connection| connection.id).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(found.iter().map(|connection| connection.packets.to_server).collect::<Vec<_>>(), [3, 2]);
    assert_eq!((found[1].start_ms.0, found[1].duration_ms.0), (5_000.0, 0.2));
}

#[test]
fn a_new_syn_in_the_middle_of_a_batch_is_a_new_connection_too() {
    // A client that uses its port again at once, as Linux does on loopback after a second: SYN, SYN-ACK, ACK and data.
    let life = |number: u64, us: i64, isn: u32| {
        let mut packets = [
            segment(number, us, true, (isn, 0), 0),
            segment(number + 1, us + 10, false, (500, isn + 1), 0),
            segment(number + 2, us + 20, true, (isn + 1, 501), 0),
            segment(number + 3, us + 30, true, (isn + 1, 501), 100),
        ];
        for (packet, flags) in packets.iter_mut().zip([TcpFlags::SYN, TcpFlags::SYN | TcpFlags::ACK]) {
            let Transport::Tcp(tcp) = &mut packet.transport else { panic!("TCP") };
            tcp.flags = TcpFlags(flags);
        }
        packets
    };
    let packets = [life(1, 0, 100), life(5, 2_000_000, 90_000), life(9, 4_000_000, 70_000)].concat();
    assert!(packets.len() <= Analyzer::BATCH);
    let mut analyzer = Analyzer::new();
    analyzer.push(&packets);
    let found: Vec<Connection> = analyzer.finish(CaptureInfo::default()).connections().collect();
    let figures = found.iter().map(|one| (one.packets.to_server, one.packets.to_client, one.duration_ms.0));
    assert_eq!(figures.collect::<Vec<_>>(), [(3, 1, 0.03); 3]);
}

#[test]
fn a_syn_sent_again_is_the_same_connection_waiting_for_a_timer() {
    let text = line(0, CLIENT, "[S], seq 99, win 64240, options [mss 1460], length 0")
        + &line(1_000_000, CLIENT, "[S], seq 99, win 64240, options [mss 1460], length 0")
        + &line(1_010_000, SERVER, "[S.], seq 499, ack 100, win 65160, options [mss 1460], length 0")
        + &line(1_010_050, CLIENT, "[.], ack 1, win 502, length 0");
    let found = one(&text);
    assert_eq!(found.ledger_ms.get(Line::Rto), 1_000.0);
    assert!((found.ledger_ms.get(Line::Handshake) - 10.05).abs() < 1e-6, "{:?}", found.ledger_ms);
    assert_eq!(found.base_rtt_ms.map(|rtt| rtt.0), Some(10.05));
}

#[test]
fn a_conversation_that_began_before_the_capture() {
    let text =
        data(0, CLIENT, 5_000, 100) + &data(40_000, SERVER, 900, 200) + &ack(41_000, CLIENT, 1_100, 502);
    let found = one(&text);
    assert_eq!((found.client.as_str(), found.server.as_str()), ("10.0.0.1:40000", "10.0.0.2:80"));
    assert_eq!((found.bytes.to_server, found.bytes.to_client), (100, 200));
    assert_eq!(found.ledger_ms.get(Line::Handshake), 0.0);
    assert_eq!(found.vantage, Vantage::Unknown);
}

#[test]
fn without_a_handshake_ports_tell_the_client_or_else_who_speaks_first() {
    // The server speaks first: its well-known port still makes it the server.
    assert_eq!(one(&data(0, SERVER, 1, 10)).server, "10.0.0.2:80");
    // Two ports that tell nothing: the one that speaks first asks.
    let text =
        "10:00:00.000000 IP 10.0.0.2.5000 > 10.0.0.1.6000: Flags [P.], seq 1:11, ack 1, win 502, length 10\n";
    assert_eq!(one(text).client, "10.0.0.2:5000");
}

#[test]
fn one_direction_alone_has_no_round_trip() {
    let text = data(0, CLIENT, 1, 100) + &data(50_000, CLIENT, 101, 100) + &data(90_000, CLIENT, 201, 100);
    let found = one(&text);
    assert_eq!((found.packets.to_server, found.packets.to_client), (3, 0));
    assert_eq!(found.base_rtt_ms, None);
    assert_eq!(rules(&text), ["one-sided-capture"]);
}

#[test]
fn keep_alives_and_window_probes_carry_no_data() {
    let text = handshake(10_000, 10_050, 65_160, "")
        + &data(11_000, CLIENT, 1, 100)
        + &ack(21_000, SERVER, 101, 502)
        // A keep-alive repeats the last byte (RFC 9293 section 3.8.4).
        + &data(5_000_000, CLIENT, 100, 1)
        + &ack(5_010_000, SERVER, 101, 0)
        // A probe of the window that has just closed is the next byte (section 3.8.6.1).
        + &data(6_000_000, CLIENT, 101, 1)
        + &ack(6_010_000, SERVER, 101, 0);
    let found = one(&text);
    assert_eq!(found.bytes.to_server, 100);
    assert_eq!((found.ledger_ms.get(Line::Rto), found.ledger_ms.get(Line::Recovery)), (0.0, 0.0));
    assert_eq!(rules(&text).iter().filter(|rule| **rule == "rto-stall").count(), 0);
}

#[test]
fn a_segment_overtaken_on_its_way_was_not_lost() {
    let before = handshake(10_000, 10_050, 65_160, "") + &data(11_000, CLIENT, 1, 1_460);
    // The third segment passes 0.3 ms before the second.
    let overtaken =
        before.clone() + &data(11_300, CLIENT, 2_921, 1_460) + &data(11_600, CLIENT, 1_461, 1_460);
    let found = one(&(overtaken + &ack(21_600, SERVER, 4_381, 502)));
    assert_eq!(found.bytes.to_server, 4_380);
    assert_eq!(found.ledger_ms.get(Line::Recovery), 0.0);
    // It comes 300 ms after the third instead: sent again, by a timer.
    let lost = before + &data(11_300, CLIENT, 2_921, 1_460) + &data(311_300, CLIENT, 1_461, 1_460);
    let found = one(&(lost + &ack(321_300, SERVER, 4_381, 502)));
    assert_eq!(found.bytes.to_server, 4_380);
    assert!((found.ledger_ms.get(Line::Rto) - 300.0).abs() < 1e-6, "{:?}", found.ledger_ms);
}

#[test]
fn what_was_sent_twice_counts_once() {
    let text = handshake(10_000, 10_050, 65_160, "")
        + &data(11_000, CLIENT, 1, 100)
        + &data(311_000, CLIENT, 1, 100)
        + &ack(321_000, SERVER, 101, 502);
    let found = one(&text);
    assert_eq!(found.bytes.to_server, 100);
    assert_eq!(found.packets.to_server, 4);
    assert!((found.ledger_ms.get(Line::Rto) - 300.0).abs() < 1e-6, "{:?}", found.ledger_ms);
    // After the timer, until the ACK.
    assert!((found.ledger_ms.get(Line::Recovery) - 10.0).abs() < 1e-6, "{:?}", found.ledger_ms);
}

/// A request, and twelve times these segments of the server, `every` µs after the ones before; they are ACKed a round trip of
/// 20 ms later with this window (in units of 128 bytes). Captured at the server.
fn twelve_parts(segments: &[u64], window: u64, every: u64) -> String {
    let mut text = line(0, CLIENT, "[S], seq 99, win 64240, options [mss 1460,wscale 7], length 0");
    text += &line(10, SERVER, "[S.], seq 499, ack 100, win 65160, options [mss 1460,wscale 7], length 0");
    text += &line(20_000, CLIENT, &format!("[.], ack 500, win {window}, length 0"));
    text += &line(30_000, CLIENT, &format!("[P.], seq 100:150, ack 500, win {window}, length 50"));
    let mut seq = 500;
    for start in (0..12).map(|part| 30_050 + part * every) {
        for (at, len) in (start..).zip(segments) {
            let end = seq + len;
            text += &line(at, SERVER, &format!("[.], seq {seq}:{end}, ack 150, win 502, length {len}"));
            seq = end;
        }
        text += &line(start + 20_000, CLIENT, &format!("[.], ack {seq}, win {window}, length 0"));
    }
    text
}

#[test]
fn an_answer_that_windows_stop_is_one_answer_however_often() {
    // 2,944 bytes fit: two segments, and the third waits for the ACK.
    let stopped =
        one(&twelve_parts(&[1_460, 1_460], 23, 20_020)).exchanges.expect("a request and its answer");
    assert_eq!(stopped.count, 1);
    // From the request at 30 ms to the last segment.
    assert!((stopped.max_ms.0 - (0.051 + 11.0 * 20.02)).abs() < 0.01, "{stopped:?}");
    // Each part is sent whole, and the server takes 50 ms for the next one.
    assert_eq!(one(&twelve_parts(&[1_460, 100], 502, 50_000)).exchanges, None);
    // Updates that Nagle's algorithm holds until the ACK are no answer in twelve parts.
    assert_eq!(one(&twelve_parts(&[12], 502, 20_020)).exchanges, None);
}
