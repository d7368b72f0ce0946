//! TCP and UDP headers.

use super::{Decoded, Rest, Tunnels, Undecoded, tunnel, u16_at, u32_at};
use crate::messages;
use crate::{Packet, Socket, Tcp, TcpFlags, TcpOptions, Transport, Udp};

/// The flags among the header's bits: the eight of RFC 9293 and AE (RFC 9768).
const FLAGS: u16 = 0x01ff;

/// TCP (RFC 9293 section 3.1).
#[inline(always)]
pub(super) fn tcp(rest: Rest<'_>, out: &mut Packet) -> Decoded {
    let (head, after) = rest.split::<20>()?;
    let header_len = u32::from(head[12] >> 4) * 4;
    if header_len < 20 || header_len > rest.wire {
        return Err(Undecoded::Malformed);
    }
    let options = after.bytes.get(..header_len as usize - 20).unwrap_or(after.bytes);
    let timestamps = timestamps_alone(options);
    out.source.port = u16_at(head, 0);
    out.destination.port = u16_at(head, 2);
    out.transport = Transport::Tcp(Tcp {
        seq: u32_at(head, 4),
        ack: u32_at(head, 8),
        payload_len: rest.wire - header_len,
        window: u16_at(head, 14),
        flags: TcpFlags(u16_at(head, 12) & FLAGS),
        options: TcpOptions { timestamps, ..TcpOptions::default() },
        message: None,
    });
    // In place and only then: a value that is either this or that is copied once more.
    if timestamps.is_none()
        && !options.is_empty()
        && let Transport::Tcp(tcp) = &mut out.transport
    {
        read_options(options, &mut tcp.options);
    }
    let payload_len = rest.wire - header_len;
    if payload_len > 0
        && let Some(payload @ [_, ..]) = after.bytes.get(header_len as usize - 20..)
        && let Some(message) = messages::recognise(payload, payload_len)
        && let Transport::Tcp(tcp) = &mut out.transport
    {
        tcp.message = Some(message);
    }
    Ok(())
}

/// UDP (RFC 768), or the packet in the tunnel that it carries.
#[inline]
pub(super) fn udp(rest: Rest<'_>, tunnels: Tunnels, out: &mut Packet) -> Decoded {
    let (head, _) = rest.split::<8>()?;
    let datagram = match u16_at(head, 4) {
        // A jumbogram's length does not fit (RFC 2675 section 4): IP's counts.
        0 => rest,
        1..8 => return Err(Undecoded::Malformed),
        len => rest.limit(u32::from(len))?,
    };
    let payload = datagram.skip(8)?;
    let (source_port, destination_port) = (u16_at(head, 0), u16_at(head, 2));
    // The tunnel's packet has hosts of its own, which must not outlive an attempt that fails.
    let (source, destination) = (out.source.address, out.destination.address);
    if let Some(inner) = tunnel::over_udp(destination_port, payload, tunnels, out) {
        return inner;
    }
    out.source = Socket { address: source, port: source_port };
    out.destination = Socket { address: destination, port: destination_port };
    out.transport = Transport::Udp(Udp { payload_len: payload.wire });
    Ok(())
}

const END: u8 = 0;
const NOP: u8 = 1;
const TIMESTAMPS: u8 = 8;
const TIMESTAMPS_LEN: u8 = 10;

/// The timestamps of options in RFC 7323 appendix A's layout, which nearly every segment has that is no SYN.
#[inline(always)]
fn timestamps_alone(options: &[u8]) -> Option<(u32, u32)> {
    let options: &[u8; 12] = options.try_into().ok()?;
    let is_alone = u32_at(options, 0) == u32::from_be_bytes([NOP, NOP, TIMESTAMPS, TIMESTAMPS_LEN]);
    is_alone.then(|| (u32_at(options, 4), u32_at(options, 8)))
}

/// Options in any order. An option with an impossible length ends the walk, since nothing tells where the
/// next one begins; so does one that the snapshot length cut.
#[inline(never)]
fn read_options(mut bytes: &[u8], options: &mut TcpOptions) {
    loop {
        match *bytes {
            [NOP, ref after @ ..] => bytes = after,
            [kind, len, ref after @ ..] if kind != END => {
                let value_len = usize::from(len).checked_sub(2);
                let Some((value, after)) = value_len.and_then(|len| after.split_at_checked(len)) else {
                    return;
                };
                option_of(kind, value, options);
                bytes = after;
            }
            _ => return,
        }
    }
}

/// One option, `value` without its kind and length. A length that does not belong to the kind is ignored.
fn option_of(kind: u8, value: &[u8], options: &mut TcpOptions) {
    match (kind, value) {
        (2, &[high, low]) => options.mss = Some(u16::from_be_bytes([high, low])),
        // RFC 7323 section 2.3: a shift above 14 must be taken as 14.
        (3, &[shift]) => options.window_scale = Some(shift.min(14)),
        (4, []) => options.sack_permitted = true,
        (5, blocks) => {
            if let (blocks, []) = blocks.as_chunks::<8>() {
                blocks.iter().for_each(|block| options.sack.push(u32_at(block, 0), u32_at(block, 4)));
            }
        }
        (TIMESTAMPS, value) => {
            if let Ok(value) = <&[u8; 8]>::try_from(value) {
                options.timestamps = Some((u32_at(value, 0), u32_at(value, 4)));
            }
        }
        _ => {}
    }
}
