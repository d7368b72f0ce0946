//! Messages that are written at their own pace and not answered: a game's updates, log lines, a voice call.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::message::{Message, Reads, Writes, matched};
use super::socket::{Options, READ_AT_ONCE};
use crate::clock::{now, ns};

/// What each side sends, and how.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stream {
    /// What the client sends.
    pub up: Option<Feed>,
    /// What the server sends.
    pub down: Option<Feed>,
    /// The client's socket.
    pub client: Options,
    /// The server's socket.
    pub server: Options,
}

/// Messages at a pace.
#[derive(Clone, Debug, Serialize)]
pub struct Feed {
    /// Ticks in all.
    pub ticks: usize,
    /// Time between two ticks.
    pub period: Duration,
    /// Bytes of each message that is written at a tick, one write each.
    pub messages: Vec<usize>,
    /// One tick in so many is late; 0 is none.
    pub late_every: usize,
    /// How much. Those behind it are not moved: they follow at once where they are due.
    pub late_by: Duration,
}

impl Feed {
    /// One message of so many bytes each tick, never late.
    pub fn even(ticks: usize, period: Duration, bytes: usize) -> Self {
        Self { ticks, period, messages: vec![bytes], late_every: 0, late_by: Duration::ZERO }
    }

    /// Writes them all; a message's time is when it was due, in a feed that keeps it.
    fn write(&self, options: &Options, stream: &TcpStream) -> Result<Writes> {
        let bytes = vec![b'.'; self.messages.iter().copied().max().unwrap_or(0)];
        let (mut log, mut length, first) = (Vec::new(), 0, now());
        for tick in 0..self.ticks {
            let due = first + ns(self.period) * tick as i64;
            let is_late = self.late_every > 0 && (tick + 1).is_multiple_of(self.late_every);
            let at = due + if is_late { ns(self.late_by) } else { 0 };
            sleep(Duration::from_nanos(u64::try_from(at - now()).unwrap_or(0)));
            for message in &self.messages {
                length += message;
                // Only what the story makes late counts as late: a thread that wakes late is this machine's doing.
                log.push((if self.late_every > 0 { due } else { now() }, length));
                options.write(stream, &bytes[..*message])?;
            }
        }
        Ok(log)
    }
}

impl Stream {
    /// The client's part.
    pub fn client(&self, server: SocketAddr) -> Result<(Writes, Reads)> {
        both_ways(&self.client.connect(server)?, &self.client, self.up.as_ref())
    }

    /// The server's part.
    pub fn server(&self, listener: &TcpListener) -> Result<(Writes, Reads)> {
        both_ways(&self.server.accept(listener)?, &self.server, self.down.as_ref())
    }

    /// The messages of both directions, from both logs.
    pub fn messages(client: &(Writes, Reads), server: &(Writes, Reads)) -> Vec<Message> {
        let mut messages = matched("up", &client.0, &server.1);
        messages.extend(matched("down", &server.0, &client.1));
        messages
    }
}

/// Writes on one thread and reads on another until the peer closes. Who sends nothing closes last.
fn both_ways(stream: &TcpStream, options: &Options, feed: Option<&Feed>) -> Result<(Writes, Reads)> {
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_all(options, stream));
        let mut writes = Vec::new();
        if let Some(feed) = feed {
            writes = feed.write(options, stream)?;
            stream.shutdown(Shutdown::Write)?;
        }
        let reads = reader.join().ok().context("the reading thread failed")??;
        Ok((writes, reads))
    })
}

fn read_all(options: &Options, stream: &TcpStream) -> Result<Reads> {
    let (mut log, mut length, mut buffer) = (Vec::new(), 0, vec![0; READ_AT_ONCE]);
    loop {
        match options.read(stream, &mut buffer)? {
            0 => return Ok(log),
            read => length += read,
        }
        log.push((now(), length));
    }
}
