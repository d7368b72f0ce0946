//! A server that sends as fast as TCP lets it, and beside it a client that pings the same host: what a transfer
//! does to everybody else's round trip.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::congestion::Congestion;
use super::listen;
use super::socket::{Options, READ_AT_ONCE};
use crate::clock::{now, ns};
use crate::place::{Place, join};

/// Pings before the transfer: enough for a median.
const IDLE_PINGS: usize = 5;
/// Bytes of one write of bulk data.
const CHUNK: usize = 64 * 1024;

/// What the programs do.
#[derive(Clone, Debug, Serialize)]
pub struct Bulk {
    /// How long the transfer lasts.
    pub time: Duration,
    /// The client's `SO_RCVBUF` in bytes; `None` leaves the kernel's.
    pub receive_buffer: Option<usize>,
    /// The server's.
    pub congestion: Congestion,
    /// From one ping's answer to the next ping.
    pub ping_every: Duration,
}

/// A ping: when it was sent and when it was answered, in ns since the epoch.
pub type Ping = (i64, i64);

/// What the client logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Log {
    /// Where the sender of bulk data listened.
    pub port: u16,
    /// When the client began to connect, in ns since the epoch.
    pub began: i64,
    /// Every read of bulk data: when, and how many bytes had been read then.
    pub reads: Vec<(i64, u64)>,
    /// Pings before the transfer.
    pub idle_pings: Vec<Ping>,
    /// Pings during it; the last may be answered after its end.
    pub loaded_pings: Vec<Ping>,
}

/// Runs all programs to their end.
pub fn run(place: &Place, bulk: &Bulk) -> Result<Log> {
    let (sender, ponger) = (listen(&place.server)?, listen(&place.server)?);
    let (address, echo) = (sender.local_addr()?, ponger.local_addr()?);
    let todo = bulk.clone();
    let sender = place.server.spawn(move || send(&sender, &todo));
    let ponger = place.server.spawn(move || pong(&ponger));
    let pinger = place.client.spawn(move || {
        let server = quick().connect(echo)?;
        let idle = (0..IDLE_PINGS).map(|_| ping(&server)).collect::<Result<Vec<_>>>()?;
        Ok((server, idle))
    });
    let (server, idle_pings) = join(pinger)?;
    let todo = bulk.clone();
    let reader = place.client.spawn(move || read(address, &todo));
    let todo = bulk.clone();
    let pinger = place.client.spawn(move || ping_for(&server, &todo));
    let (read, pinged, sent, ponged) = (join(reader), join(pinger), join(sender), join(ponger));
    // The servers' own failures are the better explanation of clients that were left alone.
    sent.and(ponged)?;
    let (began, reads) = read?;
    Ok(Log { port: address.port(), began, reads, idle_pings, loaded_pings: pinged? })
}

/// The options of those that ping: a single byte is not to wait for anything.
fn quick() -> Options {
    Options { nodelay: true, ..Options::default() }
}

/// The sender of bulk data: writes until the client goes.
fn send(listener: &TcpListener, bulk: &Bulk) -> Result<()> {
    let options = Options { congestion: Some(bulk.congestion.name()), ..Options::default() };
    let mut client = options.accept(listener)?;
    let chunk = vec![b'.'; CHUNK];
    loop {
        match client.write_all(&chunk) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return Ok(());
            }
            Err(error) => return Err(error).context("the client does not read"),
        }
    }
}

/// The reader of bulk data: leaves when the time is up, without what is still on its way.
fn read(server: SocketAddr, bulk: &Bulk) -> Result<(i64, Vec<(i64, u64)>)> {
    let options = Options { receive_buffer: bulk.receive_buffer, ..Options::default() };
    let (began, mut buffer) = (now(), vec![0; READ_AT_ONCE]);
    let (server, end) = (options.connect(server)?, began.saturating_add(ns(bulk.time)));
    let (mut reads, mut bytes) = (Vec::new(), 0);
    while now() < end {
        let more = options.read(&server, &mut buffer)?;
        ensure!(more > 0, "the sender ended");
        bytes += more as u64;
        reads.push((now(), bytes));
    }
    Ok((began, reads))
}

fn ping(server: &TcpStream) -> Result<Ping> {
    let sent = now();
    quick().write(server, b"p")?;
    ensure!(quick().read_message(server, 1)?, "a ping is not answered");
    Ok((sent, now()))
}

/// One ping after the other until the time is up.
fn ping_for(server: &TcpStream, bulk: &Bulk) -> Result<Vec<Ping>> {
    let end = now().saturating_add(ns(bulk.time));
    let mut pings = Vec::new();
    while now() < end {
        pings.push(ping(server)?);
        sleep(bulk.ping_every);
    }
    Ok(pings)
}

/// Answers pings until the client goes.
fn pong(listener: &TcpListener) -> Result<()> {
    let client = quick().accept(listener)?;
    while quick().read_message(&client, 1)? {
        quick().write(&client, b"p")?;
    }
    Ok(())
}
