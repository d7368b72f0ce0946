//! What a segment that leaves looks like: acknowledgement, window, options, ECN.

use tcpwhy_wire::{SackBlocks, Tcp, TcpFlags, TcpOptions};

use super::endpoint::Endpoint;
use super::info::{Event, EventKind, State};
use super::offset::to_wire;
use super::segment::{Ecn, Segment};
use super::sender::Chunk;
use super::stack::EcnUse;

impl Endpoint {
    /// What the sender wants to send.
    pub(super) fn push_chunk(&mut self, now: u64, chunk: &Chunk) {
        let is_first_syn = chunk.syn && self.state == State::SynSent;
        let mut flags = if is_first_syn { 0 } else { TcpFlags::ACK };
        flags |= if chunk.syn { TcpFlags::SYN } else { 0 };
        flags |= if chunk.fin { TcpFlags::FIN } else { 0 };
        flags |= if chunk.push && chunk.payload > 0 { TcpFlags::PSH } else { 0 };
        flags |= if chunk.reduced { TcpFlags::CWR } else { 0 };
        let mut segment = self.dressed(now, flags, chunk.start, chunk.payload);
        // RFC 3168 6.1.5: retransmissions are not ECN-capable; 6.1.1: nor are SYNs.
        if self.agreed.ecn && chunk.payload > 0 && !chunk.repeat {
            segment.ecn = Ecn::Ect0;
        }
        self.out.push_back(segment);
    }

    /// A segment without data.
    pub(super) fn push_control(&mut self, now: u64, flags: u16, offset: u64) {
        let segment = self.dressed(now, flags, offset, 0);
        self.out.push_back(segment);
    }

    /// A segment with acknowledgement, window and options.
    fn dressed(&mut self, now: u64, flags: u16, offset: u64, payload_len: u32) -> Segment {
        let is_syn = flags & TcpFlags::SYN != 0;
        let has_ack = flags & TcpFlags::ACK != 0;
        let seq = to_wire(offset, self.initial);
        let mut tcp = Tcp { seq, flags: TcpFlags(flags), payload_len, ..Tcp::default() };
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
        let (waited, window) = self.receiver.acknowledge(now, payload_len > 0);
        let scale = if is_syn { 0 } else { self.own_scale };
        tcp.window = (window >> scale).min(65_535) as u16;
        if has_ack {
            tcp.ack = to_wire(self.receiver.next(), self.peer_initial);
            self.last_acknowledged = self.receiver.next();
            if self.agreed.sack && !is_syn {
                tcp.options.sack = self.blocks_to_send(tcp.options.timestamps.is_some(), payload_len);
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

    /// As many blocks as fit beside the timestamps (RFC 2018 section 3) and the payload. (Linux sends shorter segments
    /// instead.)
    fn blocks_to_send(&mut self, with_timestamps: bool, payload: u32) -> SackBlocks {
        const HEAD: u32 = 4;
        const BLOCK: u32 = 8;
        let most = if with_timestamps { 3 } else { 4 };
        let room = self.agreed.mss.saturating_sub(payload).saturating_sub(HEAD) / BLOCK;
        let most = if payload > 0 { most.min(room as usize) } else { most };
        let mut blocks = SackBlocks::default();
        for block in self.receiver.blocks(most) {
            blocks.push(to_wire(block.start, self.peer_initial), to_wire(block.end, self.peer_initial));
        }
        blocks
    }
}
