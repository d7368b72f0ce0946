//! What an ACK means for the window: recovery (RFC 5681 3.2, RFC 6582, RFC 6675, RFC 6937), ECN (RFC 3168), and taking
//! back what was not needed (RFC 3522, RFC 3708).
//!
//! The order of judgement is Linux's (`tcp_ack`, `tcp_fastretrans_alert`): what has arrived, whether the episode is
//! over, what is lost, what the window becomes.

use std::ops::Range;

use super::super::info::{CongestionState, EventKind, Trigger};
use super::super::stack::Repair;
use super::flight::Delivered;
use super::reduction::Rate;
use super::{Ack, Sender};

/// An episode of loss.
#[derive(Debug, Default)]
pub(super) struct Repairing {
    pub(super) state: CongestionState,
    /// The episode is over when this offset is acknowledged (`recover`, RFC 6582).
    pub(super) point: u64,
    /// Duplicate ACKs of a peer without SACK: each means a segment that has left the network.
    pub(super) duplicates: u32,
    pub(super) rate: Rate,
    /// The window and threshold before the episode.
    pub(super) before: (u32, u32),
    /// When the episode's first retransmission was sent, in ns.
    pub(super) first_repeat: Option<u64>,
    /// Retransmissions of the episode that the peer has not said to be duplicates.
    pub(super) unjudged: u32,
    /// A probe for a lost tail is out until this is acknowledged; whether it was a retransmission.
    pub(super) probe: Option<(u64, bool)>,
    /// One retransmission may leave whatever the window says.
    pub(super) urgent: bool,
    /// When new data was last acknowledged, in ns.
    pub(super) forward_at: Option<u64>,
}

impl Repairing {
    pub(super) fn state(&self) -> CongestionState {
        self.state
    }

    pub(super) fn point(&self) -> u64 {
        self.point
    }

    /// Whether fast recovery is under way and something of before it is still unacknowledged from `una` on.
    pub(super) fn has_holes(&self, una: u64) -> bool {
        self.state == CongestionState::Recovery && una < self.point
    }

    pub(super) fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// One retransmission leaves whatever the window says, if so.
    pub(super) fn hurry(&mut self, hurry: bool) {
        self.urgent |= hurry;
    }

    /// Outside of an episode: is anything out of order?
    pub(super) fn note_disorder(&mut self, sacked: bool) {
        if self.state <= CongestionState::Disorder {
            let disorder = sacked || self.duplicates > 0;
            self.state = if disorder { CongestionState::Disorder } else { CongestionState::Open };
        }
    }

    /// New data was sent.
    pub(super) fn note_sent(&mut self) {
        self.rate.sent += 1;
    }

    /// Segments that have left the network by the count of duplicate ACKs. Before recovery that is limited transmit
    /// (RFC 3042), which not every stack does.
    pub(super) fn duplicates_left_network(&self, limited_transmit: bool) -> u32 {
        if limited_transmit || self.state >= CongestionState::Recovery { self.duplicates } else { 0 }
    }

    pub(super) fn note_retransmission(&mut self, now: u64) {
        self.first_repeat.get_or_insert(now);
        self.unjudged += 1;
        self.rate.sent += 1;
        self.urgent = false;
    }

    pub(super) fn probe_sent(&mut self, end: u64, is_repeat: bool) {
        self.probe = Some((end, is_repeat));
    }

    pub(super) fn forward_at(&self) -> Option<u64> {
        self.forward_at
    }

    pub(super) fn has_probe(&self) -> bool {
        self.probe.is_some()
    }
}

impl Sender {
    /// Whether the peer's SACK blocks are used.
    pub(super) fn uses_sack(&self) -> bool {
        self.agreed.sack && self.settings.repair == Repair::Sack
    }

    pub(super) fn uses_rack(&self) -> bool {
        self.uses_sack() && self.settings.rack
    }

    /// An ACK that is not old.
    pub(super) fn repair(&mut self, now: u64, ack: &Ack<'_>, window_moved: bool) {
        let had_flight = !self.flight.is_empty();
        let una_before = self.una;
        let lost_before = self.flight.lost();
        let mut delivered = Delivered::default();
        let duplicate = self.duplicate_block(ack);
        self.una = ack.number;
        self.flight.acknowledge(ack.number, &mut delivered);
        if self.uses_sack() {
            // In their order on the line, lest a lower block of the same ACK looks like reordering.
            let mut blocks = ack.sacks.to_vec();
            blocks.sort_by_key(|block| block.start);
            for block in blocks {
                self.flight.sack(block, &mut delivered);
            }
        }
        while self.pushes.front().is_some_and(|push| *push <= self.una) {
            self.pushes.pop_front();
        }
        let advanced = self.una > una_before;
        let counted = self.repairing.duplicates;
        let round_trip = self.take_sample(now, ack, &delivered, advanced);
        self.update_rack(now, &delivered);
        if advanced {
            self.repairing.forward_at = Some(now);
        }
        let is_duplicate =
            !advanced && had_flight && !ack.occupies && !window_moved && delivered.segments == 0;
        self.settle_probe(ack, duplicate.is_some(), is_duplicate);
        self.undo_if_spurious(now, ack, duplicate.is_some(), advanced);
        if ack.congestion_echo && self.agreed.ecn {
            self.reduce_for_mark(now);
        }
        self.leave_when_done();
        self.count_duplicates(advanced, is_duplicate, &delivered);
        self.find_losses(now, advanced);
        let news = match advanced {
            _ if self.uses_sack() => delivered.segments,
            // One segment filled the hole; the others were counted by their duplicate ACKs (tcp_remove_reno_sacks).
            true => delivered.cumulative.saturating_sub(counted).max(1),
            false => u32::from(is_duplicate),
        };
        // The SYN is no data that would open the window (RFC 5681 3.1).
        let advanced = advanced && una_before > 0;
        self.set_window(now, advanced, news, lost_before, round_trip);
    }

    /// A round trip, from segments that were sent once only (Karn; RFC 6298 section 3), else from the echoed timestamp
    /// (RFC 7323 section 4). The oldest segment makes the timeout, so that it allows for delayed ACKs; the latest says
    /// how long the path is, which is returned in ns (`tcp_clean_rtx_queue`, `tcp_ack_update_rtt`).
    fn take_sample(&mut self, now: u64, ack: &Ack<'_>, delivered: &Delivered, advanced: bool) -> Option<u64> {
        let clean = Some(delivered.acknowledged).filter(|_| !delivered.repeated);
        let oldest = clean.and_then(|clean| clean.oldest).or(delivered.sacked.oldest);
        let latest = delivered.sacked.latest.or(clean.and_then(|clean| clean.latest));
        let (long, short) = match (oldest, latest) {
            (Some(oldest), Some(latest)) => (now - oldest, now - latest),
            _ => {
                let echoed = self.echoed(now, ack.echo.filter(|_| advanced)?)?;
                (echoed, echoed)
            }
        };
        self.round_trip.note_shortest(short);
        self.round_trip.sample(long, self.una, self.next, self.window.size);
        Some(short)
    }

    /// How long ago the peer's echo was sent, in ns.
    fn echoed(&self, now: u64, echo: u32) -> Option<u64> {
        /// The clock may not have ticked since; Linux takes a millisecond then.
        const LEAST: u64 = 1_000_000;
        let clock = self.agreed.timestamps.filter(|_| echo != 0)?;
        let ticks = u64::try_from(clock.at(now).wrapping_sub(echo).cast_signed()).ok()?;
        Some((ticks * clock.tick).max(LEAST))
    }

    /// A first SACK block that tells of a duplicate (RFC 2883 section 4).
    fn duplicate_block(&self, ack: &Ack<'_>) -> Option<Range<u64>> {
        let first = ack.sacks.first().filter(|_| self.uses_sack())?;
        let within =
            ack.sacks.get(1).is_some_and(|second| second.start <= first.start && first.end <= second.end);
        (first.end <= ack.number || within).then(|| first.clone())
    }

    /// The tail-loss probe is answered (RFC 8985 7.4). A probe that was a repeat is followed by a duplicate ACK or a
    /// DSACK where the first copy had arrived as well; when the ACKs go on without, something was lost and the window
    /// must shrink.
    fn settle_probe(&mut self, ack: &Ack<'_>, reports_duplicate: bool, is_duplicate: bool) {
        let Some((end, was_repeat)) = self.repairing.probe.filter(|(end, _)| ack.number >= *end) else {
            return;
        };
        if !was_repeat || reports_duplicate || is_duplicate {
            self.repairing.probe = None;
        } else if ack.number > end {
            self.repairing.probe = None;
            if self.repairing.state < CongestionState::Reduced {
                self.begin_reduction(CongestionState::Reduced);
                self.complete_reduction();
            }
        }
    }

    /// Takes back a reduction whose cause was no loss.
    fn undo_if_spurious(&mut self, now: u64, ack: &Ack<'_>, is_duplicate: bool, advanced: bool) {
        let Some(first_repeat) = self.repairing.first_repeat.filter(|_| self.settings.undo) else { return };
        let is_over = self.repairing.state < CongestionState::Recovery;
        if is_duplicate {
            self.repairing.unjudged = self.repairing.unjudged.saturating_sub(1);
        }
        // RFC 3522: the echo is older than the first retransmission.
        let echo_is_older = advanced
            && !is_over
            && ack.echo.is_some_and(|echo| {
                let sent = self.timestamp_of(first_repeat);
                sent.is_some_and(|sent| echo.wrapping_sub(sent).cast_signed() < 0)
            });
        // RFC 3708: the peer had all that was sent again. It may say so after the episode (tcp_try_undo_dsack).
        let all_duplicates = is_duplicate && self.repairing.unjudged == 0;
        if echo_is_older || all_duplicates {
            let (window, threshold) = self.repairing.before;
            self.window.size = self.window.size.max(window);
            self.window.threshold = self.window.threshold.max(threshold);
            self.end_episode();
            self.repairing.first_repeat = None;
            self.flight.change_all(|sent| {
                sent.lost = false;
                sent.resent = false;
            });
            self.note(now, EventKind::Undone);
        }
    }

    pub(super) fn end_episode(&mut self) {
        self.repairing.state = CongestionState::Open;
        self.repairing.duplicates = 0;
        self.repairing.urgent = false;
    }

    /// Leaves an episode whose end is acknowledged.
    fn leave_when_done(&mut self) {
        let point = self.repairing.point;
        if self.una < point {
            return;
        }
        match self.repairing.state {
            CongestionState::Open | CongestionState::Disorder => {}
            CongestionState::Loss => self.end_episode(),
            CongestionState::Reduced => {
                // Held until something beyond is acknowledged, for the CWR flag to reach the peer.
                if self.una > point {
                    self.complete_reduction();
                }
            }
            CongestionState::Recovery => {
                // Without SACK, duplicate ACKs of what was repaired may still come: RFC 6582 section 6 and Linux
                // wait until something beyond the point is acknowledged.
                if self.uses_sack() || self.una > point || self.settings.repair != Repair::NewReno {
                    self.complete_reduction();
                } else {
                    self.repairing.duplicates = 0;
                    self.window.size = self.window.threshold;
                }
            }
        }
    }

    /// Without SACK the count of duplicate ACKs stands for what the peer has.
    fn count_duplicates(&mut self, advanced: bool, is_duplicate: bool, delivered: &Delivered) {
        // After a timeout everything is sent again anyway (RFC 6582 3.2 step 4).
        if self.uses_sack() || self.repairing.state == CongestionState::Loss {
            return;
        }
        if is_duplicate && self.settings.repair != Repair::TimerOnly {
            let most = self.flight.len().saturating_sub(1);
            self.repairing.duplicates = (self.repairing.duplicates + 1).min(most.max(1));
        }
        if advanced {
            self.repairing.duplicates = match self.repairing.state {
                // RFC 6582 3.2 step 3: deflated by what was acknowledged, the repaired segment aside.
                CongestionState::Recovery => {
                    self.repairing.duplicates.saturating_sub(delivered.cumulative.saturating_sub(1))
                }
                _ => 0,
            };
        }
    }

    /// After the reordering timer: what it found may begin recovery.
    pub(super) fn recover_if_lost(&mut self) {
        if self.flight.lost() > 0 && self.repairing.state < CongestionState::Recovery {
            self.begin_recovery();
            if self.settings.proportional_rate_reduction {
                // tcp_rack_reo_timeout counts one delivery.
                self.reduce_proportionally(1, false, true);
            }
        }
    }

    /// Sends again what is taken for lost, as far as the window allows.
    pub(super) fn send_repairs(&mut self, now: u64) {
        if self.repairing.state < CongestionState::Recovery {
            return;
        }
        let trigger = match self.repairing.state {
            CongestionState::Loss => Trigger::Timeout,
            _ => Trigger::FastRetransmit,
        };
        let mut index = 0;
        while let Some(sent) = self.flight.get(index).copied() {
            let is_due = sent.lost && !sent.resent && !sent.sacked;
            if is_due {
                if !self.repairing.urgent && !self.has_window(u64::from(sent.payload())) {
                    return;
                }
                self.retransmit(now, index, trigger);
                if index == 0 {
                    self.arm_retransmission(now);
                }
            }
            index += 1;
            if self.flight.lost() == 0 {
                return;
            }
        }
    }
}
