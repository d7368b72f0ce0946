//! UDP flows: no windows and no ACKs, so only the programs' rhythm and turns.

use tcpwhy_wire::{Packet, Udp};

use super::connection::Connection;
use super::fact::{End, Fact, Facts};

impl Connection {
    /// Takes one datagram sent by `from`.
    pub(crate) fn handle_datagram(&mut self, packet: &Packet, udp: Udp, from: End, facts: &mut impl Facts) {
        let now = packet.time.max(self.last);
        self.last = now;
        self.halves[from].packets += 1;
        self.halves[from].bytes += u64::from(udp.payload_len);
        self.turn(from, now, true, facts);
        self.keep_rhythm(from, now, udp.payload_len);
        self.halves[from].sent_at = now;
        facts.take(Fact::Settled { until: now });
    }
}
