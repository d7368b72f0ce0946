//! Requests and their answers: how long each exchange took.

use super::quantiles::Quantiles;

/// An answer that is resumed more often than this is a stream of messages; an answer flushed in parts, or a
/// bulk one that TCP stops now and then, is resumed a few times. Per exchange.
const RESUMED_MOST: u64 = 8;

/// Where request and answer stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanges {
    /// Latency from a request's first segment to its answer's last.
    pub(crate) latency: Quantiles,
    /// Sum of the latencies, ns.
    pub(crate) total: i64,
    /// Longest pauses inside answers, summed: large where the "answer" is a stream of its own, ns.
    pub(crate) pauses: i64,
    /// How often an answer went on after a pause.
    pub(crate) resumed: u32,
    /// When the last answer ended; 0 before there was one.
    pub(crate) answered: i64,
    asked: i64,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The client has not spoken yet.
    #[default]
    Quiet,
    /// The client has asked.
    Asked,
    /// The server is answering.
    Answering,
}

impl Exchanges {
    /// A side's program spoke; `free` unless TCP had been holding what it said.
    pub(crate) fn spoke(&mut self, is_client: bool, now: i64, free: bool) {
        match (self.state, is_client) {
            (State::Quiet, true) => (self.state, self.asked) = (State::Asked, now),
            (State::Asked, false) => (self.state, self.answered) = (State::Answering, now),
            (State::Answering, false) => {
                self.resumed = self.resumed.saturating_add(1);
                self.pauses += if free { now - self.answered } else { 0 };
                self.answered = now;
            }
            (State::Answering, true) => {
                self.count();
                (self.state, self.asked) = (State::Asked, now);
            }
            (State::Quiet, false) | (State::Asked, true) => {}
        }
    }

    /// More of the same message.
    #[inline]
    pub(crate) fn continued(&mut self, now: i64) {
        if self.state == State::Answering {
            self.answered = now;
        }
    }

    /// Counts an exchange that the capture's end closes.
    pub(crate) fn finish(&mut self) {
        if self.state == State::Answering {
            self.count();
            self.state = State::Quiet;
        }
    }

    fn count(&mut self) {
        let latency = self.answered - self.asked;
        self.total += latency;
        self.latency.add(latency);
    }

    /// Whether the traffic is request and response at all, rather than a stream with an occasional word back.
    pub(crate) fn is_request_response(&self) -> bool {
        let count = self.latency.count();
        count > 0
            && self.pauses.saturating_mul(2) <= self.total
            && u64::from(self.resumed) <= RESUMED_MOST * count
    }
}
