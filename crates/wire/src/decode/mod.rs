//! One frame to one packet: link layers, tunnels, IP, TCP and UDP.
//!
//! Every frame of every capture passes here, so the common case is a straight line (Ethernet, IPv4, TCP with
//! the timestamp option), nothing is allocated, and only the headers that tcpwhy needs must have been stored:
//! frames cut by a snapshot length are as good as whole ones. Payload lengths come from the IP header, also where a tool
//! cut the frame and did not keep its length; see [`Undecoded::LongerThanFrame`] for headers that cannot be believed.

mod ip;
mod link;
mod tally;
mod transport;
mod tunnel;

use crate::container::{Frame, LinkType};
use crate::{Address, Packet, Socket, Transport, Udp};

pub use tally::Tally;

/// Why a frame gave no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Undecoded {
    /// Not IP: the `EtherType`, or a number below 1536 where the frame names its protocol otherwise (802.3
    /// LLC, a BSD address family).
    NotIp(u16),
    /// IP, but neither TCP nor UDP nor a known tunnel: the protocol number.
    OtherIpProtocol(u8),
    /// A fragment of an IP packet, the first one too: its length is not the segment's length.
    Fragment,
    /// The snapshot length cut the frame before the end of the TCP or UDP header's fixed part.
    CutShort,
    /// A header that contradicts itself: a wrong version, or a length smaller than the header's own.
    Malformed,
    /// The IP header counts more bytes than the frame had on the wire, and its checksum is wrong; or UDP's does. They
    /// are left out, because a length guessed from the frame would look like lost segments.
    LongerThanFrame,
    /// No way is known to read this link layer: its number.
    UnknownLink(u32),
}

/// Decodes the frame that is the `number`-th of its capture, counted from 1.
pub fn decode(frame: &Frame<'_>, number: u64) -> Result<Packet, Undecoded> {
    let mut packet = Packet::default();
    decode_into(frame, number, &mut packet).map(|()| packet)
}

/// [`decode`] for those who do it millions of times a second: appends the packet to `packets`, written where
/// it will be read. Moving a packet that was just written costs more than decoding it.
#[inline]
pub fn decode_onto(frame: &Frame<'_>, number: u64, packets: &mut Vec<Packet>) -> Result<(), Undecoded> {
    let end = packets.len();
    packets.push(UNKNOWN);
    let decoded = decode_into(frame, number, &mut packets[end]);
    if decoded.is_err() {
        packets.truncate(end);
    }
    decoded
}

/// After an error, what `packet` holds means nothing.
#[inline]
fn decode_into(frame: &Frame<'_>, number: u64, packet: &mut Packet) -> Decoded {
    // A container that claims fewer bytes on the wire than it stored is wrong about the former.
    let wire = frame.original_len.max(u32::try_from(frame.data.len()).unwrap_or(u32::MAX));
    packet.number = number;
    packet.time = frame.time;
    packet.frame_len = wire;
    let rest = Rest { bytes: frame.data, wire };
    if frame.link == LinkType::ETHERNET {
        link::ethernet(rest, Tunnels(0), packet)
    } else {
        link::other(frame.link, rest, packet)
    }
}

/// A packet of which nothing is known. As a constant it is copied as a block; [`Packet::default`] would be written field by
/// field somewhere else and then copied, which waits for the writes.
const UNKNOWN: Packet = Packet {
    number: 0,
    time: 0,
    frame_len: 0,
    ip_id: None,
    source: Socket { address: Address(0), port: 0 },
    destination: Socket { address: Address(0), port: 0 },
    transport: Transport::Udp(Udp { payload_len: 0 }),
};

/// What every layer answers; the packet itself is written in place, each layer its own fields.
type Decoded = Result<(), Undecoded>;

/// How many tunnels have been opened on the way to here.
#[derive(Clone, Copy)]
struct Tunnels(u8);

impl Tunnels {
    /// Tunnels inside tunnels that are opened before the rest counts as an unknown protocol. Overlay networks
    /// nest two (a VPN between VXLAN hosts); twice that is room enough, and it bounds the recursion.
    const MAX: u8 = 4;

    /// One more, unless that were one too many.
    fn open(self) -> Option<Self> {
        (self.0 < Self::MAX).then_some(Self(self.0 + 1))
    }
}

/// What is left of a frame from one layer on.
#[derive(Clone, Copy)]
struct Rest<'a> {
    /// The bytes that were stored.
    bytes: &'a [u8],
    /// How many there were on the wire: at least as many as stored.
    wire: u32,
}

impl<'a> Rest<'a> {
    /// The next `N` bytes and what follows them.
    #[inline]
    fn split<const N: usize>(self) -> Result<(&'a [u8; N], Self), Undecoded> {
        match self.bytes.split_first_chunk() {
            Some((head, bytes)) => Ok((head, Rest { bytes, wire: self.wire.saturating_sub(N as u32) })),
            None => Err(self.missing(N as u32)),
        }
    }

    /// What follows the next `n` bytes.
    #[inline]
    fn skip(self, n: u32) -> Result<Self, Undecoded> {
        match self.bytes.get(n as usize..) {
            Some(bytes) => Ok(Rest { bytes, wire: self.wire.saturating_sub(n) }),
            None => Err(self.missing(n)),
        }
    }

    /// The first `n` bytes alone, where the layer's header counts only so many: Ethernet pads short frames.
    #[inline]
    fn limit(self, n: u32) -> Result<Self, Undecoded> {
        if n > self.wire {
            return Err(Undecoded::LongerThanFrame);
        }
        Ok(Rest { bytes: self.bytes.get(..n as usize).unwrap_or(self.bytes), wire: n })
    }

    /// Why `n` bytes cannot be had: never sent, or not stored.
    fn missing(self, n: u32) -> Undecoded {
        if self.wire < n { Undecoded::Malformed } else { Undecoded::CutShort }
    }
}

/// The big-endian number in two bytes at `at`.
#[inline]
fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The big-endian number in four bytes at `at`.
#[inline]
fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
