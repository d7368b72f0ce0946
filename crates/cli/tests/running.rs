//! `tcpwhy record`, and `tcpwhy run` for what the loader puts nothing into: programs recorded by the kernel's trace events.
//! Needs root.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a test that skips itself says so")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// `nobody`, as on most systems; any user but root will do.
const NOBODY: u32 = 65_534;
/// Where Go is installed by hand.
const GO: &str = "/usr/local/go/bin/go";
/// Answers before and after that tell that a program goes on.
const SOME: usize = 5;
/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

fn programs(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder)
}

fn tcpwhy() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Whether trace events may be used here; if not, that is said.
fn allowed() -> bool {
    let own = std::process::id().to_string();
    let Output { status, stderr, .. } = tcpwhy()
        .args(["record", "--no-capture", "--duration", "1ms", "-p", &own])
        .output()
        .expect("the binary runs");
    let why = text(&stderr);
    let is_said = why.contains("that needs root") || why.contains("this kernel has not");
    assert!(status.success() || is_said, "{why}");
    if is_said {
        println!("SKIPPED: {why}");
    }
    status.success()
}

/// What a program's run, and tcpwhy about it, come to.
fn run(options: &[&str], program: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = tcpwhy();
    command.args(["run", "--no-capture"]).args(options).arg("--").arg(program).args(arguments);
    let Output { status, stderr, .. } = command.output().expect("the binary runs");
    (status.code(), text(&stderr))
}

/// The line in a program where a text first stands.
fn line_of(source: &Path, text: &str) -> usize {
    let source = std::fs::read_to_string(source).expect("a source");
    1 + source.lines().position(|line| line.contains(text)).expect("the text")
}

fn linked_statically(folder: &TempDir) -> PathBuf {
    let program = folder.path().join("split");
    let source = programs("run").join("split.c");
    let mut cc = Command::new("cc");
    cc.args(["-static", "-g", "-O1", "-pthread", "-w"]).arg(source).arg("-o").arg(&program);
    assert!(cc.status().expect("cc is there, as for every Rust build").success());
    program
}

#[track_caller]
fn assert_says(report: &str, text: &str) {
    assert!(report.contains(text), "{text:?} is not in\n{report}");
}

#[test]
fn a_statically_linked_program_is_told_with_its_line() {
    if !allowed() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let (status, report) = run(&[], &linked_statically(&folder), &["late"]);
    let source = programs("run").join("split.c");
    assert_eq!(status, Some(0), "{report}");
    assert_says(&report, "split-write: 5 of 5 messages");
    let line = line_of(&source, "send(fd");
    assert_says(&report, &format!("split.c:{line} in flush_chain(), 6 send() calls a message\n"));
    assert_says(&report, "called by main");
    let line = line_of(&source, "\"late\"") + 1;
    assert_says(&report, &format!("TCP_NODELAY set at split.c:{line} in main(), but only after 6 writes"));
    let (_, without) = run(&["--no-stacks"], &folder.path().join("split"), &["late"]);
    assert_says(&without, "6 send() calls a message, whose stack was not kept");
}

#[test]
fn a_cure_that_cannot_be_tried_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let (status, report) = run(&["--fix", "nodelay"], &linked_statically(&folder), &[]);
    assert_eq!(status, Some(2), "{report}");
    assert_says(&report, "--fix nodelay cannot be tried");
}

#[test]
fn a_program_of_go_is_told_with_its_line() {
    let go = [Path::new(GO), Path::new("go")];
    let go = go.into_iter().find(|go| Command::new(go).arg("version").output().is_ok());
    let Some(go) = go.filter(|_| allowed()) else {
        println!("SKIPPED: without Go, or without the rights");
        return;
    };
    let folder = TempDir::new().expect("a folder");
    let (program, source) = (folder.path().join("pieces"), programs("running").join("pieces.go"));
    let built = Command::new(go).args(["build", "-o"]).arg(&program).arg(&source).status();
    assert!(built.expect("go runs").success());
    let (status, report) = run(&[], &program, &[]);
    assert_eq!(status, Some(0), "{report}");
    assert_says(&report, "split-write: 5 of 5 messages");
    let line = line_of(&source, "conn.Write([]byte(\"0123");
    assert_says(&report, &format!("pieces.go:{line} in main.flush(), 3 write() calls a message\n"));
    assert_says(&report, "called by main.answer");
    let line = line_of(&source, "SetNoDelay(false)");
    assert_says(&report, &format!("TCP_NODELAY switched off at pieces.go:{line} in main.answer()"));
    // Go sets it on every connection by itself.
    let line = line_of(&source, "net.Dial");
    assert_says(
        &report,
        &format!("TCP_NODELAY set at pieces.go:{line} in main.main(), before the first write"),
    );
}

/// A program that runs, and says so.
struct Running {
    child: Child,
    /// How often, read at once: lines that wait in the pipe would tell of the past.
    answers: Arc<AtomicUsize>,
}

impl Running {
    fn start() -> Option<Self> {
        let mut python = Command::new("python3");
        python.arg(programs("running").join("pieces.py")).stdout(Stdio::piped());
        let Ok(mut child) = python.spawn() else {
            println!("SKIPPED: no Python");
            return None;
        };
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let answers = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&answers);
        thread::spawn(move || {
            for _ in said.lines() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let running = Self { child, answers };
        running.goes_on();
        Some(running)
    }

    fn goes_on(&self) {
        let (begun, until) = (Instant::now(), self.answers.load(Ordering::SeqCst) + SOME);
        while self.answers.load(Ordering::SeqCst) < until {
            assert!(begun.elapsed() < PATIENCE, "the program does not go on");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Records it until it has gone on for a while, however long it takes to.
    fn recorded(&self, options: &[&str]) -> Output {
        let mut recording = self.recording(options);
        recording.stdout(Stdio::piped()).stderr(Stdio::piped());
        let recording = recording.spawn().expect("the binary runs");
        is_at_work(&recording);
        self.goes_on();
        kill_process(Pid::from_child(&recording), Signal::INT).expect("it runs");
        recording.wait_with_output().expect("its end")
    }

    fn recording(&self, options: &[&str]) -> Command {
        let mut command = tcpwhy();
        command.args(["record", "-p", &self.pid()]).args(options);
        command
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

/// Waits until a recording has all of its events open, which is as soon as it has a thread that reads them.
fn is_at_work(recording: &Child) {
    let reads = format!("/proc/{}/task", recording.id());
    let begun = Instant::now();
    while std::fs::read_dir(&reads).is_ok_and(|threads| threads.count() < 2) {
        assert!(begun.elapsed() < PATIENCE, "it does not begin");
        thread::yield_now();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_running_program_is_recorded_with_all_its_threads() {
    let Some(running) = Some(()).filter(|()| allowed()).and_then(|()| Running::start()) else { return };
    let pid = running.pid();
    let Output { status, stdout, stderr } = running.recorded(&["--no-capture"]);
    let report = text(&stdout);
    assert!(status.success(), "{}", text(&stderr));
    assert_says(&report, &format!("· process {pid} · "));
    assert_says(&report, "as 10 + 10 + 10 bytes:");
    assert_says(&report, "3 send() calls a message");
    // What was set before is read from the socket; where the program did it, nobody knows any more.
    assert_says(&report, "TCP_NODELAY on from the beginning");
    assert_says(&report, "TCP_NODELAY never set on this socket, only on the other side's");
    running.goes_on();
}

#[test]
fn a_recording_is_opened_as_a_file() {
    let Some(running) = Some(()).filter(|()| allowed()).and_then(|()| Running::start()) else { return };
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("slow.pcapng");
    let Output { status, stdout, stderr } = running.recorded(&["-o", file.to_str().expect("UTF-8")]);
    assert!(status.success() && stdout.is_empty(), "{}", text(&stderr));
    let shown = tcpwhy().arg(&file).output().expect("the binary runs");
    let report = text(&shown.stdout);
    assert_says(&report, "tcpwhy record: ");
    assert_says(&report, "split-write: ");
    assert_says(&report, "3 send() calls a message");
}

#[test]
fn the_end_of_the_program_ends_the_recording() {
    let Some(running) = Some(()).filter(|()| allowed()).and_then(|()| Running::start()) else { return };
    let mut recording = running.recording(&["--no-capture"]);
    let recording = recording.stdout(Stdio::piped()).spawn().expect("the binary runs");
    // One that begins when the program has ended has none to record.
    is_at_work(&recording);
    running.goes_on();
    drop(running);
    let Output { status, stdout, .. } = recording.wait_with_output().expect("it ends");
    assert!(status.success(), "{}", text(&stdout));
}

/// Everything that is mounted, and each trace event that is on for the machine's own buffer.
fn traces_left() -> (String, bool) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    (mounts, Path::new("/sys/kernel/tracing/events").exists())
}

#[test]
fn nothing_is_left_of_a_recorder_that_was_killed() {
    let Some(running) = Some(()).filter(|()| allowed()).and_then(|()| Running::start()) else { return };
    let before = traces_left();
    let mut recording = running.recording(&["--no-capture"]).spawn().expect("the binary runs");
    is_at_work(&recording);
    running.goes_on();
    recording.kill().expect("it runs");
    assert_eq!(recording.wait().expect("it ended").signal(), Some(9));
    assert_eq!(traces_left(), before);
    running.goes_on();
    // And it can be recorded again.
    assert_says(&text(&running.recorded(&["--no-capture"]).stdout), "3 send() calls a message");
}

#[test]
fn who_may_not_is_told_in_one_sentence() {
    let mut command = tcpwhy();
    command.args(["record", "-p", "1"]).current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let Ok(Output { status, stderr, .. }) = command.output() else {
        println!("SKIPPED: another user may not read the binary");
        return;
    };
    let said = text(&stderr);
    assert_eq!((status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert_says(&said, "that needs root (CAP_PERFMON, CAP_SYS_ADMIN and CAP_SYS_PTRACE)");
    let nobody = tcpwhy().args(["record", "-p", "4194305"]).output().expect("the binary runs");
    assert_says(&text(&nobody.stderr), "there is no process 4194305");
}
