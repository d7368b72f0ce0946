//! What the programs at both ends of a generated connection do.

use super::connection::{Connection, Side};
use super::segment::FULL;
use crate::random::Random;

/// Linux' least delayed-ACK time, in µs.
const DELAYED_ACK_US: u64 = 40_000;
/// Linux' least retransmission timeout, in µs.
const LEAST_RTO_US: u64 = 200_000;
/// A full frame at 1 Gbit/s, in µs.
const FRAME_US: u64 = 12;
/// Segments that arrive behind a lost one before the sender mends it (RFC 5681 section 3.2).
const DUPLICATE_ACKS: u64 = 3;

/// A range to choose from, both ends included.
pub(crate) type Range = (u64, u64);

/// A conversation of requests and responses.
#[derive(Clone, Debug)]
pub(crate) struct Chat {
    /// Requests still to come.
    pub(crate) exchanges: u64,
    /// Bytes of a request.
    pub(crate) request: Range,
    /// Bytes of a response.
    pub(crate) response: Range,
    /// The client's pause before a request, in µs.
    pub(crate) client_us: Range,
    /// The server's work on one, in µs.
    pub(crate) server_us: Range,
    /// Whether the client writes its request in two pieces under Nagle's algorithm.
    pub(crate) split: bool,
    /// One response in so many is lost and sent again.
    pub(crate) one_lost_in: u64,
}

/// One long download.
#[derive(Clone, Debug)]
pub(crate) struct Download {
    /// Full segments still to be sent.
    pub(crate) segments: u64,
    /// Segments in flight.
    pub(crate) flight: u64,
    /// One pair of segments in so many loses its first.
    pub(crate) one_lost_in: u64,
    /// The first unacknowledged byte and when its ACK passes; set once a flight is under way.
    pub(crate) clock: Option<(u32, u64)>,
}

/// Either kind.
#[derive(Clone, Debug)]
pub(crate) enum Script {
    /// Not begun yet, and what follows the handshake.
    Start(Box<Script>),
    /// Requests and responses.
    Chat(Chat),
    /// A download.
    Download(Download),
    /// Nothing more will come.
    Done,
}

impl Script {
    /// Adds the segments of the next step, the first of them at `now` or later, to `connection.pending`;
    /// adds nothing once the script is done.
    pub(crate) fn step(&mut self, now: u64, connection: &mut Connection, random: &mut Random) {
        let over = match self {
            Self::Start(next) => {
                connection.handshake(now);
                *self = std::mem::replace(next, Self::Done);
                return;
            }
            Self::Chat(chat) => chat.step(now, connection, random),
            Self::Download(download) => download.step(now, connection, random),
            Self::Done => return,
        };
        if over {
            connection.close(connection.pending.back().map_or(now, |last| last.time_us) + 100);
            *self = Self::Done;
        }
    }
}

impl Chat {
    /// One exchange; true after the last one.
    fn step(&mut self, now: u64, connection: &mut Connection, random: &mut Random) -> bool {
        let think = random.between(self.client_us);
        let asked = self.ask(now + think, connection, random);
        let ready = asked + connection.path.server_us + random.between(self.server_us);
        let first = connection.next_seq(Side::Server);
        let bytes = random.between(self.response);
        let mut sent = connection.send(ready, Side::Server, bytes, FRAME_US);
        if random.one_in(self.one_lost_in) {
            sent += LEAST_RTO_US + connection.path.client_us;
            connection.resend(sent, Side::Server, first, bytes.min(u64::from(FULL)) as u16);
        }
        self.exchanges -= 1;
        // A client with its next request at hand lets that carry the ACK; the others' receivers wait a little.
        let pause = if self.exchanges == 0 { 0 } else { self.client_us.0 };
        if self.exchanges == 0 || pause > DELAYED_ACK_US {
            let delay = if self.exchanges == 0 { 0 } else { DELAYED_ACK_US };
            connection.ack(sent + connection.path.client_us + delay, Side::Client);
        }
        self.exchanges == 0
    }

    /// The request; returns when its last byte passes.
    fn ask(&self, time: u64, connection: &mut Connection, random: &mut Random) -> u64 {
        let bytes = random.between(self.request);
        if !self.split {
            return connection.send(time, Side::Client, bytes, FRAME_US);
        }
        let head = bytes / 2;
        connection.send(time, Side::Client, head, FRAME_US);
        let acked = time + connection.path.server_us + DELAYED_ACK_US;
        connection.ack(acked, Side::Server);
        connection.send(acked + connection.path.client_us, Side::Client, bytes - head, FRAME_US)
    }
}

impl Download {
    /// The request and the first flight, or one ACK and the two segments that it lets go; true at the end.
    fn step(&mut self, now: u64, connection: &mut Connection, random: &mut Random) -> bool {
        let Some((unacked, due)) = self.clock else {
            let asked = connection.send(now, Side::Client, 200, FRAME_US);
            self.send_flight(asked + connection.path.server_us, connection);
            return false;
        };
        let time = now.max(due);
        if self.segments == 0 {
            connection.ack(time + connection.path.client_us, Side::Client);
            return true;
        }
        if random.one_in(self.one_lost_in) {
            self.lose_one(time, unacked, connection);
            return false;
        }
        let acked = unacked.wrapping_add(2 * u32::from(FULL));
        connection.ack_up_to(time, Side::Client, acked);
        let pair = self.segments.min(2);
        connection.send(time + FRAME_US, Side::Server, pair * u64::from(FULL), FRAME_US);
        self.segments -= pair;
        // A pair of segments is ACKed each 2/flight of a round trip.
        let pace = (2 * connection.path.client_us / self.flight).max(2 * FRAME_US);
        self.clock = Some((acked, time + pace));
        false
    }

    /// As many segments as may be in flight; the ACK of the first is due a round trip later.
    fn send_flight(&mut self, time: u64, connection: &mut Connection) {
        self.clock = Some((connection.next_seq(Side::Server), time + connection.path.client_us));
        let flight = self.flight.min(self.segments);
        self.segments -= flight;
        connection.send(time, Side::Server, flight * u64::from(FULL), FRAME_US);
    }

    /// The first unacknowledged segment got lost behind the capture point: duplicate ACKs, a fast retransmit,
    /// and the ACK of the whole flight, which draws the next one.
    fn lose_one(&mut self, time: u64, unacked: u32, connection: &mut Connection) {
        let full = u32::from(FULL);
        let mut at = time;
        for arrived in 1..=DUPLICATE_ACKS as u32 {
            let sack = (unacked.wrapping_add(full), unacked.wrapping_add((1 + arrived) * full));
            connection.duplicate_ack(at, Side::Client, sack);
            at += FRAME_US;
        }
        connection.resend(at, Side::Server, unacked, FULL);
        at += connection.path.client_us;
        connection.ack(at, Side::Client);
        self.send_flight(at + FRAME_US, connection);
    }
}
