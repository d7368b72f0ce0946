//! Which processes hold which sockets, and a process's socket in our hands.
//!
//! `/proc/PID/fd` says which descriptors of a process are sockets, and the number (inode) of each. Reading it takes
//! the rights to trace the process: the same user, or `CAP_SYS_PTRACE` (and `CAP_DAC_READ_SEARCH`, which root has too).
//! It costs a system call for each descriptor of each process, some 1 µs, so it is done once for many sockets
//! ([`Holders`]), not once for each.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// A descriptor of a process that is a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// The process.
    pub pid: u32,
    /// The descriptor's number there.
    pub fd: i32,
    /// The socket's number, unlike any other socket's of the machine.
    pub inode: u64,
}

/// Why a descriptor could not be duplicated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The process is another user's, or keeps others from tracing it (`PR_SET_DUMPABLE`), or the machine lets users
    /// trace only children (`kernel.yama.ptrace_scope`).
    #[error("needs CAP_SYS_PTRACE")]
    Rights,
    /// The process has ended, or the descriptor is something else now.
    #[error("the socket has been closed")]
    Gone,
    /// The kernel is older than Linux 5.6.
    #[error("needs Linux 5.6 or newer (pidfd_getfd)")]
    Kernel,
    /// Anything else, such as too many open files here.
    #[error("{0}")]
    Other(String),
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::PERM | Errno::ACCESS => Self::Rights,
            Errno::SRCH | Errno::BADF | Errno::INVAL => Self::Gone,
            Errno::NOSYS => Self::Kernel,
            other => Self::Other(io::Error::from(other).to_string()),
        }
    }
}

impl Descriptor {
    /// A descriptor by its number; `None` if it is no socket, or out of reach.
    pub fn of(pid: u32, fd: i32) -> Option<Self> {
        let target = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
        let inode = target.to_str().and_then(socket_inode)?;
        Some(Self { pid, fd, inode })
    }

    /// The very socket, in this process too: options set on it are set for its program.
    ///
    /// Drop it soon. As long as it is open here, its program's `close()` does not close the connection, and the peer
    /// hears nothing of the end.
    ///
    /// # Errors
    ///
    /// [`Refused`] says why not. What was reused for something else since it was found counts as gone.
    pub fn duplicate(self) -> Result<OwnedFd, Refused> {
        let process = pid(self.pid).ok_or(Refused::Gone)?;
        let process = pidfd_open(process, PidfdFlags::empty())?;
        let socket = pidfd_getfd(&process, self.fd, PidfdGetfdFlags::empty())?;
        let found = rustix::fs::fstat(&socket)?;
        if found.st_ino == self.inode { Ok(socket) } else { Err(Refused::Gone) }
    }
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// What a process calls itself: at most 15 bytes, and any bytes at all. Threads share it with their first one.
///
/// # Errors
///
/// Those of reading `/proc/PID/comm`: there is no such process.
pub fn name(pid: u32) -> io::Result<String> {
    let name = fs::read(format!("/proc/{pid}/comm"))?;
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The process that a thread belongs to; `top -H` shows threads by their own numbers, and descriptors can be duplicated
/// only by the process's.
///
/// # Errors
///
/// `NotFound`: there is neither such a process nor such a thread.
pub fn leader(thread: u32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let number = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    number.ok_or_else(|| io::Error::from(ErrorKind::InvalidData))
}

/// Whether there is such a process and it runs: one that has ended stays in `/proc` until its parent has asked for its
/// status.
pub fn is_running(pid: u32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // `4711 (name) S …`, and a name may hold anything.
    let state = stat.iter().rposition(|&byte| byte == b')').and_then(|end| stat.get(end + 2));
    state.is_some_and(|state| !matches!(state, b'Z' | b'X'))
}

/// When a process was started, in clock ticks since the machine was (the 22nd field of `/proc/PID/stat`, proc(5)).
pub(crate) fn start_of(stat: &[u8]) -> Option<u64> {
    /// Fields between the name, which may hold anything, and this one.
    const BETWEEN: usize = 19;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let field = stat.get(end + 2..)?.split(|&byte| byte == b' ').nth(BETWEEN)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// The sockets of a process, of every kind, by descriptor.
///
/// # Errors
///
/// `NotFound`: no such process. `PermissionDenied`: it is another user's.
pub fn sockets_of(pid: u32) -> io::Result<Vec<Descriptor>> {
    let mut sockets = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        // A descriptor may be closed while we look.
        let Ok(entry) = entry else { continue };
        let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        match fs::read_link(entry.path()) {
            Ok(target) => {
                let inode = target.to_str().and_then(socket_inode);
                sockets.extend(inode.map(|inode| Descriptor { pid, fd, inode }));
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            Err(_) => {}
        }
    }
    sockets.sort_unstable_by_key(|socket| socket.fd);
    Ok(sockets)
}

/// `socket:[2235719]`
fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Who holds which socket.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    by_inode: HashMap<u64, Vec<Descriptor>>,
    /// Processes that we may not look into, of those asked about.
    pub hidden: usize,
}

impl Holders {
    /// Asks all processes that `/proc` shows.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read.
    pub fn of_all() -> io::Result<Self> {
        let mut holders = Self::default();
        for entry in fs::read_dir("/proc")?.flatten() {
            if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                holders.ask(pid);
            }
        }
        Ok(holders)
    }

    /// Asks these processes.
    pub fn of(pids: &[u32]) -> Self {
        let mut holders = Self::default();
        pids.iter().for_each(|&pid| holders.ask(pid));
        holders
    }

    /// A process that has ended holds nothing.
    fn ask(&mut self, pid: u32) {
        match sockets_of(pid) {
            Ok(sockets) => {
                for socket in sockets {
                    self.by_inode.entry(socket.inode).or_default().push(socket);
                }
            }
            Err(error) => self.hidden += usize::from(error.kind() == ErrorKind::PermissionDenied),
        }
    }

    /// The descriptors that are the socket of this number.
    pub fn of_socket(&self, inode: u64) -> &[Descriptor] {
        self.by_inode.get(&inode).map_or(&[], Vec::as_slice)
    }

    /// The process that each socket belongs to, by the socket's number. Of several the eldest, but rather not the one
    /// that starts the others (`init`, which holds the sockets of services that it starts when they are needed).
    pub fn owners(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        const INIT: u32 = 1;
        let owner = |all: &[Descriptor]| all.iter().map(|one| one.pid).min_by_key(|&pid| (pid == INIT, pid));
        self.by_inode.iter().filter_map(move |(inode, all)| Some((*inode, owner(all)?)))
    }

    /// All that were found, in no order.
    pub fn descriptors(&self) -> impl Iterator<Item = Descriptor> + '_ {
        self.by_inode.values().flatten().copied()
    }
}

/// The network namespaces that processes live in, other than ours; those of other users' processes are not known.
pub fn other_networks() -> usize {
    let own = network_of("self").ok();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let networks: HashSet<_> = pids.filter_map(|pid| network_of(&pid.to_string()).ok()).collect();
    networks.iter().filter(|network| Some(*network) != own.as_ref()).count()
}

/// Whether a process lives in our network namespace.
///
/// # Errors
///
/// `NotFound`: no such process. `PermissionDenied`: it is another user's.
pub fn shares_our_network(pid: u32) -> io::Result<bool> {
    Ok(network_of(&pid.to_string())? == network_of("self")?)
}

fn network_of(process: &str) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_socket_is_found_with_its_process_and_duplicated() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let me = std::process::id();
        let inode = rustix::fs::fstat(&listener).expect("a status").st_ino;
        let descriptor = Descriptor { pid: me, fd: listener.as_raw_fd(), inode };
        let holders = Holders::of_all().expect("/proc");
        assert!(holders.of_socket(inode).contains(&descriptor));
        assert!(sockets_of(me).expect("our own").contains(&descriptor));
        assert!(Holders::of(&[me]).descriptors().any(|found| found == descriptor));
        let twin = descriptor.duplicate().expect("our own");
        assert_eq!(rustix::fs::fstat(&twin).expect("a status").st_ino, inode);
        assert!(twin.as_raw_fd() != listener.as_raw_fd());
    }

    #[test]
    fn what_is_gone_is_said_to_be_gone() {
        let me = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let inode = rustix::fs::fstat(&listener).expect("a status").st_ino;
        let reused = Descriptor { pid: me, fd: listener.as_raw_fd(), inode: inode + 1 };
        assert_eq!(reused.duplicate().map(drop), Err(Refused::Gone), "another socket by now");
        let closed = Descriptor { pid: me, fd: 1_000_000, inode };
        assert_eq!(closed.duplicate().map(drop), Err(Refused::Gone));
        // Above the kernel's largest PID.
        let nobody = Descriptor { pid: 4_194_305, fd: 0, inode };
        assert_eq!(nobody.duplicate().map(drop), Err(Refused::Gone));
        assert!(Holders::of(&[4_194_305]).of_socket(inode).is_empty());
        assert_eq!(name(4_194_305).map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    }

    #[test]
    fn what_has_ended_does_not_run() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("a program");
        assert!(is_running(child.id()) && is_running(std::process::id()));
        child.kill().expect("a signal sent");
        while is_running(child.id()) {
            std::thread::yield_now();
        }
        assert!(name(child.id()).is_ok(), "nobody has asked for its status yet");
        child.wait().expect("its end");
        assert!(!is_running(child.id()));
    }

    #[test]
    fn threads_have_a_process() {
        let me = std::process::id();
        let ask = || {
            let thread = fs::read_link("/proc/thread-self").expect("/proc");
            let thread = thread.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("a number");
            (thread, leader(thread).ok())
        };
        let (thread, found) = std::thread::spawn(ask).join().expect("no panic");
        assert!(thread != me && found == Some(me), "{thread} {found:?}");
        assert_eq!(leader(4_194_305).map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    }

    #[test]
    fn processes_have_names() {
        let name = name(std::process::id()).expect("our own");
        assert!(name.starts_with("tcpwhy_host"), "{name}");
    }
}
