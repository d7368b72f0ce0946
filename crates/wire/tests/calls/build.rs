//! Recordings, files with them, and what reading those gives.

use std::collections::BTreeMap;

use tcpwhy_wire::calls::{About, Call, Calls, Holder, Kind, Place, Reader, Recording, Socket, head};
use tcpwhy_wire::container::{Frame, Interface, Item, LinkType, Opened, Origin, Writer, open};

/// What a file had, in its order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Read {
    Call(Call),
    /// A packet, by its time.
    Packet(i64),
}

/// All that reading a file gives.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) merged: Vec<Read>,
    pub(crate) sockets: Vec<Socket>,
    pub(crate) about: About,
    /// The stacks that calls name.
    pub(crate) stacks: BTreeMap<u32, Vec<Place>>,
    pub(crate) holders: Vec<Holder>,
    pub(crate) is_empty: bool,
    pub(crate) notes: Vec<String>,
}

impl Contents {
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.merged
            .iter()
            .filter_map(|read| match read {
                Read::Call(call) => Some(*call),
                Read::Packet(_) => None,
            })
            .collect()
    }

    pub(crate) fn packets(&self) -> usize {
        self.merged.len() - self.calls().len()
    }
}

/// A file with a recording, and packets of one byte at these times.
pub(crate) fn file(recording: &Recording, packets: &[i64]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Origin::default()).unwrap();
    let interface = Interface { name: "lo", link: LinkType::RAW, snaplen: 0 };
    writer.interface(&interface).unwrap();
    head(recording).iter().for_each(|body| writer.calls(body).unwrap());
    let mut calls = Calls::new(&recording.calls);
    for &time in packets {
        while let Some(body) = calls.by(time) {
            writer.calls(&body).unwrap();
        }
        let frame = Frame { time, link: LinkType::RAW, original_len: 1, interface: 0, data: &[0x45] };
        writer.frame(&frame, "").unwrap();
    }
    while let Some(body) = calls.by(i64::MAX) {
        writer.calls(&body).unwrap();
    }
    writer.finish().unwrap()
}

/// As the command reads it.
pub(crate) fn read(bytes: &[u8]) -> Contents {
    let Ok(Opened::Capture(mut file)) = open(bytes) else { panic!("no capture") };
    let mut reader = Reader::default();
    let mut contents = Contents::default();
    let mut now = 0;
    while let Some(item) = file.next_item() {
        let mut packet = None;
        match item {
            Item::Frame(frame) => {
                now = frame.time;
                packet = Some(Read::Packet(now));
            }
            Item::Calls(block) => reader.take(block),
        }
        contents.merged.extend(std::iter::from_fn(|| reader.call_by(now)).map(Read::Call));
        contents.merged.extend(packet);
    }
    contents.merged.extend(std::iter::from_fn(|| reader.call_by(i64::MAX)).map(Read::Call));
    contents.sockets = reader.sockets();
    contents.holders = reader.holders();
    contents.is_empty = reader.is_empty();
    contents.about = reader.about().clone();
    for call in contents.calls().iter().filter(|call| call.stack != 0) {
        contents.stacks.insert(call.stack, reader.stack(call.stack).cloned().collect());
    }
    contents.notes = [file.notes(), reader.notes()].concat();
    contents
}

pub(crate) fn call(start: i64, socket: u64, stack: u32) -> Call {
    Call {
        kind: Kind::Send,
        process: 10,
        thread: 11,
        start,
        took: 900,
        socket,
        asked: 100,
        result: 100,
        fd: 5,
        stack,
        flags: 0x4000,
    }
}

pub(crate) fn place(function: &str, line: u32) -> Place {
    Place {
        function: function.to_owned(),
        file: "src/server.c".to_owned(),
        line,
        module: "server".to_owned(),
        script: false,
    }
}

/// Two sockets, two stacks, and a call each millisecond.
pub(crate) fn small(calls: i64) -> Recording {
    let about = About {
        programs: 2,
        lost: 3,
        fix: "nodelay".to_owned(),
        recorder: "tcpwhy run".to_owned(),
        ..About::default()
    };
    let end = |text: &str| Some(text.parse().unwrap());
    let socket = Socket {
        cookie: 1,
        local: end("127.0.0.1:80"),
        peer: end("127.0.0.1:4000"),
        nodelay: true,
        mss: 32_741,
        written: 77,
    };
    let other =
        Socket { cookie: 2, local: end("[::1]:80"), peer: None, nodelay: false, mss: 0, written: u64::MAX };
    Recording {
        about,
        calls: (0..calls)
            .map(|at| call(at * 1_000_000, 1 + at as u64 % 2, 1 + u32::from(at % 3 == 0)))
            .collect(),
        sockets: vec![socket, other],
        places: BTreeMap::from([
            (1, vec![place("flush", 118), place("main", 7)]),
            (2, vec![place("", 0), place("main", 7)]),
        ]),
        ..Recording::default()
    }
}
