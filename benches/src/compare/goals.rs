//! What the project reaches for, and how near a measurement comes.

use super::Row;
use super::tools::{READ, TCPTRACE, TCPWHY, TSHARK};

/// Times as fast as `tshark -q -z conv,tcp`, everywhere.
const TSHARK_TIMES: f64 = 40.0;
/// Times as fast as `tcptrace -nlrW`, everywhere.
const TCPTRACE_TIMES: f64 = 4.0;
/// The same from [`MANY`] connections on, where tcptrace is slow.
const TCPTRACE_TIMES_MANY: f64 = 15.0;
/// Share of the speed of reading alone on full-size segments.
const READ_SHARE: f64 = 0.5;
/// Packets a second, on every mix.
const PACKETS_A_SECOND: f64 = 3e6;
/// Bytes of memory a connection, where there are [`MANY`].
const BYTES_A_CONNECTION: f64 = 1024.0;
/// From here on a capture has many connections.
const MANY: u64 = 100_000;
/// The capture of full-size segments.
const FULL_SIZE: &str = "a-bulk";

/// One goal as applied to one capture.
pub(super) struct Goal {
    /// The figure that was measured.
    pub measured: f64,
    /// The least that is wanted; the most for memory; `None` where the goal does not apply.
    pub wanted: Option<f64>,
    /// Whether less is better.
    pub less: bool,
}

impl Goal {
    /// False where a goal applies and was missed.
    pub(super) fn reached(&self) -> bool {
        self.wanted
            .is_none_or(|wanted| if self.less { self.measured <= wanted } else { self.measured >= wanted })
    }
}

/// How many times as fast as tshark.
pub(super) fn times_tshark(row: &Row) -> Option<Goal> {
    at_least(row.ratio(TSHARK)?, Some(TSHARK_TIMES))
}

/// How many times as fast as tcptrace.
pub(super) fn times_tcptrace(row: &Row) -> Option<Goal> {
    let many = row.capture.connections >= MANY;
    at_least(row.ratio(TCPTRACE)?, Some(if many { TCPTRACE_TIMES_MANY } else { TCPTRACE_TIMES }))
}

/// Share of the speed of reading alone.
pub(super) fn share_of_reading(row: &Row) -> Option<Goal> {
    at_least(row.ratio(READ)?, (row.capture.name == FULL_SIZE).then_some(READ_SHARE))
}

/// Packets a second.
pub(super) fn packets_a_second(row: &Row) -> Option<Goal> {
    at_least(row.capture.packets as f64 / row.seconds(TCPWHY)?, Some(PACKETS_A_SECOND))
}

/// Bytes of memory a connection beyond what tcpwhy takes for a tiny capture.
pub(super) fn bytes_a_connection(row: &Row, tiny_peak: u64) -> Option<Goal> {
    let beyond = row.run(TCPWHY)?.peak_bytes.saturating_sub(tiny_peak);
    let many = row.capture.connections >= MANY;
    let measured = beyond as f64 / row.capture.connections as f64;
    Some(Goal { measured, wanted: many.then_some(BYTES_A_CONNECTION), less: true })
}

fn at_least(measured: f64, wanted: Option<f64>) -> Option<Goal> {
    Some(Goal { measured, wanted, less: false })
}
