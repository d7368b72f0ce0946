//! What one sender's holds by Nagle's algorithm add up to: shared by the rules that speak of them.

use super::subject::Subject;
use crate::flow::connection::ack_held;
use crate::flow::fact::{Cause, End};
use crate::ledger::Tally;
use crate::report::Fix;

/// The pattern in which the program wrote what was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Pieces of one message: a request or an answer.
    Pieces,
    /// Updates of a stream of their own.
    Stream,
}

/// All holds of one sender.
#[derive(Debug)]
pub(crate) struct Holds<'a> {
    pub(crate) tally: &'a Tally,
    /// Holds that the base round trip explains, and their cost in ns.
    pub(crate) plain: u64,
    pub(crate) plain_cost: i64,
    /// Holds that ended on a delayed ACK, and their cost in ns.
    pub(crate) delayed: u64,
    pub(crate) delayed_cost: i64,
    /// The median time from the segment in flight to its ACK, ns.
    pub(crate) typical: i64,
    pub(crate) pattern: Pattern,
}

/// Holds from which on chance is out of the question: each needs an ACK and a write within a millisecond.
const CERTAIN: u64 = 5;

impl<'a> Holds<'a> {
    /// The holds of `end`, if there were any.
    pub(crate) fn of(subject: &'a Subject<'_>, end: End) -> Option<Self> {
        let tally = subject.tally(Cause::NagleHold, end)?;
        let half = subject.half(end);
        let held = half.holds.as_deref()?;
        let limit = subject.connection.base_round_trip().unwrap_or(0);
        let delayed = held.between(limit + ack_held(limit), i64::MAX);
        let plain = held.count() - delayed.min(held.count());
        let (plain_length, all_length) = held.split_at(limit + ack_held(limit));
        let plain_cost = (tally.total as f64 * plain_length as f64 / (all_length as f64).max(1.0)) as i64;
        let is_stream = half.run_longest >= crate::flow::connection::STREAM_RUN;
        let pattern = if is_stream { Pattern::Stream } else { Pattern::Pieces };
        Some(Self {
            tally,
            plain,
            plain_cost,
            delayed,
            delayed_cost: tally.total - plain_cost,
            typical: held.quantile(0.5),
            pattern,
        })
    }

    /// How sure it is that these were holds: a single one could be chance.
    pub(crate) fn confidence(&self) -> f64 {
        match self.tally.count {
            1 => 0.7,
            count if count < CERTAIN => 0.9,
            _ => 0.98,
        }
    }
}

/// What to do about holds, in order of preference.
pub(crate) fn fixes(subject: &Subject<'_>, end: End, holds: &Holds<'_>) -> Vec<Fix> {
    let nodelay = Fix {
        title: format!("Set TCP_NODELAY on the {}'s socket", subject.side_name(end)),
        how: format!(
            "setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) on {}, which sends. Each write then \
             becomes a segment of its own: {} more segments would have been sent here.",
            subject.address(end),
            holds.tally.count
        ),
    };
    let one_write = Fix {
        title: "Write each message at once".to_owned(),
        how: "Collect the pieces in one buffer, or hand them over together with writev()/sendmsg(); or mark \
              all pieces but the last with MSG_MORE (Linux). Costs nothing and saves segments."
            .to_owned(),
    };
    let quick_ack = Fix {
        title: format!("Ask the {} to ACK at once", subject.side_name(1 - end)),
        how: "If only the receiver can be changed: TCP_QUICKACK after each recv() (Linux), or the route option \
              `quickack 1`."
            .to_owned(),
    };
    match (holds.pattern, holds.delayed > 0) {
        (Pattern::Stream, true) => vec![nodelay, quick_ack],
        (Pattern::Stream, false) => vec![nodelay],
        (Pattern::Pieces, true) => vec![one_write, nodelay, quick_ack],
        (Pattern::Pieces, false) => vec![one_write, nodelay],
    }
}
