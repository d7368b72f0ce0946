//! An analysis in a process of its own, with a bound to its memory: a capture that takes more, or that breaks it, ends that
//! process and not the server.
//!
//! The process writes to its standard output: a line of JSON ([`Word`]) for how far it has come, again and again, then one
//! for how it ended, and behind that the report's page.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{self, Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use axum::http::StatusCode;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use tcpwhy_report::number;

use super::answer::{Outcome, Problem};
use super::store::Report;
use super::{analysis, live};
use crate::progress::Seen;
use crate::stop::Stop;

/// Said where an analysis ended and should not have.
pub(super) const BROKEN: &str = "tcpwhy itself failed on this capture: please report it with the capture.";

/// How often the process says how far it has come; how long a request to stop may go unheard.
const TELLS: Duration = Duration::from_millis(50);
/// Bytes of a line: those of a report that are not its page.
const LONGEST_LINE: u64 = 64 << 20;
/// How Rust's allocator ends a process that gets no more memory.
const NO_MEMORY: &str = "memory allocation of";

/// What the process says.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// How far it has come: see [`Seen`].
    Progress { size: u64, bytes: u64, packets: u64, passes: u64 },
    /// The report is made, and its page, of so many bytes, follows.
    Made { report: Report, page: u64 },
    /// There is no report: the answer's status, and why.
    Failed { status: u16, why: String },
}

/// Has a capture of the folder analysed.
pub(super) fn make(capture: &str, memory_limit: u64, stop: &Stop, seen: &Seen) -> Outcome<Report> {
    let mut child = Running(spawn(capture, memory_limit).map_err(Problem::here)?);
    let (Some(stdout), Some(stderr)) = (child.0.stdout.take(), child.0.stderr.take()) else {
        return Err(Problem::here(BROKEN));
    };
    // Read meanwhile: it might wait for somebody to do so.
    let heard = thread::spawn(move || live::heard(stderr).unwrap_or_default());
    let ended = listen(BufReader::new(stdout), stop, seen);
    if stop.requested() {
        return Err(Problem::here("cancelled"));
    }
    if let Ok(Some(outcome)) = ended {
        return outcome;
    }
    let status = child.0.wait().map_err(Problem::here)?;
    let said = heard.join().unwrap_or_default();
    let killed = status.signal() == Some(Signal::KILL.as_raw());
    let why = if said.contains(NO_MEMORY) {
        format!(
            "Its analysis needs more memory than the {} that --memory-limit leaves it.",
            number::bytes(memory_limit)
        )
    } else if killed {
        "Its analysis was killed: this machine may have too little memory for it.".to_owned()
    } else {
        BROKEN.to_owned()
    };
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, why))
}

/// The process, which does not outlive whoever waits for it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(capture: &str, memory_limit: u64) -> io::Result<Child> {
    Command::new(itself()?)
        .arg("serve")
        .arg(format!("--memory-limit={memory_limit}"))
        .arg(format!("--report-of={capture}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// This program, also after another version of it was installed.
fn itself() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { env::current_exe() }
}

/// Passes on how far it has come, until it says how it ended; nothing where it does not, or is to stop.
fn listen(mut from: BufReader<ChildStdout>, stop: &Stop, seen: &Seen) -> io::Result<Option<Outcome<Report>>> {
    loop {
        let mut line = String::new();
        if stop.requested() || from.by_ref().take(LONGEST_LINE).read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match serde_json::from_str(&line)? {
            Word::Progress { size, bytes, packets, passes } => {
                let all = [
                    (&seen.size, size),
                    (&seen.bytes, bytes),
                    (&seen.packets, packets),
                    (&seen.passes, passes),
                ];
                all.into_iter().for_each(|(seen, now)| seen.store(now, Ordering::Relaxed));
            }
            Word::Made { mut report, page } => {
                from.take(page).read_to_end(&mut report.page)?;
                return Ok((report.page.len() as u64 == page).then_some(Ok(report)));
            }
            Word::Failed { status, why } => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                return Ok(Some(Err(Problem::new(status, why))));
            }
        }
    }
}

/// Is that process.
pub(super) fn run(capture: &str, memory_limit: u64) -> Result<ExitCode> {
    bound(memory_limit);
    let seen = Arc::new(Seen::default());
    let stop = Stop::watched(Arc::clone(&seen));
    // Whoever speaks has it: progress does not come into the middle of a report.
    let speaking = Arc::new(Mutex::new(()));
    let (told, turn) = (Arc::clone(&seen), Arc::clone(&speaking));
    thread::spawn(move || {
        loop {
            thread::sleep(TELLS);
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody listens: the server is gone.
            if say(&progress(&told), &[]).is_err() {
                process::exit(i32::from(crate::TROUBLE));
            }
        }
    });
    let made = analysis::make(capture, &stop);
    let _turn = speaking.lock().unwrap_or_else(PoisonError::into_inner);
    say(&progress(&seen), &[])?;
    match made {
        Ok(mut report) => {
            let page = std::mem::take(&mut report.page);
            say(&Word::Made { report, page: page.len() as u64 }, &page)?;
        }
        Err(Problem { status, why }) => say(&Word::Failed { status: status.as_u16(), why }, &[])?,
    }
    Ok(ExitCode::SUCCESS)
}

fn progress(seen: &Seen) -> Word {
    let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Seen { size, bytes, packets, passes } = seen;
    Word::Progress { size: now(size), bytes: now(bytes), packets: now(packets), passes: now(passes) }
}

fn say(word: &Word, page: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, word)?;
    out.write_all(b"\n")?;
    out.write_all(page)?;
    out.flush()
}

/// Bounds the memory that this process writes to; and where the machine has too little, this process is the first to go.
fn bound(memory_limit: u64) {
    // Linux counts what is written to here, and not the address space, which threads reserve by the gigabyte.
    let resource = if cfg!(target_os = "linux") { Resource::Data } else { Resource::As };
    let Rlimit { current, maximum } = getrlimit(resource);
    let least = [Some(memory_limit), current, maximum].into_iter().flatten().min();
    // Less than is allowed is always allowed.
    let _ = setrlimit(resource, Rlimit { current: least, maximum: least });
    if cfg!(target_os = "linux") {
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    }
}
