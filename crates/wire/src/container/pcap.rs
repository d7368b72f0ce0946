//! pcap, the classic format: a file header of 24 bytes, then records.
//! <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-05.html>

use std::io::Read;

use super::MAX_FRAME;
use super::bytes::Order;
use super::end::End;
use super::frame::{Frame, LinkType};
use super::window::Window;

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Kuznetsov's records also carry the interface, the protocol and the packet type, which the frame repeats.
const MODIFIED_RECORD_HEADER: usize = 24;

/// The link type's part of the header's last field; the rest tells about the frame check sequence.
const LINK_TYPE_MASK: u32 = 0xffff;

/// What a magic number says of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    order: Order,
    /// Nanoseconds in one unit of a timestamp's fraction.
    unit: u32,
    record_header: usize,
}

impl Variant {
    /// The variant that begins with these bytes, if it is pcap.
    pub(super) fn of(magic: [u8; 4]) -> Option<Self> {
        Self::in_order(magic, Order::Little).or_else(|| Self::in_order(magic, Order::Big))
    }

    fn in_order(magic: [u8; 4], order: Order) -> Option<Self> {
        let (unit, record_header) = match order.u32(&magic, 0) {
            0xa1b2_c3d4 => (1_000, RECORD_HEADER),
            0xa1b2_3c4d => (1, RECORD_HEADER),
            0xa1b2_cd34 => (1_000, MODIFIED_RECORD_HEADER),
            _ => return None,
        };
        Some(Self { order, unit, record_header })
    }
}

/// A pcap file being read.
#[derive(Debug)]
pub(super) struct Pcap {
    variant: Variant,
    /// None until the file header was read.
    header: Option<Header>,
}

/// What a pcapng interface has to say for the frames of a pcap file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preamble {
    pub(super) link: u16,
    pub(super) snaplen: u32,
    /// Nanoseconds in one unit of a timestamp.
    pub(super) unit: u32,
    /// That unit as `if_tsresol` has it.
    pub(super) resolution: u8,
}

#[derive(Clone, Copy, Debug)]
struct Header {
    link: LinkType,
    snaplen: u32,
    /// Whether the file may be from before version 2.4, when some writers had the two lengths the other way round.
    lengths_may_be_swapped: bool,
}

impl Pcap {
    pub(super) fn new(variant: Variant) -> Self {
        Self { variant, header: None }
    }

    /// The next record's frame.
    #[inline]
    pub(super) fn next<'w, R: Read>(&mut self, window: &'w mut Window<R>) -> Result<Frame<'w>, End> {
        let header = match self.header {
            Some(header) => header,
            None => self.file_header(window)?,
        };
        let Variant { order, unit, record_header } = self.variant;
        if !window.has(record_header) {
            return Err(window.short("last record's header", record_header));
        }
        let head: [u8; RECORD_HEADER] = window.head();
        let (seconds, fraction) = (order.u32(&head, 0), order.u32(&head, 4));
        let (mut stored, mut original) = (order.u32(&head, 8), order.u32(&head, 12));
        if stored > original && header.lengths_may_be_swapped {
            (stored, original) = (original, stored);
        }
        if stored as usize > MAX_FRAME || head == [0; RECORD_HEADER] {
            return Err(damaged(window.offset(), stored));
        }
        let whole = record_header + stored as usize;
        if !window.has(whole) {
            return Err(window.short("last record", whole));
        }
        Ok(Frame {
            // At most 2^32 s and 2^32 us, which is below MAX_TIME.
            time: i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * i64::from(unit),
            link: header.link,
            original_len: original,
            interface: 0,
            data: &window.take(whole)[record_header..],
        })
    }

    /// Reads the file header before the first frame.
    pub(super) fn preamble<R: Read>(&mut self, window: &mut Window<R>) -> Result<Preamble, End> {
        let Header { link, snaplen, .. } = self.file_header(window)?;
        let unit = self.variant.unit;
        let resolution = if unit == 1 { 9 } else { 6 };
        Ok(Preamble { link: link.0 as u16, snaplen, unit, resolution })
    }

    #[cold]
    fn file_header<R: Read>(&mut self, window: &mut Window<R>) -> Result<Header, End> {
        if !window.has(FILE_HEADER) {
            return Err(window.short("file header", FILE_HEADER));
        }
        let order = self.variant.order;
        let bytes: [u8; FILE_HEADER] = window.head();
        let version = (order.u16(&bytes, 4), order.u16(&bytes, 6));
        let header = Header {
            link: LinkType(order.u32(&bytes, 20) & LINK_TYPE_MASK),
            snaplen: order.u32(&bytes, 16),
            lengths_may_be_swapped: version < (2, 4),
        };
        window.take(FILE_HEADER);
        self.header = Some(header);
        Ok(header)
    }
}

#[cold]
fn damaged(at: u64, stored: u32) -> End {
    let why = if stored == 0 {
        // A file system that lost power while the file grew leaves such a tail.
        "zeros in place of a record's header".to_owned()
    } else {
        format!("a record of {stored} bytes, and no frame has more than {MAX_FRAME}")
    };
    End::Damaged { at, why }
}
