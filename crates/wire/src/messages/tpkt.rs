//! TPKT (RFC 1006) and what is in it: COTP's connection (ISO 8073, also before RDP) and Siemens' S7.

use super::{Kind, Message, Name, Protocol, Segment, name};

/// Bytes of TPKT and of COTP's header for data.
const DATA_HEADER: usize = 7;

/// Empty fragments of one segment that are skipped; some controllers send one before each message.
const EMPTY: usize = 4;

/// A request or an answer.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    let mut at = 0;
    for _ in 0..EMPTY {
        let rest = segment.skip(at as usize);
        let (len, said) = packet(rest)?;
        at += len;
        let is_last = at >= segment.len || segment.bytes.len() < at as usize + 6;
        if let Some((kind, name)) = said.or(is_last.then_some((Kind::Neither, name!("COTP fragment")))) {
            let message = Message::new(Protocol::S7, kind, *name);
            return Some(message.with_len_of(segment, Some(at)));
        }
    }
    None
}

/// The length of the packet at the beginning of `segment`, and what it says unless it is empty.
fn packet(segment: Segment<'_>) -> Option<(u32, Option<(Kind, &'static Name)>)> {
    let &[3, 0, high, low, header_len, kind] = segment.array(0)? else { return None };
    let len = u32::from(u16::from_be_bytes([high, low]));
    let is_followed = || segment.skip(len as usize).array(0).is_none_or(|next: &[u8; 2]| *next == [3, 0]);
    if len < DATA_HEADER as u32 || (len < segment.len && !is_followed()) {
        return None;
    }
    let said = match (kind & 0xf0, header_len) {
        // Credit is 0 in classes 0 and 1.
        (0xe0, 6..) if connects(segment, len) => Some((Kind::Asks, name!("COTP connect"))),
        (0xd0, 6..) if connects(segment, len) => Some((Kind::Answers, name!("COTP connected"))),
        // Number 0, and the end's mark or not.
        (0xf0, 2) if kind == 0xf0 && segment.byte(6)? & 0x7f == 0 => match len as usize {
            DATA_HEADER => None,
            _ => Some(data(segment.skip(DATA_HEADER))?),
        },
        _ => return None,
    };
    Some((len, said))
}

/// Whether the connection's header is as long as what carries it.
fn connects(segment: Segment<'_>, len: u32) -> bool {
    segment.byte(5).is_some_and(|kind| kind & 0x0f == 0)
        && segment.byte(4).is_some_and(|header_len| u32::from(header_len) + 5 <= len)
}

/// What is in COTP's data, if it is S7. MMS and others are unknown.
fn data(body: Segment<'_>) -> Option<(Kind, &'static Name)> {
    match body.byte(0)? {
        0x32 => s7(body),
        0x72 => s7_plus(body),
        _ => None,
    }
}

/// S7: the kind of message, and the function where there is one. Answers have two bytes of errors before it.
fn s7(body: Segment<'_>) -> Option<(Kind, &'static Name)> {
    let said = match body.byte(1)? {
        1 => (Kind::Asks, function(body.byte(10))),
        2 => (Kind::Answers, name!("S7 acknowledged")),
        3 => (Kind::Answers, function(body.byte(12))),
        // User data: the parameter's head of three bytes, its length, how, and which type.
        7 => match body.byte(15)? >> 4 {
            4 => (Kind::Asks, name!("S7 user data")),
            8 => (Kind::Answers, name!("S7 user data")),
            0 => (Kind::Neither, name!("S7 push")),
            _ => return None,
        },
        _ => return None,
    };
    Some(said)
}

fn function(code: Option<u8>) -> &'static Name {
    match code {
        Some(0x04) => name!("S7 read"),
        Some(0x05) => name!("S7 write"),
        Some(0x1a..=0x1c) => name!("S7 download"),
        Some(0x1d..=0x1f) => name!("S7 upload"),
        Some(0x28) => name!("S7 control"),
        Some(0x29) => name!("S7 stop"),
        Some(0xf0) => name!("S7 setup"),
        _ => name!("S7"),
    }
}

/// S7 of newer controllers: version, length, for version 3 a checksum, and the kind of message.
fn s7_plus(body: Segment<'_>) -> Option<(Kind, &'static Name)> {
    let at = match body.byte(1)? {
        1 | 2 => 4,
        3 => 4 + 1 + usize::from(body.byte(4)?),
        0xff => return Some((Kind::Neither, name!("S7 keep-alive"))),
        _ => return None,
    };
    let Some(kind) = body.byte(at) else { return Some((Kind::Either, name!("S7"))) };
    Some(match kind {
        0x31 => (Kind::Asks, name!("S7 request")),
        0x32 => (Kind::Answers, name!("S7 answer")),
        0x33 => (Kind::Neither, name!("S7 push")),
        _ => return None,
    })
}
