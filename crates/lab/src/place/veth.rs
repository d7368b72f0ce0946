//! Where `/dev/net/tun` is closed: a veth pair. The host uses one end; the emulator reads and writes the other
//! through a packet socket.
//!
//! Both ends are in the host's namespace. The emulator's end has no address, and what arrives there is addressed to
//! another station, so the host itself drops it after the emulator has seen it. Neither end uses ARP: a capture
//! shows the programs' packets alone.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use anyhow::{Context, Result};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{SocketType, netdevice, socket};
use tcpwhy_host::ring::{Ring, Wanted, switch_offload_off};

use super::device::{Device, Received};
use super::netlink;

/// Bytes of an Ethernet header.
const HEADER: usize = 14;
// Locally administered addresses (IEEE Std 802): of the host's end and of the emulator's.
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
const EMULATOR: [u8; 6] = [2, 0, 0, 0, 0, 2];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Bits of the net that the address is in.
const NET: u8 = 24;

/// The emulator's end of a veth pair.
pub(crate) struct Veth {
    ring: Ring,
    frame: Vec<u8>,
}

impl Veth {
    /// Makes a pair in the calling thread's namespace and gives the host's end an address in a net of 24 bits.
    pub(crate) fn open(address: Ipv4Addr, mtu: u32) -> Result<Self> {
        // A relay has two of them, in nets of their own.
        let net = address.octets()[2];
        let (host, emulator) = (format!("link{net}"), format!("wire{net}"));
        make_pair(&host, &emulator).context("cannot make a pair of veth devices")?;
        switch_offload_off(&host).context("cannot switch offload off")?;
        for name in [&host, &emulator] {
            set_up_without_arp(name, mtu).with_context(|| format!("cannot bring {name} up"))?;
        }
        give_address(&host, address).context("cannot give the host its address")?;
        let ring = Ring::open(&emulator, mtu.saturating_add(HEADER as u32), Wanted::Arriving)
            .context("cannot open a packet socket")?;
        Ok(Self { ring, frame: Vec::new() })
    }
}

impl Device for Veth {
    fn fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let packet = self.ring.next(Duration::ZERO)?;
        // Without ARP and IPv6's discovery there is nothing but IP.
        Ok(packet.map(|packet| Received { whole: packet.data.get(HEADER..).unwrap_or(&[]), pieces: None }))
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let kind = if packet.first().is_some_and(|byte| byte >> 4 == 6) { IPV6 } else { IPV4 };
        self.frame.clear();
        for part in [&HOST[..], &EMULATOR, &kind, packet] {
            self.frame.extend_from_slice(part);
        }
        self.ring.send(&self.frame)
    }

    fn lost(&mut self) -> io::Result<u64> {
        Ok(self.ring.statistics()?.dropped)
    }
}

fn make_pair(host: &str, emulator: &str) -> Result<()> {
    let end = |name: &str, address: [u8; 6]| {
        vec![LinkAttribute::IfName(name.to_owned()), LinkAttribute::Address(address.to_vec())]
    };
    let mut peer = LinkMessage::default();
    peer.attributes = end(emulator, EMULATOR);
    let mut link = LinkMessage::default();
    link.attributes = end(host, HOST);
    link.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    netlink::create(RouteNetlinkMessage::NewLink(link))
}

fn set_up_without_arp(interface: &str, mtu: u32) -> Result<()> {
    let mut link = LinkMessage::default();
    link.header.flags = LinkFlags::Up | LinkFlags::Noarp;
    link.header.change_mask = link.header.flags;
    link.attributes = vec![LinkAttribute::IfName(interface.to_owned()), LinkAttribute::Mtu(mtu)];
    netlink::request(RouteNetlinkMessage::SetLink(link))
}

fn give_address(interface: &str, address: Ipv4Addr) -> Result<()> {
    let any = socket(rustix::net::AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = NET;
    message.header.index = netdevice::name_to_index(&any, interface)?;
    let address = IpAddr::V4(address);
    message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
    netlink::create(RouteNetlinkMessage::NewAddress(message))
}

#[cfg(test)]
mod tests;
