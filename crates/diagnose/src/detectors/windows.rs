//! What the receiver's window cost one sender: shared by the rules that speak of windows.
//!
//! A window that is small costs a round trip each time it is full. A window that the receiver's program keeps
//! full, because it does not read, costs as long as the program likes; the zero window is its last stage.

use super::subject::Subject;
use crate::flow::fact::{Cause, End};
use crate::ledger::Tally;

/// Waits for a window that last this much longer than the base round trip, on average, are the program's:
/// well above a queue on a local network and the few ms by which a busy host is late. ns.
const SLOW_READ: i64 = 10_000_000;
/// …and on long paths, this share of the round trip longer.
const SLOW_READ_SHARE: i64 = 2;
/// A window of fewer full segments lets the receiver's delayed ACK lengthen the round trip (RFC 1122 section
/// 4.2.3.2 asks for an ACK every second segment), so a long wait is no proof against the program. Segments.
const FEWEST_SEGMENTS: u32 = 4;

/// Costs below this are nobody's trouble. ns.
const SMALLEST_COST: i64 = 1_000_000;
/// …or, in exchanges with pauses between them, below this. ns.
const SMALLEST_AFTER_PAUSES: i64 = 10_000_000;
/// A wait is worth a finding from this share of the time in which somebody waited on, 1 in so many…
const SHARE_OF_LIFE: i64 = 20;
/// …or, on connections that live long, from this much time on. ns.
const LARGE_COST: i64 = 1_000_000_000;

/// The bandwidth for which advice names a buffer size, bits a second: a modest link of today.
pub(crate) const TARGET_RATE: i64 = 100_000_000;

/// Waits of one sender for its receiver's window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows<'a> {
    /// Waits while the window was zero.
    pub(crate) zero: Option<&'a Tally>,
    /// Waits for a full window because the receiver's program did not read.
    pub(crate) unread: Option<Tally>,
    /// Waits for a full window, a round trip each.
    pub(crate) small: Option<&'a Tally>,
}

impl<'a> Windows<'a> {
    /// The waits of what `end` sends. A full window is counted either way, never both: one cause is not told
    /// twice.
    pub(crate) fn of(subject: &'a Subject<'_>, end: End) -> Self {
        let zero = subject.tally(Cause::ZeroWindow, end);
        let unread = subject.tally(Cause::Unread, end);
        let Some(full) = subject.tally(Cause::ReceiveWindow, end) else {
            return Self { zero, unread: unread.cloned(), small: None };
        };
        let total = |tally: Option<&Tally>| tally.map_or(0, |tally| tally.total);
        if total(zero) >= full.total || is_unread(subject, end, full, zero.is_some()) {
            let unread = unread.map_or_else(|| full.clone(), |unread| unread.clone().with(full));
            return Self { zero, unread: Some(unread), small: None };
        }
        // What a program leaves unread makes its window small for the others, too.
        let is_reader = total(zero) + total(unread) >= full.total;
        Self { zero, unread: unread.cloned(), small: (!is_reader).then_some(full) }
    }
}

impl Windows<'_> {
    /// For how long the receiver's program kept the sender waiting because it did not read, ns.
    pub(crate) fn unread_total(&self) -> i64 {
        [self.zero, self.unread.as_ref()].into_iter().flatten().map(|tally| tally.total).sum()
    }
}

/// Whether full windows lasted longer than the path explains, so that the receiver's program must have been
/// the one that kept them full.
fn is_unread(subject: &Subject<'_>, end: End, full: &Tally, was_zero: bool) -> bool {
    let Some(base) = subject.connection.base_round_trip() else { return false };
    let half = subject.half(end);
    let beyond = mean(full) - base;
    let roomy = half.max_window / half.full_size() >= FEWEST_SEGMENTS;
    (was_zero || roomy) && beyond >= SLOW_READ.max(base / SLOW_READ_SHARE)
}

/// The average wait, ns.
pub(crate) fn mean(tally: &Tally) -> i64 {
    tally.total / i64::try_from(tally.count).unwrap_or(i64::MAX).max(1)
}

/// Whether waits that came after pauses are worth a finding: of a connection with pauses it is the time of its exchanges
/// that counts.
pub(crate) fn matters_after_pauses(subject: &Subject<'_>, cost: i64) -> bool {
    let exchanges = &subject.connection.exchanges;
    let is_share = exchanges.is_request_response()
        && cost >= SMALLEST_AFTER_PAUSES
        && cost >= exchanges.total() / SHARE_OF_LIFE;
    is_share || matters(subject, cost)
}

/// Whether so much waiting is worth a finding.
pub(crate) fn matters(subject: &Subject<'_>, cost: i64) -> bool {
    cost >= SMALLEST_COST && (cost >= LARGE_COST || cost >= subject.waiting() / SHARE_OF_LIFE)
}
