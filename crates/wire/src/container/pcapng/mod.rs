//! pcapng: sections of blocks. <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html>

pub(super) mod copy;
pub(super) mod interface;
pub(super) mod options;

use std::io::Read;

use self::interface::Interface;
use self::options::Comments;
use super::Item;
use super::bytes::Order;
use super::end::End;
use super::frame::{Comment, Frame};
use super::window::Window;
use crate::calls::{self, Block};

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
pub(super) const INTERFACE_STATISTICS: u32 = 5;
pub(super) const ENHANCED_PACKET: u32 = 6;
/// Recorded calls. Types with the highest bit set are for local use ("Standardized Block Type Codes"); a custom block, which
/// needs a Private Enterprise Number, would be shown as a packet by Wireshark, and shift the numbers of all behind it.
pub(super) const CALLS: u32 = 0x8074_7779;

pub(super) const BYTE_ORDER_MAGIC: [u8; 4] = 0x1a2b_3c4d_u32.to_be_bytes();

/// The block type and the total length, before every block's body.
const BLOCK_HEADER: usize = 8;
/// The total length again, after it.
const BLOCK_TRAILER: usize = 4;

/// The largest block that is taken into memory: a frame of [`super::MAX_FRAME`] bytes and the longest options
/// anybody writes. Blocks that are skipped may have any length.
pub(super) const MAX_BLOCK: usize = 1024 * 1024;

/// Interfaces one section may describe. An old packet block has 16 bits to name one.
const MAX_INTERFACES: usize = 65_536;

/// Whether an input with these first bytes is pcapng: a section header in either byte order, or as much of one
/// as there is.
pub(super) fn begins_with(magic: &[u8]) -> bool {
    magic.starts_with(&SECTION_HEADER.to_be_bytes())
        && magic.get(8..12).is_none_or(|bytes| order_of(bytes).is_some())
}

fn order_of(byte_order_magic: &[u8]) -> Option<Order> {
    let mut swapped = BYTE_ORDER_MAGIC;
    swapped.reverse();
    match byte_order_magic {
        bytes if bytes == BYTE_ORDER_MAGIC => Some(Order::Big),
        bytes if bytes == swapped => Some(Order::Little),
        _ => None,
    }
}

/// A pcapng file being read.
#[derive(Debug, Default)]
pub(super) struct Pcapng {
    /// Of the section.
    order: Order,
    /// Of the section.
    interfaces: Vec<Interface>,
    /// Interfaces of the sections before.
    interfaces_before: u32,
    /// Sections so far.
    sections: u32,
    /// Packets that interfaces of the sections before dropped.
    dropped_before: Option<u64>,
    comments: Comments,
    /// Of the frame before, ns since the epoch.
    time: i64,
    /// Frames without a time of their own.
    untimed: u64,
}

impl Pcapng {
    /// The next packet block's frame, which will be number `number`; or, with `calls`, the next block of calls.
    #[inline]
    pub(super) fn next<'w, R: Read>(
        &mut self,
        window: &'w mut Window<R>,
        number: u64,
        calls: bool,
    ) -> Result<Item<'w>, End> {
        loop {
            if !window.has(BLOCK_HEADER) {
                return Err(window.short("last block's header", BLOCK_HEADER));
            }
            let head: [u8; BLOCK_HEADER] = window.head();
            let length = self.order.u32(&head, 4) as usize;
            match self.order.u32(&head, 0) {
                ENHANCED_PACKET | OLD_PACKET => {
                    return self.timed_packet(window, length, number).map(Item::Frame);
                }
                SIMPLE_PACKET => return self.simple_packet(window, length).map(Item::Frame),
                CALLS if calls && self.is_of_calls(window, length) => {
                    return self.calls(window, length).map(Item::Calls);
                }
                SECTION_HEADER => self.section(window)?,
                INTERFACE_DESCRIPTION => self.interface(window, length)?,
                INTERFACE_STATISTICS => self.statistics(window, length)?,
                _ => self.skip(window, length)?,
            }
        }
    }

    /// An enhanced packet block, or its predecessor, which differs in the interface's field alone.
    #[inline]
    fn timed_packet<'w, R: Read>(
        &mut self,
        window: &'w mut Window<R>,
        length: usize,
        number: u64,
    ) -> Result<Frame<'w>, End> {
        const DATA: usize = 28;
        let order = self.order;
        let block = self.block(window, length, DATA)?;
        let id = match order.u32(block, 0) {
            OLD_PACKET => u32::from(order.u16(block, 8)),
            _ => order.u32(block, 8),
        };
        let Some(interface) = self.interfaces.get(id as usize) else {
            return Err(no_interface(window.offset(), id));
        };
        let ticks = u64::from(order.u32(block, 12)) << 32 | u64::from(order.u32(block, 16));
        let time = interface.clock.time(ticks);
        let link = interface.link;
        let original_len = order.u32(block, 24);
        let end = DATA + order.u32(block, 20) as usize;
        if end > length - BLOCK_TRAILER {
            return Err(overlong(window.offset(), end - DATA, length));
        }
        let options = end.next_multiple_of(4)..length - BLOCK_TRAILER;
        if !options.is_empty() {
            self.comments.read(order, &block[options], Some(number));
        }
        self.time = time;
        let interface = self.interfaces_before.wrapping_add(id);
        Ok(Frame { time, link, original_len, interface, data: &window.take(length)[DATA..end] })
    }

    /// A simple packet block: it belongs to the section's first interface, whose snapshot length alone tells
    /// how much of the block is padding, and has no time.
    fn simple_packet<'w, R: Read>(
        &mut self,
        window: &'w mut Window<R>,
        length: usize,
    ) -> Result<Frame<'w>, End> {
        const DATA: usize = 12;
        let block = self.block(window, length, DATA)?;
        let original_len = self.order.u32(block, 8);
        let Some(interface) = self.interfaces.first() else {
            return Err(no_interface(window.offset(), 0));
        };
        let stored = original_len.min(interface.snaplen) as usize;
        let end = (DATA + stored).min(length - BLOCK_TRAILER);
        self.untimed += 1;
        let (link, interface) = (interface.link, self.interfaces_before);
        Ok(Frame { time: self.time, link, original_len, interface, data: &window.take(length)[DATA..end] })
    }

    /// A section header: from here on the byte order and the interfaces are others.
    #[cold]
    fn section<R: Read>(&mut self, window: &mut Window<R>) -> Result<(), End> {
        const OPTIONS: usize = 24;
        if !window.has(BLOCK_HEADER + 4) {
            return Err(window.short("last section header", OPTIONS + BLOCK_TRAILER));
        }
        let head: [u8; BLOCK_HEADER + 4] = window.head();
        let Some(order) = order_of(&head[BLOCK_HEADER..]) else {
            return Err(damaged(window, "a section header without a byte order"));
        };
        self.close_section();
        self.order = order;
        let length = order.u32(&head, 4) as usize;
        let block = self.block(window, length, OPTIONS)?;
        if order.u16(block, 12) != 1 {
            return Err(damaged(window, "a section of a pcapng version that nobody has defined"));
        }
        self.comments.read(order, &block[OPTIONS..length - BLOCK_TRAILER], None);
        window.take(length);
        Ok(())
    }

    fn close_section(&mut self) {
        self.dropped_before = self.dropped();
        self.interfaces_before = self.interfaces_before.wrapping_add(self.interfaces.len() as u32);
        self.interfaces.clear();
        self.sections = self.sections.wrapping_add(1);
    }

    #[cold]
    fn interface<R: Read>(&mut self, window: &mut Window<R>, length: usize) -> Result<(), End> {
        let block = self.block(window, length, interface::OPTIONS)?;
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(damaged(window, "more interfaces than any host has"));
        }
        let body = &block[..length - BLOCK_TRAILER];
        self.comments.read(self.order, &body[interface::OPTIONS..], None);
        self.interfaces.push(Interface::described_by(self.order, body));
        window.take(length);
        Ok(())
    }

    #[cold]
    fn statistics<R: Read>(&mut self, window: &mut Window<R>, length: usize) -> Result<(), End> {
        let block = self.block(window, length, interface::STATISTICS_OPTIONS)?;
        let id = self.order.u32(block, 8) as usize;
        if let Some(interface) = self.interfaces.get_mut(id) {
            interface.count_drops(self.order, &block[..length - BLOCK_TRAILER]);
        }
        window.take(length);
        Ok(())
    }

    /// Whether the next block, by its beginning, is one of ours: anybody may use its type.
    #[cold]
    fn is_of_calls<R: Read>(&self, window: &mut Window<R>, length: usize) -> bool {
        const MAGIC: usize = BLOCK_HEADER + calls::MAGIC.len();
        (MAGIC..=MAX_BLOCK).contains(&length)
            && window.has(MAGIC)
            && window.head::<MAGIC>().ends_with(&calls::MAGIC)
    }

    #[cold]
    fn calls<'w, R: Read>(&self, window: &'w mut Window<R>, length: usize) -> Result<Block<'w>, End> {
        self.block(window, length, BLOCK_HEADER)?;
        let body = &window.take(length)[BLOCK_HEADER..length - BLOCK_TRAILER];
        Ok(Block { section: self.sections, order: self.order, body })
    }

    /// Passes over a block of a type that has no say here, whatever its length.
    #[cold]
    fn skip<R: Read>(&mut self, window: &mut Window<R>, length: usize) -> Result<(), End> {
        check_length(window, length, BLOCK_HEADER)?;
        let at = window.offset();
        let complete = window.skip((length - BLOCK_TRAILER) as u64) && window.has(BLOCK_TRAILER);
        if !complete {
            let has = window.received() - at;
            return Err(window.ending(at, "last block", length as u64, has));
        }
        self.check_trailer(window.take(BLOCK_TRAILER), at, length)
    }

    /// The whole next block, which stays: `length` bytes, at least `body` of them before the trailer.
    #[inline]
    fn block<'w, R: Read>(
        &self,
        window: &'w mut Window<R>,
        length: usize,
        body: usize,
    ) -> Result<&'w [u8], End> {
        check_length(window, length, body)?;
        if length > MAX_BLOCK {
            return Err(overlong(window.offset(), length, MAX_BLOCK));
        }
        if !window.has(length) {
            return Err(window.short("last block", length));
        }
        let at = window.offset();
        let block = window.peek(length);
        self.check_trailer(&block[length - BLOCK_TRAILER..], at, length)?;
        Ok(block)
    }

    #[inline]
    fn check_trailer(&self, trailer: &[u8], at: u64, length: usize) -> Result<(), End> {
        match self.order.u32(trailer, 0) as usize {
            repeated if repeated == length => Ok(()),
            repeated => Err(End::Damaged {
                at,
                why: format!(
                    "a block that is {length} bytes long by its beginning and {repeated} by its end"
                ),
            }),
        }
    }

    pub(super) fn comments(&self) -> &[Comment] {
        self.comments.kept()
    }

    pub(super) fn dropped(&self) -> Option<u64> {
        let here = self.interfaces.iter().filter_map(|interface| interface.dropped);
        self.dropped_before.into_iter().chain(here).reduce(u64::saturating_add)
    }

    /// Adds what is to be known of the file to `notes`.
    pub(super) fn note(&self, notes: &mut Vec<String>) {
        if let Some(dropped) = self.dropped().filter(|dropped| *dropped > 0) {
            notes.push(format!(
                "The capturing host dropped {}: what is missing here may have been on the wire.",
                count(dropped, "packet")
            ));
        }
        if self.untimed > 0 {
            notes.push(format!(
                "Stored without a time (simple packet blocks): {}. Each counts as captured together with the \
                 packet before it, so waits between them cannot be seen.",
                count(self.untimed, "packet")
            ));
        }
        if self.comments.left_out() > 0 {
            notes.push(format!("Left out: {} in the file.", count(self.comments.left_out(), "more comment")));
        }
    }
}

fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[inline]
fn check_length<R: Read>(window: &Window<R>, length: usize, body: usize) -> Result<(), End> {
    if length < body + BLOCK_TRAILER || !length.is_multiple_of(4) {
        return Err(impossible(window.offset(), length));
    }
    Ok(())
}

#[cold]
fn impossible(at: u64, length: usize) -> End {
    End::Damaged { at, why: format!("a block of {length} bytes, which its type cannot have") }
}

#[cold]
fn overlong(at: u64, length: usize, limit: usize) -> End {
    End::Damaged { at, why: format!("a length of {length} bytes where {limit} is the most there can be") }
}

#[cold]
fn no_interface(at: u64, id: u32) -> End {
    End::Damaged { at, why: format!("a packet of interface {id}, which the section does not describe") }
}

#[cold]
fn damaged<R: Read>(window: &Window<R>, why: &str) -> End {
    End::Damaged { at: window.offset(), why: why.to_owned() }
}
