//! The entry point: packets in, a [`Diagnosis`] out.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tcpwhy_wire::calls::Write;
use tcpwhy_wire::{Names, Packet, TcpFlags, Transport};

use crate::diagnosis::{Diagnosis, in_ms};
use crate::flow::collector::{Before, Collector};
use crate::flow::copies::Copies;
use crate::flow::series::Wanted;
use crate::flow::table::{Key, Record, Table};
use crate::report::{LedgerMs, Line};

/// What the container knows of a capture and the packets do not tell.
#[derive(Clone, Debug, Default)]
pub struct CaptureInfo {
    /// The file's name, or the prose line above a text's block.
    pub name: String,
    /// `pcap`, `pcapng`, `pcap.gz`, …, or `tcpdump-text`.
    pub kind: String,
    /// Frames read, of every protocol.
    pub frames: u64,
    /// Bytes of these frames on the wire.
    pub bytes: u64,
    /// Time of the first and of the last frame, ns since the epoch (or since midnight, see `has_date`).
    pub span: Option<(i64, i64)>,
    /// False for a text whose times have no date.
    pub has_date: bool,
    /// Notes of the reader: cut file, frames skipped.
    pub notes: Vec<String>,
    /// Host names of a text capture.
    pub names: Names,
}

/// A packet earlier than the one before it by more than this means that the clock was set back: the clocks of
/// one machine's processors differ by microseconds. ns.
const CLOCK_STEP: i64 = 1_000_000;

/// No packet is farther from its connection's first than this, 4.6 years: hostile clocks must not overflow a sum of some
/// durations. Times beyond it are taken as this far. ns.
const FARTHEST: i64 = 1 << 57;
/// No connection begins farther from the capture's first packet than this, 73 years: captures are merged from traces of
/// clocks that were never set (1970) and of those that were. ns.
const FARTHEST_START: i64 = 1 << 61;
/// The first packet is no farther from 1970 than this, 110 years: the difference of any two times, "never" included, then
/// fits in an i64. ns.
const FARTHEST_EPOCH: i64 = (1 << 61) + (1 << 60);

/// How often and how far the capture's clock ran backwards.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClockSteps {
    pub(crate) count: u64,
    pub(crate) worst: i64,
    pub(crate) packet: u64,
    pub(crate) at: i64,
}

/// What is known of a capture beside its connections.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) steps: ClockSteps,
    /// Frames that it has twice.
    pub(crate) copies: Copies,
    /// Connections that are not in the table any more.
    pub(crate) forgotten: Forgotten,
}

/// Connections that were forgotten to bound the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forgotten {
    pub(crate) count: u64,
    /// What they had booked.
    pub(crate) ledger: LedgerMs,
}

/// Takes one capture's packets in order, in one pass.
#[derive(Clone, Debug, Default)]
pub struct Analyzer {
    table: Table,
    latest: i64,
    started: bool,
    /// Time of the first packet, ns.
    epoch: i64,
    steps: ClockSteps,
    /// Frames that the capture has twice.
    copies: Copies,
    forgotten: Forgotten,
    memory: Memory,
    /// Connections that are recorded, by number.
    asked: BTreeMap<u64, Wanted>,
    /// Of those that have begun, by number.
    series: BTreeMap<u64, Collector>,
}

/// The bound of the memory that connections take, and what they take.
///
/// A look visits every connection. As long as the next one need not come sooner than in as many packets, looks are enough;
/// after that each packet is asked what it adds.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Bytes.
    most: usize,
    /// Packets to come before the next look.
    left: usize,
    /// Bytes in use, where each packet is asked.
    used: Option<usize>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { most: usize::MAX, left: usize::MAX, used: None }
    }
}

impl Memory {
    /// A packet adds fewer bytes than this: a record, and all of fixed size that can hang on one. What grows with each
    /// packet grows slower.
    const PACKET: usize = 4 << 10;

    /// Takes note that so many connections have these bytes in use.
    fn looked(&mut self, connections: usize, bytes: usize) {
        self.left = self.most.saturating_sub(bytes) / Self::PACKET;
        self.used = (self.left < connections).then_some(bytes);
    }

    /// Whether it is time to look: every connection has to be visited, or there are too many.
    fn is_due(&mut self, packets: usize) -> bool {
        self.left = self.left.saturating_sub(packets);
        self.used.map_or(self.left == 0, |used| used > self.most)
    }
}

impl Analyzer {
    /// Packets a batch should have: enough for the processor to load their connections' cache lines side by
    /// side, few enough that those lines are still in the first-level cache when their turn comes.
    pub const BATCH: usize = 32;

    /// An analyser for one capture.
    pub fn new() -> Self {
        Self::default()
    }

    /// An analyser that also records these connections (numbered as the report does, from 0 in order of appearance):
    /// their packets, for [`Diagnosis::series`], and every interval it books of them, for [`Diagnosis::bookings`]. Each
    /// takes up to 190 MiB.
    pub fn recording(connections: impl IntoIterator<Item = u64>) -> Self {
        Self::recording_parts(connections.into_iter().map(Wanted::all))
    }

    /// The same where a part of a connection may do: a packet takes 72 bytes, an interval 24.
    pub fn recording_parts(wanted: impl IntoIterator<Item = Wanted>) -> Self {
        let asked = wanted.into_iter().map(|wanted| (wanted.connection, wanted)).collect();
        Self { asked, ..Self::default() }
    }

    /// The same within so many bytes: when its connections take more, half of them are forgotten as
    /// [`Analyzer::age_out`] does. The same packets within the same bytes make the same report.
    #[must_use]
    pub fn within(mut self, bytes: usize) -> Self {
        self.memory = Memory { most: bytes, left: 0, used: None };
        self
    }

    /// Takes the next packets, in capture order. Batches of [`Analyzer::BATCH`] are fastest, any size works.
    pub fn push(&mut self, packets: &[Packet]) {
        for batch in packets.chunks(Self::BATCH) {
            if self.memory.is_due(batch.len()) {
                self.bound();
            }
            let mut tags = [0_u32; Self::BATCH];
            let mut guesses = [None; Self::BATCH];
            for (tag, packet) in tags.iter_mut().zip(batch) {
                *tag = self.table.tag(&Key::of(packet).0);
            }
            for (guess, tag) in guesses.iter_mut().zip(&tags[..batch.len()]) {
                *guess = self.table.probe(*tag);
            }
            for (guess, packet) in guesses.iter().zip(batch) {
                if let Some(index) = guess {
                    self.table.ask_for(*index, is_pure_ack(packet));
                }
            }
            for (guess, packet) in guesses.iter().zip(batch) {
                if let (Some(index), false) = (guess, is_pure_ack(packet)) {
                    self.table.probe_further(*index);
                }
            }
            for (number, packet) in batch.iter().enumerate() {
                let Some(superseded) = self.take(packet, tags[number], guesses[number]) else { continue };
                // The rest of the batch would still go to the old connection.
                guesses
                    .iter_mut()
                    .filter(|guess| **guess == Some(superseded))
                    .for_each(|guess| *guess = None);
            }
        }
    }

    /// Takes what a program wrote, where its calls were recorded on the machine of the capture: the ledger then knows when
    /// there was something to send. Writes and packets come in the order of their times; a write to a connection of which
    /// no packet has come tells nothing.
    pub fn push_write(&mut self, write: &Write) {
        let (key, from) = Key::between(write.from, write.to, false);
        let tag = self.table.tag(&key);
        let guess = self.table.probe(tag);
        if let Some(index) = self.table.find(&key, tag, guess) {
            let before = self.weigh(index);
            let connection = &mut self.table.get_mut(index).connection;
            let at = near(connection.first, write.at);
            connection.note_write(from, &Write { at, ..*write });
            self.weigh_again(index, before);
        }
    }

    /// Takes a packet. The connection that ended because this packet begins another one between the same ends.
    fn take(&mut self, packet: &Packet, tag: u32, guess: Option<u32>) -> Option<u32> {
        self.watch_clock(packet);
        let (key, from) = Key::of(packet);
        let known = self.table.find(&key, tag, guess);
        let superseded = known.filter(|index| {
            packet.tcp().is_some_and(|tcp| self.table.get(*index).connection.is_superseded_by(tcp))
        });
        let found = if superseded.is_some() { None } else { known };
        let index = found.or_else(|| self.insert(key, tag, self.start_of(packet)))?;
        let connection = &mut self.table.get_mut(index).connection;
        let time = near(connection.first, packet.time);
        if self.copies.leave_out(packet, time, index, connection, from) {
            return superseded;
        }
        let before = self.weigh(index);
        let number = self.table.number(index);
        let Record { connection, ledger } = self.table.get_mut(index);
        let series = if self.series.is_empty() { None } else { self.series.get_mut(&u64::from(number)) };
        let series = series.map(|series| (Before::of(connection, from), series));
        match &packet.transport {
            Transport::Tcp(tcp) => {
                connection.handle_segment(packet, time, tcp, from, ledger);
                if let Some((before, series)) = series {
                    series.take(packet.number, tcp, from, connection, before);
                }
            }
            Transport::Udp(udp) => {
                connection.handle_datagram(packet.number, time, *udp, from, ledger);
                if let Some((before, series)) = series {
                    series.take_datagram(packet.number, *udp, from, connection, before);
                }
            }
        }
        self.weigh_again(index, before);
        superseded
    }

    /// Bytes that hang on a record before it takes what comes next, where that counts.
    #[inline]
    fn weigh(&self, index: u32) -> usize {
        self.memory.used.map_or(0, |_| self.table.get(index).heap())
    }

    /// Counts what has been added to them.
    #[inline]
    fn weigh_again(&mut self, index: u32, before: usize) {
        if let Some(used) = &mut self.memory.used {
            *used = (*used + self.table.get(index).heap()).saturating_sub(before);
        }
    }

    /// When the connection begins whose first packet this is, ns.
    fn start_of(&self, packet: &Packet) -> i64 {
        packet.time.clamp(self.epoch - FARTHEST_START, self.epoch + FARTHEST_START)
    }

    fn insert(&mut self, key: Key, tag: u32, time: i64) -> Option<u32> {
        let index = self.table.insert(key, tag, time)?;
        self.memory.used.iter_mut().for_each(|used| *used += Table::BYTES_EACH);
        let number = u64::from(self.table.number(index));
        if let Some(wanted) = self.asked.get(&number) {
            self.table.get_mut(index).ledger.record(wanted.most);
            self.series.insert(number, Collector::new(wanted));
        }
        Some(index)
    }

    fn watch_clock(&mut self, packet: &Packet) {
        let back = self.latest.saturating_sub(packet.time);
        if self.started && back > CLOCK_STEP {
            self.steps.count += 1;
            if back > self.steps.worst {
                self.steps = ClockSteps { worst: back, packet: packet.number, at: packet.time, ..self.steps };
            }
        }
        if !self.started {
            self.started = true;
            self.epoch = packet.time.clamp(-FARTHEST_EPOCH, FARTHEST_EPOCH);
        }
        self.latest = packet.time;
    }

    /// How many connections and UDP flows are kept.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many connections were forgotten to bound the memory.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.count
    }

    /// Bounds the memory of an analysis that goes on for days: where more than `most` connections are kept, all are
    /// forgotten but `most / 4` that lost the most time so far, and `most / 4` more that had a packet last. Those that are
    /// left keep their numbers; the packets of a forgotten one that still come make a new connection. The time that a
    /// forgotten one had booked stays in the capture's sums, and a note says how many there were.
    pub fn age_out(&mut self, most: usize) {
        if self.len() > most {
            self.forget_all_but(most / 4);
        }
    }

    /// Looks what the connections take, and forgets half of them where that is too much.
    #[cold]
    fn bound(&mut self) {
        let bytes = self.table.bytes();
        self.memory.looked(self.len(), bytes);
        if bytes > self.memory.most && self.len() > Self::BATCH {
            self.forget_all_but(self.len() / 4);
            self.memory.looked(self.len(), self.table.bytes());
        }
    }

    /// Keeps `each` of the connections that lost the most, and of those that had a packet last.
    fn forget_all_but(&mut self, each: usize) {
        let records = self.table.iter().map(|Record { connection, ledger }| {
            let lines = ledger.lines(connection);
            let lost = Line::ALL.iter().filter(|line| line.is_lost()).map(|line| lines[*line as usize]);
            (lost.sum::<i64>(), connection.last)
        });
        let keep = worst_and_latest(&records.collect::<Vec<_>>(), each);
        for (record, _) in self.table.iter_mut().zip(&keep).filter(|(_, keep)| !**keep) {
            book_the_rest(record);
            let booked = in_ms(&record.ledger.lines(&record.connection));
            self.forgotten.count += 1;
            self.forgotten.ledger.0.iter_mut().zip(booked.0).for_each(|(sum, line)| *sum += line);
        }
        self.table.retain(&keep);
        self.copies.move_up(&keep);
        self.series.retain(|number, _| self.table.index(*number).is_some());
    }

    /// Books what is still open and hands over the result. Of an analysis that goes on, `clone` tells the result so far.
    pub fn finish(mut self, info: CaptureInfo) -> Diagnosis {
        self.table.forget_index();
        for (number, series) in &mut self.series {
            if let Some(index) = self.table.index(*number) {
                series.end(&self.table.get(index).connection);
            }
        }
        self.table.iter_mut().for_each(book_the_rest);
        let finish = |(number, series): (u64, Collector)| {
            let connection = &self.table.get(self.table.index(number)?).connection;
            Some((number, series.finish(connection)))
        };
        let series = self.series.into_iter().filter_map(finish).collect();
        let about = About { steps: self.steps, copies: self.copies, forgotten: self.forgotten };
        Diagnosis::new(info, self.table, about, series)
    }
}

/// A packet's time as a connection takes it that began at `start`, ns.
#[inline]
fn near(start: i64, time: i64) -> i64 {
    time.clamp(start - FARTHEST, start + FARTHEST)
}

/// Books what is still open of a connection whose packets have all been seen.
fn book_the_rest(Record { connection, ledger }: &mut Record) {
    connection.finish(ledger);
    ledger.finish(connection.last, connection.whose_turn());
}

/// Of records with the time that each lost and the time of its latest packet: which are among the `each` that lost the
/// most, or among the `each` of the others that had a packet last.
fn worst_and_latest(records: &[(i64, i64)], each: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_unstable_by_key(|i| Reverse(records[*i].0));
    // Who lost nothing is not among the worst, however few they are.
    let worst = order.iter().take(each).take_while(|i| records[**i].0 > 0).count();
    order[worst..].sort_unstable_by_key(|i| Reverse(records[*i].1));
    let mut keep = vec![false; records.len()];
    for i in &order[..order.len().min(worst + each)] {
        keep[*i] = true;
    }
    keep
}

/// Whether a packet only acknowledges, as about half of all do.
#[inline]
fn is_pure_ack(packet: &Packet) -> bool {
    matches!(&packet.transport, Transport::Tcp(tcp) if tcp.payload_len == 0 && tcp.flags.0 == TcpFlags::ACK)
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::{Packet, Socket, Tcp, TcpFlags, Transport};

    use super::{Analyzer, CaptureInfo};
    use crate::flow::table::Record;
    use crate::report::Source;

    /// A segment of one byte from this port, the `nth` of its connection.
    fn segment(time: i64, port: u16, nth: u32) -> Packet {
        let flags = TcpFlags(TcpFlags::ACK);
        let tcp = Tcp { seq: 100 + nth, ack: 1, payload_len: 1, flags, window: 500, ..Tcp::default() };
        let source = Socket { port, ..Socket::default() };
        Packet { time, source, transport: Transport::Tcp(tcp), ..Packet::default() }
    }

    /// How long each connection took, ms, if each has two segments, so many ns after each other.
    fn durations(starts: &[i64], apart: i64) -> Vec<f64> {
        let mut analyzer = Analyzer::new();
        for (port, start) in (1..).zip(starts) {
            analyzer.push(&[segment(*start, port, 0), segment(start.saturating_add(apart), port, 1)]);
        }
        let diagnosis = analyzer.finish(CaptureInfo::default());
        diagnosis.connections().map(|connection| connection.duration_ms.0).collect()
    }

    #[test]
    fn traces_of_two_centuries_in_one_capture_have_their_own_times() {
        const IN_2024: i64 = 1_720_000_000_000_000_000;
        assert_eq!(durations(&[60_000_000_000, IN_2024], 250_000_000), [250.0, 250.0]);
        assert_eq!(durations(&[IN_2024, 60_000_000_000], 250_000_000), [250.0, 250.0]);
    }

    #[test]
    fn hostile_clocks_overflow_nothing() {
        let starts = [i64::MAX, i64::MIN, 0, i64::MIN / 2, i64::MAX / 2];
        for (first, apart) in (0..starts.len()).flat_map(|first| [(first, i64::MAX), (first, i64::MIN)]) {
            let mut starts = starts;
            starts.rotate_left(first);
            assert!(durations(&starts, apart).iter().all(|duration| *duration >= 0.0));
        }
    }

    #[test]
    fn the_worst_and_the_latest_stay() {
        // Time lost, latest packet: the first lost most long ago, the second nothing long ago, …
        let records = [(900, 1), (0, 2), (0, 9), (5, 3), (0, 8), (7, 4)];
        assert_eq!(super::worst_and_latest(&records, 2), [true, false, true, false, true, true]);
        assert_eq!(super::worst_and_latest(&records[1..3], 1), [false, true]);
    }

    /// What is left of 20,000 connections within so many bytes. Each has a segment every µs until it has so many; the number
    /// of a connection is its source port.
    fn bounded(bytes: usize, segments: u32) -> Analyzer {
        let mut analyzer = Analyzer::recording([7, 19_999]).within(bytes);
        for connection in 0..20_000_u16 {
            let packet =
                |nth| segment(i64::from(connection) * 1_000_000 + i64::from(nth) * 1_000, connection, nth);
            for batch in (0..segments).map(packet).collect::<Vec<_>>().chunks(Analyzer::BATCH) {
                analyzer.push(batch);
            }
            if connection % 64 == 0 {
                // A batch may come before the next look.
                let used = analyzer.table.bytes();
                assert!(used <= bytes + Analyzer::BATCH * super::Memory::PACKET, "{used} of {bytes} bytes");
            }
        }
        analyzer
    }

    #[test]
    fn connections_take_no_more_memory_than_they_may() {
        for segments in [1, 3, 70] {
            let analyzer = bounded(4 << 20, segments);
            let (kept, forgotten) = (analyzer.len() as u64, analyzer.forgotten());
            assert!(kept > 500 && forgotten > 10_000, "{kept} are kept, {forgotten} forgotten");
            assert_eq!(kept + forgotten, 20_000);
        }
        assert_eq!(bounded(1 << 30, 1).forgotten(), 0);
    }

    #[test]
    fn connections_keep_their_numbers_when_others_are_forgotten() {
        let diagnosis = bounded(4 << 20, 2).finish(CaptureInfo::default());
        let connections: Vec<_> = diagnosis.connections().collect();
        for connection in &connections {
            assert!(connection.client.ends_with(&format!(":{}", connection.id)), "{connection:?}");
            assert_eq!(diagnosis.subject(connection.id).map(|subject| subject.id), Some(connection.id));
        }
        assert_eq!(connections.last().map(|last| last.id), Some(19_999));
        // What was to be recorded, is, if its connection is there.
        assert!(diagnosis.subject(7).is_none() && diagnosis.series(7).is_none());
        assert_eq!(diagnosis.series(19_999).map(|series| series.marks.len()), Some(2));
        assert!(diagnosis.bookings(19_999).is_some());
        let forgotten = 20_000 - connections.len();
        let notes = diagnosis.capture().notes;
        assert!(notes[0].starts_with(&format!("{forgotten} connections were forgotten")), "{notes:?}");
    }

    /// A million connections have to fit in 1 GiB with everything that hangs on them.
    #[test]
    fn a_record_is_small() {
        assert!(size_of::<Record>() <= 1024, "{}", size_of::<Record>());
    }
}
