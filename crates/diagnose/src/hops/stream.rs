//! When each byte of a connection passed its capture point.

use crate::diagnosis::Diagnosis;
use crate::flow::beliefs::vantage;
use crate::flow::series::{Kind, Mark, Series};
use crate::ledger::Bookings;
use crate::report::{Side, Vantage};

/// One connection of the second look: when its bytes passed, and what it waited for.
#[derive(Clone, Debug)]
pub struct Spoken {
    /// Of the client and of the server, as the report prints them.
    pub(crate) addresses: [String; 2],
    /// To the server and to the client.
    pub(crate) streams: [Stream; 2],
    /// What it waited for, on the capture's clock.
    pub(crate) bookings: Bookings,
    /// Where on it the capture was made.
    pub(crate) vantage: Vantage,
    /// Time of its first packet, ns on the capture's clock.
    pub(crate) start: i64,
    /// Time of its last.
    pub(crate) end: i64,
    /// Time of the capture's first packet.
    pub(crate) origin: i64,
    /// What the capture is called.
    pub(crate) capture: String,
}

/// The bytes of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// In the order of their bytes, without overlaps; where bytes were not captured there is a gap.
    pub(crate) pieces: Vec<Piece>,
    /// Payload of a full segment, bytes.
    pub(crate) full: u64,
    /// When its FIN passed.
    pub(crate) closed: Option<i64>,
}

/// Bytes that passed in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Place of the first byte in the stream, from 0, and of the one after the last.
    pub(crate) bytes: (u64, u64),
    /// When they passed first, ns on the capture's clock.
    pub(crate) passed: i64,
    /// When all up to their end had come: later where something before them had to be sent again.
    pub(crate) there: i64,
    /// Position in the capture from 1.
    pub(crate) packet: u64,
    /// They filled a hole: when they left their sender first is not known.
    pub(crate) late: bool,
}

impl Piece {
    /// How many bytes.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.1 - self.bytes.0
    }
}

impl Diagnosis {
    /// When the bytes of that connection passed; `None` where the analyser was not asked to record it
    /// ([`crate::Analyzer::recording`]).
    pub fn spoken(&self, connection: u64) -> Option<Spoken> {
        let (series, subject) = (self.series(connection)?, self.subject(connection)?);
        let client = subject.client();
        let flow = subject.connection;
        let stream = |side, end: usize| Stream::of(series, side, u64::from(flow.halves[end].full_size()));
        Some(Spoken {
            addresses: [subject.address(client), subject.address(1 - client)],
            streams: [stream(Side::Client, client), stream(Side::Server, 1 - client)],
            bookings: self.bookings(connection)?,
            vantage: vantage(flow),
            start: flow.first,
            end: flow.last,
            origin: self.origin(),
            capture: self.info().name.clone(),
        })
    }
}

impl Stream {
    fn of(series: &Series, side: Side, full: u64) -> Self {
        let mut stream = Self { full, ..Self::default() };
        for mark in series.marks.iter().filter(|mark| mark.from == side) {
            if mark.flags.has(crate::flow::series::TcpFlags::FIN) {
                stream.closed.get_or_insert(mark.time);
            }
            if matches!(mark.kind, Kind::Data | Kind::Retransmission) {
                stream.take(mark);
            }
        }
        stream
    }

    fn take(&mut self, mark: &Mark) {
        // Relative sequence numbers give the first byte 1. Data of a SYN has none before it.
        let place = |seq: i64| u64::try_from(seq - 1).unwrap_or(0);
        let (begin, end) = (place(mark.seq), place(mark.end()));
        let next = self.pieces.last().map_or(0, |last| last.bytes.1);
        if end > next {
            let bytes = (begin.max(next), end);
            let (passed, there) = (mark.time, mark.time);
            self.pieces.push(Piece { bytes, passed, there, packet: mark.number, late: false });
        } else if end > begin {
            self.repair((begin, end), mark);
        }
    }

    /// Bytes that others have overtaken. What lies behind them was of no use before, if they had been lost; if they had
    /// not, nobody is blamed for the time between.
    fn repair(&mut self, (begin, end): (u64, u64), mark: &Mark) {
        let behind = self.pieces.iter_mut().rev().take_while(|piece| piece.bytes.1 > begin);
        behind.for_each(|piece| piece.there = piece.there.max(mark.time));
        let at = self.pieces.partition_point(|piece| piece.bytes.1 <= begin);
        let begin = at.checked_sub(1).map_or(begin, |before| begin.max(self.pieces[before].bytes.1));
        let end = self.pieces.get(at).map_or(end, |after| end.min(after.bytes.0));
        if begin < end {
            let (passed, there, packet) = (mark.time, mark.time, mark.number);
            self.pieces.insert(at, Piece { bytes: (begin, end), passed, there, packet, late: true });
        }
    }

    /// The piece with that byte.
    pub(crate) fn with(&self, byte: u64) -> Option<&Piece> {
        let at = self.pieces.partition_point(|piece| piece.bytes.1 <= byte);
        self.pieces.get(at).filter(|piece| piece.bytes.0 <= byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::series::TcpFlags;

    fn mark(number: u64, time: i64, kind: Kind, seq: i64, len: u32) -> Mark {
        let (from, flags) = (Side::Client, TcpFlags(TcpFlags::ACK));
        Mark { number, time, from, kind, flags, seq, len, ack: None, window: None }
    }

    fn stream(marks: Vec<Mark>) -> Stream {
        Stream::of(&Series { marks, ..Series::default() }, Side::Client, 1_460)
    }

    /// Bytes, first passed, all there, late.
    fn rows(stream: &Stream) -> Vec<((u64, u64), i64, i64, bool)> {
        stream.pieces.iter().map(|piece| (piece.bytes, piece.passed, piece.there, piece.late)).collect()
    }

    #[test]
    fn what_lies_behind_a_loss_is_there_with_its_repair() {
        // Seen before the loss: 0-9 at 1, 10-19 at 2, 20-29 at 3, and 10-19 again at 9.
        let lost = stream(vec![
            mark(1, 1, Kind::Data, 1, 10),
            mark(2, 2, Kind::Data, 11, 10),
            mark(3, 3, Kind::Data, 21, 10),
            mark(4, 9, Kind::Retransmission, 11, 10),
        ]);
        assert_eq!(rows(&lost), [((0, 10), 1, 1, false), ((10, 20), 2, 9, false), ((20, 30), 3, 9, false)]);
        // Seen behind it: 10-19 comes late, for the first time.
        let hole = stream(vec![
            mark(1, 1, Kind::Data, 1, 10),
            mark(3, 3, Kind::Data, 21, 10),
            mark(4, 9, Kind::Retransmission, 11, 10),
        ]);
        assert_eq!(rows(&hole), [((0, 10), 1, 1, false), ((10, 20), 9, 9, true), ((20, 30), 3, 9, false)]);
        assert_eq!(hole.with(19).map(|piece| piece.packet), Some(4));
        assert_eq!(hole.with(30), None);
    }

    #[test]
    fn overlaps_count_once_and_gaps_stay() {
        let odd = stream(vec![
            mark(1, 1, Kind::Data, 1, 10),
            mark(2, 2, Kind::Data, 6, 10),
            mark(3, 3, Kind::Data, 31, 10),
            mark(4, 4, Kind::Retransmission, 11, 100),
        ]);
        let bytes: Vec<_> = odd.pieces.iter().map(|piece| piece.bytes).collect();
        assert_eq!(bytes, [(0, 10), (10, 15), (30, 40), (40, 110)]);
        assert_eq!(odd.with(20), None);
    }
}
