//! Updates that a program wrote one by one at an even pace, and that Nagle's algorithm merged.
//!
//! A unit left with some segment: it had been written by then, and after the segment before had left, which would
//! have taken it along. The periods that fit all of these bounds are few; people choose round ones.

use super::host::{Cause, Host, Piece};

/// Held pieces from which on they make a rhythm.
const FEWEST: usize = 5;
/// Share (in percent) of pieces that are whole multiples of the unit.
const WHOLE: usize = 80;
/// How punctual a program is: timers and busy hosts are late by so much, ns.
const LATE: i64 = 2_000_000;
/// Units whose bounds are compared, each with each.
const COMPARED: usize = 1_000;

/// Units in all: more are no updates but a stream of bytes.
const MOST_UNITS: u64 = 1 << 16;

/// When the oldest and the newest of the possible beats of a side differ: by so much its writes may be moved, ns.
pub(super) type Slack = (i64, i64);

/// Takes a stream's merged updates apart; by how much all of them may have been written sooner and later.
pub(super) fn take_apart(host: &mut Host) -> Option<Slack> {
    let unit = unit(&host.pieces).filter(|_| is_stream(&host.pieces))?;
    let units = units(&host.pieces, unit, host.opened);
    let (period, phase, slack) = beat(&units);
    let mut before = host.opened;
    let mut pieces: Vec<Piece> = Vec::with_capacity(units.len());
    for (number, bounds) in (0..).zip(&units) {
        let foretold = period.map_or(bounds.middle(), |period| phase + number * period);
        let written = foretold.clamp(bounds.earliest, bounds.latest).max(before);
        pieces.push(Piece {
            start: bounds.start,
            end: bounds.end,
            sent: written,
            cause: Cause::Itself(written - before),
            is_held: written < bounds.latest,
            is_corked: false,
        });
        before = written;
    }
    host.pieces = pieces;
    Some(slack)
}

/// One unit, and when it was written.
#[derive(Clone, Copy, Debug)]
struct Unit {
    start: u64,
    end: u64,
    earliest: i64,
    latest: i64,
    /// It left when it was written.
    is_exact: bool,
}

impl Unit {
    fn middle(&self) -> i64 {
        self.earliest + (self.latest - self.earliest) / 2
    }
}

/// Whether what is held goes out on one ACK after the other; pieces of messages take turns with what is not held.
fn is_stream(pieces: &[Piece]) -> bool {
    let by_itself = pieces.iter().all(|piece| matches!(piece.cause, Cause::Itself(_)));
    let held = pieces.iter().filter(|piece| piece.is_held).count();
    let in_a_row = pieces.windows(2).filter(|pair| pair[0].is_held && pair[1].is_held).count();
    by_itself && held >= FEWEST && in_a_row > held - in_a_row
}

/// The smallest piece, where the others are multiples of it.
fn unit(pieces: &[Piece]) -> Option<u64> {
    let unit = pieces.iter().map(|piece| piece.end - piece.start).min().filter(|unit| *unit > 0)?;
    let whole = pieces.iter().filter(|piece| (piece.end - piece.start).is_multiple_of(unit)).count();
    let bytes = pieces.last().map_or(0, |piece| piece.end);
    (whole * 100 >= pieces.len() * WHOLE && bytes / unit <= MOST_UNITS).then_some(unit)
}

fn units(pieces: &[Piece], unit: u64, opened: i64) -> Vec<Unit> {
    let (mut all, mut before) = (Vec::new(), opened);
    for piece in pieces {
        let count = ((piece.end - piece.start) / unit).max(1);
        let exact = !piece.is_held && count == 1;
        for number in 0..count {
            let start = piece.start + number * unit;
            let end = if number + 1 == count { piece.end } else { start + unit };
            let earliest = if exact { piece.sent } else { before };
            all.push(Unit { start, end, earliest, latest: piece.sent, is_exact: exact });
        }
        before = piece.sent;
    }
    all
}

/// The period that fits (none if none does), when the first unit was written, and how far all may be moved.
fn beat(units: &[Unit]) -> (Option<i64>, i64, Slack) {
    let some = &units[..units.len().min(COMPARED)];
    let (mut least, mut most) = (0, i64::MAX);
    for (number, one) in some.iter().enumerate() {
        for (steps, other) in (1..).zip(&some[number + 1..]) {
            least = least.max((other.earliest - one.latest - LATE) / steps);
            most = most.min((other.latest - one.earliest + LATE) / steps);
        }
    }
    if least > most || most <= 0 || most == i64::MAX {
        return (None, 0, widest(units));
    }
    let period = roundest(least, most);
    let moved = |time: i64, number: i64| time - number * period;
    let exact: Vec<i64> = (0..)
        .zip(some)
        .filter(|(_, unit)| unit.is_exact)
        .map(|(number, unit)| moved(unit.latest, number))
        .collect();
    let earliest = (0..).zip(some).map(|(number, unit)| moved(unit.earliest, number)).max().unwrap_or(0);
    let latest = (0..).zip(some).map(|(number, unit)| moved(unit.latest, number)).min().unwrap_or(0);
    if !exact.is_empty() {
        let mut exact = exact;
        exact.sort_unstable();
        return (Some(period), exact[exact.len() / 2], (0, 0));
    }
    let phase = earliest + (latest - earliest) / 2;
    (Some(period), phase, ((earliest - phase).min(0), (latest - phase).max(0)))
}

/// Half of the widest bounds, both ways.
fn widest(units: &[Unit]) -> Slack {
    let half = units.iter().map(|unit| (unit.latest - unit.earliest) / 2).max().unwrap_or(0);
    (-half, half)
}

/// The roundest duration from `least` to `most` ns: people set timers in round numbers. The diagnosis dates updates by
/// the same rule (its `flow/rhythm.rs`); it and the simulator share packets only, and `whatif` takes no diagnosis.
fn roundest(least: i64, most: i64) -> i64 {
    let mut step = 1_000_000_000;
    while step > 1 {
        for part in [1, 2, 5] {
            let round = most - most % (step / part);
            if round >= least && round > 0 {
                return round;
            }
        }
        step /= 10;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// 12 bytes every 100 ms from 20 ms on; what is written until an ACK comes at 210, 410, … leaves with it. The first
    /// leaves at once, 120 and 220 do not.
    #[test]
    fn each_update_is_dated_by_the_beat() {
        let piece = |first: u64, units: u64, sent: i64, is_held: bool| Piece {
            start: 12 * first,
            end: 12 * (first + units),
            sent: sent * MS,
            cause: Cause::Itself(0),
            is_held,
            is_corked: false,
        };
        let mut pieces = vec![piece(0, 1, 20, false)];
        pieces.push(piece(1, 1, 210, true));
        pieces.extend((0..8).map(|k| piece(2 + 2 * k, 2, 410 + 200 * k as i64, true)));
        let mut host = Host { pieces, ..Host::default() };
        assert_eq!(take_apart(&mut host), Some((0, 0)));
        let written: Vec<i64> = host.pieces.iter().map(|piece| piece.sent / MS).collect();
        let expected: Vec<i64> = (0..18).map(|number| 20 + 100 * number).collect();
        assert_eq!(written, expected);
        assert_eq!((host.pieces[17].start, host.pieces[17].end), (204, 216));
    }

    /// Two messages of 50 and 70 bytes at once, the second behind the ACK of the first: pieces take turns.
    #[test]
    fn pieces_of_messages_are_no_stream() {
        let mut host = Host::default();
        for number in 0..10 {
            let (start, sent) = (120 * number, 300 * MS * number as i64);
            let piece = |start, end, sent, is_held| Piece {
                start,
                end,
                sent,
                cause: Cause::Itself(0),
                is_held,
                is_corked: false,
            };
            host.pieces.push(piece(start, start + 50, sent, false));
            host.pieces.push(piece(start + 50, start + 120, sent + 20 * MS, true));
        }
        let before = host.pieces.clone();
        assert_eq!(take_apart(&mut host), None);
        assert_eq!(host.pieces, before);
    }
}
