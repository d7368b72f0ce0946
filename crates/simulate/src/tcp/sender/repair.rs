//! What is lost, and what becomes of the window: fast retransmit and recovery (RFC 5681 3.2, RFC 6582, RFC 6675,
//! RFC 6937, RFC 8985), ECN (RFC 3168), and taking back what was not needed (RFC 3522, RFC 3708).
//!
//! The order of judgement is Linux's (`tcp_ack`, `tcp_fastretrans_alert`): what has arrived, whether the episode is
//! over, what is lost, what the window becomes.

use std::ops::Range;

use super::super::info::{CongestionState, EventKind, Trigger};
use super::super::stack::{Counting, Repair};
use super::flight::Delivered;
use super::window::Acked;
use super::{Ack, Sender};

/// RFC 5681 3.2: so many duplicate ACKs mean a loss.
const DUPLICATES: u32 = 3;

/// An episode of loss.
#[derive(Debug, Default)]
pub(super) struct Repairing {
    state: CongestionState,
    /// The episode is over when this offset is acknowledged (`recover`, RFC 6582).
    point: u64,
    /// Duplicate ACKs of a peer without SACK: each means a segment that has left the network.
    duplicates: u32,
    rate: Rate,
    /// The window and threshold before the episode.
    before: (u32, u32),
    /// When the episode's first retransmission was sent, in ns.
    first_repeat: Option<u64>,
    /// Retransmissions of the episode that the peer has not said to be duplicates.
    unjudged: u32,
    /// RFC 8985 6.2: send time and end of the latest segment sent among those delivered, and its round trip.
    rack: Option<(u64, u64, u64)>,
    reordering_seen: bool,
    /// A probe for a lost tail is out until this is acknowledged; whether it was a retransmission.
    probe: Option<(u64, bool)>,
    /// One retransmission may leave whatever the window says.
    urgent: bool,
    /// When new data was last acknowledged, in ns.
    forward_at: Option<u64>,
}

/// Proportional rate reduction (RFC 6937 section 3).
#[derive(Debug, Default)]
struct Rate {
    before: u32,
    delivered: u32,
    sent: u32,
}

impl Repairing {
    pub(super) fn state(&self) -> CongestionState {
        self.state
    }

    pub(super) fn duplicates(&self) -> u32 {
        self.duplicates
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
            for block in ack.sacks {
                self.flight.sack(block.clone(), &mut delivered);
            }
        }
        while self.pushes.front().is_some_and(|push| *push <= self.una) {
            self.pushes.pop_front();
        }
        let advanced = self.una > una_before;
        let round_trip = self.take_sample(now, &delivered);
        self.update_rack(now, &delivered);
        if advanced {
            self.round_trip.forward();
            self.repairing.forward_at = Some(now);
        }
        let is_duplicate =
            !advanced && had_flight && !ack.occupies && !window_moved && delivered.segments == 0;
        self.settle_probe(ack, duplicate.is_some());
        self.undo_if_spurious(now, ack, duplicate.is_some(), advanced);
        if ack.congestion_echo && self.agreed.ecn {
            self.reduce_for_mark(now);
        }
        self.leave_when_done(ack);
        self.count_duplicates(advanced, is_duplicate, &delivered);
        self.find_losses(now, advanced);
        let news = delivered.segments + u32::from(is_duplicate && !self.uses_sack());
        self.set_window(now, advanced, news, lost_before, round_trip, &delivered);
    }

    /// A round trip, from a segment that was sent once only (Karn; RFC 6298 section 3).
    fn take_sample(&mut self, now: u64, delivered: &Delivered) -> Option<u64> {
        let sent = delivered.sampled?;
        let round_trip = now - sent;
        self.round_trip.sample(round_trip, self.una, self.next);
        Some(round_trip)
    }

    /// A first SACK block that tells of a duplicate (RFC 2883 section 4).
    fn duplicate_block(&self, ack: &Ack<'_>) -> Option<Range<u64>> {
        let first = ack.sacks.first().filter(|_| self.uses_sack())?;
        let within =
            ack.sacks.get(1).is_some_and(|second| second.start <= first.start && first.end <= second.end);
        (first.end <= ack.number || within).then(|| first.clone())
    }

    /// The tail-loss probe is answered (RFC 8985 7.4): if a retransmission arrived as the only copy, something was
    /// lost and the window must shrink.
    fn settle_probe(&mut self, ack: &Ack<'_>, is_duplicate: bool) {
        let Some((end, was_repeat)) = self.repairing.probe else { return };
        if !was_repeat || is_duplicate {
            if ack.number >= end || is_duplicate {
                self.repairing.probe = None;
            }
        } else if ack.number > end || (ack.number == end && !ack.occupies) {
            self.repairing.probe = None;
            if self.repairing.state < CongestionState::Reduced {
                self.begin_reduction(CongestionState::Reduced);
            }
        }
    }

    /// Takes back a reduction whose cause was no loss.
    fn undo_if_spurious(&mut self, now: u64, ack: &Ack<'_>, is_duplicate: bool, advanced: bool) {
        let Some(first_repeat) = self.repairing.first_repeat.filter(|_| self.settings.undo) else { return };
        if self.repairing.state < CongestionState::Recovery {
            return;
        }
        if is_duplicate {
            self.repairing.unjudged = self.repairing.unjudged.saturating_sub(1);
        }
        // RFC 3522: the echo is older than the first retransmission.
        let echo_is_older = advanced
            && ack.echo.is_some_and(|echo| {
                let sent = self.timestamp_of(first_repeat);
                sent.is_some_and(|sent| echo.wrapping_sub(sent).cast_signed() < 0)
            });
        let all_duplicates = is_duplicate && self.repairing.unjudged == 0;
        if echo_is_older || all_duplicates {
            let (window, threshold) = self.repairing.before;
            self.window.size = self.window.size.max(window);
            self.window.threshold = threshold;
            self.end_episode();
            self.flight.change_all(|sent| {
                sent.lost = false;
                sent.resent = false;
            });
            self.note(now, EventKind::Undone);
        }
    }

    fn end_episode(&mut self) {
        self.repairing.state = CongestionState::Open;
        self.repairing.first_repeat = None;
        self.repairing.unjudged = 0;
        self.repairing.duplicates = 0;
        self.repairing.urgent = false;
    }

    /// RFC 3168 6.1.2: once a window.
    fn reduce_for_mark(&mut self, now: u64) {
        if self.repairing.state < CongestionState::Reduced && self.una > self.repairing.point {
            self.begin_reduction(CongestionState::Reduced);
            self.say_reduced = true;
            self.note(now, EventKind::EcnReduced);
        }
    }

    fn begin_reduction(&mut self, state: CongestionState) {
        if self.repairing.state < CongestionState::Reduced {
            self.repairing.before = (self.window.size, self.window.threshold);
            self.repairing.first_repeat = None;
            self.repairing.unjudged = 0;
        }
        let out = self.flight_size();
        self.repairing.rate = Rate { before: self.window.size, ..Rate::default() };
        self.window.threshold = self.window.reduced_threshold(out);
        self.repairing.state = state;
        self.repairing.point = self.next;
        if !self.settings.proportional_rate_reduction {
            self.window.size = self.window.threshold;
        }
    }

    /// What the threshold is taken of: Linux halves its window, BSD and RFC 5681 what is in flight.
    fn flight_size(&self) -> u32 {
        match self.settings.counting {
            Counting::Segments => u32::MAX,
            Counting::Bytes => {
                let bytes: u64 = self.flight.iter().map(|sent| u64::from(sent.payload())).sum();
                bytes.div_ceil(u64::from(self.agreed.mss.max(1))) as u32
            }
        }
    }

    /// Leaves an episode whose end is acknowledged.
    fn leave_when_done(&mut self, ack: &Ack<'_>) {
        let point = self.repairing.point;
        if self.una < point {
            return;
        }
        match self.repairing.state {
            CongestionState::Open | CongestionState::Disorder => {}
            CongestionState::Loss => self.end_episode(),
            CongestionState::Reduced => {
                if self.una > point || !ack.congestion_echo {
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

    fn complete_reduction(&mut self) {
        self.window.size = self.window.threshold.min(self.repairing.before.0.max(1));
        self.end_episode();
    }

    /// Without SACK the count of duplicate ACKs stands for what the peer has.
    fn count_duplicates(&mut self, advanced: bool, is_duplicate: bool, delivered: &Delivered) {
        if self.uses_sack() {
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

    /// Marks what is lost, and enters recovery.
    fn find_losses(&mut self, now: u64, advanced: bool) {
        if self.uses_rack() {
            self.find_losses_by_time(now);
        } else if self.uses_sack() {
            self.find_losses_by_count();
        } else {
            self.find_losses_by_duplicates(advanced);
        }
        let state = self.repairing.state;
        if self.flight.lost() > 0 && state < CongestionState::Recovery {
            if self.settings.repair == Repair::Tahoe {
                return self.collapse(now);
            }
            self.begin_reduction(CongestionState::Recovery);
            self.repairing.urgent = true;
        } else if state <= CongestionState::Disorder {
            let disorder = self.flight.sacked() > 0 || self.repairing.duplicates > 0;
            self.repairing.state = if disorder { CongestionState::Disorder } else { CongestionState::Open };
        }
    }

    /// Fast retransmit by duplicate ACKs, and the next hole on a partial ACK (RFC 6582 3.2).
    fn find_losses_by_duplicates(&mut self, advanced: bool) {
        let is_fast =
            self.repairing.state < CongestionState::Recovery && self.repairing.duplicates >= DUPLICATES;
        let is_partial =
            self.repairing.state == CongestionState::Recovery && advanced && self.una < self.repairing.point;
        if is_partial && matches!(self.settings.repair, Repair::Reno) {
            // The first new ACK ends it (RFC 5681 3.2 step 6): further holes need duplicates of their own.
            self.window.size = self.window.threshold;
            return self.end_episode();
        }
        let may_repeat = self.flight.first().is_some_and(|sent| !sent.lost);
        if (is_fast || is_partial) && may_repeat {
            self.flight.change(0, |sent| {
                sent.lost = true;
                sent.resent = false;
            });
            self.repairing.urgent |= is_partial;
        }
    }

    /// RFC 6675 section 4, `IsLost`: three SACKed segments lie above it.
    fn find_losses_by_count(&mut self) {
        let mut above = 0;
        for index in (0..self.flight.len() as usize).rev() {
            let Some(sent) = self.flight.get(index).copied() else { break };
            if sent.sacked {
                above += 1;
            } else if above >= DUPLICATES && !sent.lost {
                self.flight.change(index, |sent| sent.lost = true);
            }
        }
        // RFC 6582 for what SACK cannot show: a partial ACK means that the next one is lost too.
        let is_partial = self.repairing.state == CongestionState::Recovery && self.una < self.repairing.point;
        let head = self
            .flight
            .first()
            .filter(|sent| !sent.sacked && !sent.lost && sent.end <= self.flight.highest_sacked());
        if is_partial && head.is_some() {
            self.flight.change(0, |sent| sent.lost = true);
        }
    }

    /// RFC 8985 6.2 step 2 to 4.
    fn update_rack(&mut self, now: u64, delivered: &Delivered) {
        self.repairing.reordering_seen |= delivered.reordered;
        let Some((sent, end, was_repeat)) = delivered.latest else { return };
        let round_trip = now - sent;
        // The ACK may be that of the first copy.
        if was_repeat && self.round_trip.shortest().is_some_and(|shortest| round_trip < shortest) {
            return;
        }
        if self.repairing.rack.is_none_or(|(known, known_end, _)| (sent, end) > (known, known_end)) {
            self.repairing.rack = Some((sent, end, round_trip));
        }
    }

    /// RFC 8985 6.2 step 5, with Linux's reordering window. Also what the reordering timer calls.
    pub(super) fn find_losses_by_time(&mut self, now: u64) {
        self.timers.reordering = None;
        let Some((sent, end, round_trip)) = self.repairing.rack else { return };
        let patience = round_trip + self.reordering_window();
        let mut longest = 0;
        for index in 0..self.flight.len() as usize {
            let Some(other) = self.flight.get(index).copied() else { break };
            let is_waiting = !other.sacked && (!other.lost || other.resent);
            if !is_waiting || (other.last_sent, other.end) >= (sent, end) {
                continue;
            }
            let deadline = other.last_sent + patience;
            if deadline <= now {
                self.flight.change(index, |sent| {
                    sent.lost = true;
                    sent.resent = false;
                });
            } else {
                longest = longest.max(deadline);
            }
        }
        if longest > 0 {
            self.timers.reordering = Some(longest);
        }
    }

    /// RFC 8985 6.2 step 4: none once three are SACKed or recovery has begun, as long as no reordering was seen;
    /// else a quarter of the shortest round trip.
    fn reordering_window(&self) -> u64 {
        let sure = self.repairing.state >= CongestionState::Recovery || self.flight.sacked() >= DUPLICATES;
        if !self.repairing.reordering_seen && sure {
            return 0;
        }
        let shortest = self.round_trip.shortest().unwrap_or(0);
        (shortest / 4).min(self.round_trip.smoothed().unwrap_or(0))
    }

    /// After the reordering timer: what it found may begin recovery.
    pub(super) fn recover_if_lost(&mut self) {
        if self.flight.lost() > 0 && self.repairing.state < CongestionState::Recovery {
            self.begin_reduction(CongestionState::Recovery);
            self.repairing.urgent = true;
        }
        if self.repairing.state == CongestionState::Recovery && self.settings.proportional_rate_reduction {
            self.reduce_proportionally(0, false, true);
        }
    }

    fn set_window(
        &mut self,
        now: u64,
        advanced: bool,
        news: u32,
        lost_before: u32,
        round_trip: Option<u64>,
        delivered: &Delivered,
    ) {
        let is_reducing =
            matches!(self.repairing.state, CongestionState::Recovery | CongestionState::Reduced);
        if is_reducing {
            if self.settings.proportional_rate_reduction && news > 0 {
                let newly_lost = self.flight.lost() > lost_before;
                self.reduce_proportionally(news, advanced, newly_lost);
            }
        } else if advanced {
            let segments = if self.uses_sack() { delivered.segments } else { delivered.cumulative };
            self.window.grow(Acked {
                now,
                segments,
                round_trip: round_trip.or(self.round_trip.latest()),
                shortest: self.round_trip.shortest(),
                una: self.una,
                next: self.next,
            });
        }
    }

    /// RFC 6937 section 3, with Linux's conservative bound.
    fn reduce_proportionally(&mut self, news: u32, advanced: bool, newly_lost: bool) {
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
        let again = self.repairing.state == CongestionState::Loss && self.una < self.repairing.point;
        if !again {
            self.begin_reduction(CongestionState::Loss);
        }
        self.repairing.state = CongestionState::Loss;
        self.repairing.point = self.next;
        self.repairing.duplicates = 0;
        self.repairing.urgent = false;
        self.repairing.probe = None;
        self.window.collapse();
        let recent = self.uses_rack().then(|| self.repairing.rack.map_or(0, |rack| rack.2)).unwrap_or(0);
        let head = self.flight.first().map_or(0, |sent| sent.start);
        let window = self.reordering_window();
        self.flight.change_all(|sent| {
            // RACK does not take for lost what left less than a round trip ago (Linux's tcp_timeout_mark_lost).
            let is_recent = sent.start != head && recent > 0 && sent.last_sent + recent + window > now;
            if !is_recent {
                sent.lost = true;
                sent.resent = false;
            }
        });
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
            }
            index += 1;
            if self.flight.lost() == 0 {
                return;
            }
        }
    }
}
