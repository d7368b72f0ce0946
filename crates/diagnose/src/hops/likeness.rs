//! What speaks for it that two connections carry one conversation.

use std::collections::BTreeMap;

use super::Hop;
use super::candidates::share_host;
use super::clocks::Clocks;
use super::passage::{APART, Passage};
use super::stream::Piece;

/// Pieces that came at a moment, or with a length, that nobody could foretell, and left so: so many cannot be chance.
const DISTINCT: u64 = 8;
/// A pause is out of the ordinary if it differs from the usual one by so many times what the proxy's own delays vary.
const OUT_OF_ORDINARY: i64 = 4;
/// A proxy connects for its client, and closes, within this time. ns.
const SOON: i64 = 1_000_000_000;
/// Clocks of computers that are set at all (NTP, a hypervisor) agree within this. ns.
const SET: i64 = 1_000_000_000;
/// Kinds of evidence that are enough.
const ENOUGH: usize = 2;
/// Pieces that left and whose coming is known, from which on a conclusion is drawn.
const FEWEST: usize = 8;

/// How well two connections fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Likeness {
    /// The proxy's address is the same on both hops.
    shares_host: bool,
    /// The second began when the first had begun, as if on its behalf.
    begins: bool,
    /// Its end was passed on.
    ends: bool,
    /// Pieces out of the ordinary that are the same on both.
    distinct: u64,
    /// Pieces compared, of both directions.
    compared: usize,
    /// Both directions carried something.
    both_ways: bool,
    /// The clocks agree as far as those of computers do.
    is_set: bool,
    /// What bytes took on average in both directions together, as far as clocks tell, ns: the smaller, the likelier.
    pub(super) took: i64,
}

impl Likeness {
    /// Of two hops whose bytes `passages` compare, to the server and to the client.
    pub(super) fn of(hops: [&Hop; 2], passages: &[Passage<'_>; 2], clocks: &Clocks) -> Self {
        let is_one_clock = hops[0].place.capture == hops[1].place.capture;
        let starts = passages[0].hops.map(|hop| hop.start);
        // By how much the second hop seems to begin later, and how much of that is the clocks': as little as can be.
        let later = starts[1].saturating_sub(starts[0]);
        let (least, most) = clocks.ahead();
        let ahead = if is_one_clock {
            later
        } else {
            least.unwrap_or(i64::MIN).max(later.saturating_neg()).min(most.unwrap_or(i64::MAX))
        };
        let began = if is_one_clock { later } else { ahead.saturating_neg() };
        let ages: Vec<Vec<i64>> = passages.iter().map(ages).collect();
        let means = [mean(&ages[0]), mean(&ages[1])];
        Self {
            shares_host: share_host(hops[0].ends[1], hops[1].ends[0])
                && !share_host(hops[0].ends[0], hops[1].ends[0]),
            begins: (-APART..=SOON).contains(&began),
            ends: passages.iter().all(closes),
            distinct: (0..2).map(|direction| distinct(&passages[direction], means[direction])).sum(),
            compared: ages.iter().map(Vec::len).sum(),
            both_ways: ages.iter().all(|ages| !ages.is_empty()),
            is_set: is_one_clock || ahead.saturating_add(later).saturating_abs() <= SET,
            took: means[0].saturating_add(means[1]).saturating_add(clocks.round().unwrap_or(0)),
        }
    }

    /// Whether that is enough to say that they carry one conversation. Where clocks do not agree, their difference is what
    /// the bytes make of it, and then beginnings and ends are no evidence of their own.
    pub(super) fn is_enough(&self) -> bool {
        self.kinds(self.is_set) >= ENOUGH
    }

    /// Whether it would be, if the clocks agreed.
    pub(super) fn wants_clocks(&self) -> bool {
        !self.is_enough() && self.kinds(true) >= ENOUGH
    }

    /// How many kinds of evidence there are; none where too little was compared.
    fn kinds(&self, is_set: bool) -> usize {
        if self.compared < FEWEST || !(self.shares_host || self.both_ways) {
            return 0;
        }
        let kinds = [self.shares_host, self.distinct >= DISTINCT, is_set && self.begins, is_set && self.ends];
        kinds.iter().filter(|is_there| **is_there).count()
    }
}

fn ages(passage: &Passage<'_>) -> Vec<i64> {
    passage.sink().pieces.iter().filter_map(|piece| passage.age_of_last(piece)).collect()
}

fn mean(ages: &[i64]) -> i64 {
    let sum: i128 = ages.iter().map(|age| i128::from(*age)).sum();
    i64::try_from(sum / ages.len().max(1) as i128).unwrap_or(i64::MAX)
}

/// Whether the end of what came was passed on as the end of what left, and soon.
fn closes(passage: &Passage<'_>) -> bool {
    let ends = passage.source().closed.zip(passage.sink().closed);
    ends.is_some_and(|(came, left)| passage.age(came, left) <= SOON)
}

/// Pieces that came out of the ordinary and left as they had come: with a length that is not the usual one, or after a pause
/// that is not.
fn distinct(passage: &Passage<'_>, mean: i64) -> u64 {
    let came = &passage.source().pieces;
    let usual = commonest(came);
    let pause = median_pause(came);
    let much = mean.saturating_mul(OUT_OF_ORDINARY).max(APART);
    let is_odd = |at: usize| {
        let before = at.checked_sub(1).map(|before| came[before].there);
        let is_odd_pause = before.is_some_and(|before| {
            came[at].there.saturating_sub(before).saturating_sub(pause).saturating_abs() > much
        });
        Some(came[at].len()) != usual || is_odd_pause
    };
    let left = passage.sink().pieces.iter().filter(|piece| !piece.late);
    let same = left.filter(|piece| {
        let at = came.partition_point(|came| came.bytes.1 < piece.bytes.1);
        came.get(at).is_some_and(|came| came.bytes.1 == piece.bytes.1) && is_odd(at)
    });
    same.count() as u64
}

/// The length that most pieces have.
fn commonest(pieces: &[Piece]) -> Option<u64> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    pieces.iter().for_each(|piece| *counts.entry(piece.len()).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(length, _)| length)
}

fn median_pause(pieces: &[Piece]) -> i64 {
    let mut pauses: Vec<i64> =
        pieces.windows(2).map(|pair| pair[1].there.saturating_sub(pair[0].there)).collect();
    pauses.sort_unstable();
    pauses.get(pauses.len() / 2).copied().unwrap_or(0)
}
