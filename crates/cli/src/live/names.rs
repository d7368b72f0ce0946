//! The programs at the ends of connections, as far as they run on this machine.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tcpwhy_diagnose::report::{Connection, Program, Source};
use tcpwhy_host::interface;
use tcpwhy_report::terminal;
use tcpwhy_wire::calls::Holder;
use tcpwhy_wire::sockets::TcpSocket;

use super::holders::Holders;
use super::kept::Ends;

/// Least time between two looks: programs that live for less are met by chance, or by their listening socket.
const SECOND: Duration = Duration::from_secs(1);
/// A look reads every descriptor of the machine, some 1 µs each. Where that takes long, looks are this many times as far
/// apart as they take.
const REST: u32 = 20;
/// Longest time that somebody waits for a look: many times what one takes, unless the machine is very busy.
const PATIENCE: Duration = Duration::from_secs(1);
/// Ends that are remembered after their sockets have gone: each kept connection's two, and as many again.
const MOST: usize = 80_000;

/// The kernel's lists, and whether they are UDP's.
const LISTS: [(&str, bool); 4] = [("tcp", false), ("tcp6", false), ("udp", true), ("udp6", true)];

/// One end of a connection; without a peer, a socket that waits for peers.
type Key = (bool, SocketAddr, Option<SocketAddr>);

/// Who is at the ends of connections; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// This machine's, at the latest look.
    addresses: HashSet<IpAddr>,
    looks: u64,
    /// Ends and their programs, with the number of the look that saw them last.
    ends: HashMap<Key, (u64, Program)>,
    /// To who looks.
    tell: Option<Sender<Told>>,
}

/// What who looks is told.
#[derive(Debug)]
enum Told {
    /// To look now, and to say when that is done.
    Now(Sender<()>),
    /// To end.
    End,
}

/// Looks again and again until it is dropped, and then once more; the second process has ended with it.
pub(super) struct Looking {
    tell: Sender<Told>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Looking {
    fn drop(&mut self) {
        let _ = self.tell.send(Told::End);
        // It took nothing with it if it panicked.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Names {
    /// Looks at once, and from then on each second on a thread of its own, in the calling thread's network namespace. The last
    /// look is at the end: connections that are younger than a second have their programs, too.
    pub(super) fn follow(&self, mut holders: Holders) -> io::Result<Looking> {
        let (tell, told) = mpsc::channel();
        self.known().tell = Some(tell.clone());
        let names = self.clone();
        let look = move || {
            let mut order = None;
            loop {
                let start = Instant::now();
                // Without the second process, what is known stays.
                let Ok(programs) = holders.look() else { break };
                names.learn(sockets(), &programs, interface::addresses().unwrap_or_default());
                match order.take() {
                    Some(Told::End) => break,
                    // Who asked may be gone.
                    Some(Told::Now(looked)) => drop(looked.send(())),
                    None => {}
                }
                let rest = SECOND.max(start.elapsed() * REST);
                order = match told.recv_timeout(rest) {
                    Ok(order) => Some(order),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => Some(Told::End),
                };
            }
            holders.end();
        };
        let thread = thread::Builder::new().name("names".to_owned()).spawn(look)?;
        Ok(Looking { tell, thread: Some(thread) })
    }

    /// Looks now, if anybody looks at all, and waits for it, but no longer than [`PATIENCE`].
    pub(super) fn look(&self) {
        let (answer, answered) = mpsc::channel();
        let tell = self.known().tell.clone();
        if tell.is_some_and(|tell| tell.send(Told::Now(answer)).is_ok()) {
            // It may end instead.
            let _ = answered.recv_timeout(PATIENCE);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, sockets: Vec<(Key, u64)>, programs: &HashMap<u64, Program>, addresses: HashSet<IpAddr>) {
        let mut known = self.known();
        known.addresses = addresses;
        known.looks += 1;
        let look = known.looks;
        let held = sockets.into_iter().filter_map(|(key, inode)| Some((key, programs.get(&inode)?.clone())));
        known.ends.extend(held.map(|(key, program)| (key, (look, program))));
        known.forget();
    }

    /// The programs of client and server.
    pub(super) fn of_connection(&self, connection: &Connection) -> [Option<Program>; 2] {
        Ends::of(connection).map_or([None, None], |ends| self.of(&ends))
    }

    /// The programs at the ends of a report's connections, as a file keeps them.
    pub(super) fn holders(&self, report: &impl Source) -> Vec<Holder> {
        let mut holders = Vec::new();
        for Ends { is_udp, ends: [client, server] } in report.connections().filter_map(|one| Ends::of(&one)) {
            let programs = self.of(&Ends { is_udp, ends: [client, server] });
            for ((local, peer), program) in [(client, server), (server, client)].into_iter().zip(programs) {
                let Some(Program { name, pid: process }) = program else { continue };
                holders.push(Holder { is_udp, local, peer, process, name });
            }
        }
        holders
    }

    /// The programs at the ends.
    fn of(&self, connection: &Ends) -> [Option<Program>; 2] {
        let known = self.known();
        let [one, other] = connection.ends;
        [known.at(connection.is_udp, one, other), known.at(connection.is_udp, other, one)]
    }
}

/// `curl (4711) → python3 (812)`, as far as known; `None` where nothing is.
pub(super) fn described(programs: &[Option<Program>; 2]) -> Option<String> {
    terminal::programs(programs.each_ref().map(Option::as_ref))
}

impl Known {
    /// The program at `local`: that of the very connection, or else the one that waits there for peers.
    fn at(&self, is_udp: bool, local: SocketAddr, peer: SocketAddr) -> Option<Program> {
        let mut tries = vec![(is_udp, local, Some(peer)), (is_udp, local, None)];
        // Who waits at every address waits at this one only if it is this machine's.
        if local.ip().is_loopback() || self.addresses.contains(&local.ip()) {
            let everywhere = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
            tries.extend(everywhere.map(|ip: IpAddr| (is_udp, SocketAddr::new(ip, local.port()), None)));
        }
        tries.iter().find_map(|key| Some(self.ends.get(key)?.1.clone()))
    }

    /// Bounds the memory: of too many, the half that was not seen for longest goes.
    fn forget(&mut self) {
        if self.ends.len() <= MOST {
            return;
        }
        let mut looks: Vec<u64> = self.ends.values().map(|(look, _)| *look).collect();
        let (_, middle, _) = looks.select_nth_unstable(MOST / 2);
        let first_kept = (*middle + 1).min(self.looks);
        self.ends.retain(|_, (look, _)| *look >= first_kept);
    }
}

/// The sockets of the calling thread's network namespace: their ends and their numbers.
fn sockets() -> Vec<(Key, u64)> {
    let mut found = Vec::new();
    for (list, is_udp) in LISTS {
        // /proc/net is the main thread's.
        let text = fs::read_to_string(format!("/proc/thread-self/net/{list}")).unwrap_or_default();
        let sockets = text.lines().filter_map(TcpSocket::of_proc_line);
        found.extend(sockets.filter_map(|socket| key(is_udp, &socket)).take(MOST));
    }
    found
}

fn key(is_udp: bool, socket: &TcpSocket) -> Option<(Key, u64)> {
    let end = |text: &str| {
        let end: SocketAddr = text.parse().ok()?;
        // Sockets of IPv6 speak IPv4 under such addresses.
        Some(SocketAddr::new(end.ip().to_canonical(), end.port()))
    };
    let (local, peer) = (end(&socket.local)?, end(&socket.peer)?);
    let inode = socket.inode.filter(|inode| *inode != 0)?;
    Some(((is_udp, local, (peer.port() != 0).then_some(peer)), inode))
}

#[cfg(test)]
impl Names {
    /// Those of TCP sockets with these ends on a machine whose address is 10.0.0.1, each held by process 1 of that name.
    pub(super) fn of_sockets(sockets: &[(&str, Option<&str>, &str)]) -> Self {
        let end = |text: &str| text.parse().expect("an address");
        let key = |(local, peer, _): &(&str, Option<&str>, &str)| (false, end(local), peer.map(end));
        let program = |name: &str| Program { name: name.to_owned(), pid: 1 };
        let keys = sockets.iter().map(key).zip(1..).collect();
        let programs = (1..).zip(sockets).map(|(inode, (_, _, name))| (inode, program(name)));
        let names = Self::default();
        names.learn(keys, &programs.collect(), ["10.0.0.1".parse().expect("an address")].into());
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(names: &Names, one: &str, other: &str) -> [Option<String>; 2] {
        let ends = [one, other].map(|end| end.parse().expect("an address"));
        names.of(&Ends { is_udp: false, ends }).map(|program| program.map(|program| program.name))
    }

    #[test]
    fn the_very_socket_comes_before_the_one_that_listens() {
        let names = Names::of_sockets(&[
            ("127.0.0.1:5000", Some("127.0.0.1:80"), "curl"),
            ("127.0.0.1:80", Some("127.0.0.1:5000"), "worker"),
            ("0.0.0.0:80", None, "parent"),
        ]);
        let [curl, worker] = at(&names, "127.0.0.1:5000", "127.0.0.1:80");
        assert_eq!((curl.as_deref(), worker.as_deref()), (Some("curl"), Some("worker")));
        let [nobody, parent] = at(&names, "127.0.0.1:5001", "127.0.0.1:80");
        assert_eq!((nobody, parent.as_deref()), (None, Some("parent")));
    }

    #[test]
    fn another_machines_end_is_no_program_of_this_one() {
        let names = Names::of_sockets(&[
            ("10.0.0.1:5000", Some("10.0.0.2:80"), "curl"),
            ("[::]:80", None, "own server"),
        ]);
        let [curl, theirs] = at(&names, "10.0.0.1:5000", "10.0.0.2:80");
        assert_eq!((curl.as_deref(), theirs), (Some("curl"), None));
        let [_, own] = at(&names, "10.0.0.3:5000", "10.0.0.1:80");
        assert_eq!(own.as_deref(), Some("own server"));
    }

    #[test]
    fn what_was_seen_stays_until_there_are_too_many() {
        let names = Names::of_sockets(&[("127.0.0.1:5000", Some("127.0.0.1:80"), "curl")]);
        names.learn(Vec::new(), &HashMap::new(), HashSet::new());
        assert_eq!(at(&names, "127.0.0.1:5000", "127.0.0.1:80")[0].as_deref(), Some("curl"));
        let end =
            |port: usize| SocketAddr::from(([127, 0, 0, (port >> 15) as u8], (port & 0x7fff) as u16 + 1));
        for look in 0..4 {
            let ports = look * MOST / 2..(look + 1) * MOST / 2;
            let keys = ports.map(|port| ((false, end(port), None), 1)).collect();
            names.learn(
                keys,
                &HashMap::from([(1, Program { name: "many".to_owned(), pid: 1 })]),
                HashSet::new(),
            );
            assert!(names.0.lock().expect("no panic").ends.len() <= MOST);
        }
        assert_eq!(at(&names, "127.0.0.1:5000", "127.0.0.1:80")[0], None);
        let last = end(2 * MOST - 1).to_string();
        assert_eq!(at(&names, &last, "127.0.0.1:80")[0].as_deref(), Some("many"));
    }

    #[test]
    fn the_kernels_lists_have_our_sockets() {
        let listener = std::net::TcpListener::bind("[::]:0").expect("a listener");
        let inode = rustix::fs::fstat(&listener).expect("a status").st_ino;
        let local = listener.local_addr().expect("an address");
        assert!(sockets().contains(&((false, local, None), inode)));
    }
}
