use std::io::{Read, Write};

use flate2::write::GzEncoder;

use crate::build::{Big, Little, MICROS, enhanced, interface, pcap_header, read, record, section};
use tcpwhy_wire::container::{OpenError, Opened, open};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory takes everything")
}

fn pcap() -> Vec<u8> {
    let mut file = pcap_header(Big, MICROS);
    for number in 0..2_000 {
        file.extend(record(Big, number, number, 1_000, &number.to_be_bytes().repeat(60)));
    }
    file
}

fn pcapng() -> Vec<u8> {
    let mut file = [section(Little, &[]), interface(Little, 1, 0, &[])].concat();
    for number in 0..2_000_u32 {
        file.extend(enhanced(Little, 0, number.into(), 500, &number.to_be_bytes().repeat(60), &[]));
    }
    file
}

#[test]
fn compressed_captures_read_the_same() {
    for (file, kind) in [(pcap(), "pcap"), (pcapng(), "pcapng")] {
        let plain = read(&file[..]);
        assert_eq!((plain.kind, plain.frames.len()), (kind, 2_000));
        // Compressors that work in parallel, and `cat a.gz b.gz`, write several members; the cut is mid-record.
        let (head, tail) = file.split_at(100_001);
        // A skippable frame, as pzstd writes before each of its own.
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"skip", &zst(&file)].concat();
        for (packed, suffix) in [
            (gzip(&file), ".gz"),
            ([gzip(head), gzip(tail)].concat(), ".gz"),
            (zst(&file), ".zst"),
            ([zst(head), zst(tail)].concat(), ".zst"),
            (skippable, ".zst"),
        ] {
            let content = read(&packed[..]);
            assert_eq!(content.kind, format!("{kind}{suffix}"));
            assert_eq!(content.frames, plain.frames);
            assert!(content.notes.is_empty(), "{:?}", content.notes);
        }
    }
}

#[test]
fn damage_in_compressed_captures_keeps_what_was_good() {
    let plain = read(&pcap()[..]);
    let packed = gzip(&pcap());
    let garbage_behind = [&packed[..], b"garbage"].concat();
    let mut wrong_checksum = packed.clone();
    let checksum = packed.len() - 8;
    wrong_checksum[checksum] ^= 1;
    for damaged in [garbage_behind, wrong_checksum] {
        let content = read(&damaged[..]);
        assert_eq!(content.frames, plain.frames);
        let note = &content.notes[0];
        assert!(
            note.starts_with(&format!("Reading ended at byte {} of the decompressed data: ", pcap().len()))
        );
    }
    let packed = zst(&pcap());
    let content = read(&packed[..packed.len() / 2]);
    assert_eq!(content.frames[..], plain.frames[..content.frames.len()]);
    assert!(content.notes[0].starts_with("Reading ended at byte "), "{:?}", content.notes);
}

#[test]
fn a_cut_inside_counts_decompressed_bytes() {
    let file = pcap();
    let notes = read(&gzip(&file[..file.len() - 5])[..]).notes;
    let expected = format!("Cut short at byte {} of the decompressed data: the last record", file.len() - 5);
    assert!(notes[0].starts_with(&expected), "{notes:?}");
}

#[test]
fn what_is_no_capture_is_handed_on_whole() {
    let text = b"21:02:34.906526 a.1033 > b.4566: P 1541:1553(12) ack 72 win 32120 (DF)\n".repeat(10_000);
    for bytes in [&b"x"[..], b"1234567890", &text] {
        for (packed, suffix) in [(bytes.to_vec(), ""), (gzip(bytes), ".gz"), (zst(bytes), ".zst")] {
            let Ok(Opened::Other(mut other)) = open(&packed[..]) else { panic!("it is no capture") };
            assert_eq!(other.suffix(), suffix);
            let mut all = Vec::new();
            other.read_to_end(&mut all).expect("memory does not fail");
            assert!(all == bytes);
        }
    }
}

#[test]
fn a_section_header_without_a_byte_order_is_no_capture() {
    let mut file = section(Little, &[]);
    file[8] = 0;
    assert!(matches!(open(&file[..]), Ok(Opened::Other(_))));
}

fn refusal(bytes: &[u8]) -> OpenError {
    open(bytes).map(|_| ()).expect_err("it cannot be opened")
}

#[test]
fn what_cannot_be_opened_says_why() {
    assert!(matches!(refusal(b""), OpenError::Empty));
    assert!(matches!(refusal(&gzip(b"")), OpenError::EmptyInside));
    assert!(matches!(refusal(&zst(b"")), OpenError::EmptyInside));
    assert!(matches!(refusal(&gzip(&zst(&pcap()))), OpenError::Nested));
    assert!(matches!(refusal(&zst(&gzip(&pcap()))), OpenError::Nested));
    assert!(matches!(refusal(&gzip(&gzip(&pcap()))), OpenError::Nested));
    assert_eq!(
        refusal(b"\xfd7zXZ\0 and more").to_string(),
        "the input is compressed with xz: unpack it with `xz -d` first"
    );
    assert!(matches!(refusal(&gzip(b"snoop\0\0\0\0\0\0\x02")), OpenError::Unsupported { .. }));
    // Gzip's header, and then nothing of it.
    assert!(matches!(refusal(&gzip(&pcap())[..9]), OpenError::Read(_)));
}
