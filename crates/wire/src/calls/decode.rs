//! The bodies of blocks to a recording. A file is hostile: what is kept of it has limits, what is cut or damaged is left
//! out and counted, and times are clamped so that sums of two cannot overflow.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::layout::{CALL, DEEPEST, HEADER, HOLDER, NODELAY, PLACE, SCRIPT, SOCKET, STACK, Section, about};
use super::{About, Call, Holder, Kind, Place, Socket, holder};
use crate::container::bytes::Order;
use crate::container::{MAX_TIME, options};

/// Sockets told apart in a file. Each takes whoever sums up calls some hundred bytes.
const MOST_SOCKETS: usize = 1 << 18;
/// Bytes that all places may take, their texts and themselves.
const MOST_PLACE_BYTES: usize = 64 << 20;
/// Places on all stacks together, four bytes each.
const MOST_ON_STACKS: usize = 1 << 22;
/// Calls that wait for their time. A block's worth is what honest files have.
const MOST_WAITING: usize = 1 << 16;

/// A block of a recording, as the capture file's reader hands it on.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The section of the file that it stands in.
    pub(crate) section: u32,
    pub(crate) order: Order,
    pub(crate) body: &'a [u8],
}

/// Puts a recording together again, block by block. Calls come out in the order they have in the file, none earlier than
/// its time; what belongs to all of them can be asked for at any time.
///
/// Sockets and stacks are numbered anew, from 1, in the order in which they appear: a file may hold several recordings.
#[derive(Debug, Default)]
pub struct Reader {
    about: About,
    /// The file's section that is being read, and the recording's numbers for things.
    section: Option<u32>,
    sockets_by_cookie: HashMap<u64, u64>,
    stacks_by_number: HashMap<u32, u32>,
    places_by_number: HashMap<u32, u32>,
    sockets: u64,
    /// Sockets that nobody has taken.
    described: Vec<Socket>,
    stacks: Vec<Vec<u32>>,
    places: Vec<Place>,
    place_bytes: usize,
    on_stacks: usize,
    waiting: VecDeque<Call>,
    /// Those that nobody has taken, and how many there were.
    holders: Vec<Holder>,
    all_holders: usize,
    /// Whether there was anything else than holders.
    has_recording: bool,
    left_out: LeftOut,
}

/// What a file has and the recording lacks.
#[derive(Debug, Default)]
struct LeftOut {
    /// Items whose bytes say what cannot be.
    damaged: u64,
    /// Calls on more sockets than are told apart.
    calls: u64,
    /// Stacks that were more than there is room for.
    stacks: u64,
}

impl Reader {
    /// Takes the next block.
    pub fn take(&mut self, block: Block<'_>) {
        let Block { section, order, body } = block;
        if self.section != Some(section) {
            self.begin(section);
        }
        let (size, count) = (usize::from(order.u16(body, 10)), order.u32(body, 12));
        let items = body.get(HEADER..).unwrap_or_default();
        let kind = Section::numbered(order.u16(body, 8));
        self.has_recording |= kind != Some(Section::Holders);
        match kind {
            Some(Section::About) => self.tell(order, items),
            Some(Section::Sockets) => self.sized(items, (size, SOCKET, count), |reader, item| {
                reader.describe(order, item);
            }),
            Some(Section::Calls) => self.sized(items, (size, CALL, count), |reader, item| {
                reader.call(order, item);
            }),
            Some(Section::Places) => self.places(order, items, count),
            Some(Section::Stacks) => self.stacks(order, items, count),
            Some(Section::Holders) => self.holders_in(order, items, count),
            // Of a later version.
            None => {}
        }
    }

    /// The next call that began by `time` (ns since the epoch), if there is one; `i64::MAX` asks for all. A call may come
    /// too early where a file makes too many of them wait.
    pub fn call_by(&mut self, time: i64) -> Option<Call> {
        let is_crowded = self.waiting.len() > MOST_WAITING;
        self.waiting.front().filter(|call| call.start <= time || is_crowded)?;
        self.waiting.pop_front()
    }

    /// The descriptions of sockets that have come since they were last asked for.
    pub fn sockets(&mut self) -> Vec<Socket> {
        std::mem::take(&mut self.described)
    }

    /// How it was made. Of several recordings in a file, all together.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The programs at ends of connections that have come since they were last asked for.
    pub fn holders(&mut self) -> Vec<Holder> {
        std::mem::take(&mut self.holders)
    }

    /// Whether there was no block of a recording of calls. Programs at ends of connections alone are none.
    pub fn is_empty(&self) -> bool {
        !self.has_recording
    }

    /// The places of a call's stack, innermost first; none where none was kept.
    pub fn stack(&self, number: u32) -> impl Iterator<Item = &Place> {
        let at = (number as usize).checked_sub(1);
        let places = at.and_then(|at| self.stacks.get(at)).map_or(&[][..], Vec::as_slice);
        places.iter().filter_map(|place| self.places.get(*place as usize))
    }

    /// What somebody who trusts it must know.
    pub fn notes(&self) -> Vec<String> {
        let LeftOut { damaged, calls, stacks } = self.left_out;
        let mut notes = Vec::new();
        if damaged > 0 {
            notes.push(format!("Damaged, and left out: {damaged} entries of the recorded calls."));
        }
        if calls > 0 {
            notes.push(format!("Left out: {calls} calls on more than {MOST_SOCKETS} sockets."));
        }
        if stacks > 0 {
            notes.push(format!("Left out: {stacks} call stacks, for want of room."));
        }
        notes
    }

    /// Another recording begins: what is numbered there has nothing to do with the one before.
    fn begin(&mut self, section: u32) {
        self.section = Some(section);
        self.sockets_by_cookie.clear();
        self.stacks_by_number.clear();
        self.places_by_number.clear();
    }

    /// Items of one size, which later versions may make longer, but not shorter.
    fn sized(
        &mut self,
        items: &[u8],
        (size, least, count): (usize, usize, u32),
        mut take: impl FnMut(&mut Self, &[u8]),
    ) {
        if size < least {
            self.left_out.damaged += u64::from(count);
            return;
        }
        let whole = items.chunks_exact(size).take(count as usize);
        self.left_out.damaged += u64::from(count) - whole.len() as u64;
        whole.for_each(|item| take(self, item));
    }

    fn tell(&mut self, order: Order, items: &[u8]) {
        let told = &mut self.about;
        for (code, value) in options(order, items) {
            let add = |sum: &mut u64| *sum = sum.saturating_add(order.u64(value, 0));
            let text = || String::from_utf8_lossy(value).into_owned();
            match code {
                about::PROGRAMS => add(&mut told.programs),
                about::LOST => add(&mut told.lost),
                about::INTERRUPTED => add(&mut told.interrupted),
                about::FIX => told.fix = text(),
                about::UNSEEN => told.unseen = text(),
                about::RECORDER => told.recorder = text(),
                about::NO_PACKETS => told.no_packets = text(),
                _ => {}
            }
        }
    }

    fn socket(&mut self, cookie: u64) -> Option<u64> {
        if let Some(number) = self.sockets_by_cookie.get(&cookie) {
            return Some(*number);
        }
        if self.sockets == MOST_SOCKETS as u64 {
            return None;
        }
        self.sockets += 1;
        self.sockets_by_cookie.insert(cookie, self.sockets);
        Some(self.sockets)
    }

    fn describe(&mut self, order: Order, item: &[u8]) {
        // Nobody looks at a socket without calls, and those of one that finds no room are counted.
        let Some(cookie) = self.socket(order.u64(item, 0)) else { return };
        self.described.push(Socket {
            cookie,
            written: order.u64(item, 8),
            mss: order.u32(item, 16),
            nodelay: item[20] & NODELAY != 0,
            local: end(item[21], order.u16(item, 24), &item[32..48]),
            peer: end(item[22], order.u16(item, 26), &item[48..64]),
        });
    }

    fn call(&mut self, order: Order, item: &[u8]) {
        let Some(kind) = Kind::numbered(item[64]) else {
            // Of a later version, or damaged.
            self.left_out.damaged += 1;
            return;
        };
        let Some(socket) = self.socket(order.u64(item, 16)) else {
            self.left_out.calls += 1;
            return;
        };
        self.waiting.push_back(Call {
            kind,
            process: order.u32(item, 48),
            thread: order.u32(item, 52),
            start: (order.u64(item, 0) as i64).clamp(0, MAX_TIME),
            took: order.u64(item, 8).min(MAX_TIME as u64 - 1),
            socket,
            asked: order.u64(item, 24),
            result: order.u64(item, 32) as i64,
            fd: order.u32(item, 56) as i32,
            stack: self.stacks_by_number.get(&order.u32(item, 60)).copied().unwrap_or(0),
            flags: order.u64(item, 40),
        });
    }

    fn places(&mut self, order: Order, items: &[u8], count: u32) {
        let mut rest = items;
        for left in (0..u64::from(count)).rev() {
            let len = usize::from(order.u16(rest, 0));
            let item = rest.get(..len).filter(|item| item.len() >= PLACE);
            let Some(place) = item.and_then(|item| place(order, item)) else {
                self.left_out.damaged += left + 1;
                return;
            };
            let bytes = size_of::<Place>() + len;
            if self.place_bytes + bytes <= MOST_PLACE_BYTES {
                self.place_bytes += bytes;
                self.places_by_number.insert(order.u32(rest, 4), self.places.len() as u32);
                self.places.push(place);
            }
            rest = &rest[len..];
        }
    }

    fn holders_in(&mut self, order: Order, items: &[u8], count: u32) {
        let mut rest = items;
        for left in (0..u64::from(count)).rev() {
            let len = usize::from(order.u16(rest, 0));
            let item = rest.get(..len).filter(|item| item.len() >= HOLDER);
            let Some(holder) = item.and_then(|item| holder::of_bytes(order, item)) else {
                self.left_out.damaged += left + 1;
                return;
            };
            // Of more, nobody is named.
            if self.all_holders < MOST_SOCKETS {
                self.all_holders += 1;
                self.holders.push(holder);
            }
            rest = &rest[len..];
        }
    }

    fn stacks(&mut self, order: Order, items: &[u8], count: u32) {
        let mut rest = items;
        for left in (0..u64::from(count)).rev() {
            let depth = order.u32(rest, 4) as usize;
            let places = rest.get(STACK..).and_then(|rest| rest.get(..depth.min(DEEPEST + 1) * 4));
            let Some(places) = places.filter(|_| depth <= DEEPEST) else {
                self.left_out.damaged += left + 1;
                return;
            };
            self.stack_of(order.u32(rest, 0), order, places);
            rest = &rest[STACK + places.len()..];
        }
    }

    fn stack_of(&mut self, number: u32, order: Order, places: &[u8]) {
        let known = places.chunks_exact(4).map(|place| self.places_by_number.get(&order.u32(place, 0)));
        let Some(stack) = known.map(|place| place.copied()).collect::<Option<Vec<u32>>>() else {
            self.left_out.stacks += 1;
            return;
        };
        // One more each, so that empty ones have a limit too.
        if self.on_stacks + stack.len() + 1 > MOST_ON_STACKS {
            self.left_out.stacks += 1;
            return;
        }
        self.on_stacks += stack.len() + 1;
        self.stacks.push(stack);
        self.stacks_by_number.insert(number, self.stacks.len() as u32);
    }
}

/// A whole place; `None` where its texts are longer than it is.
fn place(order: Order, item: &[u8]) -> Option<Place> {
    let mut rest = &item[PLACE..];
    let mut text = || {
        let len = usize::from(order.u16(rest, 0));
        let text = rest.get(2..)?.get(..len)?;
        rest = &rest[2 + len..];
        Some(String::from_utf8_lossy(text).into_owned())
    };
    Some(Place {
        function: text()?,
        file: text()?,
        module: text()?,
        line: order.u32(item, 8),
        script: order.u16(item, 2) & SCRIPT != 0,
    })
}

pub(super) fn end(version: u8, port: u16, address: &[u8]) -> Option<SocketAddr> {
    let ip = match version {
        4 => IpAddr::V4(Ipv4Addr::from(*address.first_chunk::<4>()?)),
        6 => IpAddr::V6(Ipv6Addr::from(*address.first_chunk::<16>()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}
