//! What it costs to have a call recorded: `tcpwhy run`'s recorder beside nothing, and beside strace.

use std::hint::black_box;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Instant;

use anstream::println;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tcpwhy_host::calls::Recorder;

/// Calls of a run; those of one under strace, which takes a hundred times as long.
const CALLS: u32 = 20_000;
const STRACED: u32 = 2_000;
/// Runs of each kind, one kind after the other in turn. The best counts: whatever else the machine does only adds. Many short
/// ones, so that some fall between what else it does.
const RUNS: usize = 40;
/// Functions below the one that calls: a recorded stack has that many frames more.
const DEPTH: u32 = 10;

/// What is aimed at: ns that a call may take longer, without stacks and with, and how many times longer strace makes it.
const GOAL: f64 = 250.0;
const GOAL_WITH_STACKS: f64 = 1_000.0;
const GOAL_OF_STRACE: f64 = 50.0;

/// What two looks at the clock take at least: nobody adds less.
const CLOCK: f64 = 20.0;

/// What the measured program does, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deed {
    /// `recv` where nothing is there: hardly any work of the kernel's.
    Recv,
    /// `send` of nothing.
    Send,
    /// A byte there and back between two threads on one processor: four calls. On two, waking the other takes far longer
    /// than all that is measured here, and never the same.
    PingPong,
}

/// Who watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    Nobody,
    Recorder,
    RecorderWithStacks,
    Strace,
}

const WATCHES: [Watch; 4] = [Watch::Nobody, Watch::Recorder, Watch::RecorderWithStacks, Watch::Strace];

/// Prints what a call takes, and how much of that is the recorder's or strace's.
pub fn bench() -> Result<()> {
    println!("\nns a call, best of {RUNS} runs; in brackets what it takes longer than bare\n");
    println!(
        "{:28} {:>8} {:>18} {:>18} {:>22}",
        "", "bare", "recorded", "with stacks", "strace -f -e network"
    );
    for (deed, name) in [
        (Deed::Recv, "recv of nothing"),
        (Deed::Send, "send of nothing"),
        (Deed::PingPong, "ping-pong of one byte"),
    ] {
        let [bare, recorded, stacks, strace] = best(deed)?;
        let more = |ns: Option<f64>| match ns.zip(bare) {
            Some((ns, bare)) => format!("{ns:.0} ({:+.0})", ns - bare),
            None => "not there".to_owned(),
        };
        let bare_text = bare.map_or_else(String::new, |ns| format!("{ns:.0}"));
        println!("{name:28} {bare_text:>8} {:>18} {:>18} {:>22}", more(recorded), more(stacks), more(strace));
        if let [Some(bare), Some(recorded), Some(stacks)] = [bare, recorded, stacks] {
            println!(
                "  {}",
                goal("without stacks", recorded - bare, GOAL, strace.map(|strace| strace - bare))
            );
            println!(
                "  {}",
                goal("with", stacks - bare, GOAL_WITH_STACKS, strace.map(|strace| strace - bare))
            );
        }
    }
    Ok(())
}

/// `added` ns beside what may be added at most, and beside what strace adds.
fn goal(what: &str, added: f64, most: f64, strace: Option<f64>) -> String {
    let reached = |reached| if reached { "reached" } else { "missed" };
    let against = match strace {
        None => String::new(),
        Some(_) if added < CLOCK => "; too little to be compared with strace".to_owned(),
        Some(strace) => {
            let ratio = strace / added;
            format!(
                "; strace adds {ratio:.0} times as much ({GOAL_OF_STRACE:.0}: {})",
                reached(ratio >= GOAL_OF_STRACE)
            )
        }
    };
    format!("{what}: {most:.0} ns {}{against}", reached(added <= most))
}

/// The best of all runs of each kind.
fn best(deed: Deed) -> Result<[Option<f64>; 4]> {
    let mut best = [None::<f64>; 4];
    for _ in 0..RUNS {
        for (best, watch) in best.iter_mut().zip(WATCHES) {
            if let Some(ns) = measure(deed, watch)? {
                *best = Some(best.map_or(ns, |best| best.min(ns)));
            }
        }
    }
    Ok(best)
}

/// Runs this program again to do the deed, watched; ns a call. `None` where there is no strace.
fn measure(deed: Deed, watch: Watch) -> Result<Option<f64>> {
    let own = std::env::current_exe()?;
    let mut command = if watch == Watch::Strace { Command::new("strace") } else { Command::new(&own) };
    if watch == Watch::Strace {
        command.args(["-f", "-e", "trace=network", "-o", "/dev/null"]).arg(&own);
    }
    let calls = if watch == Watch::Strace { STRACED } else { CALLS };
    let name = deed.to_possible_value().context("a name")?.get_name().to_owned();
    command.args(["do", name.as_str(), &calls.to_string()]);
    let mut recorder = Recorder::new()?;
    if matches!(watch, Watch::Recorder | Watch::RecorderWithStacks) {
        recorder.watch(&mut command, watch == Watch::RecorderWithStacks, None)?;
    }
    let output = match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound && watch == Watch::Strace => return Ok(None),
        output => output?,
    };
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    if matches!(watch, Watch::Recorder | Watch::RecorderWithStacks) {
        let recording = recorder.recording()?;
        let seen = recording.calls.len();
        ensure!(seen >= calls as usize && recording.about.lost == 0, "{seen} calls were recorded of {calls}");
        let has_stacks = recording.calls.iter().any(|call| call.stack != 0);
        ensure!(has_stacks == (watch == Watch::RecorderWithStacks), "stacks");
    }
    Ok(Some(String::from_utf8(output.stdout)?.trim().parse()?))
}

/// Does it so many times (calls), and prints the ns that a call took.
pub fn play(deed: Deed, calls: u32) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    let took = match deed {
        Deed::Recv => {
            client.set_nonblocking(true)?;
            timed(|| deep(DEPTH, &mut || (0..calls).try_for_each(|_| nothing_there(&mut client))))?
        }
        Deed::Send => {
            timed(|| deep(DEPTH, &mut || (0..calls).try_for_each(|_| Ok(client.write(&[]).map(drop)?))))?
        }
        Deed::PingPong => {
            let allowed = sched_getaffinity(None)?;
            let first = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).context("no processor")?;
            let mut one = CpuSet::new();
            one.set(first);
            sched_setaffinity(None, &one)?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            let rounds = calls / 4;
            let echo = std::thread::spawn(move || deep(DEPTH, &mut || echo(&mut server, rounds)));
            let took = timed(|| deep(DEPTH, &mut || ask(&mut client, rounds)))?;
            echo.join().ok().context("the echo has failed")??;
            took
        }
    };
    println!("{}", took / f64::from(calls));
    Ok(())
}

fn nothing_there(socket: &mut TcpStream) -> Result<()> {
    match socket.read(&mut [0]) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        other => other.map(drop).context("there was something"),
    }
}

fn ask(socket: &mut TcpStream, rounds: u32) -> Result<()> {
    for _ in 0..rounds {
        socket.write_all(b"?")?;
        socket.read_exact(&mut [0])?;
    }
    Ok(())
}

fn echo(socket: &mut TcpStream, rounds: u32) -> Result<()> {
    for _ in 0..rounds {
        socket.read_exact(&mut [0])?;
        socket.write_all(b"!")?;
    }
    Ok(())
}

fn timed(deed: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    deed()?;
    Ok(start.elapsed().as_nanos() as f64)
}

#[inline(never)]
fn deep(frames: u32, deed: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let done = if frames == 0 { deed() } else { deep(frames - 1, deed) };
    // Something is left to do, so that the call is no jump.
    black_box(done)
}
