//! What travels between two endpoints.

use tcpwhy_wire::{Tcp, TcpFlags};

/// A TCP segment with the part of the IP header that TCP reads. Payload is a count of bytes, not their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The TCP header; `payload_len` in bytes.
    pub tcp: Tcp,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
}

/// The ECN field (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable,
    /// ECT(1).
    Ect1,
    /// ECT(0).
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// The last two bits of an IPv4 header's type of service.
    pub fn of_type_of_service(octet: u8) -> Self {
        match octet & 3 {
            0 => Self::NotCapable,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// Bytes of an IPv4 header without options.
const IPV4_HEADER: usize = 20;
/// Bytes of a TCP header without options.
const TCP_HEADER: usize = 20;

impl Segment {
    /// Bytes of the IPv4 packet that carries it.
    pub fn packet_len(&self) -> usize {
        IPV4_HEADER + TCP_HEADER + usize::from(self.options_len()) + self.tcp.payload_len as usize
    }

    /// Bytes of its TCP options, padded to whole words as Linux lays them out.
    pub fn options_len(&self) -> u8 {
        const MSS: u8 = 4;
        // SACK permitted (2 bytes) takes the place of the padding before the timestamps.
        const TIMESTAMPS: u8 = 12;
        const WINDOW_SCALE: u8 = 4;
        const SACK_PERMITTED_ALONE: u8 = 4;
        let options = &self.tcp.options;
        let blocks = options.sack.as_slice().len() as u8;
        let mut len = 0;
        len += if options.mss.is_some() { MSS } else { 0 };
        len += if options.timestamps.is_some() { TIMESTAMPS } else { 0 };
        len += if options.sack_permitted && options.timestamps.is_none() { SACK_PERMITTED_ALONE } else { 0 };
        len += if options.window_scale.is_some() { WINDOW_SCALE } else { 0 };
        len + if blocks > 0 { 4 + 8 * blocks } else { 0 }
    }

    /// Whether all of `bits` are set ([`TcpFlags`]).
    pub fn has(&self, bits: u16) -> bool {
        self.tcp.flags.0 & bits == bits
    }

    /// Sequence numbers it takes: its payload, and one each for SYN and FIN (RFC 9293 section 3.4).
    pub fn sequence_len(&self) -> u64 {
        let control = u64::from(self.has(TcpFlags::SYN)) + u64::from(self.has(TcpFlags::FIN));
        u64::from(self.tcp.payload_len) + control
    }

    /// Whether it does nothing but acknowledge.
    pub fn is_pure_ack(&self) -> bool {
        self.tcp.is_pure_ack()
    }
}
