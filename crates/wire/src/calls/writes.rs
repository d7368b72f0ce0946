//! What programs wrote, when, and where in the stream it lies: the part of a recording that packets cannot tell.

use std::collections::BTreeMap;

use super::{Call, Kind, Socket as Known};
use crate::Socket;

/// `setsockopt` levels and options, and the flag of the `send` calls, of Linux.
const IPPROTO_TCP: u64 = 6;
const TCP_NODELAY: u64 = 1;
const TCP_CORK: u64 = 3;
const MSG_MORE: u64 = 0x8000;
/// `EAGAIN`.
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

/// Turns calls to writes, one after the other. Only sockets whose addresses and whose beginning are recorded have any.
#[derive(Clone, Debug, Default)]
pub struct Writes(BTreeMap<u64, Stream>);

impl Writes {
    /// For the calls on these sockets.
    pub fn new(sockets: &[Known]) -> Self {
        let mut streams: BTreeMap<u64, Stream> = BTreeMap::new();
        for known in sockets {
            let ends = known.local.zip(known.peer);
            let stream = streams.entry(known.cookie).or_default();
            stream.ends = stream.ends.or_else(|| ends.map(|(from, to)| (from.into(), to.into())));
        }
        Self(streams)
    }

    /// Takes the next call, in the order of their beginnings, and returns what it wrote.
    pub fn take(&mut self, call: &Call) -> Option<Write> {
        self.0.get_mut(&call.socket)?.take(call)
    }
}

/// One socket's calls.
#[derive(Clone, Debug, Default)]
struct Stream {
    ends: Option<(Socket, Socket)>,
    /// It was connected or accepted in this recording.
    is_whole: bool,
    is_corked: bool,
    /// Since when a write waits for room, ns.
    refused: Option<i64>,
    written: u64,
}

impl Stream {
    fn take(&mut self, call: &Call) -> Option<Write> {
        match call.kind {
            Kind::Connect | Kind::Accept => self.is_whole = true,
            Kind::SetSockOpt if call.result == 0 && self.pulls_cork(call) => {
                return self.wrote(call, call.start, 0);
            }
            Kind::Shutdown | Kind::Close => return self.wrote(call, call.start, 0),
            kind if kind.writes() => return self.write(call),
            _ => {}
        }
        None
    }

    /// Whether setting this option lets go what was corked.
    fn pulls_cork(&mut self, call: &Call) -> bool {
        let is = |option| call.asked == IPPROTO_TCP << 32 | option;
        if is(TCP_CORK) {
            self.is_corked = call.flags != 0;
        }
        // Linux sends what is corked also when Nagle's algorithm is switched off (`tcp_sock_set_nodelay`).
        is(TCP_CORK) && call.flags == 0 || is(TCP_NODELAY) && call.flags != 0
    }

    fn write(&mut self, call: &Call) -> Option<Write> {
        if call.result == WOULD_BLOCK {
            self.refused.get_or_insert(call.start);
        }
        let bytes = u64::try_from(call.result).ok().filter(|bytes| *bytes > 0)?;
        let at = self.refused.take().unwrap_or(call.start);
        if bytes < call.asked {
            self.refused = Some(at);
        }
        self.wrote(call, at, bytes)
    }

    fn wrote(&mut self, call: &Call, at: i64, bytes: u64) -> Option<Write> {
        let start = self.written;
        self.written = start.saturating_add(bytes);
        let (from, to) = self.ends.filter(|_| self.is_whole)?;
        let is_more = call.kind.has_flags() && call.flags & MSG_MORE != 0;
        let is_corked = bytes > 0 && (is_more || self.is_corked);
        let done = call.start.saturating_add_unsigned(call.took);
        Some(Write { from, to, at, done, start, end: self.written, is_corked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE: u64 = 7;

    fn call(kind: Kind, start: i64, asked: u64, result: i64, flags: u64) -> Call {
        let (process, thread, fd, stack) = (1, 1, 3, 0);
        Call { kind, process, thread, start, took: 2, socket: COOKIE, asked, result, fd, stack, flags }
    }

    fn cork(start: i64, value: u64) -> Call {
        call(Kind::SetSockOpt, start, IPPROTO_TCP << 32 | TCP_CORK, 0, value)
    }

    /// `start..end` of each write, since when it waited, and whether it was corked.
    fn writes(calls: &[Call]) -> Vec<(u64, u64, i64, bool)> {
        let [local, peer] = ["127.0.0.1:1", "127.0.0.1:2"].map(|end| end.parse().ok());
        let known = Known { cookie: COOKIE, local, peer, nodelay: false, mss: 1448, written: 0 };
        let mut writes = Writes::new(&[known]);
        let calls = [&[call(Kind::Connect, 0, 0, 0, 0)], calls].concat();
        let taken = calls.iter().filter_map(|call| writes.take(call));
        taken.map(|write| (write.start, write.end, write.at, write.is_corked)).collect()
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
        let nodelay = call(Kind::SetSockOpt, 40, IPPROTO_TCP << 32 | TCP_NODELAY, 0, 1);
        assert_eq!(writes(&[cork(5, 1), nodelay]), [(0, 0, 40, false)]);
    }

    #[test]
    fn flags_of_other_calls_are_none() {
        assert_eq!(writes(&[call(Kind::Splice, 10, 10, 10, MSG_MORE)]), [(0, 10, 10, false)]);
    }

    #[test]
    fn a_socket_whose_beginning_is_not_recorded_has_none() {
        let known = Known { cookie: COOKIE, local: None, peer: None, nodelay: false, mss: 0, written: 0 };
        let sent = call(Kind::Send, 10, 100, 100, 0);
        assert_eq!(Writes::new(&[known]).take(&sent), None);
        assert_eq!(Writes::default().take(&sent), None);
    }
}
