//! A server with one thread that answers long requests with two bytes, and many client threads that call it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{Timespec, epoll};
use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};
use serde::Serialize;

use crate::clock;
use crate::place::{Place, join};

/// Bytes of a request.
pub const REQUEST: usize = 10_010;
/// The answer.
const ANSWER: &[u8; 2] = b"OK";
/// The listening socket's mark in the event loop; connections have their index.
const LISTENER: u64 = u64::MAX;
/// Events taken from the kernel at once.
const EVENTS: usize = 256;
/// How often a server without events looks whether it is over.
const IDLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How long a client waits for an answer before it gives up on the server: a retransmission or two.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is played.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Options {
    /// Client threads, each with one call at a time.
    pub threads: usize,
    /// How long they call.
    pub time: Duration,
    /// Keep the connection for the next call, or make a new one for each.
    pub pooled: bool,
    /// Bytes of each of the client's `send()` calls.
    pub write: usize,
    /// `TCP_NODELAY` on the clients' sockets.
    pub client_nodelay: bool,
    /// `TCP_NODELAY` on the server's sockets.
    pub server_nodelay: bool,
    /// `SO_RCVBUF` of the listening socket in bytes; the kernel's choice without.
    pub rcvbuf: Option<usize>,
    /// Connections that may wait for `accept()`.
    pub backlog: i32,
}

/// One call.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Call {
    /// When it began, ns since the epoch.
    pub start: i64,
    /// What `connect()` took in ms; `None` on a pooled connection.
    pub connect: Option<f64>,
    /// From its beginning, `connect()` included, to the whole answer, in ms.
    pub total: f64,
}

/// What the programs saw.
#[derive(Clone, Debug, Serialize)]
pub struct Log {
    /// All calls, by thread and then in order.
    pub calls: Vec<Call>,
    /// Calls that the server answered.
    pub answered: u64,
    /// The server's receive queues in the middle of the run.
    pub queues: Queues,
}

/// What /proc/net/tcp showed of the server's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Queues {
    /// Connections that wait for `accept()`.
    pub backlog: u64,
    /// Established connections.
    pub established: u64,
    /// Those of them on which a whole request waits to be read.
    pub whole: u64,
    /// The most that waits on one of them, in bytes.
    pub most: u64,
}

/// Server and clients at their seats.
pub fn play(place: &Place, options: &Options) -> Result<Log> {
    let options = *options;
    let address = SocketAddr::new(place.server.address(), 0);
    let listener = join(place.server.spawn(move || listen_with(address, &options)))?;
    let address = listener.local_addr()?;
    let over = Arc::new(AtomicBool::new(false));
    let server = place.server.spawn({
        let over = Arc::clone(&over);
        move || serve(&listener, &options, &over)
    });
    let clients = place.client.spawn(move || call_with_threads(address, &options));
    std::thread::sleep(options.time / 2);
    let queues = join(place.server.spawn(move || queues_of(address.port())))?;
    let calls = join(clients);
    over.store(true, Ordering::Relaxed);
    let answered = join(server)?;
    Ok(Log { calls: calls?, answered, queues })
}

/// A listening socket whose connections inherit its receive buffer (tcp(7): it must be set before `listen()`).
fn listen_with(address: SocketAddr, options: &Options) -> Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let listener = socket(family, SocketType::STREAM, None)?;
    if let Some(bytes) = options.rcvbuf {
        sockopt::set_socket_recv_buffer_size(&listener, bytes)?;
    }
    bind(&listener, &address)?;
    listen(&listener, options.backlog)?;
    Ok(listener.into())
}

/// A connection of the server.
struct Peer {
    socket: TcpStream,
    /// Bytes of the present request that have come.
    have: usize,
}

/// The server: one thread, one event loop, until it is `over`. Returns how many calls it answered.
fn serve(listener: &TcpListener, options: &Options, over: &AtomicBool) -> Result<u64> {
    listener.set_nonblocking(true)?;
    let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&events, listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut peers = Peers { slots: Vec::new(), free: Vec::new() };
    let mut ready = Vec::with_capacity(EVENTS);
    let mut buffer = vec![0; REQUEST];
    let mut answered = 0;
    while !over.load(Ordering::Relaxed) {
        ready.clear();
        epoll::wait(&events, rustix::buffer::spare_capacity(&mut ready), Some(&IDLE))?;
        for event in &ready {
            let mark = event.data.u64();
            if mark == LISTENER {
                peers.accept_all(listener, &events, options)?;
                continue;
            }
            let Some(peer) = peers.get(mark) else { continue };
            let (calls, stays) = peer.read(&mut buffer, options.pooled);
            answered += calls;
            if !stays {
                peers.close(mark);
            }
        }
    }
    Ok(answered)
}

/// The server's connections; a slot's index is its mark in the event loop.
struct Peers {
    slots: Vec<Option<Peer>>,
    free: Vec<usize>,
}

impl Peers {
    fn accept_all(
        &mut self,
        listener: &TcpListener,
        events: &impl std::os::fd::AsFd,
        options: &Options,
    ) -> Result<()> {
        loop {
            let socket = match listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("accept()"),
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(options.server_nodelay)?;
            let slot = self.free.pop().unwrap_or(self.slots.len());
            if slot == self.slots.len() {
                self.slots.push(None);
            }
            epoll::add(events, &socket, epoll::EventData::new_u64(slot as u64), epoll::EventFlags::IN)?;
            self.slots[slot] = Some(Peer { socket, have: 0 });
        }
    }

    fn get(&mut self, mark: u64) -> Option<&mut Peer> {
        self.slots.get_mut(usize::try_from(mark).ok()?)?.as_mut()
    }

    fn close(&mut self, mark: u64) {
        if let Ok(slot) = usize::try_from(mark)
            && self.slots.get_mut(slot).and_then(Option::take).is_some()
        {
            self.free.push(slot);
        }
    }
}

impl Peer {
    /// Reads what has come and answers whole requests; returns how many, and whether the connection stays.
    fn read(&mut self, buffer: &mut [u8], pooled: bool) -> (u64, bool) {
        let mut answered = 0;
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return (answered, false),
                Ok(read) => self.have += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return (answered, true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A client that has gone is none of the server's business.
                Err(_) => return (answered, false),
            }
            while self.have >= REQUEST {
                self.have -= REQUEST;
                // Two bytes always fit: the client waits for them before it sends on.
                if self.socket.write_all(ANSWER).is_err() {
                    return (answered, false);
                }
                answered += 1;
                if !pooled {
                    return (answered, false);
                }
            }
        }
    }
}

/// All clients, as threads of the calling one: they share its host.
fn call_with_threads(server: SocketAddr, options: &Options) -> Result<Vec<Call>> {
    let deadline = Instant::now() + options.time;
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..options.threads).map(|_| scope.spawn(|| call_until(deadline, server, options))).collect();
        let mut calls = Vec::new();
        for client in clients {
            calls.extend(client.join().map_err(|_| anyhow::anyhow!("a client failed"))??);
        }
        Ok(calls)
    })
}

/// One client thread.
fn call_until(deadline: Instant, server: SocketAddr, options: &Options) -> Result<Vec<Call>> {
    let request = vec![b'x'; REQUEST];
    let mut calls = Vec::new();
    let mut kept = None;
    while Instant::now() < deadline {
        let (start, watch) = (clock::now(), Instant::now());
        let mut connect = None;
        let mut socket = match kept.take() {
            Some(socket) => socket,
            None => {
                let socket = connected(server, options)?;
                connect = Some(watch.elapsed().as_secs_f64() * 1e3);
                socket
            }
        };
        call(&mut socket, &request, options.write)?;
        // The first call of a pooled connection connects too, but that is not what calls cost there.
        let connect = connect.filter(|_| !options.pooled);
        calls.push(Call { start, connect, total: watch.elapsed().as_secs_f64() * 1e3 });
        if options.pooled {
            kept = Some(socket);
        }
    }
    Ok(calls)
}

fn connected(server: SocketAddr, options: &Options) -> Result<TcpStream> {
    let socket = TcpStream::connect(server).context("connect()")?;
    socket.set_nodelay(options.client_nodelay)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Sends a request in `send()` calls of `write` bytes and reads the answer.
fn call(socket: &mut TcpStream, request: &[u8], write: usize) -> Result<()> {
    for piece in request.chunks(write.max(1)) {
        socket.write_all(piece).context("send()")?;
    }
    let mut answer = [0; ANSWER.len()];
    socket.read_exact(&mut answer).context("no answer")?;
    ensure!(&answer == ANSWER, "the server answered {answer:?}");
    Ok(())
}

/// The queues of the sockets on `port` of the calling thread's host.
fn queues_of(port: u16) -> Result<Queues> {
    // Not /proc/net/tcp: that is the first thread's host.
    let table =
        std::fs::read_to_string("/proc/thread-self/net/tcp").context("cannot read the socket table")?;
    Ok(queues_in(&table, port))
}

/// Adds up the rows of /proc/net/tcp (`proc_pid_net(5)`) whose local port is `port`.
fn queues_in(table: &str, port: u16) -> Queues {
    const ESTABLISHED: &str = "01";
    const CLOSE_WAIT: &str = "08";
    const LISTEN: &str = "0A";
    let mut queues = Queues::default();
    for row in table.lines().skip(1) {
        let mut fields = row.split_ascii_whitespace().skip(1);
        let (Some(local), Some(_), Some(state), Some(sizes)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let is_ours = local.rsplit_once(':').is_some_and(|(_, p)| u16::from_str_radix(p, 16) == Ok(port));
        let waiting = sizes.rsplit_once(':').and_then(|(_, queue)| u64::from_str_radix(queue, 16).ok());
        let (true, Some(waiting)) = (is_ours, waiting) else { continue };
        match state {
            LISTEN => queues.backlog += waiting,
            ESTABLISHED | CLOSE_WAIT => {
                queues.established += 1;
                queues.whole += u64::from(waiting >= REQUEST as u64);
                queues.most = queues.most.max(waiting);
            }
            _ => {}
        }
    }
    queues
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options {
        threads: 4,
        time: Duration::from_millis(100),
        pooled: false,
        write: REQUEST,
        client_nodelay: true,
        server_nodelay: false,
        rcvbuf: None,
        backlog: 16,
    };

    fn over_loopback(options: Options) -> (Vec<Call>, u64) {
        let listener = listen_with("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let address = listener.local_addr().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let server = scope.spawn(|| serve(&listener, &options, &over));
            let calls = call_with_threads(address, &options);
            over.store(true, Ordering::Relaxed);
            (calls.unwrap(), server.join().unwrap().unwrap())
        })
    }

    #[test]
    fn the_server_answers_every_call_that_clients_made() {
        for (pooled, rcvbuf, write) in [(false, None, REQUEST), (true, None, 1024), (false, Some(4096), 1024)]
        {
            let (calls, answered) = over_loopback(Options { pooled, rcvbuf, write, ..OPTIONS });
            // Each of the four threads makes one call at least: the deadline is looked at before a call.
            assert!(calls.len() >= 4, "{} calls", calls.len());
            assert_eq!(calls.len() as u64, answered, "pooled: {pooled}");
            assert!(calls.iter().all(|call| call.connect.is_some() != pooled));
            assert!(calls.iter().all(|call| call.connect.unwrap_or(0.0) < call.total));
        }
    }

    #[test]
    fn a_small_receive_buffer_is_inherited() {
        let listener =
            listen_with("127.0.0.1:0".parse().unwrap(), &Options { rcvbuf: Some(4096), ..OPTIONS }).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        // The kernel doubles what it is asked for (socket(7)).
        assert_eq!(sockopt::socket_recv_buffer_size(&server).unwrap(), 8192);
    }

    #[test]
    fn queues_are_read_from_the_rows_of_the_port() {
        // Rows as the blog shows them: port 0x22B8 is 8888, 0x271A is 10,010.
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
            2: 5E01A8C0:22B8 00000000:0000 0A 00000000:00000012 02:0000000D 00000000  1000\n\
            3: 5E01A8C0:22B8 4101A8C0:F475 03 00000000:00000000 01:00000062 00000000  1000\n\
            76: 5E01A8C0:22B8 5B01A8C0:D3A5 01 00000000:0000171A 00:00000000 00000000  1000\n\
            77: 5E01A8C0:22B8 5B01A8C0:D3AD 01 00000000:0000271A 00:00000000 00000000     0\n\
            78: 5E01A8C0:1234 5B01A8C0:D3AD 01 00000000:0000271A 00:00000000 00000000     0\n\
            not a row\n";
        let expected = Queues { backlog: 18, established: 2, whole: 1, most: 10_010 };
        assert_eq!(queues_in(table, 8888), expected);
    }
}
