//! A pcapng block that is being written, in either byte order.

use std::ops::Range;

use super::bytes::Order;
use super::pcapng::options::COMMENT;
use super::pcapng::{BYTE_ORDER_MAGIC, ENHANCED_PACKET, INTERFACE_DESCRIPTION, SECTION_HEADER};

const OPT_ENDOFOPT: u16 = 0;
/// Where a block has its length, behind its type.
const LENGTH_AT: usize = 4;

/// A block that is being built; reused, so that nothing is allocated for a frame.
#[derive(Debug)]
pub(super) struct Block {
    order: Order,
    bytes: Vec<u8>,
    has_options: bool,
}

impl Block {
    /// Bytes that the end of a list of options takes.
    pub(super) const END: usize = 4;

    /// Bytes that a packet's block has beside data and options, at most.
    pub(super) const OF_PACKET: usize = 36;

    /// Bytes that an option takes.
    pub(super) fn length_of_option(value: &[u8]) -> usize {
        4 + value.len().next_multiple_of(4)
    }

    pub(super) fn new(order: Order) -> Self {
        Self { order, bytes: Vec::new(), has_options: false }
    }

    /// Begins a block of a type.
    pub(super) fn begin(&mut self, kind: u32) {
        self.bytes.clear();
        self.has_options = false;
        self.u32(kind);
        self.u32(0); // The length, which `end` knows.
    }

    /// Begins a section: version 1.0, of a length that is not known.
    pub(super) fn begin_section(&mut self) {
        self.begin(SECTION_HEADER);
        self.u32(u32::from_be_bytes(BYTE_ORDER_MAGIC));
        self.u16(1);
        self.u16(0);
        self.u64(u64::MAX);
    }

    /// Begins an interface's description.
    pub(super) fn begin_interface(&mut self, link: u16, snaplen: u32) {
        self.begin(INTERFACE_DESCRIPTION);
        self.u16(link);
        self.u16(0);
        self.u32(snaplen);
    }

    /// Begins a frame: the number of its interface, its timestamp, its bytes on the wire, and those that are stored.
    pub(super) fn begin_packet(&mut self, interface: u32, ticks: u64, original_len: u32, data: &[u8]) {
        self.begin(ENHANCED_PACKET);
        self.u32(interface);
        self.ticks(ticks);
        self.u32(data.len() as u32);
        self.u32(original_len);
        self.padded(data);
    }

    /// Begins as another block of a section in this byte order begins: `start` goes from its type to where its options are.
    pub(super) fn begin_as(&mut self, order: Order, start: &[u8]) {
        self.order = order;
        self.bytes.clear();
        self.has_options = false;
        self.bytes.extend_from_slice(start);
    }

    /// Overwrites some bytes, if there are so many.
    pub(super) fn fill(&mut self, place: Range<usize>, byte: u8) {
        if let Some(bytes) = self.bytes.get_mut(place) {
            bytes.fill(byte);
        }
    }

    /// Ends the list of options where there is one, puts the length in both its places, and lends the block.
    pub(super) fn end(&mut self) -> &[u8] {
        if self.has_options {
            // Writers must end a list, says the draft; readers must not rely on it.
            self.u16(OPT_ENDOFOPT);
            self.u16(0);
        }
        self.close()
    }

    /// The same where `rest` ends the list of options: that of another block, as it is.
    pub(super) fn end_with(&mut self, rest: &[u8]) -> &[u8] {
        if rest.is_empty() {
            return self.end();
        }
        self.bytes.extend_from_slice(rest);
        self.close()
    }

    fn close(&mut self) -> &[u8] {
        let length = self.bytes.len() as u32 + 4;
        self.u32(length);
        self.bytes[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&self.order.bytes_of(length));
        &self.bytes
    }

    pub(super) fn u16(&mut self, value: u16) {
        let bytes = match self.order {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        };
        self.bytes.extend_from_slice(&bytes);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&self.order.bytes_of(value));
    }

    pub(super) fn u64(&mut self, value: u64) {
        let bytes = match self.order {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        };
        self.bytes.extend_from_slice(&bytes);
    }

    /// A timestamp: its upper half first, whatever the byte order.
    pub(super) fn ticks(&mut self, ticks: u64) {
        self.u32((ticks >> 32) as u32);
        self.u32(ticks as u32);
    }

    /// Bytes and what fills them up to a multiple of four.
    pub(super) fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// An option of 65,535 bytes at most.
    pub(super) fn option(&mut self, code: u16, value: &[u8]) {
        self.has_options = true;
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }

    /// An option that is a text, cut to what an option holds; none where it is empty.
    pub(super) fn text(&mut self, code: u16, text: &str) {
        if !text.is_empty() {
            self.option(code, as_option(text));
        }
    }

    pub(super) fn comment(&mut self, text: &str) {
        self.text(COMMENT, text);
    }
}

/// As much of a text as an option holds.
pub(super) fn as_option(text: &str) -> &[u8] {
    cut(text, usize::from(u16::MAX)).as_bytes()
}

/// As much of a text as fits into `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
