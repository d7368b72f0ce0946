//! `tcpwhy run`: one small program a scenario. Each checks itself that the recorder changes nothing (it ends with 99
//! otherwise), and here what was recorded is held against what it did.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a test that skips itself says so")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Runs until a busy machine lets a program do two things at once.
const ATTEMPTS: usize = 5;

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

/// The last of a few runs, which end with the first one whose report says all of this. A program that a busy machine stops for
/// 5 ms between two writes makes two messages of one, and is told so.
fn saying(texts: &[&str], run: impl Fn() -> Ran) -> Ran {
    let mut ran = run();
    for _ in 1..ATTEMPTS {
        if texts.iter().all(|text| ran.report.contains(text)) {
            break;
        }
        ran = run();
    }
    ran
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
    let texts = ["split-write: 5 of 5 messages", "5 messages, as 10 + 10 + 10 + 10 + 10 + 10 bytes:"];
    let ran = saying(&texts, || watch("split", &[], &[]));
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(7), "its own output\n"), "{}", ran.report);
    texts.iter().for_each(|text| assert_says(&ran, text));
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
fn a_rule_that_needs_packets_does_not_pass_without_them() {
    let ran = watch("split", &["--fail-on", "nagle-delayed-ack"], &["late"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "the command has not run: {}", ran.report);
    assert_says(&ran, "--fail-on nagle-delayed-ack needs packets, which --no-capture leaves out");
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
    let two = "split-write: 2 of 5 messages";
    let joined = saying(&[two], || watch("joined", &["--fix", "cork-off"], &[]));
    assert_eq!(joined.status, Some(0), "{}", joined.report);
    assert_says(&joined, two);
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
#[cfg(target_arch = "x86_64")]
fn a_stack_ends_where_a_greenlet_begins() {
    let folder = TempDir::new().expect("a temporary folder");
    // The library's name is what it is known by.
    let library = folder.path().join("_greenlet.so");
    let flags = ["-DLIBRARY", "-shared", "-fPIC", "-fno-omit-frame-pointer"];
    std::fs::rename(compiled(&folder, "greenlet", &flags), &library).expect("a file of its own");
    let program = compiled(&folder, "greenlet", &["-ldl"]);
    let ran = tcpwhy(&[], &program, &[library.to_str().expect("UTF-8")]);
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    for text in ["hello ", "world"] {
        let line = line_of("greenlet", text);
        assert_says(&ran, &format!("greenlet.c:{line} in running(), a send() call a message\n"));
    }
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

/// Runs a script under the recorder by the machine's Python, as [`saying`] does. None, said aloud, where there is none or a
/// version whose frames are not known.
fn watch_script(name: &str, options: &[&str], arguments: &[&str], says: &str) -> Option<Ran> {
    let python = Command::new("python3").args(["-c", "import sys; print(sys.version_info[1])"]).output();
    let minor = python.ok().and_then(|out| String::from_utf8(out.stdout).ok()?.trim().parse::<u32>().ok());
    if !minor.is_some_and(|minor| (8..=13).contains(&minor)) {
        println!("skipped: no python3 from 3.8 to 3.13");
        return None;
    }
    let script = programs().join(name);
    let arguments = [&[script.to_str().expect("UTF-8")], arguments].concat();
    Some(saying(&[says], || tcpwhy(options, Path::new("python3"), &arguments)))
}

/// Lines of `lines.py` by what is marked there.
fn marked(mark: &str) -> String {
    let source = std::fs::read_to_string(programs().join("lines.py")).expect("a source");
    let ends = format!("# {mark}");
    let line = source.lines().position(|line| line.ends_with(&ends)).expect("the mark");
    format!("lines.py:{} in ", line + 1)
}

#[test]
fn a_script_is_told_with_its_lines() {
    let split = "send() call a message\n";
    let script = |what: &str, says| watch_script("lines.py", &["--top", "1"], &[what], says);
    let pieces = "1 message, as 6 + 3 + 3 bytes:\n";
    for (what, by) in [("answered", "answered"), ("thread", "Client.run"), ("forked", "forked")] {
        let Some(ran) = script(what, pieces) else {
            return;
        };
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), "its own output\n"), "{}", ran.report);
        assert_says(&ran, pieces);
        assert_says(&ran, &format!("      {}first(), a {split}", marked("plain: first")));
        assert_says(&ran, &format!("      {}second(), 2 send() calls a message\n", marked("plain: second")));
        // Before 3.11 CPython does not know of a function what it is in.
        let by = by.rsplit('.').next().unwrap_or(by);
        assert!(ran.report.lines().any(|line| line.contains("called by answered") && line.contains(by)));
    }
    let Some(ran) = script("generator", "called by generator") else {
        return;
    };
    for mark in ["generator: first", "generator: second"] {
        assert_says(&ran, &format!("      {}pieces(), a {split}        ", marked(mark)));
    }
    assert_says(&ran, "called by generator");
}

#[test]
fn a_coroutine_is_told_with_its_lines_through_the_library() {
    let Some(ran) = watch_script("lines.py", &["--top", "1"], &["coroutine"], &marked("coroutine: second"))
    else {
        return;
    };
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), "its own output\n"), "{}", ran.report);
    for mark in ["coroutine: first", "coroutine: second"] {
        assert_says(&ran, &format!("      {}coroutine(), through asyncio/streams.py:", marked(mark)));
    }
    // The library does that, on the way from this line.
    assert_says(
        &ran,
        &format!("TCP_NODELAY set at {}coroutine(), through asyncio/", marked("coroutine: open")),
    );
}

#[test]
fn a_script_that_sets_nodelay_is_told_where() {
    let Some(ran) = watch_script("lines.py", &["--top", "1"], &["late"], "only after 3 writes") else {
        return;
    };
    let place = marked("late: nodelay");
    assert_says(&ran, &format!("TCP_NODELAY set at {place}late(), but only after 3 writes\n"));
}

#[test]
fn cpythons_http_server_writes_its_answers_in_two_pieces() {
    let all = "split-write: 10 of 10 messages";
    let Some(ran) = watch_script("keep_alive.py", &["--top", "1"], &[], all) else {
        return;
    };
    assert_eq!(ran.status, Some(0), "{}", ran.report);
    assert_says(&ran, all);
    let source = std::fs::read_to_string(programs().join("keep_alive.py")).expect("a source");
    let told = |text: &str, library: &str| {
        let line = 1 + source.lines().position(|line| line.contains(text)).expect("the text");
        let begin = format!("      keep_alive.py:{line} in ");
        let is_it = |told: &str| {
            told.starts_with(&begin)
                && told.contains(&format!("do_GET(), through {library}.py:"))
                && told.ends_with("(), a send() call a message")
        };
        assert!(ran.report.lines().any(is_it), "{text} is not told in\n{}", ran.report);
    };
    told("self.end_headers()", "http/server");
    told("self.wfile.write(", "socketserver");
    assert_says(&ran, "TCP_NODELAY never set on this socket, only on the other side's");
}

/// The program's own clock is the truth: the second piece of a request is held from its write on, and not while the program
/// works. Packets alone cannot know that, and take the whole exchange for a hold.
#[test]
fn the_ledger_begins_a_hold_with_its_write() {
    if !rustix::process::geteuid().is_root() {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED the_ledger_begins_a_hold…: capturing packets needs root");
        return;
    }
    // Whoever is woken late waits longer than TCP made it wait.
    let mut off = String::new();
    for _ in 0..ATTEMPTS {
        match booked_as_it_waited() {
            Ok(()) => return,
            Err(what) => off = what,
        }
    }
    panic!("{off}");
}

/// What is off, if something is.
fn booked_as_it_waited() -> Result<(), String> {
    let folder = TempDir::new().expect("a temporary folder");
    let [recording, said] = ["recording.pcapng", "report.json"].map(|name| folder.path().join(name));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command
        .args(["run", "--format", "json", "--record"])
        .arg(&recording)
        .arg("--output")
        .arg(&said)
        .arg("--");
    let output = command.arg(compiled(&folder, "work", &[])).output().expect("the binary runs");
    let logged = String::from_utf8(output.stdout).expect("UTF-8");
    let ms: Vec<f64> =
        logged.split_whitespace().map(|us| us.parse::<f64>().expect("a number") / 1e3).collect();
    let analyzed =
        Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(["--format", "json"]).arg(&recording).output();
    for report in [std::fs::read(said).expect("a report"), analyzed.expect("the binary runs").stdout] {
        let report: serde_json::Value = serde_json::from_slice(&report).expect("a report");
        let connection = &report["captures"][0]["connections"][0];
        // Both ends are the same program's.
        let [client, server] = ["client_program", "server_program"].map(|end| &connection[end]);
        assert!(client["name"] == "work" && client["pid"].is_u64() && client == server, "{connection}");
        let ledger = &connection["ledger_ms"];
        let booked = |line: &str| ledger[line].as_f64().expect("a line");
        let held = booked("nagle") + booked("delayed-ack");
        if (held - ms[0]).abs() >= 0.1 * ms[0] || booked("client-app") <= 0.9 * (ms[1] - ms[0]) {
            return Err(format!("{held} ms are booked, the program waited {ms:?}: {ledger}"));
        }
    }
    Ok(())
}
