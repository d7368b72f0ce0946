//! What a kernel's tables say about TCP sockets: Linux's `struct tcp_info` ([`Info::of_tcp_info`]), and saved
//! copies of `/proc/net/tcp[6]`, `ss` and `netstat` ([`Listing::read`]).
//!
//! Each source knows something else, so nearly everything is optional: `None` is "the source does not say", and
//! never zero.

mod info;
mod listing;
mod proc;
mod ss;
mod words;

pub use info::{CongestionState, Info};
pub use listing::{Listing, Source};

/// One TCP socket at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own address and port, `ip:port` with IPv6 in brackets; in a text as written there.
    pub local: String,
    /// The other side's.
    pub peer: String,
    /// Where it is in TCP's state machine.
    pub state: State,
    /// Bytes that arrived in order and that the program has not read. Of a listening socket: connections that wait
    /// for `accept()`.
    pub recv_queue: u64,
    /// Bytes that the program wrote and the peer has not acknowledged, sent or not. Of a listening socket: the
    /// longest queue of connections (the backlog), where the source says it (`/proc/net/tcp` does not: 0).
    pub send_queue: u64,
    /// The timer that runs.
    pub timer: Option<Timer>,
    /// The user who opened it.
    pub uid: Option<u32>,
    /// Its number in the file system of sockets, `socket:[N]` in `/proc/PID/fd`. 0 where no program holds it.
    pub inode: Option<u64>,
    /// Descriptors of programs that are this socket.
    pub holders: Vec<Holder>,
    /// The kernel's view of its connection.
    pub info: Info,
    /// Its buffers.
    pub buffers: Buffers,
    /// The name of its congestion control.
    pub congestion_control: Option<String>,
    /// What its program set.
    pub options: Options,
}

impl TcpSocket {
    /// A socket of which nothing more is known.
    pub fn new(local: String, peer: String, state: State) -> Self {
        Self {
            local,
            peer,
            state,
            recv_queue: 0,
            send_queue: 0,
            timer: None,
            uid: None,
            inode: None,
            holders: Vec::new(),
            info: Info::default(),
            buffers: Buffers::default(),
            congestion_control: None,
            options: Options::default(),
        }
    }

    /// Takes FINs out of the queues, where Linux counts each as a byte: one that came and was not read, one of our own
    /// that is not acknowledged.
    pub fn leave_out_fins(&mut self) {
        if matches!(self.state, State::CloseWait | State::LastAck | State::Closing) {
            self.recv_queue = self.recv_queue.saturating_sub(1);
        }
        if matches!(self.state, State::FinWait1 | State::LastAck | State::Closing) {
            self.send_queue = self.send_queue.saturating_sub(1);
            self.info.not_sent = self.info.not_sent.map(|bytes| bytes.saturating_sub(1));
        }
    }

    /// Bytes on their way or lost: sent, and not acknowledged.
    pub fn bytes_in_flight(&self) -> Option<u64> {
        Some(self.send_queue.saturating_sub(self.info.not_sent?))
    }
}

/// States of RFC 9293, section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Both sides may send.
    Established,
    /// A SYN is out.
    SynSent,
    /// A SYN came, and was answered.
    SynReceived,
    /// This side has closed; its FIN is not acknowledged.
    FinWait1,
    /// This side has closed, the other has not.
    FinWait2,
    /// Closed; late segments are waited for.
    TimeWait,
    /// Never connected, or over.
    Closed,
    /// The other side has closed, the program here has not.
    CloseWait,
    /// Both have closed; this side's FIN is not acknowledged.
    LastAck,
    /// Takes connections.
    Listen,
    /// Both have closed at once.
    Closing,
}

impl State {
    /// By Linux's number (`enum` in `include/net/tcp_states.h`). 12 is a half-open connection that has no full socket
    /// yet.
    pub fn of_linux(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Established,
            2 => Self::SynSent,
            3 | 12 => Self::SynReceived,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            6 => Self::TimeWait,
            7 | 13 => Self::Closed,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            10 => Self::Listen,
            11 => Self::Closing,
            _ => return None,
        })
    }

    /// The name in RFC 9293.
    pub fn name(self) -> &'static str {
        match self {
            Self::Established => "ESTABLISHED",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::TimeWait => "TIME-WAIT",
            Self::Closed => "CLOSED",
            Self::CloseWait => "CLOSE-WAIT",
            Self::LastAck => "LAST-ACK",
            Self::Listen => "LISTEN",
            Self::Closing => "CLOSING",
        }
    }

    /// Whether data may be on its way to the peer, or wait for it.
    pub fn may_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::LastAck | Self::Closing)
    }
}

/// A timer of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// What it is for.
    pub kind: TimerKind,
    /// When it ends, in ms from now.
    pub ends_in_ms: u64,
    /// Retransmissions, or probes, since the peer last answered.
    pub retries: u32,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// Something is not acknowledged: the retransmission timer, or a tail-loss probe's.
    Retransmit,
    /// The connection is idle.
    KeepAlive,
    /// The end of TIME-WAIT.
    TimeWait,
    /// Data waits and nothing is in flight: the peer's window is closed, or a cork holds the data.
    Probe,
}

/// A program's descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The program's name, as it calls itself: 15 bytes of anything.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// The number of its descriptor; netstat does not tell it.
    pub fd: Option<u32>,
}

/// Limits of a socket's buffers, in bytes of memory as the kernel counts it: about twice what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// `SO_RCVBUF` as it is now.
    pub recv: Option<u64>,
    /// `SO_SNDBUF` as it is now.
    pub send: Option<u64>,
    /// The program has set `SO_RCVBUF`, so that the kernel no longer grows it.
    pub recv_is_fixed: Option<bool>,
    /// The same of `SO_SNDBUF`.
    pub send_is_fixed: Option<bool>,
    /// Segments that were dropped for want of room.
    pub drops: Option<u64>,
}

/// What a program may set and `sock_diag` does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `TCP_NODELAY`: Nagle's algorithm is off.
    pub nodelay: Option<bool>,
    /// `TCP_CORK`: only full segments leave.
    pub cork: Option<bool>,
    /// `TCP_QUICKACK` as it is now: the kernel switches it itself.
    pub quickack: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_number_and_a_name() {
        let names: Vec<_> = (0..=14).map(|number| State::of_linux(number).map(State::name)).collect();
        assert_eq!((names[0], names[14]), (None, None));
        // include/net/tcp_states.h, in RFC 9293's words.
        assert_eq!(names[1], Some("ESTABLISHED"));
        assert_eq!(names[8], Some("CLOSE-WAIT"));
        assert_eq!(names[10], Some("LISTEN"));
        assert_eq!(names[12], Some("SYN-RECEIVED"));
    }
}
