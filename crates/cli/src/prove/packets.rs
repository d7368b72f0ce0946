//! The data segments of the connections, as they pass an interface.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tcpwhy_diagnose::trial::Direction;
use tcpwhy_host::interface::{carrying, in_network_of};
use tcpwhy_host::ring::{Ring, Wanted};
use tcpwhy_wire::container::{Frame, LinkType};
use tcpwhy_wire::decode::decode;
use tcpwhy_wire::{Address, Socket};

use super::choice::Chosen;

/// Bytes of each packet: Ethernet with two tags, IPv6 with some extensions, TCP with all options.
const SNAPLEN: u32 = 160;

/// Packets that pass.
pub(super) struct Packets {
    pub(super) interface: String,
    ring: Ring,
    link: LinkType,
    /// Which connection has these ends, its own first.
    by_ends: HashMap<(Socket, Socket), usize>,
}

impl Packets {
    /// Opens the interface that carries the connections. `Err` says in words why packets will not be seen.
    pub(super) fn open(pid: u32, is_elsewhere: bool, connections: &[Chosen]) -> Result<Self, String> {
        let mut opened = None;
        for one in connections {
            let (local, peer) = (one.local.ip(), one.peer.ip());
            let open = || carrying(local, peer).and_then(|name| name.map(ring).transpose());
            let ring = if is_elsewhere {
                in_network_of(pid, open).and_then(|done| done.transpose().map(Option::flatten))
            } else {
                open()
            };
            let (name, ring) = ring.map_err(|error| refused(&error))?.ok_or("no interface carries them")?;
            match &opened {
                None => opened = Some((name, ring)),
                Some((first, _)) if *first == name => {}
                Some(_) => return Err("they pass more than one interface".to_owned()),
            }
        }
        let (interface, ring) = opened.ok_or("there is no connection")?;
        let link = if ring.is_ethernet() { LinkType::ETHERNET } else { LinkType::RAW };
        let ends = |one: &Chosen| (end(one.local), end(one.peer));
        let by_ends = connections.iter().enumerate().map(|(i, one)| (ends(one), i)).collect();
        Ok(Self { interface, ring, link, by_ends })
    }

    /// One more connection, whose number this is.
    pub(super) fn add(&mut self, connection: &Chosen, number: usize) {
        self.by_ends.insert((end(connection.local), end(connection.peer)), number);
    }

    /// Hands over the data segments that have passed since the last time: when (ns), whose, and which way.
    pub(super) fn drain(&mut self, mut take: impl FnMut(i64, usize, Direction)) -> io::Result<()> {
        while let Some(packet) = self.ring.next(Duration::ZERO)? {
            let (time, link, original_len) = (packet.time, self.link, packet.original_len);
            let frame = Frame { time, link, original_len, interface: 0, data: packet.data };
            let Ok(packet) = decode(&frame, 0) else { continue };
            if packet.tcp().is_none_or(|tcp| tcp.payload_len == 0) {
                continue;
            }
            let (from, to) = (packet.source, packet.destination);
            // Both, where the program talks to itself.
            if let Some(&one) = self.by_ends.get(&(from, to)) {
                take(time, one, Direction::Out);
            }
            if let Some(&one) = self.by_ends.get(&(to, from)) {
                take(time, one, Direction::In);
            }
        }
        Ok(())
    }

    /// Packets that were not seen because they came too fast.
    pub(super) fn dropped(&mut self) -> u64 {
        self.ring.statistics().map_or(0, |statistics| statistics.dropped)
    }
}

fn ring(interface: String) -> io::Result<(String, Ring)> {
    let ring = Ring::open(&interface, SNAPLEN, Wanted::All)?;
    Ok((interface, ring))
}

fn refused(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "that needs CAP_NET_RAW".to_owned(),
        _ => error.to_string(),
    }
}

fn end(end: SocketAddr) -> Socket {
    Socket { address: Address::from(end.ip()), port: end.port() }
}
