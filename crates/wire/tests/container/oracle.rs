//! The same files through `pcap-parser`, where it reads them right.
//!
//! Version 0.17 does not take resolutions that are powers of two, reads `if_tsoffset` as little-endian always,
//! does not cut simple packets to the snapshot length and knows neither old packet blocks nor big-endian modified
//! pcap; those have tests of their own bytes only.

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader};
use proptest::prelude::*;

use crate::build::{
    Big, Little, MICROS, NANOS, Order, block, enhanced, interface, option, pcap_header, read, record, section,
};

/// Time in ns, length on the wire, stored bytes.
type Plain = (i64, u32, Vec<u8>);

fn ours(file: &[u8]) -> Vec<Plain> {
    let content = read(file);
    assert!(content.notes.is_empty(), "{:?}", content.notes);
    content.frames.into_iter().map(|frame| (frame.time, frame.original_len, frame.data)).collect()
}

/// Calls `each` with every block `reader` finds.
pub(crate) fn drain(mut reader: impl PcapReaderIterator, mut each: impl FnMut(PcapBlockOwned<'_>)) {
    loop {
        match reader.next() {
            Ok((length, block)) => {
                each(block);
                reader.consume(length);
            }
            Err(PcapError::Eof) => return,
            Err(PcapError::Incomplete(_)) => reader.refill().expect("memory does not fail"),
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn theirs_pcap(file: &[u8]) -> Vec<Plain> {
    let (mut frames, mut unit) = (Vec::new(), 0);
    drain(LegacyPcapReader::new(65_536, file).expect("a pcap header"), |block| match block {
        PcapBlockOwned::LegacyHeader(header) => {
            unit = if header.is_nanosecond_precision() { 1 } else { 1_000 }
        }
        PcapBlockOwned::Legacy(record) => {
            let time = i64::from(record.ts_sec) * 1_000_000_000 + i64::from(record.ts_usec) * unit;
            frames.push((time, record.origlen, record.data.to_vec()));
        }
        PcapBlockOwned::NG(_) => panic!("a pcapng block in a pcap file"),
    });
    frames
}

fn theirs_pcapng(file: &[u8]) -> Vec<Plain> {
    let (mut frames, mut resolutions) = (Vec::new(), Vec::new());
    drain(PcapNGReader::new(65_536, file).expect("a section header"), |block| match block {
        PcapBlockOwned::NG(Block::SectionHeader(_)) => resolutions.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            resolutions.push(interface.ts_resolution().expect("a power of ten"));
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let per_second = resolutions[packet.if_id as usize];
            let (seconds, fraction) = packet.decode_ts(0, per_second);
            let fraction = u64::from(fraction) * (1_000_000_000 / per_second);
            let time = i64::from(seconds) * 1_000_000_000 + fraction as i64;
            frames.push((time, packet.origlen, packet.packet_data().to_vec()));
        }
        _ => {}
    });
    frames
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Little), Just(Big)]
}

prop_compose! {
    fn packet()(
        seconds in 0..u32::MAX,
        fraction in 0..1_000_000_u32,
        original in any::<u32>(),
        data in prop::collection::vec(any::<u8>(), 0..100),
    ) -> (u32, u32, u32, Vec<u8>) {
        (seconds, fraction, original, data)
    }
}

proptest! {
    #[test]
    fn pcap_as_pcap_parser_reads_it(
        order in order(),
        magic in prop_oneof![Just(MICROS), Just(NANOS)],
        packets in prop::collection::vec(packet(), 0..20),
    ) {
        let mut file = pcap_header(order, magic);
        for (seconds, fraction, original, data) in &packets {
            // A record of zeros is damage here, and a frame there.
            file.extend(record(order, *seconds, *fraction, (*original).max(1), data));
        }
        let frames = ours(&file);
        prop_assert_eq!(frames.len(), packets.len());
        prop_assert_eq!(frames, theirs_pcap(&file));
    }

    #[test]
    fn pcapng_as_pcap_parser_reads_it(
        sections in prop::collection::vec(
            (order(), 3..=9_u8, prop::collection::vec((packet(), 0..2_u32, any::<bool>()), 0..10)),
            1..4,
        ),
    ) {
        let mut file = Vec::new();
        let mut count = 0;
        for (order, resolution, packets) in &sections {
            let order = *order;
            file.extend(section(order, &option(order, 1, b"section")));
            file.extend(interface(order, 1, 0, &option(order, 9, &[*resolution])));
            file.extend(interface(order, 1, 0, &[]));
            for ((seconds, fraction, original, data), id, extras) in packets {
                let options = if *extras { option(order, 1, b"packet") } else { vec![] };
                if *extras {
                    file.extend(block(order, 0x0bad_cafe, data));
                }
                // Few enough ticks for seconds of 32 bits, which is what pcap-parser gives.
                let ticks = u64::from(*seconds) * 1_000 + u64::from(*fraction % 1_000);
                file.extend(enhanced(order, *id, ticks, *original, data, &options));
                count += 1;
            }
        }
        let frames = ours(&file);
        prop_assert_eq!(frames.len(), count);
        prop_assert_eq!(frames, theirs_pcapng(&file));
    }
}
