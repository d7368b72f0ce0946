//! Captures of the loopback interface hold all that was sent, and nothing else.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};

use tcpwhy_lab::capture::Vantage;
use tcpwhy_lab::place::{Path, join};
use tcpwhy_lab::recording::{Setup, record};
use tcpwhy_wire::{TcpFlags, Transport};

const SENDERS: usize = 4;
const DATAGRAMS: usize = 5_000;

fn setup(mtu: u32) -> Setup {
    Setup { path: Path::Loopback { mtu }, seed: 1, snaplen: 60, middle: false }
}

/// Whether this process may make namespaces; says so where it may not.
fn allowed(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        // Straight to standard error, which shows it; eprintln! is kept from a passing test.
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: only root may make a network namespace");
    }
    is_root
}

#[test]
fn all_datagrams_of_all_processors_are_in_the_capture() {
    if !allowed("all_datagrams_of_all_processors_are_in_the_capture") {
        return;
    }
    let recording = record(&setup(65_536), |place| {
        let seat = &place.client;
        let sink = join(seat.spawn(|| Ok(UdpSocket::bind("127.0.0.1:0")?)))?;
        let to = sink.local_addr()?;
        let sender = || {
            seat.spawn(move || {
                let socket = UdpSocket::bind("127.0.0.1:0")?;
                for _ in 0..DATAGRAMS {
                    socket.send_to(b"update", to)?;
                }
                Ok(())
            })
        };
        let senders: Vec<_> = std::iter::repeat_with(sender).take(SENDERS).collect();
        senders.into_iter().try_for_each(join)
    })
    .expect("a recording");
    let mut by_sender = BTreeMap::new();
    for packet in recording.capture(Vantage::Both).expect("a capture").packets() {
        assert!(matches!(packet.transport, Transport::Udp(_)), "{packet:?}");
        *by_sender.entry(packet.source.port).or_insert(0) += 1;
    }
    assert_eq!(by_sender.into_values().collect::<Vec<_>>(), [DATAGRAMS; SENDERS]);
}

#[test]
fn a_connection_is_seen_whole() {
    if !allowed("a_connection_is_seen_whole") {
        return;
    }
    let recording = record(&setup(1_500), |place| {
        let (listener, address) = join(place.server.spawn(|| {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        }))?;
        let reader = place.server.spawn(move || {
            let (mut stream, _) = listener.accept()?;
            Ok(std::io::copy(&mut stream, &mut std::io::sink())?)
        });
        let writer = place.client.spawn(move || Ok(TcpStream::connect(address)?.write_all(&[1; 3_000])?));
        join(writer)?;
        join(reader)
    })
    .expect("a recording");
    assert_eq!(recording.value, 3_000);
    let packets = recording.capture(Vantage::Both).expect("a capture").packets();
    let mut data = 0;
    let mut fins = 0;
    for packet in &packets {
        let Some(tcp) = packet.tcp() else { panic!("no TCP: {packet:?}") };
        data += u64::from(tcp.payload_len);
        fins += u32::from(tcp.flags.has(TcpFlags::FIN));
    }
    assert_eq!((data, fins), (3_000, 2), "{packets:#?}");
}
