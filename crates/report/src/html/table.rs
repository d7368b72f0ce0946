//! The packets of one connection as the page reads them: columns of numbers, each as its difference to the one above.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::flow::series::{Exchange, Kind, Mark, RoundTrip, Sack, TcpFlags};
use tcpwhy_diagnose::ledger::Booking;
use tcpwhy_diagnose::report::{Connection, Side};

use crate::plot::{HeldAck, held_acks};

/// The largest number that a table has, 2^53 - 1: in the browser all numbers are floating point.
const MOST: i64 = (1 << 53) - 1;

/// What the page has of one connection beside its report.
#[derive(Clone, Debug)]
pub struct Table {
    /// Time of the capture's first packet, ns: from here all times are counted.
    pub origin: i64,
    /// Packets.
    pub marks: Vec<Mark>,
    /// What ACKs said of bytes beyond them.
    pub sacks: Vec<Sack>,
    /// The ledger, interval by interval.
    pub bookings: Vec<Booking>,
    /// Whether neighbouring intervals were put together, since there were too many.
    pub coarse_ledger: bool,
    /// ACKs that a receiver held, and whose data it was that they were for.
    pub held: Vec<(Side, HeldAck)>,
    /// Requests and their answers.
    pub exchanges: Vec<Exchange>,
    /// Round trips that were measured.
    pub round_trips: Vec<RoundTrip>,
    /// Packets that were left out.
    pub dropped: u64,
}

impl Table {
    /// The table of `connection`, which `diagnosis` has recorded; `None` where it has not.
    pub fn of(diagnosis: &Diagnosis, connection: &Connection) -> Option<Self> {
        let series = diagnosis.series(connection.id)?;
        let held = [Side::Client, Side::Server].into_iter().flat_map(|sender| {
            // Where packets are left out, what came last before an ACK is not known.
            let held =
                if series.dropped == 0 { held_acks(series, sender, connection.vantage) } else { Vec::new() };
            held.into_iter().map(move |held| (sender, held))
        });
        let mut held: Vec<_> = held.collect();
        held.sort_by_key(|(_, held)| held.from);
        let bookings = diagnosis.bookings(connection.id)?;
        Some(Self {
            origin: diagnosis.origin(),
            marks: series.marks.clone(),
            sacks: series.sacks.clone(),
            bookings: bookings.intervals,
            coarse_ledger: bookings.is_coarse,
            held,
            exchanges: series.exchanges.clone(),
            round_trips: series.round_trips.clone(),
            dropped: series.dropped,
        })
    }

    /// The columns, one whole one after the other, behind the numbers of their rows.
    pub fn columns(&self) -> Vec<u8> {
        let mut columns = Columns(Vec::with_capacity(8 * self.marks.len() + 64));
        let Self { marks, sacks, bookings, held, exchanges, round_trips, .. } = self;
        let counts =
            [marks.len(), sacks.len(), bookings.len(), held.len(), exchanges.len(), round_trips.len()];
        columns.add(&counts, |count| *count as i64);
        let since = |time: i64| time.saturating_sub(self.origin);

        columns.add(marks, what);
        columns.add(marks, |mark| mark.number.min(MOST as u64) as i64);
        columns.add(marks, |mark| since(mark.time));
        columns.add(marks, |mark| mark.seq);
        columns.add(marks, |mark| i64::from(mark.len));
        columns.add(marks, |mark| mark.ack.unwrap_or(0));
        columns.add(marks, |mark| i64::from(mark.window.unwrap_or(0)));

        columns.add(sacks, |sack| number(sack.from));
        columns.add(sacks, |sack| since(sack.time));
        columns.add(sacks, |sack| sack.ack);
        columns.add(sacks, |sack| sack.block.0);
        columns.add(sacks, |sack| sack.block.1);

        columns.add(bookings, |booking| booking.line as i64);
        columns.add(bookings, |booking| booking.side.map_or(0, |side| 1 + number(side)));
        columns.add(bookings, |booking| since(booking.from));
        columns.add(bookings, |booking| since(booking.until));

        columns.add(held, |(sender, _)| number(*sender));
        columns.add(held, |(_, held)| since(held.from));
        columns.add(held, |(_, held)| since(held.until));
        columns.add(held, |(_, held)| held.acked);

        columns.add(exchanges, |exchange| since(exchange.start));
        columns.add(exchanges, |exchange| since(exchange.end));
        columns.add(exchanges, |exchange| exchange.number.min(MOST as u64) as i64);

        columns.add(round_trips, |sample| number(sample.from));
        columns.add(round_trips, |sample| since(sample.time));
        columns.add(round_trips, |sample| sample.rtt);
        columns.0
    }

    /// The same as text: compressed (RFC 1950), in base64.
    pub fn packed(&self) -> String {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        // Memory takes whatever is written to it.
        let compressed = encoder.write_all(&self.columns()).and_then(|()| encoder.finish());
        STANDARD.encode(compressed.unwrap_or_default())
    }
}

/// Sender, kind, what is known, and the flags, in one number.
fn what(mark: &Mark) -> i64 {
    let kind = match mark.kind {
        Kind::Data => 0,
        Kind::Retransmission => 1,
        Kind::Probe => 2,
        Kind::Bare => 3,
    };
    let TcpFlags(flags) = mark.flags;
    number(mark.from)
        | kind << 1
        | i64::from(mark.ack.is_some()) << 3
        | i64::from(mark.window.is_some()) << 4
        | i64::from(flags & 0xff) << 5
}

fn number(side: Side) -> i64 {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

/// Columns behind each other.
struct Columns(Vec<u8>);

impl Columns {
    /// Adds the column that `value` makes of `rows`.
    fn add<T>(&mut self, rows: &[T], value: impl Fn(&T) -> i64) {
        let mut before = 0;
        for row in rows {
            let value = value(row).clamp(-MOST, MOST);
            self.varint(value - before);
            before = value;
        }
    }

    /// Seven bits a byte, the lowest first, the sign in the lowest of all: small numbers are short.
    fn varint(&mut self, value: i64) {
        let mut left = (value << 1 ^ value >> 63).cast_unsigned();
        while left >= 0x80 {
            self.0.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.0.push(left as u8);
    }
}
