//! What becomes of the window in an episode of loss, or at a mark: halved at once (RFC 5681 3.2), by proportional rate
//! reduction (RFC 6937), once a window at marks (RFC 3168 6.1.2), down to one segment after a timeout (RFC 5681 3.1).

use super::super::info::{CongestionState, EventKind};
use super::super::stack::Counting;
use super::Sender;
use super::window::Acked;

/// Proportional rate reduction (RFC 6937 section 3).
#[derive(Debug, Default)]
pub(super) struct Rate {
    pub(super) before: u32,
    pub(super) delivered: u32,
    pub(super) sent: u32,
}

impl Sender {
    /// RFC 3168 6.1.2: once a window.
    pub(super) fn reduce_for_mark(&mut self, now: u64) {
        if self.repairing.state < CongestionState::Reduced && self.una > self.repairing.point {
            self.begin_reduction(CongestionState::Reduced);
            // Nothing was sent again: no DSACK takes this back.
            self.repairing.first_repeat = None;
            self.say_reduced = true;
            self.note(now, EventKind::EcnReduced);
        }
    }

    pub(super) fn begin_reduction(&mut self, state: CongestionState) {
        if self.repairing.state < CongestionState::Reduced {
            self.repairing.before = (self.window.size, self.window.threshold);
            self.repairing.first_repeat = None;
            self.repairing.unjudged = 0;
        }
        let usable = self.usable_window();
        self.repairing.rate = Rate { before: self.window.size, ..Rate::default() };
        self.window.threshold = self.window.reduced_threshold(usable);
        self.repairing.state = state;
        self.repairing.point = self.next;
        if !self.settings.proportional_rate_reduction {
            self.window.size = self.window.threshold;
        }
    }

    /// Fast recovery begins, and one repair leaves whatever the window says.
    pub(super) fn begin_recovery(&mut self) {
        if self.repairing.state == CongestionState::Reduced {
            // The window is being reduced already (tcp_enter_recovery).
            self.repairing.state = CongestionState::Recovery;
            self.repairing.point = self.next;
        } else {
            self.begin_reduction(CongestionState::Recovery);
        }
        self.repairing.urgent = true;
    }

    /// What bounds the window that is halved, in segments: the peer's window (Net/3's `tcp_input`), where bytes are
    /// counted; Linux halves its own window.
    pub(super) fn usable_window(&self) -> u32 {
        match self.settings.counting {
            Counting::Segments => u32::MAX,
            Counting::Bytes => {
                let offered = self.peer.edge.saturating_sub(self.una);
                u32::try_from(offered / u64::from(self.agreed.mss.max(1))).unwrap_or(u32::MAX)
            }
        }
    }

    pub(super) fn complete_reduction(&mut self) {
        self.window.size = self.window.threshold.min(self.repairing.before.0.max(1));
        self.end_episode();
    }

    pub(super) fn set_window(
        &mut self,
        now: u64,
        advanced: bool,
        news: u32,
        lost_before: u32,
        round_trip: Option<u64>,
    ) {
        let acked = Acked {
            now,
            segments: news,
            round_trip,
            shortest: self.round_trip.shortest(),
            una: self.una,
            next: self.next,
        };
        self.window.note_round_trip(acked);
        let is_reducing =
            matches!(self.repairing.state, CongestionState::Recovery | CongestionState::Reduced);
        if is_reducing {
            if self.settings.proportional_rate_reduction && news > 0 {
                let newly_lost = self.flight.lost() > lost_before;
                self.reduce_proportionally(news, advanced, newly_lost);
            }
        } else if advanced {
            self.window.grow(acked);
        }
    }

    /// RFC 6937 section 3, with Linux's conservative bound.
    pub(super) fn reduce_proportionally(&mut self, news: u32, advanced: bool, newly_lost: bool) {
        let pipe = self.flight.in_network().segments.saturating_sub(self.repairing.duplicates);
        let threshold = self.window.threshold;
        let rate = &mut self.repairing.rate;
        rate.delivered += news;
        let may_send = if pipe > threshold {
            let share =
                (u64::from(threshold) * u64::from(rate.delivered)).div_ceil(u64::from(rate.before.max(1)));
            (share as u32).saturating_sub(rate.sent)
        } else {
            let owed =
                rate.delivered.saturating_sub(rate.sent).max(news) + u32::from(advanced && !newly_lost);
            owed.min(threshold - pipe)
        };
        // The first repair always leaves.
        let least = u32::from(rate.sent == 0);
        self.window.size = pipe + may_send.max(least);
    }

    /// Everything is taken for lost, and the window begins with one segment: after a timeout (RFC 5681 3.1), and at
    /// Tahoe's fast retransmit.
    pub(super) fn collapse(&mut self, now: u64) {
        // Linux of today reduces once a window (tcp_enter_loss), others for each segment that is first lost to the
        // timer (RFC 5681 3.1).
        let is_once = self.settings.proportional_rate_reduction;
        let least = if is_once { CongestionState::Reduced } else { CongestionState::Loss };
        let again = self.repairing.state >= least && self.una < self.repairing.point;
        if !again {
            self.begin_reduction(CongestionState::Loss);
        }
        // RFC 2018 section 8: after a timeout, what the peer has said to have does not count if it does not keep it.
        if self.flight.has_reneged() {
            self.flight.forget_sacks();
        }
        self.repairing.state = CongestionState::Loss;
        self.repairing.point = self.next;
        self.repairing.duplicates = 0;
        self.repairing.urgent = false;
        self.repairing.probe = None;
        let recent = self.rack.filter(|_| self.uses_rack()).map_or(0, |rack| rack.round_trip);
        let head = self.flight.first().map_or(0, |sent| sent.start);
        self.flight.change_all(|sent| {
            // RACK does not take for lost what left less than a round trip ago (Linux's tcp_timeout_mark_lost).
            let is_recent = sent.start != head && sent.last_sent + recent > now;
            if !is_recent {
                sent.lost = true;
                sent.resent = false;
            }
        });
        self.window.collapse(self.flight.in_network().segments);
    }
}
