//! Claims on time become booked time: every instant of a connection's life exactly once.
//!
//! The two directions resolve their waits at different moments, so claims arrive out of order. They wait in a
//! short list until everything before some instant is known, and are then booked from the past forward.

use super::bookings::Recorder;

/// Where time is booked while a connection is being read. Finer than the report's lines in four places that
/// only the whole connection can decide: who spoke after a journey (its part beyond the true base round trip
/// was that program's), how much of a hold was the receiver's delayed ACK, whether what followed a late ACK had
/// been held at all, and whether an answer after 200 ms was corked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Slot {
    Handshake,
    App0,
    App1,
    Idle,
    Travel0,
    Travel1,
    /// Travel before what nobody waited for.
    TravelIdle,
    Hold,
    Cwnd,
    Rwnd,
    Recovery,
    Rto,
    Transfer,
    Unexplained,
    /// From here on the rare ones. What a server said long after it was spoken to: an answer or a notice.
    Late,
    Maybe0,
    Maybe1,
    Nagle,
    Cork0,
    Cork1,
    Queueing,
    DelayedAck,
}

impl Slot {
    /// Whether the bytes of the same sender that flow meanwhile have the instant: without the wait there would only be
    /// more of them in a queue.
    fn yields(self) -> bool {
        matches!(self, Self::Hold | Self::Nagle | Self::DelayedAck | Self::Cwnd | Self::Rwnd)
    }
}

/// Number of slots.
pub(crate) const SLOTS: usize = COMMON + RARE;
/// Number of those that many connections have time on.
const COMMON: usize = Slot::Unexplained as usize + 1;
/// Number of the others.
const RARE: usize = Slot::DelayedAck as usize + 1 - COMMON;

impl Slot {
    /// Every slot.
    pub(crate) const ALL: [Self; SLOTS] = [
        Self::Handshake,
        Self::App0,
        Self::App1,
        Self::Idle,
        Self::Travel0,
        Self::Travel1,
        Self::TravelIdle,
        Self::Hold,
        Self::Cwnd,
        Self::Rwnd,
        Self::Recovery,
        Self::Rto,
        Self::Transfer,
        Self::Unexplained,
        Self::Late,
        Self::Maybe0,
        Self::Maybe1,
        Self::Nagle,
        Self::Cork0,
        Self::Cork1,
        Self::Queueing,
        Self::DelayedAck,
    ];

    /// Whether each stretch of it is divided between two lines in the end.
    pub(crate) fn is_divided(self) -> bool {
        matches!(
            self,
            Self::Hold | Self::Maybe0 | Self::Maybe1 | Self::Travel0 | Self::Travel1 | Self::TravelIdle
        )
    }
}

/// Whose claim counts where several cover one instant; the lower rank wins, then the earlier beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// TCP withholds something.
    Blocked,
    /// Bytes flow.
    Flowing,
    /// Something travels.
    Travelling,
    /// A program has not spoken yet.
    Program,
}

/// A claim on the time from `from` to `until` (ns).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) from: i64,
    pub(crate) until: i64,
    pub(crate) slot: Slot,
    pub(crate) rank: Rank,
    /// The end that waits or whose data or program it is.
    pub(crate) whose: u8,
}

/// Claims kept at once: a blocked one of each direction, and travelling, flowing and program claims around
/// them; when a hostile or very lossy capture needs more, the oldest are booked early.
const CLAIMS: usize = 5;

/// Undecided claims, field by field: a claim has 19 bytes, and every connection has room for several.
#[derive(Clone, Debug)]
struct Claims {
    from: [i64; CLAIMS],
    until: [i64; CLAIMS],
    what: [(Slot, Rank, u8); CLAIMS],
    count: u8,
}

impl Claims {
    fn none() -> Self {
        Self {
            from: [0; CLAIMS],
            until: [0; CLAIMS],
            what: [(Slot::Unexplained, Rank::Program, 0); CLAIMS],
            count: 0,
        }
    }

    #[inline]
    fn len(&self) -> usize {
        usize::from(self.count)
    }

    #[inline]
    fn get(&self, index: usize) -> Claim {
        let (slot, rank, whose) = self.what[index];
        Claim { from: self.from[index], until: self.until[index], slot, rank, whose }
    }

    #[inline]
    fn set(&mut self, index: usize, claim: Claim) {
        (self.from[index], self.until[index]) = (claim.from, claim.until);
        self.what[index] = (claim.slot, claim.rank, claim.whose);
    }

    #[inline]
    fn push(&mut self, claim: Claim) {
        self.set(self.len(), claim);
        self.count += 1;
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = Claim> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// ns on each slot. The rare ones are kept apart, so that most connections pay for a pointer only.
#[derive(Clone, Debug, Default)]
struct Booked {
    common: [i64; COMMON],
    rare: Option<Box<[i64; RARE]>>,
}

impl Booked {
    fn on(&self, slot: Slot) -> i64 {
        let rare = || self.rare.as_ref().map_or(0, |rare| rare[slot as usize - COMMON]);
        self.common.get(slot as usize).copied().unwrap_or_else(rare)
    }

    #[inline]
    fn on_mut(&mut self, slot: Slot) -> &mut i64 {
        match slot as usize {
            common if common < COMMON => &mut self.common[common],
            rare => &mut self.rare.get_or_insert_default()[rare - COMMON],
        }
    }
}

/// One connection's booked time and its undecided claims.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// Everything before this instant is booked.
    frontier: i64,
    booked: Booked,
    claims: Claims,
    /// Keeps what is booked, where somebody asked for it.
    recorder: Option<Box<Recorder>>,
}

impl Timeline {
    /// A timeline that begins at `first`.
    pub(crate) fn new(first: i64) -> Self {
        Self { frontier: first, booked: Booked::default(), claims: Claims::none(), recorder: None }
    }

    /// Keeps the intervals that are booked from now on, `most` of them as they are.
    pub(crate) fn record(&mut self, most: usize) {
        self.recorder.get_or_insert_with(|| Box::new(Recorder::new(most)));
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        let rare = self.booked.rare.as_ref().map_or(0, |rare| size_of_val(&**rare));
        rare + self.recorder.as_ref().map_or(0, |recorder| size_of::<Recorder>() + recorder.heap())
    }

    /// What was kept.
    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_deref()
    }

    /// ns booked on a slot.
    pub(crate) fn booked(&self, slot: Slot) -> i64 {
        self.booked.on(slot)
    }

    /// Takes a claim. What is already booked stays booked.
    #[inline]
    pub(crate) fn claim(&mut self, claim: Claim) {
        if claim.until <= claim.from.max(self.frontier) {
            return;
        }
        let may_join = |old: &Claim| old.slot == claim.slot && old.rank == claim.rank && old.joins(&claim);
        let known = self.claims.iter().position(|old| may_join(&old));
        if let Some(index) = known {
            let old = self.claims.get(index);
            let (from, until) = (old.from.min(claim.from), old.until.max(claim.until));
            self.claims.set(index, Claim { from, until, ..old });
            return;
        }
        if self.claims.len() == CLAIMS {
            self.make_room();
            return self.claim(claim);
        }
        self.claims.push(claim);
    }

    /// Books the claim that ends first, early. Where all of them reach into what has not come yet, and may never come, the
    /// weakest is forgotten instead.
    #[cold]
    fn make_room(&mut self) {
        let oldest = self.claims.iter().map(|old| old.until).min().unwrap_or(self.frontier);
        self.book_until(oldest.min(self.past()));
        if self.claims.len() < CLAIMS {
            return;
        }
        let strength = |index: &usize| (self.claims.what[*index].1, self.claims.from[*index]);
        let weakest = (0..CLAIMS).max_by_key(strength).unwrap_or(0);
        self.claims.set(weakest, self.claims.get(CLAIMS - 1));
        self.claims.count -= 1;
    }

    /// The latest instant that has passed for sure. Waits are told when they are over, and a program's silence when it speaks;
    /// what travels or flows may be due later than the connection lives.
    fn past(&self) -> i64 {
        let past = self.claims.iter().map(|claim| match claim.rank {
            Rank::Blocked | Rank::Program => claim.until,
            Rank::Travelling => claim.from,
            Rank::Flowing => self.frontier,
        });
        past.max().unwrap_or(self.frontier)
    }

    /// Books everything before `until`, which has passed. Instants nobody claimed are unexplained.
    #[inline]
    pub(crate) fn book_until(&mut self, until: i64) {
        if self.frontier >= until || self.book_only_claim(until) {
            return;
        }
        while self.frontier < until {
            let (slot, whose, stop) = self.strongest(until);
            self.book(slot, whose, stop);
        }
        self.drop_spent();
    }

    /// Moves the frontier: the one place where time is booked.
    #[inline]
    fn book(&mut self, slot: Slot, whose: u8, until: i64) {
        *self.booked.on_mut(slot) += until - self.frontier;
        if let Some(recorder) = &mut self.recorder {
            recorder.take(slot, whose, self.frontier, until);
        }
        self.frontier = until;
    }

    /// The common case, a single claim up to this very instant: no search.
    #[inline]
    fn book_only_claim(&mut self, until: i64) -> bool {
        let only = self.claims.get(0);
        let fits = self.claims.count == 1 && only.from <= self.frontier && only.until == until;
        if fits && only.rank != Rank::Travelling {
            self.book(only.slot, only.whose, until);
            self.claims.count = 0;
            return true;
        }
        false
    }

    /// Which slot the instant at the frontier belongs to, whose it is, and until when that holds.
    fn strongest(&self, until: i64) -> (Slot, u8, i64) {
        let mut stop = until;
        let mut best: Option<Claim> = None;
        let mut speaker = None;
        let claims = &self.claims;
        let covers = |claim: &Claim| claim.from <= self.frontier && claim.until > self.frontier;
        let flows = |whose| {
            claims.iter().any(|flow| flow.slot == Slot::Transfer && flow.whose == whose && covers(&flow))
        };
        for claim in claims.iter() {
            if claim.from > self.frontier {
                stop = stop.min(claim.from);
            } else if claim.until > self.frontier {
                if claim.rank == Rank::Program {
                    speaker = Some(claim);
                }
                if claim.slot.yields() && flows(claim.whose) {
                    continue;
                }
                if best.is_none_or(|held| (claim.rank, claim.from) < (held.rank, held.from)) {
                    best = Some(claim);
                }
            }
        }
        let Some(best) = best else { return (Slot::Unexplained, 0, stop) };
        let mut slot = best.slot;
        stop = stop.min(best.until);
        if let (Slot::Travel0, Some(speaker)) = (best.slot, speaker) {
            slot = match speaker.slot {
                Slot::Idle => Slot::TravelIdle,
                _ if speaker.whose == 1 => Slot::Travel1,
                _ => Slot::Travel0,
            };
            stop = stop.min(speaker.until);
        }
        (slot, best.whose, stop)
    }

    fn drop_spent(&mut self) {
        let mut kept = 0;
        for index in 0..self.claims.len() {
            if self.claims.until[index] > self.frontier {
                self.claims.set(kept, self.claims.get(index));
                kept += 1;
            }
        }
        self.claims.count = kept as u8;
    }
}

impl Claim {
    /// Whether the two touch or overlap, so that one claim can stand for both.
    fn joins(&self, other: &Self) -> bool {
        self.from <= other.until && other.from <= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(from: i64, until: i64, slot: Slot, rank: Rank) -> Claim {
        Claim { from, until, slot, rank, whose: 0 }
    }

    #[test]
    fn the_wait_that_began_first_wins_among_blocked_ones() {
        let mut timeline = Timeline::new(0);
        timeline.claim(claim(20, 60, Slot::Rwnd, Rank::Blocked));
        timeline.claim(claim(0, 40, Slot::Hold, Rank::Blocked));
        timeline.book_until(60);
        assert_eq!((timeline.booked(Slot::Hold), timeline.booked(Slot::Rwnd)), (40, 20));
    }

    #[test]
    fn blocked_beats_flowing_beats_travelling_beats_program() {
        let mut timeline = Timeline::new(0);
        timeline.claim(Claim { whose: 1, ..claim(0, 100, Slot::App1, Rank::Program) });
        timeline.claim(claim(10, 50, Slot::Travel0, Rank::Travelling));
        timeline.claim(claim(30, 60, Slot::Transfer, Rank::Flowing));
        timeline.claim(claim(40, 45, Slot::Recovery, Rank::Blocked));
        timeline.book_until(100);
        assert_eq!(timeline.booked(Slot::App1), 10 + 40);
        assert_eq!(timeline.booked(Slot::Travel1), 20, "travel belongs to whoever speaks next");
        assert_eq!(timeline.booked(Slot::Transfer), 25);
        assert_eq!(timeline.booked(Slot::Recovery), 5);
    }

    #[test]
    fn a_window_yields_to_the_bytes_of_its_own_sender_that_flow_meanwhile() {
        let mut timeline = Timeline::new(0);
        timeline.claim(claim(0, 100, Slot::Cwnd, Rank::Blocked));
        timeline.claim(claim(30, 50, Slot::Transfer, Rank::Flowing));
        timeline.claim(Claim { whose: 1, ..claim(60, 80, Slot::Transfer, Rank::Flowing) });
        timeline.book_until(100);
        assert_eq!((timeline.booked(Slot::Cwnd), timeline.booked(Slot::Transfer)), (80, 20));
    }

    #[test]
    fn unclaimed_time_is_unexplained() {
        let mut timeline = Timeline::new(5);
        timeline.claim(claim(7, 8, Slot::Cwnd, Rank::Blocked));
        timeline.book_until(10);
        assert_eq!(timeline.booked(Slot::Unexplained), 4);
    }

    #[test]
    fn a_claim_on_booked_time_changes_nothing() {
        let mut timeline = Timeline::new(0);
        timeline.claim(claim(0, 10, Slot::App0, Rank::Program));
        timeline.book_until(10);
        timeline.claim(claim(0, 12, Slot::Recovery, Rank::Blocked));
        timeline.book_until(12);
        assert_eq!((timeline.booked(Slot::App0), timeline.booked(Slot::Recovery)), (10, 2));
    }

    fn any_claim() -> impl Strategy<Value = Claim> {
        (0..1_000_i64, 0..300_i64, 0..SLOTS, 0..4_u8).prop_map(|(from, length, slot, rank)| {
            let slots = [Slot::Handshake, Slot::App0, Slot::App1, Slot::Hold, Slot::Cwnd, Slot::Rto];
            let ranks = [Rank::Blocked, Rank::Flowing, Rank::Travelling, Rank::Program];
            claim(from, from + length, slots[slot % slots.len()], ranks[usize::from(rank)])
        })
    }

    proptest! {
        #[test]
        fn whatever_is_claimed_every_instant_is_booked_once(
            claims in prop::collection::vec((any_claim(), any::<bool>()), 0..60),
        ) {
            let mut timeline = Timeline::new(0);
            for (claim, settle) in claims {
                timeline.claim(claim);
                if settle {
                    timeline.book_until(claim.from);
                }
            }
            timeline.book_until(2_000);
            let booked = Slot::ALL.map(|slot| timeline.booked(slot));
            prop_assert_eq!(booked.iter().sum::<i64>(), 2_000);
            prop_assert!(booked.iter().all(|booked| *booked >= 0));
        }

        #[test]
        fn nothing_is_booked_beyond_the_present(
            claims in prop::collection::vec((any_claim(), 0..1_300_i64), 0..60),
        ) {
            let (mut timeline, mut present) = (Timeline::new(0), 0);
            for (claim, time) in claims {
                present = present.max(time).max(claim.from);
                let is_over = matches!(claim.rank, Rank::Blocked | Rank::Program);
                let until = if is_over { claim.until.min(present) } else { claim.until };
                timeline.claim(Claim { until, ..claim });
                prop_assert!(timeline.frontier <= present);
            }
            timeline.book_until(present);
            let booked = Slot::ALL.map(|slot| timeline.booked(slot));
            prop_assert_eq!(booked.iter().sum::<i64>(), present);
        }
    }
}
