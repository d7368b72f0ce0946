//! Tests of what takes time, on machines that do other things too.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// A machine that is busy spoils one run, and seldom the next two.
const MOST: u32 = 3;

/// One run at a time: the emulators of two would make each other late.
static ALONE: Mutex<()> = Mutex::new(());

/// Fails if each of three runs does: a fault of the program is there every time, a busy machine's is not.
#[track_caller]
pub(crate) fn one_succeeds(run: impl Fn() -> Result<(), String>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for attempt in 1..=MOST {
        match run() {
            Ok(()) => return,
            Err(why) if attempt == MOST => panic!("{MOST} runs failed, the last: {why}"),
            Err(why) => drop(writeln!(std::io::stderr(), "AGAIN, run {attempt} of {MOST} failed: {why}")),
        }
    }
}
