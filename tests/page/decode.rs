//! What the page's decoder does (viewer/src/data), in Rust, for the tests of who encodes.

use std::collections::BTreeMap;

/// The parts of a table and their columns, in their order.
pub(crate) const PARTS: [(&str, &[&str]); 6] = [
    ("marks", &["what", "number", "time", "seq", "len", "ack", "window"]),
    ("sacks", &["from", "time", "ack", "left", "right"]),
    ("bookings", &["line", "side", "from", "until"]),
    ("held", &["sender", "from", "until", "acked"]),
    ("exchanges", &["start", "end", "number"]),
    ("round_trips", &["from", "time", "rtt"]),
];

/// Columns by part and name.
pub(crate) type Columns = BTreeMap<String, BTreeMap<String, Vec<i64>>>;

/// Reads the columns of a table that is not compressed any more.
pub(crate) fn columns(raw: &[u8]) -> Columns {
    let mut rest = raw;
    let counts = column(&mut rest, PARTS.len());
    let part = |(name, names): &(&str, &[&str]), count: i64, rest: &mut &[u8]| {
        let count = usize::try_from(count).expect("a number of rows");
        let columns = names.iter().map(|name| ((*name).to_owned(), column(rest, count)));
        ((*name).to_owned(), columns.collect())
    };
    let columns = PARTS.iter().zip(counts).map(|(names, count)| part(names, count, &mut rest)).collect();
    assert!(rest.is_empty(), "{} bytes behind the last column", rest.len());
    columns
}

/// So many numbers, each the difference to the one before.
fn column(rest: &mut &[u8], count: usize) -> Vec<i64> {
    let mut value = 0;
    (0..count)
        .map(|_| {
            value += signed(varint(rest));
            value
        })
        .collect()
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first().expect("the table ends within a number");
        *rest = behind;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number of more than 64 bits")
}

/// 0, 1, 2, 3, 4 are 0, -1, 1, -2, 2.
fn signed(zigzag: u64) -> i64 {
    let half = (zigzag / 2).cast_signed();
    if zigzag.is_multiple_of(2) { half } else { -half - 1 }
}
