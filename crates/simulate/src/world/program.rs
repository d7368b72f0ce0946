//! What a program does with its socket, as a list of steps.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::tcp::{Endpoint, SocketOption, State, nanos};

/// A program. It reads whatever arrives, as fast as [`Reader`] says, and takes its steps one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Program {
    /// Options set before the connection is opened.
    pub options: Vec<SocketOption>,
    /// How it reads.
    pub reader: Reader,
    /// What it does, in this order.
    pub steps: Vec<Step>,
}

/// How a program reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Reader {
    /// How long after data arrives it reads first.
    pub wakes_after: Duration,
    /// It reads at most this many bytes at a time; zero means all there is.
    pub at_most: u64,
    /// It does something else for so long …
    pub pause: Duration,
    /// … after each so many bytes; zero means after each read.
    pub pause_every: u64,
    /// It reads nothing before this time after its start.
    pub not_before: Duration,
}

/// One step: wait for something, then a while, then act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Step {
    /// What it waits for, once the step before is done.
    pub when: When,
    /// And how long then.
    #[serde(default)]
    pub delay: Duration,
    /// What it does.
    pub act: Act,
}

/// What a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// The end of the step before (the connection being open, for the first one).
    Next,
    /// A time since the connection was open at this end; later if the step before took longer.
    At(Duration),
    /// The program has read so many bytes in all.
    Read(u64),
    /// The peer has acknowledged everything (what a program sees as an empty send queue).
    Drained,
    /// The peer has finished.
    EndOfFile,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Writes so many bytes; blocks while the send buffer is full.
    Write(u64),
    /// The same with `MSG_MORE`.
    WriteMore(u64),
    /// Sets an option.
    Set(SocketOption),
    /// Says that it will write no more.
    Shutdown,
    /// Closes.
    Close,
}

/// A program's own log: the truth about what it waited for. Times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Each write: when it began, when the last byte was taken, and the end of the stream after it, in bytes.
    pub writes: Vec<Written>,
    /// Each read: when, and how many bytes were read in all.
    pub reads: Vec<(u64, u64)>,
    /// When the connection was open.
    pub opened: Option<u64>,
}

/// One write of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// When it began, in ns.
    pub begun: u64,
    /// When the send buffer had taken all, in ns.
    pub done: u64,
    /// Bytes written in all, with it.
    pub end: u64,
    /// More was to follow (`MSG_MORE`).
    pub more: bool,
}

impl Log {
    /// When the program had read so many bytes, in ns.
    pub fn read_by(&self, bytes: u64) -> Option<u64> {
        let index = self.reads.partition_point(|(_, read)| *read < bytes);
        self.reads.get(index).map(|(time, _)| *time)
    }
}

/// A program that runs.
#[derive(Debug)]
pub(super) struct Running {
    steps: VecDeque<Step>,
    reader: Reader,
    pub(super) log: Log,
    read: u64,
    written: u64,
    /// When the step before was done, in ns.
    idle_since: u64,
    /// When the first step's condition was met, in ns.
    met_at: Option<u64>,
    /// A write that blocks: when it began, and the bytes that are left.
    blocked: Option<(u64, u64, bool)>,
    next_read: Option<u64>,
    not_before: u64,
    /// It does something else once it has read so many bytes.
    pause_at: u64,
}

impl Running {
    pub(super) fn new(program: &Program, start: u64) -> Self {
        Self {
            steps: program.steps.iter().copied().collect(),
            reader: program.reader,
            log: Log::default(),
            read: 0,
            written: 0,
            idle_since: start,
            met_at: None,
            blocked: None,
            next_read: None,
            not_before: start + nanos(program.reader.not_before),
            pause_at: program.reader.pause_every,
        }
    }

    /// Whether it is inside a write that the full send buffer blocks.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// Whether all steps are taken.
    pub(super) fn is_done(&self) -> bool {
        self.steps.is_empty() && self.blocked.is_none()
    }

    /// When [`Self::run`] is to be called next, in ns, unless the endpoint changes before.
    pub(super) fn poll_at(&self) -> Option<u64> {
        let step = self.steps.front().zip(self.met_at).filter(|_| self.blocked.is_none());
        let step = step.map(|(step, met)| met + nanos(step.delay));
        let timed = match self.steps.front() {
            Some(Step { when: When::At(time), .. }) if self.met_at.is_none() && self.blocked.is_none() => {
                self.log.opened.map(|opened| (opened + nanos(*time)).max(self.idle_since))
            }
            _ => None,
        };
        [step, timed, self.next_read].into_iter().flatten().min()
    }

    /// Does what is due.
    pub(super) fn run(&mut self, now: u64, socket: &mut Endpoint) {
        let is_open =
            !matches!(socket.state(), State::Closed | State::Listen | State::SynSent | State::SynReceived);
        if is_open && self.log.opened.is_none() {
            self.log.opened = Some(now);
            self.idle_since = now;
        }
        if self.log.opened.is_none() {
            return;
        }
        self.read(now, socket);
        while self.step(now, socket) {
            self.read(now, socket);
        }
    }

    fn read(&mut self, now: u64, socket: &mut Endpoint) {
        while socket.readable() > 0 {
            let due =
                *self.next_read.get_or_insert((now + nanos(self.reader.wakes_after)).max(self.not_before));
            if due > now {
                return;
            }
            self.next_read = None;
            let most = if self.reader.at_most == 0 { u64::MAX } else { self.reader.at_most };
            self.read += socket.handle_read(now, most);
            self.log.reads.push((now, self.read));
            if !self.reader.pause.is_zero() && self.read >= self.pause_at {
                self.pause_at += self.reader.pause_every;
                self.next_read = Some(now + nanos(self.reader.pause));
            }
        }
        if self.next_read.is_some_and(|due| due <= now) {
            self.next_read = None;
        }
    }

    /// Goes on with a blocked write, or takes one step that is due. Whether it got anywhere.
    fn step(&mut self, now: u64, socket: &mut Endpoint) -> bool {
        if let Some((begun, left, more)) = self.blocked {
            return socket.writable() > 0 && self.write(now, begun, left, more, socket);
        }
        let Some(step) = self.steps.front().copied() else { return false };
        if self.met_at.is_none() && self.is_met(step.when, now, socket) {
            self.met_at = Some(now);
        }
        let Some(met) = self.met_at.filter(|met| met + nanos(step.delay) <= now) else { return false };
        let _ = met;
        self.met_at = None;
        self.steps.pop_front();
        self.idle_since = now;
        match step.act {
            Act::Write(len) => drop(self.write(now, now, len, false, socket)),
            Act::WriteMore(len) => drop(self.write(now, now, len, true, socket)),
            Act::Set(option) => socket.set(now, option),
            Act::Shutdown => socket.handle_shutdown(now),
            Act::Close => socket.handle_close(now),
        }
        true
    }

    fn write(&mut self, now: u64, begun: u64, len: u64, more: bool, socket: &mut Endpoint) -> bool {
        let taken = socket.handle_write(now, len, more);
        self.written += taken;
        if taken < len && socket.state() != State::Closed {
            self.blocked = Some((begun, len - taken, more));
            return taken > 0;
        }
        self.blocked = None;
        self.idle_since = now;
        self.log.writes.push(Written { begun, done: now, end: self.written, more });
        true
    }

    fn is_met(&self, when: When, now: u64, socket: &Endpoint) -> bool {
        match when {
            When::Next => true,
            When::At(time) => self.log.opened.is_some_and(|opened| opened + nanos(time) <= now),
            When::Read(bytes) => self.read >= bytes || (socket.is_at_end() && socket.readable() == 0),
            When::Drained => {
                let info = socket.info();
                info.unacknowledged == 0 && info.unsent == 0
            }
            When::EndOfFile => socket.is_at_end() && socket.readable() == 0,
        }
    }
}
