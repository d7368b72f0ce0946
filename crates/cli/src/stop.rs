//! Ctrl-C, or another signal that asks for an end: the first asks for the report on what was read so far, a second quits at once.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(unix)]
use signal_hook::{
    consts::{SIGHUP, SIGTERM},
    flag,
};

use crate::progress::Seen;

/// What a shell reports for a program that SIGINT ended: 128 + 2.
pub(crate) const INTERRUPTED: i32 = 130;

/// Whether Ctrl-C was pressed; clones share the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    requested: Arc<AtomicBool>,
    reading: Arc<AtomicBool>,
    seen: Option<Arc<Seen>>,
}

impl Stop {
    /// For an input that is read while others look on: they can stop it, and see how far it has come.
    #[cfg(unix)]
    pub(crate) fn watched(seen: Arc<Seen>) -> Self {
        Self { seen: Some(seen), ..Self::default() }
    }

    /// Where the progress of reading goes, instead of the terminal.
    pub(crate) fn seen(&self) -> Option<Arc<Seen>> {
        self.seen.clone()
    }

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

    /// The same, and SIGTERM and SIGHUP do as Ctrl-C does: for what runs for days, started by others.
    #[cfg(unix)]
    pub(crate) fn on_signals() -> Self {
        let stop = Self::on_ctrl_c();
        for signal in [SIGTERM, SIGHUP] {
            // In this order: the second one ends the program. Where that fails, so does the first.
            let _ = flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop.requested))
                .and_then(|_| flag::register(signal, Arc::clone(&stop.requested)));
        }
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
