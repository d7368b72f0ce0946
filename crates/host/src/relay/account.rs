//! What is told of a connection, and of all of them.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use super::tcp_info::TcpInfo;

/// One end of a relayed connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Who connected to the relay.
    Client,
    /// Whom the relay connected to.
    Target,
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum End {
    /// Both sides finished sending (FIN), and everything was passed on.
    Finished,
    /// That side reset the connection or vanished; the other side got a reset, after what had been read before.
    Reset {
        /// Which.
        by: Side,
    },
    /// The target could not be reached; the client got a reset.
    Unreached {
        /// What the system said.
        error: String,
    },
    /// The relay was stopped; both sides got a reset.
    Stopped,
}

/// What one direction carried. Times are ms; those of a moment count from when the client was accepted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Passed {
    /// Bytes read.
    pub bytes: u64,
    /// Bytes that the kernel took for the other side.
    pub bytes_written: u64,
    /// Reads that gave data.
    pub reads: u64,
    /// Writes that the kernel took something of.
    pub writes: u64,
    /// Segments in which the data came, as the kernel counts them, duplicates included; `None` where it does not say.
    pub segments_in: Option<u64>,
    /// Segments in which the data left, without retransmissions; `None` also where some had not left at the end.
    pub segments_out: Option<u64>,
    /// When the first data was read; `None` where there was none.
    pub first_ms: Option<f64>,
    /// When the last data was read.
    pub last_ms: Option<f64>,
    /// The longest time from one read to the next.
    pub longest_gap_ms: f64,
    /// How often the other side's send buffer was full.
    pub blocked: u64,
    /// For how long in all: nothing was read then.
    pub blocked_ms: f64,
    /// The longest time from a read until the kernel had taken all of it for the other side: what the relay added.
    pub longest_hold_ms: f64,
    /// Whether its sender finished (FIN) and the other side was told.
    pub finished: bool,
}

impl Passed {
    /// Segments with data that were read along with one before them: they had come in the meantime. At least; `None`
    /// where the kernel does not say.
    pub fn read_together(&self) -> Option<u64> {
        self.segments_in.map(|segments| segments.saturating_sub(self.reads))
    }

    /// Writes that did not get a segment of their own but left merged with another. At least; `None` where the kernel does
    /// not say.
    pub fn sent_together(&self) -> Option<u64> {
        self.segments_out.map(|segments| self.writes.saturating_sub(segments))
    }
}

/// What the kernel says of the relay's socket towards one side.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// The smoothed round trip, ms.
    pub rtt_ms: f64,
    /// The shortest round trip, ms; `None` where none was measured.
    pub min_rtt_ms: Option<f64>,
    /// Segments that the relay sent again.
    pub retransmits: u64,
}

impl Path {
    pub(super) fn of(info: &TcpInfo) -> Self {
        let in_ms = |us: u32| f64::from(us) / 1e3;
        Self {
            rtt_ms: in_ms(info.rtt),
            min_rtt_ms: info.min_rtt.map(in_ms),
            retransmits: info.retransmits.into(),
        }
    }
}

/// A connection that is over.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// Number from 1 in the order they were accepted.
    pub number: u64,
    /// Who connected.
    pub client: SocketAddr,
    /// The target's address; `None` where it was not reached.
    pub target: Option<SocketAddr>,
    /// When it was accepted, ms since the relay began.
    pub start_ms: f64,
    /// From then until the relay had the connection to the target, ms; `None` where it was not reached.
    pub connect_ms: Option<f64>,
    /// From accepting it to its end, ms.
    pub duration_ms: f64,
    /// How it ended.
    pub end: End,
    /// From the client to the target.
    pub up: Passed,
    /// From the target to the client.
    pub down: Passed,
    /// The socket towards the client; `None` where the kernel says nothing.
    pub client_path: Option<Path>,
    /// The socket towards the target.
    pub target_path: Option<Path>,
}

/// All connections of a relay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// How long the relay ran, ms.
    pub elapsed_ms: f64,
    /// Clients that were accepted.
    pub connections: u64,
    /// Connections open at the same time, at most.
    pub most_open: usize,
    /// Those that both sides finished.
    pub finished: u64,
    /// Those that the client reset.
    pub reset_by_client: u64,
    /// Those that the target reset.
    pub reset_by_target: u64,
    /// Those whose target could not be reached.
    pub unreached: u64,
    /// Those that were open when the relay was stopped.
    pub stopped: u64,
    /// From clients to the target.
    pub up: Total,
    /// From the target to clients.
    pub down: Total,
}

/// One direction of all connections.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Total {
    /// Bytes read.
    pub bytes: u64,
    /// Reads that gave data.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Segments that were read along with others, as far as the kernel says.
    pub read_together: u64,
    /// Writes that left merged with others, as far as the kernel says.
    pub sent_together: u64,
    /// How often a send buffer was full.
    pub blocked: u64,
    /// For how long in all, ms, of all connections together.
    pub blocked_ms: f64,
    /// The longest time from a read until the kernel had taken all of it for the other side, ms.
    pub longest_hold_ms: f64,
}

impl Summary {
    pub(super) fn add(&mut self, connection: &Connection) {
        self.connections += 1;
        let count = match connection.end {
            End::Finished => &mut self.finished,
            End::Reset { by: Side::Client } => &mut self.reset_by_client,
            End::Reset { by: Side::Target } => &mut self.reset_by_target,
            End::Unreached { .. } => &mut self.unreached,
            End::Stopped => &mut self.stopped,
        };
        *count += 1;
        self.up.add(&connection.up);
        self.down.add(&connection.down);
    }
}

impl Total {
    fn add(&mut self, passed: &Passed) {
        self.bytes += passed.bytes;
        self.reads += passed.reads;
        self.writes += passed.writes;
        self.read_together += passed.read_together().unwrap_or(0);
        self.sent_together += passed.sent_together().unwrap_or(0);
        self.blocked += passed.blocked;
        self.blocked_ms += passed.blocked_ms;
        self.longest_hold_ms = self.longest_hold_ms.max(passed.longest_hold_ms);
    }
}

/// A duration in ms, exact to the µs.
pub(super) fn ms(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}
