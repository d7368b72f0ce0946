//! The emulated link with this kernel's TCP on it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Result;
use tcpwhy_lab::capture::Vantage;
use tcpwhy_lab::place::{Path, Place, Wire, join};
use tcpwhy_lab::recording::{Recording, Setup, record};
use tcpwhy_simulate::link::{Drop, Ends};

/// Where its server listens.
const PORT: u16 = 4000;
/// How much longer than the link's delay a round trip may take on a busy machine; a run that was later than
/// 4 ms is void anyway.
const SLACK: Duration = Duration::from_millis(30);

/// Whether this machine lets us make namespaces and devices; says so where it does not.
fn able() -> bool {
    let able = rustix::process::geteuid().is_root() && std::path::Path::new("/dev/net/tun").exists();
    if !able {
        let _ = writeln!(std::io::stderr(), "SKIPPED: this test wants root and /dev/net/tun");
    }
    able
}

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

#[test]
fn a_round_trip_takes_as_long_as_the_link_says() {
    if !able() {
        return;
    }
    let recording = record(&setup(Path::Link(wire(20))), |place| echo(place, 100, 5)).unwrap();
    for took in &recording.value {
        assert!((Duration::from_millis(20)..Duration::from_millis(20) + SLACK).contains(took), "{took:?}");
    }
    eprintln!("{:?} {:?}", recording.lateness, recording.value);
    let client = recording.capture(Vantage::Client).unwrap().packets();
    let server = recording.capture(Vantage::Server).unwrap().packets();
    assert_eq!(client.len(), server.len(), "nothing is lost");
    // SYN and SYN-ACK at the client; SYN-ACK and its ACK at the server.
    for (packets, asked, answered) in [(&client, 0, 1), (&server, 1, 2)] {
        let took = packets[answered].time - packets[asked].time;
        assert!((20_000_000..20_000_000 + SLACK.as_nanos() as i64).contains(&took), "{took} ns");
    }
}
