//! What these tests need of the machine.

use std::io::Write;
use std::path::Path;

/// Whether namespaces and TUN devices can be made here; says so where not.
pub(crate) fn able() -> bool {
    let able = rustix::process::geteuid().is_root() && Path::new("/dev/net/tun").exists();
    if !able {
        // Straight to standard error, which shows it; eprintln! is kept from a passing test.
        let test = std::thread::current().name().unwrap_or("this test").to_owned();
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: it wants root and /dev/net/tun");
    }
    able
}
