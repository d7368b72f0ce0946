//! tcpwhy held against programs and runtimes that nobody here wrote, each with its known story. What is true of them,
//! their clients' own clocks tell.
#![cfg(target_os = "linux")]

#[path = "../../../lab/tests/attempts/mod.rs"]
mod attempts;
mod clean;
mod client;
mod program;
#[path = "../command/run.rs"]
mod run;
mod split;
mod watched;

use std::io::Write;
use std::time::Duration;

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether this process may see packets and touch other programs' sockets; else the test says that it was left out.
fn has_rights(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skipped(test, "only root may see packets, and touch any process");
    }
    is_root
}

/// Straight to standard error: `eprintln!` is kept from a passing test.
fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}

/// Says a fault instead of ending the test, which may be tried again.
macro_rules! holds {
    ($condition:expr, $($why:tt)*) => {
        if !$condition {
            return Err(format!($($why)*));
        }
    };
}
use holds;
