//! How many connections the process's descriptors suffice for.

/// Descriptors that are no connection's: standard streams, the listener, the runtime's own, files of the resolver and some
/// for whatever else the program has open.
const SPARE: u64 = 64;
/// Where the system says nothing, what POSIX systems usually give.
const USUAL: u64 = 256;

/// Raises the limit of open files as far as an ordinary user may, and says for how many connections it is enough.
pub(super) fn connections() -> usize {
    let descriptors = raised().unwrap_or(USUAL);
    usize::try_from(descriptors.saturating_sub(SPARE) / 2).unwrap_or(usize::MAX).max(1)
}

#[cfg(unix)]
fn raised() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    limit.current = limit.maximum;
    // Some systems refuse a soft limit as high as the hard one; what was allowed before then stays.
    let allowed = if setrlimit(Resource::Nofile, limit).is_ok() { limit.maximum } else { before };
    Some(allowed.unwrap_or(u64::MAX))
}

#[cfg(not(unix))]
fn raised() -> Option<u64> {
    None
}
