//! What programs did with their TCP sockets, call by call, as a recorder wrote it down.

mod kind;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use kind::Kind;

impl Kind {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 19] = [
        Self::Connect,
        Self::Accept,
        Self::Send,
        Self::SendTo,
        Self::SendMsg,
        Self::SendMmsg,
        Self::Write,
        Self::Writev,
        Self::Sendfile,
        Self::Splice,
        Self::Read,
        Self::Readv,
        Self::Recv,
        Self::RecvFrom,
        Self::RecvMsg,
        Self::RecvMmsg,
        Self::SetSockOpt,
        Self::Shutdown,
        Self::Close,
    ];

    /// The one with this number in a recording.
    pub fn numbered(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Everything that was recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// All calls, in the order of their beginnings.
    pub calls: Vec<Call>,
    /// What was known of sockets, in the order of processes and threads, not of time.
    pub sockets: Vec<Socket>,
    /// The frames of each numbered stack, innermost first.
    pub stacks: BTreeMap<u32, Vec<Frame>>,
    /// The files that frames are in.
    pub modules: BTreeMap<u16, PathBuf>,
    /// Calls that are not there for want of room.
    pub lost: u64,
    /// Calls that are not there since a signal handler made them while another was being recorded.
    pub interrupted: u64,
    /// Programs that were watched: one for each process, and one for each program that it executed.
    pub programs: u64,
}

/// One call on a TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which call.
    pub kind: Kind,
    /// The process that made it.
    pub process: u32,
    /// The thread that made it.
    pub thread: u32,
    /// When it began, in ns since the epoch.
    pub start: i64,
    /// How long it took, in ns.
    pub took: u64,
    /// The socket's cookie, the kernel's number for it (`SO_COOKIE`).
    pub socket: u64,
    /// Bytes it was to move; for `setsockopt`, the level in the upper half and the option's number in the lower.
    pub asked: u64,
    /// What it returned, or the error's number, negative. For `sendmmsg` and `recvmmsg` bytes, not messages.
    pub result: i64,
    /// The descriptor.
    pub fd: i32,
    /// The number of the call stack; 0 where none was kept.
    pub stack: u32,
    /// Flags, or an option's value.
    pub flags: u64,
}

/// What was known of a socket when it was first met, connected or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its cookie.
    pub cookie: u64,
    /// Its own address.
    pub local: Option<SocketAddr>,
    /// The other side's.
    pub peer: Option<SocketAddr>,
    /// Whether `TCP_NODELAY` was on.
    pub nodelay: bool,
    /// The largest segment it sends, in bytes.
    pub mss: u32,
    /// Bytes that its program had written so far, by whatever call, as the kernel counts them.
    pub written: u64,
}

/// A place in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The file, a key of [`Recording::modules`]; 0 where no file has it, as with code made at run time.
    pub module: u16,
    /// Return address, from where the file was loaded on; without a file, the lower 48 bits of the address itself.
    pub offset: u64,
}
