//! What a link does to packets.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which way a packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

impl Direction {
    /// The other way.
    pub fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// The settings of both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ends {
    /// From the client to the server.
    pub up: Settings,
    /// From the server to the client.
    pub down: Settings,
}

impl Ends {
    /// The same both ways, `round_trip` in all; nothing else.
    pub fn round_trip(round_trip: Duration) -> Self {
        let half = Settings { delay: round_trip / 2, ..Settings::default() };
        Self { up: half.clone(), down: half }
    }
}

/// One direction of a link. The default does nothing to packets: no delay, no limit, no loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Propagation delay: from leaving the queue to arriving.
    pub delay: Duration,
    /// A random share of it is added to the delay of each packet, evenly spread; order is kept.
    pub jitter: Duration,
    /// Bits a second, of the IP packet's bytes; `None` is without limit.
    pub rate: Option<u64>,
    /// Room for packets that wait for the rate.
    pub queue: Queue,
    /// Share of packets lost at random, 0 to 1.
    pub loss: f64,
    /// Packets lost by plan.
    pub drops: Vec<Drop>,
    /// Share of packets that are overtaken by those behind them, 0 to 1.
    pub reorder: f64,
    /// How much later an overtaken packet arrives.
    pub reorder_by: Duration,
    /// Share of packets that arrive twice, 0 to 1.
    pub duplicate: f64,
    /// ECN-capable packets are marked CE (RFC 3168) when they find at least so many packets in the queue.
    pub mark_above: Option<usize>,
    /// The *receiver at the far end of the other direction* is an old one: its pure ACKs, which travel in this
    /// direction, are held as that receiver would have held them.
    pub hold_acks: Option<AckHold>,
}

/// How much a drop-tail queue takes, besides the packet that is being sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// Everything.
    #[default]
    Unlimited,
    /// So many packets.
    Packets(usize),
    /// So many bytes of IP packets.
    Bytes(usize),
}

/// A packet that is lost by plan; counted from 1 over the link's life, in this direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drop {
    /// The n-th packet of any kind.
    Packet(u64),
    /// The n-th TCP segment with data; retransmissions count too.
    Data(u64),
    /// The last segment of the n-th burst: a data segment with PSH (the end of what the program wrote).
    Tail(u64),
    /// The n-th SYN (or SYN-ACK).
    Syn(u64),
    /// The next segment that carries the n-th byte of its connection's stream, counted from 1; listed twice, also the
    /// one after it. It stays the same byte where a sender cuts its stream otherwise.
    Byte(u64),
}

impl fmt::Display for Drop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(n) => write!(f, "packet {n}"),
            Self::Data(n) => write!(f, "data segment {n}"),
            Self::Tail(n) => write!(f, "tail of burst {n}"),
            Self::Syn(n) => write!(f, "SYN {n}"),
            Self::Byte(n) => write!(f, "byte {n}"),
        }
    }
}

/// Which pure ACKs are held, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckHold {
    /// BSD of the 1990s: the ACK of a lone segment waits for data to ride on, for a second full-sized segment,
    /// or for the next tick of a timer with this period (200 ms there).
    Heartbeat(Duration),
    /// A delayed ACK that waits this long at most (RFC 1122 4.2.3.2), else as above.
    Delay(Duration),
    /// Only the ACKs of segments that fill a hole wait this long, as receivers of 1998 did: out-of-order
    /// segments are ACKed at once, those that fit at the edge are not.
    HoleFilling(Duration),
}
