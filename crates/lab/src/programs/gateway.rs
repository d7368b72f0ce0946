//! A game's gateway: a client pings it with long random strings, it asks AREA1, AREA2 and WORLD, and answers.
//!
//! A message is four bytes of length and then so many bytes of text.

use std::io::{IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendFlags, send};
use serde::Serialize;

use super::{cpu_time, listen};
use crate::clock;
use crate::place::{Place, join};

/// Whom the gateway asks.
pub const BACKENDS: [&str; 3] = ["AREA1", "AREA2", "WORLD"];
/// Bytes of the length before the text.
const HEADER: usize = 4;
/// Longest text in bytes that a receiver takes: what claims more is not one of these programs.
const LONGEST: usize = 1 << 20;

/// How a program hands a message to TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// One buffer, one `send()`.
    Whole,
    /// A chain of buffers, one `send()` each.
    Chained,
    /// A chain of buffers, one `writev()` for all.
    Writev,
    /// A chain of buffers, one `send()` each, with `MSG_MORE` on all but the last.
    More,
}

/// How one side's programs are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// How they send.
    pub strategy: Strategy,
    /// Bytes of a buffer in the chain, and of what they ask of `recv()`.
    pub buffer: usize,
    /// `TCP_NODELAY` on all their sockets.
    pub nodelay: bool,
}

/// What is played.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// How the client is built.
    pub client: Side,
    /// How the gateway and the programs behind it are built.
    pub servers: Side,
    /// Lengths of the strings in bytes.
    pub sizes: RangeInclusive<usize>,
    /// How many pings.
    pub pings: u32,
    /// Time from one ping to the next; without, the next follows the answer.
    pub every: Option<Duration>,
    /// Seed of the strings.
    pub seed: u64,
}

/// One ping.
#[derive(Clone, Debug, Serialize)]
pub struct Ping {
    /// From 1.
    pub sequence: u32,
    /// When its send began, ns since the epoch.
    pub sent: i64,
    /// Length of its string in bytes.
    pub bytes: usize,
    /// From the client's send to the whole answer, in ms.
    pub latency: f64,
    /// From the gateway's first send to the whole answer of each backend, in ms, as [`BACKENDS`] are ordered.
    pub backends: [f64; BACKENDS.len()],
}

/// What the programs saw. A string that comes back changed is an error.
#[derive(Clone, Debug, Serialize)]
pub struct Log {
    /// Every ping, in order.
    pub pings: Vec<Ping>,
    /// CPU time of the client's thread.
    pub client_cpu: Duration,
    /// CPU time of the gateway's thread.
    pub gateway_cpu: Duration,
}

/// The gateway's part of the log.
type Answers = (Vec<[f64; BACKENDS.len()]>, Duration);

/// All programs at their seats: the gateway alone at the server's, so that every message crosses the path.
pub fn play(place: &Place, options: &Options) -> Result<Log> {
    let side = options.servers;
    let mut backends = Vec::new();
    let mut addresses = Vec::new();
    for _ in BACKENDS {
        let listener = listen(&place.client)?;
        addresses.push(listener.local_addr()?);
        backends.push(place.client.spawn(move || echo(&listener, side)));
    }
    let listener = listen(&place.server)?;
    let address = listener.local_addr()?;
    let gateway = place.server.spawn(move || pass_on(&listener, &addresses, side));
    let owned = options.clone();
    let log = join(place.client.spawn(move || ping(address, &owned)))?;
    let answers = join(gateway)?;
    backends.into_iter().try_for_each(join)?;
    with_answers(log, answers)
}

/// The client's log with the gateway's.
fn with_answers(mut log: Log, (latencies, cpu): Answers) -> Result<Log> {
    ensure!(latencies.len() == log.pings.len(), "the gateway did not see every ping");
    for (ping, backends) in log.pings.iter_mut().zip(latencies) {
        ping.backends = backends;
    }
    Ok(Log { gateway_cpu: cpu, ..log })
}

/// The client.
pub fn ping(gateway: SocketAddr, options: &Options) -> Result<Log> {
    let mut socket = connect(gateway, options.client)?;
    let mut chance = fastrand::Rng::with_seed(options.seed);
    let (mut pings, before, start) = (Vec::new(), cpu_time(), Instant::now());
    for sequence in 1..=options.pings {
        if let Some(every) = options.every {
            std::thread::sleep((every * (sequence - 1)).saturating_sub(start.elapsed()));
        }
        let message = random_message(&mut chance, options.sizes.clone());
        let (sent, watch) = (clock::now(), Instant::now());
        write_message(&mut socket, &message, options.client)?;
        let answer = read_message(&mut socket, options.client)?.context("the gateway has gone")?;
        let latency = in_ms(watch.elapsed());
        ensure!(answer == message, "the string of ping {sequence} came back changed");
        pings.push(Ping { sequence, sent, bytes: message.len() - HEADER, latency, backends: [0.0; 3] });
    }
    let client_cpu = cpu_time().saturating_sub(before);
    Ok(Log { pings, client_cpu, gateway_cpu: Duration::ZERO })
}

/// The gateway: serves one client.
fn pass_on(listener: &TcpListener, backends: &[SocketAddr], side: Side) -> Result<Answers> {
    let mut links = backends.iter().map(|at| connect(*at, side)).collect::<Result<Vec<_>>>()?;
    let (mut client, _) = listener.accept()?;
    client.set_nodelay(side.nodelay)?;
    let before = cpu_time();
    let mut latencies = Vec::new();
    while let Some(message) = read_message(&mut client, side)? {
        latencies.push(ask_all(&mut links, &message, side)?);
        write_message(&mut client, &message, side)?;
    }
    Ok((latencies, cpu_time().saturating_sub(before)))
}

/// Sends `message` to every backend and waits for all answers; returns how long each took, in ms.
fn ask_all(links: &mut [TcpStream], message: &[u8], side: Side) -> Result<[f64; BACKENDS.len()]> {
    let watch = Instant::now();
    for link in links.iter_mut() {
        write_message(link, message, side)?;
    }
    let mut answers = vec![Vec::new(); links.len()];
    let mut latencies = [None; BACKENDS.len()];
    while latencies.iter().any(Option::is_none) {
        for index in readable(links)? {
            ensure!(
                read_some(&mut links[index], &mut answers[index], side.buffer)? > 0,
                "a backend has gone"
            );
            if is_whole(&answers[index])? {
                latencies[index] = Some(in_ms(watch.elapsed()));
            }
        }
    }
    ensure!(answers.iter().all(|answer| answer == message), "a backend changed the string");
    Ok(latencies.map(Option::unwrap_or_default))
}

/// Waits until some of the sockets can be read; returns which.
fn readable(links: &[TcpStream]) -> Result<Vec<usize>> {
    let mut ready: Vec<_> = links.iter().map(|link| PollFd::new(link, PollFlags::IN)).collect();
    poll(&mut ready, None)?;
    Ok((0..ready.len()).filter(|index| !ready[*index].revents().is_empty()).collect())
}

/// A backend: sends back what it gets.
fn echo(listener: &TcpListener, side: Side) -> Result<()> {
    let (mut socket, _) = listener.accept()?;
    socket.set_nodelay(side.nodelay)?;
    while let Some(message) = read_message(&mut socket, side)? {
        write_message(&mut socket, &message, side)?;
    }
    Ok(())
}

fn connect(address: SocketAddr, side: Side) -> Result<TcpStream> {
    let socket = TcpStream::connect(address)?;
    socket.set_nodelay(side.nodelay)?;
    Ok(socket)
}

/// Random text of a random length, framed.
fn random_message(chance: &mut fastrand::Rng, sizes: RangeInclusive<usize>) -> Vec<u8> {
    let length = chance.usize(sizes);
    let header = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    let text = (0..length).map(|_| chance.alphanumeric() as u8);
    header.into_iter().chain(text).collect()
}

/// Hands a framed message to TCP the way `side` does.
fn write_message(socket: &mut TcpStream, message: &[u8], side: Side) -> Result<()> {
    let chain = message.chunks(side.buffer.max(1));
    match side.strategy {
        Strategy::Whole => socket.write_all(message)?,
        Strategy::Chained => {
            for buffer in chain {
                socket.write_all(buffer)?;
            }
        }
        Strategy::Writev => write_vectored(socket, &mut chain.map(IoSlice::new).collect::<Vec<_>>())?,
        Strategy::More => {
            let last = chain.len() - 1;
            for (index, buffer) in chain.enumerate() {
                let flags = if index < last { SendFlags::MORE } else { SendFlags::empty() };
                send_all(socket, buffer, flags)?;
            }
        }
    }
    Ok(())
}

fn write_vectored(socket: &mut TcpStream, mut rest: &mut [IoSlice<'_>]) -> Result<()> {
    while !rest.is_empty() {
        let written = socket.write_vectored(rest)?;
        ensure!(written > 0, "writev() wrote nothing");
        IoSlice::advance_slices(&mut rest, written);
    }
    Ok(())
}

fn send_all(socket: &TcpStream, mut rest: &[u8], flags: SendFlags) -> Result<()> {
    while !rest.is_empty() {
        let sent = send(socket, rest, flags | SendFlags::NOSIGNAL)?;
        rest = &rest[sent..];
    }
    Ok(())
}

/// Reads a framed message; `None` when the peer has closed. Programs here never send ahead, so what is read
/// ends with the message.
fn read_message(socket: &mut TcpStream, side: Side) -> Result<Option<Vec<u8>>> {
    let mut message = Vec::new();
    while !is_whole(&message)? {
        if read_some(socket, &mut message, side.buffer)? == 0 {
            ensure!(message.is_empty(), "the peer closed within a message");
            return Ok(None);
        }
    }
    Ok(Some(message))
}

/// One `recv()` of up to `buffer` bytes; returns how many came.
fn read_some(socket: &mut TcpStream, message: &mut Vec<u8>, buffer: usize) -> Result<usize> {
    let have = message.len();
    message.resize(have + buffer.max(HEADER), 0);
    let read = socket.read(&mut message[have..])?;
    message.truncate(have + read);
    Ok(read)
}

/// Whether a framed message has come to its end.
fn is_whole(message: &[u8]) -> Result<bool> {
    let Some((header, text)) = message.split_first_chunk::<HEADER>() else { return Ok(false) };
    let length = u32::from_be_bytes(*header) as usize;
    if length > LONGEST || text.len() > length {
        bail!("a message is longer than it should be");
    }
    Ok(text.len() == length)
}

fn in_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Side = Side { strategy: Strategy::Chained, buffer: 8192, nodelay: true };

    fn over_loopback(options: &Options) -> Log {
        let local = || TcpListener::bind("127.0.0.1:0").unwrap();
        let side = options.servers;
        let mut backends = Vec::new();
        let addresses: Vec<_> = BACKENDS
            .iter()
            .map(|_| {
                let listener = local();
                let address = listener.local_addr().unwrap();
                backends.push(std::thread::spawn(move || echo(&listener, side).unwrap()));
                address
            })
            .collect();
        let listener = local();
        let address = listener.local_addr().unwrap();
        let gateway = std::thread::spawn(move || pass_on(&listener, &addresses, side).unwrap());
        let log = ping(address, options).unwrap();
        let log = with_answers(log, gateway.join().unwrap()).unwrap();
        backends.into_iter().for_each(|backend| backend.join().unwrap());
        log
    }

    #[test]
    fn every_strategy_brings_every_string_back() {
        for strategy in [Strategy::Whole, Strategy::Chained, Strategy::Writev, Strategy::More] {
            let side = Side { strategy, ..SMALL };
            let options = Options {
                client: side,
                servers: side,
                sizes: 5_000..=60_000,
                pings: 8,
                every: None,
                seed: 7,
            };
            let log = over_loopback(&options);
            let numbers: Vec<_> = log.pings.iter().map(|ping| ping.sequence).collect();
            assert_eq!(numbers, (1..=8).collect::<Vec<_>>(), "{strategy:?}");
            for ping in &log.pings {
                assert!((5_000..=60_000).contains(&ping.bytes), "{ping:?}");
                assert!(ping.backends.iter().all(|&ms| ms > 0.0 && ms <= ping.latency), "{ping:?}");
            }
        }
    }

    #[test]
    fn the_seed_decides_the_strings() {
        let of = |seed| random_message(&mut fastrand::Rng::with_seed(seed), 5..=60);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert!(is_whole(&of(1)).unwrap());
    }

    #[test]
    fn a_message_is_whole_at_its_last_byte_and_never_longer() {
        assert!(!is_whole(&[0, 0, 0]).unwrap());
        assert!(!is_whole(&[0, 0, 0, 2, b'x']).unwrap());
        assert!(is_whole(&[0, 0, 0, 2, b'x', b'y']).unwrap());
        assert!(is_whole(&[0, 0, 0, 2, b'x', b'y', b'z']).is_err());
        assert!(is_whole(&[255; 8]).is_err());
    }
}
