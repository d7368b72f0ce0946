//! PostgreSQL's protocol 3 (its manual, "Message Formats"): a type, a length, and so on to the segment's end.

use super::{Kind, Message, Name, Protocol, Segment, name, sql};

/// Bytes before a message's body: its type, and its length that counts itself.
const HEADER: u32 = 5;

/// The longest message that is believed: results may be long, but the first byte of the length is 0.
const LONGEST: u32 = 1 << 24;

/// Messages of one segment that are looked at.
const MESSAGES: usize = 16;

/// What a client says first: a version or a request in the same place.
pub(super) fn start(segment: Segment<'_>) -> Option<Message> {
    let (len, code) = (segment.u32(0)?, segment.u32(4)?);
    if len != segment.len || len > 10_000 {
        return None;
    }
    let (kind, name) = match code {
        0x0003_0000..=0x0003_0002 if len > 8 => (Kind::Asks, name!("startup")),
        80_877_103 if len == 8 => (Kind::Asks, name!("SSL request")),
        80_877_104 if len == 8 => (Kind::Asks, name!("GSS request")),
        80_877_102 if len == 16 => (Kind::Neither, name!("cancel")),
        _ => return None,
    };
    Some(message(kind, name).with_len_of(segment, Some(len)))
}

/// Messages after the start, from a client or a server.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    let mut first: Option<Said> = None;
    let (mut at, mut count) = (0_u32, 0);
    while at < segment.len && count < MESSAGES {
        let rest = segment.skip(at as usize);
        // Types that both ends use are told apart by the first two bytes of the body.
        let body_len = rest.u32(1).map_or(0, |len| len.saturating_sub(4).min(2));
        if rest.bytes.len() < (HEADER + body_len) as usize {
            break;
        }
        let said = Said::read(rest)?;
        at = at.checked_add(1 + rest.u32(1)?)?;
        count += 1;
        first = Some(match first {
            Some(first) => first.and(said)?,
            None => said,
        });
    }
    let said = first?;
    (count > 1 || at == segment.len || said.is_sure)
        .then(|| message(said.kind, said.name).with_len_of(segment, Some(at)))
}

fn message(kind: Kind, name: &Name) -> Message {
    Message::new(Protocol::Postgres, kind, *name)
}

/// Who sends messages of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Client,
    Server,
    Both,
}

/// What one message says.
#[derive(Clone, Copy)]
struct Said {
    from: From,
    kind: Kind,
    name: &'static Name,
    /// Whether its content leaves no doubt.
    is_sure: bool,
}

impl Said {
    /// The message at the beginning of `segment`.
    fn read(segment: Segment<'_>) -> Option<Self> {
        let kind = segment.byte(0)?;
        let body_len = segment.u32(1).filter(|len| (4..LONGEST).contains(len))? - 4;
        let body = segment.skip(HEADER as usize);
        client(kind, body, body_len).or_else(|| server(kind, body, body_len))
    }

    fn new(from: From, kind: Kind, name: &'static Name) -> Self {
        Self { from, kind, name, is_sure: false }
    }

    fn sure(self) -> Self {
        Self { is_sure: true, ..self }
    }

    /// What both say, one after the other; nothing if no single end could say both.
    fn and(self, next: Self) -> Option<Self> {
        let from = match (self.from, next.from) {
            (From::Both, from) | (from, From::Both) => from,
            (a, b) if a == b => a,
            _ => return None,
        };
        let said = if self.kind == Kind::Neither { next } else { self };
        Some(Self { from, ..said })
    }
}

fn client(kind: u8, body: Segment<'_>, len: u32) -> Option<Said> {
    let asks = |name| Said::new(From::Client, Kind::Asks, name);
    // A statement or a portal, and its name.
    let names = matches!(body.byte(0), Some(b'S' | b'P'))
        && !body.byte(1).is_some_and(|byte| byte.is_ascii_uppercase());
    Some(match kind {
        b'Q' if len > 1 => match sql::first_word(body.bytes) {
            Some(word) => asks(word).sure(),
            None if body.byte(0).is_some_and(|byte| byte >= b' ' || byte == b'\n') => asks(name!("query")),
            None => return None,
        },
        b'P' if len > 3 => {
            // The statement's own name comes first.
            let name = body.bytes.iter().position(|&byte| byte == 0)?;
            match sql::first_word(&body.bytes[name + 1..]) {
                Some(word) => asks(word).sure(),
                None => asks(name!("prepare")),
            }
        }
        b'B' if len >= 6 => Said { is_sure: binds(body), ..asks(name!("execute")) },
        b'D' if len >= 2 && names => asks(name!("describe")),
        b'C' if len >= 2 && names => asks(name!("close")),
        b'E' if len >= 5 && body.byte(0) != Some(b'S') => asks(name!("execute")),
        b'S' if len == 0 => asks(name!("sync")),
        b'H' if len == 0 => asks(name!("flush")),
        b'p' if len > 1 => asks(name!("password")),
        b'F' if len >= 10 => asks(name!("function call")),
        b'f' if len > 0 => asks(name!("copy failed")),
        b'X' if len == 0 => Said::new(From::Client, Kind::Neither, name!("terminate")),
        b'd' if len > 0 => Said::new(From::Both, Kind::Continues, name!("copy data")),
        b'c' if len == 0 => Said::new(From::Both, Kind::Either, name!("copy done")),
        _ => return None,
    })
}

/// Whether a nameless portal, a statement's name and a small number of formats follow.
fn binds(body: Segment<'_>) -> bool {
    /// Bytes that a name can have.
    const LONGEST_NAME: usize = 63;
    let name = body.bytes.strip_prefix(&[0]).unwrap_or_default();
    let end = name.iter().take(LONGEST_NAME + 1).position(|byte| !matches!(byte, b'!'..=b'~'));
    end.is_some_and(|end| matches!(name[end..], [0, 0, 0..=64, 0, ..]))
}

fn server(kind: u8, body: Segment<'_>, len: u32) -> Option<Said> {
    let is = |kind, name| Said::new(From::Server, kind, name);
    let answers = |name| is(Kind::Answers, name);
    // Fields of an error and a notice: the severity comes first.
    let is_report = len > 12 && body.byte(0) == Some(b'S');
    // Columns are at most 1600.
    let has_columns = len >= 2 && body.byte(0).is_none_or(|high| high <= 6);
    let is_text_from =
        |at| body.array(at).is_some_and(|text: &[u8; 3]| text.iter().all(u8::is_ascii_graphic));
    let sure_if = |is_sure, said| Said { is_sure, ..said };
    Some(match kind {
        b'R' if len >= 4 && body.u32(0).is_none_or(|code| code <= 12) => answers(name!("authentication")),
        b'Z' if len == 1 && matches!(body.byte(0), None | Some(b'I' | b'T' | b'E')) => {
            answers(name!("ready"))
        }
        b'T' | b't' if has_columns => sure_if(
            kind == b'T' && body.byte(2).is_some_and(|byte| byte.is_ascii_alphabetic()),
            answers(name!("result")),
        ),
        b'D' if has_columns => is(Kind::Continues, name!("rows")),
        b'C' if len > 3 && body.byte(0).is_none_or(|byte| byte.is_ascii_uppercase()) => {
            sure_if(is_text_from(0), answers(name!("complete")))
        }
        b'1' | b'2' | b'3' | b'n' | b'I' | b's' if len == 0 => answers(name!("result")),
        b'E' if is_report => sure_if(is_text_from(1), answers(name!("error"))),
        b'N' if is_report => is(Kind::Neither, name!("notice")),
        b'S' if len > 3 && body.byte(0).is_none_or(|byte| byte.is_ascii_alphabetic()) => {
            is(Kind::Neither, name!("parameter"))
        }
        b'A' if len >= 6 => is(Kind::Neither, name!("notification")),
        b'K' if (8..=260).contains(&len) => is(Kind::Continues, name!("key")),
        b'G' | b'H' | b'W' if len >= 3 && matches!(body.byte(0), None | Some(0 | 1)) => {
            answers(name!("copy"))
        }
        b'V' if len >= 4 => answers(name!("function result")),
        b'v' if len >= 8 => answers(name!("version")),
        _ => return None,
    })
}
