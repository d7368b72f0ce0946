//! Ctrl-C and its like: they end the command, and the report follows.

use std::fs::{self, File};
use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Takes the place of no process.
const NOBODY: u32 = 0;

/// The signals that ask for an end; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    received: Arc<AtomicBool>,
    target: Arc<AtomicU32>,
}

impl Signals {
    /// Starts to listen on a thread of its own.
    pub(super) fn listen() -> io::Result<Self> {
        let signals = Self::default();
        let mut coming = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let listener = signals.clone();
        std::thread::spawn(move || {
            for signal in coming.forever() {
                listener.handle(signal);
            }
        });
        Ok(signals)
    }

    /// Whether there was one.
    pub(super) fn received(&self) -> bool {
        self.received.load(Ordering::SeqCst)
    }

    /// From now on signals are for the children of this process, or for nobody.
    pub(super) fn hand_on_to(&self, process: Option<u32>) {
        self.target.store(process.unwrap_or(NOBODY), Ordering::SeqCst);
    }

    fn handle(&self, number: i32) {
        let again = self.received.swap(true, Ordering::SeqCst);
        match self.target.load(Ordering::SeqCst) {
            // The command has ended, and the user does not want the report.
            NOBODY if again => process::exit(128 + number),
            NOBODY => {}
            // The terminal sent it to the command too.
            _ if number == SIGINT && from_terminal() => {}
            target => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    send_to_descendants(target, signal);
                }
            }
        }
    }
}

/// Whether this process is in its terminal's foreground: then Ctrl-C reaches it and its children alike.
pub(crate) fn from_terminal() -> bool {
    File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// Sends a signal to all children of a process and to theirs: parents first, so that no shell among them says what
/// its children died of.
pub(super) fn send_to_descendants(process: u32, signal: Signal) {
    let mut descendants = children(process);
    let mut at = 0;
    while let Some(&descendant) = descendants.get(at) {
        descendants.extend(children(descendant));
        at += 1;
    }
    for descendant in descendants {
        if let Some(pid) = i32::try_from(descendant).ok().and_then(Pid::from_raw) {
            // It may have ended.
            let _ = kill_process(pid, signal);
        }
    }
}

/// The children of a process, of whichever thread (`CONFIG_PROC_CHILDREN`).
fn children(process: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}
