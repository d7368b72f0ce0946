//! Copies with comments: everything else stays as it is, byte by byte.

use std::collections::BTreeMap;
use std::io::Read;

use proptest::prelude::*;
use tcpwhy_wire::container::{Annotated, Opened, annotate, open};

use crate::build::{
    Big, Little, MICROS, MODIFIED, NANOS, Order, block, enhanced, interface, option, pcap_header, read,
    record, section, simple,
};
use crate::write::tshark;

const OLD_PACKET: u32 = 2;
const NAMES: u32 = 4;
const STATISTICS: u32 = 5;
const SECRETS: u32 = 10;
const CUSTOM: u32 = 0x0bad;
const CALLS: u32 = 0x8074_7779;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn on_packets(comments: &[(u64, &[&str])]) -> BTreeMap<u64, Vec<String>> {
    comments.iter().map(|(packet, comments)| (*packet, texts(comments))).collect()
}

fn copy(input: impl Read, summary: &[&str], packets: &[(u64, &[&str])]) -> (Vec<u8>, Annotated) {
    let Opened::Capture(reader) = open(input).expect("the input opens") else { panic!("no capture") };
    let mut out = Vec::new();
    let done = annotate(reader, &texts(summary), &on_packets(packets), &mut out).expect("memory takes it");
    (out, done)
}

fn end(order: Order) -> Vec<u8> {
    option(order, 0, b"")
}

/// A section of every kind of block, its length told. `comments` are what is written on the section and on packets 1 and 2.
fn every_block(order: Order, length: u64, comments: [&[u8]; 3]) -> Vec<u8> {
    let options = |comment: &[u8], others: &[u8]| {
        let ours = if comment.is_empty() { Vec::new() } else { option(order, 1, comment) };
        let is_alone = others.is_empty() && !comment.is_empty();
        [ours, others.to_vec(), if is_alone { end(order) } else { Vec::new() }].concat()
    };
    let os = [option(order, 1, b"theirs"), option(order, 3, b"an OS"), end(order)].concat();
    let mut header = section(order, &options(comments[0], &os));
    header[16..24].copy_from_slice(&order.u64(length));
    let picoseconds = [option(order, 2, b"eth0"), option(order, 9, &[12]), end(order)].concat();
    // Without an end, as is allowed.
    let flags = [option(order, 1, "ihr — Kommentar".as_bytes()), option(order, 2, &order.u32(1))].concat();
    let mut old = [order.u16(0), order.u16(7)].concat();
    for word in [0, 4_000_000, 5, 60] {
        old.extend(order.u32(word));
    }
    old.extend(b"older\0\0\0");
    old.extend(options(comments[2], &[]));
    [
        header,
        interface(order, 1, 0, &picoseconds),
        block(
            order,
            NAMES,
            &[&order.u16(1)[..], &order.u16(9), b"\x0a\0\0\x09host\0\0\0\0", &[0; 4]].concat(),
        ),
        block(order, SECRETS, &[&order.u32(0x544c_534b)[..], &order.u32(16), b"CLIENT_RANDOM 0\n"].concat()),
        enhanced(order, 0, 3_000_001, 60, b"frame", &options(comments[1], &flags)),
        block(order, CALLS, b"tcpwhy/1 and calls"),
        block(order, OLD_PACKET, &old),
        block(order, CUSTOM, &[&order.u32(32_473)[..], b"somebody's"].concat()),
        simple(order, 6, b"simple"),
        block(order, STATISTICS, &[order.u32(0), order.u32(0), order.u32(0)].concat()),
    ]
    .concat()
}

#[test]
fn comments_are_all_that_is_new() {
    for order in [Little, Big] {
        let second = every_block(Little, u64::MAX, [b"", b"", b""]);
        let input = [every_block(order, 5_000, [b"", b"", b""]), second.clone()].concat();
        let packets: &[(u64, &[&str])] =
            &[(1, &["held 200 ms"]), (2, &["the ACK"]), (3, &["nowhere"]), (9, &["gone"])];
        let (out, done) = copy(&input[..], &["a verdict"], packets);
        let first = every_block(order, u64::MAX, [b"a verdict", b"held 200 ms", b"the ACK"]);
        assert!(out == [first, second].concat(), "{order:?}");
        assert_eq!((done.frames, done.commented, done.comments), (6, 2, 2));
        let notes = [
            "1 packets without their comments: simple packet blocks have none.",
            "1 packets with comments are not there: the file is not what it was.",
        ];
        assert_eq!(done.notes, notes);
        assert_eq!(read(&out[..]).frames, read(&input[..]).frames);
        assert!(tshark(&out).is_none_or(|lines| lines[0].contains("held 200 ms,ihr — Kommentar")));
        // A second time there is nothing new to say.
        assert!(copy(&out[..], &["a verdict"], packets).0 == out);
    }
}

#[test]
fn without_comments_a_pcapng_file_is_what_it_was() {
    let input = every_block(Big, u64::MAX, [b"", b"", b""]);
    let (out, done) = copy(&input[..], &[], &[]);
    assert!(out == input);
    assert_eq!(done, Annotated { frames: 3, ..Annotated::default() });
}

#[test]
fn a_pcap_file_keeps_its_resolution() {
    for order in [Little, Big] {
        for (magic, resolution) in [(MICROS, 6_u8), (NANOS, 9), (MODIFIED, 6)] {
            let mut input = pcap_header(order, magic);
            for nth in 0..3 {
                let mut one = record(order, 1_700_000_000 + nth, 123_456, 60, b"frame");
                // Kuznetzov's records have eight bytes more between header and data.
                let more = if magic == MODIFIED { &[0; 8][..] } else { &[] };
                one.splice(16..16, more.iter().copied());
                input.extend(one);
            }
            let (out, done) = copy(&input[..], &["a verdict"], &[(2, &["one", "two"])]);
            assert_eq!((done.frames, done.commented, done.comments), (3, 1, 2));
            let (before, after) = (read(&input[..]), read(&out[..]));
            assert_eq!((before.frames, "pcapng"), (after.frames, after.kind));
            let said: Vec<_> =
                after.comments.iter().map(|comment| (comment.frame, comment.text.as_str())).collect();
            assert_eq!(said, [(None, "a verdict"), (Some(2), "one"), (Some(2), "two")]);
            // The option if_tsresol, and 64 bits of ticks in the first packet.
            let option = [9_u16.to_ne_bytes(), 1_u16.to_ne_bytes()].concat();
            let at = out.windows(4).position(|bytes| bytes == option).expect("an if_tsresol");
            assert_eq!(out[at + 4], resolution);
            let ticks = 1_700_000_000 * 10_u64.pow(resolution.into()) + 123_456;
            let halves = [(ticks >> 32) as u32, ticks as u32].map(u32::to_ne_bytes).concat();
            assert!(out.windows(8).any(|bytes| bytes == halves), "{magic:x}");
        }
    }
}

#[test]
fn of_a_file_that_is_cut_everything_before_is_copied() {
    let whole = every_block(Little, u64::MAX, [b"", b"", b""]);
    for length in 13..whole.len() {
        let (out, done) = copy(&whole[..length], &[], &[]);
        let before = read(&whole[..length]);
        // Where not even the header is whole, there is one of ours.
        assert!(whole.starts_with(&out) || out.len() == 28 && before.frames.is_empty(), "at {length}");
        assert_eq!(read(&out[..]).frames, before.frames, "at {length}");
        assert_eq!(
            done.notes,
            before.notes.into_iter().filter(|note| note.starts_with("Cut")).collect::<Vec<_>>()
        );
        assert_eq!(
            read(&out[..]).notes.iter().filter(|note| note.starts_with("Cut")).count(),
            0,
            "at {length}"
        );
    }
    let header_alone = copy(&pcap_header(Big, NANOS)[..20], &["a verdict"], &[]);
    assert!(header_alone.1.notes[0].starts_with("Cut short") && read(&header_alone.0[..]).frames.is_empty());
}

#[test]
fn long_comments_are_cut_and_too_many_left_out() {
    let input = every_block(Big, u64::MAX, [b"", b"", b""]);
    // 65,535 bytes end inside a character of two.
    let long = "ö".repeat(40_000);
    let (out, done) = copy(&input[..], &[&long], &[(1, &[&long])]);
    assert_eq!(out.len(), input.len() + 2 * (4 + 65_536));
    assert_eq!(out[26..28], 65_534_u16.to_be_bytes());
    assert_eq!((read(&out[..]).frames, done.comments), (read(&input[..]).frames, 1));
    // 20 of them are more than a block may have: the packet stays, and stays readable.
    let numbered: Vec<_> = (10..30).map(|n| format!("{n}{long}")).collect();
    let many: Vec<_> = numbered.iter().map(String::as_str).collect();
    let (out, done) = copy(&input[..], &[], &[(1, &many)]);
    assert!(out == input);
    assert_eq!(done.notes, ["1 packets or sections without their comments: there is no room for them."]);
    let (out, done) = copy(&pcap_with_one_frame()[..], &[], &[(1, &many)]);
    assert_eq!((read(&out[..]).frames.len(), done.comments), (1, 0));
}

fn pcap_with_one_frame() -> Vec<u8> {
    [pcap_header(Little, MICROS), record(Little, 1, 1, 5, b"frame")].concat()
}

#[test]
fn blocks_that_wireshark_would_not_read_are_left_out() {
    let begin = section(Little, &[]);
    let of = |length: u32| {
        let (head, tail) = ([CUSTOM.to_le_bytes(), length.to_le_bytes()].concat(), length.to_le_bytes());
        let body = std::io::repeat(7).take(u64::from(length) - 12);
        std::io::Cursor::new(head).chain(body).chain(std::io::Cursor::new(tail))
    };
    let (out, done) = copy(begin.chain(of(64 << 20)).chain(of(16 << 20)), &[], &[]);
    assert_eq!(out.len(), begin.len() + (16 << 20));
    assert!(done.notes[0].starts_with("1 blocks left out"), "{done:?}");
}

#[test]
fn options_that_lie_do_no_harm() {
    // A length that goes beyond the block: what stands before it is read.
    let liar = [Little.u16(2), Little.u16(60_000)].concat();
    let input =
        [section(Little, &[]), interface(Little, 101, 0, &[]), enhanced(Little, 0, 1, 5, b"frame", &liar)]
            .concat();
    let (out, _) = copy(&input[..], &[], &[(1, &["read me"])]);
    assert_eq!(read(&out[..]).comments[0].text, "read me");
}

proptest! {
    /// Whatever is wrong with a file, the copy has the frames that a reader finds in it.
    #[test]
    fn damaged_files_are_copied_as_far_as_they_are_read(
        changes in prop::collection::vec((12_usize..900, any::<u8>()), 0..8),
        which in 0..3,
    ) {
        let mut input = match which {
            0 => every_block(Little, 700, [b"", b"", b""]),
            1 => every_block(Big, u64::MAX, [b"", b"x", b"y"]),
            _ => [pcap_with_one_frame(), record(Little, 2, 2, 9, b"something")].concat(),
        };
        for (at, byte) in changes {
            let length = input.len();
            input[12 + at % (length - 12)] = byte;
        }
        let (out, done) = copy(&input[..], &["s"], &[(1, &["p"]), (2, &["q"])]);
        let (before, after) = (read(&input[..]), read(&out[..]));
        prop_assert_eq!(done.frames, before.frames.len() as u64);
        prop_assert_eq!(before.frames, after.frames);
    }
}
