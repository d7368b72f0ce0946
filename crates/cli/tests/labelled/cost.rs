//! What each wait truly cost, from the programs' own log.

use tcpwhy_benches::labelled::{Exchange, Truth};

/// A cost that the log knows, summed over all exchanges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cost {
    /// From the client's last write of a request to the server's read of it: the time the tail was held back.
    RequestHeld,
    /// From the server's last write of an answer to the client's read of it.
    ResponseHeld,
    /// From the server's read of a request to its first write.
    ServerThought,
    /// From the client's read of an answer to its next write.
    ClientThought,
}

impl Cost {
    /// This cost in `truth`, in ms.
    pub(crate) fn in_ms(self, truth: &Truth) -> f64 {
        let micros: u64 = match self {
            Self::ClientThought => {
                truth.exchanges.windows(2).map(|pair| client_thought(&pair[0], &pair[1])).sum()
            }
            Self::RequestHeld => each(truth, |one| one.server_read.saturating_sub(last(&one.client_wrote))),
            Self::ResponseHeld => each(truth, |one| one.client_read.saturating_sub(last(&one.server_wrote))),
            Self::ServerThought => {
                each(truth, |one| first(&one.server_wrote).saturating_sub(one.server_read))
            }
        };
        micros as f64 / 1e3
    }
}

fn client_thought(one: &Exchange, next: &Exchange) -> u64 {
    first(&next.client_wrote).saturating_sub(one.client_read)
}

fn each(truth: &Truth, of: impl Fn(&Exchange) -> u64) -> u64 {
    truth.exchanges.iter().map(of).sum()
}

fn first(times: &[u64]) -> u64 {
    times.first().copied().unwrap_or_default()
}

fn last(times: &[u64]) -> u64 {
    times.last().copied().unwrap_or_default()
}
