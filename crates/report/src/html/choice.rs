//! What a page lists of a capture: with a million connections it cannot be all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tcpwhy_diagnose::report::{Capture, Connection, Finding, LedgerMs, Source, WhatIf};

/// Connections that a page lists, of all its captures together: a megabyte, and more than anybody reads.
const CONNECTIONS: usize = 1_000;
/// Findings that it tells in full. Each takes 2 to 3 kB, so this is 5 MB at most.
const FINDINGS: usize = 2_000;
/// The least that each of many captures has of both.
const FEWEST: usize = 20;
/// One in so many of the listed connections is there because it is busy, whatever it lost.
const BUSY_SHARE: usize = 5;
/// Findings about several connections or the capture that a page tells.
pub const ABOUT_ALL: usize = 100;
/// What is left of a sum of times once its parts are taken from it, where it should be nothing. ms.
const ROUNDING: f64 = 1e-6;

/// How much a page lists of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections.
    pub connections: usize,
    /// Findings about them.
    pub findings: usize,
}

impl Limits {
    /// For one of so many captures of a page.
    pub fn one_of(captures: usize) -> Self {
        let part = |all: usize| (all / captures.max(1)).max(FEWEST);
        Self { connections: part(CONNECTIONS), findings: part(FINDINGS) }
    }

    /// The same, or what `room` a page has left if that is less; but never nothing.
    pub fn within(self, room: Self) -> Self {
        Self {
            connections: self.connections.min(room.connections.max(FEWEST)),
            findings: self.findings.min(room.findings.max(FEWEST)),
        }
    }

    /// What is left of this room beside what was `chosen`.
    pub fn beside(self, chosen: &Chosen) -> Self {
        let findings: usize = chosen.listed.values().map(|candidate| candidate.findings).sum();
        Self {
            connections: self.connections.saturating_sub(chosen.listed.len()),
            findings: self.findings.saturating_sub(findings),
        }
    }
}

/// A connection that is listed.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its report.
    pub connection: Connection,
    /// How many findings it has.
    pub findings: usize,
    /// What they cost, ms.
    pub cost_ms: f64,
}

impl Candidate {
    /// Its packets, both ways.
    pub fn packets(&self) -> u64 {
        self.connection.packets.to_server + self.connection.packets.to_client
    }

    /// What its packets are chosen by: those with findings first, by what they cost; then the busiest.
    pub fn worth(&self) -> impl Ord + use<> {
        (self.findings > 0, us(self.cost_ms), self.packets())
    }

    /// What it is listed by.
    fn rank(&self) -> Rank {
        let lost = us(self.connection.ledger_ms.lost());
        (self.findings > 0, us(self.cost_ms), lost, self.packets(), Reverse(self.connection.id))
    }
}

/// Whether it has findings, what they cost and what it lost in µs, its packets; of equals the earlier one.
type Rank = (bool, i64, i64, u64, Reverse<u64>);

fn us(ms: f64) -> i64 {
    (ms * 1e3) as i64
}

/// What a page has of one capture.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// Connections in all.
    pub connections: u64,
    /// Findings in all.
    pub findings: u64,
    /// The ledgers of those that are not listed, added up.
    pub others_ledger_ms: LedgerMs,
    /// Those that are, by number: with findings first by what they cost, then those that lost most; and the busiest.
    pub listed: BTreeMap<u64, Candidate>,
    /// The rules that found something.
    pub rules: BTreeSet<&'static str>,
}

impl Chosen {
    /// Reads all of `source` once, keeping no more than `limits` allow.
    pub fn of(source: &dyn Source, limits: Limits) -> Self {
        let mut chosen = Self::default();
        let busy = (limits.connections / BUSY_SHARE).max(1);
        let mut worst = Best::of(limits.connections);
        let mut busiest = Best::of(busy);
        let mut findings = source.skim().peekable();
        while let Some(finding) = findings.next_if(|finding| finding.connection.is_none()) {
            chosen.count(&finding);
        }
        for connection in source.connections() {
            let mut candidate = Candidate { connection, findings: 0, cost_ms: 0.0 };
            let id = Some(candidate.connection.id);
            while let Some(finding) = findings.next_if(|finding| finding.connection == id) {
                chosen.count(&finding);
                candidate.findings += 1;
                candidate.cost_ms += finding.cost_ms.0;
            }
            chosen.connections += 1;
            worst.offer(candidate.rank(), &candidate);
            busiest.offer((candidate.packets(), Reverse(candidate.connection.id)), &candidate);
        }
        // What is left are findings about nothing that is there; of sources of ours there are none.
        findings.for_each(|finding| chosen.count(&finding));
        chosen.list(worst, busiest, limits);
        chosen.others_ledger_ms = chosen.others(&source.capture());
        chosen
    }

    fn count(&mut self, finding: &Finding) {
        self.findings += 1;
        self.rules.insert(finding.rule);
    }

    /// The worst and the busiest; where some are both, more of the worst; until their findings are too many.
    fn list(&mut self, worst: Best<Rank>, busiest: Best<(u64, Reverse<u64>)>, limits: Limits) {
        let mut left = limits.findings;
        let places = limits.connections.saturating_sub(busiest.1);
        let mut worst = worst.0.into_values().rev();
        let first: Vec<Candidate> = worst.by_ref().take(places).collect();
        for candidate in first.into_iter().chain(busiest.0.into_values().rev()).chain(worst) {
            let id = candidate.connection.id;
            if self.listed.len() == limits.connections {
                break;
            }
            if candidate.findings > left || self.listed.contains_key(&id) {
                continue;
            }
            left -= candidate.findings;
            self.listed.insert(id, candidate);
        }
    }

    fn others(&self, capture: &Capture) -> LedgerMs {
        let mut others = capture.ledger_ms;
        for candidate in self.listed.values() {
            for (left, listed) in others.0.iter_mut().zip(candidate.connection.ledger_ms.0) {
                *left -= listed;
            }
        }
        others.0.iter_mut().filter(|left| **left < ROUNDING).for_each(|left| *left = 0.0);
        others
    }
}

/// The best of many, and how many are kept.
struct Best<K>(BTreeMap<K, Candidate>, usize);

impl<K: Ord> Best<K> {
    fn of(most: usize) -> Self {
        Self(BTreeMap::new(), most)
    }

    fn offer(&mut self, key: K, candidate: &Candidate) {
        if self.0.len() >= self.1 {
            match self.0.first_key_value() {
                Some((least, _)) if *least < key => drop(self.0.pop_first()),
                _ => return,
            }
        }
        self.0.insert(key, candidate.clone());
    }
}

/// A capture's report with only the connections that a page lists, and their findings.
pub struct Listed<'a> {
    source: &'a dyn Source,
    chosen: &'a Chosen,
}

impl<'a> Listed<'a> {
    /// `source` as far as it was `chosen` of it.
    pub fn of(source: &'a dyn Source, chosen: &'a Chosen) -> Self {
        Self { source, chosen }
    }
}

impl Source for Listed<'_> {
    fn capture(&self) -> Capture {
        self.source.capture()
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        Box::new(self.chosen.listed.values().map(|candidate| candidate.connection.clone()))
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        let about_all = self.source.findings().take_while(|finding| finding.connection.is_none());
        let with_any = self.chosen.listed.values().filter(|candidate| candidate.findings > 0);
        let of_listed = with_any.flat_map(|candidate| self.source.findings_of(candidate.connection.id));
        Box::new(about_all.take(ABOUT_ALL).chain(of_listed))
    }

    fn what_if(&self, finding: &Finding) -> Option<WhatIf> {
        self.source.what_if(finding)
    }
}
