//! When programs wrote, where a recording of their calls tells it. Packets show when bytes left; what lies between is
//! TCP's doing if they had been written, and the program's if not.

use std::collections::VecDeque;

use tcpwhy_wire::calls::Write;

use super::connection::{Connection, PROMPT};
use super::fact::End;
use super::half::NEVER;
use super::sending::Rare;

/// Writes kept that have not left yet. A send buffer of Linux holds 4 MiB at most by default (`tcp_wmem`), 1 KiB each
/// then; where a program writes smaller pieces into a closed window, packets alone tell the rest.
const MOST_WAITING: usize = 4_096;

/// A direction's writes that have not left yet.
#[derive(Clone, Debug)]
pub(crate) struct Writes {
    /// Where the stream begins in sequence space, unwrapped.
    origin: u64,
    /// Bytes written so far.
    written: u64,
    waiting: VecDeque<Waiting>,
    /// Of the segment at hand.
    present: Option<Present>,
    /// Some bytes were written by calls that are not here: nothing is known of those that follow.
    is_broken: bool,
}

/// A write that has not left yet, or not all of it. Times in ns, positions in bytes of the stream.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: i64,
    done: i64,
    end: u64,
    /// From when on it may leave in a segment that is not full.
    free: i64,
}

/// A cork that has not been pulled.
const CORKED: i64 = i64::MAX;

/// When the data of a segment was written, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    /// The first byte that had not left before: since when TCP was free to send it.
    pub(crate) first: i64,
    /// The last byte, in the same way.
    pub(crate) last: i64,
    /// A cork had not been pulled when it left.
    pub(crate) is_corked: bool,
    /// Until when the call that wrote the first byte lasted.
    pub(crate) done: i64,
}

impl Writes {
    /// Bytes on the heap.
    pub(crate) fn heap(&self) -> usize {
        self.waiting.capacity() * size_of::<Waiting>()
    }

    fn new(origin: u64) -> Self {
        Self { origin, written: 0, waiting: VecDeque::new(), present: None, is_broken: false }
    }

    fn add(&mut self, write: &Write) {
        self.is_broken |= write.start != self.written || self.waiting.len() >= MOST_WAITING;
        if self.is_broken {
            self.waiting.clear();
            return;
        }
        let &Write { at, done, end, is_corked, .. } = write;
        if !is_corked {
            let corked = self.waiting.iter_mut().rev().take_while(|waiting| waiting.free == CORKED);
            corked.for_each(|waiting| waiting.free = at.max(waiting.at));
        }
        if end > self.written {
            self.written = end;
            self.waiting.push_back(Waiting { at, done, end, free: if is_corked { CORKED } else { at } });
        }
    }

    /// The bytes from `seq` to `end`, unwrapped, leave at `now` in a segment that is `full` or not.
    fn leave(&mut self, seq: u64, end: u64, now: i64, full: bool) {
        self.present = None;
        let (start, end) = (seq.saturating_sub(self.origin), end.saturating_sub(self.origin));
        while self.waiting.front().is_some_and(|write| write.end <= start) {
            self.waiting.pop_front();
        }
        let last = self.waiting.iter().find(|write| write.end >= end);
        let Some((first, last)) = self.waiting.front().zip(last) else {
            // Bytes that no recorded call wrote.
            self.is_broken |= !self.waiting.is_empty() || start >= self.written;
            return;
        };
        // A cork holds no full segment, but that one is not full before its last byte is written.
        let freed = |write: &Waiting| match full {
            true => last.at.min(write.free),
            false if write.free > now => write.at,
            false => write.free,
        };
        self.present = Some(Present {
            first: first.at.max(freed(first).min(now)),
            last: last.at.max(freed(last).min(now)),
            is_corked: !full && first.free > now,
            done: first.done,
        });
    }
}

impl Connection {
    /// The program at `end` writes.
    pub(crate) fn note_write(&mut self, end: End, write: &Write) {
        // Only where the stream's first byte is known, from a handshake.
        let half = &self.halves[end];
        let is_first = write.start == 0 && half.started && half.bytes == 0 && self.syn_ack_at != NEVER;
        let first = half.next;
        let writes = &mut self.rare.get_or_insert_default().writes[end];
        if writes.is_none() && is_first {
            *writes = Some(Writes::new(first));
        }
        if let Some(writes) = writes {
            writes.add(write);
        }
    }

    /// Finds out when the bytes from `seq` to `end` had been written, which leave at `now`.
    #[inline]
    pub(crate) fn take_writes(&mut self, from: End, seq: u64, end: u64, now: i64, full: bool) {
        let sent = self.halves[from].next;
        if let Some(Rare { writes, .. }) = self.rare.as_deref_mut()
            && let Some(writes) = &mut writes[from]
        {
            writes.leave(seq.max(sent), end, now, full);
        }
    }

    /// When the segment at hand of `end` had been written, if that is known.
    #[inline]
    pub(crate) fn present(&self, end: End) -> Option<Present> {
        self.rare.as_ref()?.writes[end].as_ref()?.present
    }

    /// Whether the segment of `end` that leaves now was written just now, behind all that had left before: nothing held it.
    pub(crate) fn is_just_written(&self, end: End, now: i64) -> bool {
        self.present(end).is_some_and(|present| now - present.first <= PROMPT)
    }

    /// Whether the last bytes of the segment of `end` that leaves now were written just now. If the first ones were not, it is
    /// what they had been waiting for: Nagle's algorithm does not hold a segment that is long enough.
    pub(crate) fn was_completed(&self, end: End, now: i64) -> bool {
        self.present(end).is_some_and(|present| now - present.last <= PROMPT)
    }
}
