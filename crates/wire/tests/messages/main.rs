//! Payloads built by hand, whole and cut, against what they say; and bytes that say nothing.

mod dns;
mod enip;
mod hostile;
mod http1;
mod http2;
mod lines;
mod modbus;
mod mysql;
mod postgres;
mod redis;
mod ssh;
mod tls;
mod tpkt;

use tcpwhy_wire::messages::{Kind, Message, Name, Protocol, recognise};

/// Bytes that a capture of 96 a frame has of the payload, with the longest headers: Ethernet, IPv4, TCP and timestamps leave 30,
/// without timestamps 42.
const SNAPPED: usize = 40;

/// What `payload` says, stored whole. Cut at 40 bytes and more it says the same, but for the name's end; cut shorter,
/// it says the same or nothing.
fn read(payload: &[u8]) -> Option<Message> {
    let len = payload.len() as u32;
    let whole = recognise(payload, len);
    for stored in 0..payload.len() {
        let cut = recognise(&payload[..stored], len);
        let same = cut.zip(whole).is_some_and(|(a, b)| a.protocol == b.protocol);
        if stored >= SNAPPED {
            assert!(same || whole.is_none(), "{stored} bytes: {cut:?}, whole: {whole:?}");
        }
        if let Some(cut) = cut {
            assert!(cut.expected_len().is_none_or(|bytes| bytes >= len), "{cut:?}");
        }
    }
    whole
}

/// Protocol, kind and name of `payload`.
#[track_caller]
fn says(payload: &[u8]) -> (Protocol, Kind, String) {
    let message = read(payload).unwrap_or_else(|| panic!("unknown: {}", payload.escape_ascii()));
    (message.protocol, message.kind, message.name.to_string())
}

/// Kind and name of `payload`, whose protocol is `protocol`.
#[track_caller]
fn says_in(protocol: Protocol, payload: &[u8]) -> (Kind, String) {
    let (found, kind, name) = says(payload);
    assert_eq!(found, protocol, "{}", payload.escape_ascii());
    (kind, name)
}

/// How far the message in `payload` goes, of which only `stored` bytes were stored.
fn len_of(payload: &[u8], stored: usize, len: u32) -> Option<u32> {
    recognise(&payload[..stored], len).expect("known").expected_len()
}

/// A message is small: packets are moved about in batches.
#[test]
fn a_message_adds_little_to_a_packet() {
    assert!(size_of::<Option<Message>>() <= 40, "{}", size_of::<Option<Message>>());
    assert_eq!(size_of::<Name>(), 32);
}

/// How messages begin that are known, for bytes after them that make no sense.
const STARTS: [&[u8]; 24] = [
    b"",
    b"GET /",
    b"POST http://a@",
    b"HTTP/1.1 200 OK\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\x17\x03\x03\x00\x30",
    b"\x14\x03\x03\x00\x01\x01",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x00\x00\x05\x01\x04\x00\x00\x00\x01",
    b"*2\r\n$3\r\nGET\r\n",
    b"*3\r\n$",
    b"$4294967295\r\n",
    b"+",
    b"Q\0\0\0\x20SELECT ",
    b"D\0\0\0\x20",
    b"\x20\0\0\0\x03SELECT ",
    b"\x01\0\0\x01\x01\x1e\0\0\x02\x03def",
    b"\0\x1d\xbe\xef\x01\0\0\x01\0\0\0\0\0\0\x07example",
    b"\0\x01\0\0\0\x06\x01",
    b"\x03\0\0\x1f\x02\xf0\x80",
    b"SSH-2.0-",
    b"220 ",
    b"a1 LOGIN ",
    b"* ",
];
