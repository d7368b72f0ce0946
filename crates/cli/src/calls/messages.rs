//! A socket's calls to messages: what a program wrote in one go, in how many pieces.

use tcpwhy_wire::calls::{Call, Kind, Sending};

/// Writes further apart than this are different messages: no program needs that long between two parts of one, and
/// updates come every 10 ms or slower.
const TOGETHER: u64 = 5_000_000;

/// The segment size assumed where the kernel's is not known: Ethernet's without options.
const USUAL_MSS: u32 = 1460;

/// Lines told apart that write one message.
const MOST_PARTS: usize = 16;

/// Pieces whose sizes are kept.
pub(super) const MOST_SIZES: usize = 6;

/// What a program wrote with neither a read nor a pause in between, in pieces. A piece is what TCP was given at once: one
/// call, or several that the program told TCP to join (`MSG_MORE`, `TCP_CORK`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// The calls it consists of: which, from where (the first call's stack of a piece), and how often, in the order of
    /// their first ones.
    pub(super) parts: Vec<(u32, Kind, usize)>,
    pub(super) pieces: usize,
    /// Bytes of the first pieces.
    pub(super) sizes: Vec<u64>,
    /// Bytes of the last piece.
    last: u64,
    /// When its last call had returned, in ns since the epoch.
    end: i64,
    /// Ns from then until data came.
    pub(super) answered_after: Option<u64>,
}

impl Message {
    /// Whether Nagle's algorithm would hold its end: several pieces, of which the last is no full segment.
    pub(super) fn is_split(&self, mss: u32) -> bool {
        let mss = u64::from(if mss == 0 { USUAL_MSS } else { mss });
        self.pieces > 1 && !self.last.is_multiple_of(mss)
    }

    fn begin_piece(&mut self, call: &Call, bytes: u64) {
        self.pieces += 1;
        self.last = bytes;
        if let Some((.., count)) =
            self.parts.iter_mut().find(|part| (part.0, part.1) == (call.stack, call.kind))
        {
            *count += 1;
        } else if self.parts.len() < MOST_PARTS {
            self.parts.push((call.stack, call.kind, 1));
        }
        if self.sizes.len() < MOST_SIZES {
            self.sizes.push(bytes);
        }
    }

    fn continue_piece(&mut self, bytes: u64) {
        self.last = self.last.saturating_add(bytes);
        if self.pieces == self.sizes.len()
            && let Some(size) = self.sizes.last_mut()
        {
            *size = self.last;
        }
    }
}

/// When a call took effect: a read at its end, since it may have waited.
pub(super) fn effect(call: &Call) -> i64 {
    if call.reads() { call.end() } else { call.start }
}

/// Puts the messages of one socket together, from its calls in the order of their [`effect`].
#[derive(Debug, Default)]
pub(super) struct Gathering {
    current: Message,
    corked: bool,
    /// The next bytes belong to the last piece.
    joins: bool,
}

impl Gathering {
    /// Takes the next call; the message that it ends, if it ends one.
    pub(super) fn push(&mut self, call: &Call) -> Option<Message> {
        if let Some(bytes) = call.wrote() {
            return self.write(call, bytes);
        }
        if call.reads() {
            return self.flush(Some(call.end()));
        }
        if let Some((Sending::Cork, is_on)) = call.switched() {
            self.corked = is_on;
            self.joins &= is_on;
        }
        None
    }

    /// The last message.
    pub(super) fn finish(&mut self) -> Option<Message> {
        self.flush(None)
    }

    fn write(&mut self, call: &Call, bytes: u64) -> Option<Message> {
        let is_apart = call.start > self.current.end.saturating_add_unsigned(TOGETHER);
        let before = if is_apart { self.flush(None) } else { None };
        if self.joins && self.current.pieces > 0 {
            self.current.continue_piece(bytes);
        } else {
            self.current.begin_piece(call, bytes);
        }
        self.joins = self.corked || call.says_more();
        self.current.end = call.end();
        before
    }

    /// The message is over; data came at `answer`, if that ended it.
    fn flush(&mut self, answer: Option<i64>) -> Option<Message> {
        let mut message = std::mem::take(&mut self.current);
        message.answered_after =
            answer.map(|answer| answer.saturating_sub(message.end).max(0).unsigned_abs());
        (message.pieces > 0).then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const MSG_PEEK: u64 = 0x2;
    const MSG_MORE: u64 = 0x8000;

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
        Call { asked: Sending::Cork.asked(), ..call(Kind::SetSockOpt, at, 0, on) }
    }

    fn messages(calls: &[Call]) -> Vec<Message> {
        let mut gathering = Gathering::default();
        let mut all: Vec<_> = calls.iter().filter_map(|call| gathering.push(call)).collect();
        all.extend(gathering.finish());
        all
    }

    fn pieces(calls: &[Call]) -> Vec<Vec<u64>> {
        messages(calls).into_iter().map(|message| message.sizes).collect()
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
        let first = &messages(&calls)[0];
        assert_eq!(first.answered_after, Some(MS.unsigned_abs()));
        assert!(first.is_split(1460) && !first.is_split(20), "a full last segment is not held");
    }

    #[test]
    fn a_message_of_many_pieces_takes_no_more_memory() {
        let calls: Vec<_> = (0..100_000)
            .map(|at| Call { stack: at % 100, ..call(Kind::Send, i64::from(at) * 1000, 10, 0) })
            .collect();
        let [message] = &messages(&calls)[..] else { panic!("one message") };
        assert_eq!(
            (message.pieces, message.parts.len(), message.sizes.len()),
            (100_000, MOST_PARTS, MOST_SIZES)
        );
        assert_eq!(message.parts[0], (0, Kind::Send, 1000));
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
