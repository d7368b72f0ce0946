//! Runs one command and measures its time and memory.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use wait4::Wait4;

/// What speeds are reckoned by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Clock {
    /// Wall time: what people wait for.
    Wall,
    /// Processor time: comparable on a machine that has other work too. Fair to tools of one thread alone.
    Cpu,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Wall time, from start to end, in seconds.
    pub wall: f64,
    /// Time on a processor, its own and the kernel's for it, in seconds.
    pub cpu: f64,
    /// Most memory resident at a time, in bytes.
    pub peak_bytes: u64,
}

impl Run {
    /// The time by the clock that was asked for, in seconds.
    pub(super) fn seconds(&self, clock: Clock) -> f64 {
        match clock {
            Clock::Wall => self.wall,
            Clock::Cpu => self.cpu,
        }
    }

    /// The shorter times and the larger memory of two runs of the same command.
    pub(super) fn best(self, other: Self) -> Self {
        Self {
            wall: self.wall.min(other.wall),
            cpu: self.cpu.min(other.cpu),
            peak_bytes: self.peak_bytes.max(other.peak_bytes),
        }
    }
}

/// Runs the command to its end; what it prints goes to the null device.
pub(super) fn run(program: &str, arguments: &[String]) -> Result<Run> {
    let began = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let mut complaint = Vec::new();
    child.stderr.take().context("standard error is piped")?.read_to_end(&mut complaint)?;
    let used = child.wait4()?;
    let wall = began.elapsed().as_secs_f64();
    let cpu = (used.rusage.utime + used.rusage.stime).as_secs_f64();
    let complaint = String::from_utf8_lossy(&complaint);
    ensure!(
        used.status.success(),
        "{program} {}: {}: {}",
        arguments.join(" "),
        used.status,
        complaint.trim()
    );
    Ok(Run { wall, cpu, peak_bytes: used.rusage.maxrss })
}
