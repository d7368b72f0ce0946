//! Facts to booked time.
//!
//! A connection's ledger takes the facts of both directions, turns them into claims on time and books every
//! instant on one line: first what TCP withheld (the wait that began first, where both directions wait), then
//! bytes flowing, then data or its ACK travelling, then the program that spoke next. The lines sum to the
//! duration because instants are booked one after the other and nowhere else.

mod bookings;
mod tally;
mod ticks;
mod timeline;

pub use bookings::{Booking, Bookings};
pub use tally::{Case, Tallies, Tally};
pub(crate) use ticks::Ended;
use timeline::{Claim, Rank, Slot, Timeline};

use crate::flow::Connection;
use crate::flow::fact::{Awaited, Cause, End, Fact, Facts, Wait};
use crate::report::Line;

/// Answers after a cork's time are a habit if they are this many times as frequent as other slow ones.
const CORK_SHARE: u64 = 4;

/// ns on each line of the report.
pub type Lines = [i64; Line::ALL.len()];

/// What a slot's time is in the report.
#[derive(Clone, Copy, Debug)]
struct Meaning {
    line: Line,
    /// Where what is not on `line` belongs.
    rest: Line,
    /// How much of it is on `line`, 0 to 1.
    share: f64,
}

/// One connection's ledger.
#[derive(Clone, Debug)]
pub struct Ledger {
    timeline: Timeline,
    /// Until when programs' claims reach.
    spoken: i64,
    /// Journeys claimed for each direction: how many, and ns in all.
    journeys: [(u32, f32); 2],
    /// Waits by cause.
    pub tallies: Tallies,
}

impl Ledger {
    /// A ledger that begins at `first` (ns).
    pub(crate) fn new(first: i64) -> Self {
        Self {
            timeline: Timeline::new(first),
            spoken: first,
            journeys: [(0, 0.0); 2],
            tallies: Tallies::default(),
        }
    }

    /// Bytes on the heap.
    pub(crate) fn heap(&self) -> usize {
        self.timeline.heap() + self.tallies.heap()
    }

    /// Books what is left up to `last`. Nobody spoke after that: the time belongs to `silent`, whose turn it
    /// was, or to nobody.
    pub(crate) fn finish(&mut self, last: i64, silent: Option<(End, Awaited)>) {
        if let Some((end, awaited)) = silent {
            self.speak(end, last, awaited);
        }
        self.timeline.book_until(last);
    }

    fn speak(&mut self, end: End, time: i64, awaited: Awaited) {
        let slot = match awaited {
            Awaited::No => Slot::Idle,
            Awaited::Perhaps => Slot::Late,
            Awaited::Yes if end == 0 => Slot::App0,
            Awaited::Yes => Slot::App1,
        };
        let whose = end as u8;
        self.timeline.claim(Claim { from: self.spoken, until: time, slot, rank: Rank::Program, whose });
        self.spoken = self.spoken.max(time);
    }

    fn wait(&mut self, wait: &Wait) {
        let (slot, rank) = match wait.cause {
            // Within it, timers have the time that they took.
            Cause::Handshake => (Slot::Handshake, Rank::Travelling),
            Cause::NagleHold => (Slot::Hold, Rank::Blocked),
            Cause::MaybeHeld if wait.end == 0 => (Slot::Maybe0, Rank::Blocked),
            Cause::MaybeHeld => (Slot::Maybe1, Rank::Blocked),
            Cause::CorkTimeout if wait.end == 0 => (Slot::Cork0, Rank::Blocked),
            Cause::CorkTimeout => (Slot::Cork1, Rank::Blocked),
            Cause::DelayedAck => (Slot::DelayedAck, Rank::Blocked),
            Cause::CongestionWindow | Cause::SlowStart | Cause::IdleRestart | Cause::AfterLoss => {
                (Slot::Cwnd, Rank::Blocked)
            }
            Cause::ReceiveWindow
            | Cause::ZeroWindow
            | Cause::Unread
            | Cause::SendBuffer
            | Cause::SillyWindow => (Slot::Rwnd, Rank::Blocked),
            Cause::Recovery | Cause::AfterTimer => (Slot::Recovery, Rank::Blocked),
            Cause::Timeout | Cause::TailLoss | Cause::UnseenTimeout | Cause::SynTimeout => {
                (Slot::Rto, Rank::Blocked)
            }
            Cause::Queueing => (Slot::Queueing, Rank::Travelling),
            Cause::Unanswered => (Slot::Unexplained, Rank::Travelling),
            Cause::Transfer => (Slot::Transfer, Rank::Flowing),
            Cause::Program
            | Cause::ProgramPause
            | Cause::LateAnswer
            | Cause::SilentAnswer
            | Cause::NoAnswer => return self.tallies.add(wait),
            // Parts of a repair, whose time is booked as a whole, and what is no wait at all.
            Cause::TailRepair
            | Cause::TimerRepair
            | Cause::LateRepairAck
            | Cause::OneHole
            | Cause::BusyRepair
            | Cause::NeedlessProbe
            | Cause::NeedlessTimer
            | Cause::NeedlessRepair => return self.tallies.add(wait),
        };
        if rank == Rank::Flowing {
            // What lies before bytes that do not join what is known is the next speaker's.
            if wait.from <= self.spoken {
                self.spoken = self.spoken.max(wait.until);
            }
        } else if wait.cause != Cause::Handshake {
            self.tallies.add(wait);
        }
        let (from, until, whose) = (wait.from, wait.until, wait.end as u8);
        self.timeline.claim(Claim { from, until, slot, rank, whose });
    }

    /// Keeps the intervals that are booked from now on, for [`Ledger::bookings`]; `most` of them as they are.
    pub(crate) fn record(&mut self, most: usize) {
        self.timeline.record(most);
    }

    /// The time of `connection`, whose ledger this is, on the report's lines. Sums to its duration.
    pub fn lines(&self, connection: &Connection) -> Lines {
        let mut lines = Lines::default();
        for slot in Slot::ALL {
            let booked = self.timeline.booked(slot);
            if booked > 0 {
                let Meaning { line, rest, share } = self.meaning(slot, connection);
                let part = part_of(booked, share);
                lines[line as usize] += part;
                lines[rest as usize] += booked - part;
            }
        }
        lines
    }

    /// Which lines the time on `slot` belongs to, now that the whole connection is known.
    fn meaning(&self, slot: Slot, connection: &Connection) -> Meaning {
        let app = |end: End| match connection.client().unwrap_or(0) == end {
            true => Line::ClientApp,
            false => Line::ServerApp,
        };
        let share = self.true_share_of_journeys(connection);
        let journey = |rest: Line| Meaning { line: Line::Network, rest, share };
        let corked = |end: End| match self.corked(connection, end) {
            Ended::ByTick => Line::Nagle,
            _ => app(end),
        };
        let held = || Meaning {
            line: Line::Nagle,
            rest: Line::DelayedAck,
            share: connection.round_trip_share_of_holds(),
        };
        let line = match slot {
            Slot::Travel0 => return journey(app(0)),
            Slot::Travel1 => return journey(app(1)),
            Slot::TravelIdle => return journey(Line::Idle),
            Slot::Hold => return held(),
            Slot::Maybe0 if connection.were_held(0) => return held(),
            Slot::Maybe1 if connection.were_held(1) => return held(),
            Slot::Maybe0 => app(0),
            Slot::Maybe1 => app(1),
            Slot::App0 => app(0),
            Slot::App1 => app(1),
            Slot::Idle => Line::Idle,
            Slot::Late if connection.answers_late() => Line::ServerApp,
            Slot::Late => Line::Idle,
            Slot::Cork0 => corked(0),
            Slot::Cork1 => corked(1),
            Slot::Handshake => Line::Handshake,
            Slot::Queueing => Line::Queueing,
            Slot::Nagle => Line::Nagle,
            Slot::DelayedAck => Line::DelayedAck,
            Slot::Cwnd => Line::Cwnd,
            Slot::Rwnd => Line::Rwnd,
            Slot::Recovery => Line::Recovery,
            Slot::Rto => Line::Rto,
            Slot::Transfer => Line::Transfer,
            Slot::Unexplained => Line::Unexplained,
        };
        Meaning { line, rest: line, share: 1.0 }
    }

    /// What ended the waits of `end` that a cork's timer may have ended. Where its program takes long at other times
    /// as well, it has the likelier hand in these.
    pub(crate) fn corked(&self, connection: &Connection, end: End) -> Ended {
        let others = self.tallies.get(Cause::Program, end).map_or(0, |tally| tally.count);
        match self.tallies.get(Cause::CorkTimeout, end) {
            Some(tally) if tally.count >= CORK_SHARE * others => tally.ended(connection.is_near(end)),
            _ => Ended::AnyTime,
        }
    }

    /// All holds of `end`, also those of which only the whole connection tells that they were.
    pub(crate) fn holds(&self, connection: &Connection, end: End) -> Option<Tally> {
        let sure = self.tallies.get(Cause::NagleHold, end);
        let later = self.tallies.get(Cause::MaybeHeld, end).filter(|_| connection.were_held(end));
        match (sure, later) {
            (Some(sure), Some(later)) => Some(sure.clone().with(later)),
            (sure, later) => sure.or(later).cloned(),
        }
    }

    /// All that the program of `end` took to answer: also what had a cork's length and not its timer's phase.
    pub(crate) fn program(&self, connection: &Connection, end: End) -> Option<Tally> {
        let sure = self.tallies.get(Cause::Program, end);
        let alike = self.tallies.get(Cause::CorkTimeout, end);
        let alike = alike.filter(|_| self.corked(connection, end) == Ended::AnyTime);
        match (sure, alike) {
            (Some(sure), Some(alike)) => Some(sure.clone().with(alike)),
            (sure, alike) => sure.or(alike).cloned(),
        }
    }

    /// How much of the time claimed as travelling the shortest round trip of the whole connection bears out:
    /// at first the shortest known one may have been a delayed ACK.
    fn true_share_of_journeys(&self, connection: &Connection) -> f64 {
        let claimed: f64 = self.journeys.iter().map(|journeys| f64::from(journeys.1)).sum();
        let borne_out: f64 =
            (0..2).map(|end| f64::from(self.journeys[end].0) * connection.path_part(end) as f64).sum();
        if claimed > 0.0 { (borne_out / claimed).min(1.0) } else { 1.0 }
    }
}

/// `share` (0 to 1) of `whole` ns.
fn part_of(whole: i64, share: f64) -> i64 {
    ((whole as f64 * share).round() as i64).clamp(0, whole)
}

impl Facts for Ledger {
    #[inline]
    fn take(&mut self, fact: Fact) {
        match fact {
            Fact::Wait(wait) => self.wait(&wait),
            Fact::Hold { wait, late } => {
                self.tallies.add(&wait);
                let Wait { from, until, end, .. } = wait;
                let late = late.clamp(from, until);
                for (slot, from, until) in [(Slot::Nagle, from, late), (Slot::DelayedAck, late, until)] {
                    self.timeline.claim(Claim { from, until, slot, rank: Rank::Blocked, whose: end as u8 });
                }
            }
            Fact::InFlight { end, from, until, by_length } => {
                let (count, total) = &mut self.journeys[end];
                *count = count.saturating_add(1);
                *total += (until - from - by_length) as f32;
                let (slot, whose) = (Slot::Travel0, end as u8);
                self.timeline.claim(Claim { from, until, slot, rank: Rank::Travelling, whose });
            }
            Fact::Spoke { end, time, awaited } => self.speak(end, time, awaited),
            Fact::Settled { until } => self.timeline.book_until(until.min(self.spoken)),
        }
    }
}
