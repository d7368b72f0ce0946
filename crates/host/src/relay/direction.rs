//! One direction: what one side sends, passed on to the other.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::time::Instant;

use socket2::SockRef;
use tokio::net::TcpStream;

use super::account::{Passed, ms};

/// Bytes read at a time, and so at most kept back for a side that takes no more.
const AT_ONCE: usize = 64 << 10;

/// Where all directions read to: only what the other side does not take at once is kept, so that idle connections need no
/// memory.
#[derive(Debug)]
pub(super) struct Scratch(RefCell<Box<[u8]>>);

impl Scratch {
    pub(super) fn new() -> Self {
        Self(RefCell::new(vec![0; AT_ONCE].into()))
    }
}

/// Why a direction carries no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Its sender finished, and the receiver was told.
    Finished,
    /// Its sender reset the connection; all that it had sent before was passed on.
    SenderGone,
    /// Its receiver takes no more.
    ReceiverGone,
}

/// The relay's socket towards one side.
pub(super) struct Socket<'a> {
    stream: &'a TcpStream,
    /// Writing to it has failed. The kernel tells of a reset once; the next read gives the end of the stream instead, as if
    /// the other side had finished.
    is_broken: Cell<bool>,
}

impl<'a> Socket<'a> {
    pub(super) fn new(stream: &'a TcpStream) -> Self {
        Self { stream, is_broken: Cell::new(false) }
    }

    /// Reads what there is.
    fn read(&self, buffer: &mut [u8]) -> Result<Read, Over> {
        match self.stream.try_read(buffer) {
            Ok(0) if self.is_broken.get() => Err(Over::SenderGone),
            Ok(0) => Ok(Read::End),
            Ok(length) => Ok(Read::Some(length)),
            Err(error) if is_nothing(&error) => Ok(Read::Nothing),
            Err(_) => Err(Over::SenderGone),
        }
    }

    /// Writes as much as it takes, which may be nothing.
    fn write(&self, bytes: &[u8]) -> Result<usize, Over> {
        match self.stream.try_write(bytes) {
            Ok(written) => Ok(written),
            Err(error) if is_nothing(&error) => Ok(0),
            Err(_) => Err(self.broken()),
        }
    }

    /// Says that no more will be written.
    fn finish(&self) -> Result<(), Over> {
        SockRef::from(self.stream).shutdown(Shutdown::Write).map_err(|_| self.broken())
    }

    fn broken(&self) -> Over {
        self.is_broken.set(true);
        Over::ReceiverGone
    }
}

/// What one read gave.
enum Read {
    Nothing,
    Some(usize),
    End,
}

/// Whether there is just nothing to be done now.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// One direction and what it has carried.
pub(super) struct Direction<'a> {
    from: &'a Socket<'a>,
    to: &'a Socket<'a>,
    begun: Instant,
    last_read: Cell<Option<Instant>>,
    passed: RefCell<Passed>,
}

impl<'a> Direction<'a> {
    /// A direction of a connection that was accepted at `begun`.
    pub(super) fn new(from: &'a Socket<'a>, to: &'a Socket<'a>, begun: Instant) -> Self {
        Self { from, to, begun, last_read: Cell::new(None), passed: RefCell::default() }
    }

    /// What it has carried so far.
    pub(super) fn passed(&self) -> Passed {
        self.passed.borrow().clone()
    }

    /// Bytes that it has delivered so far.
    pub(super) fn delivered(&self) -> u64 {
        self.passed.borrow().bytes_written
    }

    /// Passes on what comes until there is no more.
    pub(super) async fn run(&self, scratch: &Scratch) -> Over {
        loop {
            // Somebody who sends without a pause must not keep the others waiting.
            tokio::task::coop::consume_budget().await;
            if self.from.stream.readable().await.is_err() {
                return Over::SenderGone;
            }
            let (since, rest) = match self.pass(scratch) {
                Ok(Moved::Nothing) => continue,
                Ok(Moved::Some(since, rest)) => (since, rest),
                Ok(Moved::End) => return Over::Finished,
                Err(over) => return over,
            };
            if !rest.is_empty()
                && let Err(over) = self.push(&rest).await
            {
                return over;
            }
            self.settle(since);
        }
    }

    /// Reads once, and writes what was read as far as the receiver takes it.
    fn pass(&self, scratch: &Scratch) -> Result<Moved, Over> {
        let mut buffer = scratch.0.borrow_mut();
        let length = match self.from.read(&mut buffer)? {
            Read::Nothing => return Ok(Moved::Nothing),
            Read::Some(length) => length,
            Read::End => {
                self.to.finish()?;
                self.passed.borrow_mut().finished = true;
                return Ok(Moved::End);
            }
        };
        let now = self.count_read(length);
        let written = self.to.write(&buffer[..length])?;
        self.count_write(written);
        Ok(Moved::Some(now, buffer[written..length].to_vec()))
    }

    /// Writes what the receiver did not take at once.
    async fn push(&self, mut rest: &[u8]) -> Result<(), Over> {
        let since = Instant::now();
        self.passed.borrow_mut().blocked += 1;
        let mut pushed = Ok(());
        while !rest.is_empty() && pushed.is_ok() {
            let _ = self.to.stream.writable().await;
            pushed = self.to.write(rest).map(|written| {
                self.count_write(written);
                rest = &rest[written..];
            });
        }
        self.passed.borrow_mut().blocked_ms += ms(since.elapsed());
        pushed
    }

    fn count_read(&self, length: usize) -> Instant {
        let now = Instant::now();
        let at = ms(now - self.begun);
        let gap = self.last_read.replace(Some(now)).map_or(0.0, |last| ms(now - last));
        let mut passed = self.passed.borrow_mut();
        passed.bytes += length as u64;
        passed.reads += 1;
        passed.first_ms = passed.first_ms.or(Some(at));
        passed.last_ms = Some(at);
        passed.longest_gap_ms = passed.longest_gap_ms.max(gap);
        now
    }

    fn count_write(&self, length: usize) {
        let mut passed = self.passed.borrow_mut();
        passed.writes += u64::from(length > 0);
        passed.bytes_written += length as u64;
    }

    /// What was read at `since` has been taken by the kernel.
    fn settle(&self, since: Instant) {
        let mut passed = self.passed.borrow_mut();
        passed.longest_hold_ms = passed.longest_hold_ms.max(ms(since.elapsed()));
    }
}

/// What one read came to.
enum Moved {
    /// There was nothing to read.
    Nothing,
    /// Something was read then, and this of it has not been taken yet.
    Some(Instant, Vec<u8>),
    /// The sender has finished, and the receiver was told.
    End,
}
