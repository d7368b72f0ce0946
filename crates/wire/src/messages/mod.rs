//! What a segment says to the other end, where its protocol can be read: a request, an answer, neither.
//!
//! A message is known by its content and never by its port, from the first bytes of its segment's payload: 40 bytes suffice,
//! and captures of 96 bytes a frame have them. Each segment is read alone. One that begins inside a message says
//! nothing ([`Message::expected_len`] tells how far the message before it goes). What is not plainly one of the
//! protocols here stays unknown: random and encrypted bytes have to contradict a length or a magic number.

mod http1;
mod name;
mod segment;
mod tls;

use std::fmt;
use std::num::NonZeroU32;

use segment::Segment;

pub use name::Name;

/// The beginning of a segment's payload, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The language it is in.
    pub protocol: Protocol,
    /// What it wants from, or gives to, the other end.
    pub kind: Kind,
    /// What to call it.
    pub name: Name,
    len: Option<NonZeroU32>,
}

impl Message {
    /// A message whose length is not known.
    pub fn new(protocol: Protocol, kind: Kind, name: Name) -> Self {
        Self { protocol, kind, name, len: None }
    }

    /// The same with its length: see [`Self::expected_len`].
    #[must_use]
    pub fn with_len(self, bytes: u32) -> Self {
        Self { len: NonZeroU32::new(bytes), ..self }
    }

    /// The same with its length, if it is known and ends no earlier than the segment: what follows is not known else.
    fn with_len_of(self, segment: Segment<'_>, bytes: Option<u32>) -> Self {
        Self { len: bytes.filter(|&bytes| bytes >= segment.len).and_then(NonZeroU32::new), ..self }
    }

    /// Bytes from the first of this segment's payload to the end of the last message in it, if the protocol tells.
    /// Never less than the payload; where it is more, the bytes after this segment continue the message.
    #[inline]
    pub fn expected_len(&self) -> Option<u32> {
        self.len.map(NonZeroU32::get)
    }
}

/// What a message wants from, or gives to, the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It wants an answer.
    Asks,
    /// It is an answer, or the beginning of one.
    Answers,
    /// The other end waits for it before it goes on, though it answers no request: a server's greeting,
    /// "100 Continue".
    Greets,
    /// Whether it asks or answers is not written in it: who sent it decides (encrypted data, a Modbus write and its
    /// echo).
    Either,
    /// More of a message that began before.
    Continues,
    /// It asks for nothing and answers nothing: keep-alive, ping, window update, settings, ticket, alert, farewell.
    Neither,
}

/// A language that is known by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TLS 1.0 to 1.3.
    Tls,
    /// HTTP/1.0 and 1.1.
    Http1,
}

impl Protocol {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls => "TLS",
            Self::Http1 => "HTTP",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The message that a segment with `len` bytes of payload begins with, `stored` being those of them that were captured.
///
/// The first byte chooses who looks at it, so that what nobody knows costs a few nanoseconds.
#[inline(never)]
pub fn recognise(stored: &[u8], len: u32) -> Option<Message> {
    let segment = Segment { bytes: stored, len };
    match segment.byte(0)? {
        tls::FIRST..=tls::LAST => tls::read(segment),
        b'A'..=b'Z' => http1::read(segment),
        _ => None,
    }
}
