//! What an endpoint knows of itself.

use std::time::Duration;

/// Where a connection is in its life (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing yet, or nothing more.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Both may send.
    Established,
    /// A FIN was sent and not acknowledged.
    FinWait1,
    /// A FIN was sent and acknowledged; the peer may go on.
    FinWait2,
    /// The peer has sent its FIN; this side may go on.
    CloseWait,
    /// Both FINs crossed.
    Closing,
    /// The last FIN waits for its ACK.
    LastAck,
    /// Closed, and ready to repeat the last ACK.
    TimeWait,
}

/// What the sender waits for at this instant: the truth that packets only hint at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// The handshake.
    Handshake,
    /// The program: everything written is sent and acknowledged.
    Program,
    /// The ACK of what is in flight; nothing more is written.
    Acknowledgement,
    /// A small segment is held by Nagle's algorithm until what is in flight is acknowledged.
    Nagle,
    /// A small segment is held by a cork (`TCP_CORK`, `MSG_MORE`), or by autocorking.
    Cork,
    /// The congestion window is full.
    CongestionWindow,
    /// The peer's window is full, or too small for a segment.
    ReceiveWindow,
    /// A loss is being repaired, and the window is full.
    Recovery,
    /// A retransmission timer has expired; what was outstanding is being sent again.
    Loss,
}

/// The phase of congestion control, as Linux names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CongestionState {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs, and no loss found yet.
    Disorder,
    /// The window is being reduced after an ECN echo.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// A snapshot, after Linux's `struct tcp_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Where the connection is in its life.
    pub state: State,
    /// The phase of congestion control.
    pub congestion_state: CongestionState,
    /// Congestion window in segments.
    pub congestion_window: u32,
    /// Slow start threshold in segments; `u32::MAX` before the first loss.
    pub slow_start_threshold: u32,
    /// Segments sent and not acknowledged.
    pub unacknowledged: u32,
    /// Segments that the peer holds out of order (by SACK, or by counting duplicate ACKs).
    pub sacked: u32,
    /// Segments taken for lost.
    pub lost: u32,
    /// Retransmitted segments in flight.
    pub retransmitting: u32,
    /// Retransmissions so far.
    pub retransmitted: u32,
    /// Timeouts in a row, not yet answered.
    pub backoff: u32,
    /// Payload bytes of a full segment towards the peer.
    pub mss: u32,
    /// Smoothed round trip (RFC 6298); zero before the first sample.
    pub smoothed_round_trip: Duration,
    /// Round-trip variation (RFC 6298).
    pub round_trip_variation: Duration,
    /// Retransmission timeout, backed off.
    pub timeout: Duration,
    /// The peer's window beyond the first unacknowledged byte, in bytes.
    pub peer_window: u64,
    /// Bytes acknowledged so far, SYN and FIN not counted.
    pub acknowledged: u64,
    /// Bytes received in order so far.
    pub received: u64,
    /// Bytes written and not yet sent.
    pub unsent: u64,
}

impl Info {
    /// Nothing is known but the state.
    pub(super) fn new(state: State) -> Self {
        Self {
            state,
            congestion_state: CongestionState::Open,
            congestion_window: 0,
            slow_start_threshold: u32::MAX,
            unacknowledged: 0,
            sacked: 0,
            lost: 0,
            retransmitting: 0,
            retransmitted: 0,
            backoff: 0,
            mss: 0,
            smoothed_round_trip: Duration::ZERO,
            round_trip_variation: Duration::ZERO,
            timeout: Duration::ZERO,
            peer_window: 0,
            acknowledged: 0,
            received: 0,
            unsent: 0,
        }
    }
}

/// Something an endpoint did that its packets do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in ns.
    pub time: u64,
    /// What.
    pub kind: EventKind,
}

/// What happened; offsets count the stream's bytes, the SYN being 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A segment was sent again, and why.
    Retransmitted {
        /// Its first byte.
        start: u64,
        /// What made the sender do it.
        trigger: Trigger,
    },
    /// The window fell back after idle time.
    IdleRestart,
    /// The window was reduced because the network marked packets (RFC 3168).
    EcnReduced,
    /// A retransmission turned out to be spurious; the window was restored.
    Undone,
    /// An ACK that had waited was sent, so long after the data.
    DelayedAck {
        /// ns between the data and its ACK.
        waited: u64,
    },
}

/// What made the sender send a segment again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// Duplicate ACKs or SACKs.
    FastRetransmit,
    /// The retransmission timer (RFC 6298).
    Timeout,
    /// The probe for a lost tail (RFC 8985 section 7).
    TailLossProbe,
    /// The persist timer.
    Persist,
}
