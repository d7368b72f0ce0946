//! Signals that ask for an end, however often: what was switched is put back first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

/// Whether an end was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    received: Arc<AtomicBool>,
    released: Arc<AtomicBool>,
}

impl Signals {
    /// Starts to listen; from now on these signals end nothing by themselves.
    pub(super) fn listen() -> io::Result<Self> {
        let signals = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            flag::register_conditional_default(signal, Arc::clone(&signals.released))?;
            flag::register(signal, Arc::clone(&signals.received))?;
        }
        Ok(signals)
    }

    /// Whether there was one.
    pub(super) fn received(&self) -> bool {
        self.received.load(Ordering::Relaxed)
    }

    /// From now on they end the process again: a result may be printed into a pager that is stuck.
    pub(super) fn release(&self) {
        self.released.store(true, Ordering::SeqCst);
    }
}
