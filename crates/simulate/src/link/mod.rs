//! An emulated path between two hosts: delay, rate, queue, loss, and receivers that hold their ACKs.
//!
//! A packet meets, in this order: the hold of ACKs (as if its sender sent it later), drops by plan, random loss,
//! the queue with its rate, and the delay with jitter, reordering and duplication. A lost packet takes no room in
//! the queue, and an ACK that is held for good counts for no drop by plan.
//!
//! Memory: two generations of 4,096 connections where ACKs are held, 65,536 events where nobody asks for them,
//! and the packets under way, which only the rate and [`Settings::queue`] limit.

mod event;
mod hold;
mod lane;
mod receiver;
mod segment;
mod settings;

use std::time::Duration;

use fastrand::Rng;

use event::Events;
pub use event::{Event, EventKind, Loss, Successor};
use hold::Holder;
use lane::Lane;
pub use segment::{Segment, Tcp, mark_ce};
pub use settings::{AckHold, Direction, Drop, Ends, Queue, Settings};

/// A link of two directions. `P` is the caller's packet, which the link carries and does not look into.
///
/// Times are ns of any clock that does not go back; a time before the latest one counts as that one.
#[derive(Debug)]
pub struct Link<P> {
    up: Way<P>,
    down: Way<P>,
    now: u64,
    events: Events,
}

/// A packet that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// Which way it travels.
    pub direction: Direction,
    /// When it should arrive, in ns: how late the caller is shows here.
    pub due: u64,
    /// Whether [`mark_ce`] is to be called on it.
    pub mark_ce: bool,
    /// The packet.
    pub packet: P,
}

#[derive(Debug)]
struct Way<P> {
    /// Packets that entered so far.
    entered: u64,
    holder: Option<Holder<P>>,
    lane: Lane<P>,
}

#[derive(Clone, Debug)]
struct Packet<P> {
    number: u64,
    segment: Segment,
    packet: P,
}

impl<P: Clone> Link<P> {
    /// A link that is idle. The same seed and the same packets at the same times give the same deliveries.
    pub fn new(ends: &Ends, seed: u64) -> Self {
        // Streams of their own: one direction's traffic does not change the other's luck.
        let mut seeds = Rng::with_seed(seed);
        let up = Way::new(&ends.up, Direction::Up, &mut seeds);
        let down = Way::new(&ends.down, Direction::Down, &mut seeds);
        Self { up, down, now: 0, events: Events::default() }
    }

    /// A packet enters at `now`. `segment` says what the link must know of it.
    pub fn handle_packet(&mut self, now: u64, direction: Direction, segment: Segment, packet: P) {
        let now = self.advance(now);
        let way = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        way.entered += 1;
        let packet = Packet { number: way.entered, segment, packet };
        let passed = match &mut way.holder {
            Some(holder) => holder.pass(now, packet, &mut self.events),
            None => Some(packet),
        };
        if let Some(packet) = passed {
            way.lane.enter(now, packet, &mut self.events);
        }
    }

    /// When there is something to do next, in ns: call [`Link::poll_deliver`] then, which may still give nothing
    /// (a held ACK that is let go has its way before it). `None` until another packet enters.
    pub fn poll_at(&self) -> Option<u64> {
        [self.up.due(), self.down.due()].into_iter().flatten().min()
    }

    /// The next packet that is due at `now`.
    pub fn poll_deliver(&mut self, now: u64) -> Option<Delivery<P>> {
        let now = self.advance(now);
        let due = |way: &Way<P>| way.lane.due().filter(|due| *due <= now);
        let direction = match (due(&self.up), due(&self.down)) {
            (None, None) => return None,
            (Some(up), Some(down)) if down < up => Direction::Down,
            (None, Some(_)) => Direction::Down,
            (Some(_), _) => Direction::Up,
        };
        let (way, back) = match direction {
            Direction::Up => (&mut self.up, &mut self.down),
            Direction::Down => (&mut self.down, &mut self.up),
        };
        let flying = way.lane.arrive()?;
        if let (Some(holder), Some(tcp)) = (&mut back.holder, &flying.packet.segment.tcp) {
            holder.delivered(tcp);
        }
        let (due, mark_ce, packet) = (flying.due, flying.mark_ce, flying.packet.packet);
        Some(Delivery { direction, due, mark_ce, packet })
    }

    /// When everything that has entered in that direction will have left the interface that limits the rate, in ns;
    /// not after the last such time where it is idle.
    pub fn busy_until(&self, direction: Direction) -> u64 {
        self.way(direction).lane.busy_until()
    }

    /// How long the interface takes for a packet of so many bytes, ns.
    pub fn time_of(&self, direction: Direction, len: u64) -> u64 {
        self.way(direction).lane.time_of(len)
    }

    /// When a packet of no length that enters at `now` would arrive, in ns: behind what is queued, after everything
    /// that keeps its order, without jitter of its own.
    pub fn arrival_at(&self, direction: Direction, now: u64) -> u64 {
        self.way(direction).lane.arrival_at(now)
    }

    fn way(&self, direction: Direction) -> &Way<P> {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// What happened to packets besides delay, in the order in which the link learnt of it.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Events that are lost because nobody asked for them.
    pub fn lost_events(&self) -> u64 {
        self.events.lost()
    }

    /// Lets go the ACKs whose time is up, each at its own time.
    fn advance(&mut self, now: u64) -> u64 {
        self.now = self.now.max(now);
        for way in [&mut self.up, &mut self.down] {
            let Some(holder) = &mut way.holder else { continue };
            while let Some((deadline, packet)) = holder.release(self.now, &mut self.events) {
                way.lane.enter(deadline, packet, &mut self.events);
            }
        }
        self.now
    }
}

impl<P: Clone> Way<P> {
    fn new(settings: &Settings, direction: Direction, seeds: &mut Rng) -> Self {
        let lane = Lane::new(settings, direction, seeds.u64(..));
        let mut phases = Rng::with_seed(seeds.u64(..));
        let holder = settings.hold_acks.map(|hold| Holder::new(hold, direction, &mut phases));
        Self { entered: 0, holder, lane }
    }

    fn due(&self) -> Option<u64> {
        let held = self.holder.as_ref().and_then(Holder::due);
        [self.lane.due(), held].into_iter().flatten().min()
    }
}

/// In ns; the longest time that has a number where it has none.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
