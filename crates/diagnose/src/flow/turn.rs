//! Whose turn it is to speak, and what the end of a connection settles.

use super::connection::Connection;
use super::exchange::Spoken;
use super::fact::{Awaited, End, Fact, Facts};
use super::half::NEVER;

impl Connection {
    /// Notes whose turn it is to speak.
    pub(crate) fn turn(&mut self, from: End, now: i64, free: bool, facts: &mut impl Facts) {
        let client = self.client().unwrap_or_else(|| self.take_client(from));
        let spoken = match (free, self.halves[from].last_full) {
            (true, _) => Spoken::Free,
            (false, false) => Spoken::Held,
            (false, true) => Spoken::Stopped,
        };
        let awaited = self.awaited(from, now);
        if from == client {
            self.exchanges.note_reaction(now);
        }
        if self.takes_part(from) {
            self.exchanges.spoke(from == client, now, spoken);
        }
        if awaited == Awaited::Perhaps {
            self.exchanges.begin_late();
        }
        self.spoke(from, now, awaited, facts);
    }

    pub(super) fn spoke(&mut self, end: End, now: i64, awaited: Awaited, facts: &mut impl Facts) {
        self.publish_travel(now, facts);
        facts.take(Fact::Spoke { end, time: now, awaited });
    }

    /// An end closes or resets: nobody waited for that, but perhaps for an answer that did not come.
    pub(super) fn close(&mut self, from: End, now: i64, facts: &mut impl Facts) {
        if self.client() == Some(from) {
            self.exchanges.note_reaction(now);
        }
        match self.awaited_to_the_end() {
            Some(server) => {
                self.note_unanswered(server, now, facts);
                self.exchanges.give_up();
                self.spoke(server, now, Awaited::Yes, facts);
            }
            None => self.spoke(from, now, Awaited::No, facts),
        }
    }

    pub(crate) fn settle(&mut self, now: i64, facts: &mut impl Facts) {
        facts.take(Fact::Settled { until: self.unresolved_since(now) });
    }

    /// Since when some wait has been going on whose cause is not yet known; `now` if there is none.
    #[inline]
    pub(super) fn unresolved_since(&self, now: i64) -> i64 {
        let mut since = now;
        for end in 0..2 {
            let half = &self.halves[end];
            if let Some(repair) = half.repair() {
                let quiet = if repair.quiet_since == NEVER { now } else { repair.quiet_since };
                since = since.min(repair.recover_from).min(quiet).min(half.sent_at.max(self.first));
            } else if let Some(missing_since) =
                half.trouble.as_ref().and_then(|trouble| trouble.holes.since())
            {
                since = since.min(missing_since);
            } else if let Some(probed_since) = half.open_probe() {
                since = since.min(probed_since);
            } else if half.sent_at < since && self.may_be_blocked(end, now) {
                since = half.sent_at;
            }
        }
        since
    }

    /// Whether this side's next segment could still turn out to have been waiting for TCP.
    #[inline]
    fn may_be_blocked(&self, end: End, now: i64) -> bool {
        let half = &self.halves[end];
        if half.closed || half.sent_at == NEVER {
            return false;
        }
        let freed = half.freed_at > half.sent_at;
        half.in_flight() > 0
            || half.edge <= half.next
            || (freed && half.freed_pure && now - half.freed_at <= self.reaction_most(end))
    }

    /// Whose program the end of the capture is waiting for: the receiver of the last data, and whether the other end waits
    /// for it; nobody where no data was seen at all.
    pub(crate) fn whose_turn(&self) -> Option<(End, Awaited)> {
        let sent = self.halves[0].sent_at != NEVER || self.halves[1].sent_at != NEVER;
        let awaited = if self.awaited_to_the_end().is_some() { Awaited::Yes } else { Awaited::No };
        sent.then_some((1 - self.last_spoke(), awaited))
    }

    /// Publishes what is still open when the capture ends.
    pub(crate) fn finish(&mut self, facts: &mut impl Facts) {
        let now = self.last;
        let ends = if self.reset { 0..0 } else { 0..2 };
        for end in ends {
            self.publish_open_repair(end, now, facts);
            self.publish_open_window(end, now, facts);
        }
        if let Some(server) = self.awaited_to_the_end() {
            self.note_unanswered(server, now, facts);
        }
        self.publish_travel(now, facts);
        facts.take(Fact::Settled { until: now });
        self.exchanges.finish();
    }
}
