//! TLS (RFC 8446, RFC 5246): records, and what is in the clear of the handshake.
//!
//! Data is encrypted, so whether a record of it asks or answers is for the direction to tell. What the record's type
//! tells: alerts, tickets and changes of cipher answer nothing.

use super::{Kind, Message, Name, Protocol, Segment, name};

/// The lowest of the record types: change of cipher.
pub(super) const FIRST: u8 = CIPHER_CHANGE;
/// The highest: heartbeat (RFC 6520).
pub(super) const LAST: u8 = HEARTBEAT;

const CIPHER_CHANGE: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
const HEARTBEAT: u8 = 24;

/// Bytes of a record's header.
const HEADER: u32 = 5;

/// The most that a record may hold: 2^14 bytes and 2048 for the cipher (RFC 5246 section 6.2.3).
const LONGEST: u32 = (1 << 14) + 2048;

/// The least that encrypted data has: a checksum of 16 bytes and nothing else.
const SHORTEST_DATA: u32 = 16;

/// The most that an encrypted alert has: two bytes, padded, with the longest checksum and a nonce.
const LONGEST_ALERT: u32 = 96;

/// A client's Finished under TLS 1.3 (RFC 8446 section 4.4.4): four bytes of header, the hash (SHA-256 or SHA-384),
/// one byte for the type and 16 of checksum.
const FINISHED: [u32; 2] = [4 + 32 + 1 + 16, 4 + 48 + 1 + 16];

/// Encrypted data with one frame of HTTP/2 that is 9, 13 or 17 bytes long (settings' acknowledgment; window update or
/// reset; ping or farewell): under TLS 1.3 with a byte of type and 16 of checksum, under TLS 1.2 with a nonce of 8 and
/// the checksum (RFC 5288).
const HTTP2_CONTROL: [u32; 6] = [9 + 17, 13 + 17, 17 + 17, 9 + 24, 13 + 24, 17 + 24];

/// Records of one segment that are looked at. A flight of TLS 1.2 has eight messages at most.
const RECORDS: usize = 8;

/// What the records of a segment say.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    let mut flight = Flight::default();
    let mut at = 0;
    for _ in 0..RECORDS {
        let rest = segment.skip(at as usize);
        if rest.len == 0 {
            break;
        }
        match Record::read(rest) {
            Some(record) => {
                flight.add(&record);
                at += record.len;
            }
            None if rest.bytes.len() < HEADER as usize && could_be_record(rest.bytes) => {
                flight.is_cut = true;
                break;
            }
            // Bytes that begin like a record by chance are not followed by one.
            None => return None,
        }
    }
    let (kind, name) = flight.says()?;
    let message = Message::new(Protocol::Tls, kind, *name).with_len_of(segment, Some(at));
    Some(Message { may_be_control: flight.is_control(), ..message })
}

/// Whether the few bytes stored of a header are none or a header's.
fn could_be_record(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|kind| (FIRST..=LAST).contains(kind))
        && bytes.get(1).is_none_or(|&major| major == 3)
}

/// What one record is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    ClientHello,
    ServerHello,
    /// The key exchange, and the client then waits for the server's Finished.
    ClientKeys,
    /// A certificate: the server's goes on with its flight, the client's begins one.
    Certificate,
    /// Other messages of a server's flight.
    MoreOfHandshake,
    /// A ticket in the clear (RFC 5077).
    Ticket,
    /// A handshake message that is encrypted.
    Hidden,
    CipherChange,
    Alert,
    Heartbeat,
    Data,
}

/// One record: what it is, and its bytes with the header.
struct Record {
    what: What,
    len: u32,
}

impl Record {
    /// The record at the beginning of `segment`, if there is one and its length is one that its type can have.
    fn read(segment: Segment<'_>) -> Option<Self> {
        let &[kind, 3, 0..=4, high, low] = segment.array(0)? else { return None };
        let len = u32::from(u16::from_be_bytes([high, low]));
        let body = segment.skip(HEADER as usize);
        let what = match kind {
            CIPHER_CHANGE if len == 1 && body.byte(0).is_none_or(|byte| byte == 1) => What::CipherChange,
            ALERT if len == 2 && body.byte(0).is_none_or(|level| matches!(level, 1 | 2)) => What::Alert,
            ALERT | HEARTBEAT if len < SHORTEST_DATA => return None,
            ALERT if len <= LONGEST_ALERT => What::Alert,
            HEARTBEAT if len <= LONGEST => What::Heartbeat,
            HANDSHAKE if (4..=LONGEST).contains(&len) => handshake(body, len),
            DATA if (SHORTEST_DATA..=LONGEST).contains(&len) => What::Data,
            _ => return None,
        };
        Some(Self { what, len: HEADER + len })
    }
}

/// What a handshake record of `len` bytes begins with: a message in the clear has a type and a length that fit.
fn handshake(body: Segment<'_>, len: u32) -> What {
    let (Some(kind), Some(inner)) = (body.byte(0), body.u24(1)) else { return What::Hidden };
    let fits = inner + 4 <= len;
    // A version follows, or was not stored: behind IPv6's header and timestamps there is room for ten bytes.
    let is_hello =
        fits && body.byte(4).is_none_or(|major| major == 3) && body.byte(5).is_none_or(|minor| minor <= 4);
    match kind {
        1 if is_hello => What::ClientHello,
        2 if is_hello => What::ServerHello,
        4 if fits => What::Ticket,
        // It may be longer than a record.
        11 if inner < 1 << 17 => What::Certificate,
        16 if fits => What::ClientKeys,
        // Asks to begin anew, and the end of the server's flight: both are empty and, first, alone. An encrypted message
        // may begin with eight zeros, its number.
        0 | 14 if inner == 0 && len == 4 => What::MoreOfHandshake,
        12 | 13 | 15 | 22 if fits => What::MoreOfHandshake,
        _ => What::Hidden,
    }
}

/// The records of one segment, together.
#[derive(Default)]
struct Flight {
    /// The first that is neither a change of cipher nor a ticket.
    first: Option<What>,
    first_len: u32,
    /// Whether another came after the first.
    has_more: bool,
    has_ticket: bool,
    has_cipher_change: bool,
    /// Whether one of them cannot be a frame of HTTP/2 that asks and answers nothing.
    has_other: bool,
    /// Whether more follows that was not stored.
    is_cut: bool,
}

impl Flight {
    fn add(&mut self, record: &Record) {
        let is_handshake =
            !matches!(record.what, What::CipherChange | What::Alert | What::Heartbeat | What::Data);
        // Nothing is in the clear after it.
        let what = if is_handshake && self.has_cipher_change { What::Hidden } else { record.what };
        self.has_other |= what != What::Data || !HTTP2_CONTROL.contains(&(record.len - HEADER));
        match (what, self.first) {
            (What::CipherChange, None) => self.has_cipher_change = true,
            (What::Ticket, None) => self.has_ticket = true,
            (what, None) => (self.first, self.first_len) = (Some(what), record.len),
            (_, Some(_)) => self.has_more = true,
        }
    }

    fn says(&self) -> Option<(Kind, &'static Name)> {
        const HANDSHAKE: &Name = name!("TLS handshake");
        Some(match self.first {
            Some(What::ClientHello | What::ClientKeys) => (Kind::Asks, HANDSHAKE),
            Some(What::ServerHello) => (Kind::Answers, HANDSHAKE),
            // A server's ticket and Finished answer the client's.
            _ if self.has_ticket && (self.has_cipher_change || self.is_cut) => (Kind::Answers, HANDSHAKE),
            Some(What::Hidden | What::Certificate) => (Kind::Either, HANDSHAKE),
            Some(What::MoreOfHandshake) => (Kind::Continues, HANDSHAKE),
            Some(What::Data) if self.is_finished() => (Kind::Answers, name!("TLS Finished")),
            Some(What::Data) => (Kind::Either, name!("TLS data")),
            Some(What::Alert) => (Kind::Neither, name!("TLS alert")),
            Some(What::Heartbeat) => (Kind::Neither, name!("TLS heartbeat")),
            Some(What::CipherChange | What::Ticket) => return None,
            None if self.has_ticket => (Kind::Neither, name!("TLS ticket")),
            None if self.has_cipher_change && self.is_cut => (Kind::Either, HANDSHAKE),
            None if self.has_cipher_change => (Kind::Neither, name!("TLS cipher change")),
            None => return None,
        })
    }

    fn is_control(&self) -> bool {
        !self.has_other && !self.is_cut
    }

    /// Whether the data is a client's Finished under TLS 1.3 and nothing more: it comes after a change of cipher that
    /// is there for middleboxes only (RFC 8446 appendix D.4).
    fn is_finished(&self) -> bool {
        self.has_cipher_change
            && !self.has_more
            && !self.is_cut
            && FINISHED.contains(&(self.first_len - HEADER))
    }
}
