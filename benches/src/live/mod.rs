//! How many packets a second `tcpwhy live` takes without dropping any, beside tcpdump.

mod frames;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anstream::println;
use anyhow::{Context, Result, bail, ensure};
use nix::sched::{CloneFlags, unshare};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use tcpwhy_host::ring::{Ring, Wanted};

use frames::Frames;

/// Packets a second that are tried.
const RATES: [u32; 5] = [100_000, 250_000, 500_000, 750_000, 1_000_000];
/// How long each rate is held.
const HELD: Duration = Duration::from_secs(4);
/// Packets between two looks at the clock while sending.
const TOGETHER: u32 = 32;
/// Bytes kept of each packet: what `tcpwhy live` keeps.
const SNAPLEN: &str = "256";
/// The processor that sends, and the one that captures.
const SENDER: usize = 0;
const CAPTOR: usize = 1;

/// What somebody saw of a run.
struct Seen {
    packets: u64,
    dropped: u64,
}

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
        "Packets of small TCP messages over a veth pair, for {} s each (goal: 500,000/s)\n",
        HELD.as_secs()
    );
    println!("{:>10} {:>10}  {:22} {:>10} {:>9}", "asked/s", "sent/s", "captured by", "seen", "dropped");
    for rate in RATES {
        run(rate, "tcpwhy live", || start_tcpwhy(tcpwhy), seen_by_tcpwhy)?;
        if Command::new("tcpdump").arg("--version").output().is_ok() {
            run(rate, "tcpdump -w /dev/null", start_tcpdump, seen_by_tcpdump)?;
        }
    }
    Ok(())
}

fn run(
    rate: u32,
    name: &str,
    start: impl FnOnce() -> Result<Child>,
    seen: impl FnOnce(Child) -> Result<Seen>,
) -> Result<()> {
    let child = start()?;
    let (sent, took) = pinned(SENDER, || send(rate))?;
    thread::sleep(Duration::from_millis(500));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT)?;
    let Seen { packets, dropped } = seen(child)?;
    let per_second = sent as f64 / took.as_secs_f64();
    let share = 100.0 * dropped as f64 / sent as f64;
    println!("{rate:>10} {per_second:>10.0}  {name:22} {packets:>10} {dropped:>9} ({share:.2} %)");
    Ok(())
}

/// Sends at that rate, or as fast as it goes; how many, in what time.
fn send(rate: u32) -> Result<(u64, Duration)> {
    let ring = Ring::open("far", 64, Wanted::Arriving)?;
    let mut frames = Frames::new();
    let start = Instant::now();
    let mut sent = 0;
    while start.elapsed() < HELD {
        for _ in 0..TOGETHER {
            match ring.send(frames.next()) {
                Ok(()) => sent += 1,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        let due = Duration::from_secs_f64(sent as f64 / f64::from(rate));
        while start.elapsed() < due {
            std::hint::spin_loop();
        }
    }
    Ok((sent, start.elapsed()))
}

/// Does `work` on one processor; what is started meanwhile, too.
fn pinned<T>(processor: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = rustix::thread::sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    one.set(processor);
    sched_setaffinity(None, &one).context("two processors are needed")?;
    let result = work();
    sched_setaffinity(None, &before)?;
    result
}

/// Starts a program that says on standard error when it listens.
fn start(command: &mut Command) -> Result<Child> {
    let mut child = pinned(CAPTOR, || Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?))?;
    let mut said = BufReader::with_capacity(1, child.stderr.take().context("standard error")?);
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        if said.read_line(&mut line)? == 0 {
            bail!("{command:?} does not listen");
        }
    }
    child.stderr = Some(said.into_inner());
    Ok(child)
}

fn start_tcpwhy(tcpwhy: &Path) -> Result<Child> {
    start(Command::new(tcpwhy).args(["live", "-i", "near", "--snaplen", SNAPLEN, "--format", "json"]))
}

fn seen_by_tcpwhy(child: Child) -> Result<Seen> {
    let report: Value = serde_json::from_slice(&child.wait_with_output()?.stdout)?;
    let capture = &report["captures"][0];
    let packets = capture["packets"].as_u64().context("packets")?;
    let notes = capture["notes"].as_array().context("notes")?;
    let drops = notes
        .iter()
        .filter_map(Value::as_str)
        .find_map(|note| note.strip_prefix("The kernel dropped ")?.split(' ').next()?.parse().ok());
    Ok(Seen { packets, dropped: drops.unwrap_or(0) })
}

fn start_tcpdump() -> Result<Child> {
    start(Command::new("tcpdump").args(["-n", "-i", "near", "-s", SNAPLEN, "-w", "/dev/null"]))
}

fn seen_by_tcpdump(mut child: Child) -> Result<Seen> {
    let mut said = String::new();
    child.stderr.take().context("standard error")?.read_to_string(&mut said)?;
    child.wait()?;
    let number = |of: &str| {
        let line = said.lines().find(|line| line.contains(of)).with_context(|| format!("{of}: {said}"))?;
        line.split(' ').next().and_then(|number| number.parse().ok()).with_context(|| line.to_owned())
    };
    Ok(Seen { packets: number("captured")?, dropped: number("dropped by kernel")? })
}
