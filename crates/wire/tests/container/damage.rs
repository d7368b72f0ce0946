//! Files cut at every byte, and bytes that are anything.

use std::io::Write;

use flate2::write::GzEncoder;
use proptest::prelude::*;

use crate::build::{
    Big, Little, MICROS, MODIFIED, NANOS, block, enhanced, interface, option, pcap_header, read, record,
    section, simple,
};
use tcpwhy_wire::container::{Opened, open};

/// A file in pieces, and which of them are frames.
type Pieces = Vec<(Vec<u8>, bool)>;

fn small_pcap() -> Pieces {
    vec![
        (pcap_header(Little, MICROS), false),
        (record(Little, 1, 2, 60, b"first frame"), true),
        (record(Little, 2, 0, 0, b""), true),
        (record(Little, 3, 4, 90, &[7; 90]), true),
    ]
}

fn small_pcapng() -> Pieces {
    vec![
        (section(Big, &option(Big, 1, b"comment")), false),
        (interface(Big, 1, 64, &option(Big, 9, &[9])), false),
        (enhanced(Big, 0, 1, 5, b"fives", &option(Big, 1, b"note")), true),
        (block(Big, 0x0bad, &[1; 40]), false),
        (simple(Big, 4, b"four"), true),
        (section(Little, &[]), false),
        (interface(Little, 1, 0, &[]), false),
        (enhanced(Little, 0, 1, 3, b"end", &[]), true),
    ]
}

/// Cuts the file at every byte: each frame before the cut is there, and a cut inside a piece is said to be at
/// that byte.
fn cut_everywhere(pieces: &Pieces, shortest: usize) {
    let file: Vec<u8> = pieces.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
    let whole = read(&file[..]);
    for cut in shortest..=file.len() {
        let (mut end, mut frames, mut between) = (0, 0, false);
        for (bytes, is_frame) in pieces {
            end += bytes.len();
            frames += usize::from(*is_frame && end <= cut);
            between |= end == cut;
        }
        let content = read(&file[..cut]);
        assert_eq!(content.frames, whole.frames[..frames], "cut at {cut}");
        let cuts: Vec<_> = content.notes.iter().filter(|note| note.starts_with("Cut short")).collect();
        if between {
            assert!(cuts.is_empty(), "cut at {cut}: {cuts:?}");
        } else {
            assert_eq!(cuts.len(), 1, "cut at {cut}");
            assert!(cuts[0].starts_with(&format!("Cut short at byte {cut}: ")), "{cuts:?}");
        }
    }
}

#[test]
fn pcap_cut_at_every_byte() {
    cut_everywhere(&small_pcap(), 4);
}

#[test]
fn pcapng_cut_at_every_byte() {
    cut_everywhere(&small_pcapng(), 4);
}

#[test]
fn notes_say_what_is_missing() {
    let file = [pcap_header(Little, NANOS), record(Little, 1, 0, 1514, &[0xee; 1514])].concat();
    assert_eq!(
        read(&file[..24 + 16 + 700]).notes,
        [
            "Cut short at byte 740: the last record needs 1530 bytes, 716 are there; everything before it was analysed."
        ]
    );
    assert_eq!(
        read(&file[..30]).notes,
        ["Cut short at byte 30: the last record's header needs 16 bytes, 6 are there; \
          everything before it was analysed."]
    );
    assert_eq!(
        read(&file[..4]).notes,
        [
            "Cut short at byte 4: the file header needs 24 bytes, 4 are there; everything before it was analysed."
        ]
    );
}

#[test]
fn gzip_cut_at_every_byte_is_said() {
    for pieces in [small_pcap(), small_pcapng()] {
        let file: Vec<u8> = pieces.into_iter().flat_map(|(bytes, _)| bytes).collect();
        let whole = read(&file[..]);
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&file).expect("memory takes everything");
        let packed = encoder.finish().expect("memory takes everything");
        for cut in 0..packed.len() {
            let Ok(Opened::Capture(_)) = open(&packed[..cut]) else {
                continue; // Too little for the first bytes of the file.
            };
            let content = read(&packed[..cut]);
            assert_eq!(content.frames[..], whole.frames[..content.frames.len()]);
            let end = content.notes.iter().any(|note| note.contains(" of the decompressed data: "));
            assert!(end, "cut at {cut} of {}: {:?}", packed.len(), content.notes);
        }
    }
}

/// Reads whatever it is; frames lie within the input.
fn survive(bytes: &[u8]) {
    if let Ok(Opened::Capture(mut reader)) = open(bytes) {
        let mut stored = 0;
        while let Some(frame) = reader.next_frame() {
            stored += frame.data.len();
        }
        assert!(stored <= bytes.len());
        for note in reader.notes() {
            assert!(!note.is_empty());
        }
    }
}

fn capture() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(small_pcap()),
        Just(small_pcapng()),
        Just(vec![(pcap_header(Big, MODIFIED), false), (vec![0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0, 4], false)]),
    ]
    .prop_map(|pieces| pieces.into_iter().flat_map(|(bytes, _)| bytes).collect())
}

proptest! {
    #[test]
    fn any_bytes_after_any_magic(
        start in prop_oneof![
            Just(vec![]),
            Just(pcap_header(Little, MICROS)),
            Just(pcap_header(Big, NANOS)),
            Just(section(Little, &[])),
            Just([section(Big, &[]), interface(Big, 1, 0, &[])].concat()),
            Just(vec![0x1f, 0x8b, 8]),
            Just(vec![0x28, 0xb5, 0x2f, 0xfd]),
        ],
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        survive(&[start, rest].concat());
    }

    #[test]
    fn captures_with_bytes_changed(
        mut file in capture(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        survive(&file);
    }
}
