//! The quick forms of the experiments about windows, queues and repairs, on this machine's kernel.

mod attempts;
mod rights;

use attempts::one_succeeds;
use clap::{Args, Command};
use rights::able;
use tcpwhy_lab::experiments::{Outcome, bloat, idle, recovery};
use tcpwhy_lab::lab::{Lab, Progress};

struct Silent;

impl Progress for Silent {
    fn runs(&self, _all: u64) {}
    fn run(&self, _what: &str) {}
    fn voided(&self, _what: &str) {}
}

/// The options as a user has them who gives these words.
fn options<T: Args>(words: &[&str]) -> T {
    let command = T::augment_args(Command::new("test").no_binary_name(true));
    T::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

fn lab() -> Lab<'static> {
    Lab { quick: true, seed: 1, keep: None, progress: &Silent }
}

/// What came out; that this machine was too busy is a reason to try again.
fn of(ran: anyhow::Result<Outcome>) -> Result<Outcome, String> {
    ran.map_err(|error| format!("{error:#}"))
}

/// The cells of the first table under `column`.
fn column<'a>(outcome: &'a Outcome, column: &str) -> Vec<&'a str> {
    let table = &outcome.tables[0];
    let index = table.columns.iter().position(|name| name == column).unwrap();
    table.rows.iter().map(|row| row[index].as_str()).collect()
}

/// A time as tables have it, in ms.
fn ms(cell: &str) -> f64 {
    let (number, unit) = cell.split_once(' ').unwrap();
    let scale =
        [("µs", 1e-3), ("ms", 1.0), ("s", 1e3)].into_iter().find(|(name, _)| *name == unit).unwrap().1;
    number.parse::<f64>().unwrap() * scale
}

#[test]
fn a_burst_after_silence_is_a_round_trip_slower_with_the_restart() {
    if !able() {
        return;
    }
    one_succeeds(|| {
        let outcome = of(idle::run(&lab(), &options(&[])))?;
        assert_eq!(column(&outcome, "restart"), ["yes", "no"]);
        let times = column(&outcome, "after 1.00 s of silence");
        let new = &outcome.tables[1].rows;
        let slower = [(times[0], times[1]), (&new[0][1], &new[1][1])];
        let holds = slower.iter().all(|(with, without)| ms(with) - ms(without) > 100.0);
        if holds { Ok(()) } else { Err(format!("{slower:?}")) }
    });
}

#[test]
fn a_queue_makes_the_round_trip_long_and_a_small_window_does_not_fill_it() {
    if !able() {
        return;
    }
    one_succeeds(|| {
        let outcome = of(bloat::run(&lab(), &options(&[])))?;
        let (idle, loaded) = (column(&outcome, "idle ping"), column(&outcome, "loaded ping"));
        // A packet of 1,500 bytes alone takes 12 ms at 1 Mbit/s: some of them are a queue.
        let holds = ms(loaded[0]) > 5.0 * ms(idle[0]) && ms(loaded[1]) < ms(loaded[0]) / 2.0;
        if holds { Ok(()) } else { Err(format!("{idle:?} {loaded:?}")) }
    });
}

#[test]
fn recovery_is_longer_where_the_acks_of_repairs_are_held() {
    if !able() {
        return;
    }
    one_succeeds(|| {
        let outcome = of(recovery::run(&lab(), &options(&[])))?;
        let (all, recovery) = (column(&outcome, "in all"), column(&outcome, "recovery"));
        // More than ten repairs, each held 200 ms.
        let longer = [&all, &recovery].iter().all(|times| ms(times[1]) > ms(times[0]) + 1_000.0);
        // This kernel's receiver, in both runs: its ACKs of repairs leave long before a delayed ACK would (40 ms).
        let acks = column(&outcome, "ACK of a repair");
        let holds = longer && acks.iter().all(|cell| ms(cell) < 20.0);
        if holds { Ok(()) } else { Err(format!("{all:?} {recovery:?} {acks:?}")) }
    });
}
