//! The quick forms of the experiments about windows, queues and repairs, on this machine's kernel.

use std::io::Write;

use clap::{Args, Command};
use tcpwhy_lab::experiments::{Outcome, bloat, idle, recovery};
use tcpwhy_lab::lab::{Lab, Progress};

struct Silent;

impl Progress for Silent {
    fn runs(&self, _all: u64) {}
    fn run(&self, _what: &str) {}
    fn voided(&self, _what: &str) {}
}

/// Whether this machine lets us make namespaces and devices; says so where it does not.
fn able() -> bool {
    let able = rustix::process::geteuid().is_root() && std::path::Path::new("/dev/net/tun").exists();
    if !able {
        let _ = writeln!(std::io::stderr(), "SKIPPED: this test wants root and /dev/net/tun");
    }
    able
}

/// The options as a user has them who gives these words.
fn options<T: Args>(words: &[&str]) -> T {
    let command = T::augment_args(Command::new("test").no_binary_name(true));
    T::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

fn lab() -> Lab<'static> {
    Lab { quick: true, seed: 1, keep: None, progress: &Silent }
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
    let outcome = idle::run(&lab(), &options(&[])).unwrap();
    assert_eq!(column(&outcome, "restart"), ["yes", "no"]);
    let times = column(&outcome, "after 1.00 s of silence");
    assert!(ms(times[0]) - ms(times[1]) > 100.0, "{times:?}");
    let new = &outcome.tables[1].rows;
    assert!(ms(&new[0][1]) - ms(&new[1][1]) > 100.0, "{new:?}");
}

#[test]
fn a_queue_makes_the_round_trip_long_and_a_small_window_does_not_fill_it() {
    if !able() {
        return;
    }
    let outcome = bloat::run(&lab(), &options(&[])).unwrap();
    let (idle, loaded) = (column(&outcome, "idle ping"), column(&outcome, "loaded ping"));
    // A packet of 1,500 bytes alone takes 12 ms at 1 Mbit/s: some of them are a queue.
    assert!(ms(loaded[0]) > 5.0 * ms(idle[0]), "{idle:?} {loaded:?}");
    assert!(ms(loaded[1]) < ms(loaded[0]) / 2.0, "{loaded:?}");
}

#[test]
fn recovery_is_longer_where_the_acks_of_repairs_are_held() {
    if !able() {
        return;
    }
    let outcome = recovery::run(&lab(), &options(&[])).unwrap();
    let (all, recovery) = (column(&outcome, "in all"), column(&outcome, "recovery"));
    // More than ten repairs, each held 200 ms.
    assert!(ms(recovery[1]) > ms(recovery[0]) + 1_000.0, "{recovery:?}");
    assert!(ms(all[1]) > ms(all[0]) + 1_000.0, "{all:?}");
    // This kernel's receiver, in both runs: its ACKs of repairs leave long before a delayed ACK would (40 ms).
    assert!(column(&outcome, "ACK of a repair").iter().all(|cell| ms(cell) < 20.0));
}
