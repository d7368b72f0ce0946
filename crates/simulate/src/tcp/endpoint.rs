//! One end of a connection: the state machine (RFC 9293 section 3.10) around a sender and a receiver.

use std::collections::VecDeque;
use std::ops::Range;

use fastrand::Rng;
use tcpwhy_wire::{SackBlocks, Tcp, TcpFlags, TcpOptions};

use super::info::{Event, EventKind, Info, State, Wait};
use super::offset::{from_wire, to_wire};
use super::receiver::{Data, Receiver, Sending};
use super::segment::{Ecn, Segment};
use super::sender::{Ack, Agreed, Chunk, Clock, Sender, nanos};
use super::stack::{Buffer, EcnUse, SocketOption, Stack};

/// A TCP endpoint in virtual time. Times are ns of any clock that does not go back.
///
/// Segments that it wants to send wait in a queue until [`Self::poll_transmit`] takes them; ask after every call.
#[derive(Debug)]
pub struct Endpoint {
    stack: Stack,
    state: State,
    initial: u32,
    peer_initial: u32,
    sender: Sender,
    receiver: Receiver,
    agreed: Agreed,
    clock: Clock,
    /// The peer's latest timestamp (RFC 7323 section 4.3).
    recent: u32,
    /// Whether the peer offered window scaling.
    peer_scales: bool,
    peer_scale: u8,
    own_scale: u8,
    /// The ACK number that was last sent, as an offset: it decides whose timestamp is echoed.
    last_acknowledged: u64,
    time_wait_until: Option<u64>,
    /// The program has closed: arriving data is answered by a reset (RFC 9293 3.6.1).
    deaf: bool,
    out: VecDeque<Segment>,
    events: VecDeque<Event>,
}

/// Twice the maximum segment lifetime, as Linux has it: 60 s.
const TIME_WAIT: u64 = 60_000_000_000;
/// Events kept for a caller who does not ask.
const MOST_EVENTS: usize = 65_536;
/// The MSS of a peer that names none (RFC 9293 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Bytes that timestamps take of every segment.
const TIMESTAMPS: u32 = 12;

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
                self.receiver.set_quick(on);
                if on && self.receiver.poll_at().is_some() {
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
            State::SynSent | State::Listen => self.state = State::Closed,
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
            State::Closed => {}
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

    /// The first byte that the peer has not acknowledged; an offset, the SYN being 0.
    pub fn acknowledged_offset(&self) -> u64 {
        self.sender.una()
    }

    /// The first byte that was not yet sent; an offset, the SYN being 0.
    pub fn next_offset(&self) -> u64 {
        self.sender.next()
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

    fn handle_in_listen(&mut self, now: u64, segment: &Segment) {
        let is_syn = segment.has(TcpFlags::SYN) && !segment.tcp.flags.has(TcpFlags::ACK | TcpFlags::RST);
        if is_syn {
            self.meet(segment);
            self.state = State::SynReceived;
            self.sender.connect(now);
        }
    }

    fn handle_in_syn_sent(&mut self, now: u64, segment: &Segment) {
        let acknowledges = segment.has(TcpFlags::ACK) && segment.tcp.ack == to_wire(1, self.initial);
        if segment.has(TcpFlags::RST) {
            if acknowledges {
                self.end();
            }
            return;
        }
        if !segment.has(TcpFlags::SYN) {
            return;
        }
        self.meet(segment);
        if acknowledges {
            self.state = State::Established;
            self.take_ack(now, segment, &[]);
            self.acknowledge(now);
        } else {
            // Both opened at once (RFC 9293 3.5, figure 7): the SYN is sent again with its ACK.
            self.state = State::SynReceived;
            self.push_control(now, TcpFlags::SYN | TcpFlags::ACK, 0);
        }
    }

    /// The peer's SYN says what it can.
    fn meet(&mut self, segment: &Segment) {
        let theirs = &segment.tcp.options;
        let is_answer = segment.has(TcpFlags::ACK);
        self.peer_initial = segment.tcp.seq;
        let mss = theirs.mss.unwrap_or(DEFAULT_MSS).min(self.stack.mss);
        let has_timestamps = self.stack.timestamps.is_some() && theirs.timestamps.is_some();
        self.peer_scales = theirs.window_scale.is_some();
        let both_scale = self.stack.window_scale.zip(theirs.window_scale);
        (self.own_scale, self.peer_scale) =
            both_scale.map_or((0, 0), |(own, theirs)| (own.min(14), theirs.min(14)));
        let echo_bits = if is_answer { TcpFlags::ECE } else { TcpFlags::ECE | TcpFlags::CWR };
        let asks = segment.tcp.flags.0 & (TcpFlags::ECE | TcpFlags::CWR) == echo_bits;
        let has_ecn = match self.stack.ecn {
            None => false,
            Some(EcnUse::Asks) => asks,
            Some(EcnUse::Accepts) => asks && !is_answer,
        };
        self.recent = theirs.timestamps.map_or(0, |(value, _)| value);
        let overhead = if has_timestamps { TIMESTAMPS } else { 0 };
        self.agreed = Agreed {
            mss: u32::from(mss).saturating_sub(overhead).max(1),
            sack: self.stack.sack && theirs.sack_permitted,
            timestamps: has_timestamps.then_some(self.clock),
            ecn: has_ecn,
        };
        self.sender.agree(self.agreed);
        self.receiver.begin(self.agreed.mss, self.own_scale);
    }

    fn handle_in_connection(&mut self, now: u64, segment: &Segment) {
        let start = from_wire(segment.tcp.seq, self.peer_initial, self.receiver.next());
        if segment.has(TcpFlags::RST) {
            if start == self.receiver.next() {
                self.end();
            }
            return;
        }
        if segment.has(TcpFlags::SYN) {
            // The SYN, or the answer to it, once more: what was answered is answered again (RFC 5961 section 4).
            return if self.state == State::SynReceived && !segment.has(TcpFlags::ACK) {
                self.push_control(now, TcpFlags::SYN | TcpFlags::ACK, 0);
            } else {
                self.take_ack(now, segment, &[]);
                self.leave_syn_received();
                self.acknowledge(now);
            };
        }
        if !segment.has(TcpFlags::ACK) {
            return;
        }
        self.note_timestamp(segment, start);
        let blocks = self.sack_blocks(segment);
        self.take_ack(now, segment, &blocks);
        self.leave_syn_received();
        self.take_data(now, segment, start);
        self.follow_fins(now);
    }

    fn leave_syn_received(&mut self) {
        if self.state == State::SynReceived && self.sender.una() > 0 {
            self.state = State::Established;
        }
    }

    /// RFC 7323 4.3: the timestamp of the segment that spans the last ACK is echoed.
    fn note_timestamp(&mut self, segment: &Segment, start: u64) {
        if let Some((value, _)) = segment.tcp.options.timestamps {
            let is_newer = value.wrapping_sub(self.recent).cast_signed() >= 0;
            if is_newer && start <= self.last_acknowledged {
                self.recent = value;
            }
        }
    }

    fn sack_blocks(&self, segment: &Segment) -> Vec<Range<u64>> {
        let near = self.sender.una();
        let offset = |wire| from_wire(wire, self.initial, near);
        let blocks = segment.tcp.options.sack.as_slice().iter();
        let blocks = blocks.map(|(left, right)| offset(*left)..offset(*right));
        blocks.filter(|block| block.start < block.end && block.end <= self.sender.next()).collect()
    }

    fn take_ack(&mut self, now: u64, segment: &Segment, blocks: &[Range<u64>]) {
        let is_syn = segment.has(TcpFlags::SYN);
        // A SYN's window is not scaled (RFC 7323 2.2).
        let scale = if is_syn { 0 } else { self.peer_scale };
        let sequence = from_wire(segment.tcp.seq, self.peer_initial, self.receiver.next());
        self.sender.handle_ack(
            now,
            &Ack {
                number: from_wire(segment.tcp.ack, self.initial, self.sender.una()),
                window: u64::from(segment.tcp.window) << scale,
                sequence,
                occupies: segment.sequence_len() > 0,
                sacks: blocks,
                echo: segment.tcp.options.timestamps.map(|(_, echo)| echo),
                congestion_echo: segment.has(TcpFlags::ECE) && !is_syn,
            },
        );
    }

    fn take_data(&mut self, now: u64, segment: &Segment, start: u64) {
        let fin = segment.has(TcpFlags::FIN);
        // An empty segment below the window asks for the window: it is a probe (RFC 9293 3.8.6.1).
        let is_probe = segment.tcp.payload_len == 0 && !fin && start < self.receiver.next();
        if is_probe {
            return self.acknowledge(now);
        }
        if segment.tcp.payload_len == 0 && !fin {
            return;
        }
        if self.deaf
            && segment.tcp.payload_len > 0
            && start + u64::from(segment.tcp.payload_len) > self.receiver.next()
        {
            let number = self.sender.next();
            self.push_control(now, TcpFlags::RST, number);
            return self.end();
        }
        let sending = self.sending();
        let data = Data {
            start,
            len: segment.tcp.payload_len,
            fin,
            push: segment.has(TcpFlags::PSH),
            header: 20 + u32::from(segment.options_len()),
            congestion: self.agreed.ecn && segment.ecn == Ecn::Ce,
            reduced: self.agreed.ecn && segment.has(TcpFlags::CWR),
        };
        self.receiver.handle_data(now, data, sending);
        if self.receiver.must_acknowledge(now, sending) {
            // What the sender may send now carries the acknowledgement.
            self.flush(now);
            if self.receiver.must_acknowledge(now, sending) {
                self.acknowledge(now);
            }
        }
    }

    fn sending(&self) -> Sending {
        Sending { round_trip: self.sender.smoothed_round_trip(), timeout: self.sender.timeout() }
    }

    /// RFC 9293 3.10.7.4: FINs sent, acknowledged and received.
    fn follow_fins(&mut self, now: u64) {
        let sent = self.sender.has_sent_fin();
        let acknowledged = self.sender.is_finished();
        let received = self.receiver.has_finished();
        let was = self.state;
        self.state = match (sent, acknowledged, received) {
            (false, _, false) => return,
            (false, _, true) => State::CloseWait,
            (true, false, false) => State::FinWait1,
            (true, true, false) => State::FinWait2,
            (true, false, true) if matches!(was, State::CloseWait | State::LastAck) => State::LastAck,
            (true, false, true) => State::Closing,
            (true, true, true) if matches!(was, State::CloseWait | State::LastAck) => return self.end(),
            (true, true, true) => State::TimeWait,
        };
        if self.state == State::TimeWait && was != State::TimeWait {
            self.time_wait_until = Some(now + TIME_WAIT);
        }
    }

    fn end(&mut self) {
        self.state = State::Closed;
        self.time_wait_until = None;
        self.sender.stop();
        self.receiver.stop();
    }

    /// A pure ACK leaves now.
    fn acknowledge(&mut self, now: u64) {
        self.flush(now);
        let number = self.sender.next();
        self.push_control(now, TcpFlags::ACK, number);
    }

    /// Dresses what the sender wants to send.
    fn flush(&mut self, now: u64) {
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

    fn push_chunk(&mut self, now: u64, chunk: &Chunk) {
        let is_first_syn = chunk.syn && self.state == State::SynSent;
        let mut flags = if is_first_syn { 0 } else { TcpFlags::ACK };
        flags |= if chunk.syn { TcpFlags::SYN } else { 0 };
        flags |= if chunk.fin { TcpFlags::FIN } else { 0 };
        flags |= if chunk.push && chunk.payload > 0 { TcpFlags::PSH } else { 0 };
        flags |= if chunk.reduced { TcpFlags::CWR } else { 0 };
        let mut segment = self.dressed(now, flags, chunk.start);
        segment.tcp.payload_len = chunk.payload;
        // RFC 3168 6.1.5: retransmissions are not ECN-capable; 6.1.1: nor are SYNs.
        if self.agreed.ecn && chunk.payload > 0 && !chunk.repeat {
            segment.ecn = Ecn::Ect0;
        }
        self.out.push_back(segment);
    }

    fn push_control(&mut self, now: u64, flags: u16, offset: u64) {
        let segment = self.dressed(now, flags, offset);
        self.out.push_back(segment);
    }

    /// A segment with acknowledgement, window and options.
    fn dressed(&mut self, now: u64, flags: u16, offset: u64) -> Segment {
        let is_syn = flags & TcpFlags::SYN != 0;
        let has_ack = flags & TcpFlags::ACK != 0;
        let mut tcp = Tcp { seq: to_wire(offset, self.initial), flags: TcpFlags(flags), ..Tcp::default() };
        if is_syn {
            tcp.options = self.syn_options(now, has_ack);
            tcp.flags.0 |= self.ecn_flags(has_ack);
        } else if self.agreed.timestamps.is_some() {
            tcp.options.timestamps = Some((self.clock.at(now), self.recent));
        }
        if flags & TcpFlags::RST != 0 {
            tcp.options = TcpOptions::default();
            tcp.ack = if has_ack { to_wire(self.receiver.next(), self.peer_initial) } else { 0 };
            return Segment { tcp, ecn: Ecn::NotCapable };
        }
        let payload_follows = !is_syn && offset < self.sender.next();
        let (waited, window) = self.receiver.acknowledge(now, payload_follows);
        let scale = if is_syn { 0 } else { self.own_scale };
        tcp.window = (window >> scale).min(65_535) as u16;
        if has_ack {
            tcp.ack = to_wire(self.receiver.next(), self.peer_initial);
            self.last_acknowledged = self.receiver.next();
            if self.agreed.sack && !is_syn {
                tcp.options.sack = self.blocks_to_send(tcp.options.timestamps.is_some());
            }
            if self.receiver.echoes() && !is_syn {
                tcp.flags.0 |= TcpFlags::ECE;
            }
        }
        if let Some(waited) = waited.filter(|waited| *waited > 0) {
            self.events.push_back(Event { time: now, kind: EventKind::DelayedAck { waited } });
        }
        Segment { tcp, ecn: Ecn::NotCapable }
    }

    fn syn_options(&self, now: u64, is_answer: bool) -> TcpOptions {
        TcpOptions {
            mss: Some(self.stack.mss),
            window_scale: self.stack.window_scale.filter(|_| !is_answer || self.peer_scales),
            sack_permitted: self.stack.sack && (!is_answer || self.agreed.sack),
            timestamps: self
                .stack
                .timestamps
                .filter(|_| !is_answer || self.agreed.timestamps.is_some())
                .map(|_| (self.clock.at(now), if is_answer { self.recent } else { 0 })),
            sack: SackBlocks::default(),
        }
    }

    /// RFC 3168 6.1.1: ECE and CWR ask, ECE alone agrees.
    fn ecn_flags(&self, is_answer: bool) -> u16 {
        match self.stack.ecn {
            Some(EcnUse::Asks) if !is_answer => TcpFlags::ECE | TcpFlags::CWR,
            Some(_) if is_answer && self.agreed.ecn => TcpFlags::ECE,
            _ => 0,
        }
    }

    /// As many blocks as fit beside the timestamps (RFC 2018 section 3).
    fn blocks_to_send(&mut self, with_timestamps: bool) -> SackBlocks {
        let most = if with_timestamps { 3 } else { 4 };
        let mut blocks = SackBlocks::default();
        for block in self.receiver.blocks(most) {
            blocks.push(to_wire(block.start, self.peer_initial), to_wire(block.end, self.peer_initial));
        }
        blocks
    }
}
