//! Small messages of many TCP connections and their ACKs, as Ethernet frames.

/// Connections that take turns.
const CONNECTIONS: usize = 1_000;
/// Bytes of a message.
const MESSAGE: usize = 12;
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const TCP: usize = 20;
const ACK: u8 = 0x10;
const PUSH: u8 = 0x08;

/// Frames without end: on each connection in turn a message of the client, then its ACK.
pub(super) struct Frames {
    /// Bytes that each client has sent.
    sent: Vec<u32>,
    at: usize,
    is_ack: bool,
    frame: Vec<u8>,
}

impl Frames {
    pub(super) fn new() -> Self {
        Self { sent: vec![1; CONNECTIONS], at: 0, is_ack: false, frame: Vec::new() }
    }

    /// The next frame. Checksums are missing: who captures does not look at them, and the stack has no use for it,
    /// since it is for another host.
    pub(super) fn next(&mut self) -> &[u8] {
        let (client, server) = (self.at as u16 + 1, 0);
        let sent = self.sent[self.at];
        let (from, to, seq, ack, flags, payload) = if self.is_ack {
            (server, client, 1, sent, ACK, 0)
        } else {
            self.sent[self.at] = sent.wrapping_add(MESSAGE as u32);
            (client, server, sent, 1, ACK | PUSH, MESSAGE)
        };
        self.build(from, to, seq, ack, flags, payload);
        if self.is_ack {
            self.at = (self.at + 1) % CONNECTIONS;
        }
        self.is_ack = !self.is_ack;
        &self.frame
    }

    fn build(&mut self, from: u16, to: u16, seq: u32, ack: u32, flags: u8, payload: usize) {
        let frame = &mut self.frame;
        frame.clear();
        frame.extend([2, 0, 0, 0, 0, 0xee, 2, 0, 0, 0, 0, 0xdd, 0x08, 0x00]);
        frame.extend([0x45, 0]);
        frame.extend(((IPV4 + TCP + payload) as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        for host in [from, to] {
            frame.extend([10, 9]);
            frame.extend(host.to_be_bytes());
        }
        let port = |host: u16| if host == 0 { 80_u16 } else { 40_000 + host };
        frame.extend(port(from).to_be_bytes());
        frame.extend(port(to).to_be_bytes());
        frame.extend(seq.to_be_bytes());
        frame.extend(ack.to_be_bytes());
        frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        frame.resize(ETHERNET + IPV4 + TCP + payload, 0);
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{SlicedPacket, TransportSlice};

    use super::*;

    #[test]
    fn messages_are_acked_one_by_one() {
        let mut frames = Frames::new();
        for round in 0..3_u32 {
            for _ in 0..CONNECTIONS {
                let mut of = |is_ack: bool| {
                    let bytes = frames.next().to_vec();
                    let packet = SlicedPacket::from_ethernet(&bytes).expect("a packet");
                    let Some(TransportSlice::Tcp(tcp)) = packet.transport else { panic!("TCP") };
                    let seq = if is_ack { tcp.acknowledgment_number() } else { tcp.sequence_number() };
                    let ends = (tcp.source_port(), tcp.destination_port());
                    (ends, seq, tcp.payload().len())
                };
                let ((client, server), seq, len) = of(false);
                assert_eq!((server, seq, len), (80, 1 + round * MESSAGE as u32, MESSAGE));
                assert_eq!(of(true), ((server, client), seq + MESSAGE as u32, 0));
            }
        }
    }
}
