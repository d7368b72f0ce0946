//! What programs did with their TCP sockets, call by call, as a recorder wrote it down; and the same as blocks of a
//! pcapng file, beside the packets (docs/recording.md).

mod call;
mod decode;
mod encode;
mod holder;
mod kind;
mod layout;
mod writes;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use call::Sending;
pub use decode::{Block, Reader};
pub use encode::{Calls, head, holders};
pub use holder::Holder;
pub use kind::Kind;
pub(crate) use layout::MAGIC;
pub use writes::{Write, Writes};

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

    /// The function's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Accept => "accept",
            Self::Send => "send",
            Self::SendTo => "sendto",
            Self::SendMsg => "sendmsg",
            Self::SendMmsg => "sendmmsg",
            Self::Write => "write",
            Self::Writev => "writev",
            Self::Sendfile => "sendfile",
            Self::Splice => "splice",
            Self::Read => "read",
            Self::Readv => "readv",
            Self::Recv => "recv",
            Self::RecvFrom => "recvfrom",
            Self::RecvMsg => "recvmsg",
            Self::RecvMmsg => "recvmmsg",
            Self::SetSockOpt => "setsockopt",
            Self::Shutdown => "shutdown",
            Self::Close => "close",
        }
    }

    /// Whether it hands bytes to the connection.
    pub fn writes(self) -> bool {
        (Self::Send as u8..=Self::Splice as u8).contains(&(self as u8))
    }

    /// Whether it takes bytes from the connection.
    pub fn reads(self) -> bool {
        (Self::Read as u8..=Self::RecvMmsg as u8).contains(&(self as u8))
    }

    /// Whether its flags are those of `send(2)`.
    pub fn takes_send_flags(self) -> bool {
        matches!(self, Self::Send | Self::SendTo | Self::SendMsg | Self::SendMmsg)
    }

    /// Whether its flags are those of `recv(2)`.
    pub fn takes_recv_flags(self) -> bool {
        matches!(self, Self::Recv | Self::RecvFrom | Self::RecvMsg | Self::RecvMmsg)
    }

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
    /// The lines of the scripts that interpreters on stacks were running, by the stack's number, innermost first.
    pub scripts: BTreeMap<u32, Vec<Place>>,
    /// The same stacks as functions and lines, innermost first, once somebody has looked them up.
    pub places: BTreeMap<u32, Vec<Place>>,
    /// What processes call themselves.
    pub programs: BTreeMap<u32, String>,
    /// How it was made.
    pub about: About,
}

/// How a recording was made, and what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Calls that are not there for want of room.
    pub lost: u64,
    /// Calls that are not there since a signal handler made them while another was being recorded.
    pub interrupted: u64,
    /// Programs that were watched: one for each process, and one for each program that it executed.
    pub programs: u64,
    /// The cure that was tried (`nodelay`, …); empty where there was none.
    pub fix: String,
    /// Why calls cannot be seen, in a sentence; empty where nothing is known.
    pub unseen: String,
    /// Who recorded: `tcpwhy run`, say.
    pub recorder: String,
    /// Why there are no packets, in a sentence; empty where nobody asked for them.
    pub no_packets: String,
}

/// A function on a stack, and the line in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The function's name, demangled; empty where no symbol is known.
    pub function: String,
    /// Its source file, as the debug information names it; empty where there is none.
    pub file: String,
    /// The line in that file, from 1; 0 where none is known.
    pub line: u32,
    /// The name of the file that has its code.
    pub module: String,
    /// A line of a script, which the interpreter in `module` was running.
    pub script: bool,
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
    /// How long it took, in ns. 0 where its beginning is not known: `start` is its end then.
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
