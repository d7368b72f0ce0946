//! What a capture shows of a run: silences and what ended them, and what tcpwhy finds.

use std::collections::HashMap;

use tcpwhy_diagnose::report::Source;
use tcpwhy_wire::{Packet, Socket};

use super::figures;
use crate::capture::Capture;

/// A connection is silent if nothing passed for so long, in ns: half of Linux's shortest delayed ACK
/// (`TCP_DELACK_MIN`, 40 ms), and more than these programs ever compute.
const SILENCE: i64 = 20_000_000;
/// A segment that leaves so soon after an ACK was waiting for it, in ns. The kernel reacts within tens of µs;
/// a busy machine may take longer, but never half a silence.
const AT_ONCE: i64 = 2_000_000;

/// The silences of all connections of a capture that data ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Silences {
    /// How long each was, in ms.
    pub(crate) lengths: Vec<f64>,
    /// How many of them ended with a pure ACK, and a segment with data that the *ACKed* side sent at once: it
    /// had been waiting for that ACK.
    pub(crate) by_ack: usize,
}

impl Silences {
    /// `137 silences of 43.9 ms (median); 137 ended with an ACK that set the waiting segment free`.
    pub(crate) fn in_words(&self) -> String {
        let Some(median) = figures::median(&self.lengths) else { return "no silence".to_owned() };
        let (all, freed) = (self.lengths.len(), self.by_ack);
        format!(
            "{all} silences of {} (median); {freed} of them ended with an ACK, and the waiting segment left at \
             once",
            figures::time(median)
        )
    }
}

/// The last packets of a connection.
struct Last {
    time: i64,
    /// The silence that a pure ACK has just ended: its length, who sent the ACK, and when.
    ended: Option<(i64, Socket, i64)>,
}

/// Finds the silences of 20 ms and more.
pub(crate) fn silences(packets: &[Packet]) -> Silences {
    let mut silences = Silences::default();
    let mut connections: HashMap<(Socket, Socket), Last> = HashMap::new();
    for packet in packets {
        let Some(tcp) = packet.tcp() else { continue };
        let ends = (packet.source.min(packet.destination), packet.source.max(packet.destination));
        let last = connections.entry(ends).or_insert(Last { time: packet.time, ended: None });
        let silent = packet.time - last.time;
        let freed = last.ended.take().filter(|(_, acker, at)| {
            *acker == packet.destination && packet.time - at <= AT_ONCE && tcp.payload_len > 0
        });
        last.time = packet.time;
        if let Some((length, ..)) = freed {
            silences.lengths.push(length as f64 / 1e6);
            silences.by_ack += 1;
        } else if silent >= SILENCE && tcp.payload_len > 0 {
            silences.lengths.push(silent as f64 / 1e6);
        } else if silent >= SILENCE && tcp.is_pure_ack() {
            last.ended = Some((silent, packet.source, packet.time));
        }
    }
    silences
}

/// The costliest finding of tcpwhy in a capture, with what it cost; a dash if nothing cost anything. Programs
/// that take their time do not count: in a chain of connections each one waits for the next.
pub(crate) fn finding(capture: Option<&Capture>) -> String {
    let Some(capture) = capture else { return "no capture".to_owned() };
    let diagnosis = capture.diagnose("lab");
    let mut costs: HashMap<&str, f64> = HashMap::new();
    for finding in diagnosis.skim().filter(|finding| !finding.rule.starts_with("slow-")) {
        *costs.entry(finding.rule).or_default() += finding.cost_ms.0;
    }
    match costs.into_iter().filter(|(_, ms)| *ms > 0.0).max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((rule, ms)) => format!("{rule}, {}", figures::time(ms)),
        None => "–".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tcpwhy_wire::{Tcp, TcpFlags, Transport};

    /// A TCP packet between ports 1 (the client) and 2, at `us`.
    pub(crate) fn packet(us: i64, from: u16, flags: u16, payload_len: u32) -> Packet {
        let (source, destination) =
            (Socket { port: from, ..Socket::default() }, Socket { port: 3 - from, ..Socket::default() });
        let tcp = Tcp { payload_len, flags: TcpFlags(flags), ..Tcp::default() };
        let frame_len = payload_len + 66;
        Packet {
            time: us * 1000,
            source,
            destination,
            frame_len,
            transport: Transport::Tcp(tcp),
            ..Packet::default()
        }
    }

    #[test]
    fn a_silence_ends_by_an_ack_that_frees_data_or_by_data() {
        let ack = TcpFlags::ACK;
        let packets = [
            packet(0, 1, ack, 10),
            // Held until the server's ACK, and then sent by the client.
            packet(40_000, 2, ack, 0),
            packet(40_020, 1, ack, 10),
            // A slow server: its data ends the silence.
            packet(70_020, 2, ack, 5),
            // A delayed ACK that nobody was waiting for: the program speaks much later.
            packet(110_020, 1, ack, 0),
            packet(115_020, 1, ack, 10),
            // An ACK after which the ACKing side itself speaks: a slow program.
            packet(155_020, 2, ack, 0),
            packet(155_030, 2, ack, 5),
        ];
        let found = silences(&packets);
        assert_eq!(found, Silences { lengths: vec![40.0, 30.0], by_ack: 1 });
        assert!(found.in_words().starts_with("2 silences of 40.0 ms"), "{}", found.in_words());
        assert_eq!(silences(&[]).in_words(), "no silence");
    }
}
