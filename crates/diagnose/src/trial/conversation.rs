//! Data segments of one connection, made into exchanges and updates.

/// Which way a data segment went, as seen from the socket whose option is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It left that socket.
    Out,
    /// It came to it.
    In,
}

/// Which side asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The socket's own program asks: it opened the connection.
    Client,
    /// The other side asks.
    Server,
}

/// Segments of one direction closer than this belong to one burst, in ns. A program's writes follow each other within
/// tens of µs; Linux holds an ACK for 40 ms, or a clock tick of 4 to 10 ms at the least.
const BURST_NS: i64 = 2_000_000;

/// A turn of more bursts than this is no answer but a stream that does not wait for the other side. Programs that
/// write header, body and trailer apart make three.
const BURSTS_OF_A_TURN: f64 = 3.0;

/// What a data segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// An exchange that began then and took so long, in ns: from the first segment of the request to the last one of
    /// the answer.
    Exchange { began: i64, took: i64 },
    /// The time since the update before this one, from beginning to beginning, in ns; both left the socket.
    Gap { began: i64, took: i64 },
}

/// One connection.
#[derive(Clone, Debug)]
pub struct Conversation {
    role: Role,
    /// Which way the last segment went, and when.
    last: Option<(Direction, i64)>,
    /// When the request began.
    asked: Option<i64>,
    /// When the answer's last segment so far passed.
    answered: Option<i64>,
    /// When the last update that left began, and when its last segment passed.
    update: Option<(i64, i64)>,
    turns: u64,
    bursts: u64,
}

impl Conversation {
    /// A connection of which nothing was seen yet.
    pub fn new(role: Role) -> Self {
        Self { role, last: None, asked: None, answered: None, update: None, turns: 0, bursts: 0 }
    }

    /// Takes a data segment that passed at `time` (ns). An exchange is over when the next one begins: only then is it
    /// known that nothing of the answer is still held back.
    pub(super) fn segment(&mut self, time: i64, direction: Direction) -> [Option<Ended>; 2] {
        self.count(time, direction);
        let is_request = (direction == Direction::Out) == (self.role == Role::Client);
        let mut exchange = None;
        if !is_request {
            self.answered = self.asked.map(|_| time);
        } else if let (Some(began), Some(answered)) = (self.asked, self.answered) {
            exchange = Some(Ended::Exchange { began, took: (answered - began).max(0) });
            (self.asked, self.answered) = (Some(time), None);
        } else {
            self.asked.get_or_insert(time);
        }
        [exchange, if direction == Direction::Out { self.update(time) } else { None }]
    }

    fn count(&mut self, time: i64, direction: Direction) {
        let (turn, burst) = match self.last {
            Some((last, at)) => (last != direction, last != direction || time - at > BURST_NS),
            None => (true, true),
        };
        self.turns += u64::from(turn);
        self.bursts += u64::from(burst);
        self.last = Some((direction, time));
    }

    fn update(&mut self, time: i64) -> Option<Ended> {
        let Some((began, last)) = self.update else {
            self.update = Some((time, time));
            return None;
        };
        if time - last <= BURST_NS {
            self.update = Some((began, time));
            return None;
        }
        self.update = Some((time, time));
        Some(Ended::Gap { began, took: time - began })
    }

    /// Whether the sides take turns, as far as was seen: each says what it has to say, then waits for the other. `None`:
    /// too little was seen to tell an answer from a stream.
    pub fn takes_turns(&self) -> Option<bool> {
        let is_short = self.bursts as f64 <= BURSTS_OF_A_TURN * self.turns as f64;
        if self.turns <= 1 && is_short { None } else { Some(self.turns > 1 && is_short) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn ended(role: Role, segments: &[(i64, Direction)]) -> Vec<Ended> {
        let mut conversation = Conversation::new(role);
        segments
            .iter()
            .flat_map(|&(time, direction)| conversation.segment(time, direction))
            .flatten()
            .filter(|ended| matches!(ended, Ended::Exchange { .. }))
            .collect()
    }

    #[test]
    fn an_exchange_lasts_from_the_first_piece_of_the_request_to_the_last_of_the_answer() {
        use Direction::{In, Out};
        let segments = [(0, Out), (40 * MS, Out), (41 * MS, In), (42 * MS, In), (100 * MS, Out)];
        assert_eq!(ended(Role::Client, &segments), [Ended::Exchange { began: 0, took: 42 * MS }]);
        // Seen from the other side, nothing but the direction differs.
        let mirrored = segments.map(|(time, way)| (time, if way == Out { In } else { Out }));
        assert_eq!(ended(Role::Server, &mirrored), [Ended::Exchange { began: 0, took: 42 * MS }]);
        // The last answer may still lack its body.
        assert_eq!(ended(Role::Client, &segments[..4]), []);
        // What comes before the first request is no answer to it.
        assert_eq!(ended(Role::Client, &[(0, In), (MS, Out), (2 * MS, Out)]), []);
    }

    #[test]
    fn updates_are_counted_from_beginning_to_beginning() {
        let mut conversation = Conversation::new(Role::Server);
        let times = [0, MS / 10, 100 * MS, 101 * MS, 300 * MS];
        let gaps: Vec<_> =
            times.iter().flat_map(|&time| conversation.segment(time, Direction::Out)).flatten().collect();
        let expected = [(0, 100 * MS), (100 * MS, 200 * MS)].map(|(began, took)| Ended::Gap { began, took });
        assert_eq!(gaps, expected);
        assert_eq!(conversation.takes_turns(), None, "three bursts may be an answer");
        conversation.segment(500 * MS, Direction::Out);
        assert_eq!(conversation.takes_turns(), Some(false), "nobody ever answered");
    }

    #[test]
    fn a_stream_takes_no_turns() {
        let mut updates = Conversation::new(Role::Server);
        let mut requests = Conversation::new(Role::Server);
        for i in 0..40 {
            updates.segment(i * 100 * MS, if i % 10 == 0 { Direction::In } else { Direction::Out });
            requests.segment(i * 100 * MS, if i % 3 == 0 { Direction::In } else { Direction::Out });
        }
        assert_eq!(updates.takes_turns(), Some(false));
        assert_eq!(requests.takes_turns(), Some(true));
        assert_eq!(Conversation::new(Role::Client).takes_turns(), None);
    }
}
