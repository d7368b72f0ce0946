//! The command: started, sent the signals that come, waited for.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::link::signals::from_terminal;

/// The process id of no command.
const NOBODY: i32 = 0;

/// Runs it to its end. Signals that would end this process, and those that programs give a meaning, are the command's.
pub(super) fn run(command: &mut Command) -> Result<ExitStatus> {
    let target = Arc::new(AtomicI32::new(NOBODY));
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2])
        .context("cannot listen to signals")?;
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    target.store(child.id().cast_signed(), Ordering::SeqCst);
    let handle = signals.handle();
    let to = Arc::clone(&target);
    let forwarder = std::thread::spawn(move || {
        for signal in signals.forever() {
            forward(signal, to.load(Ordering::SeqCst));
        }
    });
    let status = child.wait();
    // Its number may soon be another's.
    target.store(NOBODY, Ordering::SeqCst);
    handle.close();
    // It has nothing to return, and a panic there would have been printed.
    let _ = forwarder.join();
    Ok(status?)
}

fn forward(number: i32, process: i32) {
    // The terminal has sent it to the command too.
    if matches!(number, SIGINT | SIGQUIT) && from_terminal() {
        return;
    }
    if let (Some(signal), Some(process)) = (Signal::from_named_raw(number), Pid::from_raw(process)) {
        // It may have ended by itself.
        let _ = kill_process(process, signal);
    }
}

/// What a shell would say of it: 128 + n after signal n.
pub(super) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}
