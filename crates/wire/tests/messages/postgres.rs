//! PostgreSQL.

use super::{Kind, Protocol, len_of, read, recognise, says_in};

pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend((body.len() as u32 + 4).to_be_bytes());
    message.extend(body);
    message
}

fn start(code: u32, body: &[u8]) -> Vec<u8> {
    let mut message = (body.len() as u32 + 8).to_be_bytes().to_vec();
    message.extend(code.to_be_bytes());
    message.extend(body);
    message
}

fn says(messages: &[Vec<u8>]) -> (Kind, String) {
    says_in(Protocol::Postgres, &messages.concat())
}

#[test]
fn the_start() {
    let is = |message: Vec<u8>, kind, name: &str| assert_eq!(says(&[message]), (kind, name.to_owned()));
    is(start(196_608, b"user\0alice\0database\0shop\0\0"), Kind::Asks, "startup");
    is(start(80_877_103, b""), Kind::Asks, "SSL request");
    is(start(80_877_104, b""), Kind::Asks, "GSS request");
    is(start(80_877_102, &[1; 8]), Kind::Neither, "cancel");
    assert_eq!(read(&start(196_610 + 1, b"user\0alice\0\0")), None);
    assert_eq!(read(&start(80_877_103, b"x")), None);
    assert_eq!(read(&[start(80_877_103, b""), vec![1]].concat()), None);
}

#[test]
fn statements_are_named_by_their_first_word() {
    let asks = |messages: &[Vec<u8>], name: &str| assert_eq!(says(messages), (Kind::Asks, name.to_owned()));
    asks(&[message(b'Q', b"SELECT secret FROM users WHERE id = 1\0")], "SELECT");
    asks(&[message(b'Q', b"/* app */ update t set x = 'hunter2'\0")], "UPDATE");
    asks(&[message(b'Q', b"frobnicate 'hunter2'\0")], "query");
    let prepared = [
        message(b'P', b"s1\0INSERT INTO t VALUES ($1)\0\0\0"),
        message(b'B', b"\0s1\0\0\0\0\0\0\0"),
        message(b'D', b"P\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ];
    asks(&prepared, "INSERT");
    asks(&prepared[1..], "execute");
    asks(&prepared[4..], "sync");
    asks(&[message(b'D', b"Sname\0"), message(b'S', b"")], "describe");
    asks(&[message(b'C', b"Sname\0"), message(b'S', b"")], "close");
    asks(&[message(b'p', b"hunter2\0")], "password");
    assert_eq!(says(&[message(b'X', b"")]), (Kind::Neither, "terminate".to_owned()));
}

#[test]
fn servers_answer() {
    let is = |messages: &[Vec<u8>], kind, name: &str| assert_eq!(says(messages), (kind, name.to_owned()));
    let row = message(b'D', b"\0\x01\0\0\0\x011");
    let end = [message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat();
    let columns = message(b'T', b"\0\x01id\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
    is(&[columns, row.clone(), end.clone()], Kind::Answers, "result");
    is(&[message(b'2', b""), row.clone(), end.clone()], Kind::Answers, "result");
    is(&[message(b'1', b""), message(b'2', b"")], Kind::Answers, "result");
    is(&[end], Kind::Answers, "complete");
    is(&[row.clone(), row], Kind::Continues, "rows");
    is(&[message(b'R', &[0, 0, 0, 0])], Kind::Answers, "authentication");
    is(&[message(b'E', b"SERROR\0C42P01\0Mno such table\0\0"), message(b'Z', b"E")], Kind::Answers, "error");
    is(&[message(b'N', b"SNOTICE\0C00000\0Mhm\0\0")], Kind::Neither, "notice");
    is(&[message(b'S', b"TimeZone\0UTC\0")], Kind::Neither, "parameter");
    is(&[message(b'A', b"\0\0\0\x07news\0\0")], Kind::Neither, "notification");
    is(&[message(b'G', &[0, 0, 0]), message(b'Z', b"I")], Kind::Answers, "copy");
    is(&[message(b'd', b"a line of a copy\n")], Kind::Continues, "copy data");
}

#[test]
fn a_long_statement_tells_how_far_it_goes() {
    let long = message(b'Q', format!("SELECT '{}'\0", "x".repeat(5_000)).as_bytes());
    assert_eq!(len_of(&long, 60, 1_448), Some(long.len() as u32));
    // Without a word that is known, half a message is too little.
    let other = message(b'Q', "x".repeat(5_000).as_bytes());
    assert_eq!(recognise(&other[..60], 1_448), None);
}

#[test]
fn near_misses_are_unknown() {
    let not = |bytes: &[u8]| assert_eq!(read(bytes), None, "{}", bytes.escape_ascii());
    not(&message(b'Q', b""));
    not(&message(b'Q', &[1, 2, 3]));
    not(&message(b'y', b"hello"));
    not(&message(b'Z', b"X"));
    not(&message(b'X', b"x"));
    not(b"Q\0\0\0\x03abc");
    // A client's message and a server's.
    not(&[message(b'S', b""), message(b'Z', b"I")].concat());
    // One that ends too early, and nonsense after it.
    not(&[message(b'Q', b"SELECT 1\0"), vec![0xff; 9]].concat());
    not(b"S\0");
}
