//! Thousands of random simulated connections, whose simulator knows at each instant what they wait for: the analyser,
//! which sees the packets that pass one end, must book the same.
//!
//! `TRUTH_CONNECTIONS=100000` takes more of them, and `TRUTH_FIRST=…` others. `TRUTH_WATCH=nagle/cwnd` names those that
//! most time of the first line was booked on the second of.

#![expect(clippy::print_stdout, reason = "the figures are for people")]

mod floors;
mod one;
mod score;
mod setups;

use std::collections::BTreeMap;

use score::Score;
use tcpwhy_diagnose::ledger::Booking;
use tcpwhy_diagnose::{Analyzer, CaptureInfo};
use tcpwhy_simulate::truth::{Span, Truth};
use tcpwhy_simulate::world::{Setup, Side, World, packet};

/// Connections in a test of all; more where they are asked for.
const CONNECTIONS: u64 = 4_000;
/// They are given up after so long, ns.
const TIME_UP: u64 = 30_000_000_000;
/// The worst ones that are named.
const NAMED: usize = 12;

/// A run and what a capture of it should show.
struct Run {
    world: World,
    truth: Truth,
}

impl Run {
    fn of(setup: &Setup) -> Self {
        let mut world = World::new(setup);
        let mut truth = Truth::new(&setup.ends);
        world.run_with(TIME_UP, |world| truth.observe(world));
        Self { world, truth }
    }

    fn truth(&self, vantage: Side) -> Vec<Span> {
        self.truth.at(vantage, &self.world)
    }

    /// What the analyser books of a capture made there.
    fn booked(&self, vantage: Side) -> Vec<Booking> {
        let packets: Vec<_> =
            (1..).zip(self.world.seen(vantage)).map(|(number, seen)| packet(number, seen)).collect();
        let mut analyzer = Analyzer::recording([0]);
        analyzer.push(&packets);
        let diagnosis = analyzer.finish(CaptureInfo::default());
        diagnosis.bookings(0).unwrap_or_default().intervals
    }
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|number| number.parse().ok())
}

/// The score of many connections.
#[derive(Default)]
struct Tally {
    all: Score,
    kinds: BTreeMap<&'static str, Score>,
    /// Time booked wrongly, ns; and of which connection.
    worst: Vec<(u64, u64, Side)>,
}

impl Tally {
    fn add(&mut self, number: u64, watched: Option<(&str, &str)>) {
        let (kind, setup) = setups::setup(number);
        let run = Run::of(&setup);
        for side in [Side::Client, Side::Server] {
            let mut score = Score::default();
            score.add(&run.truth(side), &run.booked(side));
            self.all.merge(&score);
            self.kinds.entry(kind).or_default().merge(&score);
            let wrong = watched.map_or_else(|| score.wrong(), |(line, booked)| score.confused(line, booked));
            self.worst.push((wrong, number, side));
        }
    }

    fn print(&mut self) {
        println!("{}", self.all);
        for (kind, score) in &self.kinds {
            println!("{kind:<14} {:.1} %, wrong {} ms", score.overall(), score.wrong() / 1_000_000);
        }
        self.worst.sort_by_key(|case| std::cmp::Reverse(case.0));
        for (wrong, number, side) in self.worst.iter().take(NAMED) {
            println!("{} ms wrong: connection {number} at the {side:?}", wrong / 1_000_000);
        }
    }
}

#[test]
fn the_analysis_agrees_with_the_simulator() {
    let (asked, first) = (number_from("TRUTH_CONNECTIONS"), number_from("TRUTH_FIRST"));
    let watch = std::env::var("TRUTH_WATCH").unwrap_or_default();
    let mut tally = Tally::default();
    let first = first.unwrap_or(0);
    for number in first..first + asked.unwrap_or(CONNECTIONS) {
        tally.add(number, watch.split_once('/'));
    }
    tally.print();
    if asked.is_none() {
        let worse = tally.all.worse_than_recorded();
        assert!(worse.is_empty(), "less agreement than recorded in floors.rs:\n  {}", worse.join("\n  "));
    }
}

/// Every instant of a capture has a line, from its first packet to its last, one after the other.
#[test]
fn the_truth_has_no_gaps() {
    for number in 0..200 {
        let run = Run::of(&setups::setup(number).1);
        for side in [Side::Client, Side::Server] {
            let (seen, spans) = (run.world.seen(side), run.truth(side));
            let Some((first, last)) =
                seen.first().zip(seen.last()).filter(|(first, last)| first.time < last.time)
            else {
                continue;
            };
            let ends = spans.first().zip(spans.last()).map(|(from, until)| (from.from, until.until));
            assert_eq!(ends, Some((first.time, last.time)), "{number} {side:?}");
            assert!(spans.windows(2).all(|pair| pair[0].until == pair[1].from), "{number} {side:?}");
        }
    }
}
