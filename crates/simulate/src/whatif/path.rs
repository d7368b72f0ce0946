//! The path, as the capture shows it: how far each end is away, and what it lost.

use std::time::Duration;

use tcpwhy_wire::TcpFlags;

use super::trace::{Passed, Trace};
use crate::link::{Drop, Ends, Settings};
use crate::world::Side;

/// How long a packet takes from the capture point to each end and its answer back, ns: the client's part of the base
/// round trip and the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts(pub [i64; 2]);

/// On a way shorter than this the hosts take longer than the packets, ns.
const SHORT: i64 = 100_000;
/// The capture was made at that end which is so many times nearer.
const NEARER: i64 = 4;

impl Parts {
    /// The shortest answers of each end: to a SYN, to data.
    pub(super) fn of(trace: &Trace) -> Self {
        let mut parts = [i64::MAX; 2];
        // The latest end of data of each side that nothing acknowledged yet, and when it passed.
        let mut waiting: [Option<(u64, i64)>; 2] = [None; 2];
        for packet in &trace.packets {
            let (own, peer) = (packet.from as usize, packet.from.other() as usize);
            if let (Some(ack), Some((end, since))) = (packet.ack, waiting[peer])
                && ack >= end
            {
                parts[own] = parts[own].min((packet.time - since).max(0));
                waiting[peer] = None;
            }
            let end = packet.end() + u64::from(packet.has(TcpFlags::SYN));
            if end > packet.start {
                waiting[own] = Some((end, packet.time));
            }
        }
        let [client, server] = parts.map(|part| if part == i64::MAX { 0 } else { part });
        // What the end at the capture point takes to answer is its own time, and no way.
        let far = |part: i64, other: i64| if part < SHORT || part <= other / NEARER { 0 } else { part };
        Self([far(client, server), far(server, client)])
    }

    /// The base round trip, ns.
    pub fn round_trip(self) -> i64 {
        self.0[0] + self.0[1]
    }

    /// The end that the capture was made at, or the nearer one.
    pub fn nearer(self) -> Side {
        if self.0[0] <= self.0[1] { Side::Client } else { Side::Server }
    }

    /// When it left its sender, as far as nothing but the way lies between.
    pub(super) fn sent(self, packet: &Passed) -> i64 {
        packet.time - self.0[packet.from as usize] / 2
    }

    /// When it reached its receiver, likewise.
    pub(super) fn arrived(self, packet: &Passed) -> i64 {
        packet.time + self.0[packet.from.other() as usize] / 2
    }

    /// The same path, without a rate and without loss.
    pub(super) fn ends(self) -> Ends {
        let delay = Duration::from_nanos(u64::try_from(self.round_trip() / 2).unwrap_or(0));
        let way = Settings { delay, ..Settings::default() };
        Ends { up: way.clone(), down: way }
    }
}

/// What is sent again sooner than this share of a round trip after a hole opened was overtaken, not lost.
const OVERTAKEN: i64 = 2;

/// Finds what the path lost of each side's data, as plans for a link; marks what was lost behind the capture point.
pub(super) fn losses(trace: &mut Trace, parts: Parts) -> [Vec<Drop>; 2] {
    let mut drops = [Vec::new(), Vec::new()];
    for side in [Side::Client, Side::Server] {
        let syns = trace.packets.iter().filter(|packet| packet.from == side && packet.has(TcpFlags::SYN));
        let repeats = (syns.count() as u64).saturating_sub(1);
        drops[side as usize].extend((1..=repeats).map(Drop::Syn));
    }
    let mut ways = [Way::default(), Way::default()];
    for index in 0..trace.packets.len() {
        let packet = trace.packets[index];
        let (own, peer) = (packet.from as usize, packet.from.other() as usize);
        if let Some((left, right)) = packet.duplicate {
            ways[peer].forgive(left, right, &mut drops[peer], &mut trace.packets);
        }
        if packet.len > 0 && !packet.has(TcpFlags::SYN) {
            let patience = parts.round_trip() / OVERTAKEN;
            ways[own].take(index, patience, &mut drops[own], &mut trace.packets);
        }
    }
    for way in &mut drops {
        way.sort_by_key(|drop| if let Drop::Byte(n) = drop { *n } else { 0 });
    }
    drops
}

/// One direction's data.
#[derive(Debug, Default)]
struct Way {
    next: u64,
    /// Missing ranges, and since when.
    holes: Vec<(u64, u64, i64)>,
    /// Packets that carried data which may still be sent again, by index.
    recent: Vec<usize>,
    /// What was sent again and is not known to have been needless: byte, the copy taken for lost.
    again: Vec<(u64, usize)>,
}

/// Packets remembered of one direction for the copy that was lost, holes, and repeats: more than a window has.
const RECENT: usize = 1_024;

impl Way {
    fn take(&mut self, index: usize, patience: i64, drops: &mut Vec<Drop>, packets: &mut [Passed]) {
        let packet = packets[index];
        if self.next == 0 {
            self.next = 1;
        }
        if packet.start > self.next && self.holes.len() < RECENT {
            self.holes.push((self.next, packet.start, packet.time));
        }
        if packet.end() <= self.next {
            self.take_old(packet, patience, drops, packets);
        }
        self.next = self.next.max(packet.end());
        if self.recent.len() >= RECENT {
            self.recent.drain(..RECENT / 2);
        }
        self.recent.push(index);
    }

    /// Data below the highest: it fills a hole that the path made before the capture point, or it is a second copy.
    fn take_old(&mut self, packet: Passed, patience: i64, drops: &mut Vec<Drop>, packets: &mut [Passed]) {
        let hole = self.holes.iter().position(|hole| hole.0 <= packet.start && packet.start < hole.1);
        if let Some(at) = hole {
            let (left, right, since) = self.holes.swap_remove(at);
            self.holes.extend((left < packet.start).then_some((left, packet.start, since)));
            self.holes.extend((packet.end() < right).then_some((packet.end(), right, since)));
            if packet.time - since > patience {
                drops.push(Drop::Byte(packet.start));
            }
            return;
        }
        // One byte below the next is a probe (RFC 9293 3.8.4).
        if packet.len == 1 && packet.end() == self.next {
            return;
        }
        let copy = self.recent.iter().rev().copied().find(|index| {
            let old = &packets[*index];
            !old.is_lost && old.start <= packet.start && packet.start < old.end()
        });
        if let Some(copy) = copy.filter(|_| self.again.len() < RECENT) {
            packets[copy].is_lost = packets[copy].start == packet.start;
            drops.push(Drop::Byte(packet.start));
            self.again.push((packet.start, copy));
        }
    }

    /// The receiver got this range twice: what was sent again was not lost.
    fn forgive(&mut self, left: u64, right: u64, drops: &mut Vec<Drop>, packets: &mut [Passed]) {
        let Some(at) = self.again.iter().position(|(byte, _)| (left..right).contains(byte)) else { return };
        let (byte, copy) = self.again.swap_remove(at);
        packets[copy].is_lost = false;
        if let Some(at) = drops.iter().position(|drop| *drop == Drop::Byte(byte)) {
            drops.swap_remove(at);
        }
    }
}

/// Packets in a row over which a rate is measured.
const STRETCH: usize = 8;
/// Stretches are as fast as each other within this share, and so many (in percent) of a transfer's are, where a
/// bottleneck is what spaces them.
const ALIKE: f64 = 0.03;
const MOST_COMMON: usize = 20;
const FEWEST: usize = 8;
/// Headers beside a full segment's payload, as a share of it: 52 of 1,448 bytes.
const HEADERS: f64 = 1.036;

/// The rate of the path's bottleneck, bit/s: data that leaves it back to back arrives, and is acknowledged, at its pace.
pub(super) fn rate(trace: &Trace, parts: Parts) -> Option<u64> {
    let rates = [Side::Client, Side::Server].map(|side| rate_of(trace, parts, side));
    rates.into_iter().flatten().max()
}

/// Of the data that `side` sends.
fn rate_of(trace: &Trace, parts: Parts, side: Side) -> Option<u64> {
    let is_near = parts.nearer() == side;
    let steps = if is_near { acknowledged(trace, side) } else { arrived(trace, side) };
    let bulk = STRETCH as u64 * u64::from(trace.mss) / 2;
    let of = |stretch: &[Step]| {
        let [first, .., last] = stretch else { return None };
        let (bytes, time) = (last.end.saturating_sub(first.end), last.time - first.time);
        // Else the spaces are those of a window that is full: a stretch must have been under way as a whole.
        let is_one_flight = if is_near { last.end <= first.sent } else { time < parts.round_trip() };
        (time > 0 && bytes >= bulk && is_one_flight).then(|| bytes as f64 * 8.0 * HEADERS * 1e9 / time as f64)
    };
    let mut rates: Vec<f64> = steps.windows(STRETCH).filter_map(of).collect();
    rates.sort_by(f64::total_cmp);
    let near = |rate: f64| {
        let from = rates.partition_point(|other| *other < rate * (1.0 - ALIKE));
        from..rates.partition_point(|other| *other <= rate * (1.0 + ALIKE))
    };
    let common = rates.iter().copied().map(near).max_by_key(ExactSizeIterator::len)?;
    let (from, count) = (common.start, common.len());
    (count >= FEWEST && count * 100 >= rates.len() * MOST_COMMON).then(|| rates[from + count / 2] as u64)
}

/// The end of the data that came through, when that was seen, and the end of what had been sent then.
#[derive(Clone, Copy, Debug)]
struct Step {
    time: i64,
    end: u64,
    sent: u64,
}

fn acknowledged(trace: &Trace, side: Side) -> Vec<Step> {
    let mut sent = 0;
    let mut steps = Vec::new();
    for packet in &trace.packets {
        match packet.ack {
            _ if packet.from == side => sent = sent.max(packet.end()),
            Some(end) => steps.push(Step { time: packet.time, end, sent }),
            None => {}
        }
    }
    steps
}

fn arrived(trace: &Trace, side: Side) -> Vec<Step> {
    let data = trace.packets.iter().filter(|packet| packet.from == side && packet.len > 0);
    data.map(|packet| Step { time: packet.time, end: packet.end(), sent: packet.end() }).collect()
}
