//! The sending half: what may leave, when, and what is sent again.
//!
//! `output` decides what leaves; `loss` what is lost, `repair` what an ACK means, `reduction` what becomes of the
//! window; `timers` what time does, `offload` what goes to the device at once. `flight` is the scoreboard, `window` the
//! congestion window (with `cubic`), `round_trip` the timeout. All offsets are those of [`super::offset`].

mod cubic;
mod flight;
mod loss;
mod offload;
mod output;
mod reduction;
mod repair;
mod round_trip;
mod timers;
mod window;

use std::collections::VecDeque;
use std::ops::Range;

use flight::Flight;
use loss::Rack;
use repair::Repairing;
use round_trip::RoundTrip;
pub(crate) use round_trip::nanos;
use timers::Timers;
use window::Window;

use super::info::{CongestionState, Event, EventKind, Wait};
use super::stack::{Sending, SocketOption, Ticks};

/// A segment that leaves; the endpoint adds acknowledgement, window and options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) payload: u32,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) push: bool,
    /// Whether it was sent before.
    pub(super) repeat: bool,
    /// Whether it says that the window was reduced (RFC 3168 6.1.2).
    pub(super) reduced: bool,
}

/// What the peer's segment says to the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack<'a> {
    /// Everything before this offset has arrived.
    pub(super) number: u64,
    /// The window, in bytes.
    pub(super) window: u64,
    /// The segment's own place in the peer's stream: older ones do not change the window (RFC 9293 3.10.7.4).
    pub(super) sequence: u64,
    /// It carries data, SYN or FIN: no duplicate ACK (RFC 5681 section 2).
    pub(super) occupies: bool,
    /// SACK blocks.
    pub(super) sacks: &'a [Range<u64>],
    /// The echoed timestamp (RFC 7323).
    pub(super) echo: Option<u32>,
    /// ECN echo.
    pub(super) congestion_echo: bool,
}

/// The peer's window.
#[derive(Debug, Default)]
struct PeerWindow {
    /// The first offset that must not be sent.
    edge: u64,
    /// The largest window so far, in bytes.
    largest: u64,
    sequence: u64,
    number: u64,
}

/// What was agreed on in the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    /// Payload bytes of a full segment.
    pub(super) mss: u32,
    pub(super) sack: bool,
    pub(super) timestamps: Option<Clock>,
    pub(super) ecn: bool,
}

/// The clock of timestamps (RFC 7323 section 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// ns.
    pub(super) tick: u64,
    /// Its value at time zero.
    pub(super) base: u32,
}

impl Clock {
    /// The timestamp of `now` (ns).
    pub(super) fn at(self, now: u64) -> u32 {
        self.base.wrapping_add((now / self.tick.max(1)) as u32)
    }
}

/// What the program has asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Wishes {
    no_delay: bool,
    cork: bool,
}

#[derive(Debug)]
pub(super) struct Sender {
    settings: Sending,
    agreed: Agreed,
    wishes: Wishes,
    send_buffer: Option<u64>,
    /// The first unacknowledged offset, and the first that was never sent (RFC 9293 3.3.1).
    una: u64,
    next: u64,
    /// The end of what the program has written.
    written: u64,
    /// The program has finished: a FIN follows what is written.
    finished: bool,
    /// Ends of writes that have not been acknowledged: they are pushed.
    pushes: VecDeque<u64>,
    peer: PeerWindow,
    flight: Flight,
    window: Window,
    round_trip: RoundTrip,
    repairing: Repairing,
    rack: Option<Rack>,
    /// Reordering was seen (RFC 8985 6.2 step 3).
    reordering_seen: bool,
    timers: Timers,
    /// End of the last small segment (Minshall).
    small_end: u64,
    /// What was written before this leaves whatever Nagle and corks say (Linux's `TCP_NAGLE_PUSH`).
    pushed_end: u64,
    /// When data was last sent, and when the peer was last heard, in ns.
    last_sent: u64,
    last_heard: u64,
    /// Until when the device is busy with the last segment, in ns (autocorking).
    device_busy: u64,
    /// A byte that was sent into a closed window.
    probed: Option<u64>,
    /// The next new segment says that the window was reduced.
    say_reduced: bool,
    /// Why the sender last stopped.
    stopped: Wait,
    retransmitted: u32,
    out: VecDeque<Chunk>,
    events: Vec<Event>,
}

impl Sender {
    pub(super) fn new(settings: &Sending, ticks: Ticks) -> Self {
        Self {
            agreed: Agreed { mss: 536, ..Agreed::default() },
            wishes: Wishes::default(),
            send_buffer: settings.send_buffer,
            una: 0,
            next: 0,
            written: 1,
            finished: false,
            pushes: VecDeque::new(),
            peer: PeerWindow::default(),
            flight: Flight::default(),
            window: Window::new(settings),
            round_trip: RoundTrip::new(settings.timeout, ticks),
            repairing: Repairing::default(),
            rack: None,
            reordering_seen: false,
            timers: Timers::default(),
            small_end: 0,
            pushed_end: 0,
            last_sent: 0,
            last_heard: 0,
            device_busy: 0,
            probed: None,
            say_reduced: false,
            stopped: Wait::Handshake,
            retransmitted: 0,
            out: VecDeque::new(),
            events: Vec::new(),
            settings: settings.clone(),
        }
    }

    pub(super) fn agree(&mut self, agreed: Agreed) {
        self.agreed = agreed;
    }

    /// The program writes; returns how many bytes the buffer took. `more` is `MSG_MORE`.
    pub(super) fn handle_write(&mut self, now: u64, len: u64, more: bool) -> u64 {
        if self.finished {
            return 0;
        }
        let taken = len.min(self.room());
        if taken == 0 {
            return 0;
        }
        self.written += taken;
        // MSG_MORE says that the write is not the end of a message. A write that joins unsent data takes over its
        // push (tcp_sendmsg; BSD pushes what empties the buffer).
        if !more {
            while self.pushes.back().is_some_and(|push| *push > self.next) {
                self.pushes.pop_back();
            }
            self.pushes.push_back(self.written);
        }
        if taken < len {
            // A program that must wait for room holds nothing back meanwhile (tcp_sendmsg_locked pushes with
            // TCP_NAGLE_PUSH before it sleeps).
            self.pushed_end = self.written;
        }
        self.send(now, more && taken == len);
        taken
    }

    /// Bytes that the send buffer still takes.
    pub(super) fn room(&self) -> u64 {
        let used = self.written - self.una.max(1);
        self.send_buffer.map_or(u64::MAX / 2, |buffer| buffer.saturating_sub(used))
    }

    /// Bytes that a blocked program may write: Linux wakes it when a third of the buffer is free
    /// (`sk_stream_is_writeable`).
    pub(super) fn writable(&self) -> u64 {
        let used = self.written - self.una.max(1);
        let room = self.room();
        if room >= used / 2 { room } else { 0 }
    }

    pub(super) fn finish(&mut self, now: u64) {
        if !self.finished {
            self.finished = true;
            self.pushes.push_back(self.written);
            self.send(now, false);
        }
    }

    pub(super) fn set(&mut self, now: u64, option: SocketOption) {
        match option {
            SocketOption::NoDelay(on) => self.wishes.no_delay = on,
            SocketOption::Cork(on) => self.wishes.cork = on,
            SocketOption::SendBuffer(bytes) => self.send_buffer = Some(bytes),
            SocketOption::QuickAck(_) | SocketOption::ReceiveBuffer(_) => return,
        }
        // Setting TCP_NODELAY pushes what is pending, a cork notwithstanding (tcp(7)), and so does ending a cork where
        // it is set; else Nagle has its say.
        let lets_go = matches!(option, SocketOption::NoDelay(true) | SocketOption::Cork(false));
        if lets_go && self.wishes.no_delay {
            self.pushed_end = self.written;
        }
        if lets_go && self.next > 0 {
            self.send(now, false);
        }
    }

    /// The peer's segment says what it has and what it takes.
    pub(super) fn handle_ack(&mut self, now: u64, ack: &Ack<'_>) {
        self.last_heard = now;
        self.accept_probed_byte(ack.number);
        if ack.number > self.next {
            return;
        }
        let window_moved = self.update_window(ack);
        if ack.number >= self.una {
            self.repair(now, ack, window_moved);
        }
        self.send(now, false);
        self.arm_after_ack(now);
    }

    fn accept_probed_byte(&mut self, number: u64) {
        if self.probed.is_some_and(|probed| probed == self.next && number == probed + 1) {
            self.next += 1;
            self.una = self.una.max(self.next);
        }
        if self.peer.edge > self.next {
            self.probed = None;
        }
    }

    /// Whether the window changed.
    fn update_window(&mut self, ack: &Ack<'_>) -> bool {
        let is_newer = ack.sequence > self.peer.sequence
            || (ack.sequence == self.peer.sequence && ack.number >= self.peer.number)
            || ack.number > self.una;
        if !is_newer {
            return false;
        }
        let edge = ack.number + ack.window;
        let moved = edge != self.peer.edge;
        self.peer = PeerWindow {
            edge,
            largest: self.peer.largest.max(ack.window),
            sequence: ack.sequence,
            number: ack.number,
        };
        moved
    }

    /// What the sender waits for now.
    pub(super) fn wait(&self) -> Wait {
        let nothing_unsent = self.next >= self.end();
        match self.repairing.state() {
            _ if self.una == 0 => Wait::Handshake,
            _ if nothing_unsent && self.flight.is_empty() => Wait::Program,
            CongestionState::Loss if self.flight.lost() > 0 => Wait::Loss,
            CongestionState::Recovery => Wait::Recovery,
            _ if nothing_unsent => Wait::Acknowledgement,
            _ => self.stopped,
        }
    }

    /// The end of the stream as far as it is known: FIN included.
    fn end(&self) -> u64 {
        self.written + u64::from(self.finished)
    }

    pub(super) fn poll_transmit(&mut self) -> Option<Chunk> {
        self.out.pop_front()
    }

    pub(super) fn drain_events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    fn timestamp_of(&self, time: u64) -> Option<u32> {
        self.agreed.timestamps.map(|clock| clock.at(time))
    }

    fn note(&mut self, time: u64, kind: EventKind) {
        self.events.push(Event { time, kind });
    }

    pub(super) fn una(&self) -> u64 {
        self.una
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Segments sent and not acknowledged.
    pub(super) fn in_flight(&self) -> u32 {
        self.flight.len()
    }

    /// Whether all that was sent, FIN included, is acknowledged.
    pub(super) fn is_finished(&self) -> bool {
        self.finished && self.una == self.end()
    }

    /// Whether the FIN was sent.
    pub(super) fn has_sent_fin(&self) -> bool {
        self.finished && self.next == self.end()
    }

    /// Smoothed round trip in ns.
    pub(super) fn smoothed_round_trip(&self) -> Option<u64> {
        self.round_trip.smoothed()
    }

    /// The timeout in ns.
    pub(super) fn timeout(&self) -> u64 {
        self.round_trip.timeout()
    }

    /// Everything is over: no timer, nothing to send.
    pub(super) fn stop(&mut self) {
        self.timers = Timers::default();
        self.out.clear();
        self.written = self.next.max(1);
        self.una = self.next;
        self.flight = Flight::default();
    }

    pub(super) fn fill(&self, info: &mut super::Info) {
        use std::time::Duration;
        info.congestion_state = self.repairing.state();
        info.congestion_window = self.window.size;
        info.slow_start_threshold = self.window.threshold;
        info.unacknowledged = self.flight.len();
        info.sacked = self.flight.sacked() + self.repairing.duplicates();
        info.lost = self.flight.lost();
        info.retransmitting = self.flight.resent();
        info.retransmitted = self.retransmitted;
        info.backoff = self.round_trip.backoff();
        info.mss = self.agreed.mss;
        info.smoothed_round_trip = Duration::from_nanos(self.round_trip.smoothed().unwrap_or(0));
        info.round_trip_variation = Duration::from_nanos(self.round_trip.variation());
        info.timeout = Duration::from_nanos(self.round_trip.timeout());
        info.peer_window = self.peer.edge.saturating_sub(self.una);
        info.acknowledged = self.una.saturating_sub(1).min(self.written - 1);
        info.unsent = self.end().saturating_sub(self.next.max(1));
    }
}
