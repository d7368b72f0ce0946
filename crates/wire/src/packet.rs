//! One packet as every later layer sees it: plain values, no borrowed bytes.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::messages::Message;

/// A host: an IPv6 address, an IPv4 address in its v4-mapped form (RFC 4291 section 2.5.5.2), or a host
/// that a text capture knows only by name (see [`Names`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(Rust, packed(8))]
pub struct Address(pub u128);

/// Upper half of the addresses that stand for names: the dummy prefix `100:0:0:1::/64` of RFC 9780, which no
/// packet on a real network carries.
const NAME_PREFIX: u128 = 0x0100_0000_0000_0001 << 64;

impl Address {
    /// The address of an IPv4 host.
    #[inline]
    pub fn v4(octets: [u8; 4]) -> Self {
        Self(0xffff_0000_0000 | u128::from(u32::from_be_bytes(octets)))
    }

    /// The address of an IPv6 host.
    #[inline]
    pub fn v6(octets: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(octets))
    }

    /// The address that stands for the `index`-th name of a text capture.
    pub fn named(index: u32) -> Self {
        Self(NAME_PREFIX | u128::from(index))
    }

    /// Which name this address stands for, if it stands for one.
    pub fn name_index(self) -> Option<u32> {
        let low = self.0 & u128::from(u64::MAX);
        (self.0 ^ low == NAME_PREFIX).then(|| u32::try_from(low).ok()).flatten()
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(v4) => Self::v4(v4.octets()),
            IpAddr::V6(v6) => Self::v6(v6.octets()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ip = Ipv6Addr::from(self.0);
        match ip.to_ipv4_mapped() {
            Some(v4) => Ipv4Addr::fmt(&v4, f),
            None => Ipv6Addr::fmt(&ip, f),
        }
    }
}

/// The host names of a text capture, by the index in their [`Address`]. Empty for every other capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    by_index: Vec<String>,
    index_of: HashMap<String, u32>,
}

impl Names {
    /// The address of `name`, remembered if it is new.
    pub fn intern(&mut self, name: &str) -> Address {
        if let Some(known) = self.find(name) {
            return known;
        }
        let index = u32::try_from(self.by_index.len()).unwrap_or(u32::MAX);
        self.by_index.push(name.to_owned());
        self.index_of.insert(name.to_owned(), index);
        Address::named(index)
    }

    /// The address of `name` if it is known already.
    pub fn find(&self, name: &str) -> Option<Address> {
        self.index_of.get(name).copied().map(Address::named)
    }

    /// How many names are known.
    pub fn len(&self) -> usize {
        self.by_index.len()
    }

    /// Whether no name is known.
    pub fn is_empty(&self) -> bool {
        self.by_index.is_empty()
    }

    /// The host as people write it: its name, or its address.
    pub fn host(&self, address: Address) -> String {
        address
            .name_index()
            .and_then(|index| self.by_index.get(index as usize).cloned())
            .unwrap_or_else(|| address.to_string())
    }

    /// `host:port`, `[v6]:port`, or the bare host where the text named no port (port 0).
    pub fn socket(&self, socket: Socket) -> String {
        let host = self.host(socket.address);
        match (socket.port, host.contains(':')) {
            (0, _) => host,
            (port, true) => format!("[{host}]:{port}"),
            (port, false) => format!("{host}:{port}"),
        }
    }
}

/// One end of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Socket {
    /// The host.
    pub address: Address,
    /// The TCP or UDP port; 0 where a text capture names none.
    pub port: u16,
}

impl From<SocketAddr> for Socket {
    fn from(socket: SocketAddr) -> Self {
        Self { address: socket.ip().into(), port: socket.port() }
    }
}

/// One TCP segment or UDP datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Position in the capture from 1, counting every frame, as Wireshark's `frame.number` does.
    pub number: u64,
    /// Nanoseconds since the epoch; in a text without dates, since that day's midnight.
    pub time: i64,
    /// Bytes of the frame on the wire, also where the snapshot length cut what was stored.
    pub frame_len: u32,
    /// The identification field of IPv4 (RFC 791 section 3.1); `None` where the packet has none (IPv6) or the
    /// text did not print it.
    pub ip_id: Option<u16>,
    /// Who sent it.
    pub source: Socket,
    /// To whom.
    pub destination: Socket,
    /// What it carries.
    pub transport: Transport,
}

impl Packet {
    /// Its TCP header, if it is a TCP segment.
    #[inline]
    pub fn tcp(&self) -> Option<&Tcp> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(tcp),
            Transport::Udp(_) => None,
        }
    }
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment.
    Tcp(Tcp),
    /// A UDP datagram.
    Udp(Udp),
}

impl Default for Transport {
    fn default() -> Self {
        Self::Udp(Udp::default())
    }
}

/// A UDP datagram's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Udp {
    /// Payload bytes as the header counts them.
    pub payload_len: u32,
}

/// A TCP segment's header (RFC 9293 section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number of the first payload byte (of the SYN where SYN is set), modulo 2^32.
    pub seq: u32,
    /// Acknowledgment number, modulo 2^32; meaningless unless [`TcpFlags::ACK`] is set.
    pub ack: u32,
    /// Payload bytes, from the IP header's length and so independent of the snapshot length. More than the
    /// path's MTU where the capturing host's TSO or GRO was at work.
    pub payload_len: u32,
    /// The window field as sent, not scaled.
    pub window: u16,
    /// The flags.
    pub flags: TcpFlags,
    /// The options that TCP's timing depends on.
    pub options: TcpOptions,
    /// What the payload begins with, where its protocol is known and enough of it was stored.
    pub message: Option<Message>,
}

impl Tcp {
    /// Whether it does nothing but acknowledge: no data, and neither SYN, FIN nor RST.
    #[inline]
    pub fn is_pure_ack(&self) -> bool {
        let control = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
        self.payload_len == 0 && self.flags.has(TcpFlags::ACK) && !self.flags.has(control)
    }
}

/// TCP flags, bit for bit as in the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: u16 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u16 = 0x02;
    /// Reset the connection.
    pub const RST: u16 = 0x04;
    /// Push.
    pub const PSH: u16 = 0x08;
    /// The acknowledgment number counts.
    pub const ACK: u16 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u16 = 0x20;
    /// ECN echo (RFC 3168).
    pub const ECE: u16 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u16 = 0x80;

    /// Whether any of `bits` is set.
    #[inline]
    pub fn has(self, bits: u16) -> bool {
        self.0 & bits != 0
    }

    /// Whether they ask for a connection: SYN without ACK.
    #[inline]
    pub fn are_opening(self) -> bool {
        self.0 & (Self::SYN | Self::ACK) == Self::SYN
    }
}

/// The TCP options that matter for timing; all others are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size in bytes (SYN only).
    pub mss: Option<u16>,
    /// Window scale shift (SYN only; RFC 7323), as sent; values above 14 count as 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (SYN only; RFC 2018).
    pub sack_permitted: bool,
    /// Timestamp value and echo reply (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgments.
    pub sack: SackBlocks,
}

/// Up to four SACK blocks, each the left and the (exclusive) right edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block; a fifth is dropped, since no segment has room for one.
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = (left, right);
            self.count += 1;
        }
    }

    /// The blocks in the order they were sent.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_acks_are_pure() {
        for (flags, payload_len, pure) in [
            (TcpFlags::ACK, 0, true),
            (TcpFlags::ACK | TcpFlags::ECE, 0, true),
            (TcpFlags::ACK, 1, false),
            (TcpFlags::ACK | TcpFlags::SYN, 0, false),
            (TcpFlags::ACK | TcpFlags::FIN, 0, false),
            (TcpFlags::RST, 0, false),
        ] {
            let tcp = Tcp { payload_len, flags: TcpFlags(flags), ..Tcp::default() };
            assert_eq!(tcp.is_pure_ack(), pure, "{flags:#x} {payload_len}");
        }
    }

    #[test]
    fn only_a_syn_without_ack_opens() {
        let opens = |flags| TcpFlags(flags).are_opening();
        assert!(opens(TcpFlags::SYN) && opens(TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR));
        assert!(!opens(TcpFlags::SYN | TcpFlags::ACK) && !opens(TcpFlags::ACK) && !opens(0));
    }
}
