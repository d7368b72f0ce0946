//! How well the analysis agrees, as recorded, a point below what was measured (half a point of all time): a mend of the
//! simulated endpoint makes other connections of the same seeds. These figures may only rise.

use tcpwhy_simulate::truth::Line;

use crate::kept::Kept;

/// Of captures of one kind.
pub(crate) struct Floors {
    /// Percent of all time that is booked right.
    pub(crate) overall: f64,
    /// Percent of the time on each line that is booked on it.
    pub(crate) lines: &'static [(Line, f64)],
}

/// Captures that show each frame once, from the first on.
pub(crate) const WHOLE: Floors = Floors {
    overall: 90.3,
    lines: &[
        (Line::Handshake, 98.7),
        (Line::ClientApp, 98.0),
        (Line::ServerApp, 96.3),
        (Line::Network, 92.5),
        (Line::Queueing, 1.3),
        (Line::Nagle, 76.6),
        (Line::DelayedAck, 84.6),
        (Line::Cwnd, 79.2),
        (Line::Rwnd, 81.6),
        (Line::Recovery, 80.8),
        (Line::Rto, 80.2),
        (Line::Transfer, 85.2),
    ],
};

/// Captures that do not; what is hardly ever booked right (`queueing`) has no floor in them.
pub(crate) const fn of(kept: Kept) -> &'static Floors {
    match kept {
        Kept::Lacking => &LACKING,
        Kept::Twice => &TWICE,
        Kept::Middle => &MIDDLE,
    }
}

/// Frames that arrived are not in the capture.
const LACKING: Floors = Floors {
    overall: 85.1,
    lines: &[
        (Line::Handshake, 98.0),
        (Line::ClientApp, 93.6),
        (Line::ServerApp, 92.4),
        (Line::Network, 91.2),
        (Line::Nagle, 63.4),
        (Line::DelayedAck, 76.9),
        (Line::Cwnd, 69.1),
        (Line::Rwnd, 77.3),
        (Line::Recovery, 81.4),
        (Line::Rto, 70.8),
        (Line::Transfer, 81.3),
    ],
};

/// Each frame is in the capture again within microseconds.
const TWICE: Floors = Floors {
    overall: 88.8,
    lines: &[
        (Line::Handshake, 98.8),
        (Line::ClientApp, 98.1),
        (Line::ServerApp, 96.1),
        (Line::Network, 93.1),
        (Line::Nagle, 68.7),
        (Line::DelayedAck, 81.9),
        (Line::Cwnd, 73.9),
        (Line::Rwnd, 78.2),
        (Line::Recovery, 83.4),
        (Line::Rto, 74.5),
        (Line::Transfer, 86.8),
    ],
};

/// The capture begins in the middle of a connection. Without its SYN no window's scale is known, and mostly no base round trip:
/// `rwnd` is never booked right, and little of `nagle` is.
const MIDDLE: Floors = Floors {
    overall: 67.6,
    lines: &[
        (Line::ClientApp, 96.4),
        (Line::ServerApp, 87.5),
        (Line::Network, 91.8),
        (Line::Nagle, 10.1),
        (Line::DelayedAck, 60.2),
        (Line::Cwnd, 55.5),
        (Line::Recovery, 73.8),
        (Line::Rto, 54.4),
        (Line::Transfer, 47.9),
    ],
};
