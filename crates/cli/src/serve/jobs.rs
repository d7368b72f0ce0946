//! Analyses that run, wait, or have ended.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::answer::{Outcome, Problem};
use super::{Shared, folder, worker};
use crate::progress::Seen;
use crate::stop::Stop;

/// Analyses at once. Each is a process that may keep a core busy, and takes about a kilobyte for each connection of its
/// capture.
const MOST_AT_ONCE: usize = 2;
/// Analyses that wait for those.
const MOST_WAITING: usize = 100;
/// Analyses that have ended and are still told of.
const REMEMBERED: usize = 50;
/// How long analyses may take to stop at the end: they look after each piece of the file.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// All of them.
pub(super) struct Jobs {
    known: Mutex<Known>,
    room: Semaphore,
}

#[derive(Default)]
struct Known {
    /// The number of the next one.
    next: u64,
    jobs: VecDeque<Job>,
}

struct Job {
    id: u64,
    capture: String,
    state: State,
    seen: Arc<Seen>,
    stop: Stop,
}

/// What a job shares with whoever does it.
struct Begun {
    id: u64,
    stop: Stop,
    seen: Arc<Seen>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    /// With the report's number.
    Done(i64),
    /// Why.
    Failed(String),
    Cancelled,
}

/// An analysis as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct View {
    id: u64,
    capture: String,
    state: &'static str,
    /// Bytes of the file that were read, compressed where it is; in the present pass.
    bytes: u64,
    /// Bytes that it has.
    size: u64,
    packets: u64,
    /// How often it has been begun to read: predictions and joined connections need a second look.
    pass: u64,
    report: Option<i64>,
    error: Option<String>,
}

impl Jobs {
    pub(super) fn new() -> Self {
        Self { known: Mutex::default(), room: Semaphore::new(MOST_AT_ONCE) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing is left half done under this lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is known, the latest first.
    pub(super) fn list(&self) -> Vec<View> {
        self.known().jobs.iter().rev().map(Job::view).collect()
    }

    /// Asks an analysis to stop.
    pub(super) fn cancel(&self, id: u64) -> Outcome<()> {
        let mut known = self.known();
        let job = known.jobs.iter_mut().find(|job| job.id == id);
        let job = job.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "There is no such analysis."))?;
        job.stop.request();
        if job.state == State::Waiting {
            job.state = State::Cancelled;
        }
        Ok(())
    }

    /// Stops all of them, and waits for it.
    pub(super) async fn end(&self) {
        for job in &mut self.known().jobs {
            job.stop.request();
        }
        let all = u32::try_from(MOST_AT_ONCE).unwrap_or(u32::MAX);
        let _ = timeout(LAST_WORDS, self.room.acquire_many(all)).await;
    }

    /// A place for one more; its number and what it shares with others, or the number of one that does the same.
    fn add(&self, capture: &str) -> Outcome<Result<Begun, u64>> {
        let mut known = self.known();
        let goes_on =
            |job: &&Job| matches!(job.state, State::Waiting | State::Running) && !job.stop.requested();
        if let Some(same) = known.jobs.iter().filter(goes_on).find(|job| job.capture == capture) {
            return Ok(Err(same.id));
        }
        if known.jobs.iter().filter(|job| job.state == State::Waiting).count() >= MOST_WAITING {
            let why = format!("{MOST_WAITING} captures wait to be analysed: try again when some are done.");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, why));
        }
        known.forget_the_oldest();
        let id = known.next;
        known.next += 1;
        let seen = Arc::new(Seen::default());
        let stop = Stop::default();
        known.jobs.push_back(Job {
            id,
            capture: capture.to_owned(),
            state: State::Waiting,
            seen: Arc::clone(&seen),
            stop: stop.clone(),
        });
        Ok(Ok(Begun { id, stop, seen }))
    }

    fn set(&self, id: u64, state: State) {
        if let Some(job) = self.known().jobs.iter_mut().find(|job| job.id == id) {
            job.state = state;
        }
    }
}

impl Known {
    fn forget_the_oldest(&mut self) {
        let ended = |job: &Job| !matches!(job.state, State::Waiting | State::Running);
        while self.jobs.iter().filter(|job| ended(job)).count() >= REMEMBERED {
            let Some(oldest) = self.jobs.iter().position(ended) else { return };
            self.jobs.remove(oldest);
        }
    }
}

/// Begins to analyse a capture of the folder; the number of the analysis.
pub(super) fn start(shared: &Arc<Shared>, capture: &str) -> Outcome<u64> {
    folder::open(capture)?;
    let Begun { id, stop, seen } = match shared.jobs.add(capture)? {
        Ok(new) => new,
        Err(same) => return Ok(same),
    };
    let (shared, capture) = (Arc::clone(shared), capture.to_owned());
    tokio::spawn(async move {
        let Ok(_place) = shared.jobs.room.acquire().await else { return };
        if stop.requested() {
            shared.jobs.set(id, State::Cancelled);
            return;
        }
        shared.jobs.set(id, State::Running);
        let of = Arc::clone(&shared);
        let ended = spawn_blocking(move || analyse(&of, &capture, &stop, &seen)).await;
        let state = ended.unwrap_or_else(|_| State::Failed(worker::BROKEN.to_owned()));
        shared.jobs.set(id, state);
    });
    Ok(id)
}

/// From the capture to a report that is kept.
fn analyse(shared: &Shared, capture: &str, stop: &Stop, seen: &Seen) -> State {
    let made = worker::make(capture, shared.memory_limit, stop, seen);
    if stop.requested() {
        return State::Cancelled;
    }
    let kept = made.and_then(|report| shared.store().insert(&report));
    kept.map_or_else(|problem| State::Failed(problem.why), State::Done)
}

impl Job {
    fn view(&self) -> View {
        let Self { id, capture, state, seen, .. } = self;
        let (name, report, error) = match state {
            State::Waiting => ("waiting", None, None),
            State::Running => ("running", None, None),
            State::Done(report) => ("done", Some(*report), None),
            State::Failed(why) => ("failed", None, Some(why.clone())),
            State::Cancelled => ("cancelled", None, None),
        };
        View {
            id: *id,
            capture: capture.clone(),
            state: name,
            bytes: seen.bytes.load(Ordering::Relaxed),
            size: seen.size.load(Ordering::Relaxed),
            packets: seen.packets.load(Ordering::Relaxed),
            pass: seen.passes.load(Ordering::Relaxed),
            report,
            error,
        }
    }
}
