//! What is under way in each direction, and what was lost of it.

use std::collections::HashMap;
use std::ops::Range;

use crate::tcp::{Endpoint, State};
use crate::world::Seen;
use tcpwhy_wire::TcpFlags;

/// One direction: what its sender has sent.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// Packets under way, by number.
    flying: HashMap<u64, Flying>,
    /// Of these, with data.
    flying_data: u32,
    /// Stream offsets that were lost and that the receiver does not have.
    lost: Vec<Range<u64>>,
    /// The end of the furthest data that has arrived.
    highest: u64,
}

#[derive(Clone, Debug)]
struct Flying {
    sent: u64,
    /// Stream offsets, SYN and FIN counted.
    range: Range<u64>,
}

impl Way {
    /// A packet left, of a sender whose SYN had this sequence number.
    pub(super) fn sent(&mut self, seen: &Seen, initial: u32) {
        let len = seen.segment.sequence_len();
        // A probe of a closed window repeats an old number, or is not meant to be kept.
        let start = u64::from(seen.segment.tcp.seq.wrapping_sub(initial));
        self.flying.insert(seen.number, Flying { sent: seen.time, range: start..start + len });
        self.flying_data += u32::from(len > 0);
    }

    /// A packet arrived. Returns when it was sent and whether it had data, unless it came before.
    pub(super) fn arrived(&mut self, number: u64) -> Option<(u64, bool)> {
        let flying = self.forget(number)?;
        self.highest = self.highest.max(flying.range.end);
        Some((flying.sent, !flying.range.is_empty()))
    }

    /// A packet was lost.
    pub(super) fn dropped(&mut self, number: u64) {
        if let Some(flying) = self.forget(number)
            && !flying.range.is_empty()
        {
            self.lost.push(flying.range);
        }
    }

    fn forget(&mut self, number: u64) -> Option<Flying> {
        let flying = self.flying.remove(&number)?;
        self.flying_data -= u32::from(!flying.range.is_empty());
        Some(flying)
    }

    /// What the receiver has is not lost any more.
    pub(super) fn settle(&mut self, receiver: &Endpoint) {
        let has = received(receiver);
        self.lost.retain(|range| range.end > has);
    }

    /// Whether the receiver lacks something that was lost.
    pub(super) fn lacks(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether something has arrived behind what is missing, so that the receiver has told.
    pub(super) fn is_told(&self, receiver: &Endpoint) -> bool {
        self.highest > received(receiver)
    }

    /// Whether anything, or any data, is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.flying.is_empty()
    }

    /// Whether any data is under way.
    pub(super) fn has_data(&self) -> bool {
        self.flying_data > 0
    }
}

/// Up to which offset the receiver has everything.
fn received(receiver: &Endpoint) -> u64 {
    match receiver.state() {
        State::Listen | State::SynSent => 0,
        _ if receiver.is_at_end() => u64::MAX,
        _ => receiver.info().received + 1,
    }
}

/// Whether the packet does not only acknowledge.
pub(super) fn has_data(seen: &Seen) -> bool {
    seen.segment.tcp.payload_len > 0 || seen.segment.has(TcpFlags::FIN)
}
