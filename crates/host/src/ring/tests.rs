//! On loopback interfaces of namespaces of their own, which only root can make.

use std::net::UdpSocket;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

#[path = "../../tests/namespace/mod.rs"]
mod namespace;

use namespace::{ip, on_own_loopback};

use super::*;

/// Bytes before a UDP datagram's payload: Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
/// Backward steps of the kernel's times, in ns: clocks of two processors, read by two packets in a row.
const STEP_BACK: i64 = 5_000;
/// Longest wait for a packet that is on its way.
const PATIENCE: Duration = Duration::from_secs(20);

/// Two sockets, the first connected to the second.
fn datagrams() -> (UdpSocket, UdpSocket) {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    sender.connect(receiver.local_addr().expect("an address")).expect("a connected socket");
    (sender, receiver)
}

fn number(packet: &Packet<'_>) -> u32 {
    let bytes = packet.data[HEADERS..HEADERS + 4].try_into().expect("four bytes");
    u32::from_be_bytes(bytes)
}

#[test]
fn ten_thousand_datagrams_are_all_seen_once_and_in_order() {
    const ALL: u32 = 10_000;
    on_own_loopback("ten_thousand_datagrams_are_all_seen_once_and_in_order", || {
        let mut ring = Ring::open("lo", 64, Wanted::All).expect("a ring");
        assert!(ring.is_ethernet());
        let (sender, receiver) = datagrams();
        for number in 0..ALL {
            sender.send(&number.to_be_bytes()).expect("a sent datagram");
        }
        let mut before = 0;
        for expected in 0..ALL {
            let packet = ring.next(PATIENCE).expect("a ring that works").expect("a packet");
            assert_eq!((number(&packet), packet.passage), (expected, Passage::Arrived));
            assert_eq!(packet.original_len as usize, HEADERS + 4);
            assert!(packet.time > before - STEP_BACK, "{} after {before}", packet.time);
            before = packet.time;
        }
        // Nothing is left: not even the same packets, leaving.
        assert!(ring.next(Duration::ZERO).expect("a ring that works").is_none());
        let statistics = ring.statistics().expect("statistics");
        assert_eq!(statistics, Statistics { packets: u64::from(ALL), dropped: 0 });
        drop(receiver);
    });
}

#[test]
fn packets_are_cut_and_their_length_is_told() {
    on_own_loopback("packets_are_cut_and_their_length_is_told", || {
        let snaplen = HEADERS as u32 + 4;
        let mut ring = Ring::open("lo", snaplen, Wanted::All).expect("a ring");
        let mut whole = Ring::open("lo", u32::MAX, Wanted::All).expect("a ring");
        let (sender, _receiver) = datagrams();
        // The loopback interface carries 65,536 bytes of IP.
        let largest = vec![7; 65_507];
        for payload in [&[1, 2][..], &[1, 2, 3, 4, 5, 6, 7, 8, 9], &largest] {
            sender.send(payload).expect("a sent datagram");
            let packet = ring.next(PATIENCE).expect("a ring that works").expect("a packet");
            assert_eq!(packet.original_len as usize, HEADERS + payload.len());
            assert_eq!(packet.data[HEADERS..], payload[..payload.len().min(4)]);
            let packet = whole.next(PATIENCE).expect("a ring that works").expect("a packet");
            assert_eq!(packet.data[HEADERS..], *payload);
        }
    });
}

#[test]
fn what_finds_no_slot_is_counted_and_the_ring_goes_on() {
    on_own_loopback("what_finds_no_slot_is_counted_and_the_ring_goes_on", || {
        let mut ring = Ring::open("lo", u32::MAX, Wanted::All).expect("a ring");
        let slots = ring.slots as u32;
        let (sender, _receiver) = datagrams();
        for number in 0..slots + 10 {
            sender.send(&number.to_be_bytes()).expect("a sent datagram");
        }
        for expected in 0..slots {
            let packet = ring.next(PATIENCE).expect("a ring that works").expect("a packet");
            assert_eq!(number(&packet), expected);
        }
        assert!(ring.next(Duration::ZERO).expect("a ring that works").is_none());
        assert_eq!(
            ring.statistics().expect("statistics"),
            Statistics { packets: u64::from(slots) + 10, dropped: 10 }
        );
        // Round the corner: slots are used again.
        sender.send(&77_u32.to_be_bytes()).expect("a sent datagram");
        assert_eq!(number(&ring.next(PATIENCE).expect("a ring that works").expect("a packet")), 77);
    });
}

#[test]
fn waiting_ends_with_a_packet_the_time_or_the_interface() {
    on_own_loopback("waiting_ends_with_a_packet_the_time_or_the_interface", || {
        let mut ring = Ring::open("lo", 64, Wanted::Arriving).expect("a ring");
        let begin = Instant::now();
        assert!(ring.next(Duration::from_millis(20)).expect("a ring that works").is_none());
        assert!(begin.elapsed() >= Duration::from_millis(20));
        let (sender, _receiver) = datagrams();
        let (told, waiting) = mpsc::channel();
        let waiter = thread::spawn(move || {
            told.send(()).expect("somebody who waits");
            let first = number(&ring.next(PATIENCE).expect("a ring that works").expect("a packet"));
            told.send(()).expect("somebody who waits");
            (first, ring.next(PATIENCE).map(|packet| packet.map(|packet| packet.original_len)))
        });
        waiting.recv().expect("a waiter");
        sender.send(&5_u32.to_be_bytes()).expect("a sent datagram");
        waiting.recv().expect("a waiter");
        ip("link set lo down");
        let (first, then) = waiter.join().expect("no panic");
        assert_eq!(first, 5);
        assert_eq!(then.expect_err("no interface").raw_os_error(), Some(libc::ENETDOWN));
    });
}

#[test]
fn a_frame_sent_arrives_at_the_other_end_and_not_in_the_own_ring() {
    on_own_loopback("a_frame_sent_arrives_at_the_other_end_and_not_in_the_own_ring", || {
        for args in ["link add near type veth peer name far", "link set near up", "link set far up"] {
            ip(args);
        }
        let mut near = Ring::open("near", 2_000, Wanted::All).expect("a ring");
        let mut far = Ring::open("far", 2_000, Wanted::All).expect("a ring");
        for last in [false, true] {
            near.send(&experimental(b"near", last)).expect("a sent frame");
            far.send(&experimental(b"far ", last)).expect("a sent frame");
        }
        for (ring, other) in [(&mut near, b"far "), (&mut far, b"near")] {
            let mut seen = Vec::new();
            while !seen.contains(&(Passage::Arrived, experimental(other, true).to_vec())) {
                let packet = ring.next(PATIENCE).expect("a ring that works").expect("a packet");
                // The kernel says things of its own on a new interface.
                if packet.data[12..14] == EXPERIMENTAL {
                    seen.push((packet.passage, packet.data.to_vec()));
                }
            }
            let sent = [false, true].map(|last| (Passage::Arrived, experimental(other, last).to_vec()));
            assert_eq!(seen, sent);
        }
    });
}

#[test]
fn without_offload_packets_have_their_checksums() {
    on_own_loopback("without_offload_packets_have_their_checksums", || {
        ip("link add near type veth peer name far");
        for args in ["link set near up", "link set far up", "address add 10.9.9.1/24 dev near"] {
            ip(args);
        }
        ip("neighbor add 10.9.9.2 lladdr 02:00:00:00:00:02 dev near nud permanent");
        let mut far = Ring::open("far", 2_000, Wanted::Arriving).expect("a ring");
        let sender = UdpSocket::bind("10.9.9.1:0").expect("a socket");
        for offload in [true, false] {
            if !offload {
                switch_offload_off("near").expect("changed settings");
            }
            sender.send_to(b"abcd", "10.9.9.2:9").expect("a sent datagram");
            let udp = loop {
                let packet = far.next(PATIENCE).expect("a ring that works").expect("a packet");
                // The kernel says things of its own on a new interface, over IPv6.
                if packet.data[12..14] == [0x08, 0x00] {
                    break packet.data[26..].to_vec();
                }
            };
            // RFC 768: with the pseudo header, whose addresses precede the UDP header, all words add up to ones.
            let words = udp.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
            let sum: u32 = words.sum::<u32>() + 17 + (8 + 4);
            assert_eq!((sum & 0xffff) + (sum >> 16) == 0xffff, !offload, "{udp:02x?}");
        }
    });
}

#[test]
fn offload_that_cannot_be_switched_off_is_an_error() {
    on_own_loopback("offload_that_cannot_be_switched_off_is_an_error", || {
        // The loopback interface computes no checksums at all.
        switch_offload_off("lo").expect_err("no such switch");
        switch_offload_off("nowhere0").expect_err("no such interface");
        switch_offload_off("a-name-too-long-for-it").expect_err("no such interface");
    });
}

/// The EtherType of local experiments (IEEE Std 802): no protocol of the kernel's answers it.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];

/// A broadcast frame of the smallest size.
fn experimental(from: &[u8; 4], last: bool) -> [u8; 60] {
    let mut frame = [0xff; 60];
    frame[12..14].copy_from_slice(&EXPERIMENTAL);
    frame[14..18].copy_from_slice(from);
    frame[18] = u8::from(last);
    frame
}

#[test]
fn an_interface_that_is_not_there_is_an_error() {
    on_own_loopback("an_interface_that_is_not_there_is_an_error", || {
        let error = Ring::open("nowhere0", 64, Wanted::All).expect_err("no ring");
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    });
}
