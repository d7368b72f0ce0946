//! EtherNet/IP (ODVA, the CIP Networks Library, volume 2, chapter 2): a header of 24 bytes, in which numbers begin with
//! their lowest byte, and in most messages one of CIP behind it, whose service has its highest bit set in an answer.

use super::{Kind, Message, Name, Protocol, Segment, name};

/// Bytes of the header.
const HEADER: u32 = 24;
/// Bytes before the first item of a message that has some: the header, an interface and a time limit, how many there are.
const ITEMS: usize = 32;
/// The kinds of items: no address, a connection's address, data outside a connection, data of one.
const NO_ADDRESS: u16 = 0x00;
const CONNECTED_ADDRESS: u16 = 0xa1;
const UNCONNECTED_DATA: u16 = 0xb2;
const CONNECTED_DATA: u16 = 0xb1;
/// The bit that tells an answer.
const ANSWER: u8 = 0x80;
/// Most services of CIP take a path behind themselves, of so many words at most.
const LONGEST_PATH: u8 = 64;

/// A message that is whole in the segment; what is behind it is not looked at.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    let len = u32::from(low_first(segment, 2)?);
    let session = segment.u32(4)?;
    // The options are zero: who gets others drops the message.
    if segment.u32(20)? != 0 || HEADER + len > segment.len {
        return None;
    }
    let (kind, name) = match low_first(segment, 0)? {
        0x04 => (asks(len == 0), name!("List Services")),
        0x63 => (asks(len == 0), name!("List Identity")),
        0x64 => (asks(len == 0), name!("List Interfaces")),
        0x65 if len == 4 => (asks(session == 0), name!("Register Session")),
        0x66 if len == 0 => (Kind::Neither, name!("Unregister Session")),
        0x6f | 0x70 => say(segment)?,
        _ => return None,
    };
    Some(Message::new(Protocol::EtherNetIp, kind, *name).with_len_of(segment, Some(HEADER + len)))
}

fn asks(is_asking: bool) -> Kind {
    if is_asking { Kind::Asks } else { Kind::Answers }
}

/// What the CIP message in a segment says; where too little of it was stored, only who sent it tells.
fn say(segment: Segment<'_>) -> Option<(Kind, &'static Name)> {
    let has_two_items = segment.u32(24)? == 0 && low_first(segment, 30)? == 2;
    if !has_two_items {
        return None;
    }
    // In a connection, a number that counts its messages comes before the service.
    let (item, service, expected) = match (low_first(segment, ITEMS)?, low_first(segment, ITEMS + 2)?) {
        (NO_ADDRESS, 0) => (36, 40, UNCONNECTED_DATA),
        (CONNECTED_ADDRESS, 4) => (40, 46, CONNECTED_DATA),
        _ => return None,
    };
    if low_first(segment, item).is_some_and(|kind| kind != expected) {
        return None;
    }
    let Some(code) = segment.byte(service) else {
        return (!segment.is_whole()).then_some((Kind::Either, name!("CIP")));
    };
    let is_answer = code & ANSWER != 0;
    // Behind an answer's service comes a zero, behind a request's how long its path is.
    let fits =
        segment.byte(service + 1).is_none_or(|next| if is_answer { next == 0 } else { next <= LONGEST_PATH });
    fits.then(|| (asks(!is_answer), name_of(code & !ANSWER)))
}

/// Two bytes as a number, the lower one first.
fn low_first(segment: Segment<'_>, at: usize) -> Option<u16> {
    segment.array(at).copied().map(u16::from_le_bytes)
}

fn name_of(service: u8) -> &'static Name {
    match service {
        0x01 => name!("Get Attributes All"),
        0x03 => name!("Get Attribute List"),
        0x0a => name!("Multiple Service Packet"),
        0x0e => name!("Get Attribute Single"),
        0x10 => name!("Set Attribute Single"),
        0x4b => name!("Execute PCCC"),
        0x4c => name!("Read Tag"),
        0x4d => name!("Write Tag"),
        0x4e => name!("Forward Close"),
        0x52 => name!("Unconnected Send"),
        0x54 => name!("Forward Open"),
        0x55 => name!("Get Instance Attribute List"),
        _ => name!("CIP service"),
    }
}
