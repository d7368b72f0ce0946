//! Receivers of other eras. The hosts' kernel acknowledges as it does today; the link withholds those pure ACKs
//! that an old receiver would have delayed, for as long as it would have.

use std::collections::{HashMap, VecDeque};
use std::mem;

use super::event::{Event, EventKind, Events, Successor};
use super::receiver::{Delivered, Held, News, Receiver, after};
use super::segment::Tcp;
use super::settings::{AckHold, Direction};
use super::{Packet, nanos};

/// RFC 1122 4.2.3.2: there should be an ACK for at least every second full-sized segment.
const FULL_SEGMENTS: u32 = 2;

/// Holds the pure ACKs of one direction.
#[derive(Debug)]
pub(super) struct Holder<P> {
    hold: AckHold,
    direction: Direction,
    /// Offset of the heartbeat's ticks, in ns.
    phase: u64,
    receivers: Receivers,
    /// Held ACKs by deadline, which is the order in which they came; an ACK that was superseded leaves its slot
    /// empty.
    slots: VecDeque<Slot<P>>,
    /// Slots that are gone: the first slot's name.
    first: u64,
}

#[derive(Debug)]
struct Slot<P> {
    deadline: u64,
    packet: Option<(u64, Packet<P>)>,
}

impl<P> Holder<P> {
    pub(super) fn new(hold: AckHold, direction: Direction, rng: &mut fastrand::Rng) -> Self {
        let period = match hold {
            AckHold::Heartbeat(period) => nanos(period),
            AckHold::Delay(_) | AckHold::HoleFilling(_) => 0,
        };
        let phase = rng.u64(..period.max(1));
        let receivers = Receivers::default();
        Self { hold, direction, phase, receivers, slots: VecDeque::new(), first: 0 }
    }

    /// A segment has been delivered to a receiver whose ACKs are held here.
    pub(super) fn delivered(&mut self, tcp: &Tcp) {
        self.receivers.of(tcp.flow).take(tcp);
    }

    /// A receiver has sent a packet: gives it back unless it is held.
    pub(super) fn pass(&mut self, now: u64, packet: Packet<P>, events: &mut Events) -> Option<Packet<P>> {
        let Some(tcp) = packet.segment.tcp else { return Some(packet) };
        let receiver = self.receivers.of(tcp.flow);
        let news = receiver.send(&tcp);
        let successor = if tcp.is_pure_ack() { judge(self.hold, news) } else { Successor::Segment };
        if successor == Successor::HeldAck {
            self.keep(now, tcp, packet, events);
            return None;
        }
        // An ACK that the host sent before the held one says less.
        let older = !tcp.rst && receiver.held.is_some_and(|held| after(held.ack, tcp.ack));
        if !older {
            receiver.passed();
            if let Some(held) = receiver.held.take() {
                self.supersede(now, held.slot, successor, events);
            }
        }
        if tcp.rst {
            self.receivers.forget(tcp.flow);
        }
        Some(packet)
    }

    /// Holds an ACK: in the place of the one that is held, or in a new one.
    fn keep(&mut self, now: u64, tcp: Tcp, packet: Packet<P>, events: &mut Events) {
        let held = self.receivers.of(tcp.flow).held;
        let (slot, deadline) =
            match held.and_then(|held| self.place(held.slot).map(|slot| (held, slot.deadline))) {
                Some((held, deadline)) => {
                    self.supersede(now, held.slot, Successor::HeldAck, events);
                    (held.slot, deadline)
                }
                None => {
                    let deadline = self.deadline(now);
                    self.slots.push_back(Slot { deadline, packet: None });
                    (self.first + self.slots.len() as u64 - 1, deadline)
                }
            };
        let kind = EventKind::Held { until: deadline };
        events.push(Event { time: now, direction: self.direction, number: packet.number, kind });
        if let Some(place) = self.place(slot) {
            place.packet = Some((now, packet));
        }
        self.receivers.of(tcp.flow).held = Some(Held { slot, ack: tcp.ack });
    }

    fn place(&mut self, slot: u64) -> Option<&mut Slot<P>> {
        self.slots.get_mut(usize::try_from(slot.checked_sub(self.first)?).ok()?)
    }

    fn deadline(&self, now: u64) -> u64 {
        match self.hold {
            AckHold::Delay(wait) | AckHold::HoleFilling(wait) => now.saturating_add(nanos(wait)),
            AckHold::Heartbeat(period) => {
                let period = nanos(period).max(1);
                let since_tick = (now % period + period - self.phase) % period;
                now.saturating_add(period - since_tick)
            }
        }
    }

    fn supersede(&mut self, now: u64, slot: u64, by: Successor, events: &mut Events) {
        let Some((since, packet)) = self.place(slot).and_then(|slot| slot.packet.take()) else { return };
        let kind = EventKind::Superseded { after: now - since, by };
        events.push(Event { time: now, direction: self.direction, number: packet.number, kind });
    }

    /// When the next held ACK is let go.
    pub(super) fn due(&self) -> Option<u64> {
        self.slots.iter().find(|slot| slot.packet.is_some()).map(|slot| slot.deadline)
    }

    /// The next ACK whose time is up at `now`, and its deadline.
    pub(super) fn release(&mut self, now: u64, events: &mut Events) -> Option<(u64, Packet<P>)> {
        while self.slots.front().is_some_and(|slot| slot.packet.is_none() || slot.deadline <= now) {
            let slot = self.slots.pop_front()?;
            self.first += 1;
            let Some((since, packet)) = slot.packet else { continue };
            if let Some(tcp) = packet.segment.tcp {
                self.receivers.released(tcp.flow, self.first - 1);
            }
            let kind = EventKind::Released(slot.deadline - since);
            let event = Event { time: slot.deadline, direction: self.direction, number: packet.number, kind };
            events.push(event);
            return Some((slot.deadline, packet));
        }
        None
    }
}

/// What a pure ACK is to the one before it; [`Successor::HeldAck`] where it must wait.
fn judge(hold: AckHold, news: News) -> Successor {
    let (newly, since_passed) = match news {
        News::Nothing => return Successor::SameAck,
        News::Unknown => return Successor::Ack,
        News::Data { newly, since_passed } => (newly, since_passed),
    };
    let waits = match hold {
        AckHold::Heartbeat(_) | AckHold::Delay(_) => is_lone(since_passed),
        AckHold::HoleFilling(_) => newly.fills > 0 && since_passed.fills < FULL_SEGMENTS && !newly.fin,
    };
    if waits { Successor::HeldAck } else { Successor::Ack }
}

/// Whether a receiver may wait for more before it acknowledges this. It may not where a hole was filled
/// (RFC 5681 4.2), and none waits after a FIN.
fn is_lone(data: Delivered) -> bool {
    data.full < FULL_SEGMENTS && data.fills == 0 && !data.fin
}

/// The receivers by flow; those that were quiet the longest are forgotten, so that a flood of connections takes
/// no more than two generations of memory. A forgotten receiver's held ACK is let go by the timer.
#[derive(Debug, Default)]
struct Receivers {
    young: HashMap<u64, Receiver>,
    old: HashMap<u64, Receiver>,
}

impl Receivers {
    /// Flows of one generation: more than the lab's experiments have at once.
    const GENERATION: usize = 4_096;

    fn of(&mut self, flow: u64) -> &mut Receiver {
        if !self.young.contains_key(&flow) {
            if self.young.len() >= Self::GENERATION {
                self.old.clear();
                mem::swap(&mut self.young, &mut self.old);
            }
            if let Some(receiver) = self.old.remove(&flow) {
                self.young.insert(flow, receiver);
            }
        }
        self.young.entry(flow).or_default()
    }

    fn forget(&mut self, flow: u64) {
        self.young.remove(&flow);
    }

    /// The ACK in `slot` has been let go.
    fn released(&mut self, flow: u64, slot: u64) {
        let receiver = self.of(flow);
        if receiver.held.is_some_and(|held| held.slot == slot) {
            receiver.held = None;
            receiver.passed();
        }
    }
}
