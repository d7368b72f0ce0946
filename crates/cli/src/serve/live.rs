//! Capturing from the page: `tcpwhy live` as a child, which writes into the folder, and then an analysis like any other.
//!
//! A child because it gives up its rights once it captures, and this process would lose its own with them.

use std::env;
use std::fs;
use std::io::{self, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::answer::{Outcome, Problem};
use super::{Shared, jobs};

/// How long a capture goes on at most: whoever forgets it shall find room on the disk.
const LONGEST: &str = "1h";
/// Packets at most, of 256 bytes: 2.5 GB.
const MOST_PACKETS: &str = "10000000";
/// How often somebody looks whether it has ended, when the server ends.
const LOOK: Duration = Duration::from_millis(20);
/// How long it may take then.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Bytes of what it says that are kept: a sentence.
const MOST_SAID: u64 = 4_096;
/// Where the kernel lists interfaces.
const INTERFACES: &str = "/sys/class/net";

/// What is to be captured.
#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    interface: String,
    filter: String,
}

/// The one capture that may go on.
#[derive(Default)]
pub(super) struct Live {
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    running: Option<Running>,
    /// Why the last one failed.
    failed: Option<String>,
}

struct Running {
    child: Child,
    interface: String,
    filter: String,
    capture: String,
    since: Instant,
    ending: bool,
}

/// As the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct View {
    /// What can be captured on; empty where nothing can be.
    interfaces: Vec<String>,
    running: Option<Shown>,
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Shown {
    interface: String,
    filter: String,
    capture: String,
    seconds: u64,
    /// Bytes in the file so far.
    bytes: u64,
    ending: bool,
}

impl Live {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn view(&self) -> View {
        let now = self.now();
        let shown = |running: &Running| Shown {
            interface: running.interface.clone(),
            filter: running.filter.clone(),
            capture: running.capture.clone(),
            seconds: running.since.elapsed().as_secs(),
            bytes: fs::metadata(&running.capture).map_or(0, |metadata| metadata.len()),
            ending: running.ending,
        };
        View { interfaces: interfaces(), running: now.running.as_ref().map(shown), error: now.failed.clone() }
    }

    /// Ends the capture; its analysis follows.
    pub(super) fn end(&self) -> Outcome<()> {
        let mut now = self.now();
        let none = || Problem::new(StatusCode::NOT_FOUND, "Nothing is being captured.");
        let running = now.running.as_mut().ok_or_else(none)?;
        running.ending = true;
        // The pipe is closed, which it takes for the end.
        running.child.stdin = None;
        Ok(())
    }

    /// Ends the capture with the server: the file stays, whole.
    pub(super) fn end_now(&self) {
        if self.end().is_err() {
            return;
        }
        let end = Instant::now() + LAST_WORDS;
        while self.now().running.is_some() && Instant::now() < end {
            thread::sleep(LOOK);
        }
    }
}

fn interfaces() -> Vec<String> {
    let all = fs::read_dir(INTERFACES).into_iter().flatten().flatten();
    let mut names: Vec<_> = all.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    if !names.is_empty() {
        names.push("any".to_owned());
    }
    names
}

/// Begins to capture.
pub(super) fn begin(shared: &Arc<Shared>, wanted: &Wanted) -> Outcome<()> {
    let mut now = shared.live.now();
    if now.running.is_some() {
        return Err(Problem::new(StatusCode::CONFLICT, "A capture is going on: stop that first."));
    }
    if !interfaces().contains(&wanted.interface) {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "There is no such interface."));
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let name = wanted.interface.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let capture = format!("live-{name}-{since}.pcapng");
    let mut child = spawn(wanted, &capture, shared.mode).map_err(Problem::here)?;
    let stderr = child.stderr.take();
    now.failed = None;
    now.running = Some(Running {
        child,
        interface: wanted.interface.clone(),
        filter: wanted.filter.clone(),
        capture: capture.clone(),
        since: Instant::now(),
        ending: false,
    });
    let (shared, handle) = (Arc::clone(shared), Handle::current());
    thread::spawn(move || {
        let _in = handle.enter();
        attend(&shared, stderr, &capture);
    });
    Ok(())
}

fn spawn(wanted: &Wanted, capture: &str, mode: u32) -> io::Result<Child> {
    Command::new(env::current_exe()?)
        .args([
            "live",
            "--lines",
            "--until-input-ends",
            "--format",
            "json",
            "--duration",
            LONGEST,
            "--count",
            MOST_PACKETS,
        ])
        .args(["--interface", &wanted.interface, "--write", capture, "--mode", &format!("{mode:o}")])
        .args(["--", &wanted.filter])
        // It ends when the other end of this pipe is closed, whatever this process dies of.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
}

/// Waits for the end of a capture, and has it analysed.
fn attend(shared: &Arc<Shared>, stderr: Option<ChildStderr>, capture: &str) {
    let said = stderr.map_or_else(String::new, |stderr| heard(stderr).unwrap_or_default());
    let mut now = shared.live.now();
    // It has ended: nobody else holds its standard error.
    let status = now.running.take().map(|mut running| running.child.wait());
    let is_well = status.is_some_and(|status| status.is_ok_and(|status| status.success()));
    let outcome =
        if is_well { jobs::start(shared, capture).map(drop) } else { Err(Problem::here(last_line(&said))) };
    now.failed = outcome.err().map(|problem| problem.why);
}

/// What the child says until its end, or the beginning of it.
pub(super) fn heard(mut stderr: ChildStderr) -> io::Result<String> {
    let mut said = Vec::new();
    (&mut stderr).take(MOST_SAID).read_to_end(&mut said)?;
    io::copy(&mut stderr, &mut io::sink())?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// What it said last, without its name.
fn last_line(said: &str) -> &str {
    let last = said.lines().last().unwrap_or("the capture broke off");
    last.strip_prefix("tcpwhy: ").unwrap_or(last)
}
