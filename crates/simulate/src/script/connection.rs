//! One connection of a script's program, and what its calls bring.

use super::host::Reply;
use crate::tcp::{Endpoint, State};

/// Most bytes that Linux takes in one call (`MAX_RW_COUNT`).
const MOST_BYTES: u64 = 0x7fff_f000;
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint,
    pub(super) accepted: bool,
    /// Whether its peer has sent anything after its SYN.
    pub(super) under_way: bool,
    /// What ended it, until a call has told the program.
    pub(super) error: Option<&'static str>,
    /// A write waits: it goes on when the send buffer has some room again, not any.
    pub(super) write_waits: bool,
    /// The program has shut reading down: it reads what there is, and then the end.
    pub(super) reading_shut: bool,
}

impl Connection {
    pub(super) fn read(&mut self, now: u64, room: u64, peek: bool, waits: bool) -> Reply {
        let readable = self.endpoint.readable();
        if readable > 0 {
            let taken = if peek { room.min(readable) } else { self.endpoint.handle_read(now, room) };
            return Reply::Returned(i64::try_from(taken).unwrap_or(i64::MAX), None);
        }
        match self.error.take() {
            Some(error) => Reply::Failed(error),
            None if self.endpoint.is_at_end() || self.reading_shut => Reply::DONE,
            None if waits => Reply::Waits(0),
            None => Reply::Failed("EAGAIN"),
        }
    }

    pub(super) fn write(&mut self, now: u64, len: u64, more: bool, waits: bool) -> Reply {
        if let Some(error) = self.error.take() {
            return Reply::Failed(error);
        }
        let may_write =
            matches!(self.endpoint.state(), State::Established | State::CloseWait | State::SynReceived);
        if self.endpoint.state() == State::SynSent {
            return if waits { Reply::Waits(0) } else { Reply::Failed("EAGAIN") };
        }
        if !may_write {
            return Reply::Failed("EPIPE");
        }
        if self.write_waits && self.endpoint.writable() == 0 {
            return Reply::Waits(0);
        }
        let len = len.min(MOST_BYTES);
        let taken = self.endpoint.handle_write(now, len, more);
        self.write_waits = waits && taken < len;
        match taken {
            _ if self.write_waits => Reply::Waits(taken),
            0 if len > 0 => Reply::Failed("EAGAIN"),
            _ => returned_bytes(taken),
        }
    }

    /// Linux's bits: POLLIN 1, POLLOUT 4, POLLERR 8, POLLHUP 16, POLLRDHUP 0x2000.
    pub(super) fn poll(&self, events: i64, waits: bool) -> Reply {
        let mut found = 0;
        let state = self.endpoint.state();
        let ended = self.endpoint.is_at_end();
        found |= if self.endpoint.readable() > 0 || ended { 0x1 } else { 0 };
        found |= if ended { 0x2000 } else { 0 };
        found |= if self.endpoint.writable() > 0 || state == State::Closed { 0x4 } else { 0 };
        found &= events;
        found |= if self.error.is_some() { 0x8 } else { 0 };
        found |= if state == State::Closed { 0x10 } else { 0 };
        match found {
            0 if waits => Reply::Waits(0),
            0 => Reply::Returned(0, Some(0)),
            _ => Reply::Returned(1, Some(found)),
        }
    }
}

fn returned_bytes(bytes: u64) -> Reply {
    Reply::Returned(i64::try_from(bytes).unwrap_or(i64::MAX), None)
}
