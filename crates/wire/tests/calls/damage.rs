//! Files that are cut, damaged or made to do harm.

use tcpwhy_wire::calls::Recording;
use tcpwhy_wire::container::{Origin, Writer};

use crate::build::{call, file, read, small};

/// A block's body: magic, section, bytes of an item, how many, items.
fn body(section: u16, size: u16, count: u32, items: &[u8]) -> Vec<u8> {
    let mut body = b"tcpwhy/1".to_vec();
    body.extend(section.to_ne_bytes());
    body.extend(size.to_ne_bytes());
    body.extend(count.to_ne_bytes());
    body.extend(items);
    body
}

fn blocks(bodies: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Origin::default()).unwrap();
    bodies.iter().for_each(|body| writer.calls(body).unwrap());
    writer.finish().unwrap()
}

#[test]
fn half_a_file_gives_what_it_has() {
    let recording = small(4_000);
    let packets: Vec<i64> = (0..4_000).map(|at| at * 1_000_000 + 500).collect();
    let whole = file(&recording, &packets);
    for share in [3, 5, 9] {
        let contents = read(&whole[..whole.len() * share / 10 + 1]);
        let (calls, packets) = (contents.calls().len(), contents.packets());
        assert!(packets > 0 && calls >= packets, "{calls} calls, {packets} packets of {share} tenths");
        assert_eq!(contents.calls(), recording.calls[..calls]);
        assert_eq!(contents.stacks, recording.places);
        assert!(contents.notes[0].starts_with("Cut short at byte"), "{:?}", contents.notes);
    }
    // Nothing may be lost or panic wherever it is cut.
    let small = file(&small(3), &[1, 2, 3]);
    (0..small.len()).filter(|at| *at >= 12).for_each(|at| drop(read(&small[..at])));
}

#[test]
fn what_cannot_be_is_left_out_and_counted() {
    let good = &file(&small(2), &[]);
    let damaged = [
        body(5, 40, 3, &[0; 120]),
        body(5, 72, 9, &[0; 72]),
        body(3, 0, 2, &[200, 0, 0, 0]),
        body(3, 0, 1, &[12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        body(4, 0, u32::MAX, &[1, 0, 0, 0, 255, 255, 255, 255]),
        // Holders: too short; of no address; with a longer name than there is.
        body(6, 0, 1, &[&[44, 0, 0, 0], &[0; 40][..]].concat()),
        body(6, 0, 1, &[&[48, 0, 0, 0], &[0; 44][..]].concat()),
        body(6, 0, 1, &[&[48, 0, 0, 1, 1, 0, 0, 0, 4, 4], &[0; 38][..]].concat()),
    ];
    let contents = read(&[&blocks(&damaged), good.as_slice()].concat());
    // 3 calls too short; 8 that are not there and one of no kind; 2 places, and one without texts; all the stacks; 3 holders.
    let all = 3 + 9 + 2 + 1 + u64::from(u32::MAX) + 3;
    assert_eq!(contents.notes, [format!("Damaged, and left out: {all} entries of the recorded calls.")]);
    assert_eq!(contents.calls().len(), 2, "what is good stays");
}

#[test]
fn what_is_unknown_is_passed_over() {
    // A section and an item of a later version; blocks of others under the same type, however short or long.
    let longer = [vec![0; 64], 7_u64.to_ne_bytes().to_vec()].concat();
    let unknown = [
        body(99, 3, 7, &[1, 2, 3]),
        body(2, 72, 1, &longer),
        b"somebody else's block".to_vec(),
        Vec::new(),
        b"tcpwhy/1".to_vec(),
        vec![7; 3 << 20],
    ];
    let contents = read(&[blocks(&unknown), file(&small(2), &[5])].concat());
    assert_eq!((contents.notes.len(), contents.calls().len(), contents.packets()), (0, 2, 1));
    assert_eq!(contents.sockets.len(), 3);
}

#[test]
fn times_that_would_overflow_do_not() {
    let calls = vec![call(i64::MIN, 1, 0), call(i64::MAX, 1, 0)];
    let mut calls = Recording { calls, ..Recording::default() };
    calls.calls[1].took = u64::MAX;
    let contents = read(&file(&calls, &[]));
    let [first, last] = contents.calls()[..] else { panic!("two calls") };
    assert_eq!((first.start, last.start), (0, 1 << 62));
    assert!(last.start.checked_add_unsigned(last.took).is_some());
}

#[test]
fn sockets_and_stacks_without_end_are_bounded() {
    let most = 1 << 18;
    let calls = (0..most + 10).map(|at| call(at as i64, at, 0)).collect();
    let contents = read(&file(&Recording { calls, ..Recording::default() }, &[]));
    assert_eq!(contents.calls().len() as u64, most);
    assert_eq!(contents.notes, ["Left out: 10 calls on more than 262144 sockets."]);
    // A stack that repeats one place as often as it can, in small blocks; memory would grow a hundredfold.
    let one = [1_u32.to_ne_bytes().to_vec(), 256_u32.to_ne_bytes().to_vec(), vec![0; 1024]].concat();
    let place = [[20_u16.to_ne_bytes(), [0; 2]].concat(), vec![0; 16]].concat();
    let mut bodies = vec![body(3, 0, 1, &place)];
    bodies.extend(std::iter::repeat_n(body(4, 0, 60, &one.repeat(60)), 300));
    let contents = read(&blocks(&bodies));
    let left_out = 300 * 60 - (1 << 22) / 257;
    assert_eq!(contents.notes, [format!("Left out: {left_out} call stacks, for want of room.")]);
}

#[test]
fn calls_that_never_come_due_do_not_pile_up() {
    // Far in the future, with packets of today between the blocks.
    let mut bytes = Vec::new();
    for at in 0..40_i64 {
        let calls = (0..9_000).map(|n| call((1 << 60) + at * 9_000 + n, 1, 0)).collect();
        bytes.extend(file(&Recording { calls, ..Recording::default() }, &[5]));
    }
    let contents = read(&bytes);
    assert_eq!((contents.calls().len(), contents.packets()), (360_000, 40));
    let first = contents.merged.iter().position(|read| matches!(read, crate::build::Read::Call(_)));
    assert!(first.is_some_and(|at| at < 10), "the first ones had to go: {first:?}");
}
