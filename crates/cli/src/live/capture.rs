//! The thread that takes packets off the ring, and what others may ask of it.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tcpwhy_diagnose::{Analyzer, CaptureInfo, Diagnosis};
use tcpwhy_host::ring::{Ring, Statistics};

use super::kept::Ends;
use super::open::Opened;
use super::sink::Sink;
use crate::stop::Stop;

/// Longest wait for a packet: how soon a question is answered when nothing arrives.
const PATIENCE: Duration = Duration::from_millis(50);
/// Packets between two looks at the clock and the questions: some tenths of a ms at full speed.
const BETWEEN_LOOKS: u32 = 256;
/// Time between two looks at the kernel's counters.
const SECOND: Duration = Duration::from_secs(1);

/// When a capture ends by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) duration: Option<Duration>,
    pub(super) packets: Option<u64>,
}

/// A capture so far.
pub(super) struct Progress {
    pub(super) analyzer: Analyzer,
    pub(super) info: CaptureInfo,
    pub(super) statistics: Statistics,
    /// Connections that were forgotten to bound the memory.
    pub(super) forgotten: u64,
}

impl Progress {
    /// The result, as if the capture ended here.
    pub(super) fn diagnosis(self) -> Diagnosis {
        self.analyzer.finish(self.info)
    }
}

/// What may be asked of a running capture, and where the answer goes.
enum Question {
    Progress(Sender<Progress>),
    Save(Ends, PathBuf, Sender<io::Result<u64>>),
}

/// A running capture.
pub(super) struct Running {
    /// What it is called: interface and filter.
    pub(super) interface: String,
    pub(super) filter: String,
    questions: Sender<Question>,
    ended: Receiver<()>,
    thread: JoinHandle<io::Result<Progress>>,
}

/// Starts to capture, until a limit is reached or `stop` is requested. `keep` says whether the latest packets are kept,
/// for [`Running::save`].
pub(super) fn start(mut opened: Opened, limits: Limits, keep: bool, stop: &Stop) -> Result<Running> {
    let (questions, asked) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let (interface, filter) = (opened.interface.clone(), opened.filter.clone());
    let sink = Sink::new(&mut opened, keep);
    let mut capture = Capture { ring: opened.ring, sink, limits, stop: stop.clone(), asked };
    let capture = move || {
        // Dropped at the end, which whoever waits for it notices.
        let _end: Sender<()> = end;
        let result = capture.run();
        let statistics = capture.ring.statistics().unwrap_or_default();
        let finished = capture.sink.finish(statistics);
        result.and(finished)
    };
    let thread = thread::Builder::new().name("capture".to_owned()).spawn(capture)?;
    Ok(Running { interface, filter, questions, ended, thread })
}

impl Running {
    /// The capture so far; `None` when it has ended.
    pub(super) fn progress(&self) -> Option<Progress> {
        let (answer, answered) = mpsc::channel();
        self.questions.send(Question::Progress(answer)).ok()?;
        answered.recv().ok()
    }

    /// Writes what is kept of a connection's packets into a new file; how many.
    pub(super) fn save(&self, connection: Ends, path: PathBuf) -> io::Result<u64> {
        let (answer, answered) = mpsc::channel();
        let ended = || io::Error::other("the capture has ended");
        self.questions.send(Question::Save(connection, path, answer)).map_err(|_| ended())?;
        answered.recv().map_err(|_| ended())?
    }

    /// Waits for the end, but no longer than `time`; whether it has come.
    pub(super) fn wait(&self, time: Duration) -> bool {
        !matches!(self.ended.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }

    /// The result, once the capture has ended.
    pub(super) fn end(self) -> Result<Diagnosis> {
        let ended = self.thread.join().map_err(|_| anyhow!("the capture broke off"))?;
        Ok(ended.with_context(|| format!("the capture on {} broke off", self.interface))?.diagnosis())
    }
}

/// The capture's own thread.
struct Capture {
    ring: Ring,
    sink: Sink,
    limits: Limits,
    stop: Stop,
    asked: Receiver<Question>,
}

impl Capture {
    fn run(&mut self) -> io::Result<()> {
        let start = Instant::now();
        let mut last_look = start;
        while !self.stop.requested() {
            let now = Instant::now();
            let left = self.limits.duration.map(|duration| duration.saturating_sub(now - start));
            if left.is_some_and(|left| left.is_zero()) || self.is_full() {
                break;
            }
            if now - last_look >= SECOND {
                last_look = now;
                let statistics = self.ring.statistics()?;
                self.sink.each_second(statistics)?;
            }
            self.answer();
            if !self.burst()? {
                self.ring.wait(PATIENCE.min(left.unwrap_or(PATIENCE)))?;
            }
        }
        Ok(())
    }

    /// Takes packets that are there; whether there are probably more.
    fn burst(&mut self) -> io::Result<bool> {
        for _ in 0..BETWEEN_LOOKS {
            if self.is_full() {
                return Ok(true);
            }
            let Some(packet) = self.ring.next(Duration::ZERO)? else {
                self.sink.flush();
                return Ok(false);
            };
            self.sink.take(&packet)?;
        }
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.limits.packets.is_some_and(|most| self.sink.frames >= most)
    }

    fn answer(&mut self) {
        while let Ok(question) = self.asked.try_recv() {
            // Who asked may be gone by now.
            match question {
                Question::Progress(answer) => {
                    self.sink.flush();
                    let _ = answer.send(self.sink.progress());
                }
                Question::Save(connection, path, answer) => {
                    let _ = answer.send(self.sink.save(&connection, &path));
                }
            }
        }
    }
}
