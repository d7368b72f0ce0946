//! The state that both ends of a generated connection share with their script.

use std::collections::VecDeque;

use super::segment::{ACK, End, FIN, FULL, PSH, SYN, Segment};
use crate::random::Random;

/// Who sends a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The end that opened the connection.
    Client = 0,
    /// The end that was asked.
    Server = 1,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// How far away the ends are from the capture point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// From the capture point to the server and back, in µs.
    pub(crate) server_us: u64,
    /// From the capture point to the client and back, in µs.
    pub(crate) client_us: u64,
}

/// Sequence numbers and clocks of one connection, and its segments that are yet to be captured.
#[derive(Debug)]
pub(crate) struct Connection {
    ends: [End; 2],
    /// Next sequence number of each side.
    next: [u32; 2],
    /// Up to where each side has acknowledged the other's bytes.
    acked: [u32; 2],
    /// Last timestamp value that each side sent.
    stamped: [u32; 2],
    clock_offset: [u32; 2],
    /// How far the ends are.
    pub(crate) path: Path,
    /// Segments in order of time.
    pub(crate) pending: VecDeque<Segment>,
}

impl Connection {
    /// A connection that has not sent anything.
    pub(crate) fn new(client: End, server: End, path: Path, random: &mut Random) -> Self {
        let bits = random.bits();
        let offsets = random.bits();
        let next = [bits as u32, (bits >> 32) as u32];
        Self {
            ends: [client, server],
            next,
            acked: [next[1], next[0]],
            stamped: [0; 2],
            clock_offset: [offsets as u32, (offsets >> 32) as u32],
            path,
            pending: VecDeque::new(),
        }
    }

    /// Next sequence number that `side` will use.
    pub(crate) fn next_seq(&self, side: Side) -> u32 {
        self.next[side as usize]
    }

    fn emit(&mut self, time_us: u64, side: Side, seq: u32, flags: u8, payload: u16) -> &mut Segment {
        let (me, peer) = (side as usize, side.other() as usize);
        // A timestamp clock of 1 ms, as Linux has.
        let stamp = ((time_us / 1000) as u32).wrapping_add(self.clock_offset[me]);
        self.stamped[me] = stamp;
        self.pending.push_back(Segment {
            time_us,
            from: self.ends[me],
            to: self.ends[peer],
            seq,
            ack: if flags & ACK == 0 { 0 } else { self.acked[me] },
            flags,
            payload,
            timestamps: (stamp, self.stamped[peer]),
            sack: None,
        });
        self.pending.back_mut().expect("a segment was just pushed")
    }

    /// SYN, SYN-ACK, ACK; returns when the last of them passes.
    pub(crate) fn handshake(&mut self, time_us: u64) -> u64 {
        let (client, server) = (self.next[0], self.next[1]);
        let answered = time_us + self.path.server_us;
        self.emit(time_us, Side::Client, client, SYN, 0);
        self.next[0] = client.wrapping_add(1);
        self.acked[1] = self.next[0];
        self.emit(answered, Side::Server, server, SYN | ACK, 0);
        self.next[1] = server.wrapping_add(1);
        self.ack(answered + self.path.client_us, Side::Client);
        answered + self.path.client_us
    }

    /// New data of `bytes` bytes, in full segments `gap_us` apart; returns when the last of them passes.
    pub(crate) fn send(&mut self, time_us: u64, side: Side, bytes: u64, gap_us: u64) -> u64 {
        let (mut time, mut left) = (time_us, bytes);
        while left > 0 {
            let size = left.min(u64::from(FULL));
            left -= size;
            let seq = self.next[side as usize];
            // Whoever sends data acknowledges all it has got with it.
            self.acked[side as usize] = self.next[side.other() as usize];
            self.emit(time, side, seq, if left == 0 { ACK | PSH } else { ACK }, size as u16);
            self.next[side as usize] = seq.wrapping_add(size as u32);
            time += gap_us;
        }
        time - gap_us
    }

    /// Data that was sent before, once more.
    pub(crate) fn resend(&mut self, time_us: u64, side: Side, seq: u32, bytes: u16) {
        self.emit(time_us, side, seq, ACK | PSH, bytes);
    }

    /// A pure ACK of all that the other side has sent.
    pub(crate) fn ack(&mut self, time_us: u64, side: Side) {
        self.ack_up_to(time_us, side, self.next[side.other() as usize]);
    }

    /// A pure ACK of what the other side has sent before `seq`.
    pub(crate) fn ack_up_to(&mut self, time_us: u64, side: Side, seq: u32) {
        self.acked[side as usize] = seq;
        self.emit(time_us, side, self.next[side as usize], ACK, 0);
    }

    /// A duplicate ACK that reports `sack` as received.
    pub(crate) fn duplicate_ack(&mut self, time_us: u64, side: Side, sack: (u32, u32)) {
        self.emit(time_us, side, self.next[side as usize], ACK, 0).sack = Some(sack);
    }

    /// FIN from the client, FIN from the server, the last ACK.
    pub(crate) fn close(&mut self, time_us: u64) {
        let answered = time_us + self.path.server_us;
        for (time, side) in [(time_us, Side::Client), (answered, Side::Server)] {
            let seq = self.next[side as usize];
            self.acked[side as usize] = self.next[side.other() as usize];
            self.emit(time, side, seq, FIN | ACK, 0);
            self.next[side as usize] = seq.wrapping_add(1);
        }
        self.ack(answered + self.path.client_us, Side::Client);
    }
}
