//! Calls in the order in which they took effect: a read at its end, since it may have waited.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tcpwhy_wire::calls::Call;

use super::messages::effect;

/// Calls that wait until nothing can come before them. As many threads may wait in a read at once; a file that makes more
/// wait has them in the order of their beginnings.
const MOST_WAITING: usize = 1 << 16;

/// Takes calls in the order of their beginnings.
#[derive(Debug, Default)]
pub(super) struct ByEffect {
    waiting: BinaryHeap<Reverse<Waiting>>,
    taken: u64,
}

#[derive(Debug)]
struct Waiting {
    effect: i64,
    number: u64,
    call: Call,
}

impl ByEffect {
    /// Takes a call that began no earlier than those before.
    pub(super) fn push(&mut self, call: Call) {
        self.taken += 1;
        self.waiting.push(Reverse(Waiting { effect: effect(&call), number: self.taken, call }));
    }

    /// The next call, if none that begins at `time` or later can take effect before it.
    pub(super) fn by(&mut self, time: i64) -> Option<Call> {
        let is_crowded = self.waiting.len() > MOST_WAITING;
        self.waiting.peek().filter(|Reverse(next)| next.effect <= time || is_crowded)?;
        self.waiting.pop().map(|Reverse(next)| next.call)
    }
}

impl Waiting {
    fn key(&self) -> (i64, u64) {
        (self.effect, self.number)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
