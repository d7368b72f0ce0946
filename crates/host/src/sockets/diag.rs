//! All TCP sockets of a network namespace, through the kernel's `sock_diag`.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{MemInfo, Nla};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, InetResponseHeader, SocketId, StateFlags, Timer as RawTimer,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use tcpwhy_wire::sockets::{Info, State, TcpSocket, Timer, TimerKind};

use super::Found;

/// Bytes of a read: the kernel fills up to 32 KiB at a time (`netlink_dump`).
const READ: usize = 32 << 10;

/// A question to the kernel that can be asked again and again. It stays with the network namespace in which it was
/// opened. Needs no rights.
#[derive(Debug)]
pub struct Diag {
    netlink: OwnedFd,
    buffer: Vec<u8>,
}

impl Diag {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// The kernel has no netlink, or too many files are open.
    pub fn open() -> io::Result<Self> {
        let protocol = Some(netlink::SOCK_DIAG);
        let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        Ok(Self { netlink, buffer: vec![0; READ] })
    }

    /// Every TCP socket, IPv4 first. Who holds it and what its options are is not among what the kernel tells here.
    /// Some 2 µs each.
    ///
    /// # Errors
    ///
    /// The kernel was built without `CONFIG_INET_DIAG` (`NotFound`), or its answer cannot be read.
    pub fn sockets(&mut self) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        self.dump(AF_INET, SocketId::new_v4(), &mut found)?;
        self.dump(AF_INET6, SocketId::new_v6(), &mut found)?;
        Ok(found)
    }

    fn dump(&mut self, family: u8, socket_id: SocketId, found: &mut Vec<Found>) -> io::Result<()> {
        self.ask(family, socket_id)?;
        loop {
            let (length, _) = recv(&self.netlink, &mut self.buffer[..], RecvFlags::empty())?;
            let mut rest = &self.buffer[..length];
            while !rest.is_empty() {
                let message =
                    NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?;
                let taken = (message.header.length as usize).next_multiple_of(4).clamp(1, rest.len());
                rest = &rest[taken..];
                match message.payload {
                    NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(one)) => {
                        found.extend(described(*one));
                    }
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
    }

    fn ask(&self, family: u8, socket_id: SocketId) -> io::Result<()> {
        let request = InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO | ExtensionFlags::SKMEMINFO | ExtensionFlags::CONG,
            states: StateFlags::all(),
            socket_id,
        };
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        send(&self.netlink, &bytes, SendFlags::empty())?;
        Ok(())
    }
}

fn described(response: InetResponse) -> Option<Found> {
    let InetResponse { header, nlas } = response;
    let id = &header.socket_id;
    let local = address(id.source_address, id.source_port, id.interface_id);
    let peer = address(id.destination_address, id.destination_port, id.interface_id);
    let mut socket = TcpSocket::new(local.to_string(), peer.to_string(), State::of_linux(header.state)?);
    socket.recv_queue = header.recv_queue.into();
    socket.send_queue = header.send_queue.into();
    socket.uid = Some(header.uid);
    socket.inode = Some(header.inode.into());
    socket.timer = timer(&header);
    for nla in nlas {
        match nla {
            Nla::TcpInfo(bytes) => socket.info = Info::of_tcp_info(&bytes),
            Nla::MemInfo(memory) => buffers(&mut socket, &memory),
            Nla::Congestion(name) => socket.congestion_control = Some(name),
            _ => {}
        }
    }
    socket.leave_out_fins();
    let [low, high] = [&id.cookie[..4], &id.cookie[4..]]
        .map(|half| half.try_into().map_or(0, |half| u64::from(u32::from_ne_bytes(half))));
    Some(Found::new(socket, local, peer, high << 32 | low))
}

/// Link-local addresses mean something only on their interface.
fn address(ip: IpAddr, port: u16, interface: u32) -> SocketAddr {
    match ip {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => SocketAddrV6::new(ip, port, 0, interface).into(),
        ip => SocketAddr::new(ip, port),
    }
}

fn timer(header: &InetResponseHeader) -> Option<Timer> {
    let (kind, ends, retries) = match header.timer.as_ref()? {
        RawTimer::Retransmit(ends, retries) => (TimerKind::Retransmit, ends.as_millis(), u32::from(*retries)),
        RawTimer::KeepAlive(ends) => (TimerKind::KeepAlive, ends.as_millis(), 0),
        RawTimer::TimeWait => (TimerKind::TimeWait, 0, 0),
        RawTimer::Probe(ends) => (TimerKind::Probe, ends.as_millis(), 0),
    };
    Some(Timer { kind, ends_in_ms: u64::try_from(ends).unwrap_or(u64::MAX), retries })
}

fn buffers(socket: &mut TcpSocket, memory: &MemInfo) {
    socket.buffers.recv = Some(memory.receive_queue_max.into());
    socket.buffers.send = Some(memory.send_queue_max.into());
    socket.buffers.drops = Some(memory.drops.into());
}
