//! Routes with metrics: what no sysctl and no socket option sets.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result, bail};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{SocketType, netdevice, socket};

use super::netlink;

/// Bits of an IPv4 address.
const WHOLE_ADDRESS: u8 = 32;

/// Gives the calling thread's namespace a route to `peer`, a neighbour, on which connections begin with a
/// congestion window of `segments` (`initcwnd` in ip-route(8)).
pub(crate) fn set_initial_window(peer: IpAddr, segments: u32) -> Result<()> {
    let IpAddr::V4(peer) = peer else { bail!("routes of the lab are IPv4") };
    let mut route = RouteMessage::default();
    route.header = RouteHeader {
        address_family: AddressFamily::Inet,
        destination_prefix_length: WHOLE_ADDRESS,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: RouteScope::Link,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    route.attributes = vec![
        RouteAttribute::Destination(RouteAddress::Inet(peer)),
        RouteAttribute::Oif(index_of(&interface_to(peer)?)?),
        RouteAttribute::Metrics(vec![RouteMetric::InitCwnd(segments)]),
    ];
    netlink::create(RouteNetlinkMessage::NewRoute(route))
}

/// The interface whose net `peer` is in.
fn interface_to(peer: Ipv4Addr) -> Result<String> {
    let routes = fs::read_to_string("/proc/thread-self/net/route").context("cannot read the routes")?;
    let interface = routes.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [net, mask] = [1, 7].map(|field| address(fields.get(field)?));
        (u32::from(peer) & mask? == net?).then(|| fields[0].to_owned())
    });
    interface.with_context(|| format!("no interface leads to {peer}"))
}

/// An address as `/proc/net/route` has it: hexadecimal, as the memory of this machine has its bytes.
fn address(field: &str) -> Option<u32> {
    Some(u32::from_be_bytes(u32::from_str_radix(field, 16).ok()?.to_ne_bytes()))
}

fn index_of(interface: &str) -> Result<u32> {
    let any = socket(rustix::net::AddressFamily::INET, SocketType::DGRAM, None)?;
    netdevice::name_to_index(&any, interface).with_context(|| format!("no interface {interface}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_route_file_are_in_this_machines_order() {
        let written = format!("{:08X}", u32::from_ne_bytes([10, 0, 1, 2]));
        assert_eq!(address(&written).map(Ipv4Addr::from), Some(Ipv4Addr::new(10, 0, 1, 2)));
        assert_eq!(address("x"), None);
    }
}
