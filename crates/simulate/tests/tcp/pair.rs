//! Two endpoints and a link between them, driven by hand. What `a` sends travels up.

use std::time::Duration;

use tcpwhy_simulate::link::{Direction, Ends, Link};
use tcpwhy_simulate::tcp::{Ecn, Endpoint, Segment, Stack};
use tcpwhy_simulate::world::on_link;

pub(crate) const MS: u64 = 1_000_000;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    A,
    B,
}

/// A segment that left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) time: u64,
    pub(crate) from: Side,
    pub(crate) segment: Segment,
}

pub(crate) struct Pair {
    pub(crate) now: u64,
    pub(crate) a: Endpoint,
    pub(crate) b: Endpoint,
    link: Link<Segment>,
    /// Everything that left, in order.
    pub(crate) sent: Vec<Sent>,
    /// Both read whatever arrives at once, unless told otherwise.
    pub(crate) reads: [bool; 2],
    /// Bytes read so far.
    pub(crate) read: [u64; 2],
}

impl Pair {
    /// `b` listens; nothing has happened.
    pub(crate) fn new(a: &Stack, b: &Stack, ends: &Ends, seed: u64) -> Self {
        let mut b = Endpoint::new(b, seed + 1);
        b.listen();
        let a = Endpoint::new(a, seed);
        let link = Link::new(ends, seed);
        Self { now: 0, a, b, link, sent: Vec::new(), reads: [true; 2], read: [0; 2] }
    }

    /// Connected over a path that does nothing but take `round_trip` ms; the clock stands where the handshake ended.
    pub(crate) fn connected(a: &Stack, b: &Stack, round_trip: u64) -> Self {
        let ends = Ends::round_trip(Duration::from_millis(round_trip));
        let mut pair = Self::new(a, b, &ends, 7);
        pair.a.connect(0);
        pair.run(3 * round_trip / 2 * MS);
        pair.sent.clear();
        pair
    }

    /// Something is done to an endpoint by the program at `time`; nothing may be due before.
    pub(crate) fn at<T>(&mut self, time: u64, act: impl FnOnce(&mut Self, u64) -> T) -> T {
        self.run(time);
        let result = act(self, time);
        self.transmit();
        result
    }

    /// Everything up to `until`, in ns, happens. Returns how many instants that took.
    pub(crate) fn run(&mut self, until: u64) -> u64 {
        self.transmit();
        let mut instants = 0;
        while let Some(next) = self.poll_at().filter(|next| *next <= until) {
            instants += 1;
            assert!(next >= self.now || instants < 100_000, "time stands still at {next}");
            self.now = self.now.max(next);
            self.step();
        }
        self.now = self.now.max(until);
        instants
    }

    fn poll_at(&self) -> Option<u64> {
        [self.a.poll_at(), self.b.poll_at(), self.link.poll_at()].into_iter().flatten().min()
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(delivery) = self.link.poll_deliver(now) {
            let mut segment = delivery.packet;
            segment.ecn = if delivery.mark_ce { Ecn::Ce } else { segment.ecn };
            let (to, side) = match delivery.direction {
                Direction::Up => (&mut self.b, Side::B),
                Direction::Down => (&mut self.a, Side::A),
            };
            to.handle_segment(now, &segment);
            self.read_all(side);
            self.transmit();
        }
        for endpoint in [&mut self.a, &mut self.b] {
            if endpoint.poll_at().is_some_and(|due| due <= now) {
                endpoint.handle_timer(now);
            }
        }
        self.transmit();
    }

    fn read_all(&mut self, side: Side) {
        if self.reads[side as usize] {
            self.read_some(side, u64::MAX);
        }
    }

    /// The program reads up to so many bytes now.
    pub(crate) fn read_some(&mut self, side: Side, most: u64) {
        let now = self.now;
        let endpoint = if side == Side::A { &mut self.a } else { &mut self.b };
        self.read[side as usize] += endpoint.handle_read(now, most);
    }

    fn transmit(&mut self) {
        loop {
            let (side, direction, segment) = match (self.a.poll_transmit(), Side::A) {
                (Some(segment), side) => (side, Direction::Up, segment),
                (None, _) => match self.b.poll_transmit() {
                    Some(segment) => (Side::B, Direction::Down, segment),
                    None => return,
                },
            };
            self.sent.push(Sent { time: self.now, from: side, segment });
            self.link.handle_packet(self.now, direction, on_link(&segment), segment);
        }
    }

    /// Times (ms since `from`) and payloads of the data segments that `side` sent.
    pub(crate) fn data(&self, side: Side, from: u64) -> Vec<(f64, u32)> {
        self.of(side).filter(|sent| sent.segment.tcp.payload_len > 0).map(|sent| sent.seen(from)).collect()
    }

    /// Times (ms since `from`) of the pure ACKs that `side` sent.
    pub(crate) fn acks(&self, side: Side, from: u64) -> Vec<f64> {
        self.of(side).filter(|sent| sent.segment.is_pure_ack()).map(|sent| sent.seen(from).0).collect()
    }

    pub(crate) fn of(&self, side: Side) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |sent| sent.from == side)
    }
}

impl Sent {
    fn seen(&self, from: u64) -> (f64, u32) {
        ((self.time as f64 - from as f64) / 1e6, self.segment.tcp.payload_len)
    }

    pub(crate) fn has(&self, flags: u16) -> bool {
        self.segment.has(flags)
    }
}
