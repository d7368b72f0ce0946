//! The second process: puts back what was switched when the first one ends without having done so, be it killed.
//!
//! It reads what to put back from a pipe, whose other end the kernel closes however the first process ends. A last line
//! says that nothing is left to be done.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::Result;
use tcpwhy_host::process::Descriptor;
use tcpwhy_host::switch::{Switched, TcpOption};

use super::signals::Signals;

/// The line that says that all has been put back.
const DONE: &str = "done";

/// The second process, seen from the first.
pub(super) struct Guard {
    process: Child,
}

impl Guard {
    /// Starts it, out of reach of the terminal's Ctrl-C.
    pub(super) fn start() -> io::Result<Self> {
        let process = Command::new("/proc/self/exe")
            .args(["prove", "--put-back"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { process })
    }

    /// Says what there was before a switch; the last word on a socket counts.
    pub(super) fn remember(&mut self, switched: &Switched, option: TcpOption) -> io::Result<()> {
        let Descriptor { pid, fd, inode } = switched.descriptor();
        let before = u8::from(switched.before());
        self.say(&format!("{} {pid} {fd} {inode} {before}", option.name()))
    }

    /// Says that nothing is left to be done, and waits for its end.
    pub(super) fn dismiss(mut self) {
        // If it has been killed, nobody needs to be told.
        let _ = self.say(DONE);
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        self.process.stdin.as_mut().map_or(Ok(()), |pipe| writeln!(pipe, "{line}"))
    }
}

/// The second process.
pub(super) fn run() -> Result<ExitCode> {
    let _deaf = Signals::listen()?;
    let mut left_behind = HashMap::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line == DONE {
            return Ok(ExitCode::SUCCESS);
        }
        if let Some((descriptor, option, before)) = read(&line) {
            left_behind.insert(descriptor, (option, before));
        }
    }
    for (descriptor, (option, before)) in left_behind {
        // Dropped at once, which puts back.
        drop(Switched::left_behind(descriptor, option, before));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(line: &str) -> Option<(Descriptor, TcpOption, bool)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [option, pid, fd, inode, before] = words.as_slice() else { return None };
    let option = [TcpOption::NoDelay, TcpOption::QuickAck].into_iter().find(|one| one.name() == *option)?;
    let descriptor = Descriptor { pid: pid.parse().ok()?, fd: fd.parse().ok()?, inode: inode.parse().ok()? };
    Some((descriptor, option, *before == "1"))
}
