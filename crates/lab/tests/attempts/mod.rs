//! Tests of what takes time, on machines that do other things too.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A machine that is busy spoils one run, and seldom the next two.
const MOST: u32 = 3;

/// What the lab says of a machine on which every repetition of a run was late.
const TOO_BUSY: &str = "this machine is too busy";

/// Short sleeps by which the machine itself is judged, and how many of a thousand may end later than the lab's packets
/// may (`emulator/lateness.rs`). An idle machine has none.
const SLEEPS: u32 = 1_000;
const SLEEP: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_millis(1);
const MOST_LATE: usize = 2;

/// One run at a time: the emulators of two would make each other late.
static ALONE: Mutex<()> = Mutex::new(());

/// Fails if each of three runs does: a fault of the program is there every time, a busy machine's is not. Where the lab
/// refuses a machine that is too busy, and that machine cannot even sleep in time, nothing can be tested.
#[track_caller]
pub(crate) fn one_succeeds(run: impl Fn() -> Result<(), String>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for attempt in 1..=MOST {
        match run() {
            Ok(()) => return,
            Err(why) if attempt < MOST => say(&format!("AGAIN, run {attempt} of {MOST} failed: {why}")),
            Err(why) if why.contains(TOO_BUSY) && sleeps_long() => return say(&format!("SKIPPED: {why}")),
            Err(why) => panic!("{MOST} runs failed, the last: {why}"),
        }
    }
}

/// Straight to standard error, which shows it: `eprintln!` is kept from a test that passes.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Whether this machine lets threads sleep longer than they want.
fn sleeps_long() -> bool {
    let late = (0..SLEEPS).filter(|_| {
        let before = Instant::now();
        thread::sleep(SLEEP);
        before.elapsed() > SLEEP + LATE
    });
    late.count() > MOST_LATE
}
