//! Inputs that come in pieces, fail, or wait for more.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read};

use proptest::prelude::*;

use crate::build::{Little, MICROS, enhanced, interface, pcap_header, read, record, section};
use tcpwhy_wire::container::{Opened, open};

fn pcap() -> Vec<u8> {
    let mut file = pcap_header(Little, MICROS);
    for number in 0..40_u32 {
        file.extend(record(Little, number, 0, 2_000, &vec![number as u8; number as usize * 37]));
    }
    file
}

fn pcapng() -> Vec<u8> {
    let mut file = [section(Little, &[]), interface(Little, 1, 0, &[])].concat();
    for number in 0..40_u32 {
        let data = vec![number as u8; number as usize * 37];
        file.extend(enhanced(Little, 0, number.into(), 2_000, &data, &[]));
    }
    file
}

/// Gives pieces of the sizes it is told, again and again.
struct Pieces<'a> {
    bytes: &'a [u8],
    sizes: Vec<usize>,
    next: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.next % self.sizes.len()];
        self.next += 1;
        let size = size.min(buffer.len());
        self.bytes.read(&mut buffer[..size])
    }
}

#[test]
fn one_byte_at_a_time() {
    for file in [pcap(), pcapng()] {
        assert_eq!(read(Pieces { bytes: &file, sizes: vec![1], next: 0 }), read(&file[..]));
    }
}

#[test]
fn longer_than_the_buffer_and_never_at_its_edge() {
    let file = [pcap_header(Little, MICROS), record(Little, 1, 2, 1_514, &[9; 1_499]).repeat(3_000)].concat();
    let content = read(&file[..]);
    assert_eq!(content.frames.len(), 3_000);
    assert!(content.frames.iter().all(|frame| frame.data == [9; 1_499]));
    assert!(content.notes.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn pieces_of_any_size(sizes in prop::collection::vec(1..3_000_usize, 1..20)) {
        for file in [pcap(), pcapng()] {
            prop_assert_eq!(read(Pieces { bytes: &file, sizes: sizes.clone(), next: 0 }), read(&file[..]));
        }
    }
}

/// One piece a call, counting the calls.
struct Live<'a> {
    pieces: std::vec::IntoIter<Vec<u8>>,
    calls: &'a Cell<usize>,
}

impl Read for Live<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.calls.set(self.calls.get() + 1);
        let Some(piece) = self.pieces.next() else { return Ok(0) };
        buffer[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

/// A read that asks for more than is needed would wait for the next packet, which may be an hour away.
#[test]
fn a_frame_is_delivered_before_more_is_asked_for() {
    let first = pcap_header(Little, MICROS)[..12].to_vec();
    let rest = pcap_header(Little, MICROS)[12..].to_vec();
    let packet = |number| record(Little, number, 0, 4, b"live");
    let pieces = vec![first, rest, packet(1), [packet(2), packet(3)].concat(), packet(4)];
    let calls = Cell::new(0);
    let Ok(Opened::Capture(mut reader)) = open(Live { pieces: pieces.into_iter(), calls: &calls }) else {
        panic!("it is a capture");
    };
    for (second, needed) in [(1, 3), (2, 4), (3, 4), (4, 5)] {
        let time = reader.next_frame().map(|frame| frame.time);
        assert_eq!((time, calls.get()), (Some(second * 1_000_000_000), needed));
    }
    assert!(reader.next_frame().is_none());
    assert_eq!(calls.get(), 6);
    assert!(reader.next_frame().is_none());
    assert_eq!(calls.get(), 6, "the end is not asked for twice");
}

/// Bytes, then an error, each byte preceded by an interruption.
struct Failing<'a> {
    bytes: &'a [u8],
    interrupt: bool,
}

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupt = !self.interrupt;
        if self.interrupt {
            return Err(ErrorKind::Interrupted.into());
        }
        if self.bytes.is_empty() {
            return Err(io::Error::other("the disk is gone"));
        }
        self.bytes.read(buffer)
    }
}

#[test]
fn a_failing_input_keeps_what_was_good() {
    let whole = read(&pcap()[..]);
    let file = pcap();
    for cut in [file.len() - 1, file.len()] {
        let content = read(Failing { bytes: &file[..cut], interrupt: false });
        let complete = if cut == file.len() { 40 } else { 39 };
        assert_eq!(content.frames, whole.frames[..complete]);
        assert_eq!(
            content.notes,
            [format!("Reading ended at byte {cut}: the disk is gone; everything before it was analysed.")]
        );
    }
}

#[test]
fn an_input_that_fails_at_once_cannot_be_opened() {
    let error = open(Failing { bytes: b"", interrupt: false }).map(|_| ()).expect_err("nothing can be read");
    assert_eq!(error.to_string(), "the input cannot be read: the disk is gone");
}
