//! Those who capture: tcpwhy, tcpdump, dumpcap. What they saw, by their own account, and what it took.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::NEAR;

/// Bytes kept of each packet: what `tcpwhy live` keeps.
const SNAPLEN: &str = "256";
/// Memory for packets that wait, as much as `tcpwhy live` has: in KiB for tcpdump, in MiB for dumpcap.
const TCPDUMP_BUFFER: &str = "32768";
const DUMPCAP_BUFFER: &str = "32";
/// Time to read what is left in the buffer.
const DRAINING: Duration = Duration::from_millis(500);

/// A program that captures.
pub(super) struct Captor {
    pub(super) name: &'static str,
    command: Vec<String>,
    /// What it says on standard error once it listens.
    listens: &'static str,
    counted: fn(&str, &str) -> Result<(u64, u64)>,
}

/// What somebody saw of a run.
pub(super) struct Seen {
    pub(super) packets: u64,
    pub(super) dropped: u64,
    /// Processor time of the process, without what the kernel did on the sender's processor.
    pub(super) cpu: Duration,
    /// Of that, what the thread named `capture` took.
    pub(super) capture_thread: Option<Duration>,
}

/// tcpwhy first, then the others that are installed.
pub(super) fn all(tcpwhy: &Path) -> Vec<Captor> {
    let captor = |name, listens, counted, command: &[&str]| {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        Captor { name, command, listens, counted }
    };
    let own = tcpwhy.to_string_lossy();
    let live = [&own, "live", "-i", NEAR, "--snaplen", SNAPLEN, "--format", "json"];
    let tcpdump = ["tcpdump", "-n", "-i", NEAR, "-s", SNAPLEN, "-B", TCPDUMP_BUFFER, "-w", "/dev/null"];
    let dumpcap = ["dumpcap", "-q", "-i", NEAR, "-s", SNAPLEN, "-B", DUMPCAP_BUFFER, "-w", "/dev/null"];
    let mut all = vec![captor("tcpwhy live", "listening on", counted_by_tcpwhy, &live)];
    let others = [
        captor("tcpdump", "listening on", counted_by_tcpdump, &tcpdump),
        captor("dumpcap", "File:", counted_by_dumpcap, &dumpcap),
    ];
    let is_installed = |captor: &Captor| Command::new(captor.name).arg("--version").output().is_ok();
    all.extend(others.into_iter().filter(is_installed));
    all
}

/// A captor at work.
pub(super) struct Running<'a> {
    captor: &'a Captor,
    child: Child,
    said: BufReader<std::process::ChildStderr>,
}

impl Captor {
    /// Starts it, and waits until it listens.
    pub(super) fn start(&self) -> Result<Running<'_>> {
        let (program, args) = self.command.split_first().context("a command")?;
        let mut command = Command::new(program);
        let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(child.stderr.take().context("standard error")?);
        let mut line = String::new();
        while !line.contains(self.listens) {
            line.clear();
            if said.read_line(&mut line)? == 0 {
                bail!("{} does not listen", self.name);
            }
        }
        Ok(Running { captor: self, child, said })
    }
}

impl Running<'_> {
    /// Lets it read the rest, and ends it.
    pub(super) fn end(mut self) -> Result<Seen> {
        thread::sleep(DRAINING);
        let threads = threads(self.child.id())?;
        kill_process(Pid::from_child(&self.child), Signal::INT)?;
        let (mut out, mut said) = (String::new(), String::new());
        self.child.stdout.take().context("standard output")?.read_to_string(&mut out)?;
        self.said.read_to_string(&mut said)?;
        self.child.wait()?;
        let (packets, dropped) = (self.captor.counted)(&out, &said)?;
        let capture_thread = threads.iter().find(|(name, _)| name == "capture").map(|(_, time)| *time);
        Ok(Seen { packets, dropped, cpu: threads.iter().map(|(_, time)| *time).sum(), capture_thread })
    }
}

/// Names of a process's threads, and their processor time so far (`/proc/PID/task/TID/schedstat`, ns).
fn threads(pid: u32) -> Result<Vec<(String, Duration)>> {
    let mut threads = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.path();
        let name = fs::read_to_string(task.join("comm"))?.trim_end().to_owned();
        let times = fs::read_to_string(task.join("schedstat"))?;
        let time = times.split(' ').next().and_then(|ns| ns.parse().ok()).context("schedstat")?;
        threads.push((name, Duration::from_nanos(time)));
    }
    Ok(threads)
}

fn counted_by_tcpwhy(out: &str, _said: &str) -> Result<(u64, u64)> {
    let report: Value = serde_json::from_str(out)?;
    let capture = &report["captures"][0];
    let notes = capture["notes"].as_array().context("notes")?;
    let drops = notes
        .iter()
        .filter_map(Value::as_str)
        .find_map(|note| note.strip_prefix("The kernel dropped ")?.split(' ').next()?.parse().ok());
    Ok((capture["packets"].as_u64().context("packets")?, drops.unwrap_or(0)))
}

/// `1981788 packets captured`, `0 packets dropped by kernel`
fn counted_by_tcpdump(_out: &str, said: &str) -> Result<(u64, u64)> {
    let number = |of: &str| {
        let line = said.lines().find(|line| line.contains(of)).with_context(|| format!("{of}: {said}"))?;
        line.split(' ').next().and_then(|number| number.parse().ok()).with_context(|| line.to_owned())
    };
    Ok((number("captured")?, number("dropped by kernel")?))
}

/// `Packets received/dropped on interface 'near': 1981788/0 (pcap:0/dumpcap:0/flushed:0/ps_ifdrop:0) (100.0%)`
fn counted_by_dumpcap(_out: &str, said: &str) -> Result<(u64, u64)> {
    let counts = said.rsplit_once("received/dropped on interface").and_then(|(_, rest)| {
        let (received, dropped) = rest.split_once(": ")?.1.split(' ').next()?.split_once('/')?;
        Some((received.parse().ok()?, dropped.parse().ok()?))
    });
    counts.with_context(|| format!("dumpcap said: {said}"))
}
