//! What the calls tell, as text.

use std::io::{self, Write};
use std::net::SocketAddr;

use tcpwhy_report::plain::plain;
use tcpwhy_wire::calls::About;

use super::messages::MOST_SIZES;
use super::sockets::{Group, Pattern};
use super::stacks::Site;
use super::{Recorded, SPLIT_WRITE, Watched};

/// Groups of messages told of a socket.
const MOST_GROUPS: usize = 3;
/// Callers told of a line.
const MOST_CALLERS: usize = 4;

impl Recorded {
    /// Prints how many calls there were, and the first `top` sockets.
    pub(crate) fn print(&self, top: usize, out: &mut impl Write) -> io::Result<()> {
        self.head(out)?;
        for socket in self.sockets.iter().take(top) {
            writeln!(out)?;
            self.socket(socket, out)?;
        }
        if self.sockets.len() > top {
            writeln!(out, "\nAnd {} more, see --top.", count((self.sockets.len() - top) as u64, "socket"))?;
        }
        Ok(())
    }

    fn head(&self, out: &mut impl Write) -> io::Result<()> {
        let About { lost, interrupted, programs, fix, unseen, recorder, .. } = self.about();
        let calls = self.sockets.iter().map(|socket| socket.calls).sum();
        writeln!(
            out,
            "{}: {} on {} in {}",
            plain(recorder),
            count(calls, "call"),
            count(self.sockets.len() as u64, "TCP socket"),
            count(*programs, "program")
        )?;
        if !fix.is_empty() {
            writeln!(out, "With --fix {}.", plain(fix))?;
        }
        match (unseen.as_str(), programs) {
            ("", 0) => writeln!(
                out,
                "The loader has put the recorder into no program: is it statically linked, or set-uid?"
            )?,
            ("", _) if self.sockets.is_empty() => {
                writeln!(out, "No program used a TCP socket by calls that can be seen.")?;
            }
            ("", _) => {}
            (why, _) => writeln!(out, "{}", plain(why))?,
        }
        if *lost > 0 {
            writeln!(out, "{} not recorded: the recording was full.", count(*lost, "call"))?;
        }
        if *interrupted > 0 {
            writeln!(out, "{} of signal handlers not recorded.", count(*interrupted, "call"))?;
        }
        Ok(())
    }

    fn socket(&self, socket: &Watched, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", title(socket))?;
        let messages = count(socket.messages, "message");
        if socket.split == 0 {
            writeln!(out, "  {messages} written, each in one piece")?;
        } else {
            let mark = if self.has_nodelay(socket) { "written in pieces" } else { SPLIT_WRITE };
            writeln!(out, "  {mark}: {} of {messages}{}", socket.split, waits(socket))?;
            for (pattern, group) in socket.groups().into_iter().take(MOST_GROUPS) {
                self.group(pattern, group, out)?;
            }
        }
        writeln!(out, "  {}", plain(&self.nodelay_text(socket)))?;
        if socket.unseen() > 0 {
            writeln!(
                out,
                "  {} more bytes were written by calls that cannot be seen (stdio on a socket, io_uring, …)",
                socket.unseen()
            )?;
        }
        Ok(())
    }

    fn group(&self, pattern: &Pattern, group: &Group, out: &mut impl Write) -> io::Result<()> {
        let mut sizes: Vec<_> = group.sizes.iter().map(u64::to_string).collect();
        if group.pieces > MOST_SIZES {
            sizes.push("…".to_owned());
        }
        writeln!(out, "    {}, as {} bytes:", count(group.messages, "message"), sizes.join(" + "))?;
        for (stack, kind, calls) in pattern {
            writeln!(out, "      {}", plain(&self.calls_at(*stack, *kind, *calls)))?;
            let Site { through, callers, .. } = self.site(*stack).unwrap_or_default();
            // Of either, those next to the call are told.
            let skipped = through.len().saturating_sub(MOST_CALLERS);
            print_names("through", &through[skipped..], " > ", out)?;
            print_names("called by", &callers[..callers.len().min(MOST_CALLERS)], " < ", out)?;
        }
        Ok(())
    }
}

fn print_names(what: &str, names: &[String], between: &str, out: &mut impl Write) -> io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = names.iter().map(|name| plain(name)).collect();
    writeln!(out, "        {what} {}", names.join(between))
}

fn title(socket: &Watched) -> String {
    let end =
        |address: Option<SocketAddr>| address.map_or_else(|| "?".to_owned(), |address| address.to_string());
    let processes: Vec<_> = socket.processes.iter().map(u32::to_string).collect();
    let process = if processes.len() == 1 { "process" } else { "processes" };
    let role = if socket.accepted { ", accepted" } else { "" };
    format!(
        "{} → {}{role} · {process} {} · {}",
        end(socket.local),
        end(socket.peer),
        processes.join(", "),
        count(socket.calls, "call")
    )
}

/// What followed split messages, and others.
fn waits(socket: &Watched) -> String {
    match (socket.wait_after_split(), socket.wait_after_others()) {
        (Some(split), Some(whole)) => {
            let (split, whole) = (milliseconds(split), milliseconds(whole));
            format!("; data came after {split} (median), after the others {whole}")
        }
        (Some(split), None) => format!("; data came after {} (median)", milliseconds(split)),
        _ => String::new(),
    }
}

fn milliseconds(ns: i64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
