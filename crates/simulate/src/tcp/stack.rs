//! What tells one TCP implementation from another: every choice and number that decides about its timing.
//!
//! [`super::eras`] names whole sets of them. All times are [`Duration`]s, all sizes bytes unless said otherwise.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::nanos;

/// A TCP implementation with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stack {
    /// Largest payload that it offers to receive, in bytes, before TCP options are taken off (RFC 6691).
    pub mss: u16,
    /// Whether it offers timestamps (RFC 7323), and how fast their clock ticks.
    pub timestamps: Option<Duration>,
    /// The window scale it offers (RFC 7323), as a shift.
    pub window_scale: Option<u8>,
    /// Whether it offers SACK (RFC 2018), as both sender and receiver.
    pub sack: bool,
    /// Whether it asks for, or accepts, ECN (RFC 3168).
    pub ecn: Option<EcnUse>,
    /// When its timers end.
    pub ticks: Ticks,
    /// What its sender does.
    pub sender: Sending,
    /// What its receiver does.
    pub receiver: Receiving,
}

/// When a timer ends that was set for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ticks {
    /// To the nanosecond.
    Exact,
    /// On a multiple of this: so many ticks are counted, and the first may be a short one (BSD's `tcp_slowtimo`, 500
    /// ms; jiffies in Linux of old).
    Every(Duration),
    /// On Linux's timer wheel (`kernel/time/timer.c`, since 4.8): up to a jiffy late, an eighth of the wait where
    /// that is 63 jiffies or more.
    Wheel {
        /// `1 / CONFIG_HZ`.
        jiffy: Duration,
    },
}

impl Ticks {
    /// When a timer ends that is set at `now` for `wait` ns; in ns.
    pub(super) fn deadline(self, now: u64, wait: u64) -> u64 {
        let exact = now.saturating_add(wait);
        match self {
            Self::Exact => exact,
            Self::Every(tick) => {
                let tick = nanos(tick).max(1);
                (now / tick).saturating_add(wait.div_ceil(tick)).saturating_mul(tick)
            }
            Self::Wheel { jiffy } => {
                let jiffy = nanos(jiffy).max(1);
                let delta = wait.div_ceil(jiffy);
                let expires = (now / jiffy).saturating_add(delta);
                let grain = wheel_grain(delta);
                (expires / grain + 1).saturating_mul(grain).saturating_mul(jiffy)
            }
        }
    }
}

/// Jiffies between two slots of the wheel's level for a timer that is so many jiffies away (`LVL_START`: each level
/// has 64 slots and is eight times as coarse as the one before).
fn wheel_grain(delta: u64) -> u64 {
    const FIRST_LEVEL: u64 = 63;
    const COARSER: u64 = 8;
    const LEVELS: u32 = 8;
    (0..LEVELS)
        .map(|level| COARSER.pow(level))
        .find(|grain| delta < FIRST_LEVEL * grain)
        .unwrap_or(COARSER.pow(LEVELS))
}

/// Who begins with ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EcnUse {
    /// Uses it when the peer asks (Linux's default, `tcp_ecn = 2`).
    Accepts,
    /// Asks for it in its own SYN (`tcp_ecn = 1`).
    Asks,
}

/// The sender's choices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sending {
    /// How the congestion window grows and shrinks.
    pub congestion: Congestion,
    /// What the congestion window counts.
    pub counting: Counting,
    /// How losses are repaired when the peer's SACK cannot be used, and whether it is used.
    pub repair: Repair,
    /// Whether proportional rate reduction (RFC 6937) paces the window in recovery.
    pub proportional_rate_reduction: bool,
    /// Whether new data goes out in fast recovery where the window allows it (RFC 6582 3.2 steps 4 and 5). Early
    /// Linux 2.1 sends none while it retransmits (`tcp_snd_test`).
    pub new_data_in_recovery: bool,
    /// Whether new data goes out on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Whether losses are found by time as RACK does (RFC 8985 section 6); needs SACK and `repair` with it.
    pub rack: bool,
    /// Whether a probe is sent for a lost tail (RFC 8985 section 7); needs SACK.
    pub tail_loss_probe: bool,
    /// Whether a spurious retransmission is recognised by timestamps (RFC 3522) or DSACK (RFC 3708), and the
    /// window restored.
    pub undo: bool,
    /// Whether the window grows by what an ACK acknowledges (RFC 3465), or by one step for each ACK.
    pub byte_counting: bool,
    /// Whether a window that is not used neither grows nor stays (RFC 2861; Linux since 2.4).
    pub window_validation: bool,
    /// Initial congestion window in segments (RFC 5681 3.1, RFC 6928).
    pub initial_window: u32,
    /// What becomes of the window after an idle time of one RTO.
    pub idle_restart: IdleRestart,
    /// When small segments are held back.
    pub nagle: Nagle,
    /// How the sender asks a peer whose window is closed.
    pub probe: WindowProbe,
    /// Segments go to the device several at once (TSO), this many or more, and the last of each lot is pushed, as
    /// Linux does since 5.4 (`tcp_min_tso_segs`). `None` where each goes alone.
    pub offload: Option<u32>,
    /// How long the device takes to say that a segment has left; a small segment written meanwhile waits for it
    /// (Linux's autocorking, `tcp_autocorking`). `None` without autocorking.
    pub autocork: Option<Duration>,
    /// The retransmission timer.
    pub timeout: Timeout,
    /// Bytes that may be written and not yet acknowledged; `None` is without limit.
    pub send_buffer: Option<u64>,
}

/// What becomes of the congestion window after an idle time of one RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleRestart {
    /// It stays (`tcp_slow_start_after_idle = 0`).
    Never,
    /// It falls to the initial window when nothing was sent (RFC 5681 section 4.1).
    ToInitial,
    /// It falls to one segment when nothing was *received* (Net/3's `tcp_output`, Linux 2.0's `tcp_send_skb`): an
    /// answer to a request that has just come is not an idle sender's.
    UnlessHeard,
    /// It is halved for each RTO of idle time, not below the initial window (RFC 2861; Linux).
    Halving,
}

/// What is sent into a closed window when the persist timer ends (RFC 9293 section 3.8.6.1). On Linux the same
/// timer ends a cork (`TCP_CORK`, `MSG_MORE`): one RTO after the last ACK, 200 ms at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowProbe {
    /// The number before the first unacknowledged one, without data: the peer answers with its window (Linux).
    OldNumber,
    /// One byte of new data (BSD).
    NewByte {
        /// The shortest wait.
        min: Duration,
        /// The longest wait.
        max: Duration,
    },
}

/// How the congestion window moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// RFC 5681: one segment a round trip, half on loss.
    Reno,
    /// RFC 9438.
    Cubic {
        /// Whether slow start ends when round trips grow (RFC 9406 in spirit; Linux's `hystart`).
        hystart: bool,
    },
    /// No congestion control: only the peer's window limits (before 1988).
    None,
}

/// What counts against the congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Segments of whatever size, as Linux does.
    Segments,
    /// Bytes, as RFC 5681 and BSD do.
    Bytes,
}

/// How a sender repairs losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// The timer only: no fast retransmit (before 1988).
    TimerOnly,
    /// Fast retransmit and then slow start, as in 4.3BSD Tahoe.
    Tahoe,
    /// Fast retransmit and fast recovery, left at the first new ACK (RFC 5681 section 3.2).
    Reno,
    /// Partial ACKs repair the next hole (RFC 6582).
    NewReno,
    /// A scoreboard of what the peer has (RFC 6675), where the peer offers SACK; else as NewReno.
    Sack,
}

/// When a small segment waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// While anything is unacknowledged (RFC 896, RFC 1122 4.2.3.4).
    Rfc896,
    /// The same, but looked at once a write: a tail leaves behind the full segments of its own write (Net/3's
    /// `tcp_output`).
    Bsd,
    /// As RFC 896, but half a segment and more counts as full (Linux 2.1 and 2.2: `tcp_snd_test`).
    HalfSegment,
    /// While a *small* segment is unacknowledged (Minshall's variant: `tcp_minshall_check`, Linux since 2.4).
    Minshall,
    /// Never.
    Off,
}

/// The retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Timeout {
    /// Before there is a round-trip sample, and for a SYN.
    pub initial: Duration,
    /// Never shorter.
    pub min: Duration,
    /// Never longer.
    pub max: Duration,
    /// How it follows the round trips.
    pub estimator: Estimator,
    /// SYNs are repeated so often before the connection is given up.
    pub syn_retries: u32,
    /// Anything else is repeated so often (RFC 1122 4.2.3.5: R2).
    pub retries: u32,
}

/// How the retransmission timeout follows the round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// RFC 6298: the smoothed round trip and four times its deviation.
    Standard,
    /// A quarter more than that, and twice as much while the window is one segment (Linux 2.0 to 2.2:
    /// `tcp_set_rto`).
    LinuxOld,
    /// The deviation is the largest of a round, and the smallest timeout bounds *it* rather than the sum (Linux since
    /// 2.4: `tcp_rtt_estimator`).
    Linux,
}

/// The receiver's choices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Receiving {
    /// When data that came in order is acknowledged.
    pub delayed_ack: DelayedAck,
    /// When the segment that fills a hole is acknowledged.
    pub hole_filled: HoleFilled,
    /// Bytes for data that the program has not read.
    pub buffer: Buffer,
    /// Whether duplicates are reported (RFC 2883).
    pub dsack: bool,
    /// Whether the window grows only as far as a segment or half the buffer is free (RFC 1122 4.2.3.3).
    pub silly_window_avoidance: bool,
}

/// When an ACK waits, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelayedAck {
    /// Never: every segment is acknowledged at once.
    Off,
    /// Until the next tick of a timer with this period (BSD's 200 ms), or until the program's reading has opened the
    /// window by two segments or half the buffer.
    Heartbeat {
        /// The timer's period.
        period: Duration,
    },
    /// So long at most, or until the second segment, of whatever size (Windows: `TcpAckFrequency` 2).
    Delay {
        /// The longest wait.
        delay: Duration,
    },
    /// Linux 2.0: the wait follows the gaps between arriving segments, within bounds (`tcp_delack_estimator`); no
    /// longer than 20 ms after a segment with PSH; until two full segments have arrived.
    LinuxOld {
        /// The shortest wait.
        min: Duration,
        /// The longest wait.
        max: Duration,
    },
    /// Linux 2.1 and 2.2: the same estimate, but the first segment, a duplicate and one out of order are acknowledged
    /// at once, and a small segment with PSH sets the wait to 20 ms.
    Linux21 {
        /// The shortest wait.
        min: Duration,
        /// The longest wait.
        max: Duration,
    },
    /// Linux since 2.4: quick ACKs at the start and after a pause, an adaptive wait later, longer in
    /// conversations ("ping-pong").
    Linux {
        /// `TCP_DELACK_MIN` and `TCP_ATO_MIN`: 40 ms.
        min: Duration,
        /// `TCP_DELACK_MAX`: 200 ms.
        max: Duration,
    },
}

/// When the ACK of a segment that fills a hole leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoleFilled {
    /// At once (RFC 5681 section 4.2).
    AtOnce,
    /// At once as long as other holes remain; the one that fills the last is like any in order (Linux 2.2's
    /// `__tcp_ack_snd_check`, which looks at what is still out of order).
    LastLate,
    /// Like that of any segment that comes in order: it may be delayed (Cardwell 1998).
    Late,
}

/// Room for data that has not been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Buffer {
    /// So many bytes, all of them offered as window.
    Fixed(u64),
    /// Begins with a window of `initial` bytes, which grows by two segments for each full one that arrives, to
    /// `buffer`; that grows with what the program reads in a round trip, to `max` (Linux: `tcp_grow_window`,
    /// `tcp_rcv_space_adjust`).
    Tuned {
        /// The first window.
        initial: u64,
        /// The largest window of the first buffer.
        buffer: u64,
        /// The largest window.
        max: u64,
    },
    /// Memory for segments, those that came out of order included; half of what is free is offered (Linux 2.0 to
    /// 2.2). Behind a hole the window therefore does not move on.
    Memory {
        /// `SO_RCVBUF`.
        bytes: u64,
        /// What a full segment takes beyond its payload: headers and bookkeeping.
        per_segment: u32,
    },
}

/// What a program may set on its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketOption {
    /// `TCP_NODELAY`: no Nagle. Setting it lets go what is held.
    NoDelay(bool),
    /// `TCP_CORK`. Clearing it lets go what is held.
    Cork(bool),
    /// `TCP_QUICKACK`. Setting it sends a delayed ACK.
    QuickAck(bool),
    /// `SO_SNDBUF`, in bytes of payload.
    SendBuffer(u64),
    /// `SO_RCVBUF`, in bytes of payload. Before the handshake.
    ReceiveBuffer(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_wheel_is_coarser_for_longer_waits() {
        let wheel = Ticks::Wheel { jiffy: Duration::from_millis(4) };
        // 40 ms are 10 jiffies: 40 to 44 ms, by where in its jiffy the timer was set.
        assert_eq!(wheel.deadline(0, 40 * MS), 44 * MS);
        assert_eq!(wheel.deadline(3 * MS, 40 * MS), 44 * MS);
        assert_eq!(wheel.deadline(4 * MS, 40 * MS), 48 * MS);
        // 260 ms are 65 jiffies: slots of 8 jiffies.
        assert_eq!(wheel.deadline(0, 260 * MS), 288 * MS);
    }

    #[test]
    fn ticks_end_on_multiples() {
        let slow = Ticks::Every(Duration::from_millis(500));
        // Two ticks: the one at 500 is the first of them.
        assert_eq!(slow.deadline(100 * MS, 1000 * MS), 1000 * MS);
        assert_eq!(slow.deadline(0, 1000 * MS), 1000 * MS);
        assert_eq!(slow.deadline(499 * MS, 1000 * MS), 1000 * MS);
        assert_eq!(slow.deadline(500 * MS, 1200 * MS), 2000 * MS);
    }
}
