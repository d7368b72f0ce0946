//! HTTP/1.0 and 1.1 (RFC 9112): a request line or a status line begins the segment.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Request, Response, Status};

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
    if let Target(Some(path)) = target {
        name.push(b" ");
        name.push(path);
    }
    let message = Message::new(Protocol::Http1, Kind::Asks, name);
    let mut room = [const { MaybeUninit::uninit() }; FIELDS];
    let mut request = Request::new(&mut []);
    let header = request.parse_with_uninit_headers(segment.bytes, &mut room);
    let len = len_with_body(header, request.headers, Body::NoneUnlessTold);
    Some(message.with_len_of(segment, len))
}

/// What is asked for: the path alone, no host, query, fragment or parameters. `None` for a proxy's `CONNECT`.
struct Target<'a>(Option<&'a [u8]>);

impl<'a> Target<'a> {
    /// The target at the beginning of `line`. If the line's end was stored, it has to name HTTP.
    fn read(line: &'a [u8], is_authority: bool) -> Option<Self> {
        let len = line.iter().position(|&byte| byte <= b' ' || byte == 0x7f).unwrap_or(line.len());
        let (target, after) = line.split_at(len);
        if target.is_empty() || !is_version(after) {
            return None;
        }
        if is_authority {
            return Some(Self(None));
        }
        let end = target.iter().position(|byte| matches!(byte, b'?' | b'#' | b';')).unwrap_or(target.len());
        let path = match &target[..end] {
            path @ ([b'/', ..] | b"*") => path,
            url => path_of_url(url)?,
        };
        Some(Self(Some(path)))
    }
}

/// The path of a URL as proxies get it; what stands before it may hold a password.
fn path_of_url(url: &[u8]) -> Option<&[u8]> {
    let rest = url.strip_prefix(b"http://").or_else(|| url.strip_prefix(b"https://"))?;
    let path = rest.iter().position(|&byte| byte == b'/').map_or(&b"/"[..], |at| &rest[at..]);
    Some(path)
}

/// Whether ` HTTP/1.x` and the line's end follow, as far as they were stored.
fn is_version(after: &[u8]) -> bool {
    const VERSION: &[u8] = b" HTTP/1.";
    let stored = after.len().min(VERSION.len());
    let digit_and_end = &after[stored..];
    after[..stored] == VERSION[..stored]
        && matches!(digit_and_end, [] | [b'0' | b'1'] | [b'0' | b'1', b'\r' | b'\n', ..])
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
    let mut room = [const { MaybeUninit::uninit() }; FIELDS];
    let mut response = Response::new(&mut []);
    let header =
        ParserConfig::default().parse_response_with_uninit_headers(&mut response, segment.bytes, &mut room);
    Some(message.with_len_of(segment, len_with_body(header, response.headers, body)))
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

/// Bytes of a message with this `header`, whose `fields` tell about its body. `None` where the header's end was not
/// stored or does not tell. An answer to `HEAD` tells of a body that does not come.
fn len_with_body(header: httparse::Result<usize>, fields: &[Header<'_>], body: Body) -> Option<u32> {
    let Ok(Status::Complete(header)) = header else { return None };
    let field = |name| fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    let body = match field("content-length") {
        _ if body == Body::None => 0,
        _ if field("transfer-encoding").is_some() => return None,
        Some(digits) => std::str::from_utf8(digits.value).ok()?.trim().parse().ok()?,
        None if body == Body::NoneUnlessTold => 0,
        None => return None,
    };
    u32::try_from(header).ok()?.checked_add(body)
}
