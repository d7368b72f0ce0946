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
    /// What connections had booked that are not in the table any more.
    pub(crate) forgotten: LedgerMs,
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
    /// What connections that were forgotten had booked.
    forgotten: LedgerMs,
    /// Connections that are recorded, by number.
    asked: BTreeMap<u64, Wanted>,
    /// Of those that have begun, by number.
    series: BTreeMap<u32, Collector>,
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

    /// Takes the next packets, in capture order. Batches of [`Analyzer::BATCH`] are fastest, any size works.
    pub fn push(&mut self, packets: &[Packet]) {
        for batch in packets.chunks(Self::BATCH) {
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
            let connection = &mut self.table.get_mut(index).connection;
            let at = near(connection.first, write.at);
            connection.note_write(from, &Write { at, ..*write });
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
        let Record { connection, ledger } = self.table.get_mut(index);
        let series = if self.series.is_empty() { None } else { self.series.get_mut(&index) };
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
        superseded
    }

    /// When the connection begins whose first packet this is, ns.
    fn start_of(&self, packet: &Packet) -> i64 {
        packet.time.clamp(self.epoch - FARTHEST_START, self.epoch + FARTHEST_START)
    }

    fn insert(&mut self, key: Key, tag: u32, time: i64) -> Option<u32> {
        let index = self.table.insert(key, tag, time)?;
        if let Some(wanted) = self.asked.get(&u64::from(index)) {
            self.table.get_mut(index).ledger.record(wanted.most);
            self.series.insert(index, Collector::new(wanted));
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

    /// Bounds the memory of an analysis that goes on for days: where more than `most` connections are kept, all are
    /// forgotten but `most / 4` that lost the most time so far, and `most / 4` more that had a packet last. Returns how
    /// many were forgotten. Those that are left are numbered anew, from 0 in order of appearance; the packets of a
    /// forgotten one that still come make a new connection. The time that a forgotten one had booked stays in the capture's
    /// sums. An analyser that records connections forgets none: their numbers were promised.
    pub fn age_out(&mut self, most: usize) -> usize {
        if self.len() <= most || !self.asked.is_empty() {
            return 0;
        }
        let records = self.table.iter().map(|Record { connection, ledger }| {
            let lines = ledger.lines(connection);
            let lost = Line::ALL.iter().filter(|line| line.is_lost()).map(|line| lines[*line as usize]);
            (lost.sum::<i64>(), connection.last)
        });
        let keep = worst_and_latest(&records.collect::<Vec<_>>(), most / 4);
        for (record, _) in self.table.iter_mut().zip(&keep).filter(|(_, keep)| !**keep) {
            book_the_rest(record);
            let booked = in_ms(&record.ledger.lines(&record.connection));
            self.forgotten.0.iter_mut().zip(booked.0).for_each(|(sum, line)| *sum += line);
        }
        self.table.retain(&keep);
        self.copies.renumber(&keep);
        keep.iter().filter(|keep| !**keep).count()
    }

    /// Books what is still open and hands over the result. Of an analysis that goes on, `clone` tells the result so far.
    pub fn finish(mut self, info: CaptureInfo) -> Diagnosis {
        self.table.forget_index();
        for (index, series) in &mut self.series {
            series.end(&self.table.get(*index).connection);
        }
        self.table.iter_mut().for_each(book_the_rest);
        let finish =
            |(index, series): (u32, Collector)| (index, series.finish(&self.table.get(index).connection));
        let series = self.series.into_iter().map(finish).collect();
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

    /// A million connections have to fit in 1 GiB with everything that hangs on them.
    #[test]
    fn a_record_is_small() {
        assert!(size_of::<Record>() <= 1024, "{}", size_of::<Record>());
    }
}
