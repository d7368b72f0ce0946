//! What tcpdump prints of a TCP header: the new form (`Flags [P.], seq 1:3, …`) since version 4.0 and the old
//! one (`P 1:3(2) ack 1 win 32120 (DF)`) before.

use super::cursor::{Cursor, Parsed, Stop};
use super::options::{self, Listed};
use crate::packet::TcpFlags;

/// A TCP header as printed: numbers may be relative, and a pure ACK prints no sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) flags: TcpFlags,
    pub(super) seq: Option<u32>,
    pub(super) ack: u32,
    pub(super) window: u16,
    pub(super) payload_len: u32,
    pub(super) listed: Listed,
}

/// A header, and whether free text may follow it: tcpdump's decoding of the payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) segment: Segment,
    pub(super) open: bool,
}

/// Reads the new form behind the word `Flags`, up to `length`.
pub(super) fn read_new(cursor: &mut Cursor) -> Parsed<Header> {
    let mut segment = Segment { flags: new_flags(cursor.enclosed('[', ']')?)?, ..Segment::default() };
    let (mut range, mut length) = (None, None);
    let mut items = 0_u32;
    while length.is_none() && cursor.eat(",") {
        match item(cursor, &mut segment)? {
            Item::Range(bytes) => range = Some(bytes),
            Item::Length(bytes) => length = Some(bytes),
            Item::Header => {}
            Item::Unknown => break,
        }
        items += 1;
    }
    if items == 0 {
        return Err(if cursor.skip_blanks().is_empty() { Stop::More } else { Stop::No });
    }
    segment.payload_len = length.or(range).unwrap_or(0);
    let open = length.is_some() && cursor.skip_blanks().starts_with(':');
    Ok(Header { segment, open })
}

/// One item between commas.
enum Item {
    /// `seq` with the bytes it spans.
    Range(u32),
    /// `length`.
    Length(u32),
    /// Anything else of the header.
    Header,
    /// Something newer than this reader, or the mark of a packet cut short: `[|tcp]`.
    Unknown,
}

fn item(cursor: &mut Cursor, segment: &mut Segment) -> Parsed<Item> {
    if cursor.skip_blanks().is_empty() {
        return Err(Stop::More);
    }
    if cursor.eat_word("seq") {
        let first = cursor.number()?;
        segment.seq = Some(first);
        let end = if cursor.rest().starts_with(':') && cursor.eat(":") { cursor.number()? } else { first };
        return Ok(Item::Range(end.wrapping_sub(first)));
    }
    if cursor.eat_word("ack") {
        segment.ack = cursor.number()?;
    } else if cursor.eat_word("win") {
        segment.window = window(cursor)?;
    } else if cursor.eat_word("urg") {
        cursor.number()?;
    } else if cursor.eat_word("options") {
        segment.listed = options::read(cursor.enclosed('[', ']')?);
    } else if cursor.eat_word("cksum") {
        cursor.word()?;
        cursor.enclosed('(', ')')?;
    } else if cursor.eat_word("length") {
        return cursor.number().map(Item::Length);
    } else {
        return Ok(Item::Unknown);
    }
    Ok(Item::Header)
}

fn window(cursor: &mut Cursor) -> Parsed<u16> {
    u16::try_from(cursor.number()?).map_err(|_| Stop::No)
}

/// The letters of `Flags [...]` (tcpdump's print-tcp.c, `tcp_flag_values`).
fn new_flags(letters: &str) -> Parsed<TcpFlags> {
    if letters == "none" {
        return Ok(TcpFlags(0));
    }
    letters.chars().try_fold(TcpFlags(0), |flags, letter| {
        let bit = match letter {
            'F' => TcpFlags::FIN,
            'S' => TcpFlags::SYN,
            'R' => TcpFlags::RST,
            'P' => TcpFlags::PSH,
            '.' => TcpFlags::ACK,
            'U' => TcpFlags::URG,
            'E' => TcpFlags::ECE,
            'W' => TcpFlags::CWR,
            // Accurate ECN's third bit (RFC 9768), which nothing here asks for.
            'e' => 0,
            _ => return Err(Stop::No),
        };
        Ok(TcpFlags(flags.0 | bit))
    })
}

/// Whether `word` can be the flags of the old form.
pub(super) fn is_old_flags(word: &str) -> bool {
    word == "." || !word.is_empty() && word.chars().all(|letter| "SFRPWEU".contains(letter))
}

/// Reads the old form from its flags on, as far as it is strictly tcpdump's.
pub(super) fn read_old(cursor: &mut Cursor) -> Parsed<Header> {
    let mut segment = Segment { flags: old_flags(cursor.word()?), ..Segment::default() };
    // Checksum (-v) and, in the 1990s, ECN: `[tcp sum ok]`, `[ECN-Echo,CWR]`.
    while cursor.skip_blanks().starts_with('[') {
        let note = cursor.enclosed('[', ']')?;
        segment.flags.0 |= if note.contains("ECN-Echo") { TcpFlags::ECE } else { 0 };
        segment.flags.0 |= if note.contains("CWR") { TcpFlags::CWR } else { 0 };
    }
    let sequence = old_sequence(cursor)?;
    let acknowledges = cursor.eat_word("ack");
    if acknowledges {
        segment.ack = cursor.number()?;
        segment.flags.0 |= TcpFlags::ACK;
    }
    let has_window = cursor.eat_word("win");
    if has_window {
        segment.window = window(cursor)?;
    }
    if sequence.is_none() && !acknowledges && !has_window {
        return Err(if cursor.skip_blanks().is_empty() { Stop::More } else { Stop::No });
    }
    if cursor.eat_word("urg") {
        cursor.number()?;
        segment.flags.0 |= TcpFlags::URG;
    }
    if let Some((first, bytes)) = sequence {
        segment.seq = Some(first);
        segment.payload_len = bytes;
    }
    if cursor.skip_blanks().starts_with('<') {
        segment.listed = options::read(cursor.enclosed('<', '>')?);
    }
    old_tail(cursor)?;
    Ok(Header { segment, open: false })
}

fn old_flags(letters: &str) -> TcpFlags {
    let bit = |letter, flag| if letters.contains(letter) { flag } else { 0 };
    let closing = bit('F', TcpFlags::FIN) | bit('S', TcpFlags::SYN) | bit('R', TcpFlags::RST);
    let others = bit('P', TcpFlags::PSH) | bit('U', TcpFlags::URG);
    TcpFlags(closing | others | bit('E', TcpFlags::ECE) | bit('W', TcpFlags::CWR))
}

/// `1541:1553(12)`, or the bare number of a segment without payload.
fn old_sequence(cursor: &mut Cursor) -> Parsed<Option<(u32, u32)>> {
    if !cursor.skip_blanks().starts_with(|first: char| first.is_ascii_digit()) {
        return Ok(None);
    }
    let first = cursor.number()?;
    if !cursor.rest().starts_with(':') || !cursor.eat(":") {
        return Ok(Some((first, 0)));
    }
    let end = cursor.number()?;
    if !cursor.rest().starts_with('(') || !cursor.eat("(") {
        return Ok(Some((first, end.wrapping_sub(first))));
    }
    let bytes = cursor.number()?;
    if cursor.eat(")") { Ok(Some((first, bytes))) } else { Err(Stop::No) }
}

/// What the IP layer used to add behind the TCP header.
const OLD_TAILS: [&str; 13] = [
    "(DF)",
    "(DF,",
    "(ttl",
    "(frag",
    "(tos",
    "(id",
    "(len",
    "[tos",
    "[ttl",
    "[|tcp]",
    "[flowlabel",
    "[hlim",
    "[ECT",
];

/// Steps over `(DF) [tos 0x10] (ttl 64, id 4711)` and the like.
pub(super) fn old_tail(cursor: &mut Cursor) -> Parsed<()> {
    loop {
        let rest = cursor.skip_blanks();
        if !OLD_TAILS.iter().any(|tail| rest.starts_with(tail)) {
            return Ok(());
        }
        let (open, close) = if rest.starts_with('(') { ('(', ')') } else { ('[', ']') };
        cursor.enclosed(open, close)?;
    }
}
