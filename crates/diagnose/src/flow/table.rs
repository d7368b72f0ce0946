//! From a packet's addresses to its connection, at millions of packets a second.
//!
//! A million connections do not fit in the processor's cache, so finding one costs several cache misses.
//! Packets therefore come in batches: all of a batch's hash buckets are probed first, then the lines of all
//! its connections are asked for, and only then is the first packet worked on.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tcpwhy_wire::{Packet, Socket, Transport, prefetch};

use super::connection::Connection;
use crate::ledger::Ledger;

/// One connection with its ledger.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// What flow knows.
    pub(crate) connection: Connection,
    /// Where its time went.
    pub(crate) ledger: Ledger,
}

impl Record {
    /// Bytes that hang on it.
    pub(crate) fn heap(&self) -> usize {
        self.connection.heap() + self.ledger.heap()
    }
}

/// Records in one piece of memory; growing by pieces never copies what is there.
const CHUNK: usize = 1024;

/// Connections beyond this many are counted and left out: their numbers have 32 bits.
pub(crate) const MOST: u32 = u32::MAX;

/// Who talks to whom, the lower socket first, so that both directions have one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) ends: [Socket; 2],
    pub(crate) is_udp: bool,
}

impl Key {
    /// A packet's key, and which of the two ends sent it.
    #[inline]
    pub(crate) fn of(packet: &Packet) -> (Self, usize) {
        Self::between(packet.source, packet.destination, matches!(packet.transport, Transport::Udp(_)))
    }

    /// The key of what `from` sends to `to`, and which of the two ends `from` is.
    #[inline]
    pub(crate) fn between(from: Socket, to: Socket, is_udp: bool) -> (Self, usize) {
        if from <= to {
            (Self { ends: [from, to], is_udp }, 0)
        } else {
            (Self { ends: [to, from], is_udp }, 1)
        }
    }
}

/// An index entry: 32 bits of the key's hash, and the record's number.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u32,
    index: u32,
}

/// Spreads a tag over 64 bits for the hash table, so that growing it needs no key (2^64 over the golden
/// ratio, as in multiplicative hashing).
#[inline]
fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// All connections of a capture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Seeded at random: a capture must not be able to choose colliding connections.
    hasher: RandomState,
    index: HashTable<Entry>,
    chunks: Vec<Vec<Record>>,
    count: usize,
    /// Connections that have appeared so far.
    appeared: u32,
    /// The number of each record, in their order, once some were forgotten; a record's place is its number before that.
    numbers: Vec<u32>,
    /// Packets of connections beyond [`MOST`].
    pub(crate) left_out: u64,
}

impl Table {
    /// Bytes that a connection takes without what hangs on it: its record, its number, and its entry in a hash table that
    /// is at least 7/16 full, with a byte of control each.
    pub(crate) const BYTES_EACH: usize =
        size_of::<Record>() + size_of::<u32>() + (size_of::<Entry>() + 1) * 16 / 7;

    /// The tag of a key.
    #[inline]
    pub(crate) fn tag(&self, key: &Key) -> u32 {
        (self.hasher.hash_one(key) >> 32) as u32
    }

    /// The record that probably belongs to `tag`: to be verified by [`Table::find`].
    #[inline]
    pub(crate) fn probe(&self, tag: u32) -> Option<u32> {
        self.index.find(spread(tag), |entry| entry.tag == tag).map(|entry| entry.index)
    }

    /// Asks for a record's lines. A `quiet` packet books nothing, so that the ledger can stay where it is.
    #[inline]
    pub(crate) fn ask_for(&self, index: u32, quiet: bool) {
        let Record { connection, ledger } = self.get(index);
        prefetch::lines_of(connection);
        if !quiet {
            prefetch::lines_of(ledger);
        }
    }

    /// Asks for what hangs on a record whose own lines have been asked for: worst cases and latencies.
    #[inline]
    pub(crate) fn probe_further(&self, index: u32) {
        let Record { connection, ledger } = self.get(index);
        ledger.tallies.prefetch();
        connection.exchanges.prefetch();
    }

    /// The record of `key`, starting with the guess that [`Table::probe`] made.
    #[inline]
    pub(crate) fn find(&self, key: &Key, tag: u32, guess: Option<u32>) -> Option<u32> {
        if let Some(index) = guess
            && self.is(index, key)
        {
            return guess;
        }
        let found = self.index.find(spread(tag), |entry| entry.tag == tag && self.is(entry.index, key));
        found.map(|entry| entry.index)
    }

    #[inline]
    fn is(&self, index: u32, key: &Key) -> bool {
        let connection = &self.get(index).connection;
        connection.ends == key.ends && connection.is_udp == key.is_udp
    }

    /// Adds a connection; one that was there under the same key stays in the report and is found no more.
    pub(crate) fn insert(&mut self, key: Key, tag: u32, time: i64) -> Option<u32> {
        if self.appeared == MOST {
            self.left_out += 1;
            return None;
        }
        if self.count < self.appeared as usize {
            self.numbers.push(self.appeared);
        }
        self.appeared += 1;
        Some(self.push(Record { connection: Connection::new(key, time), ledger: Ledger::new(time) }, tag))
    }

    /// The number of a record: how many connections had appeared before it.
    #[inline]
    pub(crate) fn number(&self, index: u32) -> u32 {
        self.numbers.get(index as usize).copied().unwrap_or(index)
    }

    /// Where the connection of that number is, unless it was forgotten or never was.
    pub(crate) fn index(&self, number: u64) -> Option<u32> {
        let number = u32::try_from(number).ok()?;
        let none_is_forgotten = self.count == self.appeared as usize;
        let index = if none_is_forgotten { number } else { self.numbers.binary_search(&number).ok()? as u32 };
        ((index as usize) < self.count).then_some(index)
    }

    /// Bytes that all of it takes, with what hangs on the records: looks at each of them.
    pub(crate) fn bytes(&self) -> usize {
        // The rest of the last chunk has not been written to, and takes no memory yet.
        let records = self.count * size_of::<Record>();
        let numbers = self.numbers.capacity() * size_of::<u32>();
        records + numbers + self.index.allocation_size() + self.iter().map(Record::heap).sum::<usize>()
    }

    /// Appends a record, which is from now on found under its key.
    fn push(&mut self, record: Record, tag: u32) -> u32 {
        let index = self.count as u32;
        let key = Key { ends: record.connection.ends, is_udp: record.connection.is_udp };
        if self.count.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(record);
        }
        self.count += 1;
        let Self { index: table, chunks, .. } = self;
        let same = |entry: &Entry| {
            entry.tag == tag && {
                let old = &chunks[entry.index as usize / CHUNK][entry.index as usize % CHUNK].connection;
                old.ends == key.ends && old.is_udp == key.is_udp
            }
        };
        match table.find_mut(spread(tag), same) {
            Some(entry) => entry.index = index,
            None => {
                table.insert_unique(spread(tag), Entry { tag, index }, |entry| spread(entry.tag));
            }
        }
        index
    }

    /// Keeps the records for which `keep` has true, one entry a record. They move up and keep their numbers.
    pub(crate) fn retain(&mut self, keep: &[bool]) {
        let kept = (0_u32..).zip(keep).filter(|(_, keep)| **keep);
        self.numbers = kept.map(|(index, _)| self.number(index)).collect();
        let records = std::mem::take(&mut self.chunks).into_iter().flatten();
        self.index = HashTable::new();
        self.count = 0;
        for (record, _) in records.zip(keep).filter(|(_, keep)| **keep) {
            let key = Key { ends: record.connection.ends, is_udp: record.connection.is_udp };
            let tag = self.tag(&key);
            self.push(record, tag);
        }
    }

    /// A record by its place.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Record {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// A record by its place, to work on.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Record {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// All records with their numbers, in order of appearance.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u64, &Record)> {
        (0..).zip(self.iter()).map(|(index, record)| (u64::from(self.number(index)), record))
    }

    /// All records in order of appearance.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.chunks.iter().flatten()
    }

    /// All records, to finish them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        self.chunks.iter_mut().flatten()
    }

    /// How many connections.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Drops the index, which nothing needs once all packets are in.
    pub(crate) fn forget_index(&mut self) {
        self.index = HashTable::new();
    }
}
