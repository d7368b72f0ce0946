//! The emulated link with this kernel's TCP on it.

mod attempts;
mod rights;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Result;
use rights::able;
use tcpwhy_diagnose::report::Source;
use tcpwhy_lab::capture::Vantage;
use tcpwhy_lab::place::{Path, Place, Seat, Wire, join};
use tcpwhy_lab::recording::{Recording, Setup, record};
use tcpwhy_simulate::link::{Drop, Ends};
use tcpwhy_wire::Packet;

/// Where its server listens.
const PORT: u16 = 4000;
/// How much longer than the link's delay the shortest of several round trips may take: the link's packets are at
/// most 4 ms late, or the run is void, and programs are woken late besides.
const SLACK: Duration = Duration::from_millis(30);
const ROUND_TRIP: Duration = Duration::from_millis(20);

fn setup(path: Path) -> Setup {
    Setup { path, seed: 1, snaplen: 120, middle: false }
}

fn wire(round_trip: u64) -> Wire {
    Wire::new(Ends::round_trip(Duration::from_millis(round_trip)))
}

/// A client sends `size` bytes and reads them back, `times` over; returns how long each exchange took.
fn echo(place: &Place, size: usize, times: usize) -> Result<Vec<Duration>> {
    let address = SocketAddr::new(place.server.address(), PORT);
    let (ready, wait) = std::sync::mpsc::channel();
    let server = place.server.spawn(move || {
        let listener = TcpListener::bind(address)?;
        ready.send(())?;
        let (mut connection, _) = listener.accept()?;
        let mut buffer = vec![0; size];
        while connection.read_exact(&mut buffer).is_ok() {
            connection.write_all(&buffer)?;
        }
        Ok(())
    });
    let client = place.client.spawn(move || {
        wait.recv()?;
        let mut connection = TcpStream::connect(address)?;
        let mut buffer = vec![0; size];
        let exchange = |_| {
            let start = Instant::now();
            connection.write_all(&buffer)?;
            connection.read_exact(&mut buffer)?;
            Ok(start.elapsed())
        };
        (0..times).map(exchange).collect()
    });
    let times = join(client);
    join(server)?;
    times
}

/// A run over `path`, or why there is none.
fn recorded<T>(path: Path, work: impl Fn(&Place) -> Result<T>) -> Result<Recording<T>, String> {
    record(&setup(path), work).map_err(|error| format!("{error:#}"))
}

#[test]
fn a_round_trip_takes_as_long_as_the_link_says() {
    if !able() {
        return;
    }
    attempts::one_succeeds(|| {
        let recording = recorded(Path::Link(wire(20)), |place| echo(place, 100, 5))?;
        let capture = |vantage| recording.capture(vantage).expect("a capture of each end");
        let (client, server) = (capture(Vantage::Client).packets(), capture(Vantage::Server).packets());
        assert_eq!(client.len(), server.len(), "nothing is lost");
        // SYN and SYN-ACK at the client; SYN-ACK and its ACK at the server.
        let handshakes = [client[1].time - client[0].time, server[2].time - server[1].time];
        let seen = handshakes.map(|took| Duration::from_nanos(took.unsigned_abs()));
        let all: Vec<Duration> = recording.value.iter().copied().chain(seen).collect();
        // No machine makes them shorter.
        assert!(all.iter().all(|took| *took >= ROUND_TRIP), "{all:?}");
        let base =
            capture(Vantage::Client).diagnose("client").connections().next().and_then(|one| one.base_rtt_ms);
        let base = Duration::from_secs_f64(base.expect("a round trip").0 / 1e3);
        let shortest = recording.value.iter().chain(&seen).copied().min().expect("round trips");
        let right = [base, shortest].iter().all(|took| (ROUND_TRIP..ROUND_TRIP + SLACK).contains(took));
        if right { Ok(()) } else { Err(format!("base {base:?}, all {all:?}")) }
    });
}

/// Sequence numbers of the data segments that travel towards the server.
fn data(packets: &[Packet]) -> Vec<u32> {
    let towards = packets.iter().filter(|packet| packet.destination.port == PORT).filter_map(Packet::tcp);
    towards.filter(|tcp| tcp.payload_len > 0).map(|tcp| tcp.seq).collect()
}

#[test]
fn a_planned_loss_is_repaired_and_seen_once_by_the_receiver() {
    if !able() {
        return;
    }
    attempts::one_succeeds(|| {
        let mut wire = wire(20);
        wire.ends.up.drops = vec![Drop::Data(3)];
        let recording = recorded(Path::Link(wire), |place| echo(place, 20_000, 1))?;
        let sent = data(&recording.capture(Vantage::Client).unwrap().packets());
        let received = data(&recording.capture(Vantage::Server).unwrap().packets());
        let lost = sent[2];
        let count = |segments: &[u32]| segments.iter().filter(|&&seq| seq == lost).count();
        assert_eq!((count(&sent), count(&received)), (2, 1));
        let dropped = recording.events.iter().filter(|event| event.what.contains("dropped: by plan"));
        assert_eq!(dropped.count(), 1, "{:?}", recording.events);
        let times = recording.capture(Vantage::Client).unwrap().packets();
        let span = times[0].time..=times[times.len() - 1].time;
        assert!(recording.events.iter().all(|event| span.contains(&event.time)));
        Ok(())
    });
}

#[test]
fn offload_hands_over_large_segments_and_the_link_carries_small_ones() {
    if !able() {
        return;
    }
    attempts::one_succeeds(|| {
        let wire = Wire { offload: true, ..wire(4) };
        let recording = recorded(Path::Link(wire), |place| echo(place, 300_000, 1))?;
        let sizes = |vantage: Vantage, to_server: bool| -> Vec<u32> {
            let packets = recording.capture(vantage).unwrap().packets();
            let ours = packets.iter().filter(|packet| (packet.destination.port == PORT) == to_server);
            ours.filter_map(Packet::tcp).map(|tcp| tcp.payload_len).collect()
        };
        let largest = |sizes: Vec<u32>| sizes.into_iter().max().unwrap();
        assert!(largest(sizes(Vantage::Client, true)) > 1448, "the client hands over more than an MSS");
        assert!(largest(sizes(Vantage::Server, false)) > 1448, "and so does the server");
        assert_eq!(largest(sizes(Vantage::Server, true)), 1448, "1500 less 40 and 12 of timestamps");
        assert_eq!(sizes(Vantage::Server, true).iter().sum::<u32>(), 300_000, "nothing is lost or repeated");
        Ok(())
    });
}

#[test]
fn a_relay_sees_both_sides() {
    if !able() {
        return;
    }
    attempts::one_succeeds(|| {
        let path = Path::TwoHops { near: wire(4), far: wire(10) };
        let recording = recorded(path, |place| {
            let relay = place.relay.as_ref().unwrap();
            let (near, far) =
                (SocketAddr::new(relay.address(), PORT), SocketAddr::new(place.server.address(), PORT));
            let listener = join(relay.spawn(move || Ok(TcpListener::bind(near)?)))?;
            let server = join(place.server.spawn(move || Ok(TcpListener::bind(far)?)))?;
            let relayed = relay.spawn(move || {
                let (mut client, _) = listener.accept()?;
                let mut onwards = TcpStream::connect(far)?;
                let mut byte = [0];
                client.read_exact(&mut byte)?;
                onwards.write_all(&byte)?;
                Ok(())
            });
            let client = place.client.spawn(move || Ok(TcpStream::connect(near)?.write_all(&[7])?));
            let mut byte = [0];
            server.accept()?.0.read_exact(&mut byte)?;
            join(client)?;
            join(relayed)?;
            Ok(byte[0])
        })?;
        assert_eq!(recording.value, 7);
        let seen = |vantage| recording.capture(vantage).unwrap().packets();
        assert_eq!(seen(Vantage::Client).len(), seen(Vantage::RelayNear).len());
        assert_eq!(seen(Vantage::RelayFar).len(), seen(Vantage::Server).len());
        for (vantage, round_trip) in [(Vantage::Client, 4_000_000), (Vantage::RelayFar, 10_000_000)] {
            let packets = seen(vantage);
            assert!(packets[1].time - packets[0].time >= round_trip);
        }
        Ok(())
    });
}

#[test]
fn a_setting_of_one_host_leaves_the_others_alone() {
    if !able() {
        return;
    }
    attempts::one_succeeds(|| {
        let sack =
            |seat: &Seat| join(seat.spawn(|| Ok(std::fs::read_to_string("/proc/sys/net/ipv4/tcp_sack")?)));
        let here = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_sack").unwrap();
        let recording = recorded(Path::Link(wire(0)), |place| {
            place.server.set("net.ipv4.tcp_sack", "0")?;
            Ok((sack(&place.client)?, sack(&place.server)?))
        })?;
        let (client, server) = recording.value;
        assert_eq!((client.trim(), server.trim()), ("1", "0"));
        assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/tcp_sack").unwrap(), here);
        Ok(())
    });
}

#[test]
fn a_run_leaves_nothing_behind() {
    if !able() {
        return;
    }
    attempts::one_succeeds(|| {
        let devices = || -> Vec<String> {
            let table = std::fs::read_to_string("/proc/self/net/dev").unwrap();
            table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
        };
        let before = devices();
        let during = recorded(Path::Link(wire(0)), |_| Ok(devices()))?.value;
        assert_eq!(before, during, "the host never sees the run's devices");
        assert_eq!(before, devices());
        Ok(())
    });
}
