//! Blocks as they stand in the file, for who copies them.

use std::io::Read;

use super::{
    BLOCK_HEADER, BLOCK_TRAILER, ENHANCED_PACKET, End, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS,
    OLD_PACKET, Order, Pcapng, SECTION_HEADER, SIMPLE_PACKET, Window, check_length,
};

/// The longest block that is lent as a whole. Wireshark opens no file with a longer one (`MAX_BLOCK_SIZE` in its
/// `wiretap/pcapng.c`).
const MOST: usize = 16 << 20;

/// Where the options of a section header begin.
const SECTION_OPTIONS: usize = 24;
/// Where the data of a packet begins, enhanced or old.
const DATA: usize = 28;

/// A block.
#[derive(Clone, Copy, Debug)]
pub(in crate::container) struct Raw<'w> {
    pub(in crate::container) kind: Kind,
    /// Of its section.
    pub(in crate::container) order: Order,
    /// All of it, from its type to the length at its end.
    pub(in crate::container) bytes: &'w [u8],
}

/// What a block is to who copies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::container) enum Kind {
    Section,
    /// A frame, which may have comments.
    Packet,
    /// A frame that has no room for comments: a simple packet block.
    BarePacket,
    Other,
    /// A block that is too long to be lent: it has no bytes.
    TooLong,
}

impl Pcapng {
    /// The next block, if it is one that [`Pcapng::next`] reads or passes over.
    pub(in crate::container) fn next_block<'w, R: Read>(
        &mut self,
        window: &'w mut Window<R>,
    ) -> Result<Raw<'w>, End> {
        if !window.has(BLOCK_HEADER) {
            return Err(window.short("last block's header", BLOCK_HEADER));
        }
        let head: [u8; BLOCK_HEADER] = window.head();
        let length = self.order.u32(&head, 4) as usize;
        let at = window.offset();
        let kind = match self.order.u32(&head, 0) {
            ENHANCED_PACKET | OLD_PACKET => {
                // Its number is for comments that are read, which a copy does not need.
                self.timed_packet(window, length, 0)?;
                Kind::Packet
            }
            SIMPLE_PACKET => {
                self.simple_packet(window, length)?;
                Kind::BarePacket
            }
            SECTION_HEADER => {
                self.section(window)?;
                Kind::Section
            }
            INTERFACE_DESCRIPTION => {
                self.interface(window, length)?;
                Kind::Other
            }
            INTERFACE_STATISTICS => {
                self.statistics(window, length)?;
                Kind::Other
            }
            _ if length > MOST => {
                self.skip(window, length)?;
                Kind::TooLong
            }
            _ => {
                self.whole(window, length)?;
                Kind::Other
            }
        };
        let length = if kind == Kind::TooLong { 0 } else { (window.offset() - at) as usize };
        Ok(Raw { kind, order: self.order, bytes: window.taken(length) })
    }

    /// Takes a block of a type that has no say here.
    fn whole<R: Read>(&self, window: &mut Window<R>, length: usize) -> Result<(), End> {
        check_length(window, length, BLOCK_HEADER)?;
        if !window.has(length) {
            return Err(window.short("last block", length));
        }
        let at = window.offset();
        self.check_trailer(&window.take(length)[length - BLOCK_TRAILER..], at, length)
    }
}

impl<'w> Raw<'w> {
    /// What stands before the options of a section header or a packet, and the options.
    pub(in crate::container) fn parts(&self) -> (&'w [u8], &'w [u8]) {
        let options = match self.kind {
            Kind::Section => SECTION_OPTIONS,
            _ => DATA + (self.order.u32(self.bytes, 20) as usize).next_multiple_of(4),
        };
        let body = &self.bytes[..self.bytes.len().saturating_sub(BLOCK_TRAILER)];
        body.split_at(options.min(body.len()))
    }
}
