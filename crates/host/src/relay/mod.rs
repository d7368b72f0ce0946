//! A TCP relay that passes on what it reads at once, and counts what each side did.
//!
//! Each client that it accepts gets a connection of its own to the target. What one side sends is read, written to the
//! other side before anything else is read, and kept back only while the other side takes no more: then nothing is read
//! either, so that the sender's window closes as it would without a relay. A side that has finished sending (FIN) is passed
//! on as such, and one that vanished (RST) as a reset.
//!
//! Everything runs on the thread that calls [`Relay::run`].

mod account;
mod connection;
mod direction;
mod limit;
mod tcp_info;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

pub use account::{Connection, End, Passed, Path, Side, Summary, Total};
use connection::Caller;
use direction::Scratch;

/// Clients that may wait to be accepted; the system's own limit (`net.core.somaxconn`) may be lower.
const BACKLOG: u32 = 4096;
/// How long nothing is accepted after the system had no descriptor or memory for it: the condition lasts until something
/// else is closed, and asking again at once would only take the processor from those who could.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where so many of so many connections are open or fewer, there is room again: near the limit each end and each beginning
/// would say so anew.
const NEARLY: (usize, usize) = (9, 10);

/// What to relay, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where clients connect; port 0 takes any free one.
    pub listen: SocketAddr,
    /// The target's name or address, looked up anew for each connection.
    pub host: String,
    /// The target's port.
    pub port: u16,
    /// Leaves Nagle's algorithm on (RFC 896) on both sides instead of setting `TCP_NODELAY`.
    pub nagle: bool,
    /// Connections open at once, at most; descriptors may allow fewer. At least 1.
    pub most: usize,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A client's connection is over, or never reached the target.
    Ended(Box<Connection>),
    /// So many connections are open, as many as may be; further clients wait until one ends. Said once until there is room
    /// for all again.
    Full(usize),
    /// The system could not accept a client.
    NotAccepted(io::Error),
}

/// Asks a relay to end; clones ask the same one.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Resets the connections that are open, and lets [`Relay::run`] return.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// A relay that listens.
#[derive(Debug)]
pub struct Relay {
    settings: Settings,
    runtime: Runtime,
    listener: TcpListener,
    address: SocketAddr,
    stop: Stop,
    /// Connections that may be open at once.
    most: usize,
}

impl Relay {
    /// Listens. Raises the process's limit of open files as far as it goes.
    ///
    /// # Errors
    /// Where the address cannot be listened on (in use, not this machine's, a port that needs rights), and where the
    /// target is the relay itself.
    pub fn new(settings: Settings) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let (listener, address) = runtime.block_on(async {
            let listener = listen(settings.listen)?;
            let address = listener.local_addr()?;
            refuse_oneself(&settings, address).await?;
            io::Result::Ok((listener, address))
        })?;
        let stop = Stop(Arc::new(watch::Sender::new(false)));
        let most = settings.most.clamp(1, limit::connections());
        Ok(Self { settings, runtime, listener, address, stop, most })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections can be open at once: what was asked for, and each takes two descriptors.
    pub fn most(&self) -> usize {
        self.most
    }

    /// What ends it, from any thread.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Relays until it is stopped, and tells what happens.
    pub fn run(self, tell: &mut dyn FnMut(Event)) -> Summary {
        let tasks = LocalSet::new();
        tasks.block_on(&self.runtime, self.serve(tell))
    }

    async fn serve(&self, tell: &mut dyn FnMut(Event)) -> Summary {
        let begun = Instant::now();
        let scratch = Rc::new(Scratch::new());
        let settings = Rc::new(self.settings.clone());
        let mut stopped = self.stop.0.subscribe();
        let mut open: JoinSet<Connection> = JoinSet::new();
        let mut summary = Summary::default();
        let mut number = 0;
        let mut told_full = false;
        let mut pause = None;
        loop {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => break,
                Some(ended) = open.join_next() => {
                    told_full &= open.len() * NEARLY.1 > self.most * NEARLY.0;
                    take(ended, &mut summary, tell);
                }
                accepted = accept(&self.listener, pause), if open.len() < self.most => match accepted {
                    Ok((client, address)) => {
                        pause = None;
                        number += 1;
                        let caller = Caller { number, client, address, begun };
                        let stopped = self.stop.0.subscribe();
                        open.spawn_local(connection::serve(caller, settings.clone(), scratch.clone(), stopped));
                        summary.most_open = summary.most_open.max(open.len());
                    }
                    Err(error) => pause = Self::not_accepted(error, pause, tell),
                },
            }
            if open.len() >= self.most && !told_full {
                told_full = true;
                tell(Event::Full(self.most));
            }
        }
        while let Some(ended) = open.join_next().await {
            take(ended, &mut summary, tell);
        }
        summary.elapsed_ms = account::ms(begun.elapsed());
        summary
    }

    /// Until when nothing is accepted after this error. It is told of once, and again when somebody was accepted since.
    fn not_accepted(
        error: io::Error,
        pause: Option<Instant>,
        tell: &mut dyn FnMut(Event),
    ) -> Option<Instant> {
        // The client was gone before it was accepted.
        if error.kind() == ErrorKind::ConnectionAborted {
            return None;
        }
        if pause.is_none() {
            tell(Event::NotAccepted(error));
        }
        Some(Instant::now() + ACCEPT_PAUSE)
    }
}

/// Counts and tells of a connection that is over.
fn take(
    ended: Result<Connection, tokio::task::JoinError>,
    summary: &mut Summary,
    tell: &mut dyn FnMut(Event),
) {
    // Tasks are not aborted, and a panic in one ends the program where panics abort.
    if let Ok(connection) = ended {
        summary.add(&connection);
        tell(Event::Ended(Box::new(connection)));
    }
}

async fn accept(listener: &TcpListener, not_before: Option<Instant>) -> io::Result<(TcpStream, SocketAddr)> {
    if let Some(time) = not_before {
        tokio::time::sleep_until(time.into()).await;
    }
    listener.accept().await
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of the relay before this one may still be in TIME-WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A relay to itself would connect to itself until no descriptor is left.
async fn refuse_oneself(settings: &Settings, own: SocketAddr) -> io::Result<()> {
    // A name that cannot be looked up now may be known when a client comes.
    let Ok(addresses) = tokio::net::lookup_host((settings.host.as_str(), settings.port)).await else {
        return Ok(());
    };
    let is_own =
        |ip: IpAddr| ip == own.ip() || ip.is_unspecified() || own.ip().is_unspecified() && ip.is_loopback();
    let mut addresses = addresses.filter(|target| target.port() == own.port());
    if addresses.any(|target| is_own(target.ip())) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the target is the relay itself"));
    }
    Ok(())
}
