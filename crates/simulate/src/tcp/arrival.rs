//! A segment arrives (RFC 9293 section 3.10.7).

use std::ops::Range;

use tcpwhy_wire::{Tcp, TcpFlags};

use super::endpoint::Endpoint;
use super::info::State;
use super::offset::{from_wire, to_wire};
use super::receiver::{Data, Sending};
use super::segment::{Ecn, Segment};
use super::sender::{Ack, Agreed};
use super::stack::EcnUse;

/// Twice the maximum segment lifetime, as Linux has it: 60 s.
const TIME_WAIT: u64 = 60_000_000_000;
/// The MSS of a peer that names none (RFC 9293 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Bytes that timestamps take of every segment.
const TIMESTAMPS: u32 = 12;

impl Endpoint {
    /// There is no connection: a reset, unless it is one (RFC 9293 3.10.7.1).
    pub(super) fn refuse(&mut self, segment: &Segment) {
        if segment.has(TcpFlags::RST) {
            return;
        }
        let tcp = if segment.has(TcpFlags::ACK) {
            Tcp { seq: segment.tcp.ack, flags: TcpFlags(TcpFlags::RST), ..Tcp::default() }
        } else {
            let ack = segment.tcp.seq.wrapping_add(segment.sequence_len() as u32);
            Tcp { ack, flags: TcpFlags(TcpFlags::RST | TcpFlags::ACK), ..Tcp::default() }
        };
        self.out.push_back(Segment { tcp, ecn: Ecn::NotCapable });
    }

    pub(super) fn handle_in_listen(&mut self, now: u64, segment: &Segment) {
        if segment.has(TcpFlags::ACK) {
            self.refuse(segment);
        } else if segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::RST) {
            self.meet(segment);
            self.state = State::SynReceived;
            self.sender.connect(now);
        }
    }

    pub(super) fn handle_in_syn_sent(&mut self, now: u64, segment: &Segment) {
        let acknowledges = segment.has(TcpFlags::ACK) && segment.tcp.ack == to_wire(1, self.initial);
        if segment.has(TcpFlags::ACK) && !acknowledges {
            // Of another connection (RFC 9293 3.10.7.3, first).
            return self.refuse(segment);
        }
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
        self.receiver.begin(self.agreed.mss, overhead, self.own_scale);
    }

    pub(super) fn handle_in_connection(&mut self, now: u64, segment: &Segment) {
        let start = from_wire(segment.tcp.seq, self.peer_initial, self.receiver.next());
        if segment.has(TcpFlags::RST) {
            return self.take_reset(now, start);
        }
        if segment.has(TcpFlags::SYN) {
            return self.take_syn_again(now, segment);
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

    /// RFC 5961 section 3: exactly at the edge it is believed, elsewhere in the window it is asked about.
    fn take_reset(&mut self, now: u64, start: u64) {
        if start == self.receiver.next() {
            self.end();
        } else if self.receiver.may_take(start) {
            self.acknowledge(now);
        }
    }

    /// The SYN, or the answer to it, once more: what was answered is answered again (RFC 5961 section 4).
    fn take_syn_again(&mut self, now: u64, segment: &Segment) {
        match (self.state, segment.has(TcpFlags::ACK)) {
            (State::SynReceived, false) => self.push_control(now, TcpFlags::SYN | TcpFlags::ACK, 0),
            (State::SynReceived, true) => {
                self.take_ack(now, segment, &[]);
                self.leave_syn_received();
                self.acknowledge(now);
            }
            _ => self.acknowledge(now),
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
        // An empty segment below what was acknowledged asks for the window: it is a probe (RFC 9293 3.8.6.1). One
        // that is only late does not.
        let is_probe = segment.tcp.payload_len == 0 && !fin && start < self.last_acknowledged;
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
            may_answer: self.state == State::Established,
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
    pub(super) fn follow_fins(&mut self, now: u64) {
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
}
