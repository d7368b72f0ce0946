//! Packets: `< [ect0] P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val 100 ecr 0>`.

use tcpwhy_wire::{TcpFlags, TcpOptions};

use super::cursor::{Cursor, Result};
use super::syntax::{Action, EcnBits, Options, Segment};

/// What stands where a TCP segment has its flags, in packets that are not TCP or are wrapped in something.
const OTHER_PROTOCOLS: [&str; 9] = ["icmp", "udp", "ipv4", "ipv6", "gre", "GREv0", "mpls", "raw", "psp"];
/// Fewest options bytes: a segment has room for 40 (RFC 9293 section 3.1), so for 40 options.
const MOST_OPTIONS: usize = 40;

/// A packet of either direction; the cursor is at its `<` or `>`.
pub(super) fn packet(cursor: &mut Cursor<'_>) -> Result<Action> {
    let begin = cursor.rest();
    let received = cursor.take("<")?;
    if !received {
        cursor.need(">")?;
    }
    let ecn = ecn(cursor)?;
    cursor.skip()?;
    if is_foreign(cursor.rest()) {
        let line = begin.split('\n').next().unwrap_or_default();
        cursor.advance(line.len() - (begin.len() - cursor.rest().len()).min(line.len()));
        return Ok(Action::Foreign(line.trim().to_owned()));
    }
    let mut segment = Segment { ecn, ..Segment::default() };
    header(cursor, &mut segment)?;
    if received && segment.window.is_none() {
        return Err(cursor.expected("win N: a received segment needs its window"));
    }
    Ok(if received { Action::Receive(segment) } else { Action::Send(segment) })
}

/// Whether this is no plain TCP segment of the connection: another protocol, or with ports of its own.
fn is_foreign(rest: &str) -> bool {
    let word = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let has_ports = || {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        after.starts_with('>') && !word.is_empty()
    };
    OTHER_PROTOCOLS.contains(&word) || has_ports()
}

/// `[ect0]` and what else packetdrill allows there; the flow label and the hop limit do not matter to TCP.
fn ecn(cursor: &mut Cursor<'_>) -> Result<Option<EcnBits>> {
    let close = if cursor.take("[")? {
        "]"
    } else if cursor.take("(")? {
        ")"
    } else {
        return Ok(None);
    };
    let place = cursor.clone();
    let mut bits = None;
    for item in cursor.until(close)?.split(',') {
        let mut words = item.split_whitespace();
        bits = match (words.next(), words.next()) {
            (Some("noecn"), None) => Some(EcnBits::None),
            (Some("ect0"), None) => Some(EcnBits::Ect0),
            (Some("ect1"), None) => Some(EcnBits::Ect1),
            (Some("ect01"), None) => Some(EcnBits::Either),
            (Some("ce"), None) => Some(EcnBits::Ce),
            (Some("tos"), Some(value)) => Some(type_of_service(&place, value)?),
            (Some("flowlabel" | "ttl"), Some(_)) => bits,
            _ => return Err(place.expected("noecn, ect0, ect1, ect01, ce, tos, ttl or flowlabel")),
        };
    }
    Ok(bits)
}

/// The ECN bits are the last two of the type of service (RFC 3168 section 5).
fn type_of_service(place: &Cursor<'_>, value: &str) -> Result<EcnBits> {
    let hex = value.strip_prefix("0x").and_then(|hex| u8::from_str_radix(hex, 16).ok());
    match hex.ok_or_else(|| place.expected("tos 0x…"))? & 3 {
        0 => Ok(EcnBits::None),
        1 => Ok(EcnBits::Ect1),
        2 => Ok(EcnBits::Ect0),
        _ => Ok(EcnBits::Ce),
    }
}

fn header(cursor: &mut Cursor<'_>, segment: &mut Segment) -> Result<()> {
    flags(cursor, segment)?;
    sequence(cursor, segment)?;
    if cursor.take_word("ack")? {
        segment.ack = Some(cursor.number()?);
    }
    if segment.ack.is_some() != segment.flags.has(TcpFlags::ACK) {
        return Err(cursor.expected("ack N with the flag '.', and only with it"));
    }
    if cursor.take_word("win")? {
        segment.window = Some(cursor.number()?);
    }
    if cursor.take_word("urg")? {
        segment.urgent = Some(cursor.number()?);
    }
    if cursor.take("<")? {
        segment.options = options(cursor)?;
    }
    Ok(())
}

fn flags(cursor: &mut Cursor<'_>, segment: &mut Segment) -> Result<()> {
    cursor.skip()?;
    let place = cursor.clone();
    let text = cursor.run(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
    let mut bits = 0;
    let mut accurate = String::new();
    for c in text.chars() {
        bits |= match c {
            'S' => TcpFlags::SYN,
            'F' => TcpFlags::FIN,
            'R' => TcpFlags::RST,
            'P' => TcpFlags::PSH,
            '.' => TcpFlags::ACK,
            'U' => TcpFlags::URG,
            'E' => TcpFlags::ECE,
            'W' | 'C' => TcpFlags::CWR,
            '-' if text.len() == 1 => 0,
            'A' | '0'..='7' => {
                accurate.push(c);
                0
            }
            _ => return Err(place.expected("flags of S F R P . U E W (a single - for none)")),
        };
    }
    if text.is_empty() {
        return Err(place.expected("flags"));
    }
    segment.flags = TcpFlags(bits);
    segment.accurate_ecn = (!accurate.is_empty()).then_some(accurate);
    Ok(())
}

/// `first:next(length)`, where the three must agree (modulo 2^32).
fn sequence(cursor: &mut Cursor<'_>, segment: &mut Segment) -> Result<()> {
    cursor.skip()?;
    let place = cursor.clone();
    segment.seq = cursor.number()?;
    cursor.need(":")?;
    let next: u32 = cursor.number()?;
    cursor.need("(")?;
    segment.payload_len = cursor.number()?;
    cursor.need(")")?;
    if segment.seq.wrapping_add(segment.payload_len) != next {
        return Err(place.expected("FIRST:NEXT(LENGTH) with FIRST + LENGTH = NEXT"));
    }
    Ok(())
}

/// The list after its `<`, up to its `>`.
fn options(cursor: &mut Cursor<'_>) -> Result<Options> {
    if cursor.take("...")? {
        cursor.need(">")?;
        return Ok(Options::Any);
    }
    let mut known = TcpOptions::default();
    let mut others = Vec::new();
    for _ in 0..MOST_OPTIONS {
        option(cursor, &mut known, &mut others)?;
        if cursor.take(">")? {
            return Ok(Options::Listed { known, others });
        }
        cursor.need(",")?;
    }
    Err(cursor.expected(format!("'>': a segment has room for {MOST_OPTIONS} options")))
}

fn option(cursor: &mut Cursor<'_>, known: &mut TcpOptions, others: &mut Vec<String>) -> Result<()> {
    cursor.skip()?;
    let start = cursor.rest();
    match cursor.word()? {
        "nop" | "eol" => {}
        "mss" => known.mss = Some(cursor.number()?),
        "wscale" => known.window_scale = Some(cursor.number()?),
        "sackOK" => known.sack_permitted = true,
        "sack" => blocks(cursor, known)?,
        "TS" => {
            cursor.take_word("val")?;
            let value = cursor.number()?;
            if !cursor.take_word("ecr")? {
                return Err(cursor.expected("ecr"));
            }
            known.timestamps = Some((value, cursor.number()?));
        }
        "" => return Err(cursor.expected("a TCP option")),
        _ => {
            cursor.run(|c| !matches!(c, ',' | '>' | '<' | '\n'));
            let length = start.len() - cursor.rest().len();
            others.push(start[..length].trim().to_owned());
        }
    }
    Ok(())
}

/// `sack 1:2 3:4`
fn blocks(cursor: &mut Cursor<'_>, known: &mut TcpOptions) -> Result<()> {
    loop {
        let left = cursor.number()?;
        cursor.need(":")?;
        known.sack.push(left, cursor.number()?);
        cursor.skip()?;
        if !cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Ok(());
        }
    }
}
