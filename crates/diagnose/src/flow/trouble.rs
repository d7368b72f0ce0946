//! What is known of a direction that has lost something: kept apart, since most never do.

use tcpwhy_wire::Tcp;

use super::fact::Wait;
use super::half::NEVER;
use super::holes::Holes;
use super::mending::Rounds;
use super::sequence;

/// Duplicate ACKs that trigger fast retransmit (RFC 5681 section 3.2).
const DUP_ACKS: u8 = 3;

/// State of a direction that has lost something, or seems to. Times are ns; sequence numbers are unwrapped.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    /// What has to be ACKed for the present repair to be over, 0 where there is none; and since when.
    pub(crate) recover: u64,
    pub(crate) recover_from: i64,
    pub(crate) recover_number: u64,
    /// Where a timer began the repair: the silence before it, as since when and the last packet; `NEVER`
    /// where duplicate ACKs did. And what the last timer sent: when, and which packet.
    pub(crate) quiet_since: i64,
    pub(crate) quiet_number: u64,
    pub(crate) quiet_until: i64,
    pub(crate) quiet_end: u64,
    /// What was in flight, up to here, when data left that may have been a tail-loss probe; 0 where none did. And
    /// since when, and since which packet, the sender had been silent; when that data left, in which packet.
    pub(crate) probed: u64,
    pub(crate) probed_since: i64,
    pub(crate) probed_number: u64,
    pub(crate) probed_at: i64,
    pub(crate) probe_number: u64,
    /// The last retransmission: when, and which packet.
    pub(crate) repaired_at: i64,
    pub(crate) repaired_number: u64,
    /// When the last repair was over; `NEVER` where there was none.
    pub(crate) recovered_at: i64,
    /// What the present repair has sent again, or the last one: from its lowest byte to its highest.
    pub(crate) again: (u64, u64),
    /// The timestamp of the first of it (RFC 7323), as long as no ACK has come that tells whether it was needed.
    pub(crate) again_stamp: Option<u32>,
    /// The receiver has said that it had what was sent again.
    pub(crate) was_needless: bool,
    /// Nothing told of the loss but a timer: what was lost had nothing behind it.
    pub(crate) tail: Option<Tail>,
    /// Tails that were lost, by what repaired them.
    pub(crate) tails: [u16; 3],
    /// What had been ACKed when the present repair began.
    pub(crate) acked_before: u64,
    /// How far what was sent last had travelled when the silence before the present repair began, ns of the round trip.
    pub(crate) travelled: i64,
    /// A retransmission timer has expired in the present repair.
    pub(crate) is_timed: bool,
    /// The receiver's window, while it lets nothing through.
    pub(crate) shut: Shut,
    /// An ACK of the last repair that came late, until something leaves that had been waiting for it.
    pub(crate) late_ack: Option<Wait>,
    /// Retransmissions of the present repair, or of the last one: each that was not needed draws a duplicate ACK of its
    /// own (RFC 5681 section 4.2), which may come when the repair is over.
    pub(crate) copies: u16,
    /// How the present repair goes.
    pub(crate) rounds: Rounds,
    /// Bytes the capture has not shown yet.
    pub(crate) holes: Holes,
    /// Bytes that were ACKed and never captured.
    pub(crate) unseen: u64,
    /// Bytes that were missed before an ACK of captured data had come: they may have been sent before the capture began.
    pub(crate) early: u64,
    /// The present run of duplicate ACKs: since when; and the last ACK of any kind.
    pub(crate) dup_since: i64,
    pub(crate) heard_at: i64,
    /// How far apart duplicate ACKs came in their longest run, which is what the path takes for one segment; and how
    /// many they were.
    pub(crate) spacing: i64,
    pub(crate) spacing_of: u8,
    /// Segments that the receiver has beyond its ACK, as far as duplicate ACKs tell.
    pub(crate) beyond: u16,
    /// Up to where the receiver has something, as far as its SACKs tell; 0 where there were none.
    pub(crate) sacked: u64,
    /// Segments sent again.
    pub(crate) retransmitted: u32,
    /// Those that had arrived before.
    pub(crate) needless: u32,
    /// Repairs that the capture does not show: bytes that were missing for as long as a timer takes.
    pub(crate) unseen_repairs: u16,
    /// Those of them that are counted and whose D-SACK may still come.
    pub(crate) forestalled: u32,
    /// ACKs of bytes that the capture never showed, as many as there are; and of the first which packet it is, and when: 0
    /// where there is none.
    pub(crate) gaps: u32,
    pub(crate) gap_number: u64,
    pub(crate) gap_at: i64,
    /// The SYN that was sent again.
    pub(crate) syn: Syn,
}

/// A window that lets nothing through. Times are ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shut {
    /// When the receiver first said that it was zero, since data left last; `NEVER` where it has not. And in which packet.
    pub(crate) at: i64,
    pub(crate) number: u64,
    /// Probes of it (RFC 9293 section 3.8.6.1): its sender has something to send.
    pub(crate) probes: u16,
    /// Up to where the sender's persist timer has filled a window smaller than a segment; 0 where it has not.
    pub(crate) pressed: u64,
}

impl Default for Shut {
    fn default() -> Self {
        Self { at: NEVER, number: 0, probes: 0, pressed: 0 }
    }
}

/// What repaired a lost tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// A tail-loss probe (RFC 8985 section 7).
    Probe,
    /// The retransmission timer (RFC 6298).
    Timer,
    /// One of them.
    Either,
}

/// The timestamps (RFC 7323) of a SYN's retransmissions, and of the one that was answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Syn {
    /// Of the first retransmission and of the last.
    stamps: Option<(u32, u32)>,
    /// What the answer echoed.
    pub(crate) echo: Option<u32>,
    /// How often it was sent again.
    pub(crate) count: u16,
    /// An answer had passed the capture before.
    pub(crate) was_answered: bool,
}

impl Syn {
    /// The SYN is sent again, with this timestamp.
    pub(crate) fn sent_again(&mut self, stamp: Option<u32>) {
        self.count = self.count.saturating_add(1);
        self.stamps = stamp.map(|last| (self.stamps.map_or(last, |stamps| stamps.0), last));
    }

    /// Which SYN the answer answers, where timestamps tell.
    pub(crate) fn answered(&self) -> Option<Answered> {
        let (echo, (first, last)) = self.echo.zip(self.stamps)?;
        let is_before = |stamp: u32| (echo.wrapping_sub(stamp) as i32) < 0;
        match () {
            () if is_before(first) => Some(Answered::First),
            () if echo == last => Some(Answered::Last),
            () => None,
        }
    }
}

/// Which SYN was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The first: it had arrived.
    First,
    /// The last: those before left no trace at the server.
    Last,
}

impl Default for Trouble {
    fn default() -> Self {
        Self {
            recover: 0,
            recover_from: 0,
            recover_number: 0,
            quiet_since: NEVER,
            quiet_number: 0,
            quiet_until: NEVER,
            quiet_end: 0,
            probed: 0,
            probed_since: NEVER,
            probed_number: 0,
            probed_at: NEVER,
            probe_number: 0,
            repaired_at: NEVER,
            repaired_number: 0,
            recovered_at: NEVER,
            again: (0, 0),
            again_stamp: None,
            was_needless: false,
            tail: None,
            acked_before: 0,
            travelled: 0,
            tails: [0; 3],
            is_timed: false,
            shut: Shut::default(),
            late_ack: None,
            copies: 0,
            rounds: Rounds::default(),
            holes: Holes::default(),
            unseen: 0,
            early: 0,
            dup_since: 0,
            heard_at: NEVER,
            spacing: 0,
            spacing_of: 0,
            beyond: 0,
            sacked: 0,
            retransmitted: 0,
            needless: 0,
            unseen_repairs: 0,
            forestalled: 0,
            gaps: 0,
            gap_number: 0,
            gap_at: 0,
            syn: Syn::default(),
        }
    }
}

impl Trouble {
    /// A repair of everything up to `next` begins with packet `number`: with the first of the duplicate ACKs, if
    /// there were as many as make a sender retransmit.
    pub(crate) fn begin_repair(&mut self, next: u64, number: u64, now: i64, dup_acks: u8) {
        (self.recover, self.recover_number) = (next, number);
        self.recover_from = if dup_acks >= DUP_ACKS { self.dup_since } else { now };
        (self.quiet_since, self.was_needless, self.tail) = (NEVER, false, None);
        (self.rounds, self.forestalled, self.is_timed) = (Rounds::default(), 0, false);
        (self.copies, self.travelled) = (0, 0);
    }

    /// Whether the receiver has told of something beyond its last ACK, `acked`.
    pub(crate) fn is_told_beyond(&self, acked: u64) -> bool {
        self.sacked > acked
    }

    /// Everything before `ack` has arrived, says packet `number`: bytes that never passed are missing in the capture.
    pub(crate) fn arrived(&mut self, ack: u64, number: u64, now: i64) {
        let unseen = self.holes.arrived(ack);
        if unseen > 0 {
            self.unseen += unseen;
            self.note_gap(number, now);
        }
    }

    /// Takes note of an ACK of bytes that the capture never showed.
    pub(crate) fn note_gap(&mut self, number: u64, now: i64) {
        self.gaps = self.gaps.saturating_add(1);
        if self.gap_number == 0 {
            (self.gap_number, self.gap_at) = (number, now);
        }
    }

    /// Counts the lost tail that the present repair mends, if it is one.
    pub(crate) fn count_tail(&mut self) {
        if let Some(tail) = self.tail {
            let count = &mut self.tails[tail as usize];
            *count = count.saturating_add(1);
        }
    }

    /// Takes what an ACK up to `ack` says of data beyond it.
    pub(crate) fn take_sack(&mut self, tcp: &Tcp, ack: u64) {
        for (_, right) in tcp.options.sack.as_slice() {
            self.sacked = self.sacked.max(sequence::unwrap(*right, ack));
        }
    }
}

/// What an ACK reports as having come twice: its first SACK block, where that lies below the ACK itself or within the
/// second block (RFC 2883 section 4).
pub(crate) fn duplicate_sack(tcp: &Tcp) -> Option<(u32, u32)> {
    let blocks = tcp.options.sack.as_slice();
    let &(left, right) = blocks.first()?;
    let is_below = (left.wrapping_sub(tcp.ack) as i32) < 0;
    let is_within = blocks.get(1).is_some_and(|second| {
        (left.wrapping_sub(second.0) as i32) >= 0 && (right.wrapping_sub(second.1) as i32) <= 0
    });
    (is_below || is_within).then_some((left, right))
}
