//! Single keys from the terminal, for whoever plays along.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

/// The keyboard. It is taken out of its line mode when a key is first asked for, and given back with
/// [`Keys::release`]. Ctrl-C keeps its meaning.
#[derive(Clone, Default)]
pub(super) struct Keys {
    /// The terminal as it was.
    before: Arc<Mutex<Option<Termios>>>,
}

impl Keys {
    /// A key that was pressed since this was last asked; never waits.
    pub(super) fn pressed(&self) -> Option<char> {
        let input = rustix::stdio::stdin();
        if !isatty(input) {
            return None;
        }
        self.take();
        let mut ready = [PollFd::new(&input, PollFlags::IN)];
        let waiting =
            poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0);
        let mut byte = [0];
        let read = if waiting { rustix::io::read(input, &mut byte).unwrap_or(0) } else { 0 };
        (read == 1).then_some(char::from(byte[0]))
    }

    fn take(&self) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        if before.is_some() {
            return;
        }
        let Ok(now) = tcgetattr(io::stdin()) else { return };
        let mut raw = now.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // A terminal that keeps its line mode gives its keys at the end of the line.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &raw);
        *before = Some(now);
    }

    /// Gives the terminal back as it was.
    pub(super) fn release(&self) {
        if let Some(before) = self.before.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
    }
}
