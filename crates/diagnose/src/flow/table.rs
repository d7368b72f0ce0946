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

/// Records in one piece of memory; growing by pieces never copies what is there.
const CHUNK: usize = 1024;

/// Connections beyond this many are counted and left out: hostile captures could otherwise take all memory
/// (a scan is one connection a packet). Four times the largest capture in the benchmarks, about 5 GiB.
pub(crate) const MOST: usize = 4_000_000;

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
    /// Packets of connections beyond [`MOST`].
    pub(crate) left_out: u64,
}

impl Table {
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
        if self.count == MOST {
            self.left_out += 1;
            return None;
        }
        Some(self.push(Record { connection: Connection::new(key, time), ledger: Ledger::new(time) }, tag))
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

    /// Keeps the records for which `keep` has true, one entry a record, and numbers them anew.
    pub(crate) fn retain(&mut self, keep: &[bool]) {
        let records = std::mem::take(&mut self.chunks).into_iter().flatten();
        self.index = HashTable::new();
        self.count = 0;
        for (record, _) in records.zip(keep).filter(|(_, keep)| **keep) {
            let key = Key { ends: record.connection.ends, is_udp: record.connection.is_udp };
            let tag = self.tag(&key);
            self.push(record, tag);
        }
    }

    /// A record by number.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Record {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// A record by number, to work on.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Record {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
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
