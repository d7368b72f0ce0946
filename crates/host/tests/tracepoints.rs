//! Calls by the kernel's trace events, held against the recorder that stands in the program itself, call by call. Needs
//! root.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a test that skips itself says so")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tcpwhy_host::calls::{Recorder, Refused, Tracer};
use tcpwhy_wire::calls::{Call, Kind, Recording};
use tempfile::TempDir;

/// The same call in both recordings begins that close together, in ns: one clock is read before the call by the program, the
/// other in the kernel. Machines that share their cores may stall in between for as long as they like, but not every time.
const CLOSE: u64 = 20_000_000;

fn compiled(folder: &TempDir, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/run").join(format!("{name}.c"));
    let program = folder.path().join(name);
    let mut cc = Command::new("cc");
    cc.args(["-g", "-O1", "-pthread", "-w"]).args(flags).arg(source).arg("-o").arg(&program);
    assert!(cc.status().expect("cc is there, as for every Rust build").success());
    program
}

/// Both recordings of one run; `None`, which is said, where that is not allowed.
fn both(program: &Path, arguments: &[&str]) -> Option<(Recording, Recording)> {
    let mut tracer = match Tracer::of_command(program, true) {
        Ok(tracer) => tracer,
        Err(Refused::Rights | Refused::Kernel) => {
            println!("SKIPPED: the kernel's trace events need root");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let mut recorder = Recorder::new().expect("a recorder");
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null());
    recorder.watch(&mut command, true, None).expect("a name");
    command.status().expect("it runs");
    Some((tracer.finish().expect("a recording"), recorder.recording().expect("a recording")))
}

/// Each thread's calls on connections. Not among them: those that failed, of which the kernel's events tell only what
/// reached TCP; and `close`, of which the recorder in the program misses those by stdio.
fn by_thread(recording: &Recording) -> BTreeMap<u32, Vec<Call>> {
    let mut threads: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
    for call in &recording.calls {
        if call.kind != Kind::Close && (call.result >= 0 || call.kind == Kind::Connect) {
            threads.entry(call.thread).or_default().push(*call);
        }
    }
    threads
}

#[track_caller]
fn assert_agree(traced: &Recording, inside: &Recording) {
    assert_eq!((traced.about.lost, inside.about.lost), (0, 0));
    let (traced, inside) = (by_thread(traced), by_thread(inside));
    assert!(!inside.is_empty(), "nothing was recorded");
    assert!(traced.keys().eq(inside.keys()), "threads: {:?} and {:?}", traced.keys(), inside.keys());
    // Of a program that is soon over, nobody could ask for the cookies: which calls are on the same socket has to agree.
    let mut names: HashMap<u64, u64> = HashMap::new();
    let mut apart = Vec::new();
    for (thread, calls) in &inside {
        let told = |call: &Call| (call.kind, call.fd, call.result, call.flags, call.asked);
        let theirs: Vec<_> = calls.iter().map(told).collect();
        let ours: Vec<_> = traced[thread].iter().map(told).collect();
        assert_eq!(ours, theirs, "thread {thread}");
        for (ours, theirs) in traced[thread].iter().zip(calls) {
            apart.push(ours.start.abs_diff(theirs.start));
            assert_eq!(
                *names.entry(theirs.socket).or_insert(ours.socket),
                ours.socket,
                "{ours:?} and {theirs:?}"
            );
        }
    }
    apart.sort_unstable();
    assert!(apart[apart.len() / 2] < CLOSE, "{apart:?}");
    let different: HashSet<_> = names.values().collect();
    assert_eq!(different.len(), names.len(), "two sockets are one");
}

#[test]
fn the_same_calls_are_seen_as_from_inside() {
    let folder = TempDir::new().expect("a folder");
    for (name, arguments) in [
        ("split", &["late"][..]),
        ("joined", &[]),
        ("threads", &[]),
        ("epoll", &[]),
        ("dup", &[]),
        ("closes", &[]),
        ("fork", &[]),
    ] {
        let Some((traced, inside)) = both(&compiled(&folder, name, &[]), arguments) else { return };
        println!("{name}: {} calls", inside.calls.len());
        assert_agree(&traced, &inside);
    }
}
