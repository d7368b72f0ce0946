//! What one block of a trial measured.

use super::conversation::{Conversation, Direction, Ended};

/// Exchanges of a block that are kept for its median: beyond it, every second one, then every fourth, and so on.
const MOST_KEPT: usize = 1 << 16;

/// Ns in a ms.
const NS_PER_MS: f64 = 1e6;

/// What one block measured, all connections together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Whether the option was on.
    pub is_on: bool,
    /// How long it was measured, in s, without the time in which the new setting settled.
    pub seconds: f64,
    /// Exchanges that began and ended in it.
    pub exchanges: u64,
    /// The median exchange, in ms.
    pub latency_ms: Option<f64>,
    /// The mean time from one update that left to the next, in ms.
    pub gap_ms: Option<f64>,
    /// Data segments that left the program's sockets; `None` where packets were not seen.
    pub segments: Option<u64>,
    /// Looks at the sockets between which something had left them.
    pub sends: u64,
    /// Bytes that left them.
    pub bytes: u64,
    /// How long a byte lay in the send queue before it left for the first time, on average, in ms.
    pub wait_ms: Option<f64>,
    /// ACKs that the kernel sent because a delayed ACK's timer ran out (`TcpExtDelayedACKs`), on all connections of the
    /// network namespace.
    pub delayed_acks: Option<u64>,
}

/// Gathers a block.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    is_on: bool,
    /// What began before counts as the setting before; ns.
    settled: i64,
    sees_packets: bool,
    exchanges: u64,
    kept: Vec<i64>,
    /// One of so many exchanges is kept, less one.
    skipped: u64,
    gaps: u64,
    gaps_ns: i64,
    segments: u64,
    sends: u64,
    bytes: u64,
    /// Bytes times ns that they lay in send queues.
    lain: f64,
}

impl Tally {
    /// A block whose setting has settled at `settled` (ns, by the clock of the packets).
    pub fn new(is_on: bool, settled: i64, sees_packets: bool) -> Self {
        Self { is_on, settled, sees_packets, ..Self::default() }
    }

    /// A data segment passed at `time` (ns).
    pub fn segment(&mut self, conversation: &mut Conversation, time: i64, direction: Direction) {
        let is_settled = time >= self.settled;
        self.segments += u64::from(is_settled && direction == Direction::Out);
        for ended in conversation.segment(time, direction).into_iter().flatten() {
            match ended {
                Ended::Exchange { began, took } if began >= self.settled => self.exchange(took),
                Ended::Gap { began, took } if began >= self.settled => {
                    self.gaps += 1;
                    self.gaps_ns = self.gaps_ns.saturating_add(took);
                }
                _ => {}
            }
        }
    }

    fn exchange(&mut self, took: i64) {
        if self.exchanges.is_multiple_of(self.skipped + 1) {
            self.kept.push(took);
        }
        self.exchanges += 1;
        if self.kept.len() >= MOST_KEPT {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.skipped = 2 * self.skipped + 1;
        }
    }

    /// Between two looks at a socket, `ns` apart, `unsent` bytes lay in its send queue that had never left, and `left`
    /// bytes left it.
    pub fn look(&mut self, ns: i64, unsent: u64, left: u64) {
        self.lain += unsent as f64 * ns as f64;
        self.bytes += left;
        self.sends += u64::from(left > 0);
    }

    /// The block, measured for so many seconds.
    pub fn finish(mut self, seconds: f64, delayed_acks: Option<u64>) -> Block {
        self.kept.sort_unstable();
        let median = median_of_sorted(&self.kept);
        Block {
            is_on: self.is_on,
            seconds,
            exchanges: self.exchanges,
            latency_ms: median.map(|ns| ns / NS_PER_MS),
            gap_ms: (self.gaps > 0).then(|| self.gaps_ns as f64 / self.gaps as f64 / NS_PER_MS),
            segments: self.sees_packets.then_some(self.segments),
            sends: self.sends,
            bytes: self.bytes,
            // Little's law: what lies there on average is what comes a second times how long it stays.
            wait_ms: (self.bytes > 0).then(|| self.lain / self.bytes as f64 / NS_PER_MS),
            delayed_acks,
        }
    }
}

fn median_of_sorted(sorted: &[i64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)? as f64;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some((sorted[middle - 1] as f64 + upper) / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::super::Role;
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn what_began_before_the_setting_had_settled_does_not_count() {
        let mut conversation = Conversation::new(Role::Client);
        let mut tally = Tally::new(true, 250 * MS, true);
        for i in 0..10 {
            tally.segment(&mut conversation, i * 100 * MS, Direction::Out);
            tally.segment(&mut conversation, (i * 100 + 3) * MS, Direction::In);
        }
        let block = tally.finish(0.75, None);
        // Exchanges began at 300, 400 … 900; the last one's end is not known.
        assert_eq!((block.exchanges, block.latency_ms, block.gap_ms), (6, Some(3.0), Some(100.0)));
        assert_eq!(block.segments, Some(7));
    }

    #[test]
    fn a_byte_waits_as_littles_law_says() {
        let mut tally = Tally::new(false, 0, false);
        // A hundred messages of two bytes, each of which lies there for 40 of 50 ms.
        for _ in 0..100 {
            tally.look(40 * MS, 2, 2);
            tally.look(10 * MS, 0, 0);
        }
        let block = tally.finish(5.0, Some(7));
        assert_eq!((block.wait_ms, block.bytes, block.sends), (Some(40.0), 200, 100));
        assert_eq!((block.segments, block.delayed_acks, block.latency_ms), (None, Some(7), None));
        assert_eq!(Tally::new(false, 0, false).finish(1.0, None).wait_ms, None);
    }

    #[test]
    fn a_long_block_keeps_its_median_and_not_its_exchanges() {
        let mut tally = Tally::default();
        let many = 5 * MOST_KEPT as i64;
        (0..many).for_each(|i| tally.exchange(i * MS));
        assert!(tally.kept.len() <= MOST_KEPT);
        let block = tally.finish(1.0, None);
        let middle = many as f64 / 2.0;
        assert!((block.latency_ms.expect("exchanges") / middle - 1.0).abs() < 0.001, "{block:?}");
        assert_eq!(block.exchanges, many as u64);
    }
}
