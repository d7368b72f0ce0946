//! `tcpwhy run`: one small program a scenario. Each checks itself that the recorder changes nothing (it ends with 99
//! otherwise), and here what was recorded is held against what it did.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a test that skips itself says so")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// What a run left behind.
struct Ran {
    status: Option<i32>,
    stdout: String,
    report: String,
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run")
}

fn compiled(folder: &TempDir, name: &str, flags: &[&str]) -> PathBuf {
    let program = folder.path().join(name);
    let source = programs().join(format!("{name}.c"));
    let cc = Command::new("cc")
        .args(["-g", "-O1", "-pthread", "-w"])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(cc.expect("cc is there, as for every Rust build").success());
    program
}

fn tcpwhy(options: &[&str], program: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(["run", "--no-capture"]).args(options).arg("--").arg(program).args(arguments);
    let Output { status, stdout, stderr } = command.output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ran { status: status.code(), stdout: text(stdout), report: text(stderr) }
}

fn watch(name: &str, options: &[&str], arguments: &[&str]) -> Ran {
    let folder = TempDir::new().expect("a temporary folder");
    tcpwhy(options, &compiled(&folder, name, &[]), arguments)
}

/// The line in a program where a text first stands.
fn line_of(name: &str, text: &str) -> usize {
    let source = std::fs::read_to_string(programs().join(format!("{name}.c"))).expect("a source");
    1 + source.lines().position(|line| line.contains(text)).expect("the text")
}

#[track_caller]
fn assert_says(ran: &Ran, text: &str) {
    assert!(ran.report.contains(text), "{text:?} is not in\n{}", ran.report);
}

#[test]
fn split_messages_are_told_with_their_line() {
    let ran = watch("split", &[], &[]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(7), "its own output\n"), "{}", ran.report);
    assert_says(&ran, "split-write: 5 of 5 messages");
    assert_says(&ran, "5 messages, as 10 + 10 + 10 + 10 + 10 + 10 bytes:");
    let line = line_of("split", "send(fd");
    assert_says(&ran, &format!("split.c:{line} in flush_chain(), 6 send() calls a message\n"));
    assert_says(&ran, "called by main");
    assert_says(&ran, "5 messages written, each in one piece");
    assert_eq!(ran.report.matches("TCP_NODELAY never set on this socket\n").count(), 2, "{}", ran.report);
}

#[test]
fn what_became_of_nodelay_is_told() {
    let late = watch("split", &[], &["late"]);
    let line = line_of("split", "\"late\"") + 1;
    assert_says(&late, &format!("TCP_NODELAY set at split.c:{line} in main(), but only after 6 writes"));
    let first = watch("split", &[], &["first"]);
    let line = line_of("split", "\"first\"") + 1;
    assert_says(&first, &format!("TCP_NODELAY set at split.c:{line} in main(), before the first write"));
    assert!(!first.report.contains("split-write"), "{}", first.report);
    let other = watch("split", &[], &["other-side"]);
    assert_says(&other, "TCP_NODELAY never set on this socket, only on the other side's");
}

#[test]
fn a_fault_fails_a_run_that_would_have_succeeded() {
    assert_eq!(watch("split", &["--fail-on", "split-write"], &["late"]).status, Some(1));
    assert_eq!(watch("split", &["--fail-on", "split-write"], &["first"]).status, Some(0));
    assert_eq!(watch("split", &["--fail-on", "split-write"], &[]).status, Some(7));
    let cured = watch("split", &["--fail-on", "split-write", "--fix", "nodelay"], &["late"]);
    assert_eq!(cured.status, Some(0), "{}", cured.report);
}

#[test]
fn joined_writes_are_no_fault() {
    let ran = watch("joined", &["--fail-on", "split-write"], &[]);
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    assert_eq!(ran.report.matches("5 messages written, each in one piece").count(), 2, "{}", ran.report);
}

#[test]
fn corks_can_be_taken_off() {
    let held = watch("corks", &[], &[]);
    assert_eq!(held.status, Some(0), "{}", held.report);
    assert_eq!(held.stdout, "cork held, in the kernel 1\nmore held\nmessage held\n");
    let cured = watch("corks", &["--fix", "cork-off"], &[]);
    assert_eq!(cured.status, Some(0), "{}", cured.report);
    assert_eq!(cured.stdout, "cork sent, in the kernel 0\nmore sent\nmessage sent\n");
    assert_says(&cured, "With --fix cork-off.\n");
    // What the program joined is no longer joined, and told so: two writes a message, of those that two make.
    let joined = watch("joined", &["--fix", "cork-off"], &[]);
    assert_eq!(joined.status, Some(0), "{}", joined.report);
    assert_says(&joined, "split-write: 2 of 5 messages");
}

#[test]
fn every_thread_is_watched() {
    let ran = watch("threads", &["--top", "100"], &[]);
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    // 200 sends and reads, and one connect or accept, at each of sixteen ends.
    assert_says(&ran, &format!("tcpwhy run: {} calls on 16 TCP sockets in 1 program\n", 16 * 201));
    assert_eq!(ran.report.matches("  100 messages written, each in one piece").count(), 16, "{}", ran.report);
}

#[test]
fn children_and_what_they_execute_are_watched() {
    let ran = watch("fork", &[], &[]);
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    assert_says(&ran, "in 2 programs");
    let server = ran.report.lines().find(|line| line.contains("accepted")).expect("the server's end");
    // The accept, and a write in each of three processes, one of which executes a program that writes too.
    assert!(server.contains("· processes ") && server.ends_with("· 5 calls"), "{server}");
    assert_eq!(server.matches(", ").count(), 3, "{server}");
}

#[test]
fn a_child_of_vfork_does_not_confuse_its_parent() {
    let ran = watch("vfork", &[], &[]);
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    let client = ran.report.lines().find(|line| line.contains('→') && !line.contains("accepted"));
    assert!(
        client.is_some_and(|line| line.ends_with("· 4 calls")),
        "a connect and three writes: {}",
        ran.report
    );
}

#[test]
fn copies_of_a_descriptor_are_the_same_socket() {
    let ran = watch("dup", &[], &[]);
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    let client = ran.report.lines().find(|line| line.contains('→') && !line.contains("accepted"));
    // A connect, four writes, a close; what goes into files is not told.
    assert!(client.is_some_and(|line| line.ends_with("· 6 calls")), "{}", ran.report);
}

#[test]
fn errors_reach_the_program_unchanged() {
    let ran = watch("epoll", &["--fail-on", "split-write"], &[]);
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    assert_eq!(ran.report.matches("  10 messages written, each in one piece").count(), 2, "{}", ran.report);
    assert!(ran.report.lines().filter(|line| line.contains('→')).all(|line| line.starts_with("127.0.0.1:")));
}

#[test]
fn a_killed_program_is_told_to_its_last_call() {
    let ran = watch("killed", &[], &[]);
    assert_eq!(ran.status, Some(128 + 9), "{}", ran.report);
    assert_eq!(ran.report.matches("  10 messages written, each in one piece").count(), 2, "{}", ran.report);
}

#[test]
fn a_program_may_close_every_descriptor() {
    let ran = watch("closes", &[], &[]);
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    assert_says(&ran, "on 2 TCP sockets");
}

#[test]
fn signals_are_handed_on_and_threads_can_be_cancelled() {
    let ran = watch("signals", &[], &[]);
    assert_eq!(ran.status, Some(41), "{}", ran.report);
    assert_says(&ran, "1 message written");
}

#[test]
fn bytes_that_no_call_wrote_are_counted() {
    assert_says(&watch("stdio", &[], &[]), "6 more bytes were written by calls that cannot be seen");
}

#[test]
fn programs_that_cannot_be_watched_are_named() {
    let folder = TempDir::new().expect("a temporary folder");
    let program = compiled(&folder, "closes", &["-static"]);
    let ran = tcpwhy(&[], &program, &[]);
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    if ran.report.contains("tcpwhy run: 0 calls") {
        assert_says(
            &ran,
            "closes is statically linked: its calls cannot be seen. The kernel's trace events would",
        );
    } else {
        // tests/running.rs says what the kernel's trace events have to tell of it.
        assert!(rustix::process::geteuid().is_root(), "{}", ran.report);
    }
}

#[test]
fn stacks_can_be_left_out() {
    let ran = watch("split", &["--no-stacks"], &["late"]);
    assert_says(&ran, "6 send() calls a message, whose stack was not kept");
}

#[test]
fn findings_end_with_where() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: packets are captured as root");
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(["run", "--fail-on", "nagle-delayed-ack", "--"]);
    command.arg(compiled(&folder, "split", &[])).arg("other-side");
    let Output { status, stderr, .. } = command.output().expect("the binary runs");
    let report = String::from_utf8(stderr).expect("UTF-8");
    assert_eq!(status.code(), Some(1), "{report}");
    let words: Vec<_> = report.split_whitespace().collect();
    let place = format!(
        ". Where: split.c:{} in flush_chain(), 6 send() calls a message. TCP_NODELAY never set on this socket, only on the \
         other side's",
        line_of("split", "send(fd")
    );
    assert!(words.join(" ").contains(&place), "{report}");
}

#[test]
fn cpythons_http_server_writes_its_answers_in_two_pieces() {
    let Ok(version) = Command::new("python3").arg("-V").output() else {
        println!("skipped: no python3");
        return;
    };
    assert!(version.status.success());
    let script = programs().join("keep_alive.py");
    let options = ["--top", "1"];
    let ran = tcpwhy(&options, Path::new("python3"), &[script.to_str().expect("UTF-8")]);
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    assert_says(&ran, "split-write: 10 of 10 messages");
    assert_says(&ran, ", 2 send() calls a message");
    assert_says(&ran, "TCP_NODELAY never set on this socket, only on the other side's");
}
