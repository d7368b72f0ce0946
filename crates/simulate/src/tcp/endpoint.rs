//! One end of a connection: the state machine (RFC 9293 section 3.10) around a sender and a receiver.

use std::collections::VecDeque;

use fastrand::Rng;
use tcpwhy_wire::TcpFlags;

use super::info::{Event, Info, State, Wait};
use super::receiver::Receiver;
use super::segment::Segment;
use super::sender::{Agreed, Clock, Sender, nanos};
use super::stack::{Buffer, SocketOption, Stack};

/// A TCP endpoint in virtual time. Times are ns of any clock that does not go back.
///
/// Segments that it wants to send wait in a queue until [`Self::poll_transmit`] takes them; ask after every call.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) stack: Stack,
    pub(super) state: State,
    pub(super) initial: u32,
    pub(super) peer_initial: u32,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) agreed: Agreed,
    pub(super) clock: Clock,
    /// The peer's latest timestamp (RFC 7323 section 4.3).
    pub(super) recent: u32,
    /// Whether the peer offered window scaling.
    pub(super) peer_scales: bool,
    pub(super) peer_scale: u8,
    pub(super) own_scale: u8,
    /// The ACK number that was last sent, as an offset: it decides whose timestamp is echoed.
    pub(super) last_acknowledged: u64,
    pub(super) time_wait_until: Option<u64>,
    /// The program has closed: arriving data is answered by a reset (RFC 9293 3.6.1).
    pub(super) deaf: bool,
    pub(super) out: VecDeque<Segment>,
    pub(super) events: VecDeque<Event>,
}

/// Events kept for a caller who does not ask.
const MOST_EVENTS: usize = 65_536;

impl Endpoint {
    /// A closed endpoint. The seed decides its initial sequence number, its timestamps and the phase of its timers.
    pub fn new(stack: &Stack, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let initial = rng.u32(..);
        let tick = stack.timestamps.map_or(1_000_000, nanos);
        Self {
            state: State::Closed,
            initial,
            peer_initial: 0,
            sender: Sender::new(&stack.sender, stack.ticks),
            receiver: Receiver::new(&stack.receiver, stack.ticks, u32::from(stack.mss), rng.u64(..)),
            agreed: Agreed::default(),
            clock: Clock { tick, base: rng.u32(..) },
            recent: 0,
            peer_scales: false,
            peer_scale: 0,
            own_scale: 0,
            last_acknowledged: 0,
            time_wait_until: None,
            deaf: false,
            out: VecDeque::new(),
            events: VecDeque::new(),
            stack: stack.clone(),
        }
    }

    /// Waits for a SYN. Does nothing unless closed.
    pub fn listen(&mut self) {
        if self.state == State::Closed {
            self.state = State::Listen;
        }
    }

    /// Sends a SYN. Does nothing unless closed.
    pub fn connect(&mut self, now: u64) {
        if self.state == State::Closed {
            self.state = State::SynSent;
            self.sender.connect(now);
            self.flush(now);
        }
    }

    /// The program sets an option.
    pub fn set(&mut self, now: u64, option: SocketOption) {
        match option {
            SocketOption::ReceiveBuffer(bytes) => {
                self.stack.receiver.buffer = Buffer::Fixed(bytes);
                self.receiver.set_buffer(bytes);
            }
            SocketOption::QuickAck(on) => {
                if self.receiver.set_quick(on) {
                    self.acknowledge(now);
                }
            }
            _ => self.sender.set(now, option),
        }
        self.flush(now);
    }

    /// The program writes `len` bytes; returns how many the send buffer takes. `more` is `MSG_MORE`. Before the
    /// handshake is over, data waits.
    pub fn handle_write(&mut self, now: u64, len: u64, more: bool) -> u64 {
        let can_write =
            matches!(self.state, State::SynSent | State::SynReceived | State::Established | State::CloseWait);
        let taken = if can_write { self.sender.handle_write(now, len, more) } else { 0 };
        self.flush(now);
        taken
    }

    /// The program reads up to `most` bytes; returns how many there were.
    pub fn handle_read(&mut self, now: u64, most: u64) -> u64 {
        let (taken, must_acknowledge) = self.receiver.handle_read(now, most);
        if must_acknowledge {
            self.acknowledge(now);
        }
        taken
    }

    /// The program will write no more: a FIN follows what is written.
    pub fn handle_shutdown(&mut self, now: u64) {
        match self.state {
            State::Established | State::SynReceived | State::CloseWait => self.sender.finish(now),
            State::SynSent | State::Listen => self.end(),
            _ => {}
        }
        self.flush(now);
    }

    /// The program closes its socket. Data that it has not read makes this a reset (RFC 2525 2.17).
    pub fn handle_close(&mut self, now: u64) {
        self.deaf = true;
        if self.receiver.readable() > 0 { self.handle_abort(now) } else { self.handle_shutdown(now) }
    }

    /// The program aborts the connection with a reset (RFC 9293 3.10.5).
    pub fn handle_abort(&mut self, now: u64) {
        let has_peer =
            !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::TimeWait);
        if has_peer {
            let number = self.sender.next();
            self.push_control(now, TcpFlags::RST | TcpFlags::ACK, number);
        }
        self.end();
    }

    /// A segment arrives.
    pub fn handle_segment(&mut self, now: u64, segment: &Segment) {
        match self.state {
            State::Closed => self.refuse(segment),
            State::Listen => self.handle_in_listen(now, segment),
            State::SynSent => self.handle_in_syn_sent(now, segment),
            _ => self.handle_in_connection(now, segment),
        }
        self.flush(now);
    }

    /// Deadlines up to `now` are over.
    pub fn handle_timer(&mut self, now: u64) {
        if self.receiver.handle_timer(now, self.sender.timeout()) {
            self.acknowledge(now);
        }
        if self.sender.handle_timer(now) {
            self.end();
        }
        if self.time_wait_until.is_some_and(|until| until <= now) {
            self.end();
        }
        self.flush(now);
    }

    /// When [`Self::handle_timer`] is to be called next, in ns.
    pub fn poll_at(&self) -> Option<u64> {
        [self.sender.poll_at(), self.receiver.poll_at(), self.time_wait_until].into_iter().flatten().min()
    }

    /// The next segment to send.
    pub fn poll_transmit(&mut self) -> Option<Segment> {
        self.out.pop_front()
    }

    /// The next thing that happened. The oldest are forgotten where nobody asks for 65,536 of them.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Where the connection is in its life.
    pub fn state(&self) -> State {
        self.state
    }

    /// Bytes that the program can read.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// Whether the peer has finished and everything before has arrived: a read gives end of file after
    /// [`Self::readable`] bytes.
    pub fn is_at_end(&self) -> bool {
        self.receiver.has_finished() || self.state == State::Closed
    }

    /// Bytes that a program that blocks may write now: zero until a third of a full send buffer is free again.
    pub fn writable(&self) -> u64 {
        match self.state {
            State::Established | State::CloseWait => self.sender.writable(),
            _ => 0,
        }
    }

    /// What the sender waits for.
    pub fn wait(&self) -> Wait {
        self.sender.wait()
    }

    /// Since when an acknowledgement is being delayed here, in ns.
    pub fn delays_ack_since(&self) -> Option<u64> {
        self.receiver.holds_since()
    }

    /// The first byte of the peer's that it may not send, if it were acknowledged now what has arrived here; an offset,
    /// the SYN being 0.
    pub fn would_offer_up_to(&self) -> u64 {
        self.receiver.would_offer_up_to()
    }

    /// The first byte that the peer has not acknowledged; an offset, the SYN being 0.
    pub fn acknowledged_offset(&self) -> u64 {
        self.sender.una()
    }

    /// The first byte that was not yet sent; an offset, the SYN being 0.
    pub fn next_offset(&self) -> u64 {
        self.sender.next()
    }

    /// Segments sent and not acknowledged.
    pub fn in_flight(&self) -> u32 {
        self.sender.in_flight()
    }

    /// The initial sequence number, modulo 2^32.
    pub fn initial_sequence(&self) -> u32 {
        self.initial
    }

    /// Numbers, as `TCP_INFO` would give them.
    pub fn info(&self) -> Info {
        let mut info = Info::new(self.state);
        self.sender.fill(&mut info);
        info.received = self.receiver.received();
        info
    }

    pub(super) fn end(&mut self) {
        self.state = State::Closed;
        self.time_wait_until = None;
        self.sender.stop();
        self.receiver.stop();
    }

    /// An ACK leaves now: a pure one, unless there is something that carries it.
    pub(super) fn acknowledge(&mut self, now: u64) {
        let before = self.out.len();
        self.flush(now);
        if self.out.len() == before {
            let number = self.sender.next();
            self.push_control(now, TcpFlags::ACK, number);
        }
    }

    /// Dresses what the sender wants to send.
    pub(super) fn flush(&mut self, now: u64) {
        while let Some(chunk) = self.sender.poll_transmit() {
            self.push_chunk(now, &chunk);
        }
        let sent_fin = self.sender.has_sent_fin();
        if sent_fin && matches!(self.state, State::Established | State::SynReceived | State::CloseWait) {
            self.follow_fins(now);
        }
        for event in self.sender.drain_events() {
            self.events.push_back(event);
        }
        while self.events.len() > MOST_EVENTS {
            self.events.pop_front();
        }
    }
}
