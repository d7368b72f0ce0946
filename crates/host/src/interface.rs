//! Which interface carries a connection, in whose network namespace.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::thread;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sched::{CloneFlags, setns};

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
        let address = interface.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        });
        is_peer_here |= address == Some(peer);
        if address == Some(local) {
            with_local.get_or_insert(interface.interface_name);
        }
    }
    Ok(if is_peer_here { loopback } else { with_local })
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
        // An address for documentation (RFC 5737) that is nobody's.
        assert_eq!(found("198.51.100.77", "198.51.100.78"), None);
    }
}
