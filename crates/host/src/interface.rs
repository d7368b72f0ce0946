//! Network interfaces: which one leads out, which one carries a connection, in whose network namespace.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::thread;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use nix::sched::{CloneFlags, setns};

/// The interfaces of default routes, each once: those of IPv4 with the least metric first, then those of IPv6. Empty where
/// there is no default route.
pub fn of_default_routes() -> Vec<String> {
    let v4 = fs::read_to_string("/proc/net/route").map(|table| defaults_in_v4(&table));
    let v6 = fs::read_to_string("/proc/net/ipv6_route").map(|table| defaults_in_v6(&table));
    let mut names: Vec<String> = Vec::new();
    for name in v4.into_iter().chain(v6).flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The name of the interface with that index, in the calling thread's network namespace.
pub fn name(index: u32) -> Option<String> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
    rustix::net::netdevice::index_to_name(socket.ok()?, index).ok()
}

/// The index of the interface with that name, in the calling thread's network namespace: another one's where an interface
/// was removed and made again.
pub fn index(name: &str) -> Option<u32> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
    rustix::net::netdevice::name_to_index(socket.ok()?, name).ok()
}

/// `Iface Destination Gateway Flags RefCnt Use Metric Mask …`, numbers in hexadecimal but for the metric.
fn defaults_in_v4(table: &str) -> Vec<String> {
    let default = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, "00000000", _, _, _, _, metric, "00000000", ..] = fields[..] else { return None };
        Some((metric.parse().ok()?, name.to_owned()))
    };
    by_metric(table.lines().filter_map(default))
}

/// `destination length source length gateway metric references uses flags name`, numbers in hexadecimal.
fn defaults_in_v6(table: &str) -> Vec<String> {
    /// The kernel's own entry for what has no route (`RTF_REJECT` of `<linux/route.h>`).
    const REJECT: u32 = 0x200;
    let default = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [destination, "00", _, _, _, metric, _, _, flags, name] = fields[..] else { return None };
        let flags = u32::from_str_radix(flags, 16).ok()?;
        let is_default = destination.bytes().all(|digit| digit == b'0') && flags & REJECT == 0;
        is_default.then_some(())?;
        Some((u32::from_str_radix(metric, 16).ok()?, name.to_owned()))
    };
    by_metric(table.lines().filter_map(default))
}

fn by_metric(routes: impl Iterator<Item = (u32, String)>) -> Vec<String> {
    let mut routes: Vec<_> = routes.collect();
    routes.sort_by_key(|(metric, _)| *metric);
    routes.into_iter().map(|(_, name)| name).collect()
}

/// The interface on which packets between these addresses pass, in the calling thread's network namespace: loopback
/// where both are this machine's, else the one that has the local address. Where packets come in another way than
/// they leave, it is not the whole truth. `None`: no interface has the address.
///
/// # Errors
///
/// The kernel does not list its interfaces.
pub fn carrying(local: IpAddr, peer: IpAddr) -> io::Result<Option<String>> {
    let (local, peer) = (local.to_canonical(), peer.to_canonical());
    let mut loopback = None;
    let mut with_local = None;
    let mut is_peer_here = local == peer || peer.is_loopback();
    for interface in getifaddrs()? {
        if interface.flags.contains(InterfaceFlags::IFF_LOOPBACK) {
            loopback.get_or_insert_with(|| interface.interface_name.clone());
        }
        let address = address(&interface);
        is_peer_here |= address == Some(peer);
        if address == Some(local) {
            with_local.get_or_insert(interface.interface_name);
        }
    }
    Ok(if is_peer_here { loopback } else { with_local })
}

/// The addresses of all interfaces of the calling thread's network namespace.
///
/// # Errors
///
/// The kernel does not list its interfaces.
pub fn addresses() -> io::Result<HashSet<IpAddr>> {
    Ok(getifaddrs()?.filter_map(|interface| address(&interface)).collect())
}

fn address(interface: &InterfaceAddress) -> Option<IpAddr> {
    let address = interface.address.as_ref()?;
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

/// Does something in the network namespace of a process, on a thread of its own; `None`: `what` panicked.
///
/// # Errors
///
/// There is no such process, or its namespace may not be entered (`CAP_SYS_ADMIN`).
pub fn in_network_of<T: Send>(pid: u32, what: impl FnOnce() -> T + Send) -> io::Result<Option<T>> {
    let network = File::open(format!("/proc/{pid}/ns/net"))?;
    thread::scope(|scope| {
        let visit = scope.spawn(|| {
            setns(network, CloneFlags::CLONE_NEWNET)?;
            Ok(what())
        });
        visit.join().map_or(Ok(None), |done: io::Result<T>| done.map(Some))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_on_this_machine_passes_loopback() {
        let local = |text: &str| text.parse().expect("an address");
        let found = |one, other| carrying(local(one), local(other)).expect("interfaces");
        assert_eq!(found("127.0.0.1", "127.0.0.1").as_deref(), Some("lo"));
        assert_eq!(found("127.0.0.1", "127.0.0.2").as_deref(), Some("lo"));
        assert_eq!(found("::ffff:127.0.0.1", "::ffff:127.0.0.1").as_deref(), Some("lo"));
        assert!(addresses().expect("interfaces").contains(&local("127.0.0.1")));
        // An address for documentation (RFC 5737) that is nobody's.
        assert_eq!(found("198.51.100.77", "198.51.100.78"), None);
    }

    #[test]
    fn the_default_route_with_the_least_metric_is_first() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
                     eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                     tun0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n";
        assert_eq!(defaults_in_v4(table), ["eth0", "wlan0"]);
        assert!(defaults_in_v4("Iface\tDestination\n").is_empty());
    }

    #[test]
    fn ipv6_has_an_entry_for_no_route() {
        let zero = "0".repeat(32);
        let reject = format!("{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo\n");
        let route =
            format!("{zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 1 0 00000003 eth1\n");
        assert!(defaults_in_v6(&reject).is_empty());
        assert_eq!(defaults_in_v6(&format!("{reject}{route}")), ["eth1"]);
    }
}
