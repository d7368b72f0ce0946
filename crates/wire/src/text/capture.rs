//! One run of packets: times, names and numbers are its own.

use std::collections::VecDeque;

use super::clock::Clock;
use super::host::Host;
use super::numbers::{self, Numbers, Printed};
use super::record::{Body, Content, Lengths, Record};
use super::stamp::{Origin, Stamp};
use super::tcp::Segment;
use super::{End, Item};
use crate::packet::{Address, Names, Packet, Socket, Transport, Udp};

/// Packets held back at any time: enough to tell deltas from times of day, and to see what a first pure ACK
/// does not print.
const LOOK_AHEAD: usize = 64;

/// Different host names kept in one capture; packets of further ones are left out, and a note says so.
const MAX_NAMES: usize = 65_536;

/// Lines of one sort: how many, and where the first is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) count: u64,
    pub(super) first: Option<u64>,
}

impl Count {
    pub(super) fn add(&mut self, line: u64) {
        self.count += 1;
        self.first.get_or_insert(line);
    }
}

/// A line whose time is still as printed: every line counts where times are deltas.
#[derive(Clone, Copy, Debug)]
struct Held {
    stamp: Stamp,
    /// The packet on it, if it is TCP or UDP.
    packet: Option<Parcel>,
}

/// A packet whose numbers are still as printed.
#[derive(Clone, Copy, Debug)]
struct Parcel {
    number: u64,
    source: Socket,
    destination: Socket,
    lengths: Lengths,
    body: Body,
}

impl Parcel {
    fn printed(&self, segment: Segment) -> Printed {
        Printed { source: self.source, destination: self.destination, segment }
    }

    fn as_segment(&self) -> Option<Printed> {
        match self.body {
            Body::Tcp(segment) => Some(self.printed(segment)),
            Body::Udp(_) => None,
        }
    }
}

/// A capture being read.
#[derive(Debug)]
pub(super) struct Capture {
    origin: Origin,
    clock: Option<Clock>,
    held: VecDeque<Held>,
    names: Names,
    numbers: Numbers,
    transported: u64,
    pub(super) others: u64,
    pub(super) unread: Count,
    pub(super) timeless: u64,
    nameless: u64,
}

impl Capture {
    /// A capture whose first packet was printed with `stamp`, after `others` and `unread` ones.
    pub(super) fn new(stamp: Stamp, others: u64, unread: Count) -> Self {
        Self {
            origin: stamp.origin,
            clock: None,
            held: VecDeque::new(),
            names: Names::default(),
            numbers: Numbers::default(),
            transported: 0,
            others,
            unread,
            timeless: 0,
            nameless: 0,
        }
    }

    /// Whether times of this sort have a date.
    pub(super) fn has_date(stamp: Stamp) -> bool {
        stamp.origin == Origin::Epoch
    }

    /// Whether a packet with this time can be of the same run: tcpdump prints all in one form.
    pub(super) fn suits(&self, stamp: Stamp) -> bool {
        stamp.origin == self.origin
    }

    /// Its host names so far.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    fn packets(&self) -> u64 {
        self.transported + self.others + self.unread.count
    }

    /// Takes the packet on `line`; those held long enough are ready then. False if it could not be kept.
    pub(super) fn take(&mut self, record: &Record, line: u64, ready: &mut VecDeque<Item>) -> bool {
        let Content::Transport { source, destination, lengths, body } = record.content else { return true };
        let (Some(source), Some(destination)) = (self.socket(&source), self.socket(&destination)) else {
            self.nameless += 1;
            self.miss(line, Some(record.stamp), ready);
            return false;
        };
        self.transported += 1;
        let number = self.packets();
        let parcel = Parcel { number, source, destination, lengths, body };
        self.hold(Held { stamp: record.stamp, packet: Some(parcel) }, ready);
        true
    }

    /// Takes a line with a packet of another protocol.
    pub(super) fn pass(&mut self, stamp: Stamp, ready: &mut VecDeque<Item>) {
        self.others += 1;
        self.hold(Held { stamp, packet: None }, ready);
    }

    /// Takes a line that could not be read.
    pub(super) fn miss(&mut self, line: u64, stamp: Option<Stamp>, ready: &mut VecDeque<Item>) {
        self.unread.add(line);
        if let Some(stamp) = stamp {
            self.hold(Held { stamp, packet: None }, ready);
        }
    }

    fn hold(&mut self, held: Held, ready: &mut VecDeque<Item>) {
        self.held.push_back(held);
        if self.held.len() > LOOK_AHEAD {
            self.release(ready);
        }
    }

    fn socket(&mut self, host: &Host) -> Option<Socket> {
        let address = match host.address {
            Some(ip) => Address::from(ip),
            None if self.names.len() < MAX_NAMES => self.names.intern(host.name),
            None => self.names.find(host.name)?,
        };
        Some(Socket { address, port: host.port.unwrap_or(0) })
    }

    fn release(&mut self, ready: &mut VecDeque<Item>) {
        let clock = self.clock.get_or_insert_with(|| Clock::new(self.held.iter().map(|held| held.stamp)));
        let Some(held) = self.held.pop_front() else { return };
        let time = clock.time(held.stamp);
        let Some(parcel) = held.packet else { return };
        let ahead = self.held.iter().filter_map(|later| later.packet?.as_segment());
        let transport = match parcel.body {
            Body::Tcp(segment) => Transport::Tcp(self.numbers.resolve(&parcel.printed(segment), ahead)),
            Body::Udp(payload_len) => Transport::Udp(Udp { payload_len }),
        };
        ready.push_back(Item::Packet(Packet {
            number: parcel.number,
            time,
            frame_len: frame_len(&parcel),
            ip_id: parcel.lengths.ip_id,
            source: parcel.source,
            destination: parcel.destination,
            transport,
        }));
    }

    /// Lets go of all packets.
    pub(super) fn end(mut self, ready: &mut VecDeque<Item>) -> End {
        while !self.held.is_empty() {
            self.release(ready);
        }
        End { packets: self.packets(), notes: self.notes(), names: self.names }
    }

    fn notes(&self) -> Vec<String> {
        let unread = self.unread.first.map(|first| match self.unread.count {
            1 => format!("Line {first} looks like a packet but could not be read."),
            count => {
                format!("{count} lines look like packets but could not be read; the first is line {first}.")
            }
        });
        let nameless = (self.nameless > 0)
            .then(|| format!("Packets beyond the first {MAX_NAMES} host names were left out."));
        let others =
            counted(self.others, "is neither TCP nor UDP and was", "are neither TCP nor UDP and were");
        let timeless =
            counted(self.timeless, "has no time (tcpdump -t) and was", "have no time (tcpdump -t) and were");
        let deltas = self.clock.is_some_and(|clock| clock.counts_from_previous());
        let deltas =
            deltas.then(|| "The times were read as counted from packet to packet (tcpdump -ttt).".to_owned());
        let flows = numbers::MAX_FLOWS;
        let overflow = (self.numbers.overflows > 0)
            .then(|| format!("Beyond {flows} connections in one text, sequence numbers may jump."));
        [unread, nameless, others, timeless, deltas, overflow].into_iter().flatten().collect()
    }
}

/// A note on packets that were left out; none for none.
fn counted(count: u64, one: &str, several: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 packet {one} left out.")),
        _ => Some(format!("{count} packets {several} left out.")),
    }
}

/// Bytes of the frame as `-e` printed them, or of the IP packet as `-v` did; otherwise the payload with
/// headers of the usual length: 20 bytes of IPv4 or 40 of IPv6, and TCP's or UDP's own.
fn frame_len(parcel: &Parcel) -> u32 {
    let transport = match parcel.body {
        Body::Tcp(segment) => segment.payload_len.saturating_add(20 + segment.listed.header_len),
        Body::Udp(payload) => payload.saturating_add(8),
    };
    let network = if parcel.lengths.is_v6 { 40 } else { 20 };
    parcel.lengths.frame.or(parcel.lengths.ip).unwrap_or(transport.saturating_add(network))
}
