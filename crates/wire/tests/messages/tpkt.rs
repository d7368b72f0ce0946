//! S7, COTP and TPKT.

use super::{Kind, Protocol, len_of, read, says_in};

fn tpkt(body: &[u8]) -> Vec<u8> {
    let len = body.len() as u16 + 4;
    [&[3, 0], &len.to_be_bytes()[..], body].concat()
}

fn data(body: &[u8]) -> Vec<u8> {
    tpkt(&[&[2, 0xf0, 0x80], body].concat())
}

fn s7(payload: &[u8]) -> (Kind, String) {
    says_in(Protocol::S7, payload)
}

/// A job or its answer with `function`.
fn job(rosctr: u8, function: u8) -> Vec<u8> {
    let errors: &[u8] = if rosctr == 3 { &[0, 0] } else { &[] };
    data(&[&[0x32, rosctr, 0, 0, 0x11, 0, 0, 14, 0, 0], errors, &[function], &[0; 13]].concat())
}

#[test]
fn connections_jobs_and_user_data() {
    let is = |payload: &[u8], kind, name: &str| assert_eq!(s7(payload), (kind, name.to_owned()));
    is(
        &tpkt(&[17, 0xe0, 0, 0, 0, 1, 0, 0xc0, 1, 10, 0xc1, 2, 1, 0, 0xc2, 2, 1, 2]),
        Kind::Asks,
        "COTP connect",
    );
    is(&tpkt(&[6, 0xd0, 0, 1, 0, 2, 0]), Kind::Answers, "COTP connected");
    is(&job(1, 4), Kind::Asks, "S7 read");
    is(&job(3, 4), Kind::Answers, "S7 read");
    is(&job(1, 5), Kind::Asks, "S7 write");
    is(&job(1, 0xf0), Kind::Asks, "S7 setup");
    let user = |how: u8| data(&[0x32, 7, 0, 0, 1, 0, 0, 8, 0, 4, 0, 1, 0x12, 4, 0x11, how, 1, 0, 0, 0, 0, 0]);
    is(&user(0x44), Kind::Asks, "S7 user data");
    is(&user(0x84), Kind::Answers, "S7 user data");
    is(&user(0x02), Kind::Neither, "S7 push");
}

#[test]
fn newer_controllers() {
    let is = |body: &[u8], kind, name: &str| assert_eq!(s7(&data(body)), (kind, name.to_owned()));
    is(&[0x72, 2, 0, 4, 0x31, 0, 0, 4], Kind::Asks, "S7 request");
    is(&[0x72, 1, 0, 4, 0x32, 0, 0, 4], Kind::Answers, "S7 answer");
    is(&[&[0x72, 3, 0, 40, 32][..], &[9; 32], &[0x33, 0, 0]].concat(), Kind::Neither, "S7 push");
    is(&[0x72, 0xff, 0, 0], Kind::Neither, "S7 keep-alive");
}

#[test]
fn empty_fragments_are_skipped() {
    let empty = tpkt(&[2, 0xf0, 0]);
    assert_eq!(s7(&empty), (Kind::Neither, "COTP fragment".to_owned()));
    assert_eq!(s7(&[empty, job(1, 4)].concat()), (Kind::Asks, "S7 read".to_owned()));
}

#[test]
fn a_long_message_tells_how_far_it_goes() {
    let long = data(&[&[0x32, 3, 0, 0, 1, 0, 0, 2, 3, 0, 0, 0, 4][..], &[7; 2_000]].concat());
    assert_eq!(len_of(&long, 40, 1_448), Some(long.len() as u32));
}

#[test]
fn near_misses_are_unknown() {
    let not = |bytes: &[u8]| assert_eq!(read(bytes), None, "{bytes:?}");
    not(&[3, 1, 0, 22, 17, 0xe0, 0, 0, 0, 1, 0, 1, 1]);
    not(&tpkt(&[2, 0xf0, 0x81, 0x32, 1, 0, 0]));
    not(&tpkt(&[2, 0xf1, 0x80, 0x32, 1, 0, 0]));
    not(&data(&[0x32, 9, 0, 0, 0, 0, 0, 0, 0, 0, 4]));
    not(&data(&[0x60, 1, 0, 0, 0, 0, 0]));
    not(&tpkt(&[60, 0xe0, 0, 0, 0, 1, 0]));
    not(&[job(1, 4), vec![9; 20]].concat());
    not(&[3, 0, 0, 0, 2, 0xf0, 0x80]);
}
