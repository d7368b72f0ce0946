//! `--host` and `--port`: packets that are left out before they are analysed.

use std::net::{IpAddr, SocketAddr};

use tcpwhy_wire::{Address, Names, Packet, Socket};

/// Keeps packets whose source or destination has one of the hosts and one of the ports.
#[derive(Debug)]
pub(crate) struct Filter {
    hosts: Vec<Host>,
    ports: Vec<u16>,
}

#[derive(Debug)]
struct Host {
    name: String,
    /// Where the name is an address.
    address: Option<Address>,
}

impl Filter {
    /// `None` where nothing is asked for, so that nothing is paid for it.
    pub(crate) fn new(hosts: &[String], ports: &[u16]) -> Option<Self> {
        if hosts.is_empty() && ports.is_empty() {
            return None;
        }
        let host = |name: &String| Host {
            name: name.clone(),
            address: name.parse::<IpAddr>().ok().map(Address::from),
        };
        Some(Self { hosts: hosts.iter().map(host).collect(), ports: ports.to_vec() })
    }

    /// Whether the packet is asked for; `names` are the host names of a text capture.
    pub(crate) fn keeps(&self, packet: &Packet, names: Option<&Names>) -> bool {
        // Host and port may be those of different ends: --host CLIENT --port 443 is how people ask.
        let ends = [packet.source, packet.destination];
        let host = |end: &Socket| self.hosts.iter().any(|host| host.is(end.address, names));
        let port = |end: &Socket| self.ports.contains(&end.port);
        (self.hosts.is_empty() || ends.iter().any(host)) && (self.ports.is_empty() || ends.iter().any(port))
    }

    /// Whether packets between these two would be asked for.
    pub(crate) fn keeps_one_between(&self, local: Option<SocketAddr>, peer: Option<SocketAddr>) -> bool {
        let end = |address: Option<SocketAddr>| {
            let end = |address: SocketAddr| Socket { address: address.ip().into(), port: address.port() };
            address.map_or_else(Socket::default, end)
        };
        self.keeps(&Packet { source: end(local), destination: end(peer), ..Packet::default() }, None)
    }

    /// The filter in words.
    pub(crate) fn describe(&self) -> String {
        let hosts: Vec<_> = self.hosts.iter().map(|host| host.name.clone()).collect();
        let ports: Vec<_> = self.ports.iter().map(u16::to_string).collect();
        [("host", hosts), ("port", ports)]
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(what, values)| format!("{what} {}", values.join(" or ")))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl Host {
    fn is(&self, address: Address, names: Option<&Names>) -> bool {
        self.address == Some(address)
            || address.name_index().is_some() && names.is_some_and(|names| names.host(address) == self.name)
    }
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::{Transport, Udp};

    use super::*;

    fn packet(source: (Address, u16), destination: (Address, u16)) -> Packet {
        Packet {
            number: 1,
            time: 0,
            frame_len: 60,
            source: Socket { address: source.0, port: source.1 },
            destination: Socket { address: destination.0, port: destination.1 },
            transport: Transport::Udp(Udp::default()),
            ..Packet::default()
        }
    }

    fn filter(hosts: &[&str], ports: &[u16]) -> Filter {
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        Filter::new(&hosts, ports).expect("a filter")
    }

    #[test]
    fn nothing_asked_for_is_no_filter() {
        assert!(Filter::new(&[], &[]).is_none());
    }

    #[test]
    fn either_end_counts() {
        let (a, b) = (Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2]));
        let there = packet((a, 50_000), (b, 80));
        let back = packet((b, 80), (a, 50_000));
        for asked in [filter(&["10.0.0.1"], &[]), filter(&["10.0.0.2"], &[80]), filter(&["10.0.0.1"], &[80])]
        {
            assert!(asked.keeps(&there, None) && asked.keeps(&back, None), "{asked:?}");
        }
        for asked in [filter(&["10.0.0.3"], &[80]), filter(&["10.0.0.1"], &[81]), filter(&[], &[443])] {
            assert!(!asked.keeps(&there, None) && !asked.keeps(&back, None), "{asked:?}");
        }
    }

    #[test]
    fn names_of_a_text_capture_are_hosts() {
        let mut names = Names::default();
        let (nestor, client) = (names.intern("nestor"), names.intern("client"));
        let packet = packet((nestor, 4566), (client, 1033));
        assert!(filter(&["nestor"], &[]).keeps(&packet, Some(&names)));
        assert!(!filter(&["nest"], &[]).keeps(&packet, Some(&names)));
    }

    #[test]
    fn a_filter_says_what_it_keeps() {
        assert_eq!(filter(&["a", "b"], &[80]).describe(), "host a or b, port 80");
        assert_eq!(filter(&[], &[80, 443]).describe(), "port 80 or 443");
    }
}
