//! One direction through a proxy: what came on one hop and left on the other.

use super::clocks::{Clocks, Way};
use super::stream::{Piece, Spoken, Stream};

/// What comes no further apart than this came together, and what stays no longer was passed on at once: a kernel and a
/// scheduler take up to about 1 ms. ns.
pub(crate) const APART: i64 = 1_000_000;

/// One direction of a pair of hops.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    /// 0 to the server, 1 to the client.
    pub(crate) direction: usize,
    /// The hop on which bytes come, and the one on which they leave.
    pub(crate) hops: [&'a Spoken; 2],
    clocks: &'a Clocks,
    /// Where times of each of the two begin, ns on its clock.
    starts: [i64; 2],
}

/// Something that came: bytes with no pause between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Place of its first byte in the stream, and of the one after its last.
    pub(crate) bytes: (u64, u64),
    /// When all of it was there, ns on its capture's clock.
    pub(crate) time: i64,
    /// Its last packet.
    pub(crate) packet: u64,
}

/// What left together: a segment, with full ones right before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    /// Place of its first byte in the stream, and of the one after its last.
    pub(crate) bytes: (u64, u64),
    /// When it left, ns on its capture's clock.
    pub(crate) time: i64,
    /// Its last packet.
    pub(crate) packet: u64,
    /// When it left first is not known.
    pub(crate) late: bool,
}

impl<'a> Passage<'a> {
    /// The direction of `hops`, the first hop and the second, whose times begin at `starts`.
    pub(super) fn new(
        direction: usize,
        [first, second]: [&'a Spoken; 2],
        clocks: &'a Clocks,
        [start, other]: [i64; 2],
    ) -> Self {
        let (hops, starts) = if direction == 0 {
            ([first, second], [start, other])
        } else {
            ([second, first], [other, start])
        };
        Self { direction, hops, clocks, starts }
    }

    pub(crate) fn source(&self) -> &'a Stream {
        &self.hops[0].streams[self.direction]
    }

    pub(crate) fn sink(&self) -> &'a Stream {
        &self.hops[1].streams[self.direction]
    }

    /// The way of bytes that came and left at these times of the captures.
    fn way(&self, came: i64, left: i64) -> Way {
        (came.saturating_sub(self.starts[0]), left.saturating_sub(self.starts[1]))
    }

    /// The way of the last byte of each piece that left, as far as it is known when that came and left.
    pub(super) fn ways(&self) -> Vec<Way> {
        let left = self.sink().pieces.iter().filter(|piece| !piece.late);
        left.filter_map(|piece| Some(self.way(self.source().with(piece.bytes.1 - 1)?.passed, piece.passed)))
            .collect()
    }

    /// How much longer than the fastest bytes stayed that were there and left at these times of the captures, ns.
    pub(crate) fn age(&self, there: i64, left: i64) -> i64 {
        self.clocks.excess(self.direction, self.way(there, left))
    }

    /// How much longer than the fastest the last byte of a piece stayed that left, ns; `None` where that is not known.
    pub(super) fn age_of_last(&self, piece: &Piece) -> Option<i64> {
        let came = self.source().with(piece.bytes.1 - 1)?;
        (!piece.late).then(|| self.age(came.there, piece.passed))
    }

    /// How long each arrival stayed beyond the fastest way through, ns, as far as it is known when it left.
    pub(super) fn stays(&self) -> Vec<i64> {
        let left = |arrival: &Arrival| self.sink().with(arrival.bytes.1 - 1).filter(|piece| !piece.late);
        let arrivals = self.arrivals().into_iter();
        arrivals.filter_map(|arrival| Some(self.age(arrival.time, left(&arrival)?.passed))).collect()
    }

    /// What came, in the order of the stream.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        let mut arrivals: Vec<Arrival> = Vec::new();
        for piece in &self.source().pieces {
            let next = Arrival { bytes: piece.bytes, time: piece.there, packet: piece.packet };
            match arrivals.last_mut() {
                Some(last) if piece.there.saturating_sub(last.time) < APART => {
                    *last = Arrival { bytes: (last.bytes.0, next.bytes.1), ..next };
                }
                _ => arrivals.push(next),
            }
        }
        arrivals
    }

    /// What left, in the order of the stream.
    pub(crate) fn departures(&self) -> Vec<Departure> {
        let (mut departures, mut is_open): (Vec<Departure>, bool) = (Vec::new(), false);
        for piece in &self.sink().pieces {
            let Piece { bytes, passed: time, packet, late, .. } = *piece;
            let next = Departure { bytes, time, packet, late };
            match departures.last_mut() {
                // TCP cuts at the MSS what is written at once.
                Some(last) if is_open && time.saturating_sub(last.time) < APART => {
                    let late = last.late || late;
                    *last = Departure { bytes: (last.bytes.0, bytes.1), time: last.time, packet, late };
                }
                _ => departures.push(next),
            }
            is_open = piece.len() >= self.sink().full;
        }
        departures
    }
}
