//! Whether the machine itself stood still during a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a thread asks to be woken.
const NAP: Duration = Duration::from_millis(1);

/// Does `work`, and says how late a thread that only naps was woken meanwhile, at worst: programs will have been
/// about as late.
pub(super) fn watched<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut latest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                let before = Instant::now();
                thread::sleep(NAP);
                latest = latest.max(before.elapsed().saturating_sub(NAP));
            }
            latest
        });
        let value = work();
        done.store(true, Ordering::Relaxed);
        (value, watch.join().unwrap_or(Duration::MAX))
    })
}
