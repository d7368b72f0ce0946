//! What users without `/dev/net/tun` get, tried out where root has both.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use tcpwhy_simulate::link::{Drop, Ends};
use tcpwhy_wire::Transport;

use super::*;
use crate::capture::{Capture, Vantage};
use crate::emulator::{Emulator, Observed, is_void};
use crate::place::build::{Line, Port};
use crate::place::namespace::Namespace;
use crate::place::{Path, Seat, Wire, join};
use crate::recording::Setup;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
const MTU: u32 = 1500;
/// Whole packets are kept, so that checksums can be reckoned.
const SNAPLEN: u32 = 2000;
const ROUND_TRIP: Duration = Duration::from_millis(20);
/// What the client sends, and gets back.
const SIZE: usize = 20_000;
/// Runs in which a busy machine may be late.
const ATTEMPTS: u32 = 10;

/// A host with one veth pair, and the port that the emulator has of it.
fn host(address: Ipv4Addr, vantage: Vantage) -> Result<(Seat, Port)> {
    let (namespace, device) = Namespace::new(65_536, move || Veth::open(address, MTU))?;
    Ok((Seat::new(address, namespace), Port { device: Box::new(device), vantage }))
}

/// The client sends `SIZE` bytes over a link of veth pairs and reads them back.
fn echo(wire: &Wire) -> Result<Observed> {
    let ((client, near), (server, far)) = (host(CLIENT, Vantage::Client)?, host(SERVER, Vantage::Server)?);
    let path = Path::Link(wire.clone());
    let setup = Setup { path, seed: 1, snaplen: SNAPLEN, middle: false };
    let emulator = Emulator::start(vec![Line { ends: wire.ends.clone(), near, far }], &setup)?;
    let address = SocketAddr::from((SERVER, 4000));
    let (ready, wait) = std::sync::mpsc::channel();
    let server = server.spawn(move || {
        let listener = TcpListener::bind(address)?;
        ready.send(())?;
        let (mut connection, _) = listener.accept()?;
        let mut all = vec![0; SIZE];
        connection.read_exact(&mut all)?;
        Ok(connection.write_all(&all)?)
    });
    let client = client.spawn(move || {
        wait.recv()?;
        let mut connection = TcpStream::connect(address)?;
        let sent: Vec<u8> = (0..SIZE).map(|i| (i % 251) as u8).collect();
        connection.write_all(&sent)?;
        let mut back = vec![0; SIZE];
        connection.read_exact(&mut back)?;
        assert_eq!(back, sent, "every byte came back");
        Ok(())
    });
    join(client)?;
    join(server)?;
    emulator.stop()
}

/// The same in a run that was in time.
fn echo_in_time(wire: &Wire) -> Observed {
    for _ in 0..ATTEMPTS {
        let observed = echo(wire).expect("root makes veth pairs");
        if !is_void(&observed.lateness, &Path::Link(wire.clone())) && !sent_syn_twice(&observed) {
            return observed;
        }
    }
    panic!("{ATTEMPTS} runs were late");
}

/// A host so busy that a SYN's answer took a second (the first timer, RFC 6298 section 2.1) was late before the link was.
fn sent_syn_twice(observed: &Observed) -> bool {
    let packets = observed.captures[0].packets();
    packets.len() > 1 && packets[1].time - packets[0].time >= 1_000_000_000
}

fn able() -> bool {
    let able = rustix::process::geteuid().is_root();
    if !able {
        let _ = writeln!(io::stderr(), "SKIPPED: this test wants root");
    }
    able
}

/// RFC 1071: with its checksum in it, data sums up to all ones.
fn sums_up(parts: &[&[u8]]) -> bool {
    let bytes: Vec<u8> = parts.concat();
    let words = bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == 0xffff
}

/// The IPv4 packets of a capture, as they were.
fn raw(capture: &Capture) -> Vec<Vec<u8>> {
    use tcpwhy_wire::container::{self, Opened};
    let Ok(Opened::Capture(mut reader)) = container::open(capture.bytes.as_slice()) else {
        panic!("a capture")
    };
    let mut packets = Vec::new();
    while let Some(frame) = reader.next_frame() {
        packets.push(frame.data.to_vec());
    }
    packets
}

#[test]
fn packets_are_delayed_lost_as_planned_and_whole() {
    if !able() {
        return;
    }
    let mut wire = Wire::new(Ends::round_trip(ROUND_TRIP));
    wire.ends.up.drops = vec![Drop::Data(3)];
    let observed = echo_in_time(&wire);
    let [client, server] = observed.captures.as_slice() else { panic!("two captures") };
    assert_eq!((client.vantage, server.vantage, observed.missing), (Vantage::Client, Vantage::Server, 0));
    let [event] = observed.events.as_slice() else { panic!("one event: {:?}", observed.events) };
    assert!(event.what.contains("data segment 3"), "{event:?}");

    let (at_client, at_server) = (client.packets(), server.packets());
    assert_eq!(at_client.len(), at_server.len() + 1, "one packet is lost");
    let took = at_client[1].time - at_client[0].time;
    let least = ROUND_TRIP.as_nanos() as i64;
    // In time is at most 4 ms late, each way; the rest is for the server's host to answer.
    assert!((least..least + 30_000_000).contains(&took), "SYN-ACK after {took} ns");

    for packet in raw(client).iter().chain(&raw(server)) {
        let (header, payload) = packet.split_at(usize::from(packet[0] & 15) * 4);
        let length = (payload.len() as u16).to_be_bytes();
        assert!(packet.len() <= MTU as usize && sums_up(&[header]), "{packet:02x?}");
        // RFC 9293, 3.1: the pseudo header is both addresses, the protocol and the length.
        assert!(sums_up(&[&header[12..20], &[0, 6], &length, payload]), "{packet:02x?}");
    }
    assert!(at_client.iter().all(|packet| matches!(packet.transport, Transport::Tcp(_))), "TCP alone");
}
