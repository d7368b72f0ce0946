//! Tables and pages against a decoder, and against the table that the viewer's tests read too.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use proptest::prelude::*;
use serde_json::Value;
use tcpwhy_diagnose::flow::series::{Exchange, Kind, Mark, RoundTrip, Sack, TcpFlags};
use tcpwhy_diagnose::ledger::Booking;
use tcpwhy_diagnose::report::{Line, Side};

use super::Table;
use crate::plot::HeldAck;

#[path = "../../../../tests/page/decode.rs"]
mod decode;
use decode::Columns;

const VECTOR: &str = include_str!("../../../../tests/page/table.json");
const KINDS: [Kind; 4] = [Kind::Data, Kind::Retransmission, Kind::Probe, Kind::Bare];
const SIDES: [Side; 2] = [Side::Client, Side::Server];

fn unpacked(packed: &str) -> Vec<u8> {
    let mut raw = Vec::new();
    let compressed = STANDARD.decode(packed).expect("base64");
    ZlibDecoder::new(&*compressed).read_to_end(&mut raw).expect("zlib");
    raw
}

/// Rows of a part, as arrays of their values.
fn rows<const N: usize>(columns: &Columns, part: usize) -> Vec<[i64; N]> {
    let (name, names) = decode::PARTS[part];
    let columns: Vec<_> = names.iter().map(|column| &columns[name][*column]).collect();
    (0..columns[0].len()).map(|row| std::array::from_fn(|column| columns[column][row])).collect()
}

/// The table that has these columns, of a capture that began at `origin`.
fn table(columns: &Columns, origin: i64) -> Table {
    let side = |number: i64| SIDES[number as usize];
    let mark = |[what, number, time, seq, len, ack, window]: [i64; 7]| Mark {
        number: number as u64,
        time: origin + time,
        from: side(what & 1),
        kind: KINDS[(what >> 1 & 3) as usize],
        flags: TcpFlags((what >> 5) as u16),
        seq,
        len: len as u32,
        ack: (what & 8 != 0).then_some(ack),
        window: (what & 16 != 0).then_some(window as u32),
    };
    let booking = |[line, whose, from, until]: [i64; 4]| Booking {
        from: origin + from,
        until: origin + until,
        line: Line::ALL[line as usize],
        side: (whose > 0).then(|| side(whose - 1)),
    };
    let sack = |[from, time, ack, left, right]: [i64; 5]| Sack {
        time: origin + time,
        from: side(from),
        ack,
        block: (left, right),
    };
    let held = |[sender, from, until, acked]: [i64; 4]| {
        (side(sender), HeldAck { from: origin + from, until: origin + until, acked })
    };
    Table {
        origin,
        marks: rows(columns, 0).into_iter().map(mark).collect(),
        sacks: rows(columns, 1).into_iter().map(sack).collect(),
        bookings: rows(columns, 2).into_iter().map(booking).collect(),
        coarse_ledger: false,
        held: rows(columns, 3).into_iter().map(held).collect(),
        exchanges: rows(columns, 4)
            .into_iter()
            .map(|[start, end, number]| Exchange {
                start: origin + start,
                end: origin + end,
                number: number as u64,
            })
            .collect(),
        round_trips: rows(columns, 5)
            .into_iter()
            .map(|[from, time, rtt]| RoundTrip { from: side(from), time: origin + time, rtt })
            .collect(),
        dropped: 0,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_table_that_both_sides_know() {
    let mut vector: serde_json::Map<String, Value> = serde_json::from_str(VECTOR).expect("JSON");
    let mut text = |name| vector.remove(name).and_then(|text| text.as_str().map(str::to_owned)).expect(name);
    let (raw, packed) = (text("raw"), text("packed"));
    let columns: Columns = serde_json::from_value(vector.into()).expect("columns");
    let table = table(&columns, 1_700_000_000_000_000_000);
    assert_eq!(hex(&table.columns()), raw);
    assert_eq!(hex(&unpacked(&packed)), raw, "another program's compression");
    assert_eq!(hex(&unpacked(&table.packed())), raw);
    assert_eq!(decode::columns(&table.columns()), columns);
}

#[test]
fn numbers_that_no_browser_has_are_cut() {
    let mark = Mark {
        number: u64::MAX,
        time: i64::MAX,
        from: Side::Server,
        kind: Kind::Bare,
        flags: TcpFlags(0x1ff),
        seq: i64::MIN,
        len: u32::MAX,
        ack: Some(i64::MAX),
        window: Some(u32::MAX),
    };
    let table = Table { marks: vec![mark], origin: i64::MIN / 2, ..table(&decode::columns(&[0; 6]), 0) };
    let columns = decode::columns(&table.columns());
    let most = (1 << 53) - 1;
    let expected = [1 | 3 << 1 | 8 | 16 | 0xff << 5, most, most, -most, 0xffff_ffff, most, 0xffff_ffff];
    assert_eq!(rows::<7>(&columns, 0), [expected]);
}

/// Columns of a table: rows of numbers, each from the range that its column has.
fn any_columns() -> impl Strategy<Value = Columns> {
    let far = -(1_i64 << 53) + 1..1 << 53;
    let time = 0..1_i64 << 53;
    let (side, len) = (0..2_i64, 0..1_i64 << 32);
    let mark = (
        (0..2_i64, 0..4_i64, 0..4_i64, 0..256_i64),
        time.clone(),
        time.clone(),
        far.clone(),
        len.clone(),
        far.clone(),
        len,
    )
        .prop_map(|((side, kind, known, flags), number, time, seq, len, ack, window)| {
            let (ack, window) =
                (if known & 1 == 0 { 0 } else { ack }, if known & 2 == 0 { 0 } else { window });
            vec![side | kind << 1 | known << 3 | flags << 5, number, time, seq, len, ack, window]
        });
    let sack = (side.clone(), time.clone(), far.clone(), far.clone(), far.clone())
        .prop_map(|(from, time, ack, left, right)| vec![from, time, ack, left, right]);
    let booking = (0..13_i64, 0..3_i64, time.clone(), time.clone()).prop_map(|(l, s, f, u)| vec![l, s, f, u]);
    let held =
        (side.clone(), time.clone(), time.clone(), far.clone()).prop_map(|(s, f, u, a)| vec![s, f, u, a]);
    let exchange = (time.clone(), time.clone(), time.clone()).prop_map(|(s, e, n)| vec![s, e, n]);
    let round_trip = (side, time, far).prop_map(|(f, t, r)| vec![f, t, r]);
    let part = |number: usize, rows: Vec<Vec<i64>>| {
        let (name, names) = decode::PARTS[number];
        let column = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<_>>();
        let columns = names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), column(at)));
        (name.to_owned(), columns.collect())
    };
    let some = 0..20_usize;
    (
        prop::collection::vec(mark, some.clone()),
        prop::collection::vec(sack, some.clone()),
        prop::collection::vec(booking, some.clone()),
        prop::collection::vec(held, some.clone()),
        prop::collection::vec(exchange, some.clone()),
        prop::collection::vec(round_trip, some),
    )
        .prop_map(move |(a, b, c, d, e, f)| {
            [a, b, c, d, e, f].into_iter().enumerate().map(|(number, rows)| part(number, rows)).collect()
        })
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(columns in any_columns(), origin in -1_000_000..1_i64 << 60) {
        let table = table(&columns, origin);
        prop_assert_eq!(&decode::columns(&table.columns()), &columns);
        prop_assert_eq!(decode::columns(&unpacked(&table.packed())), columns);
    }
}
