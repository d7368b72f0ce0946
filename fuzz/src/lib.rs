//! What each fuzz target does with its bytes, as plain functions: libFuzzer runs them (`make fuzz`), and so
//! does an ordinary test on the stable toolchain (`tests/smoke.rs`).
//!
//! A function that returns is content; one that panics has found something.

pub mod edits;
mod script;
mod walk;

use std::io::{self, Read};

use arbitrary::Unstructured;
use tcpwhy_diagnose::sockets::{self, Kind};
use tcpwhy_diagnose::{Analyzer, CaptureInfo};
use tcpwhy_wire::calls;
use tcpwhy_wire::container::{self, Frame, Item, LinkType, Opened};
use tcpwhy_wire::decode::{Tally, decode as decode_frame};
use tcpwhy_wire::sockets::{Info, Listing};
use tcpwhy_wire::text::{self, Item as InText};
use tcpwhy_wire::{Packet, Transport};

pub use edits::frames;

/// Bytes read of one input. A few compressed bytes stand for gigabytes, which cost time and show nothing new.
const MOST: u64 = 4 << 20;

/// Any bytes as a capture file: every frame, decoded, then diagnosed.
pub fn container(data: &[u8]) {
    let Ok(Opened::Capture(mut reader)) = container::open(data) else { return };
    let (mut read, mut number) = (0, 0);
    let mut tally = Tally::default();
    let mut packets = Vec::new();
    while let Some(frame) = reader.next_frame() {
        number += 1;
        match decode_frame(&frame, number) {
            Ok(packet) => packets.push(packet),
            Err(reason) => tally.add(reason),
        }
        read += 16 + frame.data.len() as u64;
        if read > MOST {
            break;
        }
    }
    assert_eq!(reader.frames(), number);
    let notes = [reader.notes(), tally.notes()].concat();
    assert!(notes.iter().all(|note| note.ends_with('.')), "{notes:?}");
    let kind = reader.kind().to_owned();
    diagnose(&packets, CaptureInfo { kind, frames: number, notes, has_date: true, ..CaptureInfo::default() });
}

/// Any bytes as a capture file with recorded calls: all are read, in memory that the file does not choose.
pub fn calls(data: &[u8]) {
    // Compressed, a few bytes stand for gigabytes.
    let Ok(Opened::Capture(mut file)) = container::open(data) else { return };
    if file.kind() != "pcapng" {
        return;
    }
    let mut reader = calls::Reader::default();
    let mut taken = 0_u64;
    let mut take = |reader: &mut calls::Reader, time| {
        while let Some(call) = reader.call_by(time) {
            taken += 1;
            assert!(call.start >= 0 && call.start.checked_add_unsigned(call.took).is_some(), "{call:?}");
            assert!(call.socket > 0);
            assert!(call.stack == 0 || reader.stack(call.stack).count() <= 256);
        }
    };
    let mut items = 0;
    while let Some(item) = file.next_item() {
        match item {
            Item::Frame(frame) => take(&mut reader, frame.time),
            Item::Calls(block) => reader.take(block),
        }
        items += 1;
        for socket in reader.sockets() {
            assert!(socket.cookie > 0);
        }
    }
    take(&mut reader, i64::MAX);
    // 72 bytes a call: however a file counts its items, there are no more than fit.
    assert!(taken <= data.len() as u64 / 72 && items >= file.frames());
    assert!(reader.notes().iter().all(|note| note.ends_with('.')));
}

/// Any bytes as a listing of sockets, and as a kernel's struct: each socket judged.
pub fn sockets(data: &[u8]) {
    let listing = Listing::read(data).expect("bytes in memory");
    assert_eq!(listing.source.is_some(), !listing.sockets.is_empty());
    for socket in &listing.sockets {
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(is_plain(&socket.local) && is_plain(&socket.peer), "{socket:?}");
        for suspicion in sockets::suspicions(socket) {
            assert!(suspicion.amount > 0 || suspicion.kind == Kind::Retransmission, "{suspicion:?}");
        }
    }
    let _ = Info::of_tcp_info(data);
}

/// Two bytes of link type, two of the length on the wire, and a frame.
pub fn decode(data: &[u8]) {
    let Some((&[link_low, link_high, len_low, len_high], data)) = data.split_first_chunk() else { return };
    let original_len = u16::from_le_bytes([len_low, len_high]).into();
    let link = LinkType(u16::from_le_bytes([link_low, link_high]).into());
    let frame = Frame { time: 1, link, original_len, interface: 0, data };
    match decode_frame(&frame, 7) {
        Ok(packet) => {
            assert_eq!((packet.number, packet.time), (7, 1));
            assert_eq!(packet.frame_len, original_len.max(data.len() as u32));
            let payload = match packet.transport {
                Transport::Tcp(tcp) => tcp.payload_len,
                Transport::Udp(udp) => udp.payload_len,
            };
            // A tool may have cut the frame without keeping its length, which IP's own 16 bits tell then.
            let most = packet.frame_len.max(u16::MAX.into());
            assert!(payload <= most, "{payload} bytes in a frame of {}", packet.frame_len);
            let message = packet.tcp().and_then(|tcp| tcp.message);
            let is_plain = |name: &str| name.chars().all(|letter| matches!(letter, ' '..='~' | '…'));
            assert!(message.is_none_or(|message| is_plain(message.name.as_str())), "{message:?}");
        }
        Err(reason) => {
            let mut tally = Tally::default();
            tally.add(reason);
            assert!(!tally.notes().is_empty(), "{reason:?} is passed over in silence");
        }
    }
}

/// Any bytes as text: every capture in it, diagnosed. Each begins, has its packets, and ends.
pub fn text(data: &[u8]) {
    let mut open: Option<(Vec<Packet>, bool)> = None;
    for item in text::Reader::new(data.take(MOST)) {
        match item {
            InText::Start(start) => {
                assert!(start.line >= 1);
                assert!(open.replace((Vec::new(), start.has_date)).is_none(), "a capture inside a capture");
            }
            InText::Packet(packet) => open.as_mut().expect("a packet outside a capture").0.push(packet),
            InText::End(end) => {
                let (packets, has_date) = open.take().expect("an end without a beginning");
                assert!(packets.iter().all(|packet| packet.number <= end.packets));
                let (names, notes) = (end.names, end.notes);
                diagnose(
                    &packets,
                    CaptureInfo { has_date, names, notes, frames: end.packets, ..Default::default() },
                );
            }
        }
    }
    assert!(open.is_none(), "a capture without an end");
}

/// Bytes as a script of a few connections' packets, plausible and not, diagnosed.
pub fn flow(data: &[u8]) {
    let packets = script::packets(&mut Unstructured::new(data));
    diagnose(
        &packets,
        CaptureInfo { frames: packets.len() as u64, has_date: true, ..CaptureInfo::default() },
    );
}

/// Diagnoses one capture and walks the whole report.
fn diagnose(packets: &[Packet], info: CaptureInfo) {
    let span = packets.first().zip(packets.iter().map(|packet| packet.time).max());
    let span = span.map(|(first, last)| (first.time, last));
    let bytes = packets.iter().map(|packet| u64::from(packet.frame_len)).sum();
    let mut analyzer = Analyzer::new();
    // Batches of one and of more than the best size have to give the same.
    let (one_by_one, rest) = packets.split_at(packets.len().min(3));
    one_by_one.iter().for_each(|packet| analyzer.push(std::slice::from_ref(packet)));
    analyzer.push(rest);
    walk::report(&analyzer.finish(CaptureInfo { span, bytes, ..info }), info_of(packets));
}

fn info_of(packets: &[Packet]) -> walk::Expected {
    walk::Expected {
        tcp_or_udp: packets.len() as u64,
        highest: packets.iter().map(|packet| packet.number).max().unwrap_or(0),
    }
}

/// Runs `target` over the files named on the command line: how a crash is looked at without libFuzzer.
pub fn replay(target: fn(&[u8])) -> io::Result<()> {
    for path in std::env::args_os().skip(1) {
        target(&std::fs::read(path)?);
    }
    Ok(())
}
