//! How many packets a second `tcpwhy live` takes without dropping any, beside tcpdump and dumpcap.

mod captors;
mod frames;
mod sender;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anstream::println;
use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, unshare};
use rustix::thread::{CpuSet, sched_setaffinity};

use captors::{Captor, Seen};
use sender::{Sent, send};

/// Packets a second that are tried; the last is more than goes through.
const RATES: [u32; 4] = [250_000, 500_000, 750_000, 2_000_000];
/// How long each rate is held.
const HELD: Duration = Duration::from_secs(4);
/// The processor that sends, and the one that captures.
const SENDER: usize = 0;
const CAPTOR: usize = 1;
/// The veth pair: what enters `FAR` is captured on `NEAR`.
const NEAR: &str = "near";
const FAR: &str = "far";

/// Prints a table: one sender, one captor, each on a processor of its own, joined by a veth pair in a network
/// namespace of its own.
pub fn bench(tcpwhy: &Path) -> Result<()> {
    if unshare(CloneFlags::CLONE_NEWNET).is_err() {
        println!("live capture: left out, only root may make a network namespace");
        return Ok(());
    }
    for args in ["link add near type veth peer name far", "link set near up", "link set far up"] {
        let status = Command::new("ip").args(args.split(' ')).status().context("the ip command")?;
        ensure!(status.success(), "ip {args}");
    }
    println!(
        "Packets of small TCP messages over a veth pair, for {} s each (goal: 500,000/s). The CPU is that of the process \
         that captures, in % of one core; in brackets that of tcpwhy's capture thread.\n",
        HELD.as_secs()
    );
    println!(
        "{:>9}  {:12} {:>9} {:>9} {:>16} {:>10}",
        "asked/s", "captured by", "sent/s", "seen/s", "dropped", "CPU"
    );
    let captors = captors::all(tcpwhy);
    for rate in RATES {
        println!(
            "{rate:>9}  {:12} {:>9.0}",
            "nobody",
            pinned(SENDER, || send(FAR, rate, HELD))?.per_second()
        );
        let mut rows = Vec::new();
        for captor in &captors {
            rows.push(row(rate, captor)?);
        }
        compared(&captors, &rows);
    }
    Ok(())
}

/// What a captor got through.
struct Row {
    seen_per_second: f64,
    /// Seconds of processor time for a packet.
    cost: f64,
}

fn row(rate: u32, captor: &Captor) -> Result<Row> {
    let running = pinned(CAPTOR, || captor.start())?;
    let sent = pinned(SENDER, || send(FAR, rate, HELD))?;
    let Seen { packets, dropped, cpu, capture_thread } = running.end()?;
    let Sent { packets: all, took } = sent;
    let share = |time: Duration| 100.0 * time.as_secs_f64() / took.as_secs_f64();
    let thread = capture_thread.map_or_else(String::new, |time| format!(" ({:.0})", share(time)));
    let seen_per_second = packets as f64 / took.as_secs_f64();
    println!(
        "{rate:>9}  {:12} {:>9.0} {seen_per_second:>9.0} {dropped:>7} ({:>4.1} %) {:>10}",
        captor.name,
        sent.per_second(),
        100.0 * dropped as f64 / all as f64,
        format!("{:.0}{thread}", share(cpu)),
    );
    Ok(Row { seen_per_second, cost: cpu.as_secs_f64() / packets.max(1) as f64 })
}

/// The first captor beside the others.
fn compared(captors: &[Captor], rows: &[Row]) {
    let Some((own, others)) = rows.split_first() else { return };
    for (captor, other) in captors[1..].iter().zip(others) {
        println!(
            "{:>9}  tcpwhy beside {}: {:.2} × the packets/s, {:.2} × the processor time a packet",
            "",
            captor.name,
            own.seen_per_second / other.seen_per_second,
            own.cost / other.cost
        );
    }
}

/// Does `work` on one processor; what is started meanwhile stays there.
fn pinned<T>(processor: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = rustix::thread::sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    one.set(processor);
    sched_setaffinity(None, &one).context("two processors are needed")?;
    let result = work();
    sched_setaffinity(None, &before)?;
    result
}
