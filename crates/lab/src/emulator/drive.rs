//! The emulator's loop: take in what hosts sent, deliver what is due, wait.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tcpwhy_simulate::link::{Direction, Link, Segment, mark_ce};

use super::Observed;
use super::clock::Clock;
use super::lateness::Tally;
use super::tap::Tap;
use crate::capture::Vantage;
use crate::clock;
use crate::place::{Device, Line, Port};
use crate::recording::{Event, Setup};

/// The thread sleeps until this long before the next packet is due, then spins: a sleeping thread wakes up to
/// some tens of µs late.
const SPIN: u64 = 60_000;
/// The longest sleep: so often the emulator looks whether the machine let it run.
const HEARTBEAT: u64 = 1_000_000;
/// The emulator has the processor for so long at a stretch. A thread of real-time priority that never sleeps is
/// stopped by the kernel for 50 ms each second, so that others get 5 % of the processor (`fair_server`, and
/// `sched_rt_runtime_us` before it).
const STRETCH: u64 = 1_000_000;
/// Then the others have it for so long, which is more than those 5 %.
const REST: Duration = Duration::from_micros(70);
/// Packets taken from one host, or delivered, before the others have their turn.
const TURN: usize = 32;
/// Bytes of packets under way; an unlimited queue before a slow link could otherwise take all memory.
const MOST_UNDER_WAY: usize = 512 << 20;
/// After the programs ended, packets under way may take this long to arrive.
const LAST_PACKETS: u64 = 2_000_000_000;
/// Events kept of a link, some 100 MB; later ones are counted only.
const MOST_EVENTS: usize = 1_000_000;
/// Buffers kept for the next packets.
const SPARE: usize = 4096;

/// All that the emulator's thread works on.
pub(super) struct Drive {
    routes: Vec<Route>,
    hands: Hands,
    stop: Arc<OwnedFd>,
    /// Once told to stop: when to stop whatever is still under way.
    give_up: Option<u64>,
    /// When the thread slept last.
    rested: u64,
}

/// A link and what is at its ends.
struct Route {
    link: Link<Parcel>,
    near: End,
    far: End,
    middle: Option<Tap>,
    events: Vec<Event>,
    /// Events that had no room.
    more_events: u64,
}

struct End {
    device: Box<dyn Device>,
    tap: Tap,
}

/// A packet under way.
#[derive(Clone, Debug)]
struct Parcel {
    bytes: Vec<u8>,
    /// How much too late it may have been taken from its sender, in ns.
    late: u64,
    _room: Room,
}

/// What a packet under way takes of the memory for all, also while a link holds it or where a link drops it.
#[derive(Debug)]
struct Room {
    bytes: usize,
    taken: Arc<AtomicUsize>,
}

impl Room {
    fn take(bytes: usize, taken: &Arc<AtomicUsize>) -> Self {
        taken.fetch_add(bytes, Ordering::Relaxed);
        Self { bytes, taken: Arc::clone(taken) }
    }
}

impl Clone for Room {
    fn clone(&self) -> Self {
        Self::take(self.bytes, &self.taken)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What handling a packet needs, on every route.
struct Hands {
    clock: Clock,
    tally: Tally,
    spare: Vec<Vec<u8>>,
    /// Bytes of packets under way.
    under_way: Arc<AtomicUsize>,
    /// Packets lost because too many were under way.
    refused: u64,
}

impl Drive {
    pub(super) fn new(lines: Vec<Line>, setup: &Setup, stop: Arc<OwnedFd>) -> Result<Self> {
        let routes = lines.into_iter().zip(0..).map(|(line, index)| Route::new(line, setup, index));
        let routes = routes.collect::<io::Result<_>>()?;
        let hands = Hands {
            clock: Clock::new(),
            tally: Tally::new()?,
            spare: Vec::new(),
            under_way: Arc::default(),
            refused: 0,
        };
        Ok(Self { routes, hands, stop, give_up: None, rested: 0 })
    }

    /// Carries packets until it is told to stop and nothing is under way any more.
    pub(super) fn run(&mut self) -> Result<()> {
        loop {
            self.rest();
            if self.sweep()? {
                continue;
            }
            let next = self.routes.iter().filter_map(|route| route.link.poll_at()).min();
            if self.give_up.is_some_and(|give_up| next.is_none_or(|next| next > give_up)) {
                return Ok(());
            }
            self.wait(next)?;
        }
    }

    /// Leaves the processor to others for a moment, if they have not had it for long.
    fn rest(&mut self) {
        let now = self.hands.clock.now();
        if now.saturating_sub(self.rested) >= STRETCH {
            std::thread::sleep(REST);
            self.rested = self.hands.clock.now();
        }
    }

    /// One turn for everybody; whether there was anything to do.
    fn sweep(&mut self) -> Result<bool> {
        let stall = self.hands.clock.take_stall();
        let mut packets = 0;
        for route in &mut self.routes {
            packets += route.take_in(Direction::Up, stall, &mut self.hands)?;
            packets += route.take_in(Direction::Down, stall, &mut self.hands)?;
            packets += route.deliver(&mut self.hands)?;
        }
        Ok(packets > 0)
    }

    /// Until a packet comes in, or until shortly before `next`.
    fn wait(&mut self, next: Option<u64>) -> Result<()> {
        let now = self.hands.clock.now();
        let left = next.map_or(HEARTBEAT, |next| next.saturating_sub(now).saturating_sub(SPIN));
        if left == 0 {
            std::hint::spin_loop();
            return Ok(());
        }
        let ns = left.min(HEARTBEAT);
        let timeout = Timespec { tv_sec: 0, tv_nsec: ns.try_into()? };
        let ends = self.routes.iter().flat_map(|route| [&route.near, &route.far]);
        let mut ready: Vec<_> =
            ends.map(|end| PollFd::from_borrowed_fd(end.device.fd(), PollFlags::IN)).collect();
        if self.give_up.is_none() {
            ready.push(PollFd::new(&self.stop, PollFlags::IN));
        }
        match poll(&mut ready, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("the emulator cannot wait"),
        }
        let stopped = self.give_up.is_none() && ready.last().is_some_and(|stop| !stop.revents().is_empty());
        let now = self.hands.clock.woke(now + ns);
        self.rested = now;
        if stopped {
            self.give_up = Some(now + LAST_PACKETS);
        }
        Ok(())
    }

    /// What was seen in all.
    pub(super) fn finish(self) -> Result<Observed> {
        let (mut captures, mut events) = (Vec::new(), Vec::new());
        let (mut missing, mut lost) = (0, self.hands.refused);
        for mut route in self.routes {
            lost += route.near.device.lost()? + route.far.device.lost()?;
            let more = (route.more_events > 0).then(|| Event {
                time: clock::now(),
                what: format!("{} more events, not logged", route.more_events),
            });
            events.extend(route.events.into_iter().chain(more));
            let taps = [Some(route.near.tap), route.middle, Some(route.far.tap)];
            for tap in taps.into_iter().flatten() {
                let (capture, lacking) = tap.finish()?;
                captures.push(capture);
                missing += lacking;
            }
        }
        events.sort_by_key(|event| event.time);
        Ok(Observed { captures, missing, events, lateness: self.hands.tally.sum_up(lost) })
    }
}

impl Route {
    fn new(line: Line, setup: &Setup, index: u64) -> io::Result<Self> {
        // Two links of one path have luck of their own.
        let link = Link::new(&line.ends, setup.seed.wrapping_add(index));
        let end = |port: Port| {
            let tap = Tap::new(port.vantage, setup.snaplen)?;
            io::Result::Ok(End { device: port.device, tap })
        };
        let middle = setup.middle.then(|| Tap::new(Vantage::Middle, setup.snaplen)).transpose()?;
        Ok(Self {
            link,
            near: end(line.near)?,
            far: end(line.far)?,
            middle,
            events: Vec::new(),
            more_events: 0,
        })
    }

    /// Takes what a host sent; returns how many packets.
    fn take_in(&mut self, direction: Direction, stall: u64, hands: &mut Hands) -> Result<usize> {
        let End { device, tap } = match direction {
            Direction::Up => &mut self.near,
            Direction::Down => &mut self.far,
        };
        for taken in 0..TURN {
            let Some(received) = device.receive().context("cannot read from a device")? else {
                return Ok(taken);
            };
            let now = hands.clock.now();
            let time = clock::now();
            tap.record(time, received.whole)?;
            for packet in received.packets() {
                if let Some(middle) = &mut self.middle {
                    middle.record(time, packet)?;
                }
                let Some(parcel) = hands.parcel(packet, stall) else { continue };
                self.link.handle_packet(now, direction, Segment::of_ip_packet(packet), parcel);
            }
        }
        Ok(TURN)
    }

    /// Hands over what is due; returns how many packets.
    fn deliver(&mut self, hands: &mut Hands) -> Result<usize> {
        self.note_events(hands.clock.now());
        for delivered in 0..TURN {
            let now = hands.clock.now();
            let Some(mut delivery) = self.link.poll_deliver(now) else {
                return Ok(delivered);
            };
            let Parcel { bytes, late, .. } = &mut delivery.packet;
            if delivery.mark_ce {
                mark_ce(bytes);
            }
            let End { device, tap } = match delivery.direction {
                Direction::Up => &mut self.far,
                Direction::Down => &mut self.near,
            };
            tap.record(clock::now(), bytes)?;
            hands.tally.add(*late + now.saturating_sub(delivery.due));
            device.send(bytes).context("cannot write to a device")?;
            hands.take_back(delivery.packet.bytes);
        }
        Ok(TURN)
    }

    /// Keeps the link's log, in the time of captures; `now` is by the link's clock.
    fn note_events(&mut self, now: u64) {
        while let Some(event) = self.link.poll_event() {
            if self.events.len() >= MOST_EVENTS {
                self.more_events += 1;
                continue;
            }
            let way = match event.direction {
                Direction::Up => "up",
                Direction::Down => "down",
            };
            let ago = i64::try_from(now.saturating_sub(event.time)).unwrap_or(i64::MAX);
            let what = format!("{way} packet {}: {}", event.number, event.kind);
            self.events.push(Event { time: clock::now().saturating_sub(ago), what });
        }
    }
}

impl Hands {
    /// The packet in a buffer of its own; none where too many are under way.
    fn parcel(&mut self, packet: &[u8], late: u64) -> Option<Parcel> {
        if self.under_way.load(Ordering::Relaxed) + packet.len() > MOST_UNDER_WAY {
            self.refused += 1;
            return None;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(packet);
        Some(Parcel { bytes: buffer, late, _room: Room::take(packet.len(), &self.under_way) })
    }

    /// Keeps the buffer for the next packet.
    fn take_back(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }
}
