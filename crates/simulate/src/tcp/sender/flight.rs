//! What has been sent and not acknowledged: the retransmission queue and its scoreboard (RFC 6675 section 2).

use std::collections::VecDeque;
use std::ops::{AddAssign, Range, SubAssign};

/// One segment in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Its numbers: offsets in the stream; SYN and FIN take one each.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) push: bool,
    /// When it last left, in ns.
    pub(super) last_sent: u64,
    /// How often it was sent again.
    pub(super) repeats: u32,
    /// The peer has it (SACK).
    pub(super) sacked: bool,
    /// It is taken for lost.
    pub(super) lost: bool,
    /// It was sent again, and that copy is not taken for lost.
    pub(super) resent: bool,
}

impl Sent {
    /// Bytes of payload.
    pub(super) fn payload(&self) -> u32 {
        (self.end - self.start) as u32 - u32::from(self.syn) - u32::from(self.fin)
    }

    /// How often it counts as being in the network.
    fn copies(&self) -> u32 {
        if self.sacked { 0 } else { u32::from(!self.lost) + u32::from(self.resent) }
    }
}

/// A count of segments, and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) segments: u32,
    pub(super) bytes: u64,
}

impl Amount {
    fn of(count: u32, sent: &Sent) -> Self {
        Self { segments: count, bytes: u64::from(count) * u64::from(sent.payload()) }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.segments += other.segments;
        self.bytes += other.bytes;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        self.segments -= other.segments;
        self.bytes -= other.bytes;
    }
}

/// What an ACK has taken off the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    /// Segments that it acknowledged or SACKed for the first time.
    pub(super) segments: u32,
    /// Of these, acknowledged cumulatively (SACKed before or not).
    pub(super) cumulative: u32,
    /// Send times of those acknowledged cumulatively, and of those newly SACKed, that were sent once only (Karn).
    pub(super) acknowledged: Sampled,
    pub(super) sacked: Sampled,
    /// One of those acknowledged cumulatively was sent more than once.
    pub(super) repeated: bool,
    /// The latest segment sent of all of them: its send time, its end, whether it was a repeat (RFC 8985 6.2).
    pub(super) latest: Option<(u64, u64, bool)>,
    /// One of them was sent before, and never again after, something that had been SACKed: reordering.
    pub(super) reordered: bool,
}

/// The oldest and the latest send time of some segments, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled {
    pub(super) oldest: Option<u64>,
    pub(super) latest: Option<u64>,
}

impl Sampled {
    fn note(&mut self, sent: u64) {
        self.oldest = Some(self.oldest.map_or(sent, |oldest| oldest.min(sent)));
        self.latest = self.latest.max(Some(sent));
    }
}

/// The segments in flight, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Flight {
    segments: VecDeque<Sent>,
    in_network: Amount,
    sacked: Amount,
    lost: Amount,
    resent: Amount,
    /// End of the highest SACKed segment.
    highest_sacked: u64,
}

impl Flight {
    pub(super) fn push(&mut self, sent: Sent) {
        self.count(&sent);
        self.segments.push_back(sent);
    }

    pub(super) fn len(&self) -> u32 {
        self.segments.len() as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Sent> {
        self.segments.get(index)
    }

    pub(super) fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }

    /// Segments believed to be in the network (`pipe`, RFC 6675 section 4).
    pub(super) fn in_network(&self) -> Amount {
        self.in_network
    }

    pub(super) fn sacked(&self) -> u32 {
        self.sacked.segments
    }

    pub(super) fn lost(&self) -> u32 {
        self.lost.segments
    }

    pub(super) fn resent(&self) -> u32 {
        self.resent.segments
    }

    pub(super) fn highest_sacked(&self) -> u64 {
        self.highest_sacked
    }

    /// Changes a segment, and the counts with it.
    pub(super) fn change(&mut self, index: usize, change: impl FnOnce(&mut Sent)) {
        let Some(mut sent) = self.segments.get(index).copied() else { return };
        self.uncount(&sent);
        change(&mut sent);
        self.count(&sent);
        self.segments[index] = sent;
    }

    /// Changes all segments that are not SACKed.
    pub(super) fn change_all(&mut self, mut change: impl FnMut(&mut Sent)) {
        for index in 0..self.segments.len() {
            if !self.segments[index].sacked {
                self.change(index, &mut change);
            }
        }
    }

    /// Takes off what lies before `una`.
    pub(super) fn acknowledge(&mut self, una: u64, delivered: &mut Delivered) {
        while let Some(sent) = self.segments.front().copied().filter(|sent| sent.end <= una) {
            self.uncount(&sent);
            self.segments.pop_front();
            delivered.cumulative += 1;
            delivered.repeated |= sent.repeats > 0;
            if !sent.sacked {
                self.note(&sent, delivered);
                if sent.repeats == 0 {
                    delivered.acknowledged.note(sent.last_sent);
                }
            }
        }
        // An ACK in the middle of a segment: the rest of it is still in flight.
        if self.segments.front().is_some_and(|sent| sent.start < una) {
            self.change(0, |sent| {
                sent.start = una;
                sent.syn = false;
            });
        }
    }

    /// Marks what lies wholly within a SACK block.
    pub(super) fn sack(&mut self, block: Range<u64>, delivered: &mut Delivered) {
        let first = self.segments.partition_point(|sent| sent.start < block.start);
        for index in first..self.segments.len() {
            let sent = self.segments[index];
            if sent.end > block.end {
                break;
            }
            if !sent.sacked {
                self.note(&sent, delivered);
                if sent.repeats == 0 {
                    delivered.sacked.note(sent.last_sent);
                }
                self.change(index, |sent| {
                    sent.sacked = true;
                    sent.lost = false;
                    sent.resent = false;
                });
                self.highest_sacked = self.highest_sacked.max(sent.end);
            }
        }
    }

    /// Whether the peer has SACKed what it now says to miss (RFC 2018 section 8).
    pub(super) fn has_reneged(&self) -> bool {
        self.segments.front().is_some_and(|first| first.sacked)
    }

    /// Forgets what the peer has said to have.
    pub(super) fn forget_sacks(&mut self) {
        for index in 0..self.segments.len() {
            self.change(index, |sent| sent.sacked = false);
        }
        self.highest_sacked = 0;
    }

    /// Splits the segment at `index` after `len` bytes, where it is longer (the MSS has shrunk, or only so much fits
    /// the peer's window).
    pub(super) fn split(&mut self, index: usize, len: u32) {
        let Some(whole) = self.segments.get(index).copied() else { return };
        if whole.syn || whole.payload() <= len {
            return;
        }
        let middle = whole.start + u64::from(len);
        self.change(index, |sent| {
            sent.end = middle;
            sent.fin = false;
            sent.push = false;
        });
        let rest = Sent { start: middle, ..whole };
        self.count(&rest);
        self.segments.insert(index + 1, rest);
    }

    fn note(&self, sent: &Sent, delivered: &mut Delivered) {
        delivered.segments += 1;
        delivered.reordered |= sent.repeats == 0 && sent.end < self.highest_sacked;
        let seen = (sent.last_sent, sent.end, sent.repeats > 0);
        delivered.latest = Some(delivered.latest.map_or(seen, |latest| latest.max(seen)));
    }

    fn count(&mut self, sent: &Sent) {
        self.in_network += Amount::of(sent.copies(), sent);
        self.sacked += Amount::of(u32::from(sent.sacked), sent);
        self.lost += Amount::of(u32::from(sent.lost), sent);
        self.resent += Amount::of(u32::from(sent.resent), sent);
    }

    fn uncount(&mut self, sent: &Sent) {
        self.in_network -= Amount::of(sent.copies(), sent);
        self.sacked -= Amount::of(u32::from(sent.sacked), sent);
        self.lost -= Amount::of(u32::from(sent.lost), sent);
        self.resent -= Amount::of(u32::from(sent.resent), sent);
    }
}
