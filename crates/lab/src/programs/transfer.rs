//! Bulk: one large message up, down, or both ways at once.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::message::Message;
use super::socket::{Options, READ_AT_ONCE, wait_for_end};
use crate::clock::now;

/// Bytes of the request that asks for a download.
pub const REQUEST: usize = 64;
/// Bytes of the word that ends an upload.
pub const DONE: usize = 2;

/// What goes which way.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Transfer {
    /// Bytes from the client to the server.
    pub up: usize,
    /// Bytes from the server to the client.
    pub down: usize,
    /// How the receivers read.
    pub reader: Reader,
    /// How the senders write.
    pub writer: Writer,
    /// The client's socket.
    pub client: Options,
    /// The server's socket.
    pub server: Options,
}

/// How a receiver reads.
#[derive(Clone, Debug, Serialize)]
pub struct Reader {
    /// Bytes at a time.
    pub at_once: usize,
    /// Its work after each so many bytes; 0 is none.
    pub works_every: usize,
    /// How long that takes.
    pub work: Duration,
}

/// How a sender writes.
#[derive(Clone, Debug, Serialize)]
pub struct Writer {
    /// Bytes at a time.
    pub at_once: usize,
    /// Its work between two writes.
    pub work: Duration,
}

impl Default for Reader {
    fn default() -> Self {
        Self { at_once: READ_AT_ONCE, works_every: 0, work: Duration::ZERO }
    }
}

impl Default for Writer {
    fn default() -> Self {
        Self { at_once: 1 << 20, work: Duration::ZERO }
    }
}

/// When a side's first write began, and when its last byte was read; `None` where there was nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    began: Option<i64>,
    ended: Option<i64>,
}

impl Transfer {
    /// The client's part.
    pub fn client(&self, server: SocketAddr) -> Result<Ends> {
        let stream = self.client.connect(server)?;
        let asked = now();
        if self.up == 0 {
            self.client.write(&stream, &[b'?'; REQUEST])?;
        }
        let mut ends = self.both_ways(&stream, &self.client, self.up, self.down)?;
        if self.up == 0 {
            ends.began = Some(asked);
        }
        if self.down == 0 {
            ensure!(self.client.read_message(&stream, DONE)?, "the server hung up");
        }
        stream.shutdown(Shutdown::Write)?;
        wait_for_end(&stream)?;
        Ok(ends)
    }

    /// The server's part.
    pub fn server(&self, listener: &TcpListener) -> Result<Ends> {
        let stream = self.server.accept(listener)?;
        if self.up == 0 {
            ensure!(self.server.read_message(&stream, REQUEST)?, "the client hung up");
        }
        let ends = self.both_ways(&stream, &self.server, self.down, self.up)?;
        if self.down == 0 {
            self.server.write(&stream, &[b'.'; DONE])?;
        }
        wait_for_end(&stream)?;
        Ok(ends)
    }

    /// The messages of both directions, from both logs.
    pub fn messages(&self, client: Ends, server: Ends) -> Vec<Message> {
        // A download begins with its request; of two at once each begins with its first write.
        let down = if self.up == 0 { client.began } else { server.began };
        let up = client.began.zip(server.ended).map(|ends| ("up", ends));
        let down = down.zip(client.ended).map(|ends| ("down", ends));
        up.into_iter().chain(down).map(|(kind, (written, read))| Message { kind, written, read }).collect()
    }

    fn both_ways(&self, stream: &TcpStream, options: &Options, write: usize, read: usize) -> Result<Ends> {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write_all(options, stream, write));
            let ended = self.read_all(options, stream, read)?;
            let began = writer.join().ok().context("the writing thread failed")??;
            Ok(Ends { began, ended })
        })
    }

    fn write_all(&self, options: &Options, stream: &TcpStream, length: usize) -> Result<Option<i64>> {
        let began = now();
        let bytes = vec![b'.'; self.writer.at_once.min(length)];
        let mut missing = length;
        while missing > 0 {
            if missing < length {
                sleep(self.writer.work);
            }
            let piece = missing.min(bytes.len());
            options.write(stream, &bytes[..piece])?;
            missing -= piece;
        }
        Ok((length > 0).then_some(began))
    }

    fn read_all(&self, options: &Options, stream: &TcpStream, length: usize) -> Result<Option<i64>> {
        let mut buffer = vec![0; self.reader.at_once];
        let (mut got, mut works_at) = (0, self.reader.works_every);
        while got < length {
            let read = options.read(stream, &mut buffer)?;
            ensure!(read > 0, "the sender hung up");
            got += read;
            if works_at > 0 && got >= works_at && got < length {
                sleep(self.reader.work);
                works_at += self.reader.works_every;
            }
        }
        Ok((length > 0).then(now))
    }
}
