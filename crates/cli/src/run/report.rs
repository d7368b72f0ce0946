//! What the calls tell, as text.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::report::{Finding, Source};
use tcpwhy_host::calls::Fix;
use tcpwhy_report::plain::plain;
use tcpwhy_report::terminal;
use tcpwhy_wire::calls::{About, Kind, Recording};

use super::located::Located;
use super::packets::Packets;
use super::sites::{Group, Pattern, groups};
use super::sockets::{Nodelay, Watched, watched};
use super::symbols::Symbols;
use crate::drive::{self, Trouble};
use crate::fail_on::FailOn;
use crate::stop::Stop;

/// Instead of an analysis.
const NO_PACKETS: &str =
    "None of its packets passed where they were captured: loopback, and the default route's interface.";
/// The rule that calls alone can tell.
const SPLIT_WRITE: &str = "split-write";

/// Groups of messages told of a socket.
const MOST_GROUPS: usize = 3;
/// Callers told of a line.
const MOST_CALLERS: usize = 4;
/// Pieces whose sizes are told.
const MOST_SIZES: usize = 6;
/// Characters told of a function's name.
const LONGEST_NAME: usize = 60;

/// What is told beside the calls.
pub(super) struct Telling<'a> {
    pub(super) recording: &'a Recording,
    pub(super) fix: Option<Fix>,
    /// Sockets to be told in full.
    pub(super) top: usize,
    /// Why nothing is seen, where that is known.
    pub(super) unseen: Option<String>,
    /// What makes a run fail.
    pub(super) fail_on: &'a [FailOn],
}

impl Telling<'_> {
    /// Prints all; whether what makes a run fail was found.
    pub(super) fn print(&self, packets: Option<Packets>, out: &mut impl Write) -> io::Result<bool> {
        let all = watched(self.recording);
        let mut symbols = Symbols::new(self.recording);
        let in_packets = match packets {
            Some(packets) if !all.is_empty() => self.analysis(packets, &all, &mut symbols, out)?,
            _ => false,
        };
        self.head(&all, out)?;
        for socket in all.iter().take(self.top) {
            writeln!(out)?;
            self.socket(socket, &mut symbols, out)?;
        }
        if all.len() > self.top {
            writeln!(out, "\nAnd {} more, see --top.", count(all.len() - self.top, "socket"))?;
        }
        let split = all.iter().any(|socket| !self.has_nodelay(socket) && socket.split().next().is_some());
        Ok(in_packets || split && self.fail_on.iter().any(|name| name.names(SPLIT_WRITE)))
    }

    /// Prints what the packets tell of the watched connections; whether what makes a run fail was found there.
    fn analysis(
        &self,
        packets: Packets,
        all: &[Watched<'_>],
        symbols: &mut Symbols<'_>,
        out: &mut impl Write,
    ) -> io::Result<bool> {
        let mut sockets = BTreeMap::new();
        for socket in all {
            if let (Some(local), Some(peer)) = (socket.local, socket.peer) {
                sockets.insert((local.to_string(), peer.to_string()), self.place(socket, symbols));
            }
        }
        let mut found = false;
        let options = terminal::Options { top: self.top, ..terminal::Options::default() };
        packets.finish(|path, dropped| {
            let take = &mut |diagnosis: Diagnosis| {
                let located = Located { whole: &diagnosis, sockets: std::mem::take(&mut sockets), dropped };
                let named = |finding: Finding| self.fail_on.iter().any(|name| name.matches(&finding));
                if located.connections().next().is_none() {
                    return writeln!(out, "{NO_PACKETS}\n");
                }
                found = located.findings().any(named);
                terminal::write(out, &located, &options)?;
                writeln!(out)
            };
            match drive::captures(path, None, None, &Stop::default(), take) {
                Ok(()) => Ok(()),
                Err(Trouble::Output(error)) => Err(error),
                // Nothing passed at all.
                Err(Trouble::Input(_)) => writeln!(out, "{NO_PACKETS}\n"),
            }
        })?;
        Ok(found)
    }

    /// Where a socket is written to, and what became of its `TCP_NODELAY`.
    fn place(&self, socket: &Watched<'_>, symbols: &mut Symbols<'_>) -> String {
        let groups = groups(socket);
        let calls: Vec<_> = match groups.first() {
            Some((Pattern(calls), _)) => {
                calls.iter().map(|(stack, kind, calls)| calls_at(*stack, *kind, *calls, symbols)).collect()
            }
            None => Vec::new(),
        };
        let nodelay = self.nodelay(socket, symbols);
        let written = if calls.is_empty() { "each message is one call".to_owned() } else { calls.join("; ") };
        format!("{written}. {nodelay}")
    }

    fn head(&self, all: &[Watched<'_>], out: &mut impl Write) -> io::Result<()> {
        let About { lost, interrupted, programs, .. } = &self.recording.about;
        let calls = all.iter().map(|socket| socket.calls.len()).sum();
        let sockets = all.len();
        writeln!(
            out,
            "tcpwhy run: {} on {} in {}",
            count(calls, "call"),
            count(sockets, "TCP socket"),
            count(*programs as usize, "program")
        )?;
        match (&self.unseen, programs) {
            (Some(why), _) => writeln!(out, "{}", plain(why))?,
            (None, 0) => writeln!(
                out,
                "The loader has put the recorder into no program: is it statically linked, or set-uid?"
            )?,
            (None, _) if sockets == 0 => {
                writeln!(out, "No program used a TCP socket by calls that can be seen.")?;
            }
            _ => {}
        }
        if *lost > 0 {
            writeln!(out, "{} not recorded: the recording was full.", count(*lost as usize, "call"))?;
        }
        if *interrupted > 0 {
            writeln!(out, "{} of signal handlers not recorded.", count(*interrupted as usize, "call"))?;
        }
        Ok(())
    }

    fn socket(
        &self,
        socket: &Watched<'_>,
        symbols: &mut Symbols<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        writeln!(out, "{}", title(socket))?;
        let split = socket.split().count();
        let all = socket.messages.len();
        if split == 0 {
            writeln!(out, "  {} written, each in one piece", count(all, "message"))?;
        } else {
            let mark = if self.has_nodelay(socket) { "written in pieces" } else { SPLIT_WRITE };
            writeln!(out, "  {mark}: {split} of {}{}", count(all, "message"), waits(socket))?;
            for (pattern, group) in groups(socket).iter().take(MOST_GROUPS) {
                print_group(pattern, group, symbols, out)?;
            }
        }
        writeln!(out, "  {}", plain(&self.nodelay(socket, symbols)))?;
        if socket.unseen > 0 {
            writeln!(
                out,
                "  {} more bytes were written by calls that cannot be seen (stdio on a socket, io_uring, …)",
                socket.unseen
            )?;
        }
        Ok(())
    }

    fn has_nodelay(&self, socket: &Watched<'_>) -> bool {
        self.fix == Some(Fix::Nodelay) || socket.nodelay.is_on_at_first_write()
    }

    fn nodelay(&self, socket: &Watched<'_>, symbols: &mut Symbols<'_>) -> String {
        let mut at = |stack| {
            symbols.site(stack).map_or_else(|| "a call whose stack was not kept".to_owned(), |(site, _)| site)
        };
        match socket.nodelay {
            Nodelay::Off { stack } => format!("TCP_NODELAY switched off at {}", at(stack)),
            _ if self.fix == Some(Fix::Nodelay) => "TCP_NODELAY set by --fix".to_owned(),
            Nodelay::Never => "TCP_NODELAY never set on this socket".to_owned(),
            Nodelay::OtherSide => "TCP_NODELAY never set on this socket, only on the other side's".to_owned(),
            Nodelay::Beginning => "TCP_NODELAY on from the beginning".to_owned(),
            Nodelay::Set { stack, writes_before: 0 } => {
                format!("TCP_NODELAY set at {}, before the first write", at(stack))
            }
            Nodelay::Set { stack, writes_before } => {
                format!("TCP_NODELAY set at {}, but only after {}", at(stack), count(writes_before, "write"))
            }
        }
    }
}

fn title(socket: &Watched<'_>) -> String {
    let end = |address: Option<std::net::SocketAddr>| {
        address.map_or_else(|| "?".to_owned(), |address| address.to_string())
    };
    let processes: Vec<_> = socket.processes.iter().map(u32::to_string).collect();
    let process = if processes.len() == 1 { "process" } else { "processes" };
    let role = if socket.accepted { ", accepted" } else { "" };
    format!(
        "{} → {}{role} · {process} {} · {}",
        end(socket.local),
        end(socket.peer),
        processes.join(", "),
        count(socket.calls.len(), "call")
    )
}

/// What followed split messages, and others.
fn waits(socket: &Watched<'_>) -> String {
    let median = |split: bool| {
        let mut waits: Vec<_> = socket
            .messages
            .iter()
            .filter(|message| message.is_split(socket.mss) == split)
            .filter_map(|message| message.answered_after)
            .collect();
        waits.sort_unstable();
        waits.get(waits.len() / 2).map(|ns| milliseconds(*ns))
    };
    match (median(true), median(false)) {
        (Some(split), Some(whole)) => format!("; data came after {split} (median), after the others {whole}"),
        (Some(split), None) => format!("; data came after {split} (median)"),
        _ => String::new(),
    }
}

fn print_group(
    pattern: &Pattern,
    group: &Group,
    symbols: &mut Symbols<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut sizes: Vec<_> = group.example.iter().take(MOST_SIZES).map(u64::to_string).collect();
    if group.example.len() > MOST_SIZES {
        sizes.push("…".to_owned());
    }
    writeln!(out, "    {}, as {} bytes:", count(group.messages, "message"), sizes.join(" + "))?;
    for (stack, kind, calls) in &pattern.0 {
        writeln!(out, "      {}", plain(&calls_at(*stack, *kind, *calls, symbols)))?;
        let callers = symbols.site(*stack).map(|(_, callers)| callers).unwrap_or_default();
        if !callers.is_empty() {
            let callers: Vec<_> = callers.iter().take(MOST_CALLERS).map(|name| plain(short(name))).collect();
            writeln!(out, "        called by {}", callers.join(" < "))?;
        }
    }
    Ok(())
}

/// `server.c:118 in flush_chain(), 6 send() calls a message`.
fn calls_at(stack: u32, kind: Kind, calls: usize, symbols: &mut Symbols<'_>) -> String {
    let name = name(kind);
    let calls = if calls == 1 {
        format!("a {name}() call a message")
    } else {
        format!("{calls} {name}() calls a message")
    };
    match symbols.site(stack) {
        Some((site, _)) => format!("{site}, {calls}"),
        None => format!("{calls}, whose stack was not kept"),
    }
}

/// C++ names can be pages long.
fn short(name: &str) -> &str {
    let end = name.char_indices().nth(LONGEST_NAME).map_or(name.len(), |(at, _)| at);
    &name[..end]
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Connect => "connect",
        Kind::Accept => "accept",
        Kind::Send => "send",
        Kind::SendTo => "sendto",
        Kind::SendMsg => "sendmsg",
        Kind::SendMmsg => "sendmmsg",
        Kind::Write => "write",
        Kind::Writev => "writev",
        Kind::Sendfile => "sendfile",
        Kind::Splice => "splice",
        Kind::Read => "read",
        Kind::Readv => "readv",
        Kind::Recv => "recv",
        Kind::RecvFrom => "recvfrom",
        Kind::RecvMsg => "recvmsg",
        Kind::RecvMmsg => "recvmmsg",
        Kind::SetSockOpt => "setsockopt",
        Kind::Shutdown => "shutdown",
        Kind::Close => "close",
    }
}

fn milliseconds(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
