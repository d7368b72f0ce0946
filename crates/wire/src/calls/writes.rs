//! What programs wrote, when, and where in the stream it lies: the part of a recording that packets cannot tell.

use std::collections::BTreeMap;

use super::{Call, Kind, Sending};
use crate::Socket;

/// `EAGAIN`, of Linux.
const WOULD_BLOCK: i64 = -11;

/// Bytes that a program handed to a TCP connection by one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The socket's own address.
    pub from: Socket,
    /// The other side's.
    pub to: Socket,
    /// Since when the program had them to write, ns since the epoch: the beginning of the call, or of an earlier one that
    /// the kernel had no room for.
    pub at: i64,
    /// When the kernel had taken all of them, ns.
    pub done: i64,
    /// Where they lie in the stream: bytes before the first.
    pub start: u64,
    /// … and up to the last. No bytes where a program only pulls a cork.
    pub end: u64,
    /// TCP is to send no segment of them that is not full (`TCP_CORK`, `MSG_MORE`). Otherwise these and all before may leave.
    pub is_corked: bool,
}

/// Turns calls to writes, one after the other. Only sockets whose beginning is recorded have any.
#[derive(Clone, Debug, Default)]
pub struct Writes(BTreeMap<u64, Stream>);

impl Writes {
    /// Takes the next call, in the order of their beginnings, on a socket with this address and this peer, and returns what
    /// it wrote.
    pub fn take(&mut self, call: &Call, ends: Option<(Socket, Socket)>) -> Option<Write> {
        match call.kind {
            Kind::Connect | Kind::Accept => drop(self.0.insert(call.socket, Stream::default())),
            Kind::SetSockOpt => return self.0.get_mut(&call.socket)?.set(call, ends),
            Kind::Shutdown => return self.0.get_mut(&call.socket)?.wrote(call, ends, call.start, 0),
            Kind::Close => return self.0.remove(&call.socket)?.wrote(call, ends, call.start, 0),
            kind if kind.writes() => return self.0.get_mut(&call.socket)?.write(call, ends),
            _ => {}
        }
        None
    }
}

type Ends = Option<(Socket, Socket)>;

/// One socket's calls.
#[derive(Clone, Debug, Default)]
struct Stream {
    is_corked: bool,
    /// Since when a write waits for room, ns.
    refused: Option<i64>,
    written: u64,
}

impl Stream {
    fn set(&mut self, call: &Call, ends: Ends) -> Option<Write> {
        let (option, is_on) = call.switched()?;
        if option == Sending::Cork {
            self.is_corked = is_on;
        }
        // Linux sends what is corked also when Nagle's algorithm is switched off (`tcp_sock_set_nodelay`).
        let pulls = is_on == (option == Sending::Nodelay);
        if pulls { self.wrote(call, ends, call.start, 0) } else { None }
    }

    fn write(&mut self, call: &Call, ends: Ends) -> Option<Write> {
        if call.result == WOULD_BLOCK {
            self.refused.get_or_insert(call.start);
        }
        let bytes = call.wrote()?;
        let at = self.refused.take().unwrap_or(call.start);
        if bytes < call.asked {
            self.refused = Some(at);
        }
        self.wrote(call, ends, at, bytes)
    }

    fn wrote(&mut self, call: &Call, ends: Ends, at: i64, bytes: u64) -> Option<Write> {
        let start = self.written;
        self.written = start.saturating_add(bytes);
        let (from, to) = ends?;
        let is_corked = bytes > 0 && (call.says_more() || self.is_corked);
        Some(Write { from, to, at, done: call.end(), start, end: self.written, is_corked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE: u64 = 7;
    const MSG_MORE: u64 = 0x8000;

    fn call(kind: Kind, start: i64, asked: u64, result: i64, flags: u64) -> Call {
        let (process, thread, fd, stack) = (1, 1, 3, 0);
        Call { kind, process, thread, start, took: 2, socket: COOKIE, asked, result, fd, stack, flags }
    }

    fn cork(start: i64, value: u64) -> Call {
        call(Kind::SetSockOpt, start, Sending::Cork.asked(), 0, value)
    }

    /// `start..end` of each write, since when it waited, and whether it was corked.
    fn writes(calls: &[Call]) -> Vec<(u64, u64, i64, bool)> {
        let mut writes = Writes::default();
        let calls = [&[call(Kind::Connect, 0, 0, 0, 0)], calls].concat();
        let taken = calls.iter().filter_map(|call| writes.take(call, Some(ends())));
        taken.map(|write| (write.start, write.end, write.at, write.is_corked)).collect()
    }

    fn ends() -> (Socket, Socket) {
        (Socket { port: 1, ..Socket::default() }, Socket { port: 2, ..Socket::default() })
    }

    #[test]
    fn each_write_lies_behind_the_one_before() {
        let calls = [call(Kind::Send, 10, 100, 100, 0), call(Kind::Write, 20, 50, 50, 0)];
        assert_eq!(writes(&calls), [(0, 100, 10, false), (100, 150, 20, false)]);
    }

    #[test]
    fn what_found_no_room_waits_since_it_was_first_refused() {
        let calls = [
            call(Kind::Send, 10, 100, 60, 0),
            call(Kind::Send, 20, 40, WOULD_BLOCK, 0),
            call(Kind::Send, 30, 40, 40, 0),
            call(Kind::Send, 50, 5, 5, 0),
        ];
        assert_eq!(writes(&calls), [(0, 60, 10, false), (60, 100, 10, false), (100, 105, 50, false)]);
    }

    #[test]
    fn a_cork_is_told_and_its_end() {
        let more = [call(Kind::Send, 10, 10, 10, MSG_MORE), call(Kind::Send, 30, 5, 5, 0)];
        assert_eq!(writes(&more), [(0, 10, 10, true), (10, 15, 30, false)]);
        let corked = [cork(5, 1), call(Kind::Write, 10, 10, 10, 0), cork(40, 0)];
        assert_eq!(writes(&corked), [(0, 10, 10, true), (10, 10, 40, false)]);
        let nodelay = call(Kind::SetSockOpt, 40, Sending::Nodelay.asked(), 0, 1);
        assert_eq!(writes(&[cork(5, 1), nodelay]), [(0, 0, 40, false)]);
    }

    #[test]
    fn flags_of_other_calls_are_none() {
        assert_eq!(writes(&[call(Kind::Splice, 10, 10, 10, MSG_MORE)]), [(0, 10, 10, false)]);
    }

    #[test]
    fn a_socket_whose_beginning_is_not_recorded_has_none() {
        let sent = call(Kind::Send, 10, 100, 100, 0);
        assert_eq!(Writes::default().take(&sent, Some(ends())), None);
    }

    #[test]
    fn a_socket_without_addresses_has_none_and_its_bytes_count() {
        let mut writes = Writes::default();
        assert_eq!(writes.take(&call(Kind::Accept, 0, 0, 0, 0), None), None);
        assert_eq!(writes.take(&call(Kind::Send, 10, 100, 100, 0), None), None);
        let write = writes.take(&call(Kind::Send, 20, 50, 50, 0), Some(ends()));
        assert_eq!(write.map(|write| (write.start, write.end)), Some((100, 150)));
    }
}
