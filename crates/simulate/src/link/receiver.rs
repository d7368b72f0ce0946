//! What a receiver has got and acknowledged, as far as the link can tell: it delivers the data and sees the ACKs.

use std::collections::VecDeque;

use super::segment::Tcp;

/// The MSS of a connection whose SYNs were not seen (RFC 9293 3.7.1).
const DEFAULT_MSS: u32 = 536;

/// Deliveries remembered until they are acknowledged. Linux acknowledges within a few segments; beyond that many,
/// neighbours are taken together.
const MOST_DELIVERIES: usize = 64;

/// Separate stretches of out-of-order data remembered; the ACKs put right what is forgotten.
const MOST_STRETCHES: usize = 64;

/// One end of a connection, as receiver.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    mss: Option<u32>,
    /// The edge: the sequence number up to which everything has been delivered.
    next: Option<u32>,
    /// Out-of-order data: beginning and end.
    stretches: Vec<(u32, u32)>,
    /// What has been delivered in order and not acknowledged.
    deliveries: VecDeque<Delivered>,
    /// What ACKs have acknowledged since the last packet that carried one past the link.
    covered: Delivered,
    /// The highest acknowledgement number seen.
    acked: Option<u32>,
    /// The ACK that is held.
    pub(super) held: Option<Held>,
}

/// An ACK that is held: where it is, and what it acknowledges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) slot: u64,
    pub(super) ack: u32,
}

/// Data that was delivered in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    /// The edge after it.
    edge: u32,
    /// Full-sized segments in it.
    pub(super) full: u32,
    /// Segments that came while out-of-order data was there, so that they filled a hole or a part of it.
    pub(super) fills: u32,
    /// Whether it has a FIN.
    pub(super) fin: bool,
}

impl Delivered {
    fn add(&mut self, other: Self) {
        self.edge = other.edge;
        self.full = self.full.saturating_add(other.full);
        self.fills = self.fills.saturating_add(other.fills);
        self.fin |= other.fin;
    }
}

/// What a pure ACK says.
#[derive(Clone, Copy, Debug)]
pub(super) enum News {
    /// It acknowledges nothing more than an ACK before it: a duplicate, or a window update.
    Nothing,
    /// It acknowledges this more, and with what was held back before it all in `since_passed`.
    Data { newly: Delivered, since_passed: Delivered },
    /// It acknowledges what the link has not seen delivered: a SYN, or the middle of a segment.
    Unknown,
}

impl Receiver {
    /// A segment has been delivered to it.
    pub(super) fn take(&mut self, tcp: &Tcp) {
        if tcp.syn {
            self.open(tcp);
            self.next = Some(tcp.seq.wrapping_add(1));
        }
        let begin = tcp.seq.wrapping_add(u32::from(tcp.syn));
        let end = begin.wrapping_add(tcp.payload).wrapping_add(u32::from(tcp.fin));
        let next = *self.next.get_or_insert(begin);
        if !after(end, next) {
            return;
        }
        if after(begin, next) {
            return self.set_aside(begin, end);
        }
        let fills = u32::from(!self.stretches.is_empty());
        let edge = self.advance(end);
        let full = tcp.payload / self.full_size(tcp);
        self.remember(Delivered { edge, full, fills, fin: tcp.fin });
    }

    /// A SYN, in either direction: without ACK, it begins a new connection in the old one's place.
    fn open(&mut self, tcp: &Tcp) {
        if !tcp.ack_flag {
            *self = Self { held: self.held, ..Self::default() };
        }
        self.learn_mss(tcp);
    }

    /// The MSS is the lesser of what both ends announce; options come off it (RFC 6691).
    fn learn_mss(&mut self, tcp: &Tcp) {
        if let Some(mss) = tcp.mss {
            let mss = u32::from(mss);
            self.mss = Some(self.mss.map_or(mss, |other| other.min(mss)));
        }
    }

    fn full_size(&self, tcp: &Tcp) -> u32 {
        self.mss.unwrap_or(DEFAULT_MSS).saturating_sub(tcp.options.into()).max(1)
    }

    fn set_aside(&mut self, begin: u32, end: u32) {
        if let Some(stretch) = self.stretches.iter_mut().find(|stretch| stretch.1 == begin) {
            stretch.1 = end;
        } else if self.stretches.len() < MOST_STRETCHES {
            self.stretches.push((begin, end));
        }
    }

    /// Moves the edge to `end` and over the out-of-order data that joins it.
    fn advance(&mut self, end: u32) -> u32 {
        let mut edge = end;
        while let Some(at) = self.stretches.iter().position(|(begin, _)| !after(*begin, edge)) {
            let (_, end) = self.stretches.swap_remove(at);
            if after(end, edge) {
                edge = end;
            }
        }
        self.next = Some(edge);
        edge
    }

    fn remember(&mut self, delivered: Delivered) {
        if self.deliveries.len() == MOST_DELIVERIES {
            if let Some(last) = self.deliveries.back_mut() {
                last.add(delivered);
            }
        } else {
            self.deliveries.push_back(delivered);
        }
    }

    /// It has sent a segment.
    pub(super) fn send(&mut self, tcp: &Tcp) -> News {
        if tcp.syn {
            self.open(tcp);
        }
        if !tcp.ack_flag {
            return News::Nothing;
        }
        let known = self.acked.is_some();
        let acked = *self.acked.get_or_insert(tcp.ack);
        if known && !after(tcp.ack, acked) {
            return News::Nothing;
        }
        self.acked = Some(tcp.ack);
        let mut newly = None;
        while let Some(&delivered) = self.deliveries.front() {
            if after(delivered.edge, tcp.ack) {
                break;
            }
            self.deliveries.pop_front();
            newly.get_or_insert(Delivered::default()).add(delivered);
        }
        if self.next.is_some_and(|next| after(tcp.ack, next)) {
            self.advance(tcp.ack);
        }
        let Some(newly) = newly else { return News::Unknown };
        self.covered.add(newly);
        News::Data { newly, since_passed: self.covered }
    }

    /// An acknowledgement of everything that [`Receiver::send`] has counted has passed the link.
    pub(super) fn passed(&mut self) {
        self.covered = Delivered::default();
    }
}

/// Whether a sequence number comes after another (RFC 9293 3.4).
pub(super) fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}
