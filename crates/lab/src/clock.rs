//! The clock of programs and captures.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// ns since the epoch, by the clock that capture timestamps come from.
pub fn now() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX)
}

/// From one time to another, both in ns, in ms.
pub fn ms_between(from: i64, to: i64) -> f64 {
    (to - from) as f64 / 1e6
}

/// A length of time in ns.
pub fn ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
