//! Sockets of this very process, made to wait for something.
#![cfg(target_os = "linux")]

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_tcp_cork, set_tcp_nodelay, set_tcp_quickack};
use tcpwhy_diagnose::sockets::{Kind, Suspicion, suspicions};
use tcpwhy_host::process::{self, Descriptor, Holders, Refused};
use tcpwhy_host::sockets::{Diag, Found, Observer, describe, options};
use tcpwhy_wire::sockets::{State, TcpSocket};

/// How often something that lasts only 40 or 200 ms is tried: a busy machine may look away just then.
const ATTEMPTS: usize = 20;
/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(20);
/// `nobody`, as on most systems; any user but root will do.
const NOBODY: u32 = 65_534;

/// A connection over loopback: the client's end and the server's.
fn pair() -> (TcpStream, TcpStream) {
    pair_at(&TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener"))
}

fn pair_at(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    (client, listener.accept().expect("its other end").0)
}

/// The kernel's view of one end, with its options.
fn look(end: &TcpStream) -> Found {
    let local = end.local_addr().expect("an address");
    let peer = end.peer_addr().expect("an address");
    let mut observer = Observer::new().expect("sock_diag");
    let mut all = observer.all().expect("sockets");
    all.retain(|found| (found.local, found.peer) == (local, peer));
    observer.attribute(&mut all, &Holders::of(&[std::process::id()]));
    let [mut found] = <[Found; 1]>::try_from(all).expect("one socket");
    found.read_options();
    assert_eq!(found.refused, None);
    found
}

/// Looks again and again until the socket is as expected.
fn await_look(end: &TcpStream, expected: impl Fn(&TcpSocket) -> bool) -> Found {
    let begun = Instant::now();
    loop {
        let found = look(end);
        if expected(&found.socket) {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{found:#?}");
    }
}

fn kinds(socket: &TcpSocket) -> Vec<Kind> {
    suspicions(socket).into_iter().map(|suspicion| suspicion.kind).collect()
}

/// Says on standard error, which shows it, that a test could not be made.
fn skipped(name: &str) {
    let _ = writeln!(io::stderr(), "SKIPPED {name}: only root may become somebody else, or make a network");
}

#[test]
fn a_socket_is_found_with_its_holder_and_its_addresses() {
    let (client, _server) = pair();
    let found = look(&client);
    assert_eq!(found.socket.state, State::Established);
    assert_eq!(found.socket.local, client.local_addr().expect("an address").to_string());
    let me = std::process::id();
    let holder = &found.socket.holders[0];
    assert_eq!((holder.pid, holder.fd), (me, u32::try_from(client.as_raw_fd()).ok()));
    assert_eq!(holder.name, process::name(me).expect("our own"));
    assert_eq!(found.socket.inode, Some(rustix::fs::fstat(&client).expect("a status").st_ino));
    assert_eq!(found.cookie, rustix::net::sockopt::socket_cookie(&client).expect("a number"));
    assert!(!found.is_elsewhere);
    // The handshake measured a round trip, and a window came with it.
    assert!(found.socket.info.rtt_us.is_some_and(|rtt| rtt > 0), "{found:#?}");
    assert!(found.socket.info.peer_window.is_some_and(|window| window > 0));
    assert!(found.socket.info.own_window.is_none_or(|window| window > 0));
}

#[test]
fn ipv6_and_listening_sockets_are_found_too() {
    let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else {
        let _ = writeln!(io::stderr(), "SKIPPED ipv6_and_listening_sockets_are_found_too: no IPv6 here");
        return;
    };
    let address = listener.local_addr().expect("an address");
    let (_client, server) = pair_at(&listener);
    let waiting = TcpStream::connect(address).expect("a connection that nobody accepts");
    assert_eq!(look(&server).socket.state, State::Established);
    let all = Diag::open().expect("sock_diag").sockets().expect("sockets");
    let listens = |found: &&Found| found.local == address && found.socket.state == State::Listen;
    let found = all.iter().find(listens).expect("the listener");
    // std listens with a backlog of 128.
    assert_eq!((found.socket.recv_queue, found.socket.send_queue), (1, 128));
    assert_eq!(kinds(&found.socket), [Kind::Unaccepted]);
    drop(waiting);
}

#[test]
fn options_are_read_back_as_the_program_set_them() {
    let (client, _server) = pair();
    for on in [true, false] {
        set_tcp_nodelay(&client, on).expect("an option set");
        set_tcp_cork(&client, on).expect("an option set");
        set_tcp_quickack(&client, on).expect("an option set");
        let read = look(&client).socket.options;
        assert_eq!((read.nodelay, read.cork, read.quickack), (Some(on), Some(on), Some(on)));
        assert_eq!(read, options(&client).expect("our own"));
    }
    let before = look(&client).socket.buffers;
    rustix::net::sockopt::set_socket_recv_buffer_size(&client, 20_000).expect("an option set");
    let after = look(&client).socket.buffers;
    // Linux doubles what a program asks for (socket(7)).
    assert_eq!((after.recv, after.send), (Some(40_000), before.send));
    if let Some(fixed) = after.recv_is_fixed {
        assert_eq!((fixed, before.recv_is_fixed, after.send_is_fixed), (true, Some(false), Some(false)));
    }
}

#[test]
fn nagle_holds_a_second_small_write() {
    let (mut client, mut server) = pair();
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        // The server delays its next ACK by 40 ms, as it does in a conversation.
        set_tcp_quickack(&server, false).expect("an option set");
        client.write_all(b"first").expect("a write");
        client.write_all(b"and second").expect("a write");
        let is_over = |socket: &TcpSocket| socket.send_queue == 0 || !suspicions(socket).is_empty();
        let socket = await_look(&client, is_over).socket;
        let found = suspicions(&socket);
        if let [Suspicion { kind: Kind::Nagle, amount: 10, still_ms }] = found[..] {
            // What has only just left is no stall yet.
            assert!(still_ms.is_some_and(|ms| (8..1_000).contains(&ms)));
            assert_eq!((socket.info.unacked, socket.bytes_in_flight()), (Some(1), Some(5)));
            client.set_nodelay(true).expect("an option set");
            // The option lets go of what is held.
            await_look(&client, |socket| suspicions(socket).is_empty() && socket.send_queue == 0);
            return;
        }
        seen.push(found);
        let mut both = [0; 15];
        server.read_exact(&mut both).expect("both writes");
    }
    panic!("never held: {seen:?}");
}

#[test]
fn a_cork_holds_a_small_write_though_nodelay_is_set() {
    let (mut client, mut server) = pair();
    client.set_nodelay(true).expect("an option set");
    set_tcp_cork(&client, true).expect("an option set");
    for _ in 0..ATTEMPTS {
        client.write_all(&[1; 34]).expect("a write");
        let socket = look(&client).socket;
        if kinds(&socket) == [Kind::Cork] {
            assert_eq!((socket.info.not_sent, socket.info.unacked), (Some(34), Some(0)));
            return;
        }
        server.read_exact(&mut [0; 34]).expect("what the kernel let go after 200 ms");
    }
    panic!("never held");
}

#[test]
fn a_program_that_does_not_read_closes_its_window() {
    let (mut client, server) = pair();
    client.set_nonblocking(true).expect("an option set");
    let mut written = 0;
    let error = loop {
        match client.write(&[1; 65_536]) {
            Ok(bytes) => written += bytes as u64,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let full = await_look(&client, |socket| kinds(socket).contains(&Kind::PeerWindow)).socket;
    let reader = await_look(&server, |socket| kinds(socket) == [Kind::Unread]).socket;
    assert!(full.send_queue + reader.recv_queue >= written, "{written}: {full:#?} {reader:#?}");
    // All that was written lies in one queue or the other, or is on its way between the two looks.
    assert!(full.info.not_sent.is_some_and(|bytes| bytes > 0 && bytes <= written));
}

#[test]
fn unread_bytes_are_counted_and_a_fin_is_none() {
    let (mut client, server) = pair();
    client.write_all(&[1; 10_010]).expect("a write");
    drop(client);
    let socket = await_look(&server, |socket| socket.state == State::CloseWait).socket;
    assert_eq!(socket.recv_queue, 10_010);
    let described = describe(&server).expect("our own").expect("a TCP socket").socket;
    assert_eq!((described.recv_queue, described.state), (10_010, State::CloseWait));
}

#[test]
fn a_descriptor_tells_what_the_kernels_table_tells() {
    let (mut client, _server) = pair();
    client.write_all(b"hello").expect("a write");
    let table = await_look(&client, |socket| socket.send_queue == 0);
    let described = describe(&client).expect("our own").expect("a TCP socket");
    assert_eq!((described.local, described.peer, described.cookie), (table.local, table.peer, table.cookie));
    let (mut one, mut other) = (described.socket, table.socket);
    assert_eq!(other.holders.len(), 1);
    (other.holders, other.timer) = (Vec::new(), None);
    for socket in [&mut one, &mut other] {
        // Time goes on between the two.
        (socket.info.last_sent_ms, socket.info.last_received_ms, socket.info.last_ack_ms) =
            (None, None, None);
    }
    assert_eq!(one, other);
    let udp = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    assert!(describe(&udp).expect("an answer").is_none());
}

#[test]
fn sockets_of_another_network_namespace_are_reached_through_their_descriptors() {
    // Only its sockets stay in the namespace; the thread that made it ends here.
    let other_network = thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).ok()?;
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, 4_321)).ok()
    });
    let Some(listener) = other_network.join().expect("no panic") else {
        return skipped("sockets_of_another_network_namespace_are_reached_through_their_descriptors");
    };
    let inode = rustix::fs::fstat(&listener).expect("a status").st_ino;
    let mut observer = Observer::new().expect("sock_diag");
    let is_it = |found: &&Found| found.socket.inode == Some(inode);
    assert!(observer.all().expect("sockets").iter().find(is_it).is_none());
    let holders = Holders::of(&[std::process::id()]);
    let mut all = observer.held(&holders).expect("sockets");
    observer.attribute(&mut all, &holders);
    let found = all.iter().find(is_it).expect("the listener");
    assert!(found.is_elsewhere);
    assert_eq!((found.socket.state, found.local.port()), (State::Listen, 4_321));
    assert_eq!(found.descriptors.len(), 1);
    let here = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let address = here.local_addr().expect("an address");
    let all = observer.held(&Holders::of(&[std::process::id()])).expect("sockets");
    assert!(all.iter().any(|found| found.local == address && !found.is_elsewhere));
}

/// A process of root's that holds a connection as its standard input; ended when dropped.
struct Program(Child);

impl Program {
    fn with(socket: TcpStream) -> Self {
        let stdin = Stdio::from(OwnedFd::from(socket));
        let child = Command::new("sleep").arg("60").stdin(stdin).stdout(Stdio::null()).spawn();
        Self(child.expect("sleep"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn without_rights_that_is_said() {
    if !rustix::process::geteuid().is_root() {
        return skipped("without_rights_that_is_said");
    }
    let (client, _server) = pair();
    let inode = rustix::fs::fstat(&client).expect("a status").st_ino;
    let program = Program::with(client);
    let pid = program.0.id();
    let descriptor = Descriptor { pid, fd: 0, inode };
    assert!(options(descriptor.duplicate().expect("root may")).is_ok());
    // Credentials are a thread's own in the kernel.
    let outcome = thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(NOBODY);
        rustix::thread::set_thread_uid(nobody).expect("root may become anybody");
        let sockets = process::sockets_of(pid).map_err(|error| error.kind());
        let all = Diag::open().expect("sock_diag").sockets().expect("sockets");
        (descriptor.duplicate().map(drop), sockets, Holders::of(&[pid]).hidden, all)
    });
    let (duplicate, sockets, hidden, all) = outcome.join().expect("no panic");
    assert_eq!((duplicate, sockets, hidden), (Err(Refused::Rights), Err(ErrorKind::PermissionDenied), 1));
    // What needs no rights is still there.
    assert!(all.iter().any(|found| found.socket.inode == Some(inode)));
}
