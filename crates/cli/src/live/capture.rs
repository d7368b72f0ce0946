//! The thread that takes packets off the ring, and what others may ask of it.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow, ensure};
use tcpwhy_diagnose::{Analyzer, CaptureInfo, Diagnosis};
use tcpwhy_host::interface;
use tcpwhy_host::ring::{Ring, Statistics};
use tcpwhy_wire::calls::Holder;

use super::kept::Ends;
use super::names::Names;
use super::open::Opened;
use super::sink::Sink;
use crate::programs::Programs;
use crate::stop::Stop;

/// Longest wait for a packet: how soon a question is answered when nothing arrives.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long the thread sleeps where packets came and no more are there. While it waits for a packet, the kernel wakes it
/// for each, which at full speed takes both of them longer than the packet itself; the ring holds a hundred times as many
/// as come meanwhile.
const NAP: Duration = Duration::from_millis(1);
/// Packets between two looks at the clock and the questions: some tenths of a ms at full speed.
const BETWEEN_LOOKS: u32 = 256;
/// Time between two looks at the kernel's counters.
const SECOND: Duration = Duration::from_secs(1);

const GONE: &str = "the interface is gone";

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
    /// The programs at the ends of its connections.
    pub(super) names: Names,
    questions: Sender<Question>,
    ended: Receiver<()>,
    thread: JoinHandle<(Progress, Vec<Holder>, Result<()>)>,
}

/// Starts to capture, until a limit is reached or `stop` is requested. `keep` says whether the latest packets are kept,
/// for [`Running::save`].
pub(super) fn start(opened: Opened, limits: Limits, keep: bool, stop: &Stop) -> Result<Running> {
    let (questions, asked) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let Opened { ring, interface, filter, snaplen, writer, names, looking, .. } = opened;
    let name = match filter.as_str() {
        "" => format!("live on {interface}"),
        filter => format!("live on {interface}, {filter}"),
    };
    let sink = Sink::new(name, snaplen, writer, keep);
    let index = interface::index(&interface);
    let known = names.clone();
    let mut capture = Capture { ring, index, sink, limits, stop: stop.clone(), asked };
    let capture = move || {
        // Dropped at the end, which whoever waits for it notices.
        let _end: Sender<()> = end;
        let result = capture.run().and_then(|()| capture.drain());
        let statistics = capture.ring.statistics().unwrap_or_default();
        // Looks a last time.
        drop(looking);
        capture.sink.finish(statistics, &known, result)
    };
    let thread = thread::Builder::new().name("capture".to_owned()).spawn(capture)?;
    Ok(Running { interface, filter, names, questions, ended, thread })
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

    /// The result and the programs at the ends of its connections, once the capture has ended; and why it ended, if nobody had
    /// asked for it.
    pub(super) fn end(self) -> Result<(Diagnosis, Programs, Option<Error>)> {
        let ended = self.thread.join().map_err(|_| anyhow!("the capture broke off"))?;
        let (mut progress, holders, result) = ended;
        let reason = result.err();
        progress
            .info
            .notes
            .extend(reason.as_ref().map(|reason| format!("The capture broke off: {reason:#}.")));
        let reason =
            reason.map(|reason| reason.context(format!("the capture on {} broke off", self.interface)));
        let mut programs = Programs::default();
        programs.learn(holders);
        Ok((progress.diagnosis(), programs, reason))
    }
}

/// The capture's own thread.
struct Capture {
    ring: Ring,
    /// The interface's index, which `any` has none of.
    index: Option<u32>,
    sink: Sink,
    limits: Limits,
    stop: Stop,
    asked: Receiver<Question>,
}

impl Capture {
    fn run(&mut self) -> Result<()> {
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
                ensure!(!self.is_gone(), GONE);
            }
            self.answer();
            match self.burst()? {
                BETWEEN_LOOKS => {}
                0 => self.wait(PATIENCE.min(left.unwrap_or(PATIENCE)))?,
                _ => thread::sleep(NAP),
            }
        }
        Ok(())
    }

    /// Takes packets that are there, up to [`BETWEEN_LOOKS`]; how many.
    fn burst(&mut self) -> Result<u32> {
        for taken in 0..BETWEEN_LOOKS {
            let packet = if self.is_full() { None } else { self.ring.next(Duration::ZERO)? };
            let Some(packet) = packet else {
                self.sink.flush();
                return Ok(taken);
            };
            self.sink.take(&packet)?;
        }
        Ok(BETWEEN_LOOKS)
    }

    /// Waits for a packet. An interface that goes down may come up again, and the socket with it; one that is gone does
    /// not. The kernel tells the socket only that it went down, which it does first: it may be gone a moment later.
    fn wait(&mut self, time: Duration) -> Result<()> {
        match self.ring.wait(time) {
            Err(error) if error.kind() == io::ErrorKind::NetworkDown => {
                ensure!(!self.is_gone(), GONE);
                self.sink.downs += 1;
            }
            waited => drop(waited?),
        }
        Ok(())
    }

    /// Whether nothing has the interface's index any more: its name may change.
    fn is_gone(&self) -> bool {
        self.index.is_some_and(|index| interface::name(index).is_none())
    }

    /// Takes what was in the ring when the end came: no more than it holds, since more may come all the time.
    fn drain(&mut self) -> Result<()> {
        for _ in 0..self.ring.capacity().div_ceil(BETWEEN_LOOKS as usize) {
            if self.burst()? < BETWEEN_LOOKS {
                break;
            }
        }
        Ok(())
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
