//! Runs one command and measures its time and memory.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use wait4::Wait4;

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Wall time, from start to end, in seconds.
    pub seconds: f64,
    /// Most memory resident at a time, in bytes.
    pub peak_bytes: u64,
}

impl Run {
    /// The shorter time and the larger memory of two runs of the same command.
    pub(super) fn best(self, other: Self) -> Self {
        Self { seconds: self.seconds.min(other.seconds), peak_bytes: self.peak_bytes.max(other.peak_bytes) }
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
    let seconds = began.elapsed().as_secs_f64();
    let complaint = String::from_utf8_lossy(&complaint);
    ensure!(
        used.status.success(),
        "{program} {}: {}: {}",
        arguments.join(" "),
        used.status,
        complaint.trim()
    );
    Ok(Run { seconds, peak_bytes: used.rusage.maxrss })
}
