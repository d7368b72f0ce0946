//! What tcpdump prints behind the hosts when it is not TCP: UDP, whose payload it likes to decode, and all
//! other protocols.

use super::cursor::{Cursor, Parsed, Stop};
use super::record::{Body, Found, number_after};
use super::tcp::old_tail;

/// What is known of the packet already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// Whether both hosts were printed with ports, as TCP's and UDP's are.
    pub(super) has_ports: bool,
    /// Whether the words before the hosts can only be tcpdump's.
    pub(super) is_certain: bool,
    /// Bytes of the IP packet, where printed.
    pub(super) ip_len: Option<u32>,
    /// Whether the packet is IPv6.
    pub(super) is_v6: bool,
}

/// First words of protocols over IP that are neither TCP nor UDP, and of tunnels, whose inner packet has no
/// time of its own; in lower case.
const OTHERS: [&str; 30] = [
    "icmp", "icmp6", "igmp", "esp", "esp(", "ah", "ah(", "gre", "grev0", "grev1", "ospf", "ospfv2", "ospfv3",
    "pim", "pimv1", "pimv2", "vrrp", "vrrpv2", "vrrpv3", "sctp", "dccp", "ipcomp", "rsvp", "rsvpv1", "eigrp",
    "hbh", "frag", "ip", "vxlan", "geneve",
];

/// Reads what is not TCP.
pub(super) fn read(cursor: &mut Cursor, context: Context) -> Parsed<Found> {
    let first = cursor.skip_blanks().to_ascii_lowercase();
    let word = first.split([' ', ',', ':', '(', '\t']).next().unwrap_or_default();
    if OTHERS.contains(&word) || first.starts_with("ip-proto-") || first.starts_with("(frag") {
        return Ok(Found { body: None, open: true });
    }
    checksum(cursor)?;
    if cursor.eat_word("udp") {
        // Without ports and length: a fragment behind the first.
        if !context.has_ports && context.is_certain && cursor.skip_blanks().is_empty() {
            return Ok(Found { body: None, open: true });
        }
        let payload = cursor.number()?;
        old_tail(cursor)?;
        return Ok(Found { body: Some(Body::Udp(payload)), open: false });
    }
    if cursor.eat("UDP,") {
        cursor.eat("bad");
        return plain(cursor);
    }
    decoded(cursor, context)
}

/// `[udp sum ok]`, `[bad udp cksum 0xfe20 -> 0x1f0a!]`, `[no cksum]`.
fn checksum(cursor: &mut Cursor) -> Parsed<()> {
    while cursor.skip_blanks().starts_with('[') {
        let note = cursor.enclosed('[', ']')?;
        if !note.contains("sum") {
            return Err(Stop::No);
        }
    }
    Ok(())
}

/// `length 12`; before tcpdump 4.0 with a colon.
fn plain(cursor: &mut Cursor) -> Parsed<Found> {
    if cursor.skip_blanks().is_empty() {
        return Err(Stop::More);
    }
    if !cursor.eat_word("length") {
        return Err(Stop::No);
    }
    cursor.eat(":");
    Ok(Found { body: Some(Body::Udp(cursor.number()?)), open: false })
}

/// A payload that tcpdump decoded, such as `1234+ A? example.com. (29)` or `NTPv4, Client, length 48`.
fn decoded(cursor: &Cursor, context: Context) -> Parsed<Found> {
    let text = cursor.rest();
    if !context.has_ports {
        // A packet of a protocol we do not know, if it is a packet at all.
        return if context.is_certain { Ok(Found { body: None, open: true }) } else { Err(Stop::No) };
    }
    let stated = number_after(text, "length: ").or_else(|| number_after(text, "length "));
    let payload = stated.or_else(|| last_in_brackets(text)).or_else(|| from_ip(context)).ok_or(Stop::More)?;
    Ok(Found { body: Some(Body::Udp(payload)), open: true })
}

/// The last `(45)`: with it tcpdump ends what it prints of DNS and NFS.
fn last_in_brackets(text: &str) -> Option<u32> {
    text.rsplit('(').filter_map(|part| part.split_once(')')).find_map(|(inside, _)| inside.parse().ok())
}

/// UDP's payload is what the IP packet has beyond the headers: 20 or 40 bytes and 8 (RFC 768).
fn from_ip(context: Context) -> Option<u32> {
    let headers = if context.is_v6 { 48 } else { 28 };
    context.ip_len?.checked_sub(headers)
}
