//! Which sockets of the process are meant. Nothing is touched that was not pointed at, or agreed to.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::net::SocketAddr;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tcpwhy_diagnose::trial::Role;
use tcpwhy_host::process::{self, Descriptor, Holders, Refused};
use tcpwhy_host::sockets::{Found, Observer};
use tcpwhy_host::switch::Switched;
use tcpwhy_report::plain::plain;
use tcpwhy_wire::sockets::State;

use super::Args;
use super::newcomers::Newcomers;
use crate::complaint::try_sudo;

/// Longest wait for a connection of a program that opens one now and then.
const PATIENCE: Duration = Duration::from_secs(2);

/// From one look for it to the next: such a connection may be over in milliseconds.
const LOOK_EVERY: Duration = Duration::from_millis(1);

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
    pub(super) fn is_at(self, found: &Found) -> bool {
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

/// Who listens on the connection's port answers.
pub(super) fn role(local: SocketAddr, listened_on: &[u16]) -> Role {
    if listened_on.contains(&local.port()) { Role::Server } else { Role::Client }
}

/// What the trial is about.
pub(super) struct Choice {
    pub(super) program: String,
    pub(super) connections: Vec<Chosen>,
    /// Listening sockets, to be switched at the end.
    pub(super) listeners: Vec<Chosen>,
    /// Those that the program opens meanwhile.
    pub(super) newcomers: Newcomers,
    /// The process lives in another network namespace.
    pub(super) is_elsewhere: bool,
}

/// Finds the sockets that were pointed at; asks where that is more than one.
pub(super) fn choose(args: &Args, pid: u32) -> Result<Choice> {
    process::sockets_of(pid).map_err(|error| out_of_reach(pid, &error))?;
    let (program, option) = (process::name(pid).unwrap_or_default(), args.option.option());
    let found = awaited(args, pid)?;
    let listens = |one: &&Found| one.socket.state == State::Listen;
    let ports: Vec<u16> = found.iter().filter(listens).map(|one| one.local.port()).collect();
    let connections = connections(args, &found)?;
    let listeners: Vec<&Found> =
        if args.listener { found.iter().filter(listens).collect() } else { Vec::new() };
    if connections.is_empty() && listeners.is_empty() {
        let hint = if ports.is_empty() { "" } else { " now, it only listens: have a client connect" };
        bail!("process {pid} ({}) has no TCP connection{hint}", plain(&program));
    }
    let is_agreed = connections.len().max(listeners.len()) > 1 && !args.all;
    if is_agreed {
        agree(args, &program, &connections, &listeners)?;
    }
    let are_meant = is_agreed || means_later_ones(args);
    let newcomers = Newcomers::new(pid, option, args.connection, are_meant, ports.clone());
    let take = |one: &&Found| -> Result<Option<Chosen>> {
        let Some(descriptor) = held_by(one, pid) else { return Ok(None) };
        match Switched::new(descriptor, option) {
            Ok(switched) => {
                let Found { local, peer, .. } = **one;
                Ok(Some(Chosen { switched, local, peer, role: role(local, &ports) }))
            }
            // Some come and go.
            Err(Refused::Gone) => Ok(None),
            Err(refused) => Err(denied(pid, &refused)),
        }
    };
    let taken =
        |all: &[&Found]| all.iter().filter_map(|one| take(one).transpose()).collect::<Result<Vec<_>>>();
    let (connections, listeners) = (taken(&connections)?, taken(&listeners)?);
    ensure!(
        !connections.is_empty() || !listeners.is_empty(),
        "process {pid} has closed its connection just now"
    );
    let is_elsewhere = process::shares_our_network(pid).is_ok_and(|shares| !shares);
    Ok(Choice { program, connections, listeners, newcomers, is_elsewhere })
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
             own processes ({})",
            try_sudo()
        ),
        refused => anyhow!("process {pid}: {refused}"),
    }
}

/// The TCP sockets of the process; where later connections are meant, too, not before there is one, or it seems that none
/// comes.
fn awaited(args: &Args, pid: u32) -> Result<Vec<Found>> {
    let waits = means_later_ones(args) && !args.listener;
    let begun = Instant::now();
    loop {
        let found = sockets(pid)?;
        let mut there = found.iter().filter(|one| can_send(one));
        let is_meant = |one: &Found| args.connection.is_none_or(|pointer| pointer.is_at(one));
        if !waits || there.any(is_meant) || begun.elapsed() > PATIENCE {
            return Ok(found);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Whether connections are meant that may not be there yet.
fn means_later_ones(args: &Args) -> bool {
    args.all || matches!(args.connection, Some(Pointer::End(_)))
}

/// Whether data can leave over it.
fn can_send(found: &Found) -> bool {
    matches!(found.socket.state, State::Established | State::CloseWait)
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
    let all = || found.iter().filter(|one| can_send(one));
    let Some(pointer) = args.connection else { return Ok(all().collect()) };
    let pointed: Vec<_> = found.iter().filter(|one| pointer.is_at(one)).collect();
    let connections: Vec<_> = all().filter(|one| pointer.is_at(one)).collect();
    match (pointed.first(), connections.is_empty()) {
        (_, false) => Ok(connections),
        (Some(one), _) if one.socket.state == State::Listen => {
            bail!("--connection: {} listens, and sends nothing itself: see --listener", one.local)
        }
        (Some(one), _) => bail!("--connection: {} is {}", one.local, one.socket.state.name()),
        (None, _) => {
            let but = if found.is_empty() { "" } else { ", but" };
            bail!("--connection: the process has no such TCP connection{but}{}", listed(found))
        }
    }
}

/// Asks whether so many may be switched; without a terminal that is not agreed to.
fn agree(args: &Args, program: &str, connections: &[&Found], listeners: &[&Found]) -> Result<()> {
    let all = connections.len() + listeners.len();
    let sockets: Vec<Found> = connections.iter().chain(listeners).map(|one| (*one).clone()).collect();
    let list = listed(&sockets);
    let (name, program) = (args.option.option().name(), plain(program));
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        bail!("{program} has {all} such sockets, point at one with --connection, or take --all:{list}");
    }
    let mut stderr = io::stderr();
    write!(stderr, "{program} has {all} such sockets:{list}\nSwitch {name} on all of them? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was touched"),
    }
}

/// ` fd 4 10.0.0.1:80 → 10.0.0.2:4711, …`
fn listed(found: &[Found]) -> String {
    let mut list = String::new();
    for (i, one) in found.iter().take(MOST_LISTED).enumerate() {
        let fd = one.descriptors.first().map_or(String::new(), |descriptor| format!("fd {} ", descriptor.fd));
        let _ = write!(list, "{}{fd}{}", if i == 0 { " " } else { ", " }, one.local);
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
