//! How much one TCP connection carries.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use anyhow::Result;
use tcpwhy_lab::place::{Path, Place, join};

/// Bytes that the client sends.
const BYTES: u64 = 500_000_000;
/// Bytes written and read at once.
const PIECE: usize = 256 << 10;

/// Measures a path.
pub(super) fn row(name: &str, path: &Path) -> Result<String> {
    let recording = super::run(path, upload)?;
    let late = recording.lateness.unwrap_or_default();
    let gbits = BYTES as f64 * 8.0 / 1e9 / recording.value;
    Ok(format!(
        "{name:<28}{gbits:>9.2}   p50 {:.0}, p99 {:.0}, max {:.0} µs late",
        late.p50_us, late.p99_us, late.max_us
    ))
}

/// Seconds from the first byte written to the last byte read.
fn upload(place: &Place) -> Result<f64> {
    let address = SocketAddr::new(place.server.address(), 4000);
    let (ready, wait) = std::sync::mpsc::channel();
    let server = place.server.spawn(move || {
        let listener = TcpListener::bind(address)?;
        ready.send(())?;
        let (mut connection, _) = listener.accept()?;
        let mut buffer = vec![0; PIECE];
        while connection.read(&mut buffer)? > 0 {}
        Ok(Instant::now())
    });
    let client = place.client.spawn(move || {
        wait.recv()?;
        let mut connection = TcpStream::connect(address)?;
        let start = Instant::now();
        let piece = vec![0; PIECE];
        let mut left = BYTES;
        while left > 0 {
            let size = left.min(PIECE as u64);
            connection.write_all(&piece[..usize::try_from(size)?])?;
            left -= size;
        }
        Ok(start)
    });
    let start = join(client)?;
    Ok((join(server)? - start).as_secs_f64())
}
