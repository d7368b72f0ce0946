//! Which sockets of the process are meant. Nothing is touched that was not pointed at, or agreed to.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::net::SocketAddr;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use tcpwhy_diagnose::trial::Role;
use tcpwhy_host::process::{self, Descriptor, Holders, Refused};
use tcpwhy_host::sockets::{Found, Observer};
use tcpwhy_host::switch::Switched;
use tcpwhy_report::plain::plain;
use tcpwhy_wire::sockets::State;

use super::Args;

/// Sockets that a question lists.
const MOST_LISTED: usize = 10;

/// What `--connection` points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    End(SocketAddr),
    Descriptor(i32),
}

impl FromStr for Pointer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let descriptor = text.parse().ok().filter(|fd| *fd >= 0).map(Self::Descriptor);
        descriptor
            .or_else(|| text.parse().ok().map(Self::End))
            .ok_or_else(|| "try 10.0.0.7:5432, [::1]:80 or a descriptor such as 8".to_owned())
    }
}

impl Pointer {
    fn is_at(self, found: &Found) -> bool {
        match self {
            Self::Descriptor(fd) => found.descriptors.iter().any(|descriptor| descriptor.fd == fd),
            Self::End(end) => [found.local, found.peer].map(canonical).contains(&canonical(end)),
        }
    }
}

/// IPv4 addresses of IPv6 sockets as people write them.
fn canonical(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

/// A connection, its option in our hands.
pub(super) struct Chosen {
    pub(super) switched: Switched,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) role: Role,
}

/// What the trial is about.
pub(super) struct Choice {
    pub(super) program: String,
    pub(super) connections: Vec<Chosen>,
    /// Listening sockets, with their addresses, to be switched at the end.
    pub(super) listeners: Vec<(Switched, SocketAddr)>,
    /// The process lives in another network namespace.
    pub(super) is_elsewhere: bool,
}

/// Finds the sockets that were pointed at; asks where that is more than one.
pub(super) fn choose(args: &Args, pid: u32) -> Result<Choice> {
    process::sockets_of(pid).map_err(|error| out_of_reach(pid, &error))?;
    let program = process::name(pid).unwrap_or_default();
    let found = sockets(pid)?;
    let listens = |one: &&Found| one.socket.state == State::Listen;
    let ports: Vec<u16> = found.iter().filter(listens).map(|one| one.local.port()).collect();
    let connections = connections(args, &found)?;
    let listeners: Vec<&Found> =
        if args.listener { found.iter().filter(listens).collect() } else { Vec::new() };
    if connections.is_empty() && listeners.is_empty() {
        bail!("process {pid} ({}) has no TCP connection", plain(&program));
    }
    let (all, option) = (connections.len() + listeners.len(), args.option.option());
    if connections.len().max(listeners.len()) > 1 && !args.all {
        agree(args, &program, &connections, &listeners, all)?;
    }
    let take = |one: &Found| -> Result<Switched> {
        let descriptor = held_by(one, pid).context("its socket has been closed")?;
        Switched::new(descriptor, option).map_err(|refused| denied(pid, &refused))
    };
    let role = |one: &Found| if ports.contains(&one.local.port()) { Role::Server } else { Role::Client };
    let chosen = |one: &&Found| -> Result<Chosen> {
        Ok(Chosen { switched: take(one)?, local: one.local, peer: one.peer, role: role(one) })
    };
    Ok(Choice {
        program,
        connections: connections.iter().map(chosen).collect::<Result<_>>()?,
        listeners: listeners.iter().map(|one| Ok((take(one)?, one.local))).collect::<Result<_>>()?,
        is_elsewhere: process::shares_our_network(pid).is_ok_and(|shares| !shares),
    })
}

fn out_of_reach(pid: u32, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow!("process {pid}: there is none"),
        ErrorKind::PermissionDenied => denied(pid, &Refused::Rights),
        _ => anyhow!("process {pid}: {error}"),
    }
}

fn denied(pid: u32, refused: &Refused) -> anyhow::Error {
    match refused {
        Refused::Rights => anyhow!(
            "process {pid} may not be touched: that needs CAP_SYS_PTRACE, or to be its user where users may trace their \
             own processes (try sudo)"
        ),
        refused => anyhow!("process {pid}: {refused}"),
    }
}

/// The TCP sockets of the process, with their descriptors.
fn sockets(pid: u32) -> Result<Vec<Found>> {
    let cannot = "this system's sockets cannot be listed";
    let mut observer = Observer::new().context(cannot)?;
    let holders = Holders::of(&[pid]);
    let mut found = observer.held(&holders).context(cannot)?;
    observer.attribute(&mut found, &holders);
    found.sort_by_key(|one| one.descriptors.first().map(|descriptor| descriptor.fd));
    Ok(found)
}

fn held_by(found: &Found, pid: u32) -> Option<Descriptor> {
    found.descriptors.iter().copied().find(|descriptor| descriptor.pid == pid)
}

/// The connections over which data can leave.
fn connections<'a>(args: &Args, found: &'a [Found]) -> Result<Vec<&'a Found>> {
    let can_send = |one: &&Found| matches!(one.socket.state, State::Established | State::CloseWait);
    let Some(pointer) = args.connection else { return Ok(found.iter().filter(can_send).collect()) };
    let pointed: Vec<_> = found.iter().filter(|one| pointer.is_at(one)).collect();
    let connections: Vec<_> = pointed.iter().copied().filter(|one| can_send(one)).collect();
    match (pointed.first(), connections.is_empty()) {
        (_, false) => Ok(connections),
        (Some(one), _) if one.socket.state == State::Listen => {
            bail!("--connection: {} listens, and sends nothing itself: see --listener", one.local)
        }
        (Some(one), _) => bail!("--connection: {} is {}", one.local, one.socket.state.name()),
        (None, _) => bail!("--connection: the process has no such TCP connection{}", listed(found)),
    }
}

/// Asks whether so many may be switched; without a terminal that is not agreed to.
fn agree(args: &Args, program: &str, connections: &[&Found], listeners: &[&Found], all: usize) -> Result<()> {
    let sockets: Vec<Found> = connections.iter().chain(listeners).map(|one| (*one).clone()).collect();
    let list = listed(&sockets);
    let (name, program) = (args.option.option().name(), plain(program));
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        bail!("{program} has {all} such sockets: point at one with --connection, or take --all{list}");
    }
    let mut stderr = io::stderr();
    write!(stderr, "{program} has {all} such sockets{list}\nSwitch {name} on all of them? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was touched"),
    }
}

/// `: fd 4 10.0.0.1:80 → 10.0.0.2:4711, …`
fn listed(found: &[Found]) -> String {
    let mut list = String::new();
    for (i, one) in found.iter().take(MOST_LISTED).enumerate() {
        let fd = one.descriptors.first().map_or(String::new(), |descriptor| format!("fd {} ", descriptor.fd));
        let _ = write!(list, "{}{fd}{}", if i == 0 { ": " } else { ", " }, one.local);
        if one.socket.state != State::Listen {
            let _ = write!(list, " → {}", one.peer);
        }
    }
    if found.len() > MOST_LISTED {
        list.push_str(", …");
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_ends_or_descriptors() {
        let end = |text: &str| Pointer::End(text.parse().expect("an end"));
        assert_eq!("10.0.0.7:5432".parse(), Ok(end("10.0.0.7:5432")));
        assert_eq!("[::1]:80".parse(), Ok(end("[::1]:80")));
        assert_eq!("8".parse(), Ok(Pointer::Descriptor(8)));
        for text in ["", "-1", "localhost:80", "10.0.0.7", ":80"] {
            assert!(text.parse::<Pointer>().is_err(), "{text}");
        }
    }
}
