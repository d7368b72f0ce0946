//! What a socket's descriptor tells: its options, which `sock_diag` does not know, and all the rest where `sock_diag`
//! does not reach, in other network namespaces.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use rustix::net::sockopt::{
    socket_cookie, socket_domain, socket_protocol, socket_recv_buffer_size, socket_send_buffer_size,
    tcp_congestion, tcp_cork, tcp_nodelay, tcp_quickack,
};
use rustix::net::{AddressFamily, SocketAddrAny, getpeername, getsockname, ipproto};
use tcpwhy_wire::sockets::{Buffers, Info, Options, State, TcpSocket};

use super::{Found, raw};

/// Bytes that `struct tcp_info` will not outgrow soon: 6.18 has 256.
const TCP_INFO: usize = 512;

// From include/uapi/asm-generic/socket.h, not in libc. On parisc, sparc and mips they have other numbers, where these
// questions get no answer or a short one, and what they are for stays unknown.
const SO_MEMINFO: i32 = 55;
const SO_NETNS_COOKIE: i32 = 71;
const SO_BUF_LOCK: i32 = 72;
/// Bits of `SO_BUF_LOCK`: the program set `SO_SNDBUF`, `SO_RCVBUF`.
const SEND_LOCKED: u8 = 1;
const RECV_LOCKED: u8 = 2;
/// The place of drops among `SO_MEMINFO`'s words of four bytes (`SK_MEMINFO_DROPS`).
const DROPS: usize = 8;

/// Reads `TCP_NODELAY`, `TCP_CORK` and `TCP_QUICKACK`.
///
/// # Errors
///
/// It is no TCP socket.
pub fn options(socket: impl AsFd) -> io::Result<Options> {
    let socket = socket.as_fd();
    Ok(Options {
        nodelay: Some(tcp_nodelay(socket)?),
        cork: Some(tcp_cork(socket)?),
        quickack: Some(tcp_quickack(socket)?),
    })
}

/// Reads `SO_RCVBUF` and `SO_SNDBUF`, and who chose them (Linux 5.14 and newer).
///
/// # Errors
///
/// It is no socket.
pub fn buffers(socket: impl AsFd) -> io::Result<Buffers> {
    let socket = socket.as_fd();
    let mut lock = [0; 4];
    let lock = raw::option(socket, libc::SOL_SOCKET, SO_BUF_LOCK, &mut lock)
        .ok()
        .filter(|&length| length == lock.len())
        .and_then(|_| u8::try_from(i32::from_ne_bytes(lock)).ok());
    let mut memory = [0; 4 * (DROPS + 1)];
    let filled = raw::option(socket, libc::SOL_SOCKET, SO_MEMINFO, &mut memory).unwrap_or(0);
    let drops = memory[..filled.min(memory.len())].chunks_exact(4).nth(DROPS);
    Ok(Buffers {
        recv: Some(socket_recv_buffer_size(socket)? as u64),
        send: Some(socket_send_buffer_size(socket)? as u64),
        recv_is_fixed: lock.map(|lock| lock & RECV_LOCKED != 0),
        send_is_fixed: lock.map(|lock| lock & SEND_LOCKED != 0),
        drops: drops.and_then(|word| Some(u32::from_ne_bytes(word.try_into().ok()?).into())),
    })
}

/// Reads `TCP_INFO`: how the connection goes. Some 1 µs.
///
/// # Errors
///
/// It is no TCP socket.
pub fn info(socket: impl AsFd) -> io::Result<Info> {
    state_and_info(socket).map(|(_, info)| info)
}

/// The same with the connection's state; `None` for one that this program does not know.
pub(crate) fn state_and_info(socket: impl AsFd) -> io::Result<(Option<State>, Info)> {
    let mut bytes = [0; TCP_INFO];
    let length = raw::option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let bytes = &bytes[..length.min(TCP_INFO)];
    let state = bytes.first().and_then(|&number| State::of_linux(number));
    Ok((state, Info::of_tcp_info(bytes)))
}

/// A number of the network namespace in which a socket was opened, unlike any other's (Linux 5.14 and newer).
pub(super) fn namespace(socket: impl AsFd) -> Option<u64> {
    let mut cookie = [0; 8];
    let length = raw::option(socket, libc::SOL_SOCKET, SO_NETNS_COOKIE, &mut cookie).ok()?;
    (length == cookie.len()).then(|| u64::from_ne_bytes(cookie))
}

/// All that a descriptor tells of its TCP socket; the timer that runs is not among it. `None`: it is something else.
///
/// # Errors
///
/// The socket fails to answer, which no open TCP socket does.
pub fn describe(socket: impl AsFd) -> io::Result<Option<Found>> {
    let socket = socket.as_fd();
    let is_inet = matches!(socket_domain(socket)?, AddressFamily::INET | AddressFamily::INET6);
    if !is_inet || socket_protocol(socket)? != Some(ipproto::TCP) {
        return Ok(None);
    }
    let (Some(state), info) = state_and_info(socket)? else { return Ok(None) };
    let local = address(getsockname(socket)?);
    // Not connected: no peer.
    let peer =
        getpeername(socket).ok().flatten().map_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), address);
    let status = rustix::fs::fstat(socket)?;
    let mut found = TcpSocket::new(local.to_string(), peer.to_string(), state);
    found.uid = Some(status.st_uid);
    found.inode = Some(status.st_ino);
    found.info = info;
    found.buffers = buffers(socket)?;
    found.options = options(socket)?;
    found.congestion_control = tcp_congestion(socket).ok();
    queues(&mut found, socket)?;
    Ok(Some(Found::new(found, local, peer, socket_cookie(socket).unwrap_or(0))))
}

fn queues(found: &mut TcpSocket, socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    if found.state == State::Listen {
        // `tcp_get_info` puts the queue and its limit here.
        found.recv_queue = found.info.unacked.unwrap_or(0);
        found.send_queue = found.info.sacked.unwrap_or(0);
        return Ok(());
    }
    found.send_queue = raw::send_queue(socket)?;
    found.leave_out_fins();
    // Without FINs already (`tcp_inq`).
    found.recv_queue = rustix::io::ioctl_fionread(socket)?;
    Ok(())
}

fn address(address: SocketAddrAny) -> SocketAddr {
    SocketAddr::try_from(address).unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
}
