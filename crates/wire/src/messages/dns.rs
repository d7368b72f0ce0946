//! DNS over TCP (RFC 1035 section 4.2.2, RFC 7766): two bytes of length and the message.

use super::{Kind, Message, Name, Protocol, Segment};

/// The length's bytes.
const PREFIX: usize = 2;

/// Where the question begins, counted from the message.
const QUESTION: usize = 12;

/// Labels of a name; it has at most 255 bytes.
const LABELS: usize = 127;

/// A question or an answer to one.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    let len = u32::from(segment.u16(0)?);
    let message = segment.skip(PREFIX);
    let flags = message.u16(2)?;
    let is_answer = flags & 0x8000 != 0;
    let counts = [message.u16(4)?, message.u16(6)?, message.u16(8)?, message.u16(10)?];
    // Queries, notifications and updates; the reserved bit; codes up to BADCOOKIE do not fit, YXDOMAIN and its like do.
    let is_sound = matches!((flags >> 11) & 15, 0 | 4 | 5) && flags & 0x40 == 0 && flags & 15 <= 10;
    let asks_soundly = is_answer || (flags & 15 == 0 && counts[1] <= 1);
    if len < 17 || !is_sound || !asks_soundly || counts[0] != 1 {
        return None;
    }
    // A segment with less than the message is the first of a long answer, with more it has several messages.
    if len + 2 != segment.len
        && !(len + 2 > segment.len && is_answer && counts[1] > 0)
        && !is_followed(segment, len)
    {
        return None;
    }
    let name = question(message)?;
    let kind = if is_answer { Kind::Answers } else { Kind::Asks };
    Some(Message::new(Protocol::Dns, kind, name).with_len_of(segment, Some(len + 2)))
}

/// Whether another message with one question follows the first, which is `len` long.
fn is_followed(segment: Segment<'_>, len: u32) -> bool {
    let next = segment.skip(PREFIX + len as usize);
    next.u16(0).is_some_and(|len| len >= 17) && next.array(6).is_some_and(|count: &[u8; 2]| *count == [0, 1])
}

/// "A example.com": the question's type and name. Nothing if it is not one, as far as it was stored.
fn question(message: Segment<'_>) -> Option<Name> {
    let mut at = QUESTION;
    let mut labels = Name::default();
    for number in 0..LABELS {
        let Some(len) = message.byte(at).map(usize::from) else { return Some(named("", &labels)) };
        if len > 63 {
            return None;
        }
        let label = message.bytes.get(at + 1..).unwrap_or_default();
        let label = &label[..len.min(label.len())];
        if !label.iter().all(|byte| matches!(byte, b'!'..=b'~')) {
            return None;
        }
        at += 1 + len;
        if len == 0 {
            let Some(kind) = message.u16(at) else { return Some(named("", &labels)) };
            let class = message.u16(at + 2).unwrap_or(1);
            return matches!(class & 0x7fff, 1 | 3 | 4 | 254 | 255).then(|| named(type_name(kind), &labels));
        }
        if number > 0 {
            labels.push(b".");
        }
        labels.push(label);
    }
    None
}

fn named(kind: &str, labels: &Name) -> Name {
    let mut name = Name::new(if kind.is_empty() { "DNS" } else { kind });
    name.push(b" ");
    name.push(if labels.as_str().is_empty() { b"." } else { labels.as_str().as_bytes() });
    name
}

/// The types that are asked for over TCP.
fn type_name(kind: u16) -> &'static str {
    match kind {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        43 => "DS",
        48 => "DNSKEY",
        64 => "SVCB",
        65 => "HTTPS",
        251 => "IXFR",
        252 => "AXFR",
        255 => "ANY",
        _ => "",
    }
}
