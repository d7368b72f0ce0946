//! Two endpoints, their programs and the link between them, run in virtual time.
//!
//! [`World::step`] goes from one instant at which something happens to the next; [`World::run`] goes to the end. What
//! passes a client's or a server's interface is kept as a capture there would show it ([`World::seen`]).

mod frame;
mod program;

pub use frame::{CLIENT, SERVER, frame, ipv4_packet, packet};
use program::Running;
pub use program::{Act, Log, Program, Reader, Step, When, Written};

use crate::link::{self, Direction, Ends, Link};
use crate::tcp::{Ecn, Endpoint, Segment, SocketOption, Stack, State};
use tcpwhy_wire::TcpFlags;

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The client's stack.
    pub client: Stack,
    /// The server's stack.
    pub server: Stack,
    /// The client's program.
    pub client_program: Program,
    /// The server's program.
    pub server_program: Program,
    /// The path.
    pub ends: Ends,
    /// For everything that is left to chance.
    pub seed: u64,
}

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Opens the connection.
    Client,
    /// Listens.
    Server,
}

impl Side {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Which way its segments travel.
    pub fn direction(self) -> Direction {
        match self {
            Self::Client => Direction::Up,
            Self::Server => Direction::Down,
        }
    }

    fn sender_in(direction: Direction) -> Self {
        match direction {
            Direction::Up => Self::Client,
            Direction::Down => Self::Server,
        }
    }
}

/// A segment that passed an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When, in ns since the start.
    pub time: u64,
    /// Who sent it.
    pub from: Side,
    /// It is the n-th packet of its sender, counted from 1; lost ones count too.
    pub number: u64,
    /// What it was, as it passed: marks of the network included.
    pub segment: Segment,
}

/// Two hosts and a path.
#[derive(Debug)]
pub struct World {
    now: u64,
    hosts: [Host; 2],
    link: Link<Numbered>,
}

/// A segment under way, and which packet of its sender it is.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    number: u64,
    segment: Segment,
}

#[derive(Debug)]
struct Host {
    endpoint: Endpoint,
    program: Running,
    /// Packets sent so far.
    sent: u64,
    seen: Vec<Seen>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to happen, or both programs are done and both endpoints closed.
    Over,
    /// The time was up.
    TimeUp,
    /// So many things happened at so few instants that something must be wrong.
    Stuck,
}

/// Steps at one instant that no right endpoint needs.
const MOST_STEPS: u32 = 100_000;

impl World {
    /// A world in which the client has just begun to connect, at time zero.
    pub fn new(setup: &Setup) -> Self {
        let host = |stack: &Stack, program: &Program, seed: u64| Host {
            endpoint: Endpoint::new(stack, seed),
            program: Running::new(program, 0),
            sent: 0,
            seen: Vec::new(),
        };
        let client = host(&setup.client, &setup.client_program, setup.seed.wrapping_mul(2).wrapping_add(1));
        let server = host(&setup.server, &setup.server_program, setup.seed.wrapping_mul(2).wrapping_add(2));
        let mut world = Self { now: 0, hosts: [client, server], link: Link::new(&setup.ends, setup.seed) };
        world.set_all(Side::Client, &setup.client_program.options);
        world.set_all(Side::Server, &setup.server_program.options);
        world.hosts[1].endpoint.listen();
        world.hosts[0].endpoint.connect(0);
        world.settle();
        world
    }

    fn set_all(&mut self, side: Side, options: &[SocketOption]) {
        for option in options {
            self.hosts[side as usize].endpoint.set(0, *option);
        }
    }

    /// The present, in ns since the start.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// One of the endpoints.
    pub fn endpoint(&self, side: Side) -> &Endpoint {
        &self.hosts[side as usize].endpoint
    }

    /// One of the endpoints, to ask for its events.
    pub fn endpoint_mut(&mut self, side: Side) -> &mut Endpoint {
        &mut self.hosts[side as usize].endpoint
    }

    /// What a program did.
    pub fn log(&self, side: Side) -> &Log {
        &self.hosts[side as usize].program.log
    }

    /// Whether a program is inside a write that its full send buffer blocks.
    pub fn is_write_blocked(&self, side: Side) -> bool {
        self.hosts[side as usize].program.is_blocked()
    }

    /// What passed the interface of one side so far.
    pub fn seen(&self, side: Side) -> &[Seen] {
        &self.hosts[side as usize].seen
    }

    /// The link, to ask for its events.
    pub fn link_mut(&mut self) -> &mut Link<Numbered> {
        &mut self.link
    }

    /// The link.
    pub fn link(&self) -> &Link<Numbered> {
        &self.link
    }

    /// Goes on until it is over, but not beyond `until` (ns).
    pub fn run(&mut self, until: u64) -> End {
        self.run_with(until, |_| {})
    }

    /// The same; `observe` sees the world after every instant at which something happened.
    pub fn run_with(&mut self, until: u64, mut observe: impl FnMut(&mut Self)) -> End {
        let ended = self.run_while(until, |world| {
            observe(world);
            true
        });
        ended.unwrap_or(End::TimeUp)
    }

    /// The same, for as long as `goes_on` says so, which is asked after every instant at which something happened; `None`
    /// where it did not.
    pub fn run_while(&mut self, until: u64, mut goes_on: impl FnMut(&mut Self) -> bool) -> Option<End> {
        let mut steps_here = 0;
        while goes_on(self) {
            let Some(next) = self.poll_at().filter(|_| !self.is_over()) else { return Some(End::Over) };
            if next > until {
                self.now = until;
                return Some(End::TimeUp);
            }
            steps_here = if next > self.now { 0 } else { steps_here + 1 };
            if steps_here > MOST_STEPS {
                return Some(End::Stuck);
            }
            self.step(next);
        }
        None
    }

    /// Whether both programs are done and the connection is closed, or waits only for the end of TIME-WAIT.
    fn is_over(&self) -> bool {
        self.hosts.iter().all(|host| {
            host.program.is_done() && matches!(host.endpoint.state(), State::Closed | State::TimeWait)
        })
    }

    /// When something happens next, in ns.
    pub fn poll_at(&self) -> Option<u64> {
        let hosts = self.hosts.iter().flat_map(|host| [host.endpoint.poll_at(), host.program.poll_at()]);
        hosts.chain([self.link.poll_at()]).flatten().min()
    }

    /// Lets everything happen that is due at `now`, in ns.
    pub fn step(&mut self, now: u64) {
        self.now = self.now.max(now);
        while let Some(delivery) = self.link.poll_deliver(self.now) {
            let Numbered { number, mut segment } = delivery.packet;
            if delivery.mark_ce {
                segment.ecn = Ecn::Ce;
            }
            let from = Side::sender_in(delivery.direction);
            let host = &mut self.hosts[from.other() as usize];
            host.seen.push(Seen { time: self.now, from, number, segment });
            host.endpoint.handle_segment(self.now, &segment);
            host.program.run(self.now, &mut host.endpoint);
            self.transmit();
        }
        for host in &mut self.hosts {
            if host.endpoint.poll_at().is_some_and(|due| due <= self.now) {
                host.endpoint.handle_timer(self.now);
            }
        }
        self.settle();
    }

    fn settle(&mut self) {
        for host in &mut self.hosts {
            host.program.run(self.now, &mut host.endpoint);
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        for (index, side) in [Side::Client, Side::Server].into_iter().enumerate() {
            while let Some(segment) = self.hosts[index].endpoint.poll_transmit() {
                let host = &mut self.hosts[index];
                host.sent += 1;
                let number = host.sent;
                host.seen.push(Seen { time: self.now, from: side, number, segment });
                let known = on_link(&segment);
                self.link.handle_packet(self.now, side.direction(), known, Numbered { number, segment });
            }
        }
    }
}

/// What the link must know of a segment, as if it had read it off the packet. Its connection is number 0: where there is
/// only one, that does not matter.
pub fn on_link(segment: &Segment) -> link::Segment {
    let has = |bit| segment.has(bit);
    link::Segment {
        len: segment.packet_len(),
        ecn_capable: segment.ecn != Ecn::NotCapable,
        tcp: Some(link::Tcp {
            flow: 0,
            seq: segment.tcp.seq,
            ack: segment.tcp.ack,
            window: segment.tcp.window,
            payload: segment.tcp.payload_len,
            options: segment.options_len(),
            mss: segment.tcp.options.mss,
            syn: has(TcpFlags::SYN),
            fin: has(TcpFlags::FIN),
            rst: has(TcpFlags::RST),
            psh: has(TcpFlags::PSH),
            ack_flag: has(TcpFlags::ACK),
        }),
    }
}
