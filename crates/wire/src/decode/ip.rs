//! IPv4 and IPv6, up to the transport header.

use super::{Decoded, Rest, Tunnels, Undecoded, transport, tunnel, u16_at};
use crate::{Address, Packet};

const TCP: u8 = 6;
const UDP: u8 = 17;

// IPv6 extension headers (RFC 8200 section 4) and AH, which IPv4 has too (RFC 4302).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;

/// Extension headers in a row that are skipped. RFC 8200 section 4.1 allows each kind once and destination
/// options twice; the limit bounds the work on a packet made of them.
const MAX_EXTENSIONS: usize = 8;

/// IPv4 (RFC 791 section 3.1).
#[inline(always)]
pub(super) fn v4(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    const OFFSET_AND_MORE_FRAGMENTS: u16 = 0x3fff;
    let (head, _) = rest.split::<20>()?;
    let header_len = u32::from(head[0] & 0x0f) * 4;
    // A host that captures what its network card will segment later may leave the total length 0: Windows
    // with large send offload, Linux with segments above 64 KiB (BIG TCP). The frame is then all there is.
    let total_len = match u16_at(head, 2) {
        0 => rest.wire,
        len => u32::from(len),
    };
    if head[0] >> 4 != 4 || header_len < 20 {
        return Err(Undecoded::Malformed);
    }
    if u16_at(head, 6) & OFFSET_AND_MORE_FRAGMENTS != 0 {
        return Err(Undecoded::Fragment);
    }
    let whole = if total_len > rest.wire {
        longer_than_frame(rest, header_len, total_len, tunnels)?
    } else {
        rest.limit(total_len)?
    };
    let payload = whole.skip(header_len)?;
    out.ip_id = Some(u16_at(head, 4));
    out.source.address = Address::v4([head[12], head[13], head[14], head[15]]);
    out.destination.address = Address::v4([head[16], head[17], head[18], head[19]]);
    match head[9] {
        TCP => transport::tcp(payload, out),
        AUTHENTICATION => extensions(AUTHENTICATION, payload, tunnels, out),
        protocol => upper(protocol, payload, tunnels, out),
    }
}

/// A packet whose header counts more bytes than the frame had: a tool cut the frame and did not keep its length, or a
/// mirror cut the packet before it put it in a tunnel. Its own length is right if the header's checksum is. Many hosts leave
/// that zero to their network card; what is in a tunnel has passed the card.
#[cold]
fn longer_than_frame(
    rest: Rest<'_>,
    header_len: u32,
    total_len: u32,
    tunnels: Tunnels,
) -> Result<Rest<'_>, Undecoded> {
    let header = rest.bytes.get(..header_len as usize).ok_or(rest.missing(header_len))?;
    let is_left_to_card = header[10..12] == [0, 0] && tunnels.0 == 0;
    if is_left_to_card || has_right_checksum(header) {
        Ok(Rest { bytes: rest.bytes, wire: total_len })
    } else {
        Err(Undecoded::LongerThanFrame)
    }
}

/// RFC 1071: the sum of all words, carries added in, is all ones.
fn has_right_checksum(header: &[u8]) -> bool {
    let words = header.as_chunks::<2>().0.iter();
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

/// IPv6 (RFC 8200 section 3).
#[inline(always)]
pub(super) fn v6(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let (head, rest) = rest.split::<8>()?;
    let (source, rest) = rest.split::<16>()?;
    let (destination, payload) = rest.split::<16>()?;
    if head[0] >> 4 != 6 {
        return Err(Undecoded::Malformed);
    }
    // 0 is a jumbogram (RFC 2675 section 3), which is what BIG TCP segments look like where they are captured.
    let payload = match u32::from(u16_at(head, 4)) {
        0 => payload,
        // Cut by a tool or a mirror, as in IPv4. There is no checksum to tell, but nothing else makes a header count more.
        len if len > payload.wire => Rest { bytes: payload.bytes, wire: len },
        len => payload.limit(len)?,
    };
    // A tunnel's outer header may have been IPv4's.
    out.ip_id = None;
    out.source.address = Address::v6(*source);
    out.destination.address = Address::v6(*destination);
    match head[6] {
        TCP => transport::tcp(payload, out),
        next @ (HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION) => {
            extensions(next, payload, tunnels, out)
        }
        protocol => upper(protocol, payload, tunnels, out),
    }
}

/// Steps over extension headers to the header they announce.
#[inline(never)]
fn extensions(mut next: u8, mut rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    for _ in 0..MAX_EXTENSIONS {
        if !matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION) {
            break;
        }
        let (head, _) = rest.split::<8>()?;
        let len = match next {
            // Offset and more-fragments flag both 0: an atomic fragment, a whole packet (RFC 6946).
            FRAGMENT if u16_at(head, 2) & 0xfff9 != 0 => return Err(Undecoded::Fragment),
            FRAGMENT => 8,
            AUTHENTICATION => (u32::from(head[1]) + 2) * 4,
            _ => (u32::from(head[1]) + 1) * 8,
        };
        (next, rest) = (head[0], rest.skip(len)?);
    }
    upper(next, rest, tunnels, out)
}

/// What IP carries: TCP, UDP, a tunnel, or nothing we know.
#[inline(never)]
fn upper(protocol: u8, rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    match protocol {
        TCP => transport::tcp(rest, out),
        UDP => transport::udp(rest, tunnels, out),
        _ => tunnel::over_ip(protocol, rest, tunnels, out),
    }
}
