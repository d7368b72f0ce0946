//! A socket's calls to messages: what a program wrote in one go, in how many pieces.

use tcpwhy_wire::calls::{Call, Kind};

/// Writes further apart than this are different messages: no program needs that long between two parts of one, and
/// updates come every 10 ms or slower.
const TOGETHER: u64 = 5_000_000;

/// The segment size assumed where the kernel's is not known: Ethernet's without options.
const USUAL_MSS: u32 = 1460;

const MSG_PEEK: u64 = 0x2;
const MSG_MORE: u64 = 0x8000;
const IPPROTO_TCP: u64 = 6;
const TCP_CORK: u64 = 3;

/// What TCP was given at once: one call, or several that the program told TCP to join (`MSG_MORE`, `TCP_CORK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The first call's stack.
    pub(super) stack: u32,
    /// Which call it was.
    pub(super) kind: Kind,
    /// Bytes taken.
    pub(super) bytes: u64,
}

/// Pieces with neither a read nor a pause between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) pieces: Vec<Piece>,
    /// When its last call had returned, in ns since the epoch.
    end: i64,
    /// Ns from then until data came.
    pub(super) answered_after: Option<u64>,
}

impl Message {
    /// Whether Nagle's algorithm would hold its end: several pieces, of which the last is no full segment.
    pub(super) fn is_split(&self, mss: u32) -> bool {
        let mss = u64::from(if mss == 0 { USUAL_MSS } else { mss });
        self.pieces.len() > 1 && self.pieces.last().is_some_and(|last| !last.bytes.is_multiple_of(mss))
    }
}

/// Whether the call gives TCP bytes.
pub(super) fn writes(call: &Call) -> bool {
    use Kind::{Send, SendMmsg, SendMsg, SendTo, Sendfile, Splice, Write, Writev};
    matches!(call.kind, Send | SendTo | SendMsg | SendMmsg | Write | Writev | Sendfile | Splice)
        && call.result > 0
}

/// Whether the call took bytes from TCP.
pub(super) fn reads(call: &Call) -> bool {
    use Kind::{Read, Readv, Recv, RecvFrom, RecvMmsg, RecvMsg};
    matches!(call.kind, Read | Readv | Recv | RecvFrom | RecvMmsg | RecvMsg)
        && call.result > 0
        && call.flags & MSG_PEEK == 0
}

fn end(call: &Call) -> i64 {
    call.start.saturating_add_unsigned(call.took)
}

/// When a call took effect: a read at its end, since it may have waited.
pub(super) fn effect(call: &Call) -> i64 {
    if reads(call) { end(call) } else { call.start }
}

/// The messages of one socket, from its calls in the order of their [`effect`].
pub(super) fn messages(calls: &[&Call]) -> Vec<Message> {
    let mut gathering = Gathering::default();
    for call in calls {
        gathering.push(call);
    }
    gathering.flush(None);
    gathering.done
}

#[derive(Default)]
struct Gathering {
    done: Vec<Message>,
    current: Message,
    corked: bool,
    /// The next bytes belong to the last piece.
    joins: bool,
}

impl Gathering {
    fn push(&mut self, call: &Call) {
        if writes(call) {
            self.write(call);
        } else if reads(call) {
            self.flush(Some(end(call)));
        } else if call.kind == Kind::SetSockOpt
            && call.asked == IPPROTO_TCP << 32 | TCP_CORK
            && call.result == 0
        {
            self.corked = call.flags != 0;
            self.joins &= self.corked;
        }
    }

    fn write(&mut self, call: &Call) {
        if !self.current.pieces.is_empty() && call.start > self.current.end.saturating_add_unsigned(TOGETHER)
        {
            self.flush(None);
        }
        let bytes = call.result.unsigned_abs();
        match self.current.pieces.last_mut() {
            Some(last) if self.joins => last.bytes += bytes,
            _ => self.current.pieces.push(Piece { stack: call.stack, kind: call.kind, bytes }),
        }
        self.joins = self.corked || call.flags & MSG_MORE != 0;
        self.current.end = end(call);
    }

    /// The message is over; data came at `answer`, if that ended it.
    fn flush(&mut self, answer: Option<i64>) {
        let mut message = std::mem::take(&mut self.current);
        if message.pieces.is_empty() {
            return;
        }
        message.answered_after =
            answer.map(|answer| answer.saturating_sub(message.end).max(0).unsigned_abs());
        self.done.push(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn call(kind: Kind, at: i64, result: i64, flags: u64) -> Call {
        Call {
            kind,
            process: 1,
            thread: 1,
            start: at,
            took: 1000,
            socket: 7,
            asked: 0,
            result,
            fd: 3,
            stack: 1,
            flags,
        }
    }

    fn cork(at: i64, on: u64) -> Call {
        Call { asked: IPPROTO_TCP << 32 | TCP_CORK, ..call(Kind::SetSockOpt, at, 0, on) }
    }

    fn pieces(calls: &[Call]) -> Vec<Vec<u64>> {
        let calls: Vec<&Call> = calls.iter().collect();
        let bytes = |message: Message| message.pieces.iter().map(|piece| piece.bytes).collect();
        messages(&calls).into_iter().map(bytes).collect()
    }

    #[test]
    fn a_read_ends_a_message_and_so_does_a_pause() {
        let calls = [
            call(Kind::Send, 0, 10, 0),
            call(Kind::Send, MS, 20, 0),
            call(Kind::Read, 2 * MS, 5, 0),
            call(Kind::Write, 3 * MS, 30, 0),
            call(Kind::Write, 9 * MS, 40, 0),
        ];
        assert_eq!(pieces(&calls), [vec![10, 20], vec![30], vec![40]]);
        let first = &messages(&calls.iter().collect::<Vec<_>>())[0];
        assert_eq!(first.answered_after, Some(MS.unsigned_abs()));
        assert!(first.is_split(1460) && !first.is_split(20), "a full last segment is not held");
    }

    #[test]
    fn neither_a_failed_read_nor_a_peek_ends_a_message() {
        let calls = [
            call(Kind::Send, 0, 10, 0),
            call(Kind::Recv, 10, -11, 0),
            call(Kind::Recv, 20, 5, MSG_PEEK),
            call(Kind::Send, 30, 20, 0),
            call(Kind::Send, 40, -11, 0),
        ];
        assert_eq!(pieces(&calls), [vec![10, 20]]);
    }

    #[test]
    fn what_the_program_joins_is_one_piece() {
        let more =
            [call(Kind::Send, 0, 10, MSG_MORE), call(Kind::Send, 10, 20, 0), call(Kind::Send, 20, 30, 0)];
        assert_eq!(pieces(&more), [vec![30, 30]]);
        let corked = [
            cork(0, 1),
            call(Kind::Write, 10, 10, 0),
            call(Kind::Write, 20, 20, 0),
            cork(30, 0),
            call(Kind::Write, 40, 5, 0),
        ];
        assert_eq!(pieces(&corked), [vec![30, 5]]);
    }
}
