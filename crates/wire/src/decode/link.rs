//! Link layers, from the frame's first byte to the IP header.

use super::{Decoded, Rest, Tunnels, Undecoded, ip, u16_at};
use crate::Packet;
use crate::container::LinkType;

// Link types by their numbers at <https://www.tcpdump.org/linktypes.html> that `LinkType` has no name for.
const PPP: LinkType = LinkType(9);
const RAW_ELSEWHERE: LinkType = LinkType(12);
const RAW_ON_OPENBSD: LinkType = LinkType(14);
const PPP_HDLC: LinkType = LinkType(50);
const CISCO_HDLC: LinkType = LinkType(104);

/// VLAN tags and SNAP headers in a row that are skipped. 802.1ad needs two; a private tag or two may precede them.
const MAX_TAGS: usize = 4;

/// MPLS labels in a row that are skipped. Segment routing pushes about ten; the limit bounds the work on a
/// frame made of labels.
const MAX_LABELS: usize = 16;

/// The lowest `EtherType`; smaller numbers in its place are an 802.3 frame's length.
const LOWEST_ETHERTYPE: u16 = 0x0600;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
const MPLS: u16 = 0x8847;
const PPP_CONTROL: u16 = 0x880b;

/// Ethernet from the destination address on.
#[inline(always)]
pub(super) fn ethernet(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let (head, rest) = rest.split::<14>()?;
    let kind = u16_at(head, 12);
    if kind == IPV4 { ip::v4(rest, tunnels, out) } else { ethertype(kind, rest, tunnels, out) }
}

/// Every link layer but Ethernet.
#[inline(never)]
pub(super) fn other(link: LinkType, rest: Rest<'_>, out: &mut Packet) -> Decoded {
    let tunnels = Tunnels(0);
    match link {
        LinkType::NULL | LinkType::LOOP => loopback(rest, tunnels, out),
        PPP | PPP_HDLC => ppp_or_hdlc(rest, tunnels, out),
        LinkType::PPP_ETHER => pppoe(rest, tunnels, out),
        LinkType::RAW | RAW_ELSEWHERE | RAW_ON_OPENBSD => raw_ip(rest, tunnels, out),
        CISCO_HDLC => cisco_hdlc(rest, tunnels, out),
        LinkType::LINUX_SLL => {
            let (head, rest) = rest.split::<16>()?;
            ethertype(u16_at(head, 14), rest, tunnels, out)
        }
        LinkType::LINUX_SLL2 => {
            let (head, rest) = rest.split::<20>()?;
            ethertype(u16_at(head, 0), rest, tunnels, out)
        }
        LinkType::IPV4 => ethertype(IPV4, rest, tunnels, out),
        LinkType::IPV6 => ethertype(IPV6, rest, tunnels, out),
        LinkType(number) => Err(Undecoded::UnknownLink(number)),
    }
}

/// IP of the version that its first nibble names.
fn raw_ip(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let (first, _) = rest.split::<1>()?;
    ethertype(if first[0] >> 4 == 6 { IPV6 } else { IPV4 }, rest, tunnels, out)
}

/// What an `EtherType` announces; the tags and shims between it and IP.
#[inline(never)]
pub(super) fn ethertype(mut kind: u16, mut rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    for _ in 0..=MAX_TAGS {
        match kind {
            IPV4 => return ip::v4(rest, tunnels, out),
            IPV6 => return ip::v6(rest, tunnels, out),
            // 802.1Q, 802.1ad, and what switches used for QinQ before 802.1ad.
            0x8100 | 0x88a8 | 0x9100 => {
                let (tag, after) = rest.split::<4>()?;
                (kind, rest) = (u16_at(tag, 2), after);
            }
            MPLS | 0x8848 => return mpls(kind, rest, tunnels, out),
            0x8864 => return pppoe(rest, tunnels, out),
            0..LOWEST_ETHERTYPE => (kind, rest) = snap(kind, rest)?,
            other => return Err(Undecoded::NotIp(other)),
        }
    }
    Err(Undecoded::NotIp(kind))
}

/// LLC with SNAP (RFC 1042): the `EtherType` follows. Any other LLC is spanning tree and its like.
fn snap(length: u16, rest: Rest<'_>) -> Result<(u16, Rest<'_>), Undecoded> {
    let (head, after) = rest.split::<8>()?;
    match *head {
        [0xaa, 0xaa, 0x03, 0, 0, 0, high, low] => Ok((u16::from_be_bytes([high, low]), after)),
        _ => Err(Undecoded::NotIp(length)),
    }
}

/// [`ethernet`] where it is rare.
#[inline(never)]
pub(super) fn ethernet_in_tunnel(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let (head, rest) = rest.split::<14>()?;
    ethertype(u16_at(head, 12), rest, tunnels, out)
}

/// MPLS does not say what it carries: routers look at the first nibble (RFC 4928 section 3), and 0 there is
/// the control word of an Ethernet pseudowire (RFC 4448 section 4.6).
fn mpls(kind: u16, mut rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    for _ in 0..MAX_LABELS {
        let (label, after) = rest.split::<4>()?;
        rest = after;
        let bottom_of_stack = label[2] & 1 == 1;
        if !bottom_of_stack {
            continue;
        }
        let (first, _) = rest.split::<1>()?;
        return match (first[0] >> 4, tunnels.open()) {
            (4, _) => ethertype(IPV4, rest, tunnels, out),
            (6, _) => ethertype(IPV6, rest, tunnels, out),
            (0, Some(tunnels)) => ethernet_in_tunnel(rest.skip(4)?, tunnels, out),
            _ => Err(Undecoded::NotIp(kind)),
        };
    }
    Err(Undecoded::NotIp(kind))
}

/// A `PPPoE` session (RFC 2516 section 4). Its length field is left alone: IP's own is nearer the truth.
fn pppoe(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    const SESSION_DATA: [u8; 2] = [0x11, 0x00];
    let (head, rest) = rest.split::<6>()?;
    if !head.starts_with(&SESSION_DATA) {
        return Err(Undecoded::Malformed);
    }
    ppp(rest, tunnels, out)
}

/// PPP may carry the HDLC address and control bytes (RFC 1662 section 3.1), and Cisco's HDLC shares a link
/// type with it.
fn ppp_or_hdlc(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let (head, after) = rest.split::<2>()?;
    match *head {
        [0xff, 0x03] => ppp(after, tunnels, out),
        [0x0f | 0x8f, 0x00] => cisco_hdlc(rest, tunnels, out),
        _ => ppp(rest, tunnels, out),
    }
}

/// From the protocol field on, whose first byte is left out if zero: the last byte of a protocol number is
/// odd, all others even (RFC 1661 section 2, RFC 1331 section 3.1).
fn ppp(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let (first, after_one) = rest.split::<1>()?;
    let (protocol, rest) = if first[0] & 1 == 1 {
        (u16::from(first[0]), after_one)
    } else {
        let (two, after_two) = rest.split::<2>()?;
        (u16_at(two, 0), after_two)
    };
    match protocol {
        0x0021 => ethertype(IPV4, rest, tunnels, out),
        0x0057 => ethertype(IPV6, rest, tunnels, out),
        0x0281 => mpls(MPLS, rest, tunnels, out),
        _ => Err(Undecoded::NotIp(PPP_CONTROL)),
    }
}

fn cisco_hdlc(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let (head, rest) = rest.split::<4>()?;
    ethertype(u16_at(head, 2), rest, tunnels, out)
}

/// The address family, in the byte order of whichever host captured it: the smaller reading is meant.
fn loopback(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let (head, rest) = rest.split::<4>()?;
    let family = u32::from_be_bytes(*head).min(u32::from_le_bytes(*head));
    match family {
        2 => ethertype(IPV4, rest, tunnels, out),
        // AF_INET6 of Linux, Windows, NetBSD and OpenBSD, FreeBSD, macOS.
        10 | 23 | 24 | 28 | 30 => ethertype(IPV6, rest, tunnels, out),
        other => Err(Undecoded::NotIp(u16::try_from(other).unwrap_or(0).min(LOWEST_ETHERTYPE - 1))),
    }
}
