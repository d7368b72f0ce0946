//! How exact the lab's link is, and how fast; beside VDE's wirefilter where that is installed.

mod ping;
mod stream;
mod wirefilter;

use std::time::{Duration, Instant};

use anstream::println;
use anyhow::Result;
use tcpwhy_lab::place::{Path, Place, Wire};
use tcpwhy_lab::recording::{Recording, Setup, record_once};
use tcpwhy_simulate::link::Ends;

/// Round trips that the figures are to be reached at.
const ROUND_TRIPS: [Duration; 2] = [Duration::from_millis(22), Duration::from_millis(100)];
/// Runs in which nothing happens, to see what a run costs.
const EMPTY_RUNS: u32 = 20;

/// Prints all figures. No run is left out, however late it was.
pub fn bench() -> Result<()> {
    println!("Round-trip error of small packets, in µs (goal: 99th percentile below 100)\n");
    println!("{}", ping::heading());
    println!("{}", ping::row("no link: loopback", &Path::Loopback { mtu: 65_536 }, Duration::ZERO)?);
    println!("{}", ping::row("link without delay", &link(Duration::ZERO, false), Duration::ZERO)?);
    for round_trip in ROUND_TRIPS {
        let name = format!("link of {} ms", round_trip.as_millis());
        println!("{}", ping::row(&name, &link(round_trip, false), round_trip)?);
        if wirefilter::is_installed() {
            let other = run(&link(Duration::ZERO, false), |place| wirefilter::pings(place, round_trip))?;
            let name = format!("wirefilter of {} ms", round_trip.as_millis());
            println!("{}", ping::errors(&name, &other.value, round_trip));
        }
    }
    println!("\nOne TCP connection, in Gbit/s of data (goal: 1)\n");
    for round_trip in [Duration::ZERO, Duration::from_millis(1)] {
        for offload in [false, true] {
            let cut = if offload { "offload" } else { "no offload" };
            let name = format!("link of {} ms, {cut}", round_trip.as_millis());
            println!("{}", stream::row(&name, &link(round_trip, offload))?);
        }
    }
    println!("\nSet-up and tear-down of a run: {:.1} ms", empty_run()?);
    Ok(())
}

/// ms that a run takes in which nothing happens.
fn empty_run() -> Result<f64> {
    let start = Instant::now();
    for _ in 0..EMPTY_RUNS {
        run(&link(Duration::ZERO, false), |_| Ok(()))?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e3 / f64::from(EMPTY_RUNS))
}

fn link(round_trip: Duration, offload: bool) -> Path {
    Path::Link(Wire { offload, ..Wire::new(Ends::round_trip(round_trip)) })
}

fn run<T>(path: &Path, work: impl FnOnce(&Place) -> Result<T>) -> Result<Recording<T>> {
    let setup = Setup { path: path.clone(), seed: 1, snaplen: 64, middle: false };
    Ok(record_once(&setup, work)?.0)
}
