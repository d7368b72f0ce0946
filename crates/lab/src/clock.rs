//! The clock of programs and captures.

use std::time::{SystemTime, UNIX_EPOCH};

/// ns since the epoch, by the clock that capture timestamps come from.
pub fn now() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX)
}
