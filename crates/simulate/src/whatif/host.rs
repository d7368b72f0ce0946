//! What one host saw: its own sends and its peer's arrivals in the order of its own clock, and what the program behind
//! it wrote.

use tcpwhy_wire::TcpFlags;

use super::path::Parts;
use super::trace::{Passed, Trace};
use crate::world::Side;

/// Data that one side's program wrote at once, as far as its segments show it. Positions count the stream's bytes
/// from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    /// When its first segment left, ns.
    pub(super) sent: i64,
    pub(super) cause: Cause,
    /// It had been written before it left, and waited for an ACK.
    pub(super) is_held: bool,
    /// More was to follow (`MSG_MORE`, `TCP_CORK`), as far as the program's calls are known.
    pub(super) is_corked: bool,
}

/// What the program had waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Nothing but its own time, since it wrote the piece before or the connection was open; ns.
    Itself(i64),
    /// So many bytes of the peer's, and then its own time; ns.
    Read(u64, i64),
}

/// What one side did.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub(super) pieces: Vec<Piece>,
    /// When how many of the peer's bytes had arrived without a hole, ns.
    pub(super) arrived: Vec<(i64, u64)>,
    /// When the connection was open, ns.
    pub(super) opened: i64,
    /// When its FIN left, and why then.
    pub(super) finished: Option<Cause>,
    /// Small segments that left while another one was unacknowledged: Nagle's algorithm is off (RFC 896).
    pub(super) undelayed: usize,
    /// Full segments of the first flight, where more was to follow.
    pub(super) first_flight: Option<u32>,
    /// How long it held the ACK of data that came alone, ns.
    pub(super) ack_holds: Vec<i64>,
    /// The windows it offered, bytes: the first and the largest.
    pub(super) first_window: u64,
    pub(super) largest_window: u64,
}

/// A segment that leaves so soon after an ACK was let go by it: 1 ms, what a busy host needs, and a little of the way,
/// which is not always equally long; ns.
pub(super) const REACTION: i64 = 1_000_000;
const WAY_SHARE: i64 = 50;
/// Two packets take so differently long at least over the same way, ns.
const UNEVEN: i64 = 100_000;
/// A window with less room than this is full where segments are larger than packets (loopback, offload), bytes.
const SLIVER: u64 = 2_048;
/// A pause of a sender with nothing in flight that is longer than this is its program's, ns.
const PAUSE: i64 = 5_000_000;
/// Ranges remembered that came before what belongs in front of them: more than a window has holes.
const MOST_EARLY: usize = 1_024;
/// Pieces from which on a beat is a beat, and how much more even than the answers' delays it has to be: requests and
/// answers are as even as what they wait for.
const CLOCK_PIECES: usize = 8;
const CLOCK_EVENNESS: i64 = 3;

impl Host {
    /// Follows one side. `nagle_off` says that its small segments wait for nothing, as far as is known already.
    pub(super) fn of(trace: &Trace, parts: Parts, side: Side, nagle_off: bool) -> Self {
        let mut seen: Vec<(i64, bool, &Passed)> = trace
            .packets
            .iter()
            .map(|packet| {
                let own = packet.from == side;
                (if own { parts.sent(packet) } else { parts.arrived(packet) }, own, packet)
            })
            .collect();
        // An arrival may be the reason of a send that seems to come a little sooner: the way is not always equally long.
        let part = parts.0[side as usize];
        let uneven = if part > 0 { UNEVEN + part / WAY_SHARE } else { 0 };
        seen.sort_by_key(|(time, own, _)| (*time + if *own { uneven } else { 0 }, *own));
        let mut walk = Walk {
            mss: u64::from(trace.mss),
            reaction: REACTION + parts.round_trip() / WAY_SHARE,
            nagle_off,
            host: Self::default(),
            ..Walk::default()
        };
        for (time, own, packet) in seen {
            if own { walk.send(time, packet) } else { walk.arrive(time, packet) }
        }
        walk.host.follow_clock();
        walk.host
    }

    /// Whether Nagle's algorithm is off: more small segments show it than would have been held.
    pub(super) fn is_undelayed(&self) -> bool {
        self.undelayed > self.pieces.iter().filter(|piece| piece.is_held).count()
    }

    /// How many of the peer's bytes had arrived by `time`, and when the last of them; ns.
    pub(super) fn read_by(&self, time: i64) -> (i64, u64) {
        let arrived = self.arrived.partition_point(|(at, _)| *at <= time);
        arrived.checked_sub(1).map_or((self.opened, 0), |last| self.arrived[last])
    }

    /// A program that keeps a beat writes by the clock, whatever it has read meanwhile.
    pub(super) fn follow_clock(&mut self) {
        let mut delays: Vec<i64> = Vec::new();
        let mut gaps: Vec<i64> = Vec::new();
        for pair in self.pieces.windows(2) {
            if let Cause::Read(_, delay) = pair[1].cause {
                delays.push(delay);
                gaps.push(pair[1].sent - pair[0].sent);
            }
        }
        if delays.len() < CLOCK_PIECES || CLOCK_EVENNESS * spread(&mut gaps) >= spread(&mut delays) {
            return;
        }
        let mut before = self.opened;
        for piece in &mut self.pieces {
            if !piece.is_held {
                piece.cause = Cause::Itself((piece.sent - before).max(0));
                before = piece.sent;
            }
        }
    }
}

/// The middle half of some times, from end to end.
fn spread(times: &mut [i64]) -> i64 {
    times.sort_unstable();
    times.get(times.len() * 3 / 4).zip(times.get(times.len() / 4)).map_or(0, |(most, least)| most - least)
}

#[derive(Debug, Default)]
struct Walk {
    mss: u64,
    reaction: i64,
    nagle_off: bool,
    host: Host,
    is_open: bool,
    /// The first offset that was not sent, and the first that was not acknowledged.
    next: u64,
    una: u64,
    /// The first offset that the peer's window does not allow.
    edge: u64,
    /// End of the last small segment.
    small_end: u64,
    /// The last segment filled the peer's window.
    is_window_full: bool,
    /// The last piece may go on.
    is_going_on: bool,
    /// When the last piece was written, and how many of the peer's bytes had been read then.
    written: i64,
    read_then: u64,
    /// Of the peer's: bytes without a hole and since when, the end of it, what came early.
    read: u64,
    read_at: i64,
    early: Vec<(u64, u64)>,
    peer_finished: bool,
    /// The last ACK that acknowledged something: when, whether it acknowledged everything, whether it was alone.
    released: Option<(i64, bool, bool)>,
    /// Peer's data that is not acknowledged: when the last of it came, and how many segments.
    unacknowledged: Option<(i64, u32)>,
}

impl Walk {
    fn arrive(&mut self, time: i64, packet: &Passed) {
        if !self.is_open && packet.ack.is_some() {
            self.open(time);
        }
        if let Some(ack) = packet.ack {
            if ack > self.una {
                self.una = ack;
                self.released = Some((time, ack >= self.next, packet.is_pure_ack()));
            }
            self.edge = self.edge.max(ack + packet.window);
        }
        if packet.len > 0 && !packet.is_lost {
            self.unacknowledged = Some((time, self.unacknowledged.map_or(1, |(_, count)| count + 1)));
            self.take(time, packet.start.max(1) - 1, packet.end().max(1) - 1);
        }
        self.peer_finished |= packet.has(TcpFlags::FIN);
    }

    fn open(&mut self, time: i64) {
        self.is_open = true;
        self.host.opened = time;
        self.written = time;
        self.next = self.next.max(1);
    }

    /// The peer's bytes, from 0.
    fn take(&mut self, time: i64, start: u64, end: u64) {
        if self.early.len() >= MOST_EARLY {
            self.early.remove(0);
        }
        self.early.push((start, end));
        let before = self.read;
        while let Some(at) = self.early.iter().position(|(start, _)| *start <= self.read) {
            self.read = self.read.max(self.early.swap_remove(at).1);
        }
        if self.read > before {
            self.read_at = time;
            self.host.arrived.push((time, self.read));
        }
    }

    fn send(&mut self, time: i64, packet: &Passed) {
        if packet.has(TcpFlags::SYN) {
            return;
        }
        self.note_window(packet);
        self.note_ack(time, packet);
        let fin = packet.has(TcpFlags::FIN);
        if packet.len > 0 && packet.end() > self.next.max(1) {
            self.send_data(time, packet, fin);
        }
        if fin && self.host.finished.is_none() {
            self.host.finished = Some(self.cause(time));
        }
    }

    fn note_window(&mut self, packet: &Passed) {
        if self.host.first_window == 0 {
            self.host.first_window = packet.window;
        }
        self.host.largest_window = self.host.largest_window.max(packet.window);
    }

    fn note_ack(&mut self, time: i64, packet: &Passed) {
        if let (Some((since, count)), true) = (self.unacknowledged.take(), packet.ack.is_some())
            && count == 1
            && packet.is_pure_ack()
        {
            self.host.ack_holds.push(time - since);
        }
    }

    fn send_data(&mut self, time: i64, packet: &Passed, fin: bool) {
        // What is missing in between was lost on its way here, and had been written before.
        let start = self.next.max(1);
        let is_small = !(packet.end() - start).is_multiple_of(self.mss);
        let is_limited = self.edge.saturating_sub(packet.end()) < self.mss.min(SLIVER);
        if !(self.is_going_on && self.goes_on(time)) {
            self.begin(time, start, packet.end());
        }
        if let Some(piece) = self.host.pieces.last_mut() {
            piece.end = packet.end() - 1;
        }
        if is_small && !is_limited && !fin && self.small_end > self.una && self.una > 0 {
            self.host.undelayed += 1;
        }
        if is_small {
            self.small_end = packet.end();
        }
        self.note_flight(packet, is_small || is_limited);
        self.next = packet.end();
        self.is_window_full = is_limited;
        self.is_going_on = (!is_small || is_limited) && !fin;
    }

    /// Full segments before the first acknowledgement of data; nothing is known where something else ended the flight.
    fn note_flight(&mut self, packet: &Passed, is_ended: bool) {
        let full = u32::try_from(u64::from(packet.len) / self.mss).unwrap_or(0);
        if self.una <= 1 {
            let before = if self.next <= 1 { Some(0) } else { self.host.first_flight };
            self.host.first_flight = before.filter(|_| !is_ended).map(|flight| flight + full);
        }
    }

    /// Whether the data that leaves now belongs to the piece before: it does unless the program alone can explain why it
    /// comes so late.
    fn goes_on(&self, time: i64) -> bool {
        let is_idle = self.una >= self.next;
        let Some((released, _, _)) = self.released else { return true };
        let is_released = time - released <= self.reaction;
        let last = self.host.pieces.last().map_or(0, |piece| piece.sent);
        !(is_idle && !is_released && time - last > PAUSE)
    }

    fn begin(&mut self, time: i64, start: u64, end: u64) {
        let cause = self.cause(time);
        let is_window_full = self.is_window_full;
        let in_time = |since: i64| time - since <= self.reaction;
        // It left on an ACK alone, that of everything or that which opened the window; the program had no other reason.
        let is_let_go = self.released.is_some_and(|(since, all, alone)| {
            in_time(since) && alone && (all || is_window_full) && since > self.written
        });
        let is_small_before = self.small_end == self.next;
        let can_be_held = !self.nagle_off && is_small_before || is_window_full;
        let is_held =
            matches!(cause, Cause::Itself(_)) && is_let_go && can_be_held && !self.host.pieces.is_empty();
        let cause = if is_held { Cause::Itself(0) } else { cause };
        let piece = Piece { start: start - 1, end: end - 1, sent: time, cause, is_held, is_corked: false };
        self.host.pieces.push(piece);
        if !is_held {
            self.written = time;
        }
        self.read_then = self.read;
    }

    /// Why the program does something now.
    fn cause(&self, time: i64) -> Cause {
        if self.read > self.read_then {
            Cause::Read(self.read, (time - self.read_at).max(0))
        } else {
            Cause::Itself((time - self.written).max(0))
        }
    }
}
