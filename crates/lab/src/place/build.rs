//! The hosts and devices of each path.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use tcpwhy_simulate::link::Ends;

use super::device::Device;
use super::namespace::Namespace;
use super::tun::Tun;
use super::veth::Veth;
use super::{Path, Place, Seat, Wire};
use crate::capture::Vantage;

/// The loopback interface's MTU, unless the run says otherwise: Linux's own.
const LOOPBACK_MTU: u32 = 65_536;

/// TUN devices are made through it.
const TUN: &str = "/dev/net/tun";

// One net for each link: hosts reach their neighbours alone, and nothing needs a route.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
const RELAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// The hosts of a run, and the links that the emulator is to drive.
pub(crate) struct Built {
    pub(crate) place: Place,
    pub(crate) lines: Vec<Line>,
}

/// A link and its two ends.
pub(crate) struct Line {
    /// What it does to packets.
    pub(crate) ends: Ends,
    /// The client's side.
    pub(crate) near: Port,
    /// The server's side.
    pub(crate) far: Port,
}

/// One end of a link.
pub(crate) struct Port {
    pub(crate) device: Box<dyn Device>,
    /// What a capture made here is called.
    pub(crate) vantage: Vantage,
}

/// Makes the hosts and what joins them.
pub(crate) fn build(path: &Path) -> Result<Built> {
    match path {
        Path::Loopback { mtu } => loopback(*mtu),
        Path::Link(wire) => link(wire),
        Path::TwoHops { near, far } => two_hops(near, far),
    }
}

fn loopback(mtu: u32) -> Result<Built> {
    let (namespace, ()) = Namespace::new(mtu, || Ok(()))?;
    let seat = Seat::new(Ipv4Addr::LOCALHOST, namespace);
    let place = Place { client: seat.clone(), server: seat, relay: None };
    Ok(Built { place, lines: Vec::new() })
}

fn link(wire: &Wire) -> Result<Built> {
    let (client, near) = host([(wire, CLIENT, Vantage::Client)])?;
    let (server, far) = host([(wire, NEAR, Vantage::Server)])?;
    let place = Place { client: Seat::new(CLIENT, client), server: Seat::new(NEAR, server), relay: None };
    Ok(Built { place, lines: lines([wire], near.into_iter().zip(far)) })
}

fn two_hops(near: &Wire, far: &Wire) -> Result<Built> {
    let (client, [at_client]) = host([(near, CLIENT, Vantage::Client)])?;
    let sides = [(near, NEAR, Vantage::RelayNear), (far, RELAY, Vantage::RelayFar)];
    let (relay, [relay_near, relay_far]) = host(sides)?;
    let (server, [at_server]) = host([(far, FAR, Vantage::Server)])?;
    let place = Place {
        client: Seat::new(CLIENT, client),
        server: Seat::new(FAR, server),
        relay: Some(Seat::new(NEAR, relay)),
    };
    Ok(Built { place, lines: lines([near, far], [(at_client, relay_near), (relay_far, at_server)]) })
}

fn lines<'a>(
    wires: impl IntoIterator<Item = &'a Wire>,
    ports: impl IntoIterator<Item = (Port, Port)>,
) -> Vec<Line> {
    let line = |(wire, (near, far)): (&Wire, _)| Line { ends: wire.ends.clone(), near, far };
    wires.into_iter().zip(ports).map(line).collect()
}

/// A host with one device on each of these links.
fn host<const N: usize>(sides: [(&Wire, Ipv4Addr, Vantage); N]) -> Result<(Namespace, [Port; N])> {
    let devices = sides.map(|(wire, address, _)| (wire.mtu, wire.offload, address));
    let (namespace, devices) = Namespace::new(LOOPBACK_MTU, move || {
        devices
            .into_iter()
            .map(|(mtu, offload, address)| device(address, mtu, offload))
            .collect::<Result<Vec<_>>>()
    })?;
    let mut devices = devices.into_iter();
    let mut ports = Vec::with_capacity(N);
    ports.extend(sides.iter().zip(&mut devices).map(|(&(_, _, vantage), device)| Port { device, vantage }));
    let ports = ports.try_into().map_err(|_| anyhow::anyhow!("a host has fewer devices than links"))?;
    Ok((namespace, ports))
}

/// Whether this process may use the file: root, in a user namespace, may not use another user's.
fn can_open(path: &str) -> bool {
    std::fs::File::options().read(true).write(true).open(path).is_ok()
}

/// A device in the calling thread's namespace.
fn device(address: Ipv4Addr, mtu: u32, offload: bool) -> Result<Box<dyn Device>> {
    if offload || can_open(TUN) {
        let problem =
            if offload { "a link with offload needs /dev/net/tun" } else { "cannot make a TUN device" };
        return Ok(Box::new(Tun::open(address, mtu, offload).context(problem)?));
    }
    Ok(Box::new(Veth::open(address, mtu)?))
}
