//! Modbus over TCP (Modbus Messaging on TCP/IP Implementation Guide 1.0b): a number, zeros, a length, a unit, a
//! function.
//!
//! Requests and answers look alike; what tells them apart is their length. A write is echoed, and then only the
//! direction tells.

use super::{Kind, Message, Name, Protocol, Segment, name};

/// Bytes before those that the length counts.
const HEADER: u32 = 6;

/// The longest that the length may be: a unit and 253 bytes.
const LONGEST: u32 = 254;

/// The most coils that can be asked for at once; registers are fewer.
const MOST_COILS: u16 = 2_000;

/// The longest segment that is believed where not all of it was stored: few programs send several messages at once.
const LONGEST_SEGMENT: u32 = 2 * (HEADER + LONGEST);

/// Messages of one segment that are looked at.
const MESSAGES: usize = 16;

/// A request or an answer, and others up to the segment's end, as far as they were stored.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    let ((kind, name), mut end) = one(segment)?;
    for _ in 1..MESSAGES {
        let rest = segment.skip(end as usize);
        if rest.bytes.len() < HEADER as usize + 2 {
            break;
        }
        end += one(rest)?.1;
    }
    let is_cut = segment.bytes.len() < end as usize + HEADER as usize + 2
        && !segment.is_whole()
        && segment.len <= LONGEST_SEGMENT;
    (end == segment.len || is_cut)
        .then(|| Message::new(Protocol::Modbus, kind, *name).with_len_of(segment, Some(end)))
}

/// What the message at the beginning of `segment` says, and its length.
fn one(segment: Segment<'_>) -> Option<((Kind, &'static Name), u32)> {
    let &[_, _, 0, 0, 0, len, _, function] = segment.array(0)? else { return None };
    let len = u32::from(len);
    if !(2..=LONGEST).contains(&len) || HEADER + len > segment.len {
        return None;
    }
    Some((say(function, segment.skip(8), len)?, HEADER + len))
}

/// What `function` with `data` says; `len` counts the unit, the function and the data.
fn say(function: u8, data: Segment<'_>, len: u32) -> Option<(Kind, &'static Name)> {
    if function & 0x80 != 0 {
        let is_exception = len == 3 && matches!(data.byte(0)?, 1..=11) && name_of(function & 0x7f).is_some();
        return is_exception.then_some((Kind::Answers, name!("Modbus exception")));
    }
    let count = data.byte(0).map(u32::from);
    let is_counted = count.is_some_and(|count| count + 3 == len);
    let asks = |is_asking: bool| if is_asking { Kind::Asks } else { Kind::Answers };
    let kind = match function {
        // Three bytes of coils are as long as a request that asks for some from 768 on.
        1 | 2 if len == 6 && is_counted && is_number_of_coils(data) => Kind::Either,
        1..=4 if is_counted && (function < 3 || count.is_some_and(|count| count % 2 == 0)) => Kind::Answers,
        1..=4 if len == 6 && is_number_of_coils(data) => Kind::Asks,
        5 | 6 | 8 if len == 6 => Kind::Either,
        15 | 16 if len == 6 => Kind::Answers,
        15 | 16 if data.byte(4).is_none_or(|count| u32::from(count) + 7 == len) => Kind::Asks,
        22 if len == 8 => Kind::Either,
        23 if data.byte(8).is_some_and(|count| u32::from(count) + 11 == len) => Kind::Asks,
        23 if is_counted => Kind::Answers,
        7 if len <= 3 => asks(len == 2),
        11 if matches!(len, 2 | 6) => asks(len == 2),
        12 | 17 if len == 2 || is_counted => asks(len == 2),
        43 if matches!(data.byte(0), Some(13 | 14)) && len >= 5 => asks(len == 5),
        20 | 21 if is_counted => Kind::Either,
        90 if len >= 3 => Kind::Either,
        _ => return None,
    };
    name_of(function).map(|name| (kind, name))
}

/// Whether a request's second number is one of coils.
fn is_number_of_coils(data: Segment<'_>) -> bool {
    data.u16(2).is_some_and(|count| (1..=MOST_COILS).contains(&count))
}

fn name_of(function: u8) -> Option<&'static Name> {
    Some(match function {
        1 => name!("Read Coils"),
        2 => name!("Read Discrete Inputs"),
        3 => name!("Read Holding Registers"),
        4 => name!("Read Input Registers"),
        5 => name!("Write Single Coil"),
        6 => name!("Write Single Register"),
        7 => name!("Read Exception Status"),
        8 => name!("Diagnostics"),
        11 => name!("Get Comm Event Counter"),
        12 => name!("Get Comm Event Log"),
        15 => name!("Write Multiple Coils"),
        16 => name!("Write Multiple Registers"),
        17 => name!("Report Server ID"),
        20 => name!("Read File Record"),
        21 => name!("Write File Record"),
        22 => name!("Mask Write Register"),
        23 => name!("Read/Write Registers"),
        43 => name!("Read Device Identification"),
        90 => name!("Modbus function 90"),
        _ => return None,
    })
}
