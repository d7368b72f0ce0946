//! MySQL and MariaDB.

use super::{Kind, Protocol, len_of, read, says_in};

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = (body.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(number);
    packet.extend(body);
    packet
}

fn mysql(payload: &[u8]) -> (Kind, String) {
    says_in(Protocol::Mysql, payload)
}

fn login() -> Vec<u8> {
    let mut body = vec![0x8d, 0xa6, 0x0f, 0, 0, 0, 0, 1, 45];
    body.extend([0; 23]);
    body.extend(b"alice\0\x14hunter2hunter2hunter2");
    body
}

#[test]
fn the_greeting_and_the_login() {
    for version in ["8.0.33\0", "5.5.5-10.11.6-MariaDB\0", "11.4.2\0"] {
        let body = [b"\x0a", version.as_bytes(), &[7; 40]].concat();
        assert_eq!(mysql(&packet(0, &body)), (Kind::Greets, "greeting".to_owned()));
    }
    assert_eq!(mysql(&packet(1, &login())), (Kind::Asks, "login".to_owned()));
    // The same before TLS begins.
    assert_eq!(mysql(&packet(1, &login()[..32])), (Kind::Asks, "login".to_owned()));
}

#[test]
fn commands_are_named_by_their_first_word() {
    let asks = |body: &[u8], name: &str| assert_eq!(mysql(&packet(0, body)), (Kind::Asks, name.to_owned()));
    asks(b"\x03SELECT * FROM users WHERE name = 'x'", "SELECT");
    asks(b"\x03insert into t values ('hunter2')", "INSERT");
    asks(b"\x03\0\x01SHOW TABLES", "SHOW");
    asks(b"\x16UPDATE t SET x = ?", "UPDATE");
    asks(b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01", "EXECUTE");
    asks(b"\x0e", "PING");
    assert_eq!(mysql(&packet(0, b"\x19\x01\0\0\0")), (Kind::Neither, "close".to_owned()));
}

#[test]
fn servers_answer() {
    let answers = |payload: &[u8], name: &str| assert_eq!(mysql(payload), (Kind::Answers, name.to_owned()));
    answers(&packet(1, &[0, 0, 0, 2, 0, 0, 0]), "OK");
    answers(&packet(2, &[0, 0, 0, 2, 0, 0, 0]), "OK");
    answers(&packet(1, &[0, 0xfc, 1, 1, 0xfd, 1, 2, 3, 3, 0, 0, 0]), "OK");
    answers(&packet(1, b"\xff\x7a\x04#42S02Table 'x' doesn't exist"), "error");
    let column = packet(2, b"\x03def\x04shop\x01t\x01t\x02id\x02id\x0c\x3f\0\x0b\0\0\0\x03\x03\x42\0\0\0");
    let row = packet(3, b"\x011");
    answers(&[packet(1, &[1]), column, row].concat(), "rows");
}

#[test]
fn a_long_statement_tells_how_far_it_goes() {
    let long = packet(0, format!("\x03SELECT '{}'", "x".repeat(70_000)).as_bytes());
    assert_eq!(len_of(&long, 60, 1_448), Some(long.len() as u32));
}

#[test]
fn near_misses_are_unknown() {
    let not = |bytes: &[u8]| assert_eq!(read(bytes), None, "{}", bytes.escape_ascii());
    // Other protocols have a length of four bytes: what follows is no command.
    not(&packet(0, b"\x03hello"));
    not(&packet(0, b"\x01"));
    not(&packet(0, b"\x0a12345"));
    not(&packet(0, b"\x17hello world and more"));
    not(&[packet(0, b"\x16SELECT 1"), vec![0]].concat());
    // Numbers and lengths that do not fit.
    not(&[packet(1, &[0, 0, 0, 2, 0, 0, 0]), vec![0]].concat());
    not(&packet(1, &[0, 0, 0]));
    not(&[packet(1, &[1]), packet(3, b"\x03def\x04shop\x01t\x01t")].concat());
    not(&packet(1, &[0; 40]));
}
