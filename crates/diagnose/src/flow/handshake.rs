//! SYN, SYN-ACK, ACK: who is the client, what windows and options count, how far each end is.

use tcpwhy_wire::{Socket, Tcp, TcpFlags};

use super::connection::Connection;
use super::fact::{Cause, End, Fact, Facts, Wait};
use super::half::NEVER;
use super::sequence;
use super::trouble::Answered;

impl Connection {
    pub(crate) fn handle_syn(&mut self, number: u64, tcp: &Tcp, from: End, now: i64, facts: &mut impl Facts) {
        let is_answer = tcp.flags.has(TcpFlags::ACK);
        let client = if is_answer { 1 - from } else { from };
        self.take_client(client);
        let half = &mut self.halves[from];
        if is_answer && half.bytes == 0 && self.established == NEVER {
            // A server that forgets a connection it has not accepted yet answers with another number.
            half.started = false;
        }
        half.start(tcp.seq);
        half.next = half.next.max(sequence::unwrap(tcp.seq, half.next) + 1 + u64::from(tcp.payload_len));
        half.timestamps = tcp.options.timestamps.is_some();
        half.offers_sack = tcp.options.sack_permitted;
        // What this side announces limits what the other may send: MSS and window belong to the other half.
        let other = &mut self.halves[1 - from];
        other.mss = tcp.options.mss.unwrap_or(536);
        other.first_window = tcp.window;
        other.shift = tcp.options.window_scale.unwrap_or(0).min(14);
        let peer_shift = other.shift;
        if is_answer {
            // The window in a SYN is never scaled (RFC 7323 section 2.2), so `take_ack` must not see a shift.
            let scales = tcp.options.window_scale.is_some();
            self.halves[1 - from].shift = 0;
            self.halves[1 - from].take_ack(tcp, number, now, false);
            self.halves[1 - from].shift = peer_shift;
            if !scales {
                self.halves[from].shift = 0;
            }
            // The answer tells whether windows are scaled at all, and by how much the server's; by how much the
            // client's, only its SYN does.
            self.halves[1 - from].scale_known = true;
            self.halves[from].scale_known = self.syn.is_some() || !scales;
            if self.syn_ack_at == NEVER {
                self.take_first_answer(tcp, client, now);
            } else if self.established == NEVER && self.syn_at <= self.syn_ack_at {
                // It answers no other SYN. After the client's ACK the server may only be waiting for data (`TCP_DEFER_ACCEPT`), which nobody pays for.
                facts.take(self.syn_timeout(self.syn_ack_at, from, number, now));
            }
            self.syn_ack_at = now;
        } else {
            if self.syn_at != NEVER {
                let trouble = self.halves[from].trouble.get_or_insert_default();
                trouble.syn.sent_again(tcp.options.timestamps.map(|stamps| stamps.0));
                trouble.syn.was_answered |= self.syn_ack_at != NEVER;
                // With FIN it is a scanner's question how the host answers that, and no connection is wanted.
                if self.established == NEVER && !tcp.flags.has(TcpFlags::FIN) {
                    facts.take(self.syn_timeout(self.syn_at, from, number, now));
                }
            }
            self.syn = Some(tcp.seq);
            if self.established == NEVER {
                (self.syn_at, self.syn_low) = (now, number as u32);
            }
        }
    }

    /// The first SYN-ACK: which SYN it answers, and how long that took.
    fn take_first_answer(&mut self, tcp: &Tcp, client: End, now: i64) {
        let half = &mut self.halves[client];
        let mut is_sample = self.syn_at != NEVER && self.syn == Some(tcp.ack.wrapping_sub(1));
        if let Some(trouble) = &mut half.trouble {
            trouble.syn.echo = tcp.options.timestamps.map(|stamps| stamps.1);
            // The answer to an earlier SYN says nothing of the path (Karn; RFC 6298 section 3).
            is_sample &= trouble.syn.answered() != Some(Answered::First);
        }
        if is_sample {
            (half.part, half.rtt) = (now - self.syn_at, now - self.syn_at);
        }
    }

    pub(crate) fn syn_timeout(&self, since: i64, end: End, number: u64, now: i64) -> Fact {
        let packets = [self.syn_number(number), number, number];
        Fact::Wait(Wait::new(Cause::SynTimeout, end, (since, now), packets))
    }

    /// The handshake is over with the client's first segment after the SYN-ACK.
    pub(crate) fn finish_handshake(&mut self, number: u64, tcp: &Tcp, now: i64, facts: &mut impl Facts) {
        self.established = now;
        let client = self.client().unwrap_or(0);
        let half = &self.halves[client];
        // What comes behind a hole is not the client's first word: that was lost, and how far the client is not known yet.
        let is_first = !half.started || sequence::unwrap(tcp.seq, half.next) <= half.next;
        if is_first {
            let server = &mut self.halves[1 - client];
            server.rtt = now - self.syn_ack_at;
            server.part = server.part.min(server.rtt);
        }
        if self.syn_at != NEVER {
            let packets = [self.syn_number(number), number, number];
            let until = if is_first { now } else { self.syn_ack_at.max(self.syn_at) };
            facts.take(Fact::Wait(Wait::new(Cause::Handshake, client, (self.syn_at, until), packets)));
        }
    }
}

/// The client by port numbers alone, where they tell: a well-known port (below 1024) is a server's, a port
/// of the dynamic range of Linux and IANA (from 32768) a client's.
pub(crate) fn client_by_port(ends: [Socket; 2]) -> Option<End> {
    let known = ends.map(|end| end.port < 1024);
    let dynamic = ends.map(|end| end.port >= 32_768);
    match (known, dynamic) {
        ([true, false], _) | (_, [false, true]) => Some(1),
        ([false, true], _) | (_, [true, false]) => Some(0),
        _ => None,
    }
}
