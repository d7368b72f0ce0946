//! TLS: records and flights.

use super::{Kind, Protocol, len_of, read, recognise, says_in};

/// A record of `kind` with `body`.
pub(crate) fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut record = vec![kind, 3, 3];
    record.extend((body.len() as u16).to_be_bytes());
    record.extend(body);
    record
}

/// A handshake message of `kind` with `len` bytes that begin with a version.
fn handshake(kind: u8, len: u32) -> Vec<u8> {
    let mut message = len.to_be_bytes().to_vec();
    message[0] = kind;
    message.extend([3, 3].iter().chain(&[0x5a; 400]).take(len as usize));
    message
}

fn clear(kind: u8, len: u32) -> Vec<u8> {
    record(22, &handshake(kind, len))
}

fn cipher_change() -> Vec<u8> {
    record(20, &[1])
}

/// Bytes that look encrypted.
fn hidden(kind: u8, len: usize) -> Vec<u8> {
    let noise = (0..len).map(|index| (index as u8).wrapping_mul(151) ^ 0xc5);
    record(kind, &noise.collect::<Vec<_>>())
}

fn flight(records: &[Vec<u8>]) -> (Kind, String) {
    says_in(Protocol::Tls, &records.concat())
}

#[test]
fn the_handshake_asks_and_answers() {
    let is = |records: &[Vec<u8>], kind| assert_eq!(flight(records), (kind, "TLS handshake".to_owned()));
    is(&[clear(1, 200)], Kind::Asks);
    is(&[clear(2, 90)], Kind::Answers);
    // TLS 1.3: the rest of the server's flight is encrypted.
    is(&[clear(2, 118), cipher_change(), hidden(23, 30), hidden(23, 900)], Kind::Answers);
    // TLS 1.2: the server's flight, the client's keys, and the server's end with a ticket.
    is(&[clear(2, 77), clear(11, 300), clear(12, 300), clear(14, 0)], Kind::Answers);
    is(&[clear(16, 66), cipher_change(), hidden(22, 40)], Kind::Asks);
    is(&[clear(4, 180), cipher_change(), hidden(22, 40)], Kind::Answers);
    // Resumed, either end may be the one that says this.
    is(&[cipher_change(), hidden(22, 40)], Kind::Either);
    is(&[hidden(22, 40)], Kind::Either);
    // Written separately.
    is(&[clear(12, 300), clear(14, 0)], Kind::Continues);
    is(&[clear(14, 0)], Kind::Continues);
    is(&[clear(11, 300)], Kind::Either);
}

#[test]
fn a_finished_of_tls_1_3_answers_the_server() {
    for len in [53, 69] {
        assert_eq!(flight(&[cipher_change(), hidden(23, len)]), (Kind::Answers, "TLS Finished".to_owned()));
    }
    let with_request = [cipher_change(), hidden(23, 53), hidden(23, 120)];
    assert_eq!(flight(&with_request), (Kind::Either, "TLS data".to_owned()));
    let other = [cipher_change(), hidden(23, 54)];
    assert_eq!(flight(&other), (Kind::Either, "TLS data".to_owned()));
}

#[test]
fn data_goes_by_direction() {
    assert_eq!(flight(&[hidden(23, 17)]), (Kind::Either, "TLS data".to_owned()));
    assert_eq!(flight(&[hidden(23, 1_200), hidden(23, 24)]), (Kind::Either, "TLS data".to_owned()));
    // The farewell after it changes nothing.
    assert_eq!(flight(&[hidden(23, 100), hidden(21, 26)]), (Kind::Either, "TLS data".to_owned()));
}

#[test]
fn what_answers_nothing() {
    let is = |records: &[Vec<u8>], name: &str| assert_eq!(flight(records), (Kind::Neither, name.to_owned()));
    is(&[record(21, &[1, 0])], "TLS alert");
    is(&[record(21, &[2, 40])], "TLS alert");
    is(&[hidden(21, 26)], "TLS alert");
    is(&[clear(4, 180)], "TLS ticket");
    is(&[cipher_change()], "TLS cipher change");
    is(&[hidden(24, 34)], "TLS heartbeat");
}

#[test]
fn a_long_record_tells_how_far_it_goes() {
    let data = hidden(23, 4_000);
    assert_eq!(len_of(&data, 1_448, 1_448), Some(4_005));
    assert_eq!(len_of(&data, 30, 1_448), Some(4_005));
    assert_eq!(len_of(&data, 4_005, 4_005), Some(4_005));
    // Where another record follows that was not stored, nobody knows.
    let two = [hidden(23, 100), hidden(23, 2_000)].concat();
    assert_eq!(len_of(&two, 60, 1_448), None);
    assert_eq!(len_of(&two, 1_448, 1_448), Some(2_110));
}

#[test]
fn cut_headers_keep_what_is_known() {
    // The record after the change of cipher was not stored: it may be Finished or data.
    let flight = [clear(16, 66), cipher_change(), hidden(22, 40)].concat();
    let cut = recognise(&flight[..40], flight.len() as u32).expect("known");
    assert_eq!((cut.kind, cut.expected_len()), (Kind::Asks, None));
    let finished = [cipher_change(), hidden(23, 53)].concat();
    let cut = recognise(&finished[..8], finished.len() as u32).expect("known");
    assert_eq!(cut.kind, Kind::Either);
}

/// Behind IPv6's header and timestamps a capture of 96 bytes has ten of the payload.
#[test]
fn ten_bytes_suffice_for_a_hello() {
    for (kind, says) in [(1, Kind::Asks), (2, Kind::Answers)] {
        let hello = clear(kind, 200);
        let cut = recognise(&hello[..10], hello.len() as u32).expect("known");
        assert_eq!((cut.kind, cut.expected_len()), (says, Some(209)));
    }
}

#[test]
fn near_misses_are_unknown() {
    let not = |bytes: &[u8]| assert_eq!(read(bytes), None, "{bytes:?}");
    // Versions, types and lengths that TLS does not have.
    not(&[23, 3, 5, 0, 40, 1, 2, 3]);
    not(&[23, 2, 3, 0, 40, 1, 2, 3]);
    not(&[25, 3, 3, 0, 40, 1, 2, 3]);
    not(&[23, 3, 3, 0, 15, 1, 2, 3]);
    not(&[23, 3, 3, 0x48, 1, 1, 2, 3]);
    not(&[22, 3, 3, 0, 3, 1, 2, 3]);
    not(&[20, 3, 3, 0, 2, 1, 1]);
    not(&[20, 3, 3, 0, 1, 2]);
    not(&[21, 3, 3, 0, 2, 3, 0]);
    not(&[21, 3, 3, 0, 97, 3, 0]);
    // A record that ends inside the segment, and no record after it.
    not(&[hidden(23, 100), b"GET / HTTP/1.1\r\n\r\n".to_vec()].concat());
    // A segment from the middle of a record.
    not(&hidden(23, 4_000)[1_448..2_896]);
}

#[test]
fn encrypted_handshakes_are_not_read() {
    // The first byte is a ClientHello's by chance; the length does not fit.
    let noise = [&[1, 0x77, 0x12, 0x9c][..], &[0x33; 60]].concat();
    assert_eq!(flight(&[record(22, &noise)]), (Kind::Either, "TLS handshake".to_owned()));
    // It fits, and no version follows.
    let noise = [&[1, 0, 0, 30, 9, 9][..], &[0x33; 60]].concat();
    assert_eq!(flight(&[record(22, &noise)]), (Kind::Either, "TLS handshake".to_owned()));
}

/// A nonce of zeros stands before the first encrypted message, and looks like an empty one in the clear.
#[test]
fn a_nonce_of_zeros_is_no_message() {
    let finished = record(22, &[&[0; 8][..], &[0x9c; 32]].concat());
    let handshake = (Kind::Either, "TLS handshake".to_owned());
    assert_eq!(flight(&[cipher_change(), finished.clone()]), handshake);
    assert_eq!(flight(&[finished]), handshake);
    // An empty one is alone.
    assert_eq!(flight(&[clear(0, 0)]).0, Kind::Continues);
}

#[test]
fn control_frames_of_http2_are_told_by_their_length() {
    let may_be = |records: &[Vec<u8>]| {
        let bytes = records.concat();
        recognise(&bytes, bytes.len() as u32).expect("known").may_be_http2_control()
    };
    for len in [26, 30, 34, 33, 37, 41] {
        assert!(may_be(&[hidden(23, len)]), "{len}");
    }
    assert!(may_be(&[hidden(23, 26), hidden(23, 30)]));
    assert!(!may_be(&[hidden(23, 26), hidden(23, 100)]));
    assert!(!may_be(&[hidden(23, 27)]));
    assert!(!may_be(&[hidden(21, 26)]));
    assert!(!may_be(&[cipher_change(), hidden(23, 34)]));
}
