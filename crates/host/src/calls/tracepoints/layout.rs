//! Which trace events are wanted, of which only what, and what their bytes say.

use std::io;
use std::net::{IpAddr, SocketAddr};

use super::tracefs::{Event, Field, Tracefs};

/// `AF_INET6` of Linux.
const INET6: u64 = 10;
/// What a call returns that is to be made again after a signal, and of which its program never hears.
pub(super) const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

/// The events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A system call begins that may be one on a socket.
    Enter,
    /// `setsockopt` begins.
    Option,
    /// A system call of few bytes ends.
    Exit,
    /// TCP has taken bytes of a program, or refused to.
    Sent,
    /// A program has taken bytes of TCP, or learned of the end.
    Received,
    /// A socket's state changes.
    State,
}

/// Calls whose beginnings are wanted. `io_uring_enter`, of which no socket is known, ends what began before it.
const ENTERED: [libc::c_long; 25] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_preadv2,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwritev2,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_io_uring_enter,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    DUP2,
];

#[cfg(target_arch = "x86_64")]
const DUP2: libc::c_long = libc::SYS_dup2;
// Newer machines have only dup3.
#[cfg(not(target_arch = "x86_64"))]
const DUP2: libc::c_long = libc::SYS_dup3;

/// Calls whose ends are wanted: those of which no other event tells the result.
const LEFT: [libc::c_long; 11] = [
    libc::SYS_socket,
    libc::SYS_setsockopt,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    DUP2,
];

impl What {
    /// Those that are opened for each thread.
    pub(super) const OF_THREADS: [Self; 5] =
        [Self::Enter, Self::Option, Self::Exit, Self::Sent, Self::Received];

    /// The kernel's filter: of system calls the listed ones, of sockets TCP's, of reads those that brought something.
    pub(super) fn filter(self) -> String {
        let any = |calls: &[libc::c_long]| {
            let calls: Vec<_> = calls.iter().map(|call| format!("id == {call}")).collect();
            calls.join(" || ")
        };
        let tcp = libc::IPPROTO_TCP;
        match self {
            Self::Enter => any(&ENTERED),
            Self::Option => any(&[libc::SYS_setsockopt]),
            Self::Exit => any(&LEFT),
            Self::Sent | Self::State => format!("protocol == {tcp}"),
            Self::Received => format!("protocol == {tcp} && ret >= 0"),
        }
    }
}

/// Where the events of this kernel have what is needed of them.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    enter: (Event, [Field; 2]),
    exit: (Event, [Field; 2]),
    sent: (Event, [Field; 3]),
    received: (Event, [Field; 3]),
    state: (Event, [Field; 10]),
}

/// What an event's bytes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Enter { number: i64, arguments: [u64; 6] },
    Exit { number: i64, result: i64 },
    Sent { sock: u64, result: i64 },
    Received { sock: u64, result: i64, flags: u64 },
    State { sock: u64, old: i64, new: i64, ends: Option<(SocketAddr, SocketAddr)> },
}

impl Wanted {
    /// Asks the kernel. `NotFound` where it does not have one of them.
    pub(super) fn find(tracefs: &Tracefs) -> io::Result<Self> {
        let call = [["id", "args"], ["id", "ret"]];
        let moved = ["sk", "ret", "flags"];
        let state = [
            "skaddr", "oldstate", "newstate", "sport", "dport", "family", "saddr", "daddr", "saddr_v6",
            "daddr_v6",
        ];
        Ok(Self {
            enter: found(tracefs, "raw_syscalls/sys_enter", call[0])?,
            exit: found(tracefs, "raw_syscalls/sys_exit", call[1])?,
            sent: found(tracefs, "sock/sock_send_length", moved)?,
            received: found(tracefs, "sock/sock_recv_length", moved)?,
            state: found(tracefs, "sock/inet_sock_set_state", state)?,
        })
    }

    /// The number that `perf_event_open` wants.
    pub(super) fn number(&self, what: What) -> u64 {
        match what {
            What::Enter | What::Option => self.enter.0.number,
            What::Exit => self.exit.0.number,
            What::Sent => self.sent.0.number,
            What::Received => self.received.0.number,
            What::State => self.state.0.number,
        }
    }

    /// Reads an event. What is missing is 0.
    pub(super) fn said(&self, what: What, bytes: &[u8]) -> Said {
        match what {
            What::Enter | What::Option => {
                let [number, arguments] = self.enter.1;
                let mut words = [0; 6];
                for (word, bytes) in
                    words.iter_mut().zip(arguments.bytes(bytes).chunks_exact(size_of::<usize>()))
                {
                    // A long's bytes; 64-bit machines have eight of them.
                    *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
                }
                Said::Enter { number: number.signed(bytes), arguments: words }
            }
            What::Exit => {
                let [number, result] = self.exit.1;
                Said::Exit { number: number.signed(bytes), result: result.signed(bytes) }
            }
            What::Sent => {
                let [sock, result, _] = self.sent.1;
                Said::Sent { sock: sock.unsigned(bytes), result: result.signed(bytes) }
            }
            What::Received => {
                let [sock, result, flags] = self.received.1;
                Said::Received {
                    sock: sock.unsigned(bytes),
                    result: result.signed(bytes),
                    flags: flags.unsigned(bytes),
                }
            }
            What::State => self.state(bytes),
        }
    }

    fn state(&self, bytes: &[u8]) -> Said {
        let [sock, old, new, own_port, peer_port, family, own, peer, own6, peer6] = self.state.1;
        let (own, peer) = if family.unsigned(bytes) == INET6 { (own6, peer6) } else { (own, peer) };
        let end = |ip: Field, port: Field| {
            let port = u16::try_from(port.unsigned(bytes)).ok().filter(|port| *port != 0)?;
            Some(SocketAddr::new(address(ip.bytes(bytes))?, port))
        };
        Said::State {
            sock: sock.unsigned(bytes),
            old: old.signed(bytes),
            new: new.signed(bytes),
            ends: end(own, own_port).zip(end(peer, peer_port)),
        }
    }
}

fn found<const N: usize>(
    tracefs: &Tracefs,
    name: &str,
    fields: [&str; N],
) -> io::Result<(Event, [Field; N])> {
    let event = tracefs.event(name)?;
    let mut places = Vec::new();
    for field in fields {
        places.push(event.field(field)?);
    }
    let places = places.try_into().map_err(|_| io::Error::other("fields of a trace event"))?;
    Ok((event, places))
}

/// Four or sixteen bytes; IPv4 addresses that an IPv6 socket uses as packets have them.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(four));
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| IpAddr::from(sixteen).to_canonical())
}
