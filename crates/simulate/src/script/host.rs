//! Where a script runs: a simulated endpoint, or anything else that has sockets and sends segments.

use super::request::Request;
use crate::tcp::Segment;

/// What a script needs of the TCP under test. Times are ns after the script's beginning.
pub trait Host {
    /// The time there.
    fn now(&self) -> u64;

    /// Goes on until something happens, at `until` at the latest.
    fn step(&mut self, until: u64) -> Step;

    /// The segment arrives now.
    fn deliver(&mut self, arrival: &OnWire);

    /// A program calls its socket now. The call never waits: the runner repeats it.
    fn call(&mut self, request: &Request) -> Reply;

    /// A field of `struct tcp_info` by its name, `tcpi_snd_cwnd` say; `None` where there is no such field.
    fn info(&mut self, field: &str) -> Option<f64>;

    /// Sets a sysctl (`net.ipv4.tcp_sack`) or a metric of the route (`initcwnd`); `false` where it has none.
    fn set(&mut self, name: &str, value: &str) -> bool;
}

/// What happened in a [`Host::step`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A segment left at this time.
    Sent(u64, OnWire),
    /// Something else happened.
    Changed,
    /// Nothing, until the given time.
    Reached,
}

/// A segment with its ECN field, in the sequence numbers that really are on the wire; the script has its own.
pub type OnWire = Segment;

/// What a call brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It returned this, and left this in its last argument (an option's value, a queue's length).
    Returned(i64, Option<i64>),
    /// It failed with the error of this name.
    Failed(&'static str),
    /// It waits; so many bytes it took already.
    Waits(u64),
    /// The host cannot do this.
    Unsupported,
}

impl Reply {
    /// The call returned 0.
    pub const DONE: Self = Self::Returned(0, None);
}
