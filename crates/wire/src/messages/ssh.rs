//! SSH (RFC 4253): its first line and the key exchange. What follows is encrypted, its length too.

use super::{Kind, Message, Name, Protocol, Segment};

/// The longest packet that every program has to take (section 6.1).
const LONGEST: u32 = 35_000;

const KEX_INIT: u8 = 20;
const NEW_KEYS: u8 = 21;

/// The line that each end sends first (section 4.2).
pub(super) fn greeting(segment: Segment<'_>) -> Option<Message> {
    let version = segment.bytes.strip_prefix(b"SSH-")?;
    let is_version =
        version.first_chunk::<4>().is_some_and(|version| matches!(version, b"2.0-" | b"1.99" | b"1.5-"));
    is_version.then(|| Message::new(Protocol::Ssh, Kind::Greets, Name::new("SSH greeting")))
}

/// A packet of the key exchange, which is in the clear.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    let len = segment.u32(0).filter(|len| (12..=LONGEST).contains(len))?;
    let &[padding, kind] = segment.array(4)?;
    let end = len + 4;
    // Without a cipher packets are multiples of 8 bytes, at least four of them padding.
    if end % 8 != 0 || !(4..=32).contains(&padding) {
        return None;
    }
    let is_alone = end == segment.len;
    let body = segment.skip(6);
    // A key or a number of the exchange comes first.
    let has_number = body.u32(0).is_some_and(|number| number <= len - 5);
    let kind = match kind {
        KEX_INIT if has_name_list(body) => Kind::Either,
        NEW_KEYS if len == 12 && is_alone => Kind::Neither,
        // Of a fixed exchange, of one with a chosen group (RFC 4419).
        30 | 32 | 34 if has_number && is_alone => Kind::Asks,
        31 | 33 if has_number && (is_alone || is_followed(segment, end)) => Kind::Answers,
        _ => return None,
    };
    let message = Message::new(Protocol::Ssh, kind, Name::new("SSH key exchange"));
    Some(message.with_len_of(segment, Some(end)))
}

/// Whether 16 random bytes and a list of names follow, as far as they were stored.
fn has_name_list(body: Segment<'_>) -> bool {
    let names = body.bytes.get(20..).unwrap_or_default();
    body.u32(16).is_some_and(|len| (4..2_048).contains(&len))
        && names.len() >= 4
        && names.iter().take(4).all(|byte| matches!(byte, b'!'..=b'~'))
}

/// Whether the change to the new keys follows, or was not stored.
fn is_followed(segment: Segment<'_>, end: u32) -> bool {
    end > segment.len
        || segment.skip(end as usize).array(0).is_none_or(|next: &[u8; 4]| *next == [0, 0, 0, 12])
}
