//! What changes at each instant, and when the other side can know.

use super::losses::{self, Way};
use crate::link::EventKind;
use crate::tcp::{State, Wait};
use crate::world::{Side, World};

/// Both sides.
pub(super) const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// When something happened at a side, and when a packet sent there then would be at the other side. ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) side: Side,
    pub(super) here: u64,
    pub(super) there: u64,
}

impl Stamp {
    /// When it shows at `vantage`.
    pub(super) fn seen_at(&self, vantage: Side) -> u64 {
        if self.side == vantage { self.here } else { self.there }
    }
}

/// What stops a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Nagle,
    Cork,
    Congestion,
    /// The peer's window, or the own buffer.
    Window,
}

/// What changed for which sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The handshake is over.
    Opened,
    /// The sender is stopped or not; `anew` where it has sent something since it was last.
    Blocked { side: Side, block: Option<Block>, anew: bool },
    /// The peer withholds the ACK that will free the sender, or no longer.
    Withheld { side: Side, on: bool },
    /// The sender's timer, and nothing else, draws the ACK out of its peer.
    Drawn { side: Side, on: bool },
    /// Only a timer can free the sender.
    Stuck { side: Side, on: bool },
    /// A loss is being repaired.
    Repairs { side: Side, on: bool },
    /// The program writes or closes.
    Speaks { side: Side },
}

/// Data on its way: sent, and seen at its sender's to have arrived, ns; and the length of its packet, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Journey {
    pub(super) side: Side,
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) len: u64,
}

/// The interface that limits a sender's rate sends segments right behind others, ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub(super) side: Side,
    pub(super) from: u64,
    pub(super) until: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    block: Option<Block>,
    /// Since when it withholds an ACK.
    holds: Option<Stamp>,
    /// The last time it did so.
    held: Option<(Stamp, Stamp)>,
    /// When the packets were sent that have arrived now, ns: the first and the last.
    heard: Option<(u64, u64)>,
    /// When it was last blocked anew, and when it last sent something again.
    blocked: Option<Stamp>,
    again: Option<Stamp>,
    retransmitted: u32,
    stuck: bool,
    repairs: bool,
    next: u64,
    written: u64,
}

/// Everything that happened, in order.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) changes: Vec<(Stamp, Change)>,
    pub(super) journeys: Vec<Journey>,
    pub(super) busy: Vec<Busy>,
    ways: [Way; 2],
    known: [Known; 2],
    taken: [usize; 2],
    /// Until when the interface sends what it has, ns; and the last data of that.
    busy_until: [u64; 2],
    train_until: [u64; 2],
    opened: bool,
}

impl Watch {
    pub(super) fn observe(&mut self, world: &mut World) {
        self.known.iter_mut().for_each(|known| known.heard = None);
        let has_sent = self.take_packets(world);
        self.take_losses(world);
        for side in SIDES {
            self.ways[side as usize].settle(world.endpoint(side.other()));
            self.note_busy(world, side, has_sent[side as usize]);
        }
        self.note_opening(world);
        for side in SIDES {
            self.note_speech(world, side);
            self.note_hold(world, side);
            self.note_block(world, side);
            self.note_stuck(world, side);
            self.note_repair(world, side);
        }
    }

    fn push(&mut self, world: &World, side: Side, change: Change) {
        self.changes.push((stamp(world, side), change));
    }

    /// Returns how long the first packet with data is that each side has sent, in bytes.
    fn take_packets(&mut self, world: &World) -> [Option<u64>; 2] {
        let mut has_sent = [None; 2];
        // What was sent before what arrived: without delay both happen at one instant.
        for side in SIDES {
            for seen in world.seen(side)[self.taken[side as usize]..].iter().filter(|seen| seen.from == side)
            {
                self.ways[side as usize].sent(seen, world.endpoint(side).initial_sequence());
                if losses::has_data(seen) {
                    has_sent[side as usize].get_or_insert(seen.segment.packet_len() as u64);
                }
            }
        }
        for side in SIDES {
            for seen in world.seen(side)[self.taken[side as usize]..].iter().filter(|seen| seen.from != side)
            {
                let Some((from, has_data)) = self.ways[seen.from as usize].arrived(seen.number) else {
                    continue;
                };
                let heard = &mut self.known[side as usize].heard;
                *heard = Some((heard.map_or(from, |heard| heard.0), from));
                if has_data {
                    let until = stamp(world, side).there;
                    let len = seen.segment.packet_len() as u64;
                    self.journeys.push(Journey { side: seen.from, from, until, len });
                }
            }
            self.taken[side as usize] = world.seen(side).len();
        }
        has_sent
    }

    fn take_losses(&mut self, world: &mut World) {
        while let Some(event) = world.link_mut().poll_event() {
            if let EventKind::Dropped(_) = event.kind {
                let side =
                    if event.direction == Side::Client.direction() { Side::Client } else { Side::Server };
                self.ways[side as usize].dropped(event.number);
            }
        }
    }

    /// The first segment with data after a pause is alone on its way; those behind it make a train.
    fn note_busy(&mut self, world: &World, side: Side, first_sent: Option<u64>) {
        let until = world.link().busy_until(side.direction());
        let free_at = std::mem::replace(&mut self.busy_until[side as usize], until).max(world.now());
        let Some(first) = first_sent else { return };
        let train_until = std::mem::replace(&mut self.train_until[side as usize], until);
        let was_busy = train_until > world.now();
        let from = if was_busy { free_at } else { free_at + world.link().time_of(side.direction(), first) };
        if until > from {
            self.busy.push(Busy { side, from, until });
        }
    }

    fn note_opening(&mut self, world: &World) {
        let is_open = !matches!(world.endpoint(Side::Client).state(), State::Closed | State::SynSent);
        if is_open && !self.opened {
            self.opened = true;
            self.push(world, Side::Client, Change::Opened);
        }
    }

    fn note_speech(&mut self, world: &World, side: Side) {
        let endpoint = world.endpoint(side);
        let written = endpoint.next_offset().max(1) + endpoint.info().unsent;
        let before = std::mem::replace(&mut self.known[side as usize].written, written);
        if written > before.max(1) {
            self.push(world, side, Change::Speaks { side });
        }
    }

    fn note_hold(&mut self, world: &World, side: Side) {
        let holds = world.endpoint(side).delays_ack_since().is_some() && would_free(world, side);
        let known = &mut self.known[side as usize];
        match known.holds {
            None if holds => known.holds = Some(stamp(world, side)),
            Some(since) if !holds => {
                known.held = Some((since, stamp(world, side)));
                known.holds = None;
            }
            _ => {}
        }
    }

    fn note_block(&mut self, world: &World, side: Side) {
        let block = block(world, side);
        let next = world.endpoint(side).next_offset();
        let known = &mut self.known[side as usize];
        let was_blocked = known.block.is_some();
        let has_gone_on = was_blocked && (block.is_none() || next > known.next);
        let anew = !was_blocked || next > known.next;
        let changed = known.block != block || (anew && block.is_some());
        (known.block, known.next) = (block, next);
        if has_gone_on {
            self.note_release(side);
        }
        self.note_timer(world, side, anew);
        if changed {
            self.push(world, side, Change::Blocked { side, block, anew });
        }
    }

    /// A sender that was blocked goes on: if what it has just heard is what its peer withheld before, it waited for that.
    fn note_release(&mut self, side: Side) {
        let held = self.known[side.other() as usize].held;
        let Some(((since, until), (first, last))) = held.zip(self.known[side as usize].heard) else { return };
        if (first..=last).contains(&until.here) {
            let known = self.known[side as usize];
            if let Some((from, again)) =
                known.blocked.zip(known.again).filter(|(from, again)| again.here > from.here)
            {
                self.changes.push((from, Change::Drawn { side, on: true }));
                self.changes.push((again, Change::Drawn { side, on: false }));
            }
            self.changes.push((since, Change::Withheld { side, on: true }));
            self.changes.push((until, Change::Withheld { side, on: false }));
            self.known[side.other() as usize].held = None;
        }
    }

    fn note_timer(&mut self, world: &World, side: Side, anew: bool) {
        let now = stamp(world, side);
        let retransmitted = world.endpoint(side).info().retransmitted;
        let known = &mut self.known[side as usize];
        if std::mem::replace(&mut known.retransmitted, retransmitted) < retransmitted {
            known.again = Some(now);
        }
        if anew {
            known.blocked = Some(now);
        }
    }

    /// Whether nothing but a timer can free the sender.
    fn note_stuck(&mut self, world: &World, side: Side) {
        let (sender, peer) = (world.endpoint(side), world.endpoint(side.other()));
        let way = &self.ways[side as usize];
        let is_silent = !way.has_data()
            && self.ways[side.other() as usize].is_empty()
            && peer.delays_ack_since().is_none();
        let is_waiting = match self.known[side as usize].block {
            Some(Block::Nagle | Block::Congestion) => true,
            // Closed because the program does not read, or because the window update was lost.
            Some(Block::Window) => peer.readable() == 0,
            Some(Block::Cork) | None => matches!(sender.state(), State::SynSent | State::SynReceived),
        };
        let on = is_silent && sender.state() != State::Closed && (way.lacks() || is_waiting);
        if std::mem::replace(&mut self.known[side as usize].stuck, on) != on {
            self.push(world, side, Change::Stuck { side, on });
        }
    }

    /// The repair begins at the receiver, which tells of the hole, or at the sender, whose timer ends; it is over at the
    /// receiver, when it has all and has said so.
    fn note_repair(&mut self, world: &World, side: Side) {
        let receiver = world.endpoint(side.other());
        let way = &self.ways[side as usize];
        let was = self.known[side as usize].repairs;
        let is_told = way.lacks() && way.is_told(receiver);
        let is_sent_again = way.lacks() && world.endpoint(side).info().retransmitting > 0;
        let at = if is_told || was { side.other() } else { side };
        let on = is_told || is_sent_again || (was && (way.lacks() || receiver.delays_ack_since().is_some()));
        self.known[side as usize].repairs = on;
        if on != was {
            self.push(world, at, Change::Repairs { side, on });
        }
    }
}

fn stamp(world: &World, side: Side) -> Stamp {
    let here = world.now();
    Stamp { side, here, there: world.link().arrival_at(side.direction(), here) }
}

/// Whether an ACK by `side` now would let its peer go on. Where the peer's window is full because the program does not read,
/// no ACK does.
fn would_free(world: &World, side: Side) -> bool {
    let sender = world.endpoint(side.other());
    let info = sender.info();
    let wanted = info.unsent.min(u64::from(info.mss)).min(info.peer_window.max(1));
    sender.wait() != Wait::ReceiveWindow
        || world.endpoint(side).would_offer_up_to() >= sender.next_offset() + wanted
}

fn block(world: &World, side: Side) -> Option<Block> {
    let endpoint = world.endpoint(side);
    let is_waiting = endpoint.info().unsent > 0;
    match endpoint.wait() {
        // What is left of a full buffer is small because the buffer is.
        Wait::Nagle if world.is_write_blocked(side) => Some(Block::Window),
        Wait::Nagle => Some(Block::Nagle),
        Wait::Cork => Some(Block::Cork),
        Wait::CongestionWindow => Some(Block::Congestion),
        Wait::Recovery | Wait::Loss if is_waiting => Some(Block::Congestion),
        Wait::ReceiveWindow => Some(Block::Window),
        Wait::Acknowledgement if world.is_write_blocked(side) => Some(Block::Window),
        _ => None,
    }
}
