//! What is reported of hops: part of `tcpwhy-report/2`, after its captures.

use serde::Serialize;

use crate::report::{Finding, Ms};

/// The conversations that were seen on two hops.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Hops {
    /// Each with both of its hops.
    pub pairs: Vec<Pair>,
    /// What a reader must know: what was not compared, or could not be told apart.
    pub notes: Vec<String>,
}

/// A conversation on its two hops.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The hop between client and proxy.
    pub first: HopReport,
    /// The hop between proxy and server.
    pub second: HopReport,
    /// By how much the second capture's clock is ahead of the first one's, at least and at most; null where nothing bounds
    /// it on that side. Both 0 where one clock has seen both hops.
    pub clock_ahead_ms: (Option<Ms>, Option<Ms>),
    /// By how much the second clock goes faster, in millionths.
    pub clock_drift_ppm: f64,
    /// The shortest way through the proxy and back, with the path between the two captures; null where one direction carried
    /// nothing.
    pub round_ms: Option<Ms>,
    /// From client to server; null where nothing went that way.
    pub to_server: Option<Passed>,
    /// From server to client; null where nothing went that way.
    pub to_client: Option<Passed>,
    /// What the proxy did wrong; packets of their evidence are those of the capture that it names.
    pub findings: Vec<Finding>,
}

impl Pair {
    /// The two directions, to the server first.
    pub fn passed(&self) -> [Option<&Passed>; 2] {
        [self.to_server.as_ref(), self.to_client.as_ref()]
    }
}

/// One hop: a connection of one of the report's captures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HopReport {
    /// Which capture, from 0 in the order of the report.
    pub capture: usize,
    /// What that is called.
    pub name: String,
    /// The connection's `id` there.
    pub connection: u64,
    /// `ip:port` of its client.
    pub client: String,
    /// The same of its server.
    pub server: String,
}

/// What the proxy did with one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Passed {
    /// Bytes that came and left.
    pub bytes: u64,
    /// Pieces that came apart from each other.
    pub came: u64,
    /// Pieces that left apart from each other.
    pub left: u64,
    /// The shortest time from coming to leaving; null where two clocks have seen it.
    pub fastest_ms: Option<Ms>,
    /// How much longer than the fastest a piece stayed: median.
    pub age_p50_ms: Ms,
    /// The longest.
    pub age_max_ms: Ms,
}
