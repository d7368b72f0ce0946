//! One direction: chance and plan, then the queue and its rate, then the delay.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use fastrand::Rng;

use super::event::{Event, EventKind, Events, Loss};
use super::segment::Tcp;
use super::settings::{Direction, Drop, Queue, Settings};
use super::{Packet, nanos};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Lane<P> {
    settings: Settings,
    direction: Direction,
    rng: Rng,
    plan: Plan,
    sender: Sender,
    flight: BinaryHeap<Flying<P>>,
    /// Packets put into flight so far: the order among those that are due at the same time.
    order: u64,
    /// When the latest packet that keeps its order is due.
    latest: u64,
}

/// What a packet's four draws say. All four are drawn for each packet, so that a change of one setting leaves the
/// luck of the others as it was.
struct Luck {
    lost: bool,
    twice: bool,
    overtaken: bool,
    jitter: u64,
}

impl<P: Clone> Lane<P> {
    pub(super) fn new(settings: &Settings, direction: Direction, seed: u64) -> Self {
        Self {
            settings: settings.clone(),
            direction,
            rng: Rng::with_seed(seed),
            plan: Plan::default(),
            sender: Sender::default(),
            flight: BinaryHeap::new(),
            order: 0,
            latest: 0,
        }
    }

    /// Takes a packet in at `now`, which must not go back.
    pub(super) fn enter(&mut self, now: u64, packet: Packet<P>, events: &mut Events) {
        let luck = self.draw();
        let mut log = |kind| {
            events.push(Event { time: now, direction: self.direction, number: packet.number, kind });
        };
        if let Some(drop) = self.plan.count(&self.settings.drops, packet.segment.tcp.as_ref()) {
            return log(EventKind::Dropped(Loss::Planned(drop)));
        }
        if luck.lost {
            return log(EventKind::Dropped(Loss::Random));
        }
        let found = self.sender.waiting(now);
        let Some(left) = self.sender.send(now, packet.segment.len, &self.settings) else {
            return log(EventKind::Dropped(Loss::QueueFull));
        };
        let mark_ce =
            packet.segment.ecn_capable && self.settings.mark_above.is_some_and(|most| found >= most);
        if mark_ce {
            log(EventKind::Marked);
        }
        let arrival = left.saturating_add(nanos(self.settings.delay)).saturating_add(luck.jitter);
        let in_order = arrival.max(self.latest);
        let due = if luck.overtaken {
            let by = nanos(self.settings.reorder_by);
            log(EventKind::Overtaken(by));
            in_order.saturating_add(by)
        } else {
            self.latest = in_order;
            in_order
        };
        if luck.twice {
            log(EventKind::Duplicated);
            self.fly(due, mark_ce, packet.clone());
        }
        self.fly(due, mark_ce, packet);
    }

    fn draw(&mut self) -> Luck {
        let Settings { loss, duplicate, reorder, .. } = self.settings;
        Luck {
            lost: self.rng.f64() < loss,
            twice: self.rng.f64() < duplicate,
            overtaken: self.rng.f64() < reorder,
            jitter: (self.rng.f64() * nanos(self.settings.jitter) as f64) as u64,
        }
    }

    fn fly(&mut self, due: u64, mark_ce: bool, packet: Packet<P>) {
        self.order += 1;
        self.flight.push(Flying { due, order: self.order, mark_ce, packet });
    }

    /// When what was taken so far has left the interface.
    pub(super) fn busy_until(&self) -> u64 {
        self.sender.free
    }

    /// How long a packet of so many bytes takes at the rate.
    pub(super) fn time_of(&self, len: u64) -> u64 {
        let rate = u128::from(self.settings.rate.unwrap_or(u64::MAX).max(1));
        u64::try_from(u128::from(len) * 8 * u128::from(NANOS_PER_SECOND) / rate).unwrap_or(u64::MAX)
    }

    /// When a packet without length that comes at `now` would arrive.
    pub(super) fn arrival_at(&self, now: u64) -> u64 {
        let left = now.max(self.sender.free);
        left.saturating_add(nanos(self.settings.delay)).max(self.latest)
    }

    /// When the next packet arrives.
    pub(super) fn due(&self) -> Option<u64> {
        self.flight.peek().map(|flying| flying.due)
    }

    /// The next packet, whenever it is due.
    pub(super) fn arrive(&mut self) -> Option<Flying<P>> {
        self.flight.pop()
    }
}

/// A packet that has left the queue or is in it; from here on nothing can happen to it.
#[derive(Debug)]
pub(super) struct Flying<P> {
    pub(super) due: u64,
    order: u64,
    pub(super) mark_ce: bool,
    pub(super) packet: Packet<P>,
}

/// The greatest is the one that arrives first, as [`BinaryHeap`] wants it.
impl<P> Ord for Flying<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.order).cmp(&(self.due, self.order))
    }
}

impl<P> PartialOrd for Flying<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Flying<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Flying<P> {}

/// The interface that sends packets one after the other, and its queue.
#[derive(Debug, Default)]
struct Sender {
    /// When the packets taken so far have left, in ns and the numerator of a fraction of a ns over the rate. The
    /// fraction keeps a train of packets at the rate exactly.
    free: u64,
    fraction: u64,
    /// Start of sending and length of the packets that may still wait.
    queue: VecDeque<(u64, usize)>,
    queued_bytes: u128,
}

impl Sender {
    /// Packets that wait at `now`, besides the one being sent.
    fn waiting(&mut self, now: u64) -> usize {
        while let Some(&(start, len)) = self.queue.front() {
            if start > now {
                break;
            }
            self.queue.pop_front();
            self.queued_bytes -= len as u128;
        }
        self.queue.len()
    }

    /// When a packet that comes at `now` has left; `None` where there is no room for it.
    fn send(&mut self, now: u64, len: usize, settings: &Settings) -> Option<u64> {
        let Some(rate) = settings.rate else { return Some(now) };
        let rate = rate.max(1);
        if self.free < now {
            (self.free, self.fraction) = (now, 0);
        } else if self.free > now {
            if !self.has_room(len, settings.queue) {
                return None;
            }
            self.queue.push_back((self.free, len));
            self.queued_bytes += len as u128;
        }
        let work = len as u128 * 8 * u128::from(NANOS_PER_SECOND) + u128::from(self.fraction);
        let took = u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX);
        self.free = self.free.saturating_add(took);
        self.fraction = (work % u128::from(rate)) as u64;
        Some(self.free)
    }

    fn has_room(&self, len: usize, queue: Queue) -> bool {
        match queue {
            Queue::Unlimited => true,
            Queue::Packets(most) => self.queue.len() < most,
            Queue::Bytes(most) => self.queued_bytes + len as u128 <= most as u128,
        }
    }
}

/// Counts packets for the drops by plan.
#[derive(Debug, Default)]
struct Plan {
    packets: u64,
    data: u64,
    tails: u64,
    syns: u64,
    /// Sequence number of the latest SYN: byte 1 follows it.
    initial: u32,
    /// Which of the planned drops by byte have met their packet.
    met: Vec<bool>,
}

impl Plan {
    /// Counts a packet; says which drop it meets, if any.
    fn count(&mut self, drops: &[Drop], tcp: Option<&Tcp>) -> Option<Drop> {
        let data = tcp.is_some_and(|tcp| tcp.payload > 0);
        let tail = data && tcp.is_some_and(|tcp| tcp.psh);
        let syn = tcp.filter(|tcp| tcp.syn);
        self.packets += 1;
        self.data += u64::from(data);
        self.tails += u64::from(tail);
        self.syns += u64::from(syn.is_some());
        self.initial = syn.map_or(self.initial, |tcp| tcp.seq);
        self.met.resize(drops.len(), false);
        let index = drops.iter().zip(&self.met).position(|(drop, met)| match *drop {
            Drop::Packet(n) => n == self.packets,
            Drop::Data(n) => data && n == self.data,
            Drop::Tail(n) => tail && n == self.tails,
            Drop::Syn(n) => syn.is_some() && n == self.syns,
            Drop::Byte(n) => !met && tcp.is_some_and(|tcp| self.carries(tcp, n)),
        })?;
        self.met[index] = true;
        drops.get(index).copied()
    }

    /// Whether a segment carries the n-th byte of its stream.
    fn carries(&self, tcp: &Tcp, n: u64) -> bool {
        let number = self.initial.wrapping_add(n as u32);
        number.wrapping_sub(tcp.seq) < tcp.payload
    }
}
