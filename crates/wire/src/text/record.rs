//! One packet as tcpdump printed it, all its lines joined by blanks.

use memchr::memmem;

use super::cursor::{Cursor, Parsed, Stop};
use super::host::Host;
use super::stamp::{self, Stamp};
use super::tcp::{self, Segment};
use super::udp;

/// What a record says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) stamp: Stamp,
    pub(super) content: Content<'a>,
}

/// The packet itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'a> {
    /// A TCP segment or UDP datagram.
    Transport { source: Host<'a>, destination: Host<'a>, lengths: Lengths, body: Body },
    /// ARP, ICMP, a later fragment …
    Other,
}

/// TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Tcp(Segment),
    /// Payload bytes.
    Udp(u32),
}

/// What tcpdump prints of a frame and its IP header with `-e` and `-v`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lengths {
    /// Bytes of the frame.
    pub(super) frame: Option<u32>,
    /// Bytes of the IP packet with its header.
    pub(super) ip: Option<u32>,
    /// The IPv4 header's identification.
    pub(super) ip_id: Option<u16>,
    /// Whether the packet is IPv6.
    pub(super) is_v6: bool,
}

/// A record and how far it reaches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'a> {
    pub(super) record: Record<'a>,
    /// Bytes of the text that belong to the record beyond doubt.
    pub(super) consumed: usize,
    /// Whether free text may follow: tcpdump's decoding of the payload.
    pub(super) open: bool,
}

/// Longest text in front of the hosts: time, interface, link layer and IP header.
const MAX_PREFIX: usize = 600;

/// Words in front of the hosts that only tcpdump prints.
const PREFIX_WORDS: [&str; 4] = ["IP", "IP6", "ethertype", "802.3"];

/// What `-e` printed behind the link layer's addresses before tcpdump 3.9.
const OLD_ETHERTYPES: [&str; 4] = ["ip", "ip6", "0800", "arp"];

/// First words of packets that are neither TCP nor UDP nor IP at all.
const NOT_IP: [&str; 17] = [
    "ARP",
    "arp",
    "RARP",
    "rarp",
    "STP",
    "802.1d",
    "LLDP",
    "LLC",
    "CDPv1",
    "CDPv2",
    "EAPOL",
    "IS-IS",
    "IPX",
    "AARP",
    "Loopback",
    "802.1Q-9100",
    "MPCP",
];

/// Reads the record at the start of `text`.
pub(super) fn read(text: &str) -> Parsed<Reading<'_>> {
    let mut cursor = Cursor::new(text);
    let stamp = stamp::take(&mut cursor).ok_or(Stop::No)?;
    let Some(ends) = ends(&mut cursor)? else {
        let record = Record { stamp, content: Content::Other };
        return Ok(Reading { record, consumed: text.len(), open: true });
    };
    let found = body(&mut cursor, &ends)?;
    let content = match found.body {
        None => Content::Other,
        Some(body) => Content::Transport {
            source: ends.source,
            destination: ends.destination,
            lengths: ends.lengths,
            body,
        },
    };
    let end = if found.open { text.len() } else { cursor.position() };
    let consumed = text[..end].trim_end().len();
    Ok(Reading { record: Record { stamp, content }, consumed, open: found.open })
}

/// Whether a text that could not be read is a packet's all the same, and worth a note: a time, and then what
/// only tcpdump prints.
pub(super) fn resembles_packet(text: &str) -> bool {
    let mut cursor = Cursor::new(text);
    if stamp::take(&mut cursor).is_none() {
        return false;
    }
    let Some((before, after)) = cursor.rest().split_once(" > ") else { return false };
    let is_ip = before.split_whitespace().any(|word| PREFIX_WORDS.contains(&word));
    let has_colon = after.split_whitespace().next().is_some_and(|destination| destination.ends_with(':'));
    is_ip || has_colon && before.split_whitespace().count() == 1
}

/// Who talks to whom, and what the words before said.
struct Ends<'a> {
    source: Host<'a>,
    destination: Host<'a>,
    lengths: Lengths,
    /// Whether the prefix can only be tcpdump's.
    is_certain: bool,
}

/// Steps behind `source > destination:`. `None`: a packet without IP.
///
/// The words before `>` are link layer and IP header, in many forms over the years; only lengths are taken
/// from them, and one of them has to be a word that tcpdump prints there.
fn ends<'a>(cursor: &mut Cursor<'a>) -> Parsed<Option<Ends<'a>>> {
    let start = cursor.position();
    let mut prefix_end = start;
    let (mut previous, mut words) = ("", 0_u32);
    let mut is_certain = false;
    loop {
        if cursor.position() - start > MAX_PREFIX {
            return Err(Stop::No);
        }
        let before = *cursor;
        let word = cursor.word().map_err(|_| end_of_prefix(is_certain, words, previous))?;
        // With -e a first pair are the link layer's addresses; a vendor's name may follow each in brackets.
        if word == ">" && !is_link_address(previous) && !previous.ends_with(')') {
            break;
        }
        is_certain |= word == ">" && is_link_address(previous);
        let bare = word.trim_end_matches([',', ':']);
        is_certain |=
            PREFIX_WORDS.contains(&bare) || OLD_ETHERTYPES.contains(&word) && is_link_address(previous);
        if (words == 0 || is_certain) && NOT_IP.contains(&bare) {
            return Ok(None);
        }
        (previous, prefix_end, words) = (word, before.position(), words + 1);
    }
    if words != 1 && !is_certain {
        return Err(Stop::No);
    }
    let source = Host::read(previous).ok_or(Stop::No)?;
    let prefix = cursor.between(start, prefix_end);
    let destination = destination(cursor)?;
    let lengths = lengths(prefix, &source);
    Ok(Some(Ends { source, destination, lengths, is_certain }))
}

/// The text ended before the `>`: is it the beginning of a record?
fn end_of_prefix(is_certain: bool, words: u32, previous: &str) -> Stop {
    let may_go_on = is_certain || words == 0 || words == 1 && Host::read(previous).is_some();
    if may_go_on { Stop::More } else { Stop::No }
}

/// `00:11:22:33:44:55`, in old versions without leading zeros.
fn is_link_address(word: &str) -> bool {
    let octet = |part: &str| matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    word.split(':').count() == 6 && word.split(':').all(octet)
}

/// The host behind `>`; people who hide addresses sometimes drop the colon as well.
fn destination<'a>(cursor: &mut Cursor<'a>) -> Parsed<Host<'a>> {
    let word = cursor.word()?;
    let host = Host::read(word.strip_suffix(':').unwrap_or(word)).ok_or(Stop::No)?;
    if !word.ends_with(':') {
        cursor.eat(":");
    }
    Ok(host)
}

/// Takes `length 74:` of the link layer, and `id 4711,` and `length 60)` of the IP header.
fn lengths(prefix: &str, source: &Host) -> Lengths {
    let header = memmem::find(prefix.as_bytes(), b"(tos");
    let link = &prefix[..header.unwrap_or(prefix.len())];
    let is_v6 = source.address.is_some_and(|address| address.is_ipv6()) || prefix.contains("IP6");
    let frame = number_after(link, "length ").or_else(|| number_after(link, "ip "));
    let ip = header.and_then(|at| number_after(&prefix[at..], "length "));
    let ip_id =
        header.and_then(|at| number_after(&prefix[at..], " id ")).and_then(|id| u16::try_from(id).ok());
    let v6_payload = number_after(prefix, "payload length: ");
    Lengths { frame, ip: v6_payload.map(|bytes| bytes.saturating_add(40)).or(ip), ip_id, is_v6 }
}

/// The number behind the first `label`, if something else than a blank ends it.
pub(super) fn number_after(text: &str, label: &str) -> Option<u32> {
    let after = &text[memmem::find(text.as_bytes(), label.as_bytes())? + label.len()..];
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    after[..digits].parse().ok()
}

/// The layer above IP. `None`: neither TCP nor UDP.
pub(super) struct Found {
    pub(super) body: Option<Body>,
    pub(super) open: bool,
}

fn body(cursor: &mut Cursor, ends: &Ends) -> Parsed<Found> {
    if cursor.skip_blanks().is_empty() {
        return Err(Stop::More);
    }
    if cursor.eat_word("Flags") {
        let header = tcp::read_new(cursor)?;
        return Ok(Found { body: Some(Body::Tcp(header.segment)), open: header.open });
    }
    let mut ahead = *cursor;
    if tcp::is_old_flags(ahead.word()?) {
        let header = tcp::read_old(cursor)?;
        return Ok(Found { body: Some(Body::Tcp(header.segment)), open: header.open });
    }
    let has_ports = ends.source.port.is_some() && ends.destination.port.is_some();
    udp::read(
        cursor,
        udp::Context {
            has_ports,
            is_certain: ends.is_certain,
            ip_len: ends.lengths.ip,
            is_v6: ends.lengths.is_v6,
        },
    )
}
