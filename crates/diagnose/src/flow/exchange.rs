//! Requests and their answers: how long each exchange took.

use super::quantiles::Quantiles;

/// Where request and answer stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanges {
    /// Latency from a request's first segment to its answer's last.
    pub(crate) latency: Option<Box<Quantiles>>,
    /// Sum of the latencies, ns.
    pub(crate) total: i64,
    /// Time between exchanges: from an answer's last segment to the next request, ns.
    pub(crate) between: i64,
    /// Longest pauses inside answers, summed: large where the "answer" is a stream of its own, ns.
    pub(crate) pauses: i64,
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
    /// A side's program spoke.
    pub(crate) fn spoke(&mut self, is_client: bool, now: i64) {
        match (self.state, is_client) {
            (State::Quiet, true) => (self.state, self.asked) = (State::Asked, now),
            (State::Asked, false) => (self.state, self.answered) = (State::Answering, now),
            (State::Answering, false) => {
                self.pauses += now - self.answered;
                self.answered = now;
            }
            (State::Answering, true) => {
                self.count();
                self.between += now - self.answered;
                (self.state, self.asked) = (State::Asked, now);
            }
            (State::Quiet, false) | (State::Asked, true) => {}
        }
    }

    /// More of the same message.
    #[inline]
    pub(crate) fn continued(&mut self, _end: usize, now: i64) {
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
        self.latency.get_or_insert_default().add(latency);
    }

    /// Whether the traffic is request and response at all, rather than a stream with an occasional word back.
    pub(crate) fn is_request_response(&self) -> bool {
        self.latency.is_some() && self.pauses * 2 <= self.total
    }
}
