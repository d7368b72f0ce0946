//! MySQL's and MariaDB's protocol: a length of three bytes, a number within the exchange, and the packet.

use super::{Kind, Message, Name, Protocol, Segment, name, sql};

/// Bytes before a packet.
const HEADER: usize = 4;

/// The capability "protocol 4.1", without which no client of this century logs in.
const PROTOCOL_41: u8 = 0x02;

/// What a client or a server says. A packet has to end where its segment does, or to say what no other
/// protocol does.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    let &[low, mid, high, number, first] = segment.array(0)?;
    let len = u32::from_le_bytes([low, mid, high, 0]);
    let is_alone = len + HEADER as u32 == segment.len;
    let body = segment.skip(HEADER);
    let said = match number {
        0 if first == 10 && is_alone => greeting(body),
        0 => command(first, body, len, is_alone),
        1..=3 if is_alone && is_login(body, len) => Some((Kind::Asks, name!("login"))),
        _ if is_alone => answer(first, body, len),
        1 => columns(segment, len),
        _ => None,
    };
    let (kind, name) = said?;
    let message = Message::new(Protocol::Mysql, kind, *name);
    Some(message.with_len_of(segment, Some(len + HEADER as u32)))
}

/// The server's first words: its version, "8.0.33" or "5.5.5-10.11.6-MariaDB".
fn greeting(body: Segment<'_>) -> Option<(Kind, &'static Name)> {
    let version = body.bytes.get(1..5)?;
    let is_version = version[0].is_ascii_digit() && version[1..3].contains(&b'.');
    is_version.then_some((Kind::Greets, name!("greeting")))
}

/// A command. Other protocols begin with a length of four bytes too, whose last is 0: what is in it has to be plain.
fn command(first: u8, body: Segment<'_>, len: u32, is_alone: bool) -> Option<(Kind, &'static Name)> {
    // Statements are numbered from 1: the highest byte is 0.
    let has_statement = || body.byte(4) == Some(0);
    match (first, len) {
        (0x03, 2..) => statement(&body.bytes[1..]),
        (0x16, 2..) if is_alone => sql::first_word(&body.bytes[1..]).map(|word| (Kind::Asks, word)),
        (0x17, 10..) if is_alone && body.array(6) == Some(&[1, 0, 0, 0]) => {
            Some((Kind::Asks, name!("EXECUTE")))
        }
        (0x19, 5) if is_alone && has_statement() => Some((Kind::Neither, name!("close"))),
        (0x1a, 5) if is_alone && has_statement() => Some((Kind::Asks, name!("reset"))),
        (0x0e, 1) if is_alone => Some((Kind::Asks, name!("PING"))),
        _ => None,
    }
}

/// A query, whose attributes since MySQL 8.0.23 are two bytes where there are none.
fn statement(text: &[u8]) -> Option<(Kind, &'static Name)> {
    let text = text.strip_prefix(&[0, 1]).unwrap_or(text);
    sql::first_word(text).map(|word| (Kind::Asks, word))
}

/// A login, or the request for TLS that comes before it: 23 bytes of zeros, of which MariaDB uses four.
fn is_login(body: Segment<'_>, len: u32) -> bool {
    len >= 32 && body.byte(1).is_some_and(|bits| bits & PROTOCOL_41 != 0) && body.array(9) == Some(&[0; 19])
}

/// A short answer: done, or an error with its state ("#42S02"), which is missing before the login.
fn answer(first: u8, body: Segment<'_>, len: u32) -> Option<(Kind, &'static Name)> {
    match first {
        0x00 if (7..=1_000).contains(&len) && is_ok(body)? => Some((Kind::Answers, name!("OK"))),
        0xff if len > 3 && body.byte(3).is_none_or(|byte| matches!(byte, b' '..=b'~')) => {
            Some((Kind::Answers, name!("error")))
        }
        _ => None,
    }
}

/// Whether two numbers follow (rows changed, the last one's number) and a status that says "in a transaction" or "each
/// statement is one".
fn is_ok(body: Segment<'_>) -> Option<bool> {
    let after = body.skip(1).bytes;
    let after = after.get(number_len(*after.first()?)?..)?;
    let &[low, high] = after.get(number_len(*after.first()?)?..)?.first_chunk()?;
    Some(low & 3 != 0 && high < 0x80)
}

/// Bytes of a number that begins with `first`.
fn number_len(first: u8) -> Option<usize> {
    match first {
        0..=0xfa => Some(1),
        0xfc => Some(3),
        0xfd => Some(4),
        0xfe => Some(9),
        _ => None,
    }
}

/// The beginning of a result: a packet with the number of columns and the first column's description, which
/// begins with the catalogue "def".
fn columns(segment: Segment<'_>, len: u32) -> Option<(Kind, &'static Name)> {
    const CATALOGUE: &[u8; 4] = b"\x03def";
    let at = HEADER + len as usize;
    let is_next = segment.byte(at + 3) == Some(2) && segment.array(at + HEADER) == Some(CATALOGUE);
    (len == 1 && is_next).then_some((Kind::Answers, name!("rows")))
}
