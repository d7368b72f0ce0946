//! tcpdump's relative sequence numbers, back to absolute ones.
//!
//! Without `-S`, tcpdump (print-tcp.c) prints the first segment of a conversation that carries an ACK, and
//! every SYN, with absolute numbers; it keeps that segment's `seq` and its `ack - 1` as the two directions'
//! bases, and prints all later numbers relative to them. Segments without ACK (a SYN, a bare RST) are always
//! absolute. SACK blocks are relative from the first segment on.
//!
//! Whether a text is relative is not written in it. The rule, per conversation: the first segment after the
//! bases are known decides. If its numbers lie nearer to the bases than to zero they are absolute, else
//! relative, and so are all later ones (`-S` holds for a whole run). A text that was cut out of the middle of
//! a run has no absolute number at all; its numbers are near the ones it began with, count as absolute,
//! and so stay as printed.

use std::collections::HashMap;

use super::tcp::Segment;
use crate::packet::{SackBlocks, Socket, Tcp, TcpFlags};

/// Conversations remembered per capture, about 100 bytes each. Nobody pastes more; with more, numbering
/// starts afresh and a note says so.
pub(super) const MAX_FLOWS: usize = 100_000;

/// A bare RST carries an absolute number even where a text that begins mid-run has only relative ones.
/// Farther than this from what was sent (16 MiB), it cannot be told where it belongs.
const MAX_RESET_DISTANCE: u32 = 1 << 24;

/// One direction of a conversation.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// The absolute number tcpdump subtracts in this direction.
    base: Option<u32>,
    /// The initial sequence number, if its SYN was printed.
    initial: Option<u32>,
    /// The next new byte's absolute number, by what was sent or acknowledged.
    next: Option<u32>,
}

impl Direction {
    /// Raises `next` to `end`.
    fn reached(&mut self, end: u32) {
        let is_new = self.next.is_none_or(|next| end.wrapping_sub(next) < 1 << 31);
        if is_new {
            self.next = Some(end);
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    directions: [Direction; 2],
    /// Set by the first segment that could tell.
    is_relative: Option<bool>,
}

/// A segment as the look-ahead sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printed {
    pub(super) source: Socket,
    pub(super) destination: Socket,
    pub(super) segment: Segment,
}

/// The conversations of one capture.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    flows: HashMap<(Socket, Socket), Flow>,
    /// How often numbering had to start afresh.
    pub(super) overflows: u32,
}

impl Numbers {
    /// The segment with absolute numbers. `ahead` are the segments printed after it: the first pure ACK of a
    /// direction prints no sequence number, but what follows tells it.
    pub(super) fn resolve(&mut self, printed: &Printed, ahead: impl Iterator<Item = Printed>) -> Tcp {
        let ends = (printed.source, printed.destination);
        let me = usize::from(ends.0 > ends.1);
        let key = if me == 0 { ends } else { (ends.1, ends.0) };
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
            self.flows.clear();
            self.overflows += 1;
        }
        let flow = self.flows.entry(key).or_default();
        let segment = &printed.segment;
        let relative = !flow.begin(me, segment) && flow.is_relative(me, segment);
        let seq = match segment.seq {
            Some(seq) => flow.sequence(me, segment, seq, relative),
            None => flow.directions[me].next.unwrap_or_else(|| next_printed(printed, ahead)),
        };
        let ack = if relative { flow.absolute(1 - me, segment.ack) } else { segment.ack };
        let mut options = segment.listed.options;
        options.sack = flow.sack(1 - me, options.sack, ack);
        flow.advance(me, segment, seq, ack);
        Tcp {
            seq,
            ack,
            payload_len: segment.payload_len,
            window: segment.window,
            flags: segment.flags,
            options,
            message: None,
        }
    }
}

impl Flow {
    /// Sets the bases as tcpdump does, from a SYN or the first ACK. Whether this segment was printed with
    /// absolute numbers because it did.
    fn begin(&mut self, me: usize, segment: &Segment) -> bool {
        let has_ack = segment.flags.has(TcpFlags::ACK);
        if segment.flags.has(TcpFlags::SYN) {
            // A SYN with another number is another connection between the same ports.
            if self.directions[me].next.is_some() && self.directions[me].initial != segment.seq {
                *self = Self::default();
            }
            self.directions[me].initial = segment.seq;
            if has_ack {
                self.directions[me].base = segment.seq;
                self.directions[1 - me].base = Some(segment.ack.wrapping_sub(1));
            }
            return true;
        }
        let is_first = has_ack && self.directions.iter().all(|direction| direction.base.is_none());
        !has_ack || is_first && self.begin_without_syn_ack(me, segment)
    }

    /// The first ACK is absolute, unless the text shows the SYN but not the SYN-ACK that tcpdump saw.
    fn begin_without_syn_ack(&mut self, me: usize, segment: &Segment) -> bool {
        let initial = self.directions[me].initial;
        let follows_a_hidden_syn_ack =
            initial.filter(|&initial| segment.ack == 1 || is_nearer_zero(segment.seq, initial));
        if follows_a_hidden_syn_ack.is_some() {
            self.directions[me].base = initial;
            self.is_relative = Some(true);
            return false;
        }
        self.directions[me].base = segment.seq.or(self.directions[me].next);
        self.directions[1 - me].base = Some(segment.ack.wrapping_sub(1));
        true
    }

    /// Whether the numbers of a segment behind the bases are relative; the first that can tell decides.
    fn is_relative(&mut self, me: usize, segment: &Segment) -> bool {
        if let Some(known) = self.is_relative {
            return known;
        }
        let numbers =
            [(segment.seq, self.directions[me].base), (Some(segment.ack), self.directions[1 - me].base)];
        let (mut to_base, mut to_zero) = (0_u64, 0_u64);
        for (number, base) in numbers.into_iter().filter_map(|(number, base)| number.zip(base)) {
            to_base += u64::from(distance(number, base));
            to_zero += u64::from(distance(number, 0));
        }
        if to_base + to_zero > 0 {
            self.is_relative = Some(to_zero < to_base);
        }
        to_zero < to_base
    }

    fn absolute(&self, direction: usize, number: u32) -> u32 {
        number.wrapping_add(self.directions[direction].base.unwrap_or(0))
    }

    fn sequence(&self, me: usize, segment: &Segment, printed: u32, relative: bool) -> u32 {
        if relative {
            return self.absolute(me, printed);
        }
        let is_bare = !segment.flags.has(TcpFlags::ACK) && !segment.flags.has(TcpFlags::SYN);
        match self.directions[me].next {
            Some(next) if is_bare && distance(printed, next) > MAX_RESET_DISTANCE => next,
            _ => printed,
        }
    }

    /// SACK blocks of the segment that sets the bases are relative although its other numbers are not; there,
    /// the reading that lies nearer to its ACK counts.
    fn sack(&self, direction: usize, printed: SackBlocks, ack: u32) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for &(left, right) in printed.as_slice() {
            let moved = self.absolute(direction, left);
            if self.is_relative.unwrap_or_else(|| distance(moved, ack) < distance(left, ack)) {
                blocks.push(moved, self.absolute(direction, right));
            } else {
                blocks.push(left, right);
            }
        }
        blocks
    }

    fn advance(&mut self, me: usize, segment: &Segment, seq: u32, ack: u32) {
        // SYN and FIN take one number each (RFC 9293 section 3.4).
        let controls =
            u32::from(segment.flags.has(TcpFlags::SYN)) + u32::from(segment.flags.has(TcpFlags::FIN));
        self.directions[me].reached(seq.wrapping_add(segment.payload_len).wrapping_add(controls));
        if segment.flags.has(TcpFlags::ACK) {
            self.directions[1 - me].reached(ack);
        }
    }
}

/// The sequence number of a pure ACK by the segments after it: the next number its sender prints, or the
/// next one its peer acknowledges. As printed: nothing absolute is known of that direction.
fn next_printed(pure_ack: &Printed, ahead: impl Iterator<Item = Printed>) -> u32 {
    for later in ahead {
        let is_mine = (later.source, later.destination) == (pure_ack.source, pure_ack.destination);
        let is_peers = (later.destination, later.source) == (pure_ack.source, pure_ack.destination);
        if !is_mine && !is_peers {
            continue;
        }
        if later.segment.flags.has(TcpFlags::SYN) || !later.segment.flags.has(TcpFlags::ACK) {
            break;
        }
        match later.segment.seq {
            Some(seq) if is_mine => return seq,
            _ if is_peers => return later.segment.ack,
            _ => {}
        }
    }
    0
}

/// How far apart two sequence numbers are, the shorter way around.
fn distance(a: u32, b: u32) -> u32 {
    a.wrapping_sub(b).cast_signed().unsigned_abs()
}

fn is_nearer_zero(number: Option<u32>, base: u32) -> bool {
    number.is_some_and(|number| distance(number, 0) < distance(number, base))
}
