//! Tunnels: packets inside packets. The innermost one is the conversation that somebody waits for.

use super::{Decoded, Rest, Tunnels, Undecoded, link, u16_at};
use crate::Packet;

const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;

/// VXLAN's port (RFC 7348 section 8), and the one Linux used before there was an RFC.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];

/// GENEVE's port (RFC 8926 section 3.3).
const GENEVE_PORT: u16 = 6081;

/// GTP-U's port (3GPP TS 29.281 section 4.4.2): what mobile phones send, between base station and core network.
const GTP_U_PORT: u16 = 2152;

/// GTP-U extension headers in a row that are skipped. There are about ten kinds; the limit bounds the work on a datagram made
/// of them.
const MAX_GTP_EXTENSIONS: usize = 8;

const TRANSPARENT_ETHERNET: u16 = 0x6558;
const ERSPAN_1_OR_2: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;

/// A tunnel right above IP.
pub(super) fn over_ip(protocol: u8, rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let other = Err(Undecoded::OtherIpProtocol(protocol));
    if !matches!(protocol, IPV4_IN_IP | IPV6_IN_IP | GRE) {
        return other;
    }
    let Some(tunnels) = tunnels.open() else { return other };
    match protocol {
        IPV4_IN_IP => link::ethertype(link::IPV4, rest, tunnels, out),
        IPV6_IN_IP => link::ethertype(link::IPV6, rest, tunnels, out),
        _ => gre(rest, tunnels, out),
    }
}

/// GRE (RFC 2784, RFC 2890). Source routes and version 1 (PPTP, mostly encrypted) are not opened.
fn gre(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 0x0007;
    let (head, rest) = rest.split::<4>()?;
    let (flags, kind) = (u16_at(head, 0), u16_at(head, 2));
    if flags & (ROUTING | VERSION) != 0 {
        return Err(Undecoded::OtherIpProtocol(GRE));
    }
    let optional_words = (flags & (CHECKSUM | KEY | SEQUENCE)).count_ones();
    let rest = rest.skip(optional_words * 4)?;
    match kind {
        // ERSPAN type I has no header of its own; type II has one, and always a sequence number.
        ERSPAN_1_OR_2 => {
            link::ethernet_in_tunnel(rest.skip(if flags & SEQUENCE == 0 { 0 } else { 8 })?, tunnels, out)
        }
        ERSPAN_3 => {
            let (head, rest) = rest.split::<12>()?;
            let optional_subheader = head[11] & 1 == 1;
            link::ethernet_in_tunnel(rest.skip(if optional_subheader { 8 } else { 0 })?, tunnels, out)
        }
        _ => tunnelled(kind, rest, tunnels, out),
    }
}

/// A tunnel above UDP. `None` if this datagram is no tunnel's: it goes to another port, its tunnel header is
/// not one, or what follows makes no sense.
pub(super) fn over_udp(port: u16, rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Option<Decoded> {
    let open = match port {
        GENEVE_PORT => geneve,
        GTP_U_PORT => gtp_u,
        port if VXLAN_PORTS.contains(&port) => vxlan,
        _ => return None,
    };
    match open(rest, tunnels.open()?, out) {
        Err(Undecoded::Malformed) => None,
        inner => Some(inner),
    }
}

/// GTP-U (3GPP TS 29.281 section 5). Messages of the tunnel's own, echoes and errors, are plain datagrams, and so are other
/// versions and what carries no IP.
fn gtp_u(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    const VERSION_AND_TYPE: u8 = 0xf0;
    const GTP_1: u8 = 0x30;
    const OPTIONAL_FIELDS: u8 = 0x07;
    const EXTENSION: u8 = 0x04;
    const USER_DATA: u8 = 255;
    let (head, mut rest) = rest.split::<8>()?;
    if head[0] & VERSION_AND_TYPE != GTP_1 || head[1] != USER_DATA {
        return Err(Undecoded::Malformed);
    }
    if head[0] & OPTIONAL_FIELDS != 0 {
        let (optional, after) = rest.split::<4>()?;
        let next = if head[0] & EXTENSION == 0 { 0 } else { optional[3] };
        rest = gtp_extensions(next, after)?;
    }
    let (first, _) = rest.split::<1>()?;
    match first[0] >> 4 {
        4 => link::ethertype(link::IPV4, rest, tunnels, out),
        6 => link::ethertype(link::IPV6, rest, tunnels, out),
        _ => Err(Undecoded::Malformed),
    }
}

/// Steps over extension headers (section 5.2.1): the first byte is the length in words, the last one the next one's kind, 0
/// for none.
fn gtp_extensions(mut next: u8, mut rest: Rest<'_>) -> Result<Rest<'_>, Undecoded> {
    for _ in 0..MAX_GTP_EXTENSIONS {
        if next == 0 {
            return Ok(rest);
        }
        let (len, _) = rest.split::<1>()?;
        let Some(before_last) = (u32::from(len[0]) * 4).checked_sub(1) else {
            return Err(Undecoded::Malformed);
        };
        let (last, after) = rest.skip(before_last)?.split::<1>()?;
        (next, rest) = (last[0], after);
    }
    Err(Undecoded::Malformed)
}

/// VXLAN (RFC 7348 section 5), also with the group policy extension that Linux writes.
fn vxlan(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    const VNI_IS_VALID: u8 = 0x08;
    const GROUP_POLICY: u8 = 0x80;
    let (head, rest) = rest.split::<8>()?;
    let reserved_is_zero = head[7] == 0
        && match head[0] & !VNI_IS_VALID {
            0 => head[1..4] == [0, 0, 0],
            GROUP_POLICY => true,
            _ => false,
        };
    if head[0] & VNI_IS_VALID == 0 || !reserved_is_zero {
        return Err(Undecoded::Malformed);
    }
    link::ethernet_in_tunnel(rest, tunnels, out)
}

/// GENEVE (RFC 8926 section 3.4).
fn geneve(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let (head, rest) = rest.split::<8>()?;
    let version = head[0] >> 6;
    let options_len = u32::from(head[0] & 0x3f) * 4;
    if version != 0 || head[7] != 0 {
        return Err(Undecoded::Malformed);
    }
    tunnelled(u16_at(head, 2), rest.skip(options_len)?, tunnels, out)
}

/// What the protocol field of a tunnel's header announces: an `EtherType`, that of Ethernet itself included.
fn tunnelled(kind: u16, rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    if kind == TRANSPARENT_ETHERNET {
        link::ethernet_in_tunnel(rest, tunnels, out)
    } else {
        link::ethertype(kind, rest, tunnels, out)
    }
}
