//! HTTP/2 in the clear.

use super::{Kind, Protocol, len_of, read, recognise, says_in};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const END_HEADERS: u8 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let mut frame = (body.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(body);
    frame
}

/// What one block of headers says.
fn headers(block: &[u8]) -> (Kind, String) {
    says_in(Protocol::Http2, &frame(1, END_HEADERS, 1, block))
}

#[test]
fn headers_ask_and_answer() {
    let is = |block: &[u8], kind, name: &str| assert_eq!(headers(block), (kind, name.to_owned()));
    is(&[0x82, 0x86, 0x84, 0x41, 3, b'a', b'.', b'b'], Kind::Asks, "HTTP/2 GET");
    is(&[0x83, 0x86, 0x44, 1, b'/'], Kind::Asks, "HTTP/2 POST");
    is(&[0x86, 0x83, 0x84], Kind::Asks, "HTTP/2 POST");
    is(&[0x42, 3, b'P', b'U', b'T', 0x87], Kind::Asks, "HTTP/2 request");
    is(&[0x88, 0x76, 1, b'x'], Kind::Answers, "HTTP/2 200");
    is(&[0x8d], Kind::Answers, "HTTP/2 404");
    is(&[0x48, 3, b'2', b'0', b'1'], Kind::Answers, "HTTP/2 answer");
    // After a change of the table's size.
    is(&[0x3f, 0xe1, 0x1f, 0x82, 0x87], Kind::Asks, "HTTP/2 GET");
    is(&[0x20, 0x88], Kind::Answers, "HTTP/2 200");
    // Fields of earlier blocks by number: a method before a scheme, and what nobody can know.
    is(&[0xc3, 0x86, 0xc2], Kind::Asks, "HTTP/2 request");
    is(&[0xc3, 0xc2, 0xc1], Kind::Either, "HTTP/2 headers");
    // Names written out, and trailers.
    is(b"\x00\x07:method\x03GET", Kind::Asks, "HTTP/2 request");
    is(b"\x00\x07:status\x03200", Kind::Answers, "HTTP/2 answer");
    is(b"\x40\x0bgrpc-status\x010", Kind::Continues, "HTTP/2 trailers");
}

#[test]
fn padding_and_priority_come_before_the_block() {
    let padded = frame(1, END_HEADERS | 8 | 0x20, 3, &[2, 0, 0, 0, 0, 15, 0x82, 0x86, 0x84, 0, 0]);
    assert_eq!(says_in(Protocol::Http2, &padded), (Kind::Asks, "HTTP/2 GET".to_owned()));
}

#[test]
fn what_answers_nothing() {
    for (bytes, name) in [
        (frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]), "HTTP/2 settings"),
        (frame(4, 1, 0, &[]), "HTTP/2 settings"),
        (frame(6, 0, 0, &[7; 8]), "HTTP/2 ping"),
        (frame(6, 1, 0, &[7; 8]), "HTTP/2 ping"),
        (frame(8, 0, 0, &[0, 0, 0x10, 0]), "HTTP/2 window update"),
        (frame(8, 0, 5, &[0, 0, 0x10, 0]), "HTTP/2 window update"),
        (frame(3, 0, 5, &[0, 0, 0, 8]), "HTTP/2 reset"),
        (frame(7, 0, 0, &[0; 8]), "HTTP/2 goaway"),
        (PREFACE.to_vec(), "HTTP/2 preface"),
        ([PREFACE, &frame(4, 0, 0, &[0; 6]), &frame(8, 0, 0, &[0, 1, 0, 0])].concat(), "HTTP/2 preface"),
    ] {
        assert_eq!(says_in(Protocol::Http2, &bytes), (Kind::Neither, name.to_owned()));
    }
}

#[test]
fn a_request_behind_other_frames_asks() {
    let request = frame(1, 5, 1, &[0x82, 0x86, 0x84]);
    let first = [PREFACE, &frame(4, 0, 0, &[]), &request].concat();
    assert_eq!(says_in(Protocol::Http2, &first), (Kind::Asks, "HTTP/2 GET".to_owned()));
    let later = [frame(4, 1, 0, &[]), request].concat();
    assert_eq!(says_in(Protocol::Http2, &later), (Kind::Asks, "HTTP/2 GET".to_owned()));
    let answer = [frame(8, 0, 0, &[0, 0, 1, 0]), frame(1, 4, 1, &[0x88]), frame(0, 1, 1, b"hello")].concat();
    assert_eq!(says_in(Protocol::Http2, &answer), (Kind::Answers, "HTTP/2 200".to_owned()));
}

#[test]
fn data_continues() {
    let data = frame(0, 0, 1, &[b'x'; 500]);
    assert_eq!(says_in(Protocol::Http2, &data), (Kind::Continues, "HTTP/2 data".to_owned()));
    let longest = frame(0, 0, 1, &[b'x'; 16_384]);
    assert_eq!(len_of(&longest, 60, 1_448), Some(16_393));
    // Half a frame of another length: too little to know it.
    assert_eq!(recognise(&data[..60], 300), None);
}

#[test]
fn near_misses_are_unknown() {
    let not = |bytes: &[u8]| assert_eq!(read(bytes), None, "{bytes:?}");
    not(&PREFACE[..11]);
    not(b"PRI * HTTP/1.1\r\n\r\n");
    // Types, flags, lengths and streams that do not go together.
    not(&frame(0x1f, 0, 1, &[0; 10]));
    not(&frame(0, 0, 0, &[0; 10]));
    not(&frame(0, 2, 1, &[0; 10]));
    not(&frame(1, 0x80, 1, &[0x82]));
    not(&frame(1, 4, 0, &[0x82]));
    not(&frame(1, 4, 2, &[0x82]));
    not(&frame(1, 0, 1, &[0x82]));
    not(&frame(4, 0, 1, &[0; 6]));
    not(&frame(4, 0, 0, &[0; 5]));
    not(&frame(4, 1, 0, &[0; 6]));
    not(&frame(6, 0, 0, &[0; 9]));
    not(&frame(8, 0, 0, &[0; 4]));
    not(&frame(0, 0, 1 << 24, &[0; 10]));
    not(&frame(0, 0, 1, &[0; 16_385]));
    // A field with the number 0, and a block of nothing but priority.
    not(&frame(1, 4, 1, &[0x80]));
    not(&frame(1, 4 | 0x20, 1, &[0, 0, 0, 0, 1]));
    // Something else follows.
    not(&[frame(0, 0, 1, &[0; 10]), vec![0xff; 20]].concat());
}
