//! What is written is read.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use tcpwhy_wire::calls::{About, Call, Holder, Kind, Place, Recording, Socket, holders};
use tcpwhy_wire::container::{Origin, Writer};

use crate::build::{Read, call, file, read, small};

/// Numbers of sockets and stacks as the reader gives them out: from 1, in order of appearance.
fn renumbered<T: Copy + Ord>(all: impl IntoIterator<Item = T>) -> BTreeMap<T, u64> {
    let mut numbers = BTreeMap::new();
    for number in all {
        let next = numbers.len() as u64 + 1;
        numbers.entry(number).or_insert(next);
    }
    numbers
}

#[test]
fn a_recording_comes_back_whole() {
    let recording = small(10);
    let contents = read(&file(&recording, &[]));
    assert_eq!(contents.calls(), recording.calls);
    assert_eq!(contents.sockets, recording.sockets);
    assert_eq!(contents.about, recording.about);
    assert_eq!(contents.stacks, recording.places);
    assert_eq!(contents.notes, [""; 0]);
}

#[test]
fn calls_and_packets_come_in_the_order_of_time() {
    // Far more than a block's worth of calls between two packets, and none.
    let recording = small(5_000);
    let packets = [0, 1, 2_500_000_000, 2_500_000_001, 4_999_000_000, 9_000_000_000];
    let contents = read(&file(&recording, &packets));
    assert_eq!((contents.calls().len(), contents.packets()), (5_000, 6));
    let times: Vec<_> = contents
        .merged
        .iter()
        .map(|read| match read {
            Read::Call(call) => call.start,
            Read::Packet(time) => *time,
        })
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    // What began when a packet was captured comes before it.
    assert!(matches!(contents.merged[..2], [Read::Call(_), Read::Packet(0)]));
}

#[test]
fn another_recording_behind_it_has_its_own_numbers() {
    let mut other = small(2);
    other.places.insert(2, vec![crate::build::place("elsewhere", 1)]);
    let bytes = [file(&small(2), &[5]), file(&other, &[6])].concat();
    let contents = read(&bytes);
    assert_eq!(contents.packets(), 2);
    let sockets: Vec<_> = contents.calls().iter().map(|call| call.socket).collect();
    assert_eq!(sockets, [1, 2, 3, 4], "the same cookies on another machine are other sockets");
    let functions: Vec<_> =
        contents.calls().iter().map(|call| contents.stacks[&call.stack][0].function.clone()).collect();
    assert_eq!(functions, ["", "flush", "elsewhere", "flush"]);
    assert_eq!((contents.about.programs, contents.about.lost), (4, 6));
}

fn holder(is_udp: bool, local: &str, peer: &str, process: u32, name: &str) -> Holder {
    let [local, peer] = [local, peer].map(|end| end.parse().unwrap());
    Holder { is_udp, local, peer, process, name: name.to_owned() }
}

#[test]
fn a_socket_is_its_process_that_moves_most() {
    let mut recording = small(0);
    recording.programs = [(1, "parent".to_owned()), (2, "child".to_owned())].into();
    recording.sockets[1].peer = Some("[::1]:4001".parse().unwrap());
    recording.sockets.push(Socket { cookie: 3, local: None, ..recording.sockets[0] });
    let of = |process, kind, socket| Call { kind, process, ..call(0, socket, 0) };
    recording.calls = vec![
        // The parent accepts and closes; of the second socket, both write once, and somebody without a name no more.
        of(1, Kind::Accept, 1),
        of(2, Kind::Send, 1),
        of(1, Kind::Close, 1),
        of(2, Kind::Send, 2),
        of(1, Kind::Send, 2),
        of(9, Kind::Close, 2),
        of(1, Kind::Send, 3),
    ];
    let expected = [
        holder(false, "127.0.0.1:80", "127.0.0.1:4000", 2, "child"),
        holder(false, "[::1]:80", "[::1]:4001", 1, "parent"),
    ];
    assert_eq!(read(&file(&recording, &[])).holders, expected);
    recording.programs.remove(&2);
    assert_eq!(read(&file(&recording, &[])).holders, expected[1..], "nobody else is told instead");
}

#[test]
fn programs_without_calls_are_no_recording() {
    let long = "ä".repeat(40);
    let all = [
        holder(true, "10.0.0.1:53", "[2001:db8::1]:4000", u32::MAX, "a \n\0b"),
        holder(false, "10.0.0.1:1", "10.0.0.2:2", 7, ""),
        holder(false, "10.0.0.1:1", "10.0.0.2:3", 7, &long),
    ];
    let mut writer = Writer::new(Vec::new(), &Origin::default()).unwrap();
    holders(&all).iter().for_each(|body| writer.calls(body).unwrap());
    let contents = read(&writer.finish().unwrap());
    assert!(contents.is_empty && contents.notes.is_empty());
    assert_eq!(contents.holders[..2], all[..2]);
    assert_eq!(contents.holders[2].name, "ä".repeat(32), "64 bytes");
    assert!(!read(&file(&small(0), &[])).is_empty);
}

#[test]
fn long_texts_are_cut_at_a_character() {
    let mut recording = small(1);
    let long = "ä".repeat(40_000);
    recording.places.insert(2, vec![Place { function: long.clone(), script: true, ..Place::default() }]);
    recording.about.unseen = long;
    let contents = read(&file(&recording, &[]));
    assert_eq!(contents.stacks[&2][0].function, "ä".repeat(2_048));
    assert!(contents.stacks[&2][0].script);
    assert_eq!(contents.about.unseen.len(), 4_096);
}

fn address() -> impl Strategy<Value = Option<SocketAddr>> {
    prop_oneof![
        Just(None),
        any::<([u8; 4], u16)>().prop_map(|(ip, port)| Some(SocketAddr::new(IpAddr::from(ip), port))),
        any::<([u8; 16], u16)>().prop_map(|(ip, port)| Some(SocketAddr::new(IpAddr::from(ip), port))),
    ]
}

fn any_call() -> impl Strategy<Value = Call> {
    let times = (0..=(1_i64 << 62), 0..(1_u64 << 62), 0..5_u64, 0..5_u32);
    let rest = (0..Kind::ALL.len(), any::<(u32, u32, u64, i64, i32, u64)>());
    (times, rest).prop_map(|((start, took, socket, stack), (kind, rest))| {
        let (process, thread, asked, result, fd, flags) = rest;
        let kind = Kind::ALL[kind];
        Call { kind, process, thread, took, asked, result, fd, flags, ..call(start, socket, stack) }
    })
}

fn any_place() -> impl Strategy<Value = Place> {
    (".{0,9}", ".{0,9}", any::<u32>(), ".{0,9}", any::<bool>())
        .prop_map(|(function, file, line, module, script)| Place { function, file, line, module, script })
}

fn any_recording() -> impl Strategy<Value = Recording> {
    let socket = (0..9_u64, address(), address(), any::<(bool, u32, u64)>()).prop_map(
        |(cookie, local, peer, (nodelay, mss, written))| Socket {
            cookie,
            local,
            peer,
            nodelay,
            mss,
            written,
        },
    );
    let about = (any::<(u64, u64, u64)>(), ".{0,9}", ".{0,9}", ".{0,9}", ".{0,9}").prop_map(
        |((lost, interrupted, programs), fix, unseen, recorder, no_packets)| About {
            no_packets,
            lost,
            interrupted,
            programs,
            fix,
            unseen,
            recorder,
        },
    );
    let places = prop::collection::btree_map(1..5_u32, prop::collection::vec(any_place(), 0..4), 0..4);
    let calls = prop::collection::vec(any_call(), 0..40);
    (calls, prop::collection::vec(socket, 0..5), places, about).prop_map(
        |(mut calls, sockets, places, about)| {
            calls.sort_by_key(|call| call.start);
            Recording { calls, sockets, places, about, ..Recording::default() }
        },
    )
}

proptest! {
    #[test]
    fn any_recording_comes_back(recording in any_recording(), packets in prop::collection::vec(0..(1_i64 << 62), 0..9)) {
        let contents = read(&file(&recording, &packets));
        let cookies = recording.sockets.iter().map(|socket| socket.cookie);
        let sockets = renumbered(cookies.chain(recording.calls.iter().map(|call| call.socket)));
        let stacks = renumbered(recording.places.keys().copied());
        let expected: Vec<_> = recording
            .calls
            .iter()
            .map(|call| Call {
                socket: sockets[&call.socket],
                stack: stacks.get(&call.stack).map_or(0, |number| *number as u32),
                ..*call
            })
            .collect();
        prop_assert_eq!(contents.calls(), expected);
        let expected: Vec<_> =
            recording.sockets.iter().map(|socket| Socket { cookie: sockets[&socket.cookie], ..*socket }).collect();
        prop_assert_eq!(&contents.sockets, &expected);
        prop_assert_eq!(&contents.about, &recording.about);
        for (number, places) in &contents.stacks {
            let of = stacks.iter().find(|(_, new)| **new == u64::from(*number)).expect("a stack");
            prop_assert_eq!(places, &recording.places[of.0]);
        }
        prop_assert_eq!(contents.packets(), packets.len());
        prop_assert!(contents.notes.is_empty());
    }
}
