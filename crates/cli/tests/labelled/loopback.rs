//! The same programs, run and recorded here and now, where the machine allows it.

use tcpwhy_benches::labelled::{CASES, Place, record};
use tcpwhy_benches::recorder::Recorder;

use crate::verdict::faults;

/// The cases that are worth their seconds on every machine: the classic stall, its three cures, its look-alikes.
const LIVE: &[&str] = &[
    "split-request",
    "split-request-nodelay",
    "single-request",
    "thinking-server",
    "sometimes-thinking-server",
    "split-response",
];

/// One test for all of them: side by side, the programs would slow each other down.
#[test]
fn live_captures_are_diagnosed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if let Err(why) = Recorder::start("lo", 9, None, &folder.path().join("probe.pcap")) {
        announce(&format!("SKIPPED: live captures over loopback: {why:#}"));
        return;
    }
    let mut wrong = Vec::new();
    for case in CASES.iter().filter(|case| LIVE.contains(&case.name)) {
        let (truth, _) = record(case, &Place::loopback(), folder.path()).expect("the case can be recorded");
        wrong.extend(faults(&truth, folder.path()));
    }
    assert!(wrong.is_empty(), "\n  {}\n", wrong.join("\n  "));
}

/// Says it even where the test harness captures what tests print.
#[allow(clippy::print_stderr)]
fn announce(what: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{what}");
}
