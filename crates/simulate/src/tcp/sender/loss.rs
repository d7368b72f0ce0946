//! What is taken for lost: duplicate ACKs (RFC 5681 3.2, RFC 6582), the scoreboard (RFC 6675), time (RFC 8985).

use super::super::info::CongestionState;
use super::super::stack::Repair;
use super::Sender;
use super::flight::Delivered;

/// RFC 5681 3.2: so many duplicate ACKs mean a loss.
const DUPLICATES: u32 = 3;

/// What RACK knows (RFC 8985 6.1): of the latest segment sent among those delivered. Times in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    sent: u64,
    end: u64,
    pub(super) round_trip: u64,
}

impl Sender {
    /// Marks what is lost, and enters recovery.
    pub(super) fn find_losses(&mut self, now: u64, advanced: bool) {
        if self.uses_rack() {
            self.find_losses_by_time(now);
        } else if self.uses_sack() {
            self.find_losses_by_count();
        } else {
            self.find_losses_by_duplicates(advanced);
        }
        if self.flight.lost() > 0 && self.repairing.state() < CongestionState::Recovery {
            if self.settings.repair == Repair::Tahoe {
                return self.collapse(now);
            }
            self.begin_recovery();
        } else {
            self.repairing.note_disorder(self.flight.sacked() > 0);
        }
    }

    /// Fast retransmit by duplicate ACKs, and the next hole on a partial ACK (RFC 6582 3.2).
    fn find_losses_by_duplicates(&mut self, advanced: bool) {
        let (state, point) = (self.repairing.state(), self.repairing.point());
        // RFC 6582 3.2 step 1: duplicates of what an earlier episode has sent again say nothing.
        let is_news =
            self.settings.repair < Repair::NewReno || self.una > point || state == CongestionState::Reduced;
        let is_fast =
            state < CongestionState::Recovery && self.repairing.duplicates() >= DUPLICATES && is_news;
        let is_partial = state == CongestionState::Recovery && advanced && self.una < point;
        if is_partial && self.settings.repair == Repair::Reno {
            // The first new ACK ends it (RFC 5681 3.2 step 6): further holes need duplicates of their own.
            return self.complete_reduction();
        }
        let may_repeat = self.flight.first().is_some_and(|sent| !sent.lost || sent.resent);
        if (is_fast || is_partial) && may_repeat {
            self.flight.change(0, |sent| {
                sent.lost = true;
                sent.resent = false;
            });
            self.repairing.hurry(is_partial);
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
        let is_partial =
            self.repairing.state() == CongestionState::Recovery && self.una < self.repairing.point();
        let highest = self.flight.highest_sacked();
        let is_hole =
            self.flight.first().is_some_and(|sent| !sent.sacked && !sent.lost && sent.end <= highest);
        if is_partial && is_hole {
            self.flight.change(0, |sent| sent.lost = true);
        }
    }

    /// RFC 8985 6.2 step 2 to 4.
    pub(super) fn update_rack(&mut self, now: u64, delivered: &Delivered) {
        self.reordering_seen |= delivered.reordered;
        let Some((sent, end, was_repeat)) = delivered.latest else { return };
        let round_trip = now - sent;
        // The ACK may be that of the first copy.
        if was_repeat && self.round_trip.shortest().is_some_and(|shortest| round_trip < shortest) {
            return;
        }
        if self.rack.is_none_or(|rack| (sent, end) > (rack.sent, rack.end)) {
            self.rack = Some(Rack { sent, end, round_trip });
        }
    }

    /// RFC 8985 6.2 step 5, with Linux's reordering window. Also what the reordering timer calls.
    pub(super) fn find_losses_by_time(&mut self, now: u64) {
        self.timers.reordering = None;
        let Some(rack) = self.rack else { return };
        let patience = rack.round_trip + self.reordering_window();
        let mut longest = 0;
        for index in 0..self.flight.len() as usize {
            let Some(other) = self.flight.get(index).copied() else { break };
            let is_later = (other.last_sent, other.end) >= (rack.sent, rack.end);
            // What lies above it first left later still.
            if is_later && other.repeats == 0 {
                break;
            }
            let is_waiting = !other.sacked && (!other.lost || other.resent);
            if !is_waiting || is_later {
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
        let sure = self.repairing.state() >= CongestionState::Recovery || self.flight.sacked() >= DUPLICATES;
        if !self.reordering_seen && sure {
            return 0;
        }
        let shortest = self.round_trip.shortest().unwrap_or(0);
        (shortest / 4).min(self.round_trip.smoothed().unwrap_or(0))
    }
}
