//! Tests of what needs a network of its own.

use std::io::{self, Write};
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, unshare};

/// Runs `test` on a thread with a loopback interface of its own; without the rights to, says so.
pub(crate) fn on_own_loopback(name: &str, test: impl FnOnce() + Send + 'static) {
    let ran = thread::spawn(move || {
        let apart = unshare(CloneFlags::CLONE_NEWNET).is_ok();
        if apart {
            ip("link set lo up");
            test();
        }
        apart
    });
    if !ran.join().expect("no panic in the test's thread") {
        // Straight to standard error, which shows it; eprintln! is kept from a passing test.
        let _ = writeln!(io::stderr(), "SKIPPED {name}: only root may make a network namespace");
    }
}

/// Runs `ip` with these words, in the calling thread's network namespace.
pub(crate) fn ip(args: &str) {
    let status = Command::new("ip").args(args.split(' ')).status().expect("the ip command");
    assert!(status.success(), "ip {args}");
}
