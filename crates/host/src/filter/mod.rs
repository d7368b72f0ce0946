//! Filter expressions, in libpcap's language, to programs for the kernel's packet filter (classic BPF).
//!
//! What people commonly ask for is compiled here ([`parse`] has the grammar): hosts, nets, ports, protocols and their
//! combinations. For the rest of the language libpcap is asked, where it is installed: it is loaded when it is
//! needed, so that nothing has to be installed to build tcpwhy or to filter by port.
//!
//! Programs read packets from the network header on (the kernel's `SKF_NET_OFF`), so one program serves all kinds of
//! interfaces. What it cannot see are link-layer headers: `ether host` and `vlan` are errors.

use std::fmt;
use std::fs;
use std::net::{IpAddr, ToSocketAddrs};

mod emit;
#[cfg(target_os = "linux")]
mod libpcap;
mod lower;
mod parse;

/// One instruction of classic BPF, as `struct sock_filter` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// Instructions to skip where a comparison holds.
    pub jt: u8,
    /// Instructions to skip where it does not.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

/// Why an expression is no filter, in a sentence without its full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

/// Where host and port names are looked up.
pub trait Names {
    /// The addresses of a host; empty where there is none of that name.
    fn host(&self, name: &str) -> Vec<IpAddr>;
    /// The port of a service.
    fn port(&self, name: &str) -> Option<u16>;
}

/// This machine's resolver and `/etc/services`.
#[derive(Clone, Copy, Debug)]
pub struct ThisMachine;

impl Names for ThisMachine {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        let found = (name, 0).to_socket_addrs();
        let mut addresses: Vec<IpAddr> =
            found.map_or_else(|_| Vec::new(), |all| all.map(|end| end.ip()).collect());
        addresses.dedup();
        addresses
    }

    fn port(&self, name: &str) -> Option<u16> {
        let services = fs::read_to_string("/etc/services").ok()?;
        services.lines().find_map(|line| {
            let mut words = line.split('#').next()?.split_whitespace();
            let (service, port) = (words.next()?, words.next()?);
            let named = service == name || words.any(|alias| alias == name);
            named.then(|| port.split('/').next()?.parse().ok()).flatten()
        })
    }
}

/// The program for an expression; an empty one accepts everything and has an empty program.
pub fn compile(expression: &str) -> Result<Vec<Instruction>, Error> {
    let own = match compile_own(expression, &ThisMachine) {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    #[cfg(target_os = "linux")]
    match libpcap::compile(expression) {
        None => Err(Error(format!("{own} (libpcap, which knows the whole language, is not installed)"))),
        Some(Ok(program)) => Ok(program),
        Some(Err(theirs)) => Err(Error(format!("{own}; libpcap says: {theirs}"))),
    }
    #[cfg(not(target_os = "linux"))]
    Err(own)
}

/// The program for an expression of the part of the language that needs no libpcap.
pub fn compile_own(expression: &str, names: &dyn Names) -> Result<Vec<Instruction>, Error> {
    match parse::parse(expression, names)? {
        None => Ok(Vec::new()),
        Some(expression) => emit::program(&expression),
    }
}

#[cfg(test)]
mod tests;
