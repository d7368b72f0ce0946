//! A variant's run, and what the simulator knows of it that packets only hint at.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Variant;
use crate::link::{self, Loss};
use crate::tcp::{CongestionState, EventKind, Trigger, Wait};
use crate::world::{End, Log, Side, World};

/// The simulator's own account of a run. Times in ns.
#[derive(Clone, Debug)]
pub struct Measured {
    /// How it ended.
    pub end: End,
    /// Who wrote more: what follows is about this side's sender.
    pub sender: Side,
    /// From the SYN until the other program had read the sender's last byte; `None` where it has not.
    pub finished: Option<u64>,
    /// In fast recovery.
    pub recovery: u64,
    /// After a retransmission timeout, until everything of before was acknowledged.
    pub loss: u64,
    /// How long the sender waited for what; sums to the run's length.
    pub waits: BTreeMap<Wait, u64>,
    /// Retransmissions by what made the sender send again.
    pub retransmissions: BTreeMap<Trigger, u32>,
    /// Packets lost, both ways together.
    pub lost: Lost,
    /// ACKs that the receiver held for a millisecond or more.
    pub held_acks: Held,
    /// From a client's request to the last byte of its answer; empty where the client asks for nothing.
    pub exchanges: Vec<u64>,
    /// From each write of the sender to the read of its last byte.
    pub deliveries: Vec<u64>,
}

/// Packets that did not arrive, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The queue was full.
    pub queue_full: u32,
    /// By chance.
    pub random: u32,
    /// By plan.
    pub planned: u32,
}

/// ACKs that waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// How many.
    pub count: u32,
    /// Sum of their waits, ns.
    pub total: u64,
    /// The longest wait, ns.
    pub longest: u64,
}

/// An ACK that left sooner was not held, it was on its way. ns.
const HELD: u64 = 1_000_000;

/// Runs a variant to its end, or to `until`.
pub fn run(variant: &Variant, until: Duration) -> (World, Measured) {
    let mut world = World::new(&variant.setup);
    let sender = sender(variant);
    let mut watch = Watch::new(sender);
    let end = world.run_with(crate::tcp::nanos(until), |world| watch.look(world));
    let writes = world.log(sender).writes.clone();
    let reader = world.log(sender.other());
    let deliveries =
        writes.iter().filter_map(|write| Some(reader.read_by(write.end)? - write.begun)).collect();
    let finished = writes.last().and_then(|last| reader.read_by(last.end));
    let exchanges = exchanges(world.log(Side::Client));
    let measured = Measured {
        end,
        sender,
        finished: finished.filter(|_| !world.is_write_blocked(sender)),
        recovery: watch.states.get(&CongestionState::Recovery).copied().unwrap_or(0),
        loss: watch.states.get(&CongestionState::Loss).copied().unwrap_or(0),
        waits: watch.waits,
        retransmissions: watch.retransmissions,
        lost: watch.lost,
        held_acks: watch.held,
        exchanges,
        deliveries,
    };
    (world, measured)
}

/// Who will write more.
fn sender(variant: &Variant) -> Side {
    use crate::world::{Act, Program};
    let bytes = |program: &Program| -> u64 {
        let written = program.steps.iter().map(|step| match step.act {
            Act::Write(bytes) | Act::WriteMore(bytes) => bytes,
            _ => 0,
        });
        written.sum()
    };
    let (client, server) = (bytes(&variant.setup.client_program), bytes(&variant.setup.server_program));
    if client > server { Side::Client } else { Side::Server }
}

/// Adds up what passes from one instant to the next.
struct Watch {
    sender: Side,
    since: u64,
    state: CongestionState,
    wait: Wait,
    states: BTreeMap<CongestionState, u64>,
    waits: BTreeMap<Wait, u64>,
    retransmissions: BTreeMap<Trigger, u32>,
    lost: Lost,
    held: Held,
}

impl Watch {
    fn new(sender: Side) -> Self {
        Self {
            sender,
            since: 0,
            state: CongestionState::Open,
            wait: Wait::Handshake,
            states: BTreeMap::new(),
            waits: BTreeMap::new(),
            retransmissions: BTreeMap::new(),
            lost: Lost::default(),
            held: Held::default(),
        }
    }

    fn look(&mut self, world: &mut World) {
        let passed = world.now() - std::mem::replace(&mut self.since, world.now());
        *self.states.entry(self.state).or_default() += passed;
        *self.waits.entry(self.wait).or_default() += passed;
        self.state = world.endpoint(self.sender).info().congestion_state;
        self.wait = world.endpoint(self.sender).wait();
        while let Some(event) = world.endpoint_mut(self.sender).poll_event() {
            if let EventKind::Retransmitted { trigger, .. } = event.kind {
                *self.retransmissions.entry(trigger).or_default() += 1;
            }
        }
        while let Some(event) = world.endpoint_mut(self.sender.other()).poll_event() {
            if let EventKind::DelayedAck { waited } = event.kind {
                self.held.add(waited);
            }
        }
        while let Some(event) = world.link_mut().poll_event() {
            match event.kind {
                link::EventKind::Dropped(Loss::QueueFull) => self.lost.queue_full += 1,
                link::EventKind::Dropped(Loss::Random) => self.lost.random += 1,
                link::EventKind::Dropped(Loss::Planned(_)) => self.lost.planned += 1,
                _ => {}
            }
        }
    }
}

impl Held {
    fn add(&mut self, waited: u64) {
        if waited >= HELD {
            self.count += 1;
            self.total += waited;
            self.longest = self.longest.max(waited);
        }
    }
}

/// Each begins with the first write after a read, and ends with the last read before the next one.
fn exchanges(client: &Log) -> Vec<u64> {
    let mut exchanges = Vec::new();
    let mut begun = None;
    let mut last_read = None;
    let mut reads = client.reads.iter().map(|(time, _)| *time).peekable();
    for write in &client.writes {
        while let Some(time) = reads.next_if(|time| *time <= write.begun) {
            last_read = begun.map(|_| time);
        }
        if let (Some(start), Some(end)) = (begun, last_read.take()) {
            exchanges.push(end - start);
            begun = None;
        }
        begun.get_or_insert(write.begun);
    }
    if let (Some(start), Some(end)) = (begun, reads.last()) {
        exchanges.push(end - start);
    }
    exchanges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Written;

    #[test]
    fn pieces_of_a_request_are_one_exchange() {
        let write = |begun, end| Written { begun, done: begun, end, more: false };
        let client = Log {
            writes: vec![write(10, 1), write(11, 2), write(50, 3)],
            reads: vec![(20, 5), (30, 9), (90, 12)],
            opened: Some(5),
        };
        assert_eq!(exchanges(&client), [20, 40]);
        assert_eq!(exchanges(&Log::default()), []);
    }
}
