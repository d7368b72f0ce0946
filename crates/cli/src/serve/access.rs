//! Who may ask for what: only a browser that was given the address with its token, for this machine's own page.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Result, anyhow};
use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Method, Uri};

/// Bytes of a secret: nobody guesses 128 bits.
const SECRET: usize = 16;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The secrets of one run.
pub(super) struct Access {
    /// In the address that is printed.
    token: String,
    /// What the token is exchanged for: it appears in no address, history or log.
    session: String,
    /// The cookie's name. Cookies know no ports: two servers on one machine need two.
    cookie: String,
    /// Whether only this machine can connect.
    is_local: bool,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The page was asked for under a name that anybody can point to this machine.
    Host,
    /// Another page asks.
    OtherPage,
    /// Nobody has shown the token.
    NoToken,
}

/// What a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// What it asks for.
    Open,
    /// The cookie, for the token in its address.
    WithToken,
}

impl Access {
    /// Makes the secrets for a server at `address`.
    pub(super) fn new(address: SocketAddr) -> Result<Self> {
        Ok(Self {
            token: secret()?,
            session: secret()?,
            cookie: format!("tcpwhy-{}", address.port()),
            is_local: address.ip().is_loopback(),
        })
    }

    /// The token, for the address that is printed.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// The cookie that stands for the token: for this server alone, unseen by scripts, and not sent when another site's page
    /// asks.
    pub(super) fn set_cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.session)
    }

    /// Judges a request before anything of it is read.
    pub(super) fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Entry, Refusal> {
        let host = one(headers, HOST).filter(|host| self.is_own_name(host)).ok_or(Refusal::Host)?;
        if uri.authority().is_some_and(|authority| !self.is_own_name(authority.as_str())) {
            return Err(Refusal::Host);
        }
        if !is_own_page(method, host, headers) {
            return Err(Refusal::OtherPage);
        }
        if *method == Method::GET && uri.path() == "/" && self.is_token_in(uri) {
            return Ok(Entry::WithToken);
        }
        if self.is_cookie_in(headers) { Ok(Entry::Open) } else { Err(Refusal::NoToken) }
    }

    /// Whether `host` is an address, or localhost: of any other name somebody else may say, at any time, that it is this
    /// machine (DNS rebinding), and then their page would be ours. Ports do not matter: ssh forwards from others.
    fn is_own_name(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = authority.host();
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_address = bare.parse::<IpAddr>().is_ok_and(|ip| !self.is_local || ip.is_loopback());
        !host.contains('@') && (is_address || name.eq_ignore_ascii_case("localhost"))
    }

    fn is_token_in(&self, uri: &Uri) -> bool {
        let mut parts = uri.query().unwrap_or_default().split('&');
        parts.any(|part| part.strip_prefix("token=").is_some_and(|token| is_same(token, &self.token)))
    }

    fn is_cookie_in(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie && is_same(value, &self.session))
    }
}

/// Whether this server's own page asks, or a person: what changes something must say so, what reads must not say otherwise.
///
/// `SameSite` is not enough. Every server on this machine is of the same site, whatever its port.
fn is_own_page(method: &Method, host: &str, headers: &HeaderMap) -> bool {
    let site = headers.get(SEC_FETCH_SITE).map(|site| site.as_bytes());
    let origin = headers.get(ORIGIN).map(|origin| origin.as_bytes());
    let is_own_origin = origin.is_none_or(|origin| origin == format!("http://{host}").as_bytes());
    if *method != Method::GET && *method != Method::HEAD {
        let is_said = site.is_some() || origin.is_some();
        return is_said && is_own_origin && site.is_none_or(|site| site == b"same-origin");
    }
    // A link somewhere else may lead here: then the browser sends no cookie.
    let is_navigation = headers.get(SEC_FETCH_MODE).is_some_and(|mode| mode == "navigate");
    is_own_origin && (is_navigation || site.is_none_or(|site| site == b"same-origin" || site == b"none"))
}

/// The header's value, if it is there once.
fn one(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next().filter(|_| values.next().is_none());
    value.and_then(|value| value.to_str().ok())
}

/// Whether a secret was guessed; how long it takes to say so does not tell how much of it was right.
fn is_same(guess: &str, secret: &str) -> bool {
    let difference = guess.bytes().zip(secret.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    guess.len() == secret.len() && difference == 0
}

fn secret() -> Result<String> {
    let mut bytes = [0; SECRET];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: &str) -> Access {
        Access::new(address.parse().expect("an address")).expect("random numbers")
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn only_addresses_and_localhost_are_names_of_this_machine() {
        let local = access("127.0.0.1:8000");
        for host in ["127.0.0.1:8000", "localhost", "LOCALHOST:9000", "[::1]:8000", "127.0.0.2"] {
            assert!(local.is_own_name(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1:8000",
            "a@127.0.0.1",
            "127.0.0.1:8000/",
            "0x7f000001",
            "127.1",
            "[::1",
            "http://127.0.0.1",
        ] {
            assert!(!local.is_own_name(host), "{host}");
        }
        let open = access("0.0.0.0:8000");
        assert!(open.is_own_name("10.0.0.1:8000") && open.is_own_name("[fe80::1]:80"));
        assert!(!open.is_own_name("box.example:8000"));
    }

    #[test]
    fn what_changes_something_has_to_come_from_the_own_page() {
        let asks = |method: Method, pairs: &[(&'static str, &str)]| {
            is_own_page(&method, "127.0.0.1:8000", &headers(pairs))
        };
        let own = ("origin", "http://127.0.0.1:8000");
        assert!(asks(Method::POST, &[own]) && asks(Method::DELETE, &[("sec-fetch-site", "same-origin")]));
        assert!(asks(Method::PUT, &[own, ("sec-fetch-site", "same-origin")]));
        for wrong in [
            &[][..],
            &[("origin", "null")],
            &[("origin", "http://127.0.0.1:8001")],
            &[("origin", "https://127.0.0.1:8000")],
            &[("origin", "http://evil.example")],
            &[own, ("sec-fetch-site", "same-site")],
            &[own, ("sec-fetch-site", "cross-site")],
            &[own, ("sec-fetch-site", "none")],
        ] {
            assert!(!asks(Method::POST, wrong), "{wrong:?}");
        }
        assert!(asks(Method::GET, &[]) && asks(Method::GET, &[("sec-fetch-site", "none")]));
        assert!(asks(Method::GET, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]));
        assert!(!asks(Method::GET, &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")]));
        assert!(!asks(Method::GET, &[("origin", "null")]));
    }

    #[test]
    fn the_cookie_is_this_servers_and_whole() {
        let access = access("127.0.0.1:8000");
        let cookie = access.set_cookie();
        let pair = cookie.split(';').next().expect("a pair");
        let has = |cookies: &str| access.is_cookie_in(&headers(&[("cookie", cookies)]));
        assert!(has(pair) && has(&format!("a=b; {pair}")) && has(&format!("{pair}; c=d")));
        assert!(!has(&pair[..pair.len() - 1]) && !has(&format!("{pair}0")) && !has(&format!("x{pair}")));
        assert!(!has(&format!("tcpwhy-8000={}", access.token)));
        assert_ne!(access.token, access.session);
    }
}
