//! The part of libpcap's filter language that is compiled here (pcap-filter(7)):
//!
//! ```text
//! expression = term (("and" | "&&" | "or" | "||") term)*        both bind alike, from left to right
//! term       = ("not" | "!") term | "(" expression ")" | primitive
//! primitive  = "ip" | "ip6" | "tcp" | "udp" | "sctp" | "icmp" | "icmp6"
//!            | ["ip" | "ip6"] [end] ["host" | "net"] address
//!            | ["tcp" | "udp" | "sctp"] [end] ("port" number | "portrange" number-number)
//!            | ("less" | "greater") number
//! end        = "src" | "dst" | "src or dst" | "src and dst"
//! ```
//!
//! A bare address or port after `and` or `or` has the qualifiers of the one before: `port 80 or 443`.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use super::emit::Expression;
use super::lower::{self, End, Version};
use super::{Error, Names};

/// Nested parentheses and negations, and terms: both bound the stack.
const DEEPEST: usize = 64;
const MOST_TERMS: usize = 512;
/// The longest expression worth reading, bytes.
const LONGEST: usize = 1 << 16;

/// The condition that an expression states; `None` for an empty one.
pub(super) fn parse(text: &str, names: &dyn Names) -> Result<Option<Expression>, Error> {
    if text.len() > LONGEST {
        return Err(Error(format!("longer than {LONGEST} bytes")));
    }
    let words = words(text);
    if words.is_empty() {
        return Ok(None);
    }
    let mut parser = Parser { words, at: 0, names, qualifiers: None, terms: 0 };
    let expression = parser.expression(0)?;
    match parser.peek() {
        None => Ok(Some(expression)),
        Some(")") => Err(Error("a ) without its (".to_owned())),
        Some(word) => Err(Error(format!("\"{word}\" is not expected after \"{}\"", parser.before()))),
    }
}

/// Words and signs.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let doubled = matches!(sign, '&' | '|') && signs.next_if_eq(&sign).is_some();
        match sign {
            '(' | ')' | '!' => words.extend([sign.to_string(), String::new()]),
            _ if doubled => words.extend([format!("{sign}{sign}"), String::new()]),
            _ if sign.is_whitespace() => words.push(String::new()),
            _ => words.last_mut().into_iter().for_each(|word| word.push(sign)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What is written before an address or a port.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Qualifiers {
    version: Option<Version>,
    transport: Option<u8>,
    end: End,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    PortRange,
}

struct Parser<'a> {
    words: Vec<String>,
    at: usize,
    names: &'a dyn Names,
    /// Those of the last address or port.
    qualifiers: Option<Qualifiers>,
    terms: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    fn before(&self) -> &str {
        self.words.get(self.at.wrapping_sub(1)).map_or("", String::as_str)
    }

    /// Takes the next word if it is one of these; which.
    fn take(&mut self, words: &[&str]) -> Option<String> {
        let found = self.peek().filter(|word| words.contains(word))?.to_owned();
        self.at += 1;
        Some(found)
    }

    /// The next word, whatever it is.
    fn any(&mut self, what: &str) -> Result<String, Error> {
        let Some(word) = self.peek().map(str::to_owned) else {
            return Err(Error(match self.before() {
                "" => format!("{what} is missing"),
                before => format!("{what} is missing after \"{before}\""),
            }));
        };
        self.at += 1;
        Ok(word)
    }

    fn expression(&mut self, depth: usize) -> Result<Expression, Error> {
        let mut left = self.term(depth)?;
        while let Some(word) = self.take(&["and", "&&", "or", "||"]) {
            let right = self.term(depth)?;
            left = if matches!(word.as_str(), "and" | "&&") { left.and(right) } else { left.or(right) };
        }
        Ok(left)
    }

    fn term(&mut self, depth: usize) -> Result<Expression, Error> {
        self.terms += 1;
        if depth > DEEPEST {
            return Err(Error(format!("nested deeper than {DEEPEST}")));
        }
        if self.terms > MOST_TERMS {
            return Err(Error(format!("more than {MOST_TERMS} terms")));
        }
        if self.take(&["not", "!"]).is_some() {
            return Ok(self.term(depth + 1)?.negated());
        }
        if self.take(&["("]).is_some() {
            let inner = self.expression(depth + 1)?;
            return match self.take(&[")"]) {
                Some(_) => Ok(inner),
                None => Err(Error("a ( without its )".to_owned())),
            };
        }
        self.primitive()
    }

    fn primitive(&mut self) -> Result<Expression, Error> {
        if let Some(word) = self.take(&["less", "greater"]) {
            let length = self.any("a number of bytes")?;
            let length = length.parse().map_err(|_| Error(format!("\"{length}\" is no number of bytes")))?;
            return Ok(match word.as_str() {
                "greater" => lower::at_least(length),
                _ => lower::more_than(length).negated(),
            });
        }
        let protocol = self.take(&["ip", "ip6", "tcp", "udp", "sctp", "icmp", "icmp6"]);
        let end = self.end()?;
        let kind = self.take(&["host", "net", "port", "portrange"]);
        match (protocol.as_deref(), end, kind.as_deref()) {
            (Some(word), None, None) if self.ends_here() => Ok(alone(word)),
            (None, None, None) => match self.qualifiers {
                Some(qualifiers) => self.value(qualifiers),
                None => self.value(Qualifiers {
                    version: None,
                    transport: None,
                    end: End::Either,
                    kind: Kind::Host,
                }),
            },
            (protocol, end, kind) => {
                let qualifiers = qualifiers(protocol, end.unwrap_or(End::Either), kind)?;
                self.value(qualifiers)
            }
        }
    }

    /// `src`, `dst`, or both of them joined.
    fn end(&mut self) -> Result<Option<End>, Error> {
        let Some(first) = self.take(&["src", "dst"]) else { return Ok(None) };
        let one = if first == "src" { End::Source } else { End::Destination };
        let joined = self.words.get(self.at + 1).is_some_and(|word| word == "src" || word == "dst");
        let Some(join) = joined.then(|| self.take(&["or", "||", "and", "&&"])).flatten() else {
            return Ok(Some(one));
        };
        let second = self.any("src or dst")?;
        if second == first {
            return Err(Error(format!("\"{first} {join} {second}\" says the same twice")));
        }
        Ok(Some(if matches!(join.as_str(), "or" | "||") { End::Either } else { End::Both }))
    }

    fn ends_here(&self) -> bool {
        self.peek().is_none_or(|word| matches!(word, "and" | "&&" | "or" | "||" | ")"))
    }

    /// An address or a port, to which `qualifiers` belong.
    fn value(&mut self, qualifiers: Qualifiers) -> Result<Expression, Error> {
        let Qualifiers { version, transport, end, kind } = qualifiers;
        let what = match kind {
            Kind::Host => "a host",
            Kind::Net => "a net",
            Kind::Port => "a port",
            Kind::PortRange => "a range of ports",
        };
        let word = self.any(what)?;
        if matches!(word.as_str(), "and" | "&&" | "or" | "||" | "not" | "!" | "(" | ")") {
            return Err(Error(format!("{what} is expected instead of \"{word}\"")));
        }
        self.qualifiers = Some(qualifiers);
        match kind {
            Kind::Host => self.host(&word, version, end),
            Kind::Net => {
                let (address, prefix) = self.net(&word)?;
                fits(version, address)?;
                Ok(lower::network(end, address, prefix))
            }
            Kind::Port => {
                let port = self.port(&word)?;
                Ok(lower::ports(end, transport, &(port..=port)))
            }
            Kind::PortRange => Ok(lower::ports(end, transport, &self.port_range(&word)?)),
        }
    }

    fn host(&self, word: &str, version: Option<Version>, end: End) -> Result<Expression, Error> {
        let addresses = match word.parse() {
            Ok(address) => vec![address],
            Err(_) if is_name(word) => self.names.host(word),
            Err(_) => Vec::new(),
        };
        if let [address] = addresses[..] {
            fits(version, address)?;
        }
        let fitting = addresses.into_iter().filter(|address| fits(version, *address).is_ok());
        fitting
            .map(|address| lower::network(end, address, if address.is_ipv4() { 32 } else { 128 }))
            .reduce(Expression::or)
            .ok_or_else(|| Error(format!("\"{word}\" is neither an address nor a host that can be found")))
    }

    /// `10.0.0.0/8`, `10.0.0.0 mask 255.0.0.0`, `10`, `2001:db8::/32`.
    fn net(&mut self, word: &str) -> Result<(IpAddr, u32), Error> {
        let wrong = || Error(format!("\"{word}\" is no net, such as 10.0.0.0/8"));
        let (address, prefix) = word.split_once('/').map_or((word, None), |(a, prefix)| (a, Some(prefix)));
        let (address, written) = match address.parse::<IpAddr>() {
            Ok(address) => (address, if address.is_ipv4() { 32 } else { 128 }),
            Err(_) => part_of_address(address).ok_or_else(wrong)?,
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= most).ok_or_else(wrong)?,
            None if address.is_ipv4() && self.take(&["mask"]).is_some() => {
                let mask = self.any("a mask")?;
                let bits: Option<Ipv4Addr> = mask.parse().ok();
                let prefix =
                    bits.map(Ipv4Addr::to_bits).filter(|bits| bits.leading_ones() == bits.count_ones());
                prefix.ok_or_else(|| Error(format!("\"{mask}\" is no mask")))?.count_ones()
            }
            None => written,
        };
        let beyond = match address {
            IpAddr::V4(address) => address.to_bits().checked_shl(prefix).unwrap_or(0) != 0,
            IpAddr::V6(address) => address.to_bits().checked_shl(prefix).unwrap_or(0) != 0,
        };
        if beyond {
            return Err(Error(format!("\"{word}\" has bits beyond its mask of {prefix}")));
        }
        Ok((address, prefix))
    }

    fn port(&self, word: &str) -> Result<u16, Error> {
        match word.parse::<u64>() {
            Ok(number) => u16::try_from(number).map_err(|_| Error(format!("port {word} is above 65535"))),
            Err(_) if is_name(word) => {
                self.names.port(word).ok_or_else(|| Error(format!("no port is called \"{word}\"")))
            }
            Err(_) => Err(Error(format!("\"{word}\" is no port"))),
        }
    }

    fn port_range(&self, word: &str) -> Result<RangeInclusive<u16>, Error> {
        let wrong = || Error(format!("\"{word}\" is no range of ports, such as 6000-6010"));
        let (low, high) = word.split_once('-').ok_or_else(wrong)?;
        let (low, high) = (self.port(low)?, self.port(high)?);
        Ok(low.min(high)..=low.max(high))
    }
}

/// Which qualifiers go together.
fn qualifiers(protocol: Option<&str>, end: End, kind: Option<&str>) -> Result<Qualifiers, Error> {
    let version = match protocol {
        Some("ip") => Some(Version::V4),
        Some("ip6") => Some(Version::V6),
        _ => None,
    };
    let transport = protocol.and_then(lower::number_of);
    let kind = match kind {
        Some("net") => Kind::Net,
        Some("port") => Kind::Port,
        Some("portrange") => Kind::PortRange,
        _ => Kind::Host,
    };
    let is_port = matches!(kind, Kind::Port | Kind::PortRange);
    match protocol {
        Some(word) if is_port && transport.is_none() => Err(Error(format!("{word} has no ports"))),
        Some(word) if !is_port && version.is_none() => Err(Error(format!(
            "{word} has no addresses of its own: say \"{word} and\" before the host or net"
        ))),
        _ => Ok(Qualifiers { version, transport, end, kind }),
    }
}

/// A protocol without anything else.
fn alone(word: &str) -> Expression {
    const ICMP: u8 = 1;
    const ICMPV6: u8 = 58;
    match word {
        "ip" => lower::version(Version::V4),
        "ip6" => lower::version(Version::V6),
        "icmp" => lower::protocol(Version::V4, ICMP),
        "icmp6" => lower::protocol(Version::V6, ICMPV6),
        transport => lower::transport(lower::number_of(transport).unwrap_or_default()),
    }
}

fn fits(version: Option<Version>, address: IpAddr) -> Result<(), Error> {
    match version {
        Some(Version::V4) if address.is_ipv6() => Err(Error(format!("{address} is no IPv4 address"))),
        Some(Version::V6) if address.is_ipv4() => Err(Error(format!("{address} is no IPv6 address"))),
        _ => Ok(()),
    }
}

/// `10` or `192.168`: the first bytes of an IPv4 address, and how many bits they are.
fn part_of_address(text: &str) -> Option<(IpAddr, u32)> {
    let mut bytes = [0; 4];
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > bytes.len() {
        return None;
    }
    for (byte, part) in bytes.iter_mut().zip(&parts) {
        *byte = part.parse().ok()?;
    }
    Some((Ipv4Addr::from(bytes).into(), 8 * parts.len() as u32))
}

/// Whether a word may be looked up: others are signs of the language that is not read here.
fn is_name(word: &str) -> bool {
    let may = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    word.chars().all(may) && !KEYWORDS.contains(&word)
}

/// Words of the language that are never names.
const KEYWORDS: [&str; 30] = [
    "and",
    "or",
    "not",
    "host",
    "net",
    "port",
    "portrange",
    "src",
    "dst",
    "ip",
    "ip6",
    "tcp",
    "udp",
    "sctp",
    "icmp",
    "icmp6",
    "less",
    "greater",
    "mask",
    "ether",
    "arp",
    "rarp",
    "vlan",
    "mpls",
    "proto",
    "gateway",
    "broadcast",
    "multicast",
    "inbound",
    "outbound",
];
