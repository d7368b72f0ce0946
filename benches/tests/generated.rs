//! The generated captures are what they say they are, read back by other parsers.

use std::path::Path;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_parser::{PcapBlockOwned, create_reader};
use tcpwhy_benches::generate::generate;
use tcpwhy_benches::manifest::Manifest;

/// One connection of `a`, a hundred of `b`, ten of `c`, a thousand of `d`.
const SCALE: f64 = 0.001;

fn generated() -> (tempfile::TempDir, Manifest) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let names = ["a", "b", "c", "d"].map(str::to_owned);
    generate(folder.path(), SCALE, &names).expect("captures");
    let manifest = Manifest::load(folder.path()).expect("a manifest");
    (folder, manifest)
}

/// One stored packet: µs, original length, stored bytes.
struct Stored {
    time: u64,
    length: u32,
    bytes: Vec<u8>,
}

fn packets(path: &Path) -> Vec<Stored> {
    let file = std::fs::File::open(path).expect("a capture");
    let mut reader = create_reader(65_536, file).expect("a pcap file");
    let mut packets = Vec::new();
    loop {
        match reader.next() {
            Ok((consumed, block)) => {
                if let PcapBlockOwned::Legacy(packet) = block {
                    let time = u64::from(packet.ts_sec) * 1_000_000 + u64::from(packet.ts_usec);
                    packets.push(Stored { time, length: packet.origlen, bytes: packet.data.to_vec() });
                }
                reader.consume(consumed);
            }
            Err(pcap_parser::PcapError::Eof) => return packets,
            Err(pcap_parser::PcapError::Incomplete(_)) => reader.refill().expect("a readable file"),
            Err(why) => panic!("{}: {why:?}", path.display()),
        }
    }
}

#[test]
fn counts_and_times_are_those_of_the_manifest() {
    let (folder, manifest) = generated();
    let connections: Vec<u64> = manifest.captures.iter().map(|capture| capture.connections).collect();
    assert_eq!(connections, [1, 100, 10, 1000]);
    for capture in &manifest.captures {
        let packets = packets(&folder.path().join(&capture.file));
        assert_eq!(packets.len() as u64, capture.packets, "{}", capture.name);
        assert!(packets.is_sorted_by_key(|packet| packet.time), "{}: times go backwards", capture.name);
        let syns = packets.iter().filter(|packet| packet.bytes[47] == 0x02).count();
        assert_eq!(syns as u64, capture.connections, "{}: SYNs", capture.name);
    }
}

#[test]
fn every_checksum_is_right() {
    let (folder, manifest) = generated();
    for capture in manifest.captures.iter().filter(|capture| capture.name != "c-snaplen") {
        for packet in packets(&folder.path().join(&capture.file)) {
            assert_eq!(packet.length as usize, packet.bytes.len());
            let sliced = SlicedPacket::from_ethernet(&packet.bytes).expect("a whole packet");
            let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (&sliced.net, &sliced.transport)
            else {
                panic!("{}: not TCP over IPv4", capture.name);
            };
            let header = ip.header();
            assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
            assert_eq!(Ok(tcp.checksum()), tcp.calc_checksum_ipv4(header.source(), header.destination()));
        }
    }
}

#[test]
fn the_short_snapshot_length_cuts_packets() {
    let (folder, manifest) = generated();
    let cut = manifest.named("c-snaplen").expect("the cut capture");
    let packets = packets(&folder.path().join(&cut.file));
    assert!(packets.iter().all(|packet| packet.bytes.len() == (packet.length as usize).min(96)));
    let longer = packets.iter().filter(|packet| packet.length > 96).count();
    assert!(2 * longer > packets.len(), "most packets are cut");
}

#[test]
fn the_same_seed_writes_the_same_bytes() {
    let ((one, manifest), (other, _)) = (generated(), generated());
    for capture in &manifest.captures {
        let [one, other] =
            [&one, &other].map(|folder| std::fs::read(folder.path().join(&capture.file)).unwrap());
        assert!(one == other, "{}", capture.name);
    }
}
