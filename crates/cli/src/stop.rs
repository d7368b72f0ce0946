//! Ctrl-C: the first asks for the report on what was read so far, a second quits at once.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a shell reports for a program that SIGINT ended: 128 + 2.
pub(crate) const INTERRUPTED: i32 = 130;

/// Whether Ctrl-C was pressed; clones share the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    requested: Arc<AtomicBool>,
    reading: Arc<AtomicBool>,
}

impl Stop {
    /// Starts to listen. Where that fails, Ctrl-C keeps ending the program, so that nobody is locked in.
    pub(crate) fn on_ctrl_c() -> Self {
        let stop = Self::default();
        let handler = stop.clone();
        let _ = ctrlc::set_handler(move || {
            let again = handler.request();
            // Opening a FIFO that nobody writes to, or printing into a stuck pager, cannot be stopped gently.
            if again || !handler.reading.load(Ordering::SeqCst) {
                process::exit(INTERRUPTED);
            }
        });
        stop
    }

    /// Asks for the report; whether it was asked for before.
    pub(crate) fn request(&self) -> bool {
        self.requested.swap(true, Ordering::SeqCst)
    }

    /// Whether somebody wants the report now.
    pub(crate) fn requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Says whether input is being read: only then has a first Ctrl-C something to report on.
    pub(crate) fn reading(&self, reading: bool) {
        self.reading.store(reading, Ordering::SeqCst);
    }
}
