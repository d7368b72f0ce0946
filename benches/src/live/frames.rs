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
}

impl Frames {
    pub(super) fn new() -> Self {
        Self { sent: vec![1; CONNECTIONS], at: 0, is_ack: false }
    }

    /// Makes `frame` the next one. Checksums are missing: who captures does not look at them, and the stack has no use for
    /// it, since it is for another host.
    pub(super) fn next(&mut self, frame: &mut Vec<u8>) {
        let (client, server) = (self.at as u16 + 1, 0);
        let sent = self.sent[self.at];
        if self.is_ack {
            build(frame, [server, client], [1, sent], ACK, 0);
            self.at = (self.at + 1) % CONNECTIONS;
        } else {
            build(frame, [client, server], [sent, 1], ACK | PUSH, MESSAGE);
            self.sent[self.at] = sent.wrapping_add(MESSAGE as u32);
        }
        self.is_ack = !self.is_ack;
    }
}

/// A segment from one host to another, with its sequence and acknowledgment numbers.
fn build(frame: &mut Vec<u8>, hosts: [u16; 2], numbers: [u32; 2], flags: u8, payload: usize) {
    frame.clear();
    frame.extend([2, 0, 0, 0, 0, 0xee, 2, 0, 0, 0, 0, 0xdd, 0x08, 0x00]);
    frame.extend([0x45, 0]);
    frame.extend(((IPV4 + TCP + payload) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    for host in hosts {
        frame.extend([10, 9]);
        frame.extend(host.to_be_bytes());
    }
    for host in hosts {
        let port = if host == 0 { 80_u16 } else { 40_000 + host };
        frame.extend(port.to_be_bytes());
    }
    frame.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame.resize(ETHERNET + IPV4 + TCP + payload, 0);
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
                    let mut bytes = Vec::new();
                    frames.next(&mut bytes);
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
