//! The ends of a conversation as tcpdump prints them: `host.port`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest host that is believed: a domain name has at most 253 characters (RFC 1035 section 2.3.4).
const MAX_HOST: usize = 255;

/// One end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host<'a> {
    /// The host as printed, without its port.
    pub(super) name: &'a str,
    /// Its address, where one was printed.
    pub(super) address: Option<IpAddr>,
    /// The port, where one was printed as a number or as a service we know.
    pub(super) port: Option<u16>,
}

impl<'a> Host<'a> {
    /// Reads `127.0.0.1.8080`, `fe80::1.443`, `idda.1033`, `web.example.org.https`, `[CLIENT]`.
    ///
    /// A last label that is neither a number nor a known service stays part of the name: two services we do
    /// not know are then still two ends.
    pub(super) fn read(word: &'a str) -> Option<Self> {
        if word.len() > MAX_HOST {
            return None;
        }
        if let Some((name, after)) = bracketed(word) {
            let port = after.trim_start_matches(['.', ':']);
            let port = if port.is_empty() { None } else { Some(port_number(port)?) };
            return (!name.is_empty()).then(|| Self { name, address: address(name), port });
        }
        let plausible = |letter: char| letter.is_alphanumeric() || ".-_:%".contains(letter);
        if !word.starts_with(char::is_alphanumeric) && !word.starts_with(':') || !word.chars().all(plausible)
        {
            return None;
        }
        Some(Self::plain(word))
    }

    fn plain(word: &'a str) -> Self {
        let whole = Self { name: word, address: address(word), port: None };
        // `192.168.1.94` is an address without a port, not the host 192.168.1 with port 94; only a
        // zone may hide a port.
        if whole.address.is_some() && !word.contains('%') {
            return whole;
        }
        // People who edit a text write `host:port` at times; an IPv6 address has more colons.
        let by_colon = word.rsplit_once(':').filter(|(name, _)| !name.contains(':'));
        let ends = [word.rsplit_once('.'), by_colon];
        let found = ends.into_iter().flatten().find_map(|(name, port)| Some((name, port_number(port)?)));
        match found {
            Some((name, port)) if !name.is_empty() => Self { name, address: address(name), port: Some(port) },
            _ => whole,
        }
    }
}

/// The name in `[name]` or `<name>`, as people write who hide an address, and what follows it.
fn bracketed(word: &str) -> Option<(&str, &str)> {
    let close = match word.chars().next()? {
        '[' => ']',
        '<' => '>',
        _ => return None,
    };
    word[1..].split_once(close)
}

/// An IPv6 address loses its zone (`fe80::1%eth0`): it names the capturing host's interface.
fn address(name: &str) -> Option<IpAddr> {
    if !name.contains(':') {
        return name.parse::<Ipv4Addr>().ok().map(IpAddr::V4);
    }
    let bare = name.split_once('%').map_or(name, |(bare, _)| bare);
    bare.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

fn port_number(text: &str) -> Option<u16> {
    if text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit())
    {
        return text.parse().ok();
    }
    SERVICES.iter().find(|(service, _)| *service == text).map(|(_, port)| *port)
}

/// Names of /etc/services that tcpdump prints without `-n`, as assigned by IANA or by long use.
const SERVICES: [(&str, u16); 81] = [
    ("amqp", 5672),
    ("amqps", 5671),
    ("auth", 113),
    ("bgp", 179),
    ("bootpc", 68),
    ("bootps", 67),
    ("chargen", 19),
    ("daytime", 13),
    ("discard", 9),
    ("domain", 53),
    ("echo", 7),
    ("exec", 512),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("ftps", 990),
    ("gopher", 70),
    ("hostmon", 5355),
    ("http", 80),
    ("http-alt", 8080),
    ("https", 443),
    ("ident", 113),
    ("imap", 143),
    ("imap2", 143),
    ("imaps", 993),
    ("ipp", 631),
    ("ircd", 6667),
    ("iscsi-target", 3260),
    ("isakmp", 500),
    ("kerberos", 88),
    ("ldap", 389),
    ("ldaps", 636),
    ("login", 513),
    ("mdns", 5353),
    ("microsoft-ds", 445),
    ("ms-sql-s", 1433),
    ("ms-wbt-server", 3389),
    ("mqtt", 1883),
    ("mysql", 3306),
    ("nameserver", 42),
    ("ncube-lm", 1521),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ssn", 139),
    ("nfs", 2049),
    ("nntp", 119),
    ("ntp", 123),
    ("openvpn", 1194),
    ("pop-3", 110),
    ("pop3", 110),
    ("pop3s", 995),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("printer", 515),
    ("redis", 6379),
    ("rsync", 873),
    ("rtsp", 554),
    ("shell", 514),
    ("sip", 5060),
    ("sip-tls", 5061),
    ("smtp", 25),
    ("smtps", 465),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("snmptrap", 162),
    ("socks", 1080),
    ("ssdp", 1900),
    ("ssh", 22),
    ("submission", 587),
    ("submissions", 465),
    ("sunrpc", 111),
    ("svn", 3690),
    ("telnet", 23),
    ("tftp", 69),
    ("time", 37),
    ("webcache", 8080),
    ("who", 513),
    ("whois", 43),
    ("www", 80),
    ("x11", 6000),
    ("xmpp-client", 5222),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(word: &str) -> Option<(&str, bool, Option<u16>)> {
        Host::read(word).map(|host| (host.name, host.address.is_some(), host.port))
    }

    #[test]
    fn addresses_names_and_services() {
        assert_eq!(read("192.168.1.91.59406"), Some(("192.168.1.91", true, Some(59406))));
        assert_eq!(read("192.168.1.94"), Some(("192.168.1.94", true, None)));
        assert_eq!(read("10.0.0.1:80"), Some(("10.0.0.1", true, Some(80))));
        assert_eq!(read("fe80::1.443"), Some(("fe80::1", true, Some(443))));
        assert_eq!(read("fe80::1%eth0.https"), Some(("fe80::1%eth0", true, Some(443))));
        assert_eq!(read("::1"), Some(("::1", true, None)));
        assert_eq!(read("idda.1033"), Some(("idda", false, Some(1033))));
        assert_eq!(read("web.example.org.https"), Some(("web.example.org", false, Some(443))));
        assert_eq!(read("[CLIENT]"), Some(("CLIENT", false, None)));
        assert_eq!(read("[fe80::1]:443"), Some(("fe80::1", true, Some(443))));
    }

    #[test]
    fn an_unknown_service_stays_in_the_name() {
        assert_eq!(read("10.0.0.1.frobnicate"), Some(("10.0.0.1.frobnicate", false, None)));
        assert_eq!(read("host.99999"), Some(("host.99999", false, None)));
    }

    #[test]
    fn what_is_no_host() {
        for word in ["", "(DF)", "[]", "->", "a,b", "[x]y", "«»"] {
            assert_eq!(read(word), None, "{word}");
        }
        assert_eq!(read(&"a".repeat(256)), None);
    }
}
