//! What a receiver has and lacks, by its SACK blocks (RFC 2018).

use std::collections::BTreeMap;

use tcpwhy_diagnose::flow::series::{Mark, Sack};

/// Ranges beyond the ACK that are remembered: an ACK reports four at most, and a window with more holes than this is
/// hostile or beyond what a picture can show. The lowest are dropped.
const MOST: usize = 256;

/// Bytes that a receiver lacked for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    /// First byte, and the one after the last.
    pub(super) bytes: (i64, i64),
    /// From when until when, ns.
    pub(super) from: i64,
    pub(super) until: i64,
}

/// Finds the holes that a receiver's packets tell of: `acks` are all of them, `sacks` the blocks in them.
pub(super) fn each_hole<'a>(
    acks: impl Iterator<Item = &'a Mark>,
    sacks: impl Iterator<Item = &'a Sack>,
    mut found: impl FnMut(Hole),
) {
    let (mut board, mut open) = (Scoreboard::default(), BTreeMap::new());
    let mut sacks = sacks.peekable();
    let (mut highest, mut now) = (i64::MIN, 0);
    for mark in acks {
        let Some(ack) = mark.ack else { continue };
        (highest, now) = (highest.max(ack), mark.time);
        while let Some(sack) = sacks.next_if(|sack| sack.time <= now) {
            board.take(sack);
        }
        board.acked(highest);
        if open.is_empty() && board.0.is_empty() {
            continue;
        }
        let holes: Vec<_> = board.holes(highest).collect();
        open.retain(|bytes, from| {
            let is_open = holes.binary_search(bytes).is_ok();
            if !is_open {
                found(Hole { bytes: *bytes, from: *from, until: now });
            }
            is_open
        });
        for bytes in holes {
            open.entry(bytes).or_insert(now);
        }
    }
    for (bytes, from) in open {
        found(Hole { bytes, from, until: now });
    }
}

/// What the receiver of one direction has beyond its ACK, as its ACKs told so far.
#[derive(Debug, Default)]
struct Scoreboard(BTreeMap<i64, i64>);

impl Scoreboard {
    /// Takes a block. One below the ACK reports what came twice (RFC 2883), and is not kept.
    fn take(&mut self, sack: &Sack) {
        let (mut left, mut right) = sack.block;
        self.acked(sack.ack);
        if left >= right || right <= sack.ack {
            return;
        }
        while let Some((&from, &until)) = self.0.range(..=right).next_back()
            && until >= left
        {
            self.0.remove(&from);
            (left, right) = (left.min(from), right.max(until));
        }
        self.0.insert(left, right);
        if self.0.len() > MOST {
            self.0.pop_first();
        }
    }

    /// Everything up to `ack` is there.
    fn acked(&mut self, ack: i64) {
        while let Some(range) = self.0.first_entry()
            && *range.get() <= ack
        {
            range.remove();
        }
    }

    /// What is missing between `ack` and the highest byte that is there.
    fn holes(&self, ack: i64) -> impl Iterator<Item = (i64, i64)> {
        let mut at = ack;
        self.0.iter().filter_map(move |(&from, &until)| {
            let hole = (at, from);
            at = at.max(until);
            (hole.0 < hole.1).then_some(hole)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_diagnose::flow::series::{Kind, TcpFlags};
    use tcpwhy_diagnose::report::Side;

    fn told(blocks: &[(i64, (i64, i64))]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for &(ack, block) in blocks {
            board.take(&Sack { time: 0, from: Side::Client, ack, block });
        }
        board
    }

    #[test]
    fn holes_are_what_no_block_and_no_ack_covers() {
        // 100 is lost, then 300; the third ACK tells of the last block only.
        let board = told(&[(100, (200, 300)), (100, (400, 500)), (100, (500, 600))]);
        assert_eq!(board.holes(100).collect::<Vec<_>>(), [(100, 200), (300, 400)]);
    }

    #[test]
    fn a_mended_hole_is_none() {
        let board = told(&[(100, (200, 300)), (100, (400, 500)), (300, (400, 500))]);
        assert_eq!(board.holes(300).collect::<Vec<_>>(), [(300, 400)]);
        let filled = told(&[(100, (200, 300)), (100, (400, 500)), (100, (250, 450))]);
        assert_eq!(filled.holes(100).collect::<Vec<_>>(), [(100, 200)]);
    }

    #[test]
    fn a_duplicate_report_is_no_block() {
        let board = told(&[(1_000, (500, 700)), (1_000, (900, 100))]);
        assert_eq!(board.holes(1_000).count(), 0);
    }

    #[test]
    fn holes_last_until_they_are_filled() {
        let ack = |time, ack| Mark {
            number: 1,
            time,
            from: Side::Server,
            kind: Kind::Bare,
            flags: TcpFlags(TcpFlags::ACK),
            seq: 1,
            len: 0,
            ack: Some(ack),
            window: None,
        };
        let sack = |time, block| Sack { time, from: Side::Server, ack: 100, block };
        let acks = [ack(0, 100), ack(10, 100), ack(20, 100), ack(50, 300), ack(60, 500), ack(70, 600)];
        let sacks = [sack(10, (200, 300)), sack(20, (400, 500))];
        let mut holes = Vec::new();
        each_hole(acks.iter(), sacks.iter(), |hole| holes.push((hole.bytes, hole.from, hole.until)));
        assert_eq!(holes, [((100, 200), 10, 50), ((300, 400), 20, 60)]);
    }

    #[test]
    fn hostile_blocks_take_no_memory() {
        let blocks: Vec<_> = (0..10_000).map(|n| (0, (n * 10 + 1, n * 10 + 5))).collect();
        assert_eq!(told(&blocks).holes(0).count(), MOST);
    }
}
