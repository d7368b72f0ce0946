//! The latest packets, to save those of one connection: as many as fit into a fixed piece of memory.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::SocketAddr;

use tcpwhy_diagnose::report::{Connection, Protocol};
use tcpwhy_wire::container::{Frame, Interface, LinkType, Origin, Writer};
use tcpwhy_wire::decode::decode;
use tcpwhy_wire::{Address, Packet, Socket, Transport};

use super::links::Described;

/// Bytes of packets that are kept: some 250,000 small ones, half a second at full speed and hours of a quiet line.
const MOST: usize = 64 << 20;

/// Which connection is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) is_udp: bool,
    pub(super) ends: [SocketAddr; 2],
}

impl Ends {
    /// Those of a connection in a report, client first; `None` where the report has names instead of addresses.
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        let Connection { protocol, client, server, .. } = connection;
        Some(Self { is_udp: *protocol == Protocol::Udp, ends: [client.parse().ok()?, server.parse().ok()?] })
    }

    /// Whether a packet belongs to it.
    fn has(&self, packet: &Packet) -> bool {
        let [one, other] = self.ends.map(|end| Socket { address: Address::from(end.ip()), port: end.port() });
        let (from, to) = (packet.source, packet.destination);
        let is_udp = matches!(packet.transport, Transport::Udp(_));
        is_udp == self.is_udp && ((from, to) == (one, other) || (from, to) == (other, one))
    }
}

/// A frame but for its bytes.
#[derive(Clone, Copy, Debug)]
struct Head {
    time: i64,
    link: LinkType,
    original_len: u32,
    interface: u32,
    len: u32,
}

/// The latest packets.
#[derive(Debug)]
pub(super) struct Kept {
    most: usize,
    heads: VecDeque<Head>,
    bytes: VecDeque<u8>,
}

impl Kept {
    pub(super) fn new() -> Self {
        Self::of(MOST)
    }

    fn of(most: usize) -> Self {
        Self { most, heads: VecDeque::new(), bytes: VecDeque::new() }
    }

    /// Keeps a frame, and forgets the oldest where there is no room.
    pub(super) fn push(&mut self, frame: &Frame<'_>) {
        let &Frame { time, link, original_len, interface, data } = frame;
        let Ok(len) = u32::try_from(data.len()) else { return };
        self.bytes.extend(data);
        self.heads.push_back(Head { time, link, original_len, interface, len });
        while self.taken() > self.most {
            let Some(oldest) = self.heads.pop_front() else { break };
            self.bytes.drain(..oldest.len as usize);
        }
    }

    fn taken(&self) -> usize {
        self.bytes.len() + self.heads.len() * size_of::<Head>()
    }

    /// Writes the packets of one connection as pcapng; how many there were.
    pub(super) fn save(
        &self,
        connection: &Ends,
        interfaces: &[Described],
        output: impl Write,
    ) -> io::Result<u64> {
        let application = concat!("tcpwhy ", env!("CARGO_PKG_VERSION"));
        let mut writer = Writer::new(output, &Origin { application, ..Origin::default() })?;
        for Described { name, link, .. } in interfaces {
            writer.interface(&Interface { name, link: *link, snaplen: 0 })?;
        }
        let (mut at, mut saved) = (0, 0);
        let mut data = Vec::new();
        for head in &self.heads {
            let end = at + head.len as usize;
            data.clear();
            data.extend(self.bytes.range(at..end));
            at = end;
            let Head { time, link, original_len, interface, .. } = *head;
            let frame = Frame { time, link, original_len, interface, data: &data };
            if decode(&frame, 1).is_ok_and(|packet| connection.has(&packet)) {
                writer.frame(&frame, "")?;
                saved += 1;
            }
        }
        writer.finish()?;
        Ok(saved)
    }
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::container::{self, Opened};

    use super::*;

    /// A UDP datagram over bare IPv4.
    fn datagram(from: u16, to: u16) -> Vec<u8> {
        let mut data = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        data.extend(from.to_be_bytes().iter().chain(&to.to_be_bytes()).chain(&[0, 8, 0, 0]));
        data
    }

    fn keep(kept: &mut Kept, time: i64, data: &[u8]) {
        let original_len = data.len() as u32;
        kept.push(&Frame { time, link: LinkType::RAW, original_len, interface: 0, data });
    }

    fn saved(kept: &Kept, connection: &Ends) -> Vec<i64> {
        let mut links = super::super::links::Links::default();
        links.number(1, LinkType::RAW);
        let mut file = Vec::new();
        let count = kept.save(connection, &links.described, &mut file).expect("a written file");
        let Ok(Opened::Capture(mut reader)) = container::open(&file[..]) else { panic!("no capture") };
        let mut times = Vec::new();
        while let Some(frame) = reader.next_frame() {
            times.push(frame.time);
        }
        assert_eq!(count, times.len() as u64);
        times
    }

    #[test]
    fn one_connection_is_saved_both_ways() {
        let mut kept = Kept::of(1 << 16);
        for (time, from, to) in [(1, 1000, 53), (2, 1001, 53), (3, 53, 1000), (4, 53, 1001)] {
            // There is no direction in these packets: they all go from 10.0.0.1 to 10.0.0.2.
            keep(&mut kept, time, &datagram(from, to));
        }
        let ends = |a: u16, b: u16| Ends {
            is_udp: true,
            ends: [([10, 0, 0, 1], a).into(), ([10, 0, 0, 2], b).into()],
        };
        assert_eq!(saved(&kept, &ends(1000, 53)), [1]);
        assert_eq!(saved(&kept, &ends(53, 1001)), [4]);
        let turned = Ends { ends: [ends(53, 1000).ends[1], ends(53, 1000).ends[0]], ..ends(53, 1000) };
        assert_eq!(saved(&kept, &turned), [3]);
        assert!(saved(&kept, &Ends { is_udp: false, ..ends(1000, 53) }).is_empty());
    }

    #[test]
    fn the_oldest_make_room() {
        let mut kept = Kept::of(10 * (28 + size_of::<Head>()));
        for time in 0..1_000 {
            keep(&mut kept, time, &datagram(1000, 53));
        }
        let connection =
            Ends { is_udp: true, ends: [([10, 0, 0, 1], 1000).into(), ([10, 0, 0, 2], 53).into()] };
        assert_eq!(saved(&kept, &connection), (990..1_000).collect::<Vec<_>>());
    }
}
