//! One direction of a TCP connection: what its sender has sent, what was ACKed, what the window allows.

use tcpwhy_wire::Tcp;

use super::beliefs::Shown;
use super::holes::{Filled, Opened};
use super::idents::Idents;
use super::rhythm::Rhythm;
use super::sequence;
use super::spacing::Spacing;
use super::trouble::{Shut, Trouble, duplicate_sack};

/// Segments are a bulk transfer's if their average is at least this share (in percent) of a full one: at most one
/// in five is the tail of something.
const BULK: u64 = 80;
/// "No time yet", small enough that any difference to it is large.
pub(crate) const NEVER: i64 = i64::MIN / 4;
/// "No estimate yet" of a path's part.
pub(crate) const UNKNOWN: i64 = i64::MAX;

/// State of one direction. Times are ns; sequence numbers are unwrapped.
#[derive(Clone, Debug)]
pub(crate) struct Half {
    /// End of the highest byte sent (SND.NXT as the capture shows it).
    pub(crate) next: u64,
    /// Highest ACK (SND.UNA).
    pub(crate) acked: u64,
    /// Right edge of the window the receiver has offered.
    pub(crate) edge: u64,
    /// The edge as the sender knew it when its present burst began, and when that was.
    pub(crate) known_edge: u64,
    pub(crate) known_at: i64,
    /// The last segment that was smaller than the MSS.
    pub(crate) small: Small,
    /// Last data sent: when, in which packet, and how long it was.
    pub(crate) sent_at: i64,
    pub(crate) sent_number: u64,
    pub(crate) sent_len: u32,
    /// Last segment of the receiver that moved `acked` or `edge`: when, which packet, bytes it ACKed.
    pub(crate) freed_at: i64,
    pub(crate) freed_number: u64,
    pub(crate) freed_bytes: u32,
    /// The first such segment since the present burst began.
    pub(crate) freed_first: i64,
    /// The byte being timed, and since when; 0 where none is.
    sample_end: u64,
    sample_at: i64,
    /// Nothing else was on its way when that began.
    pub(crate) sample_alone: bool,
    /// Shortest time from data to its ACK at the capture point: the receiver's part of the base round trip.
    pub(crate) part: i64,
    /// The last such time.
    pub(crate) rtt: i64,
    /// The least time per byte that the path has taken.
    pub(crate) spacing: Spacing,
    /// The edge before the segment that moved it last.
    pub(crate) edge_before: u64,
    /// Room in the window, bytes, when the first segment moved its edge since data was last sent: several ACKs may come before
    /// the sender goes on.
    pub(crate) room_at_stop: u32,
    /// What is being repaired, or missing; nothing on most connections.
    pub(crate) trouble: Option<Box<Trouble>>,
    pub(crate) dup_acks: u8,
    /// How this side's packets are numbered, and which of them never came here.
    pub(crate) idents: Idents,
    /// How sure it is that this sender does not hold small segments: raised by each that left early.
    pub(crate) nodelay: u8,
    /// How many such segments there were.
    pub(crate) defied: u8,
    /// The segment at hand was pushed.
    pub(crate) is_pushed: bool,
    /// Window scale shift of the *receiver's* window field, and its MSS option.
    pub(crate) shift: u8,
    /// The scale of the receiver's window is known: its SYN was seen.
    pub(crate) scale_known: bool,
    pub(crate) timestamps: bool,
    /// This side's SYN allowed the other one to send SACKs (RFC 2018 section 2).
    pub(crate) offers_sack: bool,
    pub(crate) started: bool,
    pub(crate) closed: bool,
    pub(crate) last_full: bool,
    pub(crate) pushed: Pushed,
    pub(crate) freed_pure: bool,
    pub(crate) small_acked_pure: bool,
    pub(crate) zero_window: bool,
    pub(crate) mss: u16,
    /// The window that the receiver announced in its SYN; 0 where that was not seen.
    pub(crate) first_window: u16,
    pub(crate) max_len: u32,
    pub(crate) max_window: u32,
    /// Segments sent since the other side last sent data.
    pub(crate) run: u8,
    /// The longest such run.
    pub(crate) run_longest: u8,
    /// Counters.
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
    pub(crate) segments: u32,
    pub(crate) pure_acks: u32,
    pub(crate) offloaded: u32,
    /// ACKs that came late and released nothing: how many, and their delay in all, ns.
    pub(crate) idle_acks: u16,
    pub(crate) idle_acks_late: f32,
    /// Reactions of this side's *host* to the other: at once, and later.
    pub(crate) prompt: u16,
    pub(crate) slow: u16,
    pub(crate) rhythm: Option<Box<Rhythm>>,
    pub(crate) shown: Option<Box<Shown>>,
}

/// What was pushed: its sender had no more when that left (RFC 9293 section 3.9.1.2), unless it pushes everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// All data so far.
    Everything,
    /// The last data sent, and not all before.
    TheLast,
    /// Not the last data sent.
    NotTheLast,
}

impl Pushed {
    /// More data is sent, pushed or not.
    #[inline]
    pub(crate) fn then(self, is_pushed: bool) -> Self {
        match (self, is_pushed) {
            (Self::Everything, true) => Self::Everything,
            (_, true) => Self::TheLast,
            (_, false) => Self::NotTheLast,
        }
    }
}

/// A segment smaller than the MSS, behind which Nagle's algorithm holds the next such one. Kept small: every
/// connection has two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Small {
    /// Its end (Minshall's SND.SML).
    pub(crate) end: u64,
    /// When it passed.
    pub(crate) sent_at: i64,
    /// Its payload, bytes.
    pub(crate) len: u32,
    /// How much later the ACK passed that covered it, µs, rounded up; `NOT_YET` before.
    acked_after: u32,
    /// Both packets' numbers, their low 32 bits.
    sent_number: u32,
    acked_number: u32,
}

/// No ACK yet.
const NOT_YET: u32 = u32::MAX;

impl Default for Small {
    fn default() -> Self {
        Self { end: 0, sent_at: NEVER, len: 0, acked_after: NOT_YET, sent_number: 0, acked_number: 0 }
    }
}

impl Small {
    /// A segment of `len` bytes up to `end`, in packet `number`.
    pub(crate) fn sent(end: u64, len: u32, number: u64, sent_at: i64) -> Self {
        Self { end, sent_at, len, sent_number: number as u32, ..Self::default() }
    }

    /// Its ACK, packet `number`, passes.
    fn take_ack(&mut self, number: u64, now: i64) {
        let after = (now - self.sent_at).unsigned_abs().div_ceil(1_000);
        self.acked_after = u32::try_from(after).unwrap_or(NOT_YET);
        self.acked_number = number as u32;
    }

    /// When its ACK passed, ns; `NEVER` before.
    #[inline]
    pub(crate) fn acked_at(&self) -> i64 {
        if self.acked_after == NOT_YET { NEVER } else { self.sent_at + i64::from(self.acked_after) * 1_000 }
    }

    /// Which packets they were, seen from packet `number`.
    pub(crate) fn packets(&self, number: u64) -> [u64; 2] {
        let before = |low: u32| number - u64::from((number as u32).wrapping_sub(low));
        [before(self.sent_number), before(self.acked_number)]
    }
}

impl Default for Half {
    fn default() -> Self {
        Self {
            next: 0,
            acked: 0,
            edge: 0,
            known_edge: 0,
            known_at: NEVER,
            small: Small::default(),
            sent_at: NEVER,
            sent_number: 0,
            sent_len: 0,
            freed_at: NEVER,
            freed_number: 0,
            freed_bytes: 0,
            freed_first: NEVER,
            edge_before: 0,
            room_at_stop: 0,
            sample_end: 0,
            sample_at: 0,
            sample_alone: false,
            part: UNKNOWN,
            rtt: 0,
            trouble: None,
            dup_acks: 0,
            idents: Idents::default(),
            nodelay: 0,
            defied: 0,
            is_pushed: false,
            shift: 0,
            scale_known: false,
            timestamps: false,
            offers_sack: false,
            started: false,
            closed: false,
            last_full: false,
            pushed: Pushed::Everything,
            spacing: Spacing::default(),
            freed_pure: false,
            small_acked_pure: false,
            zero_window: false,
            mss: 0,
            first_window: 0,
            max_len: 0,
            max_window: 0,
            run: 0,
            run_longest: 0,
            packets: 0,
            bytes: 0,
            segments: 0,
            pure_acks: 0,
            offloaded: 0,
            idle_acks: 0,
            idle_acks_late: 0.0,
            prompt: 0,
            slow: 0,
            rhythm: None,
            shown: None,
        }
    }
}

impl Half {
    /// Sets the sequence space from the first segment or ACK that tells it.
    pub(crate) fn start(&mut self, seq: u32) {
        if !self.started {
            self.started = true;
            self.next = sequence::first(seq);
            (self.acked, self.small.end) = (self.next, 0);
        }
    }

    /// Whether an ACK of captured data has been captured: what is missing from then on was sent while the capture ran.
    fn is_underway(&self) -> bool {
        self.part != UNKNOWN
    }

    /// Bytes that were ACKed and never captured.
    pub(crate) fn unseen(&self) -> u64 {
        self.trouble.as_ref().map_or(0, |trouble| trouble.unseen)
    }

    /// Those of them that cannot have been on their way when the capture began.
    pub(crate) fn unseen_since(&self) -> u64 {
        self.trouble.as_ref().map_or(0, |trouble| trouble.unseen.saturating_sub(trouble.early))
    }

    /// The repair that is going on, if one is.
    #[inline]
    pub(crate) fn repair(&self) -> Option<&Trouble> {
        self.trouble.as_deref().filter(|trouble| trouble.recover != 0)
    }

    /// Since when there had been silence before data that may have been a tail-loss probe, as long as it is open
    /// whether what was in flight then was lost.
    #[inline]
    pub(crate) fn open_probe(&self) -> Option<i64> {
        let trouble = self.trouble.as_deref()?;
        (trouble.probed > self.acked).then_some(trouble.probed_since)
    }

    /// Whether a repair is going on.
    #[inline]
    pub(crate) fn is_repairing(&self) -> bool {
        self.repair().is_some()
    }

    /// Notes that the bytes before `seq` were not captured, or not yet, when a segment with this timestamp passed.
    #[cold]
    pub(crate) fn open_hole(&mut self, seq: u64, now: i64, stamp: Option<u32>) {
        let (next, underway) = (self.next, self.is_underway());
        let trouble = self.trouble.get_or_insert_default();
        let is_old = trouble.is_told_beyond(next);
        trouble.early += if underway { 0 } else { seq - next };
        trouble.holes.open(next, seq, Opened { at: now, stamp, is_old });
    }

    /// Takes the bytes from `seq` to `end`, which have all been passed by later ones; returns what they fill.
    pub(crate) fn fill_holes(&mut self, seq: u64, end: u64) -> Option<Filled> {
        let filled = self.trouble.as_mut()?.holes.fill(seq, end)?;
        self.bytes += filled.bytes;
        Some(filled)
    }

    /// Whether bytes are missing that later ones of this direction have overtaken.
    pub(crate) fn has_hole(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.holes.since().is_some())
    }

    /// When the hole opened into which this ACK moves, if it does, and whether the receiver has told of that hole.
    pub(crate) fn hole_below(&self, tcp: &Tcp) -> Option<(i64, bool)> {
        let trouble = self.trouble.as_deref()?;
        let opened = trouble.holes.reached(sequence::unwrap(tcp.ack, self.next))?;
        let has_sack = !tcp.options.sack.as_slice().is_empty() && duplicate_sack(tcp).is_none();
        Some((opened.at, has_sack || self.dup_acks > 0 || trouble.is_told_beyond(self.acked)))
    }

    /// Segments that were sent again.
    pub(crate) fn retransmitted(&self) -> u32 {
        self.trouble.as_ref().map_or(0, |trouble| trouble.retransmitted)
    }

    /// Whether the ACK that freed this side last ended a repair.
    pub(crate) fn has_just_recovered(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.recovered_at == self.freed_at)
    }

    /// Whether the sender had more to send when it sent last: whatever it waited for then, it was not its program. A small
    /// segment that is not pushed ended a cork (`MSG_MORE`).
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.last_full && self.pushed == Pushed::NotTheLast
    }

    /// Whether the data sent last was not pushed: its sender had more.
    #[inline]
    pub(crate) fn was_unpushed(&self) -> bool {
        self.pushed == Pushed::NotTheLast
    }

    /// Bytes sent and not ACKed.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.next - self.acked
    }

    /// Whether nearly all that was sent went in full segments.
    pub(crate) fn is_bulk(&self) -> bool {
        self.bytes * 100 >= u64::from(self.segments) * u64::from(self.full_size()) * BULK
    }

    /// Starts timing the byte before `end` unless one is being timed; `alone` if nothing else is on its way.
    #[inline]
    pub(crate) fn time_segment(&mut self, end: u64, now: i64, alone: bool) {
        if self.sample_end == 0 && !self.has_hole() {
            (self.sample_end, self.sample_at, self.sample_alone) = (end, now, alone);
        }
    }

    /// Since when the oldest data that is being timed has been on its way.
    pub(crate) fn timed_since(&self) -> Option<i64> {
        (self.sample_end != 0).then_some(self.sample_at)
    }

    /// Whether data is being timed.
    pub(crate) fn is_timing(&self) -> bool {
        self.sample_end != 0
    }

    /// Stops timing without a result: after a retransmission an ACK is ambiguous (Karn; RFC 6298 section 3).
    pub(crate) fn spoil_sample(&mut self) {
        self.sample_end = 0;
    }

    /// Takes the round-trip sample if `ack` covers the timed byte, and tells whether it did.
    #[inline]
    fn sample(&mut self, ack: u64, now: i64) -> bool {
        let sampled = self.sample_end != 0 && ack >= self.sample_end;
        if sampled {
            // The last segment gives the shorter sample where the ACK waited for a second one.
            let latest = if ack == self.next { self.sent_at } else { self.sample_at };
            self.rtt = now - self.sample_at;
            self.part = self.part.min(now - latest.max(self.sample_at));
            self.sample_end = 0;
        }
        sampled
    }

    /// Takes an acknowledgment of this direction's data from a segment of the other side.
    pub(crate) fn take_ack(&mut self, tcp: &Tcp, number: u64, now: i64, pure: bool) -> Acked {
        self.start(tcp.ack);
        let ack = sequence::unwrap(tcp.ack, self.next);
        if ack > self.next {
            // The receiver has bytes that the capture never showed.
            let (bytes, underway) = (ack - self.next, self.is_underway());
            let trouble = self.trouble.get_or_insert_default();
            trouble.unseen += bytes;
            trouble.early += if underway { 0 } else { bytes };
            trouble.note_gap(number, now);
            self.next = ack;
            // Across what was never seen no round trip is known.
            self.spoil_sample();
        }
        let window = u32::from(tcp.window) << self.shift;
        self.max_window = self.max_window.max(window);
        let was_in_flight = self.in_flight();
        let bytes = ack.saturating_sub(self.acked);
        let edge = ack + u64::from(window);
        let opened = edge > self.edge;
        let edge_before = self.edge;
        let before = self.freed_at.max(self.sent_at);
        if window == 0 {
            self.zero_window = true;
            self.note_shut(number, now);
        }
        let mut sampled = false;
        if bytes > 0 {
            sampled = self.sample(ack, now);
            if self.small_in_flight() && self.small.end <= ack {
                self.small.take_ack(number, now);
                self.small_acked_pure = pure;
            }
            self.acked = ack;
            self.dup_acks = 0;
        } else if pure && was_in_flight > 0 && edge == self.edge && ack == self.acked {
            if self.dup_acks == 0 {
                self.trouble.get_or_insert_default().dup_since = now;
            }
            self.dup_acks = self.dup_acks.saturating_add(1);
        }
        if opened || ack == self.acked {
            self.edge = edge;
        }
        if bytes > 0 || opened {
            self.edge_before = edge_before;
            if self.freed_at <= self.sent_at {
                self.room_at_stop = u32::try_from(edge_before.saturating_sub(self.next)).unwrap_or(u32::MAX);
            }
            self.freed_at = now;
            if self.freed_first == NEVER {
                self.freed_first = now;
            }
            self.freed_number = number;
            self.freed_bytes = bytes.min(u64::from(u32::MAX)) as u32;
            self.freed_pure = pure;
        }
        if let Some(trouble) = &mut self.trouble {
            trouble.arrived(self.acked, number, now);
        }
        Acked { bytes, was_in_flight, before, sampled }
    }

    /// Notes that the receiver says its window to be zero.
    #[cold]
    fn note_shut(&mut self, number: u64, now: i64) {
        let shut = &mut self.trouble.get_or_insert_default().shut;
        if shut.at == NEVER {
            (shut.at, shut.number) = (now, number);
        }
    }

    /// Data leaves: what the window was before counts no more.
    #[inline]
    pub(crate) fn reopen(&mut self) {
        if self.zero_window {
            self.zero_window = false;
            if let Some(trouble) = &mut self.trouble {
                (trouble.shut.at, trouble.shut.probes) = (NEVER, 0);
            }
        }
    }

    /// The receiver's window, if it has been zero since data left last.
    #[inline]
    pub(crate) fn shut(&self) -> Option<&Shut> {
        self.trouble.as_ref().map(|trouble| &trouble.shut).filter(|shut| shut.at != NEVER || shut.pressed > 0)
    }

    /// The receiver's window before the segment that freed this side last, bytes.
    pub(crate) fn window_before(&self) -> u64 {
        self.edge_before.saturating_sub(self.acked - u64::from(self.freed_bytes))
    }

    /// Whether a segment of `len` bytes that fills the window was made small by it: the receiver had room for less than a
    /// full segment, and had moved the window on by less than that (RFC 1122 section 4.2.3.3).
    pub(crate) fn is_silly(&self, len: u32) -> bool {
        let full = u64::from(self.full_size());
        let moved = self.edge.saturating_sub(self.edge_before);
        self.scale_known
            && moved > 0
            && moved < full
            && self.next + u64::from(len) == self.edge
            && u64::from(len) < full
    }

    /// Whether the ACK that freed this side last came from a receiver whose program had not read: it covers two full
    /// segments and more, which Linux ACKs at once as long as the window does not shrink (`__tcp_ack_snd_check`), and
    /// the window has shrunk by one at least.
    pub(crate) fn freed_without_reading(&self) -> bool {
        let full = u64::from(self.full_size());
        let window = self.edge.saturating_sub(self.acked);
        self.scale_known && u64::from(self.freed_bytes) >= 2 * full && window + full <= self.window_before()
    }

    /// Whether something is in flight that would make Nagle's algorithm hold a small segment: unACKed data
    /// that includes a small segment (Minshall's rule, the weaker one, so that it convicts under both).
    #[inline]
    pub(crate) fn small_in_flight(&self) -> bool {
        self.small.end > self.acked
    }
}

/// What one acknowledgment did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    /// New bytes it acknowledged.
    pub(crate) bytes: u64,
    /// Bytes in flight before it.
    pub(crate) was_in_flight: u64,
    /// The later of the last send and the last freeing ACK before it.
    pub(crate) before: i64,
    /// It ended a round trip that was being timed.
    pub(crate) sampled: bool,
}
