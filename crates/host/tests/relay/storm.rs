//! Many connections at once, of every kind, and not a byte lost.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Resource, getrlimit};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::{Running, anywhere, to};

/// Connections, unless `TCPWHY_RELAY_CONNECTIONS` says otherwise, or open files allow fewer.
const CONNECTIONS: u64 = 2_000;
/// Open files of one connection: the relay's two sockets, the client's and the target's.
const FILES_EACH: u64 = 4;
/// Open files of all else.
const FILES: u64 = 100;
/// Bytes that a side sends, at most.
const LONGEST: u64 = 300_000;
/// A test that hangs fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one connection does; both ends make it from the connection's number.
#[derive(Clone, Copy, Debug)]
struct Plan {
    number: u64,
    /// Bytes that the client and the target send.
    sends: [u64; 2],
    /// The side that answers only when the other one has finished.
    waits: Option<usize>,
    /// The side that reads slowly.
    is_slow: Option<usize>,
    /// The side that ends by a reset when all it wrote has been acknowledged.
    resets: Option<usize>,
}

impl Plan {
    fn new(number: u64) -> Self {
        let mut random = Rng::with_seed(number);
        let mut one = |share: f64| (random.f64() < share).then(|| random.usize(..2));
        let (waits, is_slow, resets) = (one(0.4), one(0.1), one(0.3));
        // Small messages, and bulk.
        let mut length = || if random.bool() { random.u64(0..200) } else { random.u64(..LONGEST) };
        // Who resets does not wait for the other side's bytes, which then may be lost by the peers' own kernels.
        Self {
            number,
            sends: [length(), length()],
            waits: waits.filter(|_| resets.is_none()),
            is_slow,
            resets,
        }
    }

    /// What a side sends, the client after the number, from which the target knows the plan.
    fn bytes(&self, side: usize) -> Vec<u8> {
        let mut random = Rng::with_seed(self.number * 2 + side as u64);
        (0..self.sends[side]).map(|_| random.u8(..)).collect()
    }
}

/// What a side got: bytes, their hash, and whether a reset ended them.
#[derive(Debug, PartialEq, Eq)]
struct Got {
    bytes: u64,
    hash: u64,
    by_reset: bool,
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

async fn read(socket: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    loop {
        socket.readable().await?;
        match socket.try_read(into) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

async fn write(socket: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        socket.writable().await?;
        match socket.try_write(bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends a side's bytes in pieces of any size, then finishes or resets.
async fn send(socket: &TcpStream, plan: &Plan, side: usize, bytes: &[u8]) -> io::Result<()> {
    let mut random = Rng::with_seed(!plan.number);
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(random.usize(1..=rest.len().min(20_000)));
        write(socket, piece).await?;
        rest = after;
        if random.u8(..) < 16 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    if plan.resets == Some(side) {
        acknowledged(socket).await;
        return Ok(());
    }
    SockRef::from(socket).shutdown(std::net::Shutdown::Write)
}

/// Waits until the host at the other end, which is the relay's, has acknowledged everything.
async fn acknowledged(socket: &TcpStream) {
    while unacknowledged(socket) > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Segments that are not acknowledged and bytes that have not left, together; none where the connection is gone.
fn unacknowledged(socket: &TcpStream) -> u32 {
    use nix::sys::socket::GetSockOpt;
    use nix::{getsockopt_impl, sockopt_impl};
    sockopt_impl!(Head, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, [u8; 148]);
    let head = Head.get(socket).expect("a socket");
    let at = |offset: usize| u32::from_ne_bytes(head[offset..offset + 4].try_into().expect("four bytes"));
    // tcpi_state (TCP_CLOSE is 7), tcpi_unacked, tcpi_notsent_bytes.
    if head[0] == 7 { 0 } else { at(24) + at(144) }
}

async fn receive(socket: &TcpStream, slowly: bool) -> Got {
    let mut got = Vec::new();
    let mut buffer = vec![0; 1 << 14];
    let by_reset = loop {
        match read(socket, &mut buffer).await {
            Ok(0) => break false,
            Ok(length) => got.extend_from_slice(&buffer[..length]),
            Err(_) => break true,
        }
        if slowly {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    Got { bytes: got.len() as u64, hash: hash(&got), by_reset }
}

/// Plays one side; what it got.
async fn play(socket: TcpStream, plan: Plan, side: usize) -> Got {
    let bytes = plan.bytes(side);
    let slowly = plan.is_slow == Some(side);
    if plan.resets == Some(side) {
        let _ = send(&socket, &plan, side, &bytes).await;
        SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("an option");
        return Got { bytes: 0, hash: 0, by_reset: false };
    }
    let sending = send(&socket, &plan, side, &bytes);
    let receiving = receive(&socket, slowly);
    if plan.waits == Some(side) {
        let got = receiving.await;
        sending.await.expect("the other side reads on");
        got
    } else {
        let (sent, got) = tokio::join!(sending, receiving);
        assert!(sent.is_ok() || plan.resets.is_some(), "{plan:?} {side}: {sent:?}");
        // The kernel tells of a reset once, to whoever asks first: the writer or the reader.
        Got { by_reset: got.by_reset || sent.is_err(), ..got }
    }
}

async fn target(listener: TcpListener, told: UnboundedSender<(u64, usize, Got)>) {
    loop {
        let (socket, _) = listener.accept().await.expect("the relay");
        let told = told.clone();
        tokio::spawn(async move {
            let mut first = [0; 8];
            let mut have = 0;
            while have < 8 {
                have += match read(&socket, &mut first[have..]).await {
                    Ok(length @ 1..) => length,
                    end => panic!("a connection without its number: {end:?}"),
                };
            }
            let number = u64::from_be_bytes(first[..].try_into().expect("eight bytes"));
            let got = play(socket, Plan::new(number), 1).await;
            let _ = told.send((number, 1, got));
        });
    }
}

async fn client(relay: SocketAddr, number: u64, told: UnboundedSender<(u64, usize, Got)>) {
    let socket = TcpStream::connect(relay).await.expect("the relay listens");
    write(&socket, &number.to_be_bytes()).await.expect("room");
    let got = play(socket, Plan::new(number), 0).await;
    let _ = told.send((number, 0, got));
}

/// Holds what one side got against what the other one sent.
fn check(plan: &Plan, side: usize, got: &Got) {
    let other = 1 - side;
    if plan.resets == Some(side) {
        return;
    }
    let sent = plan.bytes(other);
    assert_eq!(got.bytes, sent.len() as u64, "{plan:?}: what side {side} got");
    assert_eq!(got.hash, hash(&sent), "{plan:?}: what side {side} got");
    assert_eq!(got.by_reset, plan.resets == Some(other), "{plan:?}: how it ended for side {side}");
}

/// A listener whose queue holds all: what does not fit into it comes to an end by a reset (SYN cookies), with a relay and
/// without.
fn listener() -> TcpListener {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(anywhere()).expect("a free port");
    socket.listen(4096).expect("a listener")
}

#[test]
fn nothing_is_lost() {
    let many = std::env::var("TCPWHY_RELAY_CONNECTIONS").ok();
    let many = many.map_or(CONNECTIONS, |many| many.parse().expect("a number"));
    let allowed = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let many = many.min(allowed.saturating_sub(FILES) / FILES_EACH);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let listener = runtime.block_on(async { listener() });
    let running = Running::start(to(listener.local_addr().expect("an address")));
    let relay = running.address;
    runtime.block_on(async {
        let (told, mut results) = unbounded_channel();
        tokio::spawn(target(listener, told.clone()));
        for number in 0..many {
            tokio::spawn(client(relay, number, told.clone()));
        }
        let all = async {
            for _ in 0..2 * many {
                let (number, side, got) = results.recv().await.expect("results");
                check(&Plan::new(number), side, &got);
            }
        };
        tokio::time::timeout(PATIENCE, all).await.expect("every connection ends");
    });
    let mut resets = [0; 2];
    for side in (0..many).filter_map(|number| Plan::new(number).resets) {
        resets[side] += 1;
    }
    for _ in 0..many {
        running.ended();
    }
    let summary = running.stop();
    assert_eq!(summary.connections, many);
    assert_eq!([summary.reset_by_client, summary.reset_by_target], resets, "{summary:?}");
    assert!(summary.most_open as u64 > many / 20, "they came one by one: {summary:?}");
}
