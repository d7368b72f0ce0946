//! What a segment says to the other end, where its protocol can be read: a request, an answer, neither.
//!
//! A message is known by its content and never by its port, from the first bytes of its segment's payload: 40 bytes suffice,
//! and captures of 96 bytes a frame have them. Each segment is read alone. One that begins inside a message says
//! nothing ([`Message::expected_len`] tells how far the message before it goes). What is not plainly one of the
//! protocols here stays unknown: random and encrypted bytes have to contradict a length or a magic number.

mod dns;
mod enip;
mod http1;
mod http2;
mod lines;
mod modbus;
mod mysql;
mod name;
mod postgres;
mod redis;
mod segment;
mod sql;
mod ssh;
mod tls;
mod tpkt;

use std::fmt;
use std::num::NonZeroU32;

use name::name;
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
    may_be_control: bool,
}

impl Message {
    /// A message whose length is not known.
    pub fn new(protocol: Protocol, kind: Kind, name: Name) -> Self {
        Self { protocol, kind, name, len: None, may_be_control: false }
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

    /// Whether it is encrypted data and each record as long as one with a frame of HTTP/2 that asks and answers nothing: an
    /// acknowledgment of settings, a window update, a ping. A short request may be as long.
    #[inline]
    pub fn may_be_http2_control(&self) -> bool {
        self.may_be_control
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
    /// HTTP/2 in the clear, with or without gRPC.
    Http2,
    /// Redis.
    Redis,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
    /// DNS over TCP.
    Dns,
    /// Modbus over TCP.
    Modbus,
    /// EtherNet/IP, with CIP in it.
    EtherNetIp,
    /// S7 and what else is in COTP.
    S7,
    /// SSH, as far as it is in the clear.
    Ssh,
    /// A dialogue in lines: SMTP, POP3, IMAP, FTP. Short answers look the same in several protocols ("+OK" also in
    /// Redis), so an answer's protocol may be another than its question's.
    Lines,
}

impl Protocol {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls => "TLS",
            Self::Http1 => "HTTP",
            Self::Http2 => "HTTP/2",
            Self::Redis => "Redis",
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::Dns => "DNS",
            Self::Modbus => "Modbus",
            Self::EtherNetIp => "EtherNet/IP",
            Self::S7 => "S7",
            Self::Ssh => "SSH",
            Self::Lines => "line dialogue",
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
    let first = segment.byte(0)?;
    // It may begin with any byte, and says so in the next ones.
    if let Some(message) = modbus::read(segment) {
        return Some(message);
    }
    let message = match first {
        0 => http2::read(segment).or_else(|| postgres::start(segment)).or_else(|| ssh::read(segment)),
        3 => tpkt::read(segment),
        4 | b'c'..=b'f' | b'o' | b'p' if segment.byte(1) == Some(0) => {
            enip::read(segment).or_else(|| words(segment))
        }
        tls::FIRST..=tls::LAST => tls::read(segment),
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => words(segment),
        // Redis' plain "+OK" has nothing after it, POP3's nearly always has.
        b'+' if segment.bytes == b"+OK\r\n" => redis::read(segment),
        b'+' | b'-' => lines::read(segment).or_else(|| redis::read(segment)),
        b'*' => redis::read(segment).or_else(|| lines::read(segment)),
        b'$' | b':' | b'%' | b'~' | b'>' => redis::read(segment),
        b'.' | b'\r' => lines::read(segment),
        _ => None,
    };
    // These begin with a length, which may be any byte.
    message.or_else(|| dns::read(segment)).or_else(|| mysql::read(segment))
}

/// What begins with a letter or a digit.
fn words(segment: Segment<'_>) -> Option<Message> {
    // PostgreSQL's letter is followed by a length, whose first byte is 0.
    if segment.byte(1)? == 0 {
        return postgres::read(segment);
    }
    let message = match segment.bytes {
        [b'P', b'R', b'I', b' ', ..] => http2::preface(segment),
        [b'S', b'S', b'H', b'-', ..] => ssh::greeting(segment),
        [b'A'..=b'Z', ..] => http1::read(segment),
        _ => None,
    };
    message.or_else(|| lines::read(segment))
}
