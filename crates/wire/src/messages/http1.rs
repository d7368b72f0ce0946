//! HTTP/1.0 and 1.1 (RFC 9112): a request line or a status line begins the segment.

use super::{Kind, Message, Name, Protocol, Segment};

/// Methods of RFC 9110, `PATCH` (RFC 5789), those for folders on the web (RFC 3253, 3744, 4918, 5323), of media
/// players, and of devices that announce themselves.
const METHODS: [&str; 27] = [
    "GET",
    "POST",
    "PUT",
    "HEAD",
    "DELETE",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
    "MKCALENDAR",
    "ACL",
    "CHECKOUT",
    "MERGE",
    "PURGE",
    "SOURCE",
    "NOTIFY",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
];

/// Bytes of the longest method: no space before that, no request.
const LONGEST_METHOD: usize = 11;

/// Header fields that are read for the body's length. Servers refuse more than a hundred.
const FIELDS: usize = 100;

/// A request or an answer.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    if segment.bytes.starts_with(b"HTTP/1.") { answer(segment) } else { request(segment) }
}

fn request(segment: Segment<'_>) -> Option<Message> {
    let space = segment.bytes.iter().take(LONGEST_METHOD + 1).position(|&byte| byte == b' ')?;
    let (method, target) = segment.bytes.split_at_checked(space)?;
    let method = METHODS.iter().find(|known| known.as_bytes() == method)?;
    let target = Target::read(&target[1..], *method == "CONNECT")?;
    let mut name = Name::new(method);
    if let Some(path) = target.path {
        name.push(b" ");
        name.push(path);
    }
    let message = Message::new(Protocol::Http1, Kind::Asks, name);
    let len = target.fields.and_then(|at| len_with_body(segment, space + 1 + at, Body::NoneUnlessTold));
    Some(message.with_len_of(segment, len))
}

/// What is asked for.
struct Target<'a> {
    /// The path alone: no host, no query, no fragment, no parameters. `None` for a proxy's `CONNECT`.
    path: Option<&'a [u8]>,
    /// Where the header's fields begin, if the line's end was stored.
    fields: Option<usize>,
}

impl<'a> Target<'a> {
    /// The target at the beginning of `line`. If the line's end was stored, it has to name HTTP.
    fn read(line: &'a [u8], is_authority: bool) -> Option<Self> {
        let len = line.iter().position(|&byte| byte <= b' ' || byte == 0x7f);
        let (target, after) = line.split_at(len.unwrap_or(line.len()));
        let end = match len {
            Some(_) => version(after)?,
            None => None,
        };
        let path = match (target, is_authority) {
            ([], _) => return None,
            (_, true) => None,
            ([b'/', ..] | b"*", _) => Some(target),
            _ => Some(path_of_url(target)?),
        };
        let is_path = |byte: &u8| !matches!(byte, b'?' | b'#' | b';');
        let path = path.map(|path| &path[..path.iter().take_while(|byte| is_path(byte)).count()]);
        Some(Self { path, fields: end.map(|end| target.len() + end) })
    }
}

/// The path of a URL as proxies get it; what stands before it may hold a password.
fn path_of_url(url: &[u8]) -> Option<&[u8]> {
    let rest = url.strip_prefix(b"http://").or_else(|| url.strip_prefix(b"https://"))?;
    let path = rest.iter().position(|&byte| byte == b'/').map_or(&b"/"[..], |at| &rest[at..]);
    Some(path)
}

/// Whether ` HTTP/1.x` and the line's end follow, as far as they were stored: how many bytes they are.
#[expect(clippy::option_option, reason = "wrong, or right as far as it was stored")]
fn version(after: &[u8]) -> Option<Option<usize>> {
    const VERSION: &[u8] = b" HTTP/1.";
    let stored = after.len().min(VERSION.len());
    if after[..stored] != VERSION[..stored] {
        return None;
    }
    match after[stored..] {
        [] | [b'0' | b'1'] | [b'0' | b'1', b'\r'] => Some(None),
        [b'0' | b'1', b'\r', b'\n', ..] => Some(Some(VERSION.len() + 3)),
        [b'0' | b'1', b'\n', ..] => Some(Some(VERSION.len() + 2)),
        _ => None,
    }
}

fn answer(segment: Segment<'_>) -> Option<Message> {
    let &[b'0' | b'1', b' ', hundreds @ b'1'..=b'5', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] =
        segment.array(7)?
    else {
        return None;
    };
    let end = segment.byte(12);
    if !end.is_none_or(|byte| matches!(byte, b' ' | b'\r' | b'\n')) {
        return None;
    }
    let code = [hundreds, tens, ones];
    let kind = match &code {
        b"100" => Kind::Greets,
        // The answer is still to come (RFC 9110 section 15.2), but for the switch to another protocol.
        [b'1', _, _] if code != *b"101" => Kind::Neither,
        _ => Kind::Answers,
    };
    let mut name = Name::new("HTTP ");
    name.push(&code);
    let message = Message::new(Protocol::Http1, kind, name);
    let body = match &code {
        [b'1', _, _] | b"204" | b"304" => Body::None,
        _ => Body::Told,
    };
    let line = segment.bytes.iter().position(|&byte| byte == b'\n');
    Some(message.with_len_of(segment, line.and_then(|end| len_with_body(segment, end + 1, body))))
}

/// How a body's length is known (RFC 9112 section 6.3).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    /// By a field, or when the connection closes.
    Told,
    /// A request without such a field has no body.
    NoneUnlessTold,
    /// Never there, whatever the fields say.
    None,
}

/// Bytes of the message at the beginning of `segment` whose header's fields begin at `fields`. `None` where the header's
/// end was not stored or does not tell. An answer to `HEAD` tells of a body that does not come.
fn len_with_body(segment: Segment<'_>, fields: usize, body: Body) -> Option<u32> {
    let mut known = [httparse::EMPTY_HEADER; FIELDS];
    let parsed = httparse::parse_headers(segment.bytes.get(fields..)?, &mut known).ok()?;
    let httparse::Status::Complete((end, known)) = parsed else { return None };
    let field = |name| known.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    let header = u32::try_from(fields + end).ok()?;
    let body = match field("content-length") {
        _ if body == Body::None => 0,
        _ if field("transfer-encoding").is_some() => return None,
        Some(digits) => std::str::from_utf8(digits.value).ok()?.trim().parse().ok()?,
        None if body == Body::NoneUnlessTold => 0,
        None => return None,
    };
    header.checked_add(body)
}
