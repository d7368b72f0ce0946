//! Dialogues in lines: SMTP (RFC 5321), FTP (RFC 959), POP3 (RFC 1939), IMAP (RFC 9051) and their like.
//!
//! The server greets, the client says a word and what belongs to it, the server answers with a code, a sign or the
//! client's tag. Of a line only the word or the code becomes a name: what follows may be a password.

use super::{Kind, Message, Name, Protocol, Segment};

/// The longest line that is believed. RFC 5321 allows 512 bytes, IMAP's are longer.
const LONGEST_LINE: usize = 2_048;

/// Bytes of a line that hold its tag and its word.
const LONGEST_START: usize = 40;

/// The longest tag of IMAP that is believed.
const LONGEST_TAG: usize = 16;

/// The longest of the words below.
const LONGEST_WORD: usize = 16;

/// Words that stand alone on their line.
#[rustfmt::skip]
const BARE: [&str; 16] = [
    "DATA", "RSET", "QUIT", "STARTTLS", "PASV", "PWD", "XPWD", "SYST", "FEAT", "CDUP", "XCUP", "ABOR", "CAPA",
    "STLS", "REIN", "DONE",
];

/// Words that may have something after them.
#[rustfmt::skip]
const WITH_MORE: [&str; 52] = [
    "EHLO", "HELO", "LHLO", "VRFY", "EXPN", "AUTH", "BDAT", "ETRN", "NOOP", "HELP", "USER", "PASS", "ACCT",
    "CWD", "XCWD", "PORT", "EPRT", "EPSV", "TYPE", "STRU", "MODE", "RETR", "STOR", "STOU", "APPE", "ALLO",
    "REST", "RNFR", "RNTO", "DELE", "RMD", "XRMD", "MKD", "XMKD", "LIST", "NLST", "SITE", "STAT", "OPTS",
    "SIZE", "MDTM", "MFMT", "MLSD", "MLST", "PBSZ", "PROT", "ADAT", "CLNT", "TOP", "UIDL", "APOP", "XCLIENT",
];

/// Commands of IMAP, which stand after a tag.
#[rustfmt::skip]
const IMAP: [&str; 41] = [
    "CAPABILITY", "NOOP", "LOGOUT", "STARTTLS", "AUTHENTICATE", "LOGIN", "SELECT", "EXAMINE", "CREATE",
    "DELETE", "RENAME", "SUBSCRIBE", "UNSUBSCRIBE", "LIST", "XLIST", "LSUB", "STATUS", "APPEND", "CHECK",
    "CLOSE", "EXPUNGE", "SEARCH", "FETCH", "STORE", "COPY", "MOVE", "UID", "IDLE", "NAMESPACE", "ID", "ENABLE",
    "UNSELECT", "COMPRESS", "GETQUOTA", "GETQUOTAROOT", "GETACL", "SETACL", "MYRIGHTS", "SORT", "THREAD",
    "NOTIFY",
];

/// What IMAP's server says without a tag.
#[rustfmt::skip]
const UNTAGGED: [&str; 19] = [
    "BYE", "NO", "BAD", "CAPABILITY", "LIST", "XLIST", "LSUB", "SEARCH", "ESEARCH", "STATUS", "FLAGS",
    "ENABLED", "ID", "NAMESPACE", "QUOTA", "QUOTAROOT", "ACL", "SORT", "THREAD",
];

/// A command or an answer.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    // Most that is no dialogue ends here.
    let head: &[u8; 2] = segment.array(0)?;
    if !head.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\r' | b'\n')) {
        return None;
    }
    if segment.len <= 5 && matches!(segment.bytes, b".\r\n" | b"\r\n.\r\n") {
        // A mail's end wants an answer; a list's end is the answer's.
        return Some(message(Kind::Either, "end of text"));
    }
    // The middle of a text may look like a line, but seldom ends where one does.
    if segment.is_whole() && !segment.bytes.ends_with(b"\r\n") {
        return None;
    }
    // The words at its beginning first: lines may be long.
    let start = segment.bytes.iter().take(LONGEST_START).take_while(|byte| **byte >= b' ').count();
    says(&segment.bytes[..start]).filter(|_| is_line(segment))
}

/// What a line says that begins with `line`.
fn says(line: &[u8]) -> Option<Message> {
    match *line.first()? {
        b'+' => sign(line),
        b'-' if line.starts_with(b"-ERR") => ended(line, 4).map(|()| message(Kind::Answers, "-ERR")),
        b'*' => untagged(line),
        b'1'..=b'5' if line.get(..3).is_some_and(|code| code.iter().all(u8::is_ascii_digit)) => {
            code(line).or_else(|| tagged(line))
        }
        _ => command(line).or_else(|| tagged(line)),
    }
}

fn message(kind: Kind, name: &str) -> Message {
    Message::new(Protocol::Lines, kind, Name::new(name))
}

/// Whether the segment begins with a line, as far as it was stored: text of any language, and no control characters.
fn is_line(segment: Segment<'_>) -> bool {
    let is_control = |byte: &u8| *byte < b' ' && *byte != b'\t' || *byte == 0x7f;
    let Some(end) = segment.bytes.iter().take(LONGEST_LINE).position(is_control) else {
        return !segment.is_whole();
    };
    match segment.bytes[end..] {
        [b'\r', b'\n', ..] => true,
        [b'\r'] => !segment.is_whole(),
        _ => false,
    }
}

/// Whether the line ends at `at`, or a space stands there.
fn ended(line: &[u8], at: usize) -> Option<()> {
    matches!(line.get(at), None | Some(b' ')).then_some(())
}

/// A code of three digits (RFC 5321 section 4.2): its first digit goes to 5, its second too.
fn code(line: &[u8]) -> Option<Message> {
    let (&code @ [_, tens, _], after) = line.split_first_chunk()?;
    if tens > b'5' || !matches!(after, [] | [b' ' | b'-', ..]) {
        return None;
    }
    // 220 is also said before TLS begins, which the client waits for as well.
    let kind = if &code == b"220" { Kind::Greets } else { Kind::Answers };
    Some(Message::new(Protocol::Lines, kind, Name::new(std::str::from_utf8(&code).ok()?)))
}

/// POP3's good answer, or the leave to go on.
fn sign(line: &[u8]) -> Option<Message> {
    match line {
        b"+" | [b'+', b' ', ..] => Some(message(Kind::Answers, "+")),
        [b'+', b'O', b'K', ..] => ended(line, 3).map(|()| message(Kind::Answers, "+OK")),
        _ => None,
    }
}

/// A line that begins with a star: a greeting, part of an answer, or news.
fn untagged(line: &[u8]) -> Option<Message> {
    let text = line.strip_prefix(b"* ")?;
    let word = word(text);
    if matches!(word, b"OK" | b"PREAUTH") {
        return Some(message(Kind::Greets, "IMAP greeting"));
    }
    let is_number = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    (is_number || find(&UNTAGGED, word).is_some()).then(|| message(Kind::Answers, "IMAP answer"))
}

/// What stands before the first space.
fn word(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == b' ').next().unwrap_or_default()
}

/// The one of `words` that `word` is, in one case throughout: sentences begin with a capital.
fn find(words: &[&'static str], word: &[u8]) -> Option<&'static str> {
    let is_in_one_case = word.iter().all(u8::is_ascii_uppercase) || word.iter().all(u8::is_ascii_lowercase);
    let found = || words.iter().copied().find(|known| known.as_bytes().eq_ignore_ascii_case(word));
    (is_in_one_case && (2..=LONGEST_WORD).contains(&word.len())).then(found).flatten()
}

/// A client's command.
fn command(line: &[u8]) -> Option<Message> {
    let word = word(line);
    if !(3..=8).contains(&word.len()) {
        return None;
    }
    let more = line.get(word.len() + 1..).unwrap_or_default();
    let begins = |with: &[u8]| more.first_chunk::<5>().is_none_or(|start| start.eq_ignore_ascii_case(with));
    let name = match find(&["MAIL", "RCPT"], word) {
        Some("MAIL") => begins(b"FROM:").then_some("MAIL"),
        Some(_) => more.get(..3).is_none_or(|start| start.eq_ignore_ascii_case(b"TO:")).then_some("RCPT"),
        None => find(&BARE, word).filter(|_| more.is_empty()).or_else(|| find(&WITH_MORE, word)),
    };
    name.map(|name| message(Kind::Asks, name))
}

/// IMAP: a tag, and a command or how it ended.
fn tagged(line: &[u8]) -> Option<Message> {
    let tag = word(line);
    let is_tag = |&byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    // Tags are counted; words of a text are not.
    let has_digit = tag.iter().any(u8::is_ascii_digit);
    // One point is what people type.
    if tag.len() > LONGEST_TAG || !(has_digit || tag == b".") || !tag.iter().all(is_tag) {
        return None;
    }
    let word = word(line.get(tag.len() + 1..)?);
    if let Some(status) = find(&["OK", "NO", "BAD"], word) {
        let mut name = Name::new("IMAP ");
        name.push(status.as_bytes());
        return Some(Message::new(Protocol::Lines, Kind::Answers, name));
    }
    find(&IMAP, word).map(|name| message(Kind::Asks, name))
}
