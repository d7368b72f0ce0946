//! HTTP/2 in the clear (RFC 9113): the client's preface and frames. gRPC speaks it too.

use super::{Kind, Message, Name, Protocol, Segment, name};

/// What a client says first (section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame's header (section 4.1).
const HEADER: u32 = 9;

/// The longest frame that may be sent unless the receiver allows more (section 4.2); nearly nobody does.
const LONGEST: u32 = 1 << 14;

/// Streams that are believed of one connection. The highest bit of their number is reserved; numbers with anything in
/// the highest byte take eight million requests, and more often belong to another protocol.
const MOST_STREAMS: u32 = 1 << 24;

/// Frames of one segment that are looked at.
const FRAMES: usize = 16;

const END_STREAM: u8 = 0x01;
const ACK: u8 = 0x01;
const END_HEADERS: u8 = 0x04;
const PADDED: u8 = 0x08;
const PRIORITY: u8 = 0x20;

/// A client's preface and what follows it.
pub(super) fn preface(segment: Segment<'_>) -> Option<Message> {
    let stored = segment.bytes.len().min(PREFACE.len());
    if segment.bytes[..stored] != PREFACE[..stored] || stored < "PRI * HTTP/2".len() {
        return None;
    }
    let after = segment.skip(PREFACE.len());
    let frames = Frames::read(after);
    let said = frames.first.filter(|said| said.0 == Kind::Asks);
    let (kind, name) = said.unwrap_or((Kind::Neither, name!("HTTP/2 preface")));
    let len =
        (segment.len > PREFACE.len() as u32 && frames.count > 0).then(|| PREFACE.len() as u32 + frames.end);
    Some(Message::new(Protocol::Http2, kind, *name).with_len_of(segment, len))
}

/// Frames at the beginning of a segment.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    let frames = Frames::read(segment);
    let (kind, name) = frames.first?;
    let is_known =
        frames.count > 1 || frames.end == segment.len || frames.has_headers || frames.end == HEADER + LONGEST;
    // One frame's header alone is too often what other protocols send; two, or one that ends where the segment does,
    // are not, and neither is one of the longest.
    (is_known && !frames.is_wrong)
        .then(|| Message::new(Protocol::Http2, kind, *name).with_len_of(segment, Some(frames.end)))
}

/// The frames of one segment, together.
#[derive(Default)]
struct Frames {
    /// What the first says that asks, answers or continues; else what the first one says.
    first: Option<(Kind, &'static Name)>,
    /// Where the last one ends whose header was stored.
    end: u32,
    count: u32,
    has_headers: bool,
    /// Whether something follows that is no frame.
    is_wrong: bool,
}

impl Frames {
    fn read(segment: Segment<'_>) -> Self {
        let mut frames = Self::default();
        for _ in 0..FRAMES {
            let rest = segment.skip(frames.end as usize);
            if rest.len == 0 || rest.bytes.len() < HEADER as usize {
                break;
            }
            let Some((len, said)) = frame(rest) else {
                frames.is_wrong = true;
                break;
            };
            frames.has_headers |= matches!(said.0, Kind::Asks | Kind::Answers);
            match frames.first {
                Some((Kind::Neither, _)) if said.0 != Kind::Neither => frames.first = Some(said),
                None => frames.first = Some(said),
                Some(_) => {}
            }
            frames.count += 1;
            frames.end += HEADER + len;
        }
        frames
    }
}

/// The length of the first frame's body and what the frame says.
fn frame(segment: Segment<'_>) -> Option<(u32, (Kind, &'static Name))> {
    let &[_, _, _, kind, flags, stream @ ..] = segment.array::<9>(0)?;
    let len = segment.u24(0).filter(|&len| len <= LONGEST)?;
    let stream = u32::from_be_bytes(stream);
    if stream >= MOST_STREAMS {
        return None;
    }
    let only = |allowed: u8| flags & !allowed == 0;
    let body = segment.skip(HEADER as usize);
    let neither = |name| (Kind::Neither, name);
    let said = match (kind, stream != 0) {
        (0, true) if only(END_STREAM | PADDED) => (Kind::Continues, name!("HTTP/2 data")),
        // A client's streams are odd (section 5.1.1), and only the largest blocks go on in another frame.
        (1, true)
            if only(END_STREAM | END_HEADERS | PADDED | PRIORITY)
                && stream % 2 == 1
                && (flags & END_HEADERS != 0 || len == LONGEST) =>
        {
            headers(body, len, flags)?
        }
        (2, true) if len == 5 && only(0) => neither(name!("HTTP/2 priority")),
        (3, true) if len == 4 && only(0) => neither(name!("HTTP/2 reset")),
        (4, false) if len % 6 == 0 && only(0) => neither(name!("HTTP/2 settings")),
        (4, false) if len == 0 && only(ACK) => neither(name!("HTTP/2 settings")),
        (5, true) if len > 4 && only(END_HEADERS | PADDED) => neither(name!("HTTP/2 push promise")),
        (6, false) if len == 8 && only(ACK) => neither(name!("HTTP/2 ping")),
        (7, false) if len >= 8 && only(0) => neither(name!("HTTP/2 goaway")),
        (8, _) if len == 4 && only(0) && body.u32(0).is_none_or(|by| by != 0 && by < 1 << 31) => {
            neither(name!("HTTP/2 window update"))
        }
        (9, true) if only(END_HEADERS) => (Kind::Continues, name!("HTTP/2 headers")),
        _ => return None,
    };
    Some((len, said))
}

/// What a block of headers says: a request's begins with `:method` and its like, an answer's with `:status`
/// (section 8.3), and neither follows another field. Numbers are those of HPACK's static table (RFC 7541 appendix A).
fn headers(body: Segment<'_>, len: u32, flags: u8) -> Option<(Kind, &'static Name)> {
    let at = usize::from(flags & PADDED != 0) + if flags & PRIORITY != 0 { 5 } else { 0 };
    let mut block = body.bytes.get(at..).unwrap_or_default();
    if len <= at as u32 {
        return None;
    }
    // Changes of the table's size come first (RFC 7541 section 6.3).
    while let [0x20..=0x3e, after @ ..]
    | [0x3f, 0x00..=0x7f, after @ ..]
    | [0x3f, _, 0x00..=0x7f, after @ ..] = block
    {
        block = after;
    }
    Some(match block {
        [0x82, ..] => (Kind::Asks, name!("HTTP/2 GET")),
        [0x83, ..] => (Kind::Asks, name!("HTTP/2 POST")),
        [0x81 | 0x84..=0x87, 0x82, ..] => (Kind::Asks, name!("HTTP/2 GET")),
        [0x81 | 0x84..=0x87, 0x83, ..] => (Kind::Asks, name!("HTTP/2 POST")),
        [0x88, ..] => (Kind::Answers, name!("HTTP/2 200")),
        [0x8b, ..] => (Kind::Answers, name!("HTTP/2 304")),
        [0x8d, ..] => (Kind::Answers, name!("HTTP/2 404")),
        [first, ..] if is_status(*first) => (Kind::Answers, name!("HTTP/2 answer")),
        [first, ..] if is_of_request(*first) => (Kind::Asks, name!("HTTP/2 request")),
        // Fields sent before have numbers from 62 on: those of a request are followed by others of a request.
        [0xbe..=0xff, next, ..] if is_of_request(*next) => (Kind::Asks, name!("HTTP/2 request")),
        [0xbe..=0xff, ..] => (Kind::Either, name!("HTTP/2 headers")),
        // Names written out, which few programs do.
        [0x00 | 0x10 | 0x40, _, b':', b's', b't', ..] => (Kind::Answers, name!("HTTP/2 answer")),
        [0x00 | 0x10 | 0x40, _, b':', ..] => (Kind::Asks, name!("HTTP/2 request")),
        // Trailers.
        [0x00..=0x7f | 0x8f..=0xbd, ..] => (Kind::Continues, name!("HTTP/2 trailers")),
        [] => (Kind::Either, name!("HTTP/2 headers")),
        _ => return None,
    })
}

/// Whether a field beginning so is `:status`, 8 to 14 in the table: in it, or with another value.
fn is_status(byte: u8) -> bool {
    matches!(byte, 0x88..=0x8e | 0x48..=0x4e | 0x08..=0x0e | 0x18..=0x1e)
}

/// Whether a field beginning so is `:authority`, `:method`, `:path` or `:scheme`, 1 to 7.
fn is_of_request(byte: u8) -> bool {
    matches!(byte, 0x81..=0x87 | 0x41..=0x47 | 0x01..=0x07 | 0x11..=0x17)
}
