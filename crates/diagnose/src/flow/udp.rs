//! UDP flows: no windows and no ACKs, so only the programs' rhythm and turns.

use tcpwhy_wire::Udp;

use super::connection::Connection;
use super::fact::{End, Fact, Facts};
use super::rhythm::MESSAGE_GAP;

impl Connection {
    /// Takes one datagram, packet `number`, sent by `from` at `time` (ns).
    pub(crate) fn handle_datagram(
        &mut self,
        number: u64,
        time: i64,
        udp: Udp,
        from: End,
        facts: &mut impl Facts,
    ) {
        let now = time.max(self.last);
        self.last = now;
        self.halves[from].packets = self.halves[from].packets.saturating_add(1);
        self.halves[from].bytes += u64::from(udp.payload_len);
        self.turn(from, now, true, facts);
        self.change_speaker(from);
        self.halves[from].sent_number = number;
        let gap = now - self.halves[from].sent_at;
        if gap >= MESSAGE_GAP {
            self.keep_rhythm(from, now, udp.payload_len, (gap, udp.payload_len));
        } else if let Some(rhythm) = &mut self.halves[from].rhythm {
            rhythm.joined();
        }
        self.halves[from].sent_at = now;
        facts.take(Fact::Settled { until: now });
    }
}
