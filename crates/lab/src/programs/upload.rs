//! A client that uploads many bytes, and a server that says "OK" when it has them all.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;

use super::listen;
use super::socket::Options;
use crate::clock;
use crate::place::{Place, join};

/// Bytes of one `write()` and of one `read()`.
const BUFFER: usize = 64 * 1024;

/// What the client saw.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Log {
    /// When the first `write()` began, ns since the epoch.
    pub start: i64,
    /// Bytes uploaded.
    pub bytes: u64,
    /// From the first `write()` to the "OK".
    pub wall: Duration,
}

/// Client and server at their seats.
pub fn play(place: &Place, bytes: u64) -> Result<Log> {
    let listener = listen(&place.server)?;
    let address = listener.local_addr()?;
    let server = place.server.spawn(move || take(&listener, bytes));
    let log = join(place.client.spawn(move || upload(address, bytes)))?;
    join(server)?;
    Ok(log)
}

/// The server: takes `bytes` from one client and says "OK".
pub fn take(listener: &TcpListener, bytes: u64) -> Result<()> {
    let mut socket = Options::default().accept(listener)?;
    let mut buffer = vec![0; BUFFER];
    let mut taken = 0;
    while taken < bytes {
        let read = socket.read(&mut buffer)?;
        ensure!(read > 0, "the client closed after {taken} bytes");
        taken += read as u64;
    }
    socket.write_all(b"OK")?;
    Ok(())
}

/// The client: uploads `bytes` and waits for the "OK".
pub fn upload(server: SocketAddr, bytes: u64) -> Result<Log> {
    let mut socket = Options::default().connect(server)?;
    let buffer = vec![b'x'; BUFFER];
    let (start, watch) = (clock::now(), Instant::now());
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
        socket.write_all(&buffer[..now])?;
        left -= now as u64;
    }
    let mut answer = [0; 2];
    socket.read_exact(&mut answer)?;
    ensure!(&answer == b"OK", "the server answered {answer:?}");
    Ok(Log { start, bytes, wall: watch.elapsed() })
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn all_bytes_arrive_before_the_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || take(&listener, 1_000_001).unwrap());
        let log = upload(address, 1_000_001).unwrap();
        server.join().unwrap();
        assert_eq!(log.bytes, 1_000_001);
        assert!(log.wall > Duration::ZERO);
    }

    #[test]
    fn a_client_that_leaves_early_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"short").unwrap();
        drop(client);
        assert!(take(&listener, 6).is_err());
    }
}
