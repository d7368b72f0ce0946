//! A client that asks and a server that answers.

use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_cork;

use super::truth::{Clock, Exchange};

/// How both programs behave.
#[derive(Clone, Copy, Debug)]
pub struct Chat {
    /// Requests in all.
    pub exchanges: usize,
    /// Bytes of each write that makes up a request.
    pub request: &'static [usize],
    /// Bytes of each write that makes up an answer.
    pub response: &'static [usize],
    /// The client sets `TCP_NODELAY`.
    pub client_nodelay: bool,
    /// The client sets `TCP_CORK` and never takes it off.
    pub client_cork: bool,
    /// The client makes a new connection for every request.
    pub connect_each: bool,
    /// The client's pause before each request but the first.
    pub client_think: Duration,
    /// The server's work on a request.
    pub server_think: Duration,
    /// It works on one request in so many and answers the others at once.
    pub server_thinks_every: usize,
}

impl Chat {
    /// A request of one write, an answer of one write, nobody thinks, nothing is set.
    pub const PLAIN: Self = Self {
        exchanges: 50,
        request: &[64],
        response: &[64],
        client_nodelay: false,
        client_cork: false,
        connect_each: false,
        client_think: Duration::ZERO,
        server_think: Duration::ZERO,
        server_thinks_every: 1,
    };

    /// The client's part: connects by `connect` and logs its writes and reads.
    pub fn client(&self, connect: impl Fn() -> Result<TcpStream>, clock: Clock) -> Result<Vec<Exchange>> {
        let mut log = Vec::with_capacity(self.exchanges);
        let mut stream = None;
        for exchange in 0..self.exchanges {
            if exchange > 0 {
                sleep(self.client_think);
            }
            let mut open = match stream.take() {
                Some(open) => open,
                None => self.connected(&connect)?,
            };
            log.push(self.ask(&mut open, clock)?);
            if self.connect_each {
                hang_up(open)?;
            } else {
                stream = Some(open);
            }
        }
        stream.map_or(Ok(()), hang_up)?;
        Ok(log)
    }

    fn connected(&self, connect: impl Fn() -> Result<TcpStream>) -> Result<TcpStream> {
        let stream = connect()?;
        stream.set_nodelay(self.client_nodelay)?;
        if self.client_cork {
            set_tcp_cork(&stream, true)?;
        }
        Ok(stream)
    }

    fn ask(&self, stream: &mut TcpStream, clock: Clock) -> Result<Exchange> {
        let client_wrote = write_pieces(stream, self.request, clock)?;
        let mut answer = vec![0; self.response.iter().sum()];
        stream.read_exact(&mut answer)?;
        Ok(Exchange { client_wrote, client_read: clock.now(), ..Exchange::default() })
    }

    /// The server's part: serves all exchanges and logs its reads and writes.
    pub fn server(&self, listener: &TcpListener, clock: Clock) -> Result<Vec<Exchange>> {
        let mut log = Vec::with_capacity(self.exchanges);
        let mut request = vec![0; self.request.iter().sum()];
        while log.len() < self.exchanges {
            let (mut stream, _) = listener.accept()?;
            while log.len() < self.exchanges && stream.read_exact(&mut request).is_ok() {
                let server_read = clock.now();
                if (log.len() + 1).is_multiple_of(self.server_thinks_every) {
                    sleep(self.server_think);
                }
                let server_wrote = write_pieces(&mut stream, self.response, clock)?;
                log.push(Exchange { server_read, server_wrote, ..Exchange::default() });
                if self.connect_each {
                    break;
                }
            }
            wait_for_end(&mut stream)?;
        }
        Ok(log)
    }
}

fn write_pieces(stream: &mut TcpStream, pieces: &[usize], clock: Clock) -> Result<Vec<u64>> {
    let bytes = vec![b'.'; pieces.iter().copied().max().unwrap_or(0)];
    let mut wrote = Vec::with_capacity(pieces.len());
    for length in pieces {
        wrote.push(clock.now());
        stream.write_all(&bytes[..*length])?;
    }
    Ok(wrote)
}

/// Closes the writing half and waits for the peer's end, so that both FINs have been sent.
pub(super) fn hang_up(mut stream: TcpStream) -> Result<()> {
    stream.shutdown(std::net::Shutdown::Write)?;
    wait_for_end(&mut stream)
}

/// Reads until the peer has closed its writing half.
pub(super) fn wait_for_end(stream: &mut TcpStream) -> Result<()> {
    let mut rest = [0; 256];
    while stream.read(&mut rest)? > 0 {}
    Ok(())
}
