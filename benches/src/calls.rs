//! What it costs to have a call recorded: `tcpwhy run`'s recorder beside nothing, and beside strace.

use std::hint::black_box;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Instant;

use anstream::println;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use tcpwhy_host::calls::Recorder;

/// Calls of a run; those of one under strace, which takes a hundred times as long.
const CALLS: u32 = 200_000;
const STRACED: u32 = 10_000;
/// Runs of each kind, one kind after the other in turn. The best counts: whatever else the machine does only adds.
const RUNS: usize = 7;
/// Functions below the one that calls: a recorded stack has that many frames more.
const DEPTH: u32 = 10;

/// What is aimed at: ns that a call may take longer, without stacks and with, and how many times longer strace makes it.
const GOAL: f64 = 250.0;
const GOAL_WITH_STACKS: f64 = 1_000.0;
const GOAL_OF_STRACE: f64 = 50.0;

/// What the measured program does, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deed {
    /// `recv` where nothing is there: hardly any work of the kernel's.
    Recv,
    /// `send` of nothing.
    Send,
    /// A byte there and back between two threads: four calls.
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
            Some((ns, bare)) => format!("{ns:.0} (+{:.0})", ns - bare),
            None => "not there".to_owned(),
        };
        let bare_text = bare.map_or_else(String::new, |ns| format!("{ns:.0}"));
        println!("{name:28} {bare_text:>8} {:>18} {:>18} {:>22}", more(recorded), more(stacks), more(strace));
        if let [Some(bare), Some(recorded), Some(stacks)] = [bare, recorded, stacks] {
            let goal = |added: f64, most: f64| if added <= most { "reached" } else { "missed" };
            println!(
                "  goals: {GOAL:.0} ns without stacks {}, {GOAL_WITH_STACKS:.0} ns with {}{}",
                goal(recorded - bare, GOAL),
                goal(stacks - bare, GOAL_WITH_STACKS),
                strace.map_or_else(String::new, |strace| {
                    let ratio = (strace - bare) / (stacks - bare).max(1.0);
                    let reached = if ratio >= GOAL_OF_STRACE { "reached" } else { "missed" };
                    format!("; strace adds {ratio:.0} times as much as with stacks ({GOAL_OF_STRACE:.0}: {reached})")
                }),
            );
        }
    }
    Ok(())
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
        recorder.watch(&mut command, watch == Watch::RecorderWithStacks, None);
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
