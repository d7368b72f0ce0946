//! One-way traffic: an upload to a server, and updates from one.

use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use super::chat::{hang_up, wait_for_end};
use super::truth::{Clock, Stream};

/// A client that sends all it has, and a server that reads it, says two bytes and closes.
#[derive(Clone, Copy, Debug)]
pub struct Upload {
    /// Bytes in all.
    pub bytes: usize,
    /// The server reads at most so many bytes at a time.
    pub read_at_once: usize,
    /// The server's pause before each read.
    pub server_think: Duration,
    /// `SO_RCVBUF` as the server sets it, in bytes; the kernel doubles it.
    pub receive_buffer: Option<usize>,
}

/// A server that sends one small update each period, and a client that only reads.
#[derive(Clone, Copy, Debug)]
pub struct Updates {
    /// Updates in all.
    pub count: usize,
    /// Bytes of one.
    pub bytes: usize,
    /// Time between two.
    pub period: Duration,
}

impl Upload {
    /// The client's part; logs when its one large write began.
    pub fn client(&self, mut stream: TcpStream, clock: Clock) -> Result<Vec<u64>> {
        let began = clock.now();
        stream.write_all(&vec![b'.'; self.bytes])?;
        stream.read_exact(&mut [0; 2])?;
        hang_up(stream)?;
        Ok(vec![began])
    }

    /// The server's part; logs when each read returned, and with how many bytes.
    pub fn server(&self, listener: &TcpListener, clock: Clock) -> Result<Vec<(u64, u64)>> {
        let (mut stream, _) = listener.accept()?;
        let mut buffer = vec![0; self.read_at_once];
        let (mut log, mut got) = (Vec::new(), 0);
        while got < self.bytes {
            sleep(self.server_think);
            let read = stream.read(&mut buffer)?;
            log.push((clock.now(), read as u64));
            got += read;
        }
        stream.write_all(b"ok")?;
        wait_for_end(&mut stream)?;
        Ok(log)
    }

    /// Both logs together.
    pub fn log(&self, wrote: Vec<u64>, read: Vec<(u64, u64)>) -> Stream {
        Stream { from: "client".into(), bytes: self.bytes as u64, wrote, read }
    }
}

impl Updates {
    /// The client's part; logs when each read returned, and with how many bytes.
    pub fn client(&self, mut stream: TcpStream, clock: Clock) -> Result<Vec<(u64, u64)>> {
        let (mut log, mut got, mut buffer) = (Vec::new(), 0, vec![0; 4096]);
        while got < self.count * self.bytes {
            let read = stream.read(&mut buffer)?;
            log.push((clock.now(), read as u64));
            got += read;
        }
        hang_up(stream)?;
        Ok(log)
    }

    /// The server's part; logs when each write began. Lateness of one update does not move the next.
    pub fn server(&self, listener: &TcpListener, clock: Clock) -> Result<Vec<u64>> {
        let (mut stream, _) = listener.accept()?;
        let update = vec![b'.'; self.bytes];
        let mut log = Vec::with_capacity(self.count);
        let first = clock.now();
        for n in 0..self.count {
            let due = first + n as u64 * self.period.as_micros() as u64;
            sleep(Duration::from_micros(due.saturating_sub(clock.now())));
            log.push(clock.now());
            stream.write_all(&update)?;
        }
        wait_for_end(&mut stream)?;
        Ok(log)
    }

    /// Both logs together.
    pub fn log(&self, wrote: Vec<u64>, read: Vec<(u64, u64)>) -> Stream {
        Stream { from: "server".into(), bytes: (self.count * self.bytes) as u64, wrote, read }
    }
}
