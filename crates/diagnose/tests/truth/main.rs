//! Thousands of random simulated connections, whose simulator knows at each instant what they wait for: the analyser,
//! which sees the packets that pass one end, must book the same.
//!
//! `TRUTH_WRITES=1` records the calls of the program at the capture's end, too. `TRUTH_CONNECTIONS=100000` takes more of them, and `TRUTH_FIRST=…` others. `TRUTH_WATCH=nagle/cwnd` names those that
//! most time of the first line was booked on the second of.

#![expect(clippy::print_stdout, reason = "the figures are for people")]

mod captures;
mod floors;
mod kept;
mod one;
mod score;
mod setups;

use std::collections::BTreeMap;
use std::slice;

use score::Score;
use tcpwhy_diagnose::ledger::Booking;
use tcpwhy_diagnose::{Analyzer, CaptureInfo, Diagnosis};
use tcpwhy_simulate::truth::{Span, Truth};
use tcpwhy_simulate::world::{CLIENT, SERVER, Setup, Side, World, Written, packet};
use tcpwhy_wire::calls::Write;
use tcpwhy_wire::{Address, Packet, Socket};

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

    /// What a recording of the calls at `side` would have.
    fn writes(&self, side: Side) -> Vec<Write> {
        let log = &self.world.log(side).writes;
        let ends = if side == Side::Client { [CLIENT, SERVER] } else { [SERVER, CLIENT] };
        let [from, to] = ends.map(|(ip, port)| Socket { address: Address::v4(ip), port });
        let starts = std::iter::once(0).chain(log.iter().map(|written| written.end));
        let of = |(written, start): (&Written, u64)| {
            let &Written { begun, done, end, more: is_corked } = written;
            Write { from, to, at: begun.cast_signed(), done: done.cast_signed(), start, end, is_corked }
        };
        log.iter().zip(starts).map(of).collect()
    }

    /// What a capture made there shows.
    fn packets(&self, vantage: Side) -> Vec<Packet> {
        (1..).zip(self.world.seen(vantage)).map(|(number, seen)| packet(number, seen)).collect()
    }

    /// What the analyser books of a capture made there; with what the program there wrote, or from packets alone.
    fn booked(&self, vantage: Side, is_recorded: bool) -> Vec<Booking> {
        let writes = if is_recorded { self.writes(vantage) } else { Vec::new() };
        booked(&analyzed(&self.packets(vantage), &writes))
    }
}

/// What the analyser makes of these packets of one connection, and of what the program at the capture's end wrote.
fn analyzed(packets: &[Packet], writes: &[Write]) -> Diagnosis {
    let mut analyzer = Analyzer::recording([0]);
    let mut writes = writes.iter().peekable();
    for packet in packets {
        while let Some(write) = writes.next_if(|write| write.at <= packet.time) {
            analyzer.push_write(write);
        }
        analyzer.push(slice::from_ref(packet));
    }
    analyzer.finish(CaptureInfo::default())
}

/// What it books of the connection.
fn booked(diagnosis: &Diagnosis) -> Vec<Booking> {
    diagnosis.bookings(0).unwrap_or_default().intervals
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|number| number.parse().ok())
}

/// The score of many connections.
#[derive(Default)]
struct Tally {
    /// The calls of the program at the capture's end are recorded.
    is_recorded: bool,
    all: Score,
    kinds: BTreeMap<&'static str, Score>,
    worst: Worst,
}

impl Tally {
    fn add(&mut self, number: u64, watched: Option<(&str, &str)>) {
        let (kind, setup) = setups::setup(number);
        let run = Run::of(&setup);
        for side in [Side::Client, Side::Server] {
            let mut score = Score::default();
            score.add(&run.truth(side), &run.booked(side, self.is_recorded));
            self.all.merge(&score);
            self.kinds.entry(kind).or_default().merge(&score);
            let wrong = watched.map_or_else(|| score.wrong(), |(line, booked)| score.confused(line, booked));
            self.worst.add(wrong, number, side);
        }
    }

    fn print(&mut self) {
        println!("{}", self.all);
        for (kind, score) in &self.kinds {
            println!("{kind:<14} {:.1} %, wrong {} ms", score.overall(), score.wrong() / 1_000_000);
        }
        self.worst.print();
    }
}

/// Time booked wrongly, ns; and of which connection.
#[derive(Default)]
struct Worst(Vec<(u64, u64, Side)>);

impl Worst {
    fn add(&mut self, wrong: u64, number: u64, side: Side) {
        self.0.push((wrong, number, side));
    }

    fn print(&mut self) {
        self.0.sort_by_key(|case| std::cmp::Reverse(case.0));
        for (wrong, number, side) in self.0.iter().take(NAMED) {
            println!("{} ms wrong: connection {number} at the {side:?}", wrong / 1_000_000);
        }
    }
}

#[test]
fn the_analysis_agrees_with_the_simulator() {
    let (asked, first) = (number_from("TRUTH_CONNECTIONS"), number_from("TRUTH_FIRST"));
    let watch = std::env::var("TRUTH_WATCH").unwrap_or_default();
    let mut tally = Tally { is_recorded: std::env::var_os("TRUTH_WRITES").is_some(), ..Tally::default() };
    let first = first.unwrap_or(0);
    for number in first..first + asked.unwrap_or(CONNECTIONS) {
        tally.add(number, watch.split_once('/'));
    }
    tally.print();
    if asked.is_none() {
        let worse = tally.all.worse_than(&floors::WHOLE);
        assert!(worse.is_empty(), "less agreement than recorded in floors.rs:\n  {}", worse.join("\n  "));
    }
}

/// What is known when the program at the capture's end wrote is not booked on it while TCP held what it had written, nor
/// the other way round.
#[test]
fn recorded_writes_tell_the_program_from_what_held_its_data() {
    let mut mistaken = [0, 0];
    let mut whole = 0;
    for number in 0..CONNECTIONS {
        let run = Run::of(&setups::setup(number).1);
        for (side, own) in [(Side::Client, "client-app"), (Side::Server, "server-app")] {
            let truth = run.truth(side);
            whole += truth.iter().map(|span| span.until - span.from).sum::<u64>();
            for is_recorded in [false, true] {
                let mut score = Score::default();
                score.add(&truth, &run.booked(side, is_recorded));
                let held = ["nagle", "delayed-ack", "cwnd", "rwnd"];
                let swapped = held.map(|held| score.confused(own, held) + score.confused(held, own));
                mistaken[usize::from(is_recorded)] += swapped.iter().sum::<u64>();
            }
        }
    }
    let [without, with] = mistaken.map(|ns| ns as f64 * 100.0 / whole as f64);
    println!(
        "a program and what held its data are taken for each other {without:.2} % of the time, {with:.2} % with its calls"
    );
    assert!(with < 0.15 && with < without / 3.0);
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
