//! Round trips of small UDP packets.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tcpwhy_lab::place::{Path, Place, join};

/// Pings of one measurement.
const PINGS: u32 = 1000;
/// Between two of them. Many are under way at once on a long link.
const INTERVAL: Duration = Duration::from_millis(5);
/// After so long, an answer is lost.
const LOST: Duration = Duration::from_secs(5);

/// The heading of [`row`].
pub(super) fn heading() -> String {
    format!("{:<28}{:>9}{:>9}{:>9}   the link's own lateness", "", "p50", "p99", "max")
}

/// Measures a path: how much longer than `round_trip` its round trips take, as programs see it.
pub(super) fn row(name: &str, path: &Path, round_trip: Duration) -> Result<String> {
    let recording = super::run(path, |place| pings(place, place.server.address()))?;
    let lateness = recording.lateness.map_or_else(String::new, |lateness| {
        format!("   {:.0}, {:.0}, {:.0}", lateness.p50_us, lateness.p99_us, lateness.max_us)
    });
    Ok(errors(name, &recording.value, round_trip) + &lateness)
}

/// The errors of round trips, as columns.
pub(super) fn errors(name: &str, took: &[Duration], round_trip: Duration) -> String {
    let mut errors: Vec<_> = took.iter().map(|took| took.saturating_sub(round_trip)).collect();
    errors.sort_unstable();
    let at = |share: f64| {
        let index = (errors.len().saturating_sub(1) as f64 * share) as usize;
        errors.get(index).map_or(0.0, |error| error.as_secs_f64() * 1e6)
    };
    format!("{name:<28}{:>9.0}{:>9.0}{:>9.0}", at(0.5), at(0.99), at(1.0))
}

/// Sends pings to an address of the server, on time whether answers come or not, and returns how long each answer took.
pub(super) fn pings(place: &Place, server: IpAddr) -> Result<Vec<Duration>> {
    let address = SocketAddr::new(server, 4000);
    let (ready, wait) = std::sync::mpsc::channel();
    let server = place.server.spawn(move || {
        let socket = UdpSocket::bind(address)?;
        ready.send(())?;
        let mut buffer = [0; 8];
        for _ in 0..PINGS {
            let (_, from) = socket.recv_from(&mut buffer)?;
            socket.send_to(&buffer, from)?;
        }
        Ok(())
    });
    let client = place.client.spawn(move || {
        wait.recv()?;
        let socket = UdpSocket::bind(("0.0.0.0", 0))?;
        socket.connect(address)?;
        let answers = socket.try_clone()?;
        let start = Instant::now();
        let reader = std::thread::spawn(move || read(&answers, start));
        for number in 0..PINGS {
            sleep((INTERVAL * number).saturating_sub(start.elapsed()));
            let at = u64::try_from(start.elapsed().as_nanos())?;
            socket.send(&at.to_le_bytes())?;
        }
        join(reader)
    });
    let took = join(client)?;
    join(server)?;
    Ok(took)
}

/// Reads all answers. Each says when it was asked for, in ns after `start`.
fn read(socket: &UdpSocket, start: Instant) -> Result<Vec<Duration>> {
    socket.set_read_timeout(Some(LOST))?;
    let mut buffer = [0; 8];
    let answer = |_| {
        ensure!(socket.recv(&mut buffer)? == buffer.len(), "an answer was cut");
        Ok(start.elapsed().saturating_sub(Duration::from_nanos(u64::from_le_bytes(buffer))))
    };
    (0..PINGS).map(answer).collect()
}
