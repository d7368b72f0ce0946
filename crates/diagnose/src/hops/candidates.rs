//! Pairs of connections whose totals allow them to be two hops of one conversation.

use std::collections::{BTreeSet, HashMap};

use tcpwhy_wire::Socket;

use super::{Hop, Place};

/// So many connections with the same totals are a benchmark's, or a scan's: too many to tell apart.
const MOST_ALIKE: usize = 16;
/// Connections whose end was not captured are compared with all others: so many of them at most.
const MOST_UNFINISHED: usize = 256;
/// Pairs that are compared.
const MOST_PAIRS: usize = 4_096;
/// Pairs that are counted; those beyond are not even looked for.
const MOST_COUNTED: usize = 16 * MOST_PAIRS;
/// Packets recorded of one connection, and of all together: 72 bytes each.
const MOST_PACKETS: (u64, u64) = (1 << 18, 1 << 20);

/// Pairs that are worth a second look at the packets.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// All connections that may be hops; each once, though captured twice.
    pub(super) hops: Vec<Hop>,
    /// The one nearer to the client, and the one behind the proxy, by their index in `hops`.
    pub(super) pairs: Vec<(usize, usize)>,
    /// What was left out, and why.
    pub(super) notes: Vec<String>,
}

impl Candidates {
    /// The pairs among these connections; `only` those with one of that number.
    pub fn of(hops: Vec<Hop>, only: Option<u64>) -> Self {
        let (hops, twice) = without_twins(hops);
        let mut candidates = Self { hops, ..Self::default() };
        if twice > 0 {
            let those = if twice == 1 { "One connection is" } else { "Some connections are" };
            candidates.notes.push(format!(
                "{those} in two captures: the same TCP connection, seen at two places. Between these is no proxy."
            ));
        }
        candidates.pair_equals();
        candidates.pair_unfinished();
        candidates.pairs.sort_unstable();
        candidates.pairs.dedup();
        if let Some(id) = only {
            let is_asked = |index: usize| candidates.hops[index].place.connection == id;
            candidates.pairs.retain(|pair| is_asked(pair.0) || is_asked(pair.1));
        }
        candidates.keep_what_can_be_recorded();
        candidates
    }

    /// Whether there is nothing to look at.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The connections of a capture whose packets are wanted.
    pub fn wanted(&self, capture: usize) -> Vec<u64> {
        let wanted: BTreeSet<Place> = self.places().filter(|place| place.capture == capture).collect();
        wanted.into_iter().map(|place| place.connection).collect()
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        self.pairs.iter().flat_map(|(first, second)| [*first, *second]).map(|index| self.hops[index].place)
    }

    /// Whole connections with the same number of bytes each way.
    fn pair_equals(&mut self) {
        let mut alike: HashMap<[u64; 2], Vec<usize>> = HashMap::new();
        for (index, hop) in self.hops.iter().enumerate().filter(|(_, hop)| hop.whole == [true; 2]) {
            alike.entry(hop.bytes).or_default().push(index);
        }
        let (some, many): (Vec<_>, Vec<_>) = alike.into_values().partition(|group| group.len() <= MOST_ALIKE);
        if let Some(most) = many.iter().map(Vec::len).max() {
            self.notes.push(format!(
                "{most} connections carried the same number of bytes each way: too many to tell apart. --host and --port narrow a \
                 capture down."
            ));
        }
        for group in some {
            for first in &group {
                self.pair_with(*first, &group);
            }
        }
    }

    /// Connections that still went on when a capture ended.
    fn pair_unfinished(&mut self) {
        let all: Vec<usize> = (0..self.hops.len()).collect();
        let is_unfinished = |index: &usize| self.hops[*index].whole != [true; 2];
        let unfinished: Vec<usize> = all.iter().copied().filter(is_unfinished).collect();
        if unfinished.len() > MOST_UNFINISHED {
            self.notes.push(format!(
                "{} connections went on when their capture ended; the first {MOST_UNFINISHED} were compared with others.",
                unfinished.len()
            ));
        }
        for one in unfinished.into_iter().take(MOST_UNFINISHED) {
            self.pair_with(one, &all);
            for other in &all {
                self.pair_with(*other, &[one]);
            }
        }
    }

    fn pair_with(&mut self, first: usize, seconds: &[usize]) {
        let hops = &self.hops;
        let fits = |second: &&usize| may_be_hops(&hops[first], &hops[**second]);
        let room = MOST_COUNTED.saturating_sub(self.pairs.len());
        self.pairs.extend(seconds.iter().filter(fits).take(room).map(|second| (first, *second)));
    }

    fn keep_what_can_be_recorded(&mut self) {
        let mut wanted: BTreeSet<usize> = BTreeSet::new();
        let (mut packets, mut left_out) = (0_u64, self.pairs.len().saturating_sub(MOST_PAIRS));
        let hops = &self.hops;
        self.pairs.truncate(MOST_PAIRS);
        self.pairs.retain(|(first, second)| {
            let new: Vec<usize> =
                [*first, *second].into_iter().filter(|index| !wanted.contains(index)).collect();
            let more: u64 = new.iter().map(|index| hops[*index].packets).sum();
            let fits = new.iter().all(|index| hops[*index].packets < MOST_PACKETS.0);
            let is_kept = fits && packets + more <= MOST_PACKETS.1;
            if is_kept {
                packets += more;
                wanted.extend(new);
            } else {
                left_out += 1;
            }
            is_kept
        });
        if left_out > 0 {
            self.notes.push(format!(
                "{left_out} pairs of connections that carried as many bytes each way are too many, or have too many packets, to be compared."
            ));
        }
    }
}

/// The hops without those that were captured before, and how many those were.
fn without_twins(hops: Vec<Hop>) -> (Vec<Hop>, usize) {
    let mut by_isn: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut kept: Vec<Hop> = Vec::new();
    let all = hops.len();
    for hop in hops {
        let same = by_isn.entry(hop.isn).or_default();
        if !same.iter().any(|index| kept[*index].is_same_connection(&hop)) {
            same.push(kept.len());
            kept.push(hop);
        }
    }
    let twice = all - kept.len();
    (kept, twice)
}

/// Whether `first` may lead to a proxy and `second` on from it.
fn may_be_hops(first: &Hop, second: &Hop) -> bool {
    let [[client, entry], [exit, server]] = [first.ends, second.ends];
    let is_shared = share_host(entry, exit);
    // To two servers from one client, or from two clients to one server, go two conversations, unless the proxy is on that
    // client's or that server's own host.
    let are_others = !is_same_socket(entry, server)
        && (is_shared || !share_host(client, exit) && !share_host(entry, server));
    // A proxy connects when its client has, if both are seen by one clock.
    let is_one_clock = first.place.capture == second.place.capture;
    let is_in_time = !is_one_clock || (first.span.0..=first.span.1).contains(&second.span.0);
    first.place != second.place
        && are_others
        && is_in_time
        && (0..2).all(|direction| {
            // To the server bytes come on the first and leave on the second; to the client the other way.
            let [source, sink] = if direction == 0 { [first, second] } else { [second, first] };
            let [came, left] = [source.bytes[direction], sink.bytes[direction]];
            let is_whole = [source.whole[direction], sink.whole[direction]];
            match is_whole {
                [true, true] => came == left,
                // What left had come; what came after a capture's end may have left before that of the other one.
                [true, false] => left <= came,
                _ => !is_one_clock || left <= came,
            }
        })
}

/// Whether two sockets are on one host, as far as addresses tell.
pub(super) fn share_host(one: Socket, other: Socket) -> bool {
    // Names are numbered anew in each text.
    one.address == other.address && one.address.name_index().is_none()
}

fn is_same_socket(one: Socket, other: Socket) -> bool {
    share_host(one, other) && one.port == other.port
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::Address;

    use super::*;

    /// A connection from 10.0.0.`ends.0` to 10.0.0.`ends.1`, a proxy's first hop or its second.
    fn hop(number: u64, ends: (u8, u8), bytes: [u64; 2], whole: bool) -> Hop {
        let socket = |host, port| Socket { address: Address::v4([10, 0, 0, host]), port };
        Hop {
            place: Place { capture: 0, connection: number },
            packets: 100,
            ends: [socket(ends.0, 40_000 + number as u16), socket(ends.1, 80 + u16::from(ends.1))],
            isn: number as u32,
            bytes,
            whole: [whole; 2],
            span: (number as i64, 1_000_000),
        }
    }

    fn pairs(hops: Vec<Hop>) -> Vec<(usize, usize)> {
        Candidates::of(hops, None).pairs
    }

    #[test]
    fn totals_decide() {
        let pair = |bytes, whole| pairs(vec![hop(0, (1, 2), [500, 900], true), hop(1, (2, 3), bytes, whole)]);
        assert_eq!(pair([500, 900], true), [(0, 1)]);
        assert_eq!((pair([500, 901], true), pair([499, 900], true)), (vec![], vec![]));
        // The second still went on when the capture ended: of what the client sent no more can have left than came, and
        // of what the server sent no less can have come than left.
        assert_eq!((pair([499, 900], false), pair([500, 901], false)), (vec![(0, 1)], vec![(0, 1)]));
        assert_eq!((pair([501, 900], false), pair([500, 899], false)), (vec![], vec![]));
    }

    #[test]
    fn one_connection_alone_may_be_asked_for() {
        let hops = || {
            let two = [hop(0, (1, 2), [500, 900], true), hop(1, (2, 3), [500, 900], true)];
            [two.to_vec(), vec![hop(2, (1, 2), [50, 90], true), hop(3, (2, 3), [50, 90], true)]].concat()
        };
        assert_eq!(pairs(hops()), [(0, 1), (2, 3)]);
        assert_eq!(Candidates::of(hops(), Some(3)).pairs, [(2, 3)]);
        assert_eq!(Candidates::of(hops(), Some(3)).wanted(0), [2, 3]);
    }

    #[test]
    fn a_crowd_of_equals_is_not_compared() {
        let crowd = (0..40).map(|n| hop(n, if n % 2 == 0 { (1, 2) } else { (2, 3) }, [7, 7], true)).collect();
        let candidates = Candidates::of(crowd, None);
        assert!(
            candidates.is_empty() && candidates.notes[0].starts_with("40 connections"),
            "{:?}",
            candidates.notes
        );
    }

    #[test]
    fn thousands_that_may_fit_are_bounded_and_counted() {
        let many =
            (0..4_000).map(|n| hop(n, if n % 2 == 0 { (1, 2) } else { (2, 3) }, [7, 7], false)).collect();
        let candidates = Candidates::of(many, None);
        assert!(candidates.pairs.len() <= MOST_PAIRS, "{}", candidates.pairs.len());
        let packets: u64 = candidates.wanted(0).len() as u64 * 100;
        assert!(packets <= MOST_PACKETS.1 && candidates.notes.len() == 2, "{packets} {:?}", candidates.notes);
    }
}
