//! Capture files byte by byte, and what reading them gives.

use std::io::Read;

use tcpwhy_wire::container::{Comment, LinkType, Opened, open};

/// Byte order of what is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}
pub(crate) use Order::{Big, Little};

pub(crate) const MICROS: u32 = 0xa1b2_c3d4;
pub(crate) const NANOS: u32 = 0xa1b2_3c4d;
pub(crate) const MODIFIED: u32 = 0xa1b2_cd34;

impl Order {
    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        if self == Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        if self == Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub(crate) fn u64(self, value: u64) -> [u8; 8] {
        if self == Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }
}

/// A pcap file header of version 2.`minor`.
pub(crate) fn pcap_header_of(order: Order, magic: u32, minor: u16, link: u32) -> Vec<u8> {
    let mut bytes = order.u32(magic).to_vec();
    bytes.extend(order.u16(2));
    bytes.extend(order.u16(minor));
    for word in [0, 0, 262_144, link] {
        bytes.extend(order.u32(word));
    }
    bytes
}

/// A pcap file header for Ethernet.
pub(crate) fn pcap_header(order: Order, magic: u32) -> Vec<u8> {
    pcap_header_of(order, magic, 4, 1)
}

/// A pcap record.
pub(crate) fn record(order: Order, seconds: u32, fraction: u32, original: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [seconds, fraction, data.len() as u32, original] {
        bytes.extend(order.u32(word));
    }
    bytes.extend(data);
    bytes
}

/// A pcapng block: type, length, body padded to four bytes, length.
pub(crate) fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = order.u32(padded as u32 + 12);
    let mut bytes = [order.u32(kind), length].concat();
    bytes.extend(body);
    bytes.resize(8 + padded, 0);
    bytes.extend(length);
    bytes
}

/// A pcapng option, padded.
pub(crate) fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [order.u16(code), order.u16(value.len() as u16)].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A section header block of an unknown length.
pub(crate) fn section(order: Order, options: &[u8]) -> Vec<u8> {
    let mut body = order.u32(0x1a2b_3c4d).to_vec();
    body.extend(order.u16(1));
    body.extend(order.u16(0));
    body.extend(order.u64(u64::MAX));
    body.extend(options);
    block(order, 0x0a0d_0d0a, &body)
}

/// An interface description block.
pub(crate) fn interface(order: Order, link: u16, snaplen: u32, options: &[u8]) -> Vec<u8> {
    let mut body = [order.u16(link), order.u16(0)].concat();
    body.extend(order.u32(snaplen));
    body.extend(options);
    block(order, 1, &body)
}

/// An enhanced packet block.
pub(crate) fn enhanced(
    order: Order,
    interface: u32,
    ticks: u64,
    original: u32,
    data: &[u8],
    options: &[u8],
) -> Vec<u8> {
    let mut body = Vec::new();
    for word in [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, original] {
        body.extend(order.u32(word));
    }
    body.extend(data);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(options);
    block(order, 6, &body)
}

/// A simple packet block.
pub(crate) fn simple(order: Order, original: u32, data: &[u8]) -> Vec<u8> {
    block(order, 3, &[&order.u32(original), data].concat())
}

/// A frame as it was read, with bytes of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) time: i64,
    pub(crate) link: LinkType,
    pub(crate) original_len: u32,
    pub(crate) interface: u32,
    pub(crate) data: Vec<u8>,
}

/// Everything a reader gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) kind: &'static str,
    pub(crate) frames: Vec<Seen>,
    pub(crate) notes: Vec<String>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) dropped: Option<u64>,
}

/// Reads a capture to its end.
pub(crate) fn read(input: impl Read) -> Content {
    let Opened::Capture(mut reader) = open(input).expect("the input opens") else {
        panic!("the input is no capture");
    };
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame() {
        frames.push(Seen {
            time: frame.time,
            link: frame.link,
            original_len: frame.original_len,
            interface: frame.interface,
            data: frame.data.to_vec(),
        });
    }
    assert!(reader.next_frame().is_none(), "the end is the end");
    assert_eq!(reader.frames(), frames.len() as u64);
    Content {
        kind: reader.kind(),
        frames,
        notes: reader.notes(),
        comments: reader.comments().to_vec(),
        dropped: reader.dropped(),
    }
}
