//! Flights: what a sender sends between two stops, and what their sizes tell of the window that stopped it.
//!
//! A sender with more to send than its congestion window allows sends one flight each round trip. In slow start each is
//! larger than the one before. A first flight after silence that is smaller than what was open before shows a window
//! that fell back. A stop with far less on its way than before, although nothing was lost, is not the congestion
//! window's: it does not shrink by itself.

use super::fact::Cause;
use super::half::NEVER;

/// In slow start a flight is twice the one before, or one and a half times it where ACKs for two segments count once
/// (RFC 5681 section 3.1); `HyStart++` leaves it with a quarter more (RFC 9406 section 4.3). Less growth is congestion
/// avoidance's. 1 in so many.
const GROWN_SHARE: u64 = 4;
/// A flight is a round's if the sender could send it for this share, in quarters, of the base round trip; stops that
/// come sooner split one round.
pub(super) const ROUND_QUARTERS: i64 = 3;
/// Linux's shortest retransmission timeout beyond the round trip (`TCP_RTO_MIN`): a sender that has been silent for a
/// timeout begins with its restart window (RFC 5681 section 4.1). ns.
const SHORTEST_TIMEOUT: i64 = 200_000_000;
/// A window has fallen if its first flight is smaller than this share, in quarters, of what was open: a sender that keeps
/// its window sends nearly all of it.
const FALLEN_QUARTERS: u64 = 3;
/// A congestion window that nothing reduced is as large as it was. A sender that stops with this share of it on its
/// way, 1 in so many, was stopped by something else.
const SHRUNK_SHARE: u64 = 2;
/// Rounds without growth that show a fixed limit: Reno and CUBIC in congestion avoidance grow by half a segment a round
/// at least (RFC 9438 section 4.3), four segments in as many.
const PLATEAU: u32 = 8;
/// Rounds after a loss in which flights end wherever the repairs leave off.
const REPAIRED: u32 = 3;
/// Stops in a row behind a pushed segment that show an empty buffer: a sender pushes what empties it (RFC 9293 section
/// 3.9.1.2), so its program is stopped there too. One that has more to send and stops at its congestion window does so
/// behind such a segment by chance, where one write ends.
const EMPTIED: u32 = 2;

/// How the congestion window develops, as far as flights show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Growth {
    /// By slow start since the connection began.
    #[default]
    Opening,
    /// By slow start since a silence after which it had fallen.
    Reopening,
    /// By slow start since a retransmission timeout.
    AfterTimeout,
    /// Not by slow start.
    Steady,
}

/// What flights of one direction have shown so far.
#[derive(Clone, Debug)]
pub(crate) struct Flights {
    growth: Growth,
    /// When the present round began.
    round_at: i64,
    /// Bytes of its flight that were sent before a stop in mid-round.
    partial: u64,
    /// Where the flight that is being sent began, as a sequence number; 0 where no stop has ended the one before.
    from: u64,
    /// The last whole flight since growth began, bytes; 0 where there is none.
    last: u64,
    /// The largest one since something reduced the window.
    largest: u64,
    /// It has been reduced since the last stop, so that the present flight may be larger than it now allows.
    pub(super) is_reduced: bool,
    /// Most bytes that were on their way at a stop since then, where the capture can tell.
    peak: u64,
    /// What had been open before the silence that the present burst followed; 0 where there was none.
    open_before: u64,
    /// When the first ACK since the last segment came.
    pub(super) acked_at: i64,
    /// The last flight of slow start was followed by one as large.
    was_flat: bool,
    /// Stops in a row behind a pushed segment.
    emptied: u32,
    /// Retransmissions known of.
    retransmitted: u32,
    /// Rounds since one became known.
    since_loss: u32,
    /// What had been sent, as a sequence number, when the last repair was over: it belongs to no flight.
    repaired: u64,
    /// What the window had been shown to allow before a loss reduced it, bytes; 0 where it is open as far again.
    before_loss: u64,
    /// The part of the last stop that comes from that.
    pub(super) lost_part: f32,
    /// Rounds of slow start from the connection's beginning or a timeout, and from silences.
    pub(crate) opening: Rounds,
    pub(crate) reopening: Rounds,
    /// Rounds of slow start after a timeout; they are among those of `opening`.
    pub(crate) after_timeout: u32,
    /// Stops that were the send buffer's.
    pub(crate) buffer: Buffer,
}

/// Rounds for which a sender waited for its congestion window to open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// How many.
    pub(crate) count: u64,
    /// How often it began.
    pub(crate) times: u64,
    /// The smallest first flight, and the largest one that a stop ended, bytes.
    pub(crate) first: u64,
    pub(crate) largest: u64,
    /// What had been open before, bytes: of restarts only.
    pub(crate) before: u64,
    /// Bytes sent from the beginning to the last stop.
    pub(crate) bytes: u64,
}

/// Stops with a constant or a small amount on its way, which no congestion window explains.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buffer {
    /// How many.
    pub(crate) stops: u32,
    /// Those at which ACKs had made room before, and the sender did not use it.
    pub(crate) unanswered: u32,
    /// Least and most bytes that were on their way at their ends.
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// What the congestion window has been shown to allow, bytes.
    pub(crate) allowed: u64,
    /// Rounds in a row with the same amount on its way, and that amount.
    level_rounds: u32,
    level: u64,
    /// Stops that were a plateau's: nothing shows there that the congestion window allows more.
    pub(crate) level_stops: u32,
    /// Stops at which all that the sender had was on its way, as far as it tells by pushing; and most bytes of their flights.
    pub(crate) emptied: u32,
    pub(crate) most_sent: u64,
}

impl Default for Flights {
    fn default() -> Self {
        Self {
            growth: Growth::default(),
            round_at: NEVER,
            partial: 0,
            from: 0,
            last: 0,
            largest: 0,
            is_reduced: false,
            peak: 0,
            open_before: 0,
            acked_at: NEVER,
            was_flat: false,
            emptied: 0,
            retransmitted: 0,
            since_loss: 0,
            repaired: 0,
            before_loss: 0,
            lost_part: 0.0,
            opening: Rounds::default(),
            reopening: Rounds::default(),
            after_timeout: 0,
            buffer: Buffer::default(),
        }
    }
}

/// A stop of a sender that was neither the receiver's window nor Nagle's algorithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// When the next segment left, and when the last one before had.
    pub(super) now: i64,
    pub(super) sent_at: i64,
    /// The base round trip, ns.
    pub(super) base: i64,
    /// Bytes sent since the stop before, and the sequence number of what comes next.
    pub(super) flight: u64,
    pub(super) next: u64,
    /// What was on its way, where the capture was made at the sender and nothing but an ACK can have ended the stop.
    pub(super) left: Option<Left>,
    /// A full segment, bytes.
    pub(super) full: u64,
    /// Retransmissions so far, and whether a timer set off the last one.
    pub(super) retransmitted: u32,
    pub(super) by_timer: bool,
    /// The connection's beginning was captured.
    pub(super) is_whole: bool,
    /// Bytes that keep the path busy for a round trip, if its rate is known.
    pub(super) fills: Option<u64>,
    /// It had nothing left to send, as far as it tells.
    pub(super) was_emptied: bool,
    /// What it sent last was less than a full segment.
    pub(super) was_small: bool,
    /// The sender has reduced its window on marks.
    pub(super) was_marked: bool,
}

/// What was on its way of a sender that had stopped for a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// When it stopped, and when the ACK came that it went on with, bytes.
    pub(super) at_stop: u64,
    pub(super) at_end: u64,
    /// Two full segments or more had been ACKed before, and it had not gone on with that.
    pub(super) is_unanswered: bool,
}

impl Rounds {
    fn begin(&mut self, flight: u64, before: u64) {
        self.times += 1;
        self.first = if self.times == 1 { flight } else { self.first.min(flight) };
        self.before = self.before.max(before);
    }

    fn add(&mut self, flight: u64) {
        self.count += 1;
        self.largest = self.largest.max(flight);
        self.bytes += flight;
    }
}

impl Flights {
    /// The sender told that it has reduced its window.
    pub(crate) fn reduced(&mut self) {
        (self.growth, self.last, self.is_reduced) = (Growth::Steady, 0, true);
    }

    /// Something else than the congestion window ended the flight; the next one begins at `now`.
    pub(super) fn interrupted(&mut self, now: i64) {
        (self.round_at, self.partial, self.from) = (now, 0, 0);
    }

    /// A repair is over at `now`, when `next` was to be sent next.
    pub(super) fn repaired(&mut self, now: i64, next: u64) {
        self.interrupted(now);
        self.repaired = next;
        self.before_loss = self.before_loss.max(self.open());
    }

    /// The sender's program speaks at `now` after `silence` ns without data, with nothing on its way.
    pub(super) fn begun(&mut self, now: i64, silence: i64, base: i64) {
        self.interrupted(now);
        if silence >= SHORTEST_TIMEOUT + base {
            self.open_before = self.open();
            self.peak = 0;
        }
    }

    /// What the window has been shown to allow since something reduced it, bytes.
    fn open(&self) -> u64 {
        // In slow start the last flight's ACKs have doubled it (RFC 5681 section 3.1).
        let grown = if self.growth == Growth::Steady { 0 } else { 2 * self.last };
        self.largest.max(grown)
    }

    /// Whether the window is smaller than it was before a loss, as far as is known.
    #[inline]
    pub(super) fn is_smaller(&self) -> bool {
        self.before_loss > 0
    }

    /// Whether the window is not being opened by slow start, which would stop the sender in any case.
    pub(super) fn is_steady(&self) -> bool {
        self.growth == Growth::Steady
    }

    /// What the wait is for which the flight just ended.
    fn cause(&self) -> Cause {
        match self.growth {
            Growth::Opening | Growth::AfterTimeout => Cause::SlowStart,
            Growth::Reopening => Cause::IdleRestart,
            Growth::Steady => Cause::CongestionWindow,
        }
    }

    /// Why what is sent next may be spaced out: because the window is still opening. A flight is twice the one before
    /// then; what comes behind that goes at the path's rate.
    pub(super) fn pacing(&self, next: u64) -> Option<Cause> {
        let is_flight = self.from > 0 && next < self.from + 2 * self.last;
        (self.growth != Growth::Steady && is_flight).then(|| self.cause())
    }

    /// What stopped the sender.
    pub(super) fn stopped(&mut self, stop: &Stop) -> Cause {
        self.note_losses(stop);
        let flight = self.partial + stop.flight.min(stop.next.saturating_sub(self.repaired));
        if stop.now - self.round_at < stop.base * ROUND_QUARTERS / 4 {
            self.partial = flight;
            return self.with_losses(Cause::CongestionWindow, flight, stop);
        }
        self.emptied = if stop.was_emptied && !stop.was_marked { self.emptied + 1 } else { 0 };
        let lasted = if self.round_at == NEVER { 0 } else { stop.sent_at - self.round_at };
        let flight = within_a_round(flight, lasted, stop.base);
        (self.round_at, self.partial, self.from) = (stop.now, 0, stop.next);
        self.since_loss = self.since_loss.saturating_add(1);
        self.note_silence(flight, stop);
        // A sender that reduces its window leaves ACKs unanswered until less is on its way.
        let is_unanswered = !stop.was_marked && stop.left.is_some_and(|left| left.is_unanswered);
        let cause = if self.has_grown(flight) {
            // Whatever else stopped it, this round was needed to open the window.
            self.was_flat = false;
            self.climb(flight)
        } else {
            let is_flat = !stop.was_emptied && self.is_flat(flight, stop.full);
            let has_opened = self.opening.count > 1;
            if !is_flat {
                self.retract();
            }
            if !is_unanswered && !is_flat {
                (self.growth, self.last) = (Growth::Steady, 0);
            }
            self.was_flat = is_flat;
            match self.buffer_or_window(stop) {
                Cause::CongestionWindow if is_flat && has_opened => self.climb_flat(flight),
                cause => cause,
            }
        };
        self.largest = self.largest.max(flight);
        self.peak = self.peak.max(stop.left.map_or(0, |left| left.at_stop));
        if std::mem::take(&mut self.is_reduced) {
            (self.largest, self.peak) = (0, 0);
        }
        self.with_losses(cause, flight, stop)
    }

    /// What a stop that was the window's comes from: with what the window allowed before a loss reduced it, the sender would
    /// have needed fewer rounds, or have kept the path busy and not stopped at all.
    fn with_losses(&mut self, cause: Cause, flight: u64, stop: &Stop) -> Cause {
        if flight + stop.full > self.before_loss {
            self.before_loss = 0;
        }
        if cause != Cause::CongestionWindow || self.before_loss == 0 {
            return cause;
        }
        let would_stop = stop.fills.is_none_or(|fills| self.before_loss < fills);
        self.lost_part = if would_stop { 1.0 - flight as f32 / self.before_loss as f32 } else { 1.0 };
        Cause::AfterLoss
    }

    /// A loss reduces the window; after a timeout slow start begins again (RFC 5681 section 3.1).
    fn note_losses(&mut self, stop: &Stop) {
        if stop.retransmitted != self.retransmitted {
            (self.retransmitted, self.since_loss) = (stop.retransmitted, 0);
            self.before_loss = self.before_loss.max(self.open());
            self.reduced();
            self.growth = if stop.by_timer { Growth::AfterTimeout } else { Growth::Steady };
        } else if self.growth == Growth::Opening && !stop.is_whole {
            self.growth = Growth::Steady;
        }
    }

    /// Whether the silence before this flight closed the window.
    fn note_silence(&mut self, flight: u64, stop: &Stop) {
        let before = std::mem::take(&mut self.open_before);
        if before > 0 && flight + stop.full <= before / 4 * FALLEN_QUARTERS {
            (self.growth, self.last, self.largest, self.before_loss) = (Growth::Reopening, 0, 0, 0);
            self.reopening.begin(flight, before);
        }
    }

    fn has_grown(&self, flight: u64) -> bool {
        self.growth != Growth::Steady && flight >= self.last + self.last / GROWN_SHARE
    }

    /// Whether a flight no larger than the one before is a round of slow start still: nothing was lost, so nothing has ended
    /// it (RFC 5681 section 3.1), and the program may have been late with a few segments. Twice in a row it is over.
    fn is_flat(&self, flight: u64, full: u64) -> bool {
        self.growth == Growth::Opening && self.last > 0 && !self.was_flat && flight + full >= self.last
    }

    /// Counts a round of slow start whose flight was hardly larger than the one before.
    fn climb_flat(&mut self, flight: u64) -> Cause {
        self.opening.add(flight);
        Cause::SlowStart
    }

    /// Takes back the first round of slow start if no other has followed: that window was not opening.
    fn retract(&mut self) {
        if self.growth == Growth::Opening && self.last > 0 && self.opening.count == 1 {
            self.opening.count = 0;
        }
    }

    /// Counts a round of slow start whose flight was so many bytes.
    fn climb(&mut self, flight: u64) -> Cause {
        let is_first = self.last == 0;
        if self.growth == Growth::Reopening && self.last >= self.reopening.before {
            // What follows had to be opened in any case.
            self.growth = Growth::Opening;
        }
        self.last = flight;
        match self.growth {
            Growth::Reopening => self.reopening.add(flight),
            // One round alone may be the halved window of any repair.
            Growth::AfterTimeout if is_first => return Cause::CongestionWindow,
            Growth::AfterTimeout => {
                self.after_timeout += 1;
                self.opening.add(flight);
            }
            _ => {
                if is_first {
                    self.opening.begin(flight, 0);
                }
                self.opening.add(flight);
            }
        }
        self.cause()
    }

    /// Whether the sender stopped because all that its buffer held was on its way. A small segment in front of full ones
    /// shows that at once.
    fn was_emptied(&self, stop: &Stop) -> bool {
        let enough = if stop.was_small { 1 } else { EMPTIED };
        let is_clean = self.retransmitted == 0 || self.since_loss > REPAIRED;
        self.emptied >= enough && is_clean
    }

    /// A stop that was not slow start's, or whose sender left ACKs unanswered: the congestion window's, unless that had
    /// room, or has been larger and nothing reduced it, or there has been the same amount on its way for long.
    fn buffer_or_window(&mut self, stop: &Stop) -> Cause {
        let was_emptied = self.was_emptied(stop);
        let buffer = &mut self.buffer;
        if was_emptied {
            buffer.emptied += 1;
            buffer.most_sent = buffer.most_sent.max(stop.flight);
        }
        let Some(left) = stop.left else {
            return if was_emptied { Cause::SendBuffer } else { Cause::CongestionWindow };
        };
        if left.at_stop.abs_diff(buffer.level) <= stop.full {
            buffer.level_rounds += 1;
        } else {
            (buffer.level, buffer.level_rounds) = (left.at_stop, 1);
        }
        let has_shrunk = left.at_stop <= self.peak / SHRUNK_SHARE;
        let is_level = buffer.level_rounds > PLATEAU && self.retransmitted == 0 && !stop.was_marked;
        let is_unanswered = left.is_unanswered && !stop.was_marked;
        if !is_unanswered && !has_shrunk && !is_level && !was_emptied {
            return Cause::CongestionWindow;
        }
        buffer.unanswered += u32::from(is_unanswered);
        buffer.level_stops += u32::from(is_level && !is_unanswered && !has_shrunk && !was_emptied);
        buffer.least = if buffer.stops == 0 { left.at_end } else { buffer.least.min(left.at_end) };
        buffer.most = buffer.most.max(left.at_end);
        buffer.stops += 1;
        buffer.allowed = buffer.allowed.max(self.peak).max(left.at_stop);
        Cause::SendBuffer
    }
}

/// The part of a flight that was on its way at once, where sending it lasted longer than a round trip.
fn within_a_round(flight: u64, lasted: i64, base: i64) -> u64 {
    let most = base + base / 4;
    if lasted <= most { flight } else { (flight as f64 * most as f64 / lasted as f64) as u64 }
}
