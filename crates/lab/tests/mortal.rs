//! Children of a host die with the process that started them, however that ends.

mod rights;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rights::able;
use tcpwhy_lab::place::{Path, Wire, join};
use tcpwhy_lab::recording::{Setup, record};
use tcpwhy_simulate::link::Ends;

/// Names the processes of one test in their environment. Set, it makes [`hold_children`] do its work.
const MARK: &str = "TCPWHY_LAB_TEST_MARK";
/// The kernel starts a process, and takes a PID namespace down, in milliseconds; a busy machine may need longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Processes whose environment has the mark.
fn marked(mark: &str) -> usize {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let folders = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path().join("environ")));
    let environments = folders.filter_map(|path| fs::read(path).ok());
    environments.filter(|all| all.split(|byte| *byte == 0).any(|entry| entry == wanted)).count()
}

/// Not a test of its own: [`a_killed_process_leaves_no_children`] runs it in a process that it kills. It starts a
/// shell on a host of the lab, which starts a child of its own, and waits.
#[test]
fn hold_children() {
    if std::env::var_os(MARK).is_none() {
        return;
    }
    let wire = Wire::new(Ends::default());
    let setup = Setup { path: Path::Link(wire), seed: 1, snaplen: 64, middle: false };
    let _ = record(&setup, |place| {
        let mut command = place.client.command("sh");
        command.args(["-c", "sleep 600 & echo started; wait"]);
        join(place.client.spawn(move || command.status().context("cannot start a shell")))
    });
}

#[test]
fn a_killed_process_leaves_no_children() {
    if !able() {
        return;
    }
    let mark = std::process::id().to_string();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold_children", "--nocapture"])
        .env(MARK, &mark)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("started")), "the shell never came up");
    // The holder, `unshare`, the shell and its `sleep`, which has no environment while it becomes one.
    wait_for(&mark, 4);
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_for(&mark, 0);
}

fn wait_for(mark: &str, processes: usize) {
    let since = Instant::now();
    while marked(mark) != processes {
        assert!(since.elapsed() < PATIENCE, "{} processes instead of {processes}", marked(mark));
        std::thread::yield_now();
    }
}
