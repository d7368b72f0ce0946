//! A client that asks and a server that answers.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::message::Message;
use super::socket::{Options, hang_up, wait_for_end};
use crate::clock::now;

/// How both programs behave.
#[derive(Clone, Debug, Serialize)]
pub struct Chat {
    /// Requests in all.
    pub exchanges: usize,
    /// Bytes of each write that makes up a request.
    pub request: Vec<usize>,
    /// Bytes of each write that makes up an answer.
    pub response: Vec<usize>,
    /// Requests written before their answers are read.
    pub ahead: usize,
    /// The client's sockets.
    pub client: Options,
    /// The server's sockets.
    pub server: Options,
    /// The client makes a new connection for every request.
    pub connect_each: bool,
    /// The client's work before each request but the first.
    pub client_think: Duration,
    /// The server's work on a request.
    pub server_think: Duration,
    /// It works on one request in so many and answers the others at once.
    pub server_thinks_every: usize,
    /// The server's work between two writes of one answer.
    pub server_pauses: Duration,
}

impl Default for Chat {
    /// A request of one write, an answer of one write, nobody thinks, nothing is set.
    fn default() -> Self {
        Self {
            exchanges: 40,
            request: vec![64],
            response: vec![64],
            ahead: 1,
            client: Options::default(),
            server: Options::default(),
            connect_each: false,
            client_think: Duration::ZERO,
            server_think: Duration::ZERO,
            server_thinks_every: 1,
            server_pauses: Duration::ZERO,
        }
    }
}

impl Chat {
    /// The client's part. A message is a round: from the answer before to this answer, so that the client's
    /// own work and a new connection are in it; the first begins with the connection.
    pub fn client(&self, server: SocketAddr) -> Result<Vec<Message>> {
        let (mut log, mut used, mut open) = (Vec::with_capacity(self.exchanges), Vec::new(), None);
        let mut written = now();
        while log.len() < self.exchanges {
            if !log.is_empty() {
                sleep(self.client_think);
            }
            let stream = match open.take() {
                Some(stream) => stream,
                None => self.client.connect(server)?,
            };
            self.ask(&stream)?;
            let read = now();
            log.push(Message { kind: if log.is_empty() { "first" } else { "round" }, written, read });
            written = read;
            if self.connect_each {
                // The client does not wait for the server's FIN: that would be one more round trip.
                stream.shutdown(std::net::Shutdown::Write)?;
                used.push(stream);
            } else {
                open = Some(stream);
            }
        }
        open.iter().try_for_each(hang_up)?;
        used.iter().try_for_each(wait_for_end)?;
        Ok(log)
    }

    fn ask(&self, stream: &TcpStream) -> Result<()> {
        for _ in 0..self.ahead {
            write_pieces(&self.client, stream, &self.request, Duration::ZERO)?;
        }
        let answers = self.response.iter().sum::<usize>() * self.ahead;
        ensure!(self.client.read_message(stream, answers)?, "the server hung up");
        Ok(())
    }

    /// The server's part: answers until the client has had all its answers.
    pub fn server(&self, listener: &TcpListener) -> Result<()> {
        let (length, all) = (self.request.iter().sum(), self.exchanges * self.ahead);
        let mut answered = 0;
        while answered < all {
            let stream = self.server.accept(listener)?;
            while answered < all && self.server.read_message(&stream, length)? {
                answered += 1;
                if answered.is_multiple_of(self.server_thinks_every) {
                    sleep(self.server_think);
                }
                write_pieces(&self.server, &stream, &self.response, self.server_pauses)?;
            }
            wait_for_end(&stream)?;
        }
        Ok(())
    }
}

fn write_pieces(options: &Options, stream: &TcpStream, pieces: &[usize], pause: Duration) -> Result<()> {
    let bytes = vec![b'.'; pieces.iter().copied().max().unwrap_or(0)];
    for (number, length) in pieces.iter().enumerate() {
        if number > 0 {
            sleep(pause);
        }
        options.write(stream, &bytes[..*length])?;
    }
    Ok(())
}
