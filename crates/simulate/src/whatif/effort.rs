//! How much work a question may be.

use std::cell::Cell;

use crate::world::{End, Side, World};

/// A sender that mends losses looks at this many segments in flight in the time that a segment takes otherwise.
const LOOKED_AT: u64 = 128;

/// What all replays of one or several questions may do together, in segments that pass an interface, instants at which
/// something happens, and at each of these a 128th of the segments in flight. It is no time: the same question gets the same answer on any machine.
#[derive(Debug)]
pub struct Effort {
    most: u64,
    left: Cell<u64>,
}

impl Effort {
    /// So many segments and instants.
    pub fn of(most: u64) -> Self {
        Self { most, left: Cell::new(most) }
    }

    /// As much as it takes.
    pub fn unlimited() -> Self {
        Self::of(u64::MAX)
    }

    /// What was done so far.
    pub fn spent(&self) -> u64 {
        self.most - self.left.get()
    }

    /// Whether nothing is left of it.
    pub(super) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Runs a world until `until` (ns); `None` where nothing was left before.
    pub(super) fn run(&self, world: &mut World, until: u64) -> Option<End> {
        let mut passed = 0;
        world.run_while(until, |world| {
            let sides = [Side::Client, Side::Server];
            let in_flight: u64 = sides.iter().map(|side| u64::from(world.endpoint(*side).in_flight())).sum();
            let before = passed;
            passed = sides.iter().map(|side| world.seen(*side).len() as u64).sum();
            self.spend(1 + passed - before + in_flight / LOOKED_AT);
            !self.is_spent()
        })
    }

    fn spend(&self, work: u64) {
        self.left.set(self.left.get().saturating_sub(work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Ends;
    use crate::tcp::eras;
    use crate::world::{Program, Setup};

    /// Two hosts that only shake hands.
    fn handshake() -> World {
        World::new(&Setup {
            client: eras::linux_6(),
            server: eras::linux_6(),
            client_program: Program::default(),
            server_program: Program::default(),
            ends: Ends::default(),
            seed: 1,
        })
    }

    #[test]
    fn a_world_stops_when_its_effort_is_spent() {
        let (little, enough) = (Effort::of(3), Effort::unlimited());
        assert_eq!(little.run(&mut handshake(), 1_000_000_000), None);
        assert!(little.is_spent());
        assert_eq!(enough.run(&mut handshake(), 1_000_000_000), Some(End::Over));
        assert!(!enough.is_spent() && enough.spent() > 3, "{}", enough.spent());
    }
}
