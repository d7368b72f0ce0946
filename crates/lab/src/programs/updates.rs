//! A game: a server that tells its client ten times a second what has changed, over TCP or UDP, and a client that
//! answers a ping now and then.
//!
//! ```text
//! update   length (1 byte), whether it asks for an answer (1 byte), number (4 bytes), nothing up to the length
//! ```
//!
//! Over UDP a sequence number of 4 bytes goes before it, as Netrek's does.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use super::login;
use super::socket::{Options, PATIENCE};
use crate::clock::{ms_between, now};
use crate::place::{Place, Seat, join};

/// Bytes of an update in which little has changed.
const USUAL: usize = 12;
/// Bytes of an update that also asks for an answer.
const WITH_PING: usize = 24;
/// Bytes of an update in which much has changed.
const LARGE: usize = 60;
/// One update in so many is [`LARGE`].
const LARGE_EVERY: u32 = 37;
/// Bytes of the client's answer and of its commands.
const COMMAND: usize = 12;
/// Bytes of UDP's sequence number.
const SEQUENCE: usize = 4;

/// What carries the updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// One game.
#[derive(Clone, Debug, Serialize)]
pub struct Game {
    /// What carries the updates.
    pub carrier: Carrier,
    /// Updates a second.
    pub rate: f64,
    /// How long they are sent.
    pub length: Duration,
    /// The server's `TCP_NODELAY` at the start.
    pub nodelay: bool,
    /// When it is toggled, counted from the first update.
    pub repair_at: Option<Duration>,
    /// The client's own commands a second, 0 for none.
    pub commands: f64,
    /// Time between two updates that ask for an answer.
    pub ping_every: Duration,
    /// What happens before the first update.
    pub login: login::Login,
}

impl Game {
    /// Updates over TCP with Nagle's algorithm, a ping every 2 s, no login.
    pub fn tcp(rate: f64, length: Duration) -> Self {
        Self {
            carrier: Carrier::Tcp,
            rate,
            length,
            nodelay: false,
            repair_at: None,
            commands: 0.0,
            ping_every: Duration::from_secs(2),
            login: login::Login::default(),
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.rate.clamp(0.1, 1_000.0))
    }

    fn updates(&self) -> u32 {
        (self.length.as_secs_f64() * self.rate).round().max(1.0) as u32
    }

    /// The `number`-th update.
    fn update(&self, number: u32) -> Vec<u8> {
        let a_ping = (self.ping_every.as_secs_f64() * self.rate).round().max(1.0) as u32;
        let asks = number % a_ping == a_ping - 1;
        let length = match number {
            _ if asks => WITH_PING,
            n if n % LARGE_EVERY == LARGE_EVERY - 1 => LARGE,
            _ => USUAL,
        };
        let mut bytes = vec![0; length];
        bytes[0] = length as u8;
        bytes[1] = u8::from(asks);
        bytes[2..6].copy_from_slice(&number.to_be_bytes());
        bytes
    }
}

/// What the programs know of a game that is over; times in ns by [`crate::clock::now`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct Played {
    /// The port that the client spoke to, and what it received came from: the server's, or the relay's.
    pub port: u16,
    /// The server's port.
    pub server_port: u16,
    /// When the client began to connect.
    pub began: i64,
    /// When each update was written.
    pub written: Vec<i64>,
    /// When the client's program had each update; `None` if it never had.
    pub read: Vec<Option<i64>>,
    /// When the server's `TCP_NODELAY` was toggled, and to what.
    pub repairs: Vec<(i64, bool)>,
}

impl Played {
    /// How old each update was when the client's program had it, in ms.
    pub fn ages(&self) -> Vec<f64> {
        let pairs = self.written.iter().zip(&self.read);
        pairs.filter_map(|(written, read)| read.map(|read| ms_between(*written, read))).collect()
    }

    /// From the client's `connect()` until it had the first update, in ms.
    pub fn first_frame(&self) -> Option<f64> {
        let first = self.read.iter().flatten().next()?;
        Some(ms_between(self.began, *first))
    }
}

/// What both programs and whoever watches them share.
#[derive(Debug, Default)]
struct Shared {
    nodelay: AtomicBool,
    over: AtomicBool,
    /// When the client's reads returned, and how many updates each brought.
    reads: Mutex<Vec<(i64, u32)>>,
}

/// A game that is under way.
#[derive(Debug)]
pub struct Playing {
    shared: Arc<Shared>,
    port: u16,
    server_port: u16,
    server: JoinHandle<Result<Served>>,
    client: JoinHandle<Result<Seen>>,
}

impl Playing {
    /// Toggles the server's `TCP_NODELAY`, as the Repair key of the story did; what it is from the next update on.
    pub fn repair(&self) -> bool {
        !self.shared.nodelay.fetch_xor(true, Ordering::Relaxed)
    }

    /// Ends it at the next update.
    pub fn quit(&self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }

    /// Whether the client has seen its end.
    pub fn is_over(&self) -> bool {
        self.client.is_finished()
    }

    /// When the client's reads since the `from`-th returned, and how many updates each brought.
    pub fn reads(&self, from: usize) -> Vec<(i64, u32)> {
        let reads = self.shared.reads.lock().unwrap_or_else(PoisonError::into_inner);
        reads.get(from..).unwrap_or_default().to_vec()
    }

    /// Waits for its end.
    pub fn finish(self) -> Result<Played> {
        let Self { shared, port, server_port, server, client } = self;
        let seen = join(client);
        // A server whose client failed has nobody to play with, and one whose client is through has ended.
        shared.over.store(true, Ordering::Relaxed);
        let (served, seen) = (join(server), seen.context("the client")?);
        let served = served.context("the server")?;
        let mut read = vec![None; served.written.len()];
        for (number, time) in seen.updates {
            if let Some(slot) = read.get_mut(number as usize) {
                *slot = Some(time);
            }
        }
        let Served { written, repairs } = served;
        Ok(Played { port, server_port, began: seen.began, written, read, repairs })
    }
}

/// What the server logged.
#[derive(Debug, Default)]
struct Served {
    written: Vec<i64>,
    repairs: Vec<(i64, bool)>,
}

/// What the client logged.
#[derive(Debug, Default)]
struct Seen {
    began: i64,
    /// Number of each update, and when it was read.
    updates: Vec<(u32, i64)>,
}

/// Starts the server on its host and the client on its own. The client speaks to `through`, where something
/// stands between them, else to the server.
pub fn start(
    place: &Place,
    game: &Game,
    through: impl FnOnce(SocketAddr) -> Result<SocketAddr>,
) -> Result<Playing> {
    let shared = Arc::new(Shared { nodelay: AtomicBool::new(game.nodelay), ..Shared::default() });
    match game.carrier {
        Carrier::Tcp => {
            let listener = super::listen(&place.server)?;
            let address = listener.local_addr()?;
            let (spoken_to, server_port) = (through(address)?, address.port());
            let (serving, of_server) = (game.clone(), Arc::clone(&shared));
            let server = place.server.spawn(move || serve_tcp(&listener, &serving, &of_server));
            let (playing, of_client) = (game.clone(), Arc::clone(&shared));
            let client = place.client.spawn(move || play_tcp(spoken_to, &playing, &of_client));
            Ok(Playing { shared, port: spoken_to.port(), server_port, server, client })
        }
        Carrier::Udp => {
            let socket = udp(&place.server)?;
            let address = socket.local_addr()?;
            let (serving, of_server) = (game.clone(), Arc::clone(&shared));
            let server = place.server.spawn(move || serve_udp(&socket, &serving, &of_server));
            let (playing, of_client) = (game.clone(), Arc::clone(&shared));
            let own = place.client.address();
            let client = place.client.spawn(move || play_udp(own, address, &playing, &of_client));
            let port = address.port();
            Ok(Playing { shared, port, server_port: port, server, client })
        }
    }
}

fn udp(seat: &Seat) -> Result<UdpSocket> {
    let address = seat.address();
    join(seat.spawn(move || Ok(UdpSocket::bind((address, 0))?)))
}

/// Calls `send` for each update when it is due, and `repaired` when the option is to change.
fn run_updates(
    game: &Game,
    shared: &Shared,
    mut send: impl FnMut(u32, &[u8]) -> Result<()>,
    repaired: impl Fn(bool) -> Result<()>,
) -> Result<Served> {
    let (mut served, mut nodelay, begun) = (Served::default(), game.nodelay, Instant::now());
    let mut repair_at = game.repair_at;
    for number in 0..game.updates() {
        let due = game.interval() * number;
        sleep(due.saturating_sub(begun.elapsed()));
        if shared.over.load(Ordering::Relaxed) {
            break;
        }
        if repair_at.take_if(|at| *at <= due).is_some() {
            shared.nodelay.fetch_xor(true, Ordering::Relaxed);
        }
        let wanted = shared.nodelay.load(Ordering::Relaxed);
        if wanted != nodelay {
            repaired(wanted)?;
            nodelay = wanted;
            served.repairs.push((now(), wanted));
        }
        served.written.push(now());
        send(number, &game.update(number))?;
    }
    // The last update has its full interval.
    sleep(game.interval());
    Ok(served)
}

fn serve_tcp(listener: &TcpListener, game: &Game, shared: &Shared) -> Result<Served> {
    let stream = Options { nodelay: game.nodelay, ..Options::default() }.accept(listener)?;
    game.login.serve(&stream)?;
    // The client's answers and commands are read and forgotten.
    let mut incoming = stream.try_clone()?;
    incoming.set_read_timeout(None)?;
    let reader = std::thread::spawn(move || while matches!(incoming.read(&mut [0; 1024]), Ok(1..)) {});
    let served = run_updates(
        game,
        shared,
        |_, update| Ok((&stream).write_all(update)?),
        |nodelay| Ok(stream.set_nodelay(nodelay)?),
    );
    stream.shutdown(std::net::Shutdown::Write)?;
    // The reader ends with the client's FIN.
    let _ = reader.join();
    served
}

fn play_tcp(server: SocketAddr, game: &Game, shared: &Shared) -> Result<Seen> {
    let mut seen = Seen { began: now(), ..Seen::default() };
    // The client is not what the story is about: its few bytes leave at once.
    let mut stream = Options { nodelay: true, ..Options::default() }.connect(server)?;
    game.login.join(&stream)?;
    let commander = commander(stream.try_clone()?, game);
    let (mut waiting, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut buffer).context("no update for long")?;
        if length == 0 {
            break;
        }
        waiting.extend_from_slice(&buffer[..length]);
        let (time, before) = (now(), seen.updates.len());
        while let Some((number, asks, length)) = first_update(&waiting)? {
            waiting.drain(..length);
            seen.updates.push((number, time));
            if asks {
                stream.write_all(&[0; COMMAND])?;
            }
        }
        note(shared, time, seen.updates.len() - before);
    }
    shared.over.store(true, Ordering::Relaxed);
    drop(commander);
    let _ = stream.shutdown(std::net::Shutdown::Both);
    Ok(seen)
}

fn note(shared: &Shared, time: i64, updates: usize) {
    let updates = u32::try_from(updates).unwrap_or(u32::MAX);
    shared.reads.lock().unwrap_or_else(PoisonError::into_inner).push((time, updates));
}

/// Number, ping and length of the first update in `bytes`, once all of it is there.
fn first_update(bytes: &[u8]) -> Result<Option<(u32, bool, usize)>> {
    let Some(&[length, asks, a, b, c, d]) = bytes.first_chunk::<6>() else { return Ok(None) };
    let whole = usize::from(length);
    ensure!(whole >= USUAL, "the stream of updates is garbled");
    Ok((bytes.len() >= whole).then_some((u32::from_be_bytes([a, b, c, d]), asks == 1, whole)))
}

/// A client's player, who steers now and then.
struct Commander {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Commander {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn commander(mut stream: TcpStream, game: &Game) -> Commander {
    let over = Arc::new(AtomicBool::new(false));
    if game.commands <= 0.0 {
        return Commander { over, thread: None };
    }
    let interval = Duration::from_secs_f64(1.0 / game.commands);
    let seen = Arc::clone(&over);
    let thread = std::thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) && stream.write_all(&[0; COMMAND]).is_ok() {
            sleep(interval);
        }
    });
    Commander { over, thread: Some(thread) }
}

fn serve_udp(socket: &UdpSocket, game: &Game, shared: &Shared) -> Result<Served> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let (_, client) = socket.recv_from(&mut [0; COMMAND]).context("nobody came")?;
    let send = |number: u32, update: &[u8]| {
        let datagram = [&number.to_be_bytes()[..], update].concat();
        socket.send_to(&datagram, client)?;
        Ok(())
    };
    let served = run_updates(game, shared, send, |_| Ok(()))?;
    // An empty datagram ends the game; three, since one may be lost.
    (0..3).try_for_each(|_| socket.send_to(&[], client).map(drop))?;
    Ok(served)
}

fn play_udp(own: IpAddr, server: SocketAddr, game: &Game, shared: &Shared) -> Result<Seen> {
    let mut seen = Seen { began: now(), ..Seen::default() };
    let socket = UdpSocket::bind((own, 0))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(server)?;
    socket.send(&[0; COMMAND])?;
    let mut buffer = [0; 256];
    let (interval, mut last_command) = (1.0 / game.commands, Instant::now());
    loop {
        let length = socket.recv(&mut buffer).context("no update for long")?;
        let Some(update) = buffer[..length].get(SEQUENCE..) else { break };
        let Some((number, asks, _)) = first_update(update)? else { bail!("an update was cut short") };
        let time = now();
        seen.updates.push((number, time));
        note(shared, time, 1);
        let steers = game.commands > 0.0 && last_command.elapsed().as_secs_f64() >= interval;
        if asks || steers {
            socket.send(&[0; COMMAND])?;
            last_command = Instant::now();
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_have_the_sizes_of_the_story() {
        let game = Game::tcp(10.0, Duration::from_secs(10));
        let sizes: Vec<usize> = (0..game.updates()).map(|number| game.update(number).len()).collect();
        assert_eq!(sizes.len(), 100);
        let count = |size| sizes.iter().filter(|&&of| of == size).count();
        // A ping every 2 s; the 37th and the 74th are large; all others are small.
        assert_eq!((count(24), count(60), count(12)), (5, 2, 93));
    }

    #[test]
    fn merged_and_torn_updates_are_told_apart() {
        let game = Game::tcp(10.0, Duration::from_secs(1));
        let two = [game.update(7), game.update(8)].concat();
        assert_eq!(first_update(&two).unwrap(), Some((7, false, 12)));
        assert_eq!(first_update(&two[12..]).unwrap(), Some((8, false, 12)));
        assert_eq!(first_update(&two[..11]).unwrap(), None);
        assert_eq!(first_update(&two[..3]).unwrap(), None);
        assert!(first_update(&[0; 12]).is_err());
    }

    #[test]
    fn ages_are_of_updates_that_arrived() {
        let played = Played {
            began: 0,
            written: vec![1_000_000, 2_000_000, 3_000_000],
            read: vec![Some(2_500_000), None, Some(3_500_000)],
            ..Played::default()
        };
        assert_eq!(played.ages(), [1.5, 0.5]);
        assert_eq!(played.first_frame(), Some(2.5));
    }
}
