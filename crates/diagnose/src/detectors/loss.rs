//! What one sender lost: shared by the rules that blame the network for it.

use super::subject::Subject;
use crate::flow::fact::End;

/// Where the capture itself lacks packets, silence and repeats may be its own.
pub(crate) const CONFIDENCE_GAPS: f64 = 0.5;

/// How much of what one side sent was sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// Segments with data, retransmissions too.
    pub(crate) segments: u64,
    /// Retransmissions.
    pub(crate) retransmitted: u64,
    /// Retransmissions that the receiver reported as needless (D-SACK).
    pub(crate) needless: u64,
    /// Whether the capture lacks packets of this connection.
    pub(crate) has_gaps: bool,
}

impl Loss {
    /// What `end` lost.
    pub(crate) fn of(subject: &Subject<'_>, end: End) -> Self {
        let half = subject.half(end);
        let needless = half.trouble.as_ref().map_or(0, |trouble| trouble.needless);
        Self {
            segments: u64::from(half.segments),
            retransmitted: u64::from(half.retransmitted),
            needless: u64::from(needless),
            has_gaps: (0..2).any(|end| super::capture_gap::missing(subject.connection, end) > 0),
        }
    }

    /// Retransmissions that nobody reported as needless.
    pub(crate) fn lost(&self) -> u64 {
        self.retransmitted.saturating_sub(self.needless)
    }

    /// Whether anything was lost at all: where most retransmissions were needless, ACKs were late or segments
    /// out of order, and the network lost nothing that mattered.
    pub(crate) fn is_real(&self) -> bool {
        self.lost() > 0 && self.lost() >= self.needless
    }
}
