//! The memory that hangs on a connection's record, where it has shown more than most do.

use super::beliefs::Shown;
use super::connection::Connection;
use super::half::Half;
use super::rhythm::Rhythm;
use super::sending::Rare;
use super::trouble::Trouble;

impl Connection {
    /// Bytes on the heap.
    pub(crate) fn heap(&self) -> usize {
        let rare = self.rare.as_ref().map_or(0, |rare| size_of::<Rare>() + rare.heap());
        rare + self.exchanges.heap() + self.halves.iter().map(Half::heap).sum::<usize>()
    }
}

impl Half {
    fn heap(&self) -> usize {
        let trouble = self.trouble.as_ref().map_or(0, |it| size_of::<Trouble>() + it.holes.heap());
        let rhythm = self.rhythm.as_ref().map_or(0, |it| size_of::<Rhythm>() + it.heap());
        let shown = self
            .shown
            .as_ref()
            .map_or(0, |it| size_of::<Shown>() + it.held.waits.heap() + it.candidates.held.waits.heap());
        trouble + rhythm + shown
    }
}

impl Rare {
    fn heap(&self) -> usize {
        self.writes.iter().flatten().map(|writes| writes.heap()).sum()
    }
}
