//! Which interface to listen on.

use std::fs;

/// The interface of the default route: that of IPv4 with the least metric, else that of IPv6. `None` where there is no
/// default route.
pub fn of_default_route() -> Option<String> {
    let v4 = fs::read_to_string("/proc/net/route").ok().and_then(|table| default_in_v4(&table));
    v4.or_else(|| fs::read_to_string("/proc/net/ipv6_route").ok().and_then(|table| default_in_v6(&table)))
}

/// The name of the interface with that index, in the calling thread's network namespace.
pub fn name(index: u32) -> Option<String> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
    rustix::net::netdevice::index_to_name(socket.ok()?, index).ok()
}

/// `Iface Destination Gateway Flags RefCnt Use Metric Mask …`, numbers in hexadecimal but for the metric.
fn default_in_v4(table: &str) -> Option<String> {
    let default = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, "00000000", _, _, _, _, metric, "00000000", ..] = fields[..] else { return None };
        Some((metric.parse::<u32>().ok()?, name.to_owned()))
    };
    table.lines().filter_map(default).min_by_key(|(metric, _)| *metric).map(|(_, name)| name)
}

/// `destination length source length gateway metric references uses flags name`, numbers in hexadecimal.
fn default_in_v6(table: &str) -> Option<String> {
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
    table.lines().filter_map(default).min_by_key(|(metric, _)| *metric).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_with_the_least_metric_counts() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
                     eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                     tun0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n";
        assert_eq!(default_in_v4(table).as_deref(), Some("eth0"));
        assert_eq!(default_in_v4("Iface\tDestination\n"), None);
    }

    #[test]
    fn ipv6_has_an_entry_for_no_route() {
        let zero = "0".repeat(32);
        let reject = format!("{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo\n");
        let route =
            format!("{zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 1 0 00000003 eth1\n");
        assert_eq!(default_in_v6(&reject), None);
        assert_eq!(default_in_v6(&format!("{reject}{route}")).as_deref(), Some("eth1"));
    }
}
