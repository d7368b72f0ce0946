//! A recording to the bodies of blocks.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::holder::{self, Holder};
use super::layout::{
    CALL, DEEPEST, HEADER, LONGEST_TEXT, MAGIC, MOST_BYTES, MOST_BYTES_OF_CALLS, NODELAY, PLACE, SCRIPT,
    SOCKET, STACK, Section, about,
};
use super::{About, Call, Place, Recording, Socket};
use crate::container::cut;

/// The blocks that belong before all calls: how it was made, the sockets and their programs, and the stacks as places.
pub fn head(recording: &Recording) -> Vec<Vec<u8>> {
    let mut numbers = BTreeMap::new();
    for place in recording.places.values().flat_map(|places| places.iter().take(DEEPEST)) {
        let next = numbers.len() as u32;
        numbers.entry(place).or_insert(next);
    }
    let mut blocks = Blocks::default();
    blocks.begin(Section::About, 0);
    tell(&recording.about, &mut blocks);
    blocks.begin(Section::Sockets, SOCKET);
    recording.sockets.iter().for_each(|socket| blocks.push(&socket_bytes(socket)));
    push_holders(&recording.holders(), &mut blocks);
    blocks.begin(Section::Places, 0);
    numbers.iter().for_each(|(place, number)| blocks.push(&place_bytes(place, *number)));
    blocks.begin(Section::Stacks, 0);
    for (number, places) in &recording.places {
        let places: Vec<u32> = places.iter().take(DEEPEST).map(|place| numbers[place]).collect();
        blocks.push(&stack_bytes(*number, &places));
    }
    blocks.end()
}

/// The blocks that tell the programs at the ends of connections, for a file with or without calls, wherever in it.
pub fn holders(all: &[Holder]) -> Vec<Vec<u8>> {
    let mut blocks = Blocks::default();
    push_holders(all, &mut blocks);
    blocks.end()
}

fn push_holders(all: &[Holder], blocks: &mut Blocks) {
    blocks.begin(Section::Holders, 0);
    all.iter().for_each(|one| blocks.push(&holder::bytes_of(one)));
}

/// Calls on their way into a file, each before the packets that were captured after it began.
#[derive(Debug)]
pub struct Calls<'a>(&'a [Call]);

impl<'a> Calls<'a> {
    /// All calls, in the order of their beginnings.
    pub fn new(calls: &'a [Call]) -> Self {
        Self(calls)
    }

    /// The next block's body, if its first call began by `time` (ns since the epoch). Ask until there is none, then write
    /// the packet that was captured at `time`.
    pub fn by(&mut self, time: i64) -> Option<Vec<u8>> {
        self.0.first().filter(|call| call.start <= time)?;
        let (now, later) = self.0.split_at(self.0.len().min((MOST_BYTES_OF_CALLS - HEADER) / CALL));
        self.0 = later;
        let mut blocks = Blocks::default();
        blocks.begin(Section::Calls, CALL);
        now.iter().for_each(|call| blocks.push(&call_bytes(call)));
        blocks.end().pop()
    }
}

/// Bodies of blocks, of which the last is open.
#[derive(Default)]
struct Blocks {
    done: Vec<Vec<u8>>,
    /// Section and size of an item.
    kind: Option<(Section, usize)>,
}

impl Blocks {
    /// What is pushed from here on are items of this section; `size` is 0 where they tell their lengths themselves.
    fn begin(&mut self, section: Section, size: usize) {
        self.kind = Some((section, size));
        self.open();
    }

    fn open(&mut self) {
        let Some((section, size)) = self.kind else { return };
        self.drop_empty();
        let mut body = Vec::with_capacity(HEADER);
        body.extend(MAGIC);
        body.extend((section as u16).to_ne_bytes());
        body.extend((size as u16).to_ne_bytes());
        body.extend(0_u32.to_ne_bytes());
        self.done.push(body);
    }

    fn drop_empty(&mut self) {
        self.done.pop_if(|body| body.len() == HEADER);
    }

    fn push(&mut self, item: &[u8]) {
        if self.done.last().is_none_or(|body| body.len() > HEADER && body.len() + item.len() > MOST_BYTES) {
            self.open();
        }
        let Some(body) = self.done.last_mut() else { return };
        body.extend(item);
        let count = body[HEADER - 4..HEADER].first_chunk().copied().map_or(0, u32::from_ne_bytes);
        body[HEADER - 4..HEADER].copy_from_slice(&(count + 1).to_ne_bytes());
    }

    fn end(mut self) -> Vec<Vec<u8>> {
        self.drop_empty();
        self.done
    }
}

fn tell(told: &About, blocks: &mut Blocks) {
    for (code, number) in
        [(about::PROGRAMS, told.programs), (about::LOST, told.lost), (about::INTERRUPTED, told.interrupted)]
    {
        blocks.push(&option(code, &number.to_ne_bytes()));
    }
    let texts = [
        (about::FIX, &told.fix),
        (about::UNSEEN, &told.unseen),
        (about::RECORDER, &told.recorder),
        (about::NO_PACKETS, &told.no_packets),
    ];
    for (code, text) in texts {
        if !text.is_empty() {
            blocks.push(&option(code, cut(text, LONGEST_TEXT).as_bytes()));
        }
    }
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = code.to_ne_bytes().to_vec();
    bytes.extend((value.len() as u16).to_ne_bytes());
    bytes.extend(value);
    padded(bytes)
}

pub(super) fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn socket_bytes(socket: &Socket) -> [u8; SOCKET] {
    let mut bytes = Fields::<SOCKET>::default();
    bytes.put(0, &socket.cookie.to_ne_bytes());
    bytes.put(8, &socket.written.to_ne_bytes());
    bytes.put(16, &socket.mss.to_ne_bytes());
    bytes.put(20, &[if socket.nodelay { NODELAY } else { 0 }]);
    bytes.put_end(socket.local, (21, 24, 32));
    bytes.put_end(socket.peer, (22, 26, 48));
    bytes.0
}

fn place_bytes(place: &Place, number: u32) -> Vec<u8> {
    let texts = [&place.function, &place.file, &place.module].map(|text| cut(text, LONGEST_TEXT));
    let len = PLACE + texts.iter().map(|text| 2 + text.len()).sum::<usize>();
    let mut bytes = (len.next_multiple_of(4) as u16).to_ne_bytes().to_vec();
    bytes.extend(if place.script { SCRIPT } else { 0 }.to_ne_bytes());
    bytes.extend(number.to_ne_bytes());
    bytes.extend(place.line.to_ne_bytes());
    for text in texts {
        bytes.extend((text.len() as u16).to_ne_bytes());
        bytes.extend(text.as_bytes());
    }
    padded(bytes)
}

fn stack_bytes(number: u32, places: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(STACK + 4 * places.len());
    bytes.extend(number.to_ne_bytes());
    bytes.extend((places.len() as u32).to_ne_bytes());
    places.iter().for_each(|place| bytes.extend(place.to_ne_bytes()));
    bytes
}

fn call_bytes(call: &Call) -> [u8; CALL] {
    let mut bytes = Fields::<CALL>::default();
    bytes.put(0, &call.start.to_ne_bytes());
    bytes.put(8, &call.took.to_ne_bytes());
    bytes.put(16, &call.socket.to_ne_bytes());
    bytes.put(24, &call.asked.to_ne_bytes());
    bytes.put(32, &call.result.to_ne_bytes());
    bytes.put(40, &call.flags.to_ne_bytes());
    bytes.put(48, &call.process.to_ne_bytes());
    bytes.put(52, &call.thread.to_ne_bytes());
    bytes.put(56, &call.fd.to_ne_bytes());
    bytes.put(60, &call.stack.to_ne_bytes());
    bytes.put(64, &[call.kind as u8]);
    bytes.0
}

/// An item of fixed size; what is not put is zero.
pub(super) struct Fields<const N: usize>(pub(super) [u8; N]);

impl<const N: usize> Default for Fields<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Fields<N> {
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Puts an address, if it is known, to where its version, its port and its bytes are.
    pub(super) fn put_end(
        &mut self,
        end: Option<SocketAddr>,
        (version, port, address): (usize, usize, usize),
    ) {
        let Some(end) = end else { return };
        self.put(version, &[if end.is_ipv4() { 4 } else { 6 }]);
        self.put(port, &end.port().to_ne_bytes());
        match end.ip() {
            IpAddr::V4(ip) => self.put(address, &ip.octets()),
            IpAddr::V6(ip) => self.put(address, &ip.octets()),
        }
    }
}
