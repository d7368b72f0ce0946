//! A script's socket calls on real sockets.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{self, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, sockopt};
use tcpwhy_simulate::script::{OptionValue, Reply, Request};

use info::Info;

/// Most bytes that one call moves here; a script's larger read or write returns less.
const MOST_BYTES: usize = 1 << 24;
const BACKLOG: i32 = 8;

/// The script's sockets, by the numbers it gives them.
pub(super) struct Sockets {
    peer: SocketAddrV4,
    server: u16,
    /// The congestion control of new sockets. A namespace's sysctl may name only what unprivileged users may use,
    /// a socket's option anything.
    congestion: String,
    open: HashMap<i64, Socket>,
    /// The socket that the script's asserts are about.
    under_test: Option<i64>,
}

struct Socket {
    fd: OwnedFd,
    /// Whether its calls wait, as the script sees it.
    blocking: bool,
    connecting: bool,
    /// A write of it waits.
    writing: bool,
}

impl Socket {
    fn new(fd: OwnedFd) -> Self {
        Self { fd, blocking: true, connecting: false, writing: false }
    }
}

impl Sockets {
    pub(super) fn new(remote: Ipv4Addr, server: u16) -> Self {
        let peer = SocketAddrV4::new(remote, server);
        Self { peer, server, congestion: "cubic".into(), open: HashMap::new(), under_test: None }
    }

    pub(super) fn set_congestion(&mut self, name: &str) {
        name.clone_into(&mut self.congestion);
    }

    pub(super) fn info(&mut self, field: &str) -> Option<f64> {
        let socket = self.open.get(&self.under_test?)?;
        info::field(&nix::sys::socket::getsockopt(&socket.fd, Info).ok()?, field)
    }

    pub(super) fn call(&mut self, request: &Request) -> Reply {
        let number = match request {
            Request::Open(number) => return self.open(*number),
            Request::Accept { listener, accepted } => return self.accept(*listener, *accepted),
            Request::Close(number) => return self.close(*number),
            Request::Connect(number) => {
                self.under_test = Some(*number);
                *number
            }
            Request::Bind(number)
            | Request::Listen(number)
            | Request::GetFlags(number)
            | Request::Unread(number)
            | Request::Unacknowledged(number) => *number,
            Request::Read { socket, .. }
            | Request::Write { socket, .. }
            | Request::SetOption { socket, .. }
            | Request::GetOption { socket, .. }
            | Request::SetBlocking { socket, .. }
            | Request::Shutdown { socket, .. }
            | Request::Poll { socket, .. } => *socket,
        };
        let (peer, server) = (self.peer, self.server);
        let Some(socket) = self.open.get_mut(&number) else { return Reply::Failed("EBADF") };
        socket.call(request, peer, server)
    }

    fn open(&mut self, number: i64) -> Reply {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match net::socket_with(net::AddressFamily::INET, SocketType::STREAM, flags, None) {
            Ok(fd) => {
                if let Err(error) = sockopt::set_tcp_congestion(&fd, &self.congestion) {
                    return failed(error);
                }
                self.open.insert(number, Socket::new(fd));
                Reply::Returned(number, None)
            }
            Err(error) => failed(error),
        }
    }

    fn accept(&mut self, listener: i64, accepted: i64) -> Reply {
        let Some(socket) = self.open.get(&listener) else { return Reply::Failed("EBADF") };
        match net::accept_with(&socket.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(fd) => {
                self.open.insert(accepted, Socket::new(fd));
                self.under_test = Some(accepted);
                Reply::Returned(accepted, None)
            }
            Err(Errno::WOULDBLOCK) if socket.blocking => Reply::Waits(0),
            Err(error) => failed(error),
        }
    }

    fn close(&mut self, number: i64) -> Reply {
        self.open.remove(&number).map_or(Reply::Failed("EBADF"), |_| Reply::DONE)
    }
}

impl Socket {
    fn call(&mut self, request: &Request, peer: SocketAddrV4, server: u16) -> Reply {
        match request {
            Request::Bind(_) => done(net::bind(&self.fd, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, server))),
            Request::Listen(_) => done(net::listen(&self.fd, BACKLOG)),
            Request::Connect(_) => self.connect(peer),
            Request::Read { room, peek, at_once, .. } => self.read(*room, *peek, *at_once),
            Request::Write { len, more, at_once, .. } => self.write(*len, *more, *at_once),
            Request::SetOption { option, value, .. } => set_option(&self.fd, option, value),
            Request::GetOption { option, .. } => get_option(&self.fd, option),
            Request::SetBlocking { blocking, .. } => {
                self.blocking = *blocking;
                Reply::DONE
            }
            // O_RDWR, and O_NONBLOCK as the script set it.
            Request::GetFlags(_) => Reply::Returned(if self.blocking { 0o2 } else { 0o4002 }, None),
            Request::Unread(_) => match ioctl_fionread(&self.fd) {
                Ok(bytes) => Reply::Returned(0, i64::try_from(bytes).ok()),
                Err(error) => failed(error),
            },
            Request::Shutdown { reading, writing, .. } => {
                let how = match (reading, writing) {
                    (true, true) => Shutdown::Both,
                    (true, false) => Shutdown::Read,
                    _ => Shutdown::Write,
                };
                done(net::shutdown(&self.fd, how))
            }
            Request::Poll { events, waits, .. } => self.poll(*events, *waits),
            Request::Unacknowledged(_) | Request::Open(_) | Request::Accept { .. } | Request::Close(_) => {
                Reply::Unsupported
            }
        }
    }

    fn connect(&mut self, peer: SocketAddrV4) -> Reply {
        if !self.connecting {
            self.connecting = true;
            return match net::connect(&self.fd, &peer) {
                Ok(()) => Reply::DONE,
                Err(Errno::INPROGRESS) if self.blocking => Reply::Waits(0),
                Err(error) => failed(error),
            };
        }
        // It has been called before and waits: has it come to an end?
        match net::connect(&self.fd, &peer) {
            Ok(()) => Reply::DONE,
            Err(Errno::ALREADY) if self.blocking => Reply::Waits(0),
            Err(error) => failed(error),
        }
    }

    fn read(&self, room: u64, peek: bool, at_once: bool) -> Reply {
        let mut buffer = vec![0; usize::try_from(room).unwrap_or(MOST_BYTES).min(MOST_BYTES)];
        let flags = if peek { RecvFlags::PEEK } else { RecvFlags::empty() };
        match net::recv(&self.fd, &mut buffer[..], flags) {
            Ok((bytes, _)) => Reply::Returned(i64::try_from(bytes).unwrap_or(i64::MAX), None),
            Err(Errno::WOULDBLOCK) if self.blocking && !at_once => Reply::Waits(0),
            Err(error) => failed(error),
        }
    }

    fn write(&mut self, len: u64, more: bool, at_once: bool) -> Reply {
        // A program that waits in write() is woken by the room that POLLOUT stands for, not by any.
        if self.writing && !self.is_writable() {
            return Reply::Waits(0);
        }
        let bytes = vec![0; usize::try_from(len).unwrap_or(MOST_BYTES).min(MOST_BYTES)];
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, more);
        let waits = self.blocking && !at_once;
        let sent = net::send(&self.fd, &bytes, flags);
        self.writing = waits && sent.map_or(true, |taken| (taken as u64) < len);
        match sent {
            Ok(taken) if (taken as u64) < len && waits => Reply::Waits(taken as u64),
            Ok(taken) => Reply::Returned(i64::try_from(taken).unwrap_or(i64::MAX), None),
            Err(Errno::WOULDBLOCK) if waits => Reply::Waits(0),
            Err(error) => failed(error),
        }
    }

    fn is_writable(&self) -> bool {
        let mut list = [PollFd::new(&self.fd, PollFlags::OUT)];
        poll(&mut list, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
    }

    fn poll(&self, events: i64, waits: bool) -> Reply {
        let asked = PollFlags::from_bits_truncate(u16::try_from(events).unwrap_or(0));
        let mut list = [PollFd::new(&self.fd, asked)];
        match poll(&mut list, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(0) if waits => Reply::Waits(0),
            Ok(count) => {
                let found = i64::from(list[0].revents().bits());
                Reply::Returned(i64::try_from(count).unwrap_or(i64::MAX), Some(found))
            }
            Err(error) => failed(error),
        }
    }
}

fn set_option(fd: &OwnedFd, option: &str, value: &OptionValue) -> Reply {
    let number = match value {
        OptionValue::Text(text) if option == "TCP_CONGESTION" => {
            return done(sockopt::set_tcp_congestion(fd, text));
        }
        OptionValue::Text(_) => return Reply::Unsupported,
        OptionValue::Number(number) => *number,
    };
    let on = number != 0;
    let size = usize::try_from(number).unwrap_or(0);
    done(match option {
        "TCP_NODELAY" => sockopt::set_tcp_nodelay(fd, on),
        "TCP_CORK" => sockopt::set_tcp_cork(fd, on),
        "TCP_QUICKACK" => sockopt::set_tcp_quickack(fd, on),
        "TCP_USER_TIMEOUT" => sockopt::set_tcp_user_timeout(fd, u32::try_from(number).unwrap_or(0)),
        "SO_REUSEADDR" => sockopt::set_socket_reuseaddr(fd, on),
        "SO_SNDBUF" => sockopt::set_socket_send_buffer_size(fd, size),
        "SO_SNDBUFFORCE" => sockopt::set_socket_send_buffer_size_force(fd, size),
        "SO_RCVBUF" => sockopt::set_socket_recv_buffer_size(fd, size),
        "SO_RCVBUFFORCE" => sockopt::set_socket_recv_buffer_size_force(fd, size),
        "SO_LINGER" => sockopt::set_socket_linger(fd, u64::try_from(number).ok().map(Duration::from_secs)),
        _ => return Reply::Unsupported,
    })
}

fn get_option(fd: &OwnedFd, option: &str) -> Reply {
    let value = match option {
        "TCP_NODELAY" => sockopt::tcp_nodelay(fd).map(i64::from),
        "TCP_CORK" => sockopt::tcp_cork(fd).map(i64::from),
        "TCP_QUICKACK" => sockopt::tcp_quickack(fd).map(i64::from),
        "SO_ERROR" => {
            sockopt::socket_error(fd).map(|error| error.err().map_or(0, |e| e.raw_os_error().into()))
        }
        _ => return Reply::Unsupported,
    };
    value.map_or_else(failed, |value| Reply::Returned(0, Some(value)))
}

fn done(result: rustix::io::Result<()>) -> Reply {
    result.map_or_else(failed, |()| Reply::DONE)
}

fn failed(error: Errno) -> Reply {
    Reply::Failed(match error {
        Errno::WOULDBLOCK => "EAGAIN",
        Errno::INPROGRESS => "EINPROGRESS",
        Errno::ALREADY => "EALREADY",
        Errno::ISCONN => "EISCONN",
        Errno::NOTCONN => "ENOTCONN",
        Errno::CONNRESET => "ECONNRESET",
        Errno::CONNREFUSED => "ECONNREFUSED",
        Errno::CONNABORTED => "ECONNABORTED",
        Errno::PIPE => "EPIPE",
        Errno::TIMEDOUT => "ETIMEDOUT",
        Errno::INVAL => "EINVAL",
        Errno::BADF => "EBADF",
        _ => "another error",
    })
}

/// `struct tcp_info`
mod info {
    use nix::libc::{self, tcp_info};
    use nix::{getsockopt_impl, sockopt_impl};

    sockopt_impl!(Info, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, tcp_info);

    /// A field by its name.
    pub(super) fn field(info: &tcp_info, name: &str) -> Option<f64> {
        Some(match name {
            "tcpi_state" => info.tcpi_state.into(),
            "tcpi_ca_state" => info.tcpi_ca_state.into(),
            "tcpi_retransmits" => info.tcpi_retransmits.into(),
            "tcpi_probes" => info.tcpi_probes.into(),
            "tcpi_backoff" => info.tcpi_backoff.into(),
            "tcpi_options" => info.tcpi_options.into(),
            "tcpi_rto" => info.tcpi_rto.into(),
            "tcpi_ato" => info.tcpi_ato.into(),
            "tcpi_snd_mss" => info.tcpi_snd_mss.into(),
            "tcpi_rcv_mss" => info.tcpi_rcv_mss.into(),
            "tcpi_unacked" => info.tcpi_unacked.into(),
            "tcpi_sacked" => info.tcpi_sacked.into(),
            "tcpi_lost" => info.tcpi_lost.into(),
            "tcpi_retrans" => info.tcpi_retrans.into(),
            "tcpi_rtt" => info.tcpi_rtt.into(),
            "tcpi_rttvar" => info.tcpi_rttvar.into(),
            "tcpi_snd_ssthresh" => info.tcpi_snd_ssthresh.into(),
            "tcpi_snd_cwnd" => info.tcpi_snd_cwnd.into(),
            "tcpi_reordering" => info.tcpi_reordering.into(),
            "tcpi_total_retrans" => info.tcpi_total_retrans.into(),
            _ => return None,
        })
    }
}
