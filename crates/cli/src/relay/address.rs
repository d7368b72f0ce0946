//! Addresses on the command line.

use std::net::{Ipv4Addr, SocketAddr};

/// Whom clients are connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// A name or an address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

/// `8080` on this machine alone, `127.0.0.1:8080`, `[::1]:8080`.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "try 8080, 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080".to_owned())
}

/// `db.example:5432`, `10.0.0.7:80`, `[::1]:80`.
pub(super) fn target(text: &str) -> Result<Target, String> {
    const TRY: &str = "try db.example:5432, 10.0.0.7:5432 or [::1]:5432";
    let (host, port) = text.rsplit_once(':').ok_or(TRY)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or(TRY)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    // Colons belong into brackets: ::1:80 may be an address without a port.
    if host.is_empty() || (bare.is_none() && host.contains([':', '/', '['])) || bare == Some("") {
        return Err(TRY.to_owned());
    }
    Ok(Target { host: bare.unwrap_or(host).to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_port_is_for_this_machine_alone() {
        assert_eq!(listen("8080").map(|address| address.to_string()).as_deref(), Ok("127.0.0.1:8080"));
        assert_eq!(listen("0.0.0.0:80").map(|address| address.to_string()).as_deref(), Ok("0.0.0.0:80"));
        assert_eq!(listen("[::1]:80").map(|address| address.to_string()).as_deref(), Ok("[::1]:80"));
        for wrong in ["", "99999", "localhost:80", "127.0.0.1", "::1:80", ":80"] {
            assert!(listen(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn targets_are_names_or_addresses_with_a_port() {
        let is = |text: &str, host: &str, port| {
            assert_eq!(target(text), Ok(Target { host: host.to_owned(), port }), "{text}");
        };
        is("db.example:5432", "db.example", 5432);
        is("10.0.0.7:80", "10.0.0.7", 80);
        is("[::1]:80", "::1", 80);
        for wrong in ["", "db", "db:", ":80", "db:0", "db:99999", "::1:80", "http://db:80", "[]:80"] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }
}
