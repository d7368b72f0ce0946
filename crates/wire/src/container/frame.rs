//! What a capture file holds: frames, each with its time and its link type.

/// A link type by its number in the registry at <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u32);

impl LinkType {
    /// BSD loopback: the protocol family in the capturing host's byte order, then the packet.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// `PPPoE` session packets without their Ethernet header.
    pub const PPP_ETHER: Self = Self(51);
    /// Raw IPv4 or IPv6.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: the protocol family in network byte order, then the packet.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture, version 1: what `tcpdump -i any` wrote for decades.
    pub const LINUX_SLL: Self = Self(113);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// Linux cooked capture, version 2: what `tcpdump -i any` writes today.
    pub const LINUX_SLL2: Self = Self(276);
}

/// The latest time a frame can have, in ns since the epoch: in the year 2116, beyond the last second of pcap's 32
/// bits. Files that claim a later one are damaged or hostile; with this bound, two times can be added and
/// subtracted without overflow.
pub const MAX_TIME: i64 = 1 << 62;

/// One frame as it was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Nanoseconds since the epoch, 0 to [`MAX_TIME`]. A simple packet block has no time; it gets that of the
    /// frame before it.
    pub time: i64,
    /// What `data` begins with.
    pub link: LinkType,
    /// Bytes of the frame on the wire; `data` has fewer where the snapshot length cut it.
    pub original_len: u32,
    /// The interface it was captured on, from 0, counted through all sections of the file.
    pub interface: u32,
    /// What was stored of it.
    pub data: &'a [u8],
}

/// A remark that somebody wrote into the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The frame it is about, counted from 1; `None` for a comment on a section or an interface.
    pub frame: Option<u64>,
    /// The text; cut where it is very long.
    pub text: String,
}
