//! What holds at one instant, as a vantage can know it, and which line that is.

use super::Line;
use super::watch::{Block, Change, SIDES};
use crate::world::Side;

/// One sender.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    block: Option<Block>,
    /// Since when, ns; and for how long the window alone explained it.
    blocked_at: u64,
    explained: u64,
    stuck: Option<u64>,
    repairs: Option<u64>,
    /// Its peer withholds the ACK that will free it.
    withheld: bool,
    drawn: bool,
    /// How many busy times cover the instant.
    busy: i32,
}

/// A line, and until when (ns) it counts at most, if nothing changes before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) line: Line,
    pub(super) until: u64,
    /// Whose congestion window explains the time.
    explains: Option<Side>,
}

impl Choice {
    fn of(line: Line) -> Self {
        Self { line, until: u64::MAX, explains: None }
    }
}

#[derive(Debug)]
pub(super) struct Scene {
    senders: [Sender; 2],
    opened: bool,
    /// Data of the near host on its way, and until when the last of it may be without a queue, ns.
    pub(super) journeys: i32,
    pub(super) expected: u64,
    /// The base round trip of each side's full segments, ns.
    base: [u64; 2],
}

impl Scene {
    pub(super) fn new(base: [u64; 2]) -> Self {
        Self { senders: Default::default(), opened: false, journeys: 0, expected: 0, base }
    }

    pub(super) fn busy(&mut self, side: Side, more: i32) {
        self.senders[side as usize].busy += more;
    }

    pub(super) fn apply(&mut self, now: u64, change: Change) {
        match change {
            Change::Opened => self.opened = true,
            Change::Blocked { side, block, anew } => {
                let sender = &mut self.senders[side as usize];
                sender.block = block;
                if anew {
                    (sender.blocked_at, sender.explained) = (now, 0);
                }
            }
            Change::Withheld { side, on } => self.senders[side as usize].withheld = on,
            Change::Drawn { side, on } => self.senders[side as usize].drawn = on,
            Change::Stuck { side, on } => self.senders[side as usize].stuck = on.then_some(now),
            Change::Repairs { side, on } => self.senders[side as usize].repairs = on.then_some(now),
            Change::Speaks { .. } => {}
        }
    }

    /// Time passes on a line.
    pub(super) fn spend(&mut self, choice: &Choice, time: u64) {
        if let Some(side) = choice.explains {
            self.senders[side as usize].explained += time;
        }
    }

    /// The line of the instant `now`; `speaker`'s program is the next to speak.
    pub(super) fn choose(&self, now: u64, speaker: Side) -> Choice {
        if !self.opened {
            let is_stuck = self.senders.iter().any(|sender| sender.stuck.is_some());
            return Choice::of(if is_stuck { Line::Rto } else { Line::Handshake });
        }
        let waits = SIDES.into_iter().filter_map(|side| self.wait(side, now));
        if let Some((_, choice)) = waits.min_by_key(|(since, _)| *since) {
            return choice;
        }
        if self.senders.iter().any(|sender| sender.busy > 0) {
            return Choice::of(Line::Transfer);
        }
        if self.journeys > 0 {
            return match now < self.expected {
                true => Choice { until: self.expected, ..Choice::of(Line::Network) },
                false => Choice::of(Line::Queueing),
            };
        }
        Choice::of(if speaker == Side::Client { Line::ClientApp } else { Line::ServerApp })
    }

    /// What a sender waits for, and since when.
    fn wait(&self, side: Side, now: u64) -> Option<(u64, Choice)> {
        let sender = &self.senders[side as usize];
        if let Some(since) = sender.stuck {
            return Some((since, Choice::of(Line::Rto)));
        }
        if let Some(since) = sender.repairs {
            return Some((since, Choice::of(Line::Recovery)));
        }
        let block = sender.block.filter(|_| sender.busy == 0)?;
        let choice = match block {
            _ if sender.drawn => Choice::of(Line::Rto),
            _ if sender.withheld => Choice::of(Line::DelayedAck),
            Block::Nagle | Block::Cork => Choice::of(Line::Nagle),
            Block::Window => Choice::of(Line::Rwnd),
            Block::Congestion if sender.explained >= self.base[side as usize] => Choice::of(Line::Queueing),
            Block::Congestion => {
                let until = now + self.base[side as usize] - sender.explained;
                Choice { line: Line::Cwnd, until, explains: Some(side) }
            }
        };
        Some((sender.blocked_at, choice))
    }
}
