//! Counters that the kernel keeps for all connections of a network namespace.

use std::fs;

/// `TcpExtDelayedACKs` of the network namespace that a process lives in: ACKs that were sent because the timer of a
/// delayed ACK ran out. `None`: it cannot be read.
pub fn delayed_acks(pid: u32) -> Option<u64> {
    counter(&fs::read_to_string(format!("/proc/{pid}/net/netstat")).ok()?, "TcpExt:", "DelayedACKs")
}

/// A line of names is followed by a line of numbers, both with the group's name before them.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|one| one == name)?;
    numbers.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_below_the_name_is_found() {
        let text = "TcpExt: SyncookiesSent DelayedACKs\nTcpExt: 3 41\nIpExt: InNoRoutes\nIpExt: 0\n";
        assert_eq!(counter(text, "TcpExt:", "DelayedACKs"), Some(41));
        assert_eq!(counter(text, "TcpExt:", "Absent"), None);
        assert_eq!(counter("TcpExt: DelayedACKs\n", "TcpExt:", "DelayedACKs"), None);
        assert!(delayed_acks(std::process::id()).is_some());
    }
}
