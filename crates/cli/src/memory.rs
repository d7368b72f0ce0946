//! How much memory the connections of a capture may take.

use std::sync::OnceLock;

#[cfg(unix)]
use rustix::process::{Resource, getrlimit};
use sysinfo::System;

/// Where the machine does not say what it has, bytes.
const UNKNOWN: u64 = 4 << 30;

/// What `--memory` says, bytes.
static ASKED: OnceLock<u64> = OnceLock::new();

/// From now on the connections of a capture may take so many bytes.
pub(crate) fn set(bytes: u64) {
    // It is asked once, by one command line.
    let _ = ASKED.set(bytes);
}

/// How many bytes the connections of a capture may take: by default half of what this process could have, since the report
/// on them takes some, too.
pub(crate) fn budget() -> usize {
    let bytes = *ASKED.get_or_init(|| available() / 2);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The memory of the machine, or of this process's group (cgroup) or its own limit where that is less. Bytes.
fn available() -> u64 {
    let mut system = System::new();
    system.refresh_memory();
    let machine = Some(system.total_memory()).filter(|bytes| *bytes > 0);
    let group = system.cgroup_limits().map(|limits| limits.total_memory).filter(|bytes| *bytes > 0);
    [machine, group, own_limit()].into_iter().flatten().min().unwrap_or(UNKNOWN)
}

/// What `ulimit -v` or `-d` allow this process, bytes.
#[cfg(unix)]
fn own_limit() -> Option<u64> {
    [Resource::As, Resource::Data].into_iter().filter_map(|resource| getrlimit(resource).current).min()
}

#[cfg(not(unix))]
fn own_limit() -> Option<u64> {
    None
}
