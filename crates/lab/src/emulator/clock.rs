//! The emulator's clock.

use rustix::time::{ClockId, clock_gettime};

/// Two readings further apart than this, with less than that to do in between, mean that the thread or the
/// whole machine stood still: handing one packet to the kernel takes 5 to 50 µs.
const STALL: u64 = 300_000;

/// Reads the time, and notices when the emulator could not run.
#[derive(Debug)]
pub(super) struct Clock {
    latest: u64,
    /// The longest time in ns that was lost since [`Clock::take_stall`].
    stall: u64,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { latest: monotonic(), stall: 0 }
    }

    /// ns of a clock that never goes back.
    pub(super) fn now(&mut self) -> u64 {
        let latest = self.latest;
        self.expect(latest)
    }

    /// The same, after sleeping until `due` at most.
    pub(super) fn woke(&mut self, due: u64) -> u64 {
        self.expect(due.max(self.latest))
    }

    /// How long the emulator could not run since this was last asked, in ns; 0 if it could.
    pub(super) fn take_stall(&mut self) -> u64 {
        std::mem::take(&mut self.stall)
    }

    fn expect(&mut self, at: u64) -> u64 {
        self.latest = monotonic();
        let late = self.latest.saturating_sub(at);
        if late > STALL {
            self.stall = self.stall.max(late);
        }
        self.latest
    }
}

/// ns of a clock that never goes back.
pub(super) fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
