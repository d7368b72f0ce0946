//! `tcpwhy sockets`: on connections of this very process, each made to wait for something, and on saved listings.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_tcp_cork, set_tcp_quickack};
use serde_json::Value;

use crate::run::{Desk, Ran};

/// How often something that lasts only 200 ms is tried.
const ATTEMPTS: usize = 20;
/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(20);
/// `nobody`, as on most systems; any user but root will do.
const NOBODY: u32 = 65_534;

/// A connection over loopback: the client's end and the server's.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    (client, listener.accept().expect("its other end").0)
}

fn skipped(name: &str, why: &str) {
    let _ = writeln!(io::stderr(), "SKIPPED {name}: {why}");
}

/// Whether a child may look into this process: not where users may trace only their own children.
fn may_be_looked_into(name: &str) -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let may = rustix::process::geteuid().is_root() || scope.trim().parse() == Ok(0) || scope.is_empty();
    if !may {
        skipped(name, "kernel.yama.ptrace_scope forbids it");
    }
    may
}

/// `tcpwhy sockets -p` this process, and more arguments.
fn look(args: &[&str]) -> Ran {
    let me = std::process::id().to_string();
    let mut all = vec!["sockets", "-p", &me];
    all.extend(args);
    let ran = Desk::new().run(&all);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    ran
}

/// What a report says of one end.
fn told(report: &Value, end: &TcpStream) -> Value {
    let local = end.local_addr().expect("an address").to_string();
    let peer = end.peer_addr().expect("an address").to_string();
    let sockets = report["sockets"].as_array().expect("a list");
    let found = sockets.iter().find(|socket| socket["local"] == *local && socket["peer"] == *peer);
    found.cloned().unwrap_or_default()
}

/// Looks until the socket has a suspicion of this kind.
fn await_suspicion(end: &TcpStream, kind: &str) -> Value {
    let begun = Instant::now();
    loop {
        let socket = told(&look(&["--format", "json"]).json(), end);
        if socket["suspicions"].as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == kind)) {
            return socket;
        }
        assert!(begun.elapsed() < PATIENCE, "{socket:#}");
    }
}

#[test]
fn unread_bytes_are_told_in_a_sentence_with_their_program() {
    let (mut client, server) = pair();
    client.write_all(&[1; 10_010]).expect("a write");
    let socket = await_suspicion(&server, "unread");
    let text = socket["suspicions"][0]["text"].as_str().expect("a sentence");
    assert!(text.starts_with("10,010 bytes wait for the program to read; the last came "), "{text}");
    assert_eq!(socket["programs"][0]["pid"], std::process::id());
    assert_eq!((&socket["recv_queue"], &socket["state"]), (&10_010.into(), &"ESTABLISHED".into()));
    let page = look(&[]).stdout;
    assert!(page.starts_with('✖'), "{page}");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("10,010 bytes wait for the program to read; the last came"), "{page}");
    let widest = page.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{page}");
}

#[test]
fn a_threads_number_means_its_process() {
    const NAME: &str = "a_threads_number_means_its_process";
    if !may_be_looked_into(NAME) {
        return;
    }
    let (client, _server) = pair();
    let thread = std::fs::read_link("/proc/thread-self").expect("/proc");
    let thread = thread.file_name().and_then(|name| name.to_str()).expect("a number");
    let report = Desk::new().run(&["sockets", "-p", thread, "--format", "json"]).json();
    let socket = told(&report, &client);
    assert_eq!(socket["options"]["nodelay"], false, "{socket:#}");
    assert_eq!(socket["programs"][0]["pid"], std::process::id());
}

#[test]
fn a_cork_is_named() {
    const NAME: &str = "a_cork_is_named";
    if !may_be_looked_into(NAME) {
        return;
    }
    let (mut client, mut server) = pair();
    set_tcp_cork(&client, true).expect("an option set");
    for _ in 0..ATTEMPTS {
        client.write_all(&[1; 34]).expect("a write");
        let socket = told(&look(&["--format", "json"]).json(), &client);
        if let Some(text) = socket["suspicions"][0]["text"].as_str() {
            assert_eq!(socket["suspicions"][0]["kind"], "cork");
            assert!(text.starts_with("TCP_CORK holds 34 bytes back"), "{text}");
            assert_eq!(
                (&socket["options"]["cork"], &socket["options"]["nodelay"]),
                (&true.into(), &false.into())
            );
            assert_eq!(socket["options_unknown"], Value::Null);
            return;
        }
        server.read_exact(&mut [0; 34]).expect("what the kernel let go after 200 ms");
    }
    panic!("never held");
}

#[test]
fn a_closed_window_is_told_at_both_ends() {
    let (mut client, server) = pair();
    client.set_nonblocking(true).expect("an option set");
    while let Ok(bytes) = client.write(&[1; 65_536]) {
        assert!(bytes > 0);
    }
    assert_eq!(client.write(&[1]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    let full = await_suspicion(&client, "rwnd");
    assert!(full["info"]["unsent"].as_u64() > Some(0), "{full:#}");
    await_suspicion(&server, "unread");
}

/// Write-write-read until told to stop: the pattern that Nagle's algorithm and delayed ACKs make slow.
fn chat(stop: &AtomicBool, (mut client, mut server): (TcpStream, TcpStream)) {
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut request = [0; 30];
            while server.read_exact(&mut request).is_ok() {
                // Back to delayed ACKs, which the kernel leaves now and then.
                set_tcp_quickack(&server, false).expect("an option set");
                server.write_all(b"ok").expect("an answer");
            }
        });
        while !stop.load(Ordering::Relaxed) {
            client.write_all(&[1; 10]).expect("a write");
            client.write_all(&[2; 20]).expect("a write");
            client.read_exact(&mut [0; 2]).expect("an answer");
        }
        client.shutdown(std::net::Shutdown::Both).expect("an end for the server");
    });
}

/// Ends the chat, also where the test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn watching_counts_how_often_nagle_holds() {
    const NAME: &str = "watching_counts_how_often_nagle_holds";
    if !may_be_looked_into(NAME) {
        return;
    }
    let stop = AtomicBool::new(false);
    let ends = pair();
    let client = ends.0.try_clone().expect("another descriptor");
    thread::scope(|scope| {
        scope.spawn(|| chat(&stop, ends));
        let ending = Ending(&stop);
        let args = ["--watch", "300ms", "--duration", "900ms", "--format", "json"];
        let lines = look(&args).stdout;
        let text = look(&["--watch", "--duration", "500ms"]).stdout;
        drop(ending);
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
        let (sum, intervals) = lines.split_last().expect("a sum");
        assert!(sum["in_all"] == true && intervals.iter().all(|line| line["in_all"] == false), "{lines:#?}");
        assert!(!intervals.is_empty());
        let looks = |line: &Value| line["looks"].as_u64().expect("a number");
        assert_eq!(intervals.iter().map(looks).sum::<u64>(), looks(sum));
        let socket = told(sum, &client);
        let (seen, of) = (socket["seen"]["nagle"].as_u64(), socket["looks"].as_u64());
        // 36 of every 44 ms, wherever the machine has time for its programs; a quarter is still far from chance.
        assert!(seen.zip(of).is_some_and(|(seen, of)| seen * 4 > of), "{socket:#}");
        assert!(text.contains("Held by Nagle's algorithm in "), "{text}");
    });
}

#[test]
fn ctrl_c_ends_watching_with_the_sum() {
    let (_client, _server) = pair();
    let me = std::process::id().to_string();
    let mut watching = Desk::new()
        .command()
        .args(["sockets", "-p", &me, "--watch", "50ms"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut text = String::new();
    let mut out = io::BufReader::new(watching.stdout.take().expect("a pipe"));
    io::BufRead::read_line(&mut out, &mut text).expect("a line");
    assert!(text.contains(" look"), "{text}");
    let pid = rustix::process::Pid::from_child(&watching);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal sent");
    out.read_to_string(&mut text).expect("the rest");
    assert_eq!(watching.wait().expect("its end").code(), Some(0));
    assert!(text.lines().any(|line| line.starts_with(['✔', '✖'])), "{text}");
}

#[test]
fn another_user_sees_what_needs_no_rights_and_is_told_what_does() {
    const NAME: &str = "another_user_sees_what_needs_no_rights_and_is_told_what_does";
    if !rustix::process::geteuid().is_root() {
        return skipped(NAME, "only root may become another user");
    }
    // The folder of the build may be root's alone.
    let desk = Desk::new();
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(desk.path(), everybody).expect("permissions");
    let binary = desk.path().join("tcpwhy");
    std::fs::copy(env!("CARGO_BIN_EXE_tcpwhy"), &binary).expect("a copy");
    let run = |args: &[&str]| {
        let mut command = Command::new(&binary);
        Ran::from(
            command.args(args).current_dir("/").uid(NOBODY).gid(NOBODY).output().expect("the copy runs"),
        )
    };
    let (client, _server) = pair();
    let ran = run(&["sockets", "--format", "json"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let socket = told(&ran.json(), &client);
    assert_eq!((&socket["state"], &socket["options"]["nodelay"]), (&"ESTABLISHED".into(), &Value::Null));
    for unknown in ["programs_unknown", "options_unknown"] {
        assert!(socket[unknown].as_str().is_some_and(|why| why.contains("CAP_SYS_PTRACE")), "{socket:#}");
    }
    let page = run(&["sockets", "--all"]).stdout;
    assert!(page.contains(" denied\n") && page.contains("denied: needs CAP_SYS_PTRACE"), "{page}");
    let me = std::process::id().to_string();
    let ran = run(&["sockets", "-p", &me]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.lines().count()), (Some(2), "", 1), "{ran:?}");
    assert!(ran.stderr.contains("CAP_SYS_PTRACE") && ran.stderr.contains("sudo"), "{ran:?}");
}

/// A listing that other tools wrote.
fn saved(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../wire/tests/sockets/{name}.txt"))
}

fn from(name: &str, args: &[&str]) -> Ran {
    let path = saved(name);
    let mut all = vec!["sockets", "--from", path.to_str().expect("a path")];
    all.extend(args);
    let ran = Desk::new().run(&all);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    ran
}

#[test]
fn a_blogs_listing_shows_ten_thousand_and_ten_bytes_that_nobody_accepts() {
    let page = from("blog-2014", &[]).stdout;
    assert!(
        page.starts_with("✖ 7 of 10 TCP sockets wait: 6 not read by the program, 1 not accepting."),
        "{page}"
    );
    assert!(
        page.contains("10,010 bytes wait in a connection that the program has not accepted yet."),
        "{page}"
    );
    assert!(page.contains("5,914 bytes wait for the program to read."), "{page}");
    assert!(page.contains("18 connections wait for the program to accept."), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

#[test]
fn saved_ss_output_tells_cork_and_window_apart() {
    let report = from("ss-tanpioem", &["--format", "json"]).json();
    assert_eq!((&report["format"], &report["source"]), (&"tcpwhy-sockets/1".into(), &"ss".into()));
    let kind = |local: &str| {
        let mut sockets = report["sockets"].as_array().expect("a list").iter();
        sockets.find(|socket| socket["local"] == *local).expect("a socket")["suspicions"][0]["kind"].clone()
    };
    assert_eq!((kind("127.0.0.1:47418"), kind("127.0.0.1:47442")), ("cork".into(), "rwnd".into()));
    assert_eq!(kind("127.0.0.1:47444"), Value::Null);
    let page = from("ss-tanpioem", &[]).stdout;
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("A cork (TCP_CORK or MSG_MORE) holds 34 bytes back"), "{page}");
    // The kernel's table does not tell the two apart.
    let page = from("proc-net-tcp", &[]).stdout;
    assert!(page.contains("34 bytes wait and nothing is in flight"), "{page}");
    assert!(page.contains("The peer's window is closed: 3,782,144 bytes"), "{page}");
}

#[test]
fn only_listening_sockets() {
    let page = from("netstat", &["-l"]).stdout;
    assert!(page.starts_with("✖ 1 of 4 listening TCP sockets waits: 1 not accepting."), "{page}");
    assert!(!page.contains('→'), "{page}");
}

#[test]
fn every_field_of_the_json_is_documented() {
    fn keys(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                into.push(key.clone());
                keys(value, into);
            }),
            Value::Array(all) => all.iter().for_each(|value| keys(value, into)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    keys(&from("ss-tanpioem", &["--format", "json"]).json(), &mut all);
    let (mut client, _server) = pair();
    client.write_all(b"unread").expect("a write");
    let watched = look(&["--watch", "--duration", "20ms", "--format", "json"]).stdout;
    keys(&serde_json::from_str(watched.lines().last().expect("a sum")).expect("an object"), &mut all);
    assert!(all.len() > 50);
    let page = include_str!("../../../../docs/sockets.md");
    // The keys of `seen` are kinds, which are documented as values.
    let missing: Vec<_> = all.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_program_cannot_paint_over_the_screen() {
    let desk = Desk::new();
    let line = b"ESTAB 5 0 10.0.0.1:22 10.0.0.2:5000 users:((\"\x1b]0;pwned\x07\xe2\x80\xae\",pid=1,fd=2))\n";
    let file = desk.file("hostile.txt", line);
    let file = file.to_str().expect("a path");
    let report = desk.run(&["sockets", "--format", "json", "--from", file]);
    assert!(report.stdout.contains("\\u202e") && !report.stdout.contains('\u{202e}'), "{report:?}");
    assert_eq!(report.json()["sockets"][0]["programs"][0]["pid"], 1);
    let ran = desk.run(&["sockets", "--from", file]);
    assert_eq!(ran.status, Some(0));
    assert!(ran.stdout.contains("\\u{202e}"), "{ran:?}");
    assert!(!ran.stdout.contains(['\x1b', '\x07', '\u{202e}']), "{ran:?}");
}

#[test]
fn standard_input_will_do() {
    let mut reading = Desk::new()
        .command()
        .args(["sockets", "--from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let text = std::fs::read(saved("ss-tan")).expect("the listing");
    reading.stdin.take().expect("a pipe").write_all(&text).expect("a reader");
    let output = reading.wait_with_output().expect("an end");
    assert!(output.stdout.starts_with("✖ 5 of 18 TCP sockets wait".as_bytes()), "{output:?}");
}

#[test]
fn what_cannot_be_is_said_in_one_line() {
    let desk = Desk::new();
    desk.file("letter.txt", b"Dear all,\n\nthe network is slow again.\n");
    for (args, said) in [
        (
            &["sockets", "--from", "letter.txt"][..],
            "letter.txt: no line of /proc/net/tcp, ss or netstat in it",
        ),
        (&["sockets", "--from", "nowhere"], "nowhere: no such file"),
        // Above the kernel's largest PID.
        (&["sockets", "-p", "4194305"], "process 4194305: there is none"),
    ] {
        let ran = desk.run(args);
        assert_eq!(
            (ran.status, ran.stdout.as_str(), ran.stderr.lines().count()),
            (Some(2), "", 1),
            "{ran:?}"
        );
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
    for args in [
        &["sockets", "--from", "x", "-p", "1"][..],
        &["sockets", "--from", "x", "--watch"],
        &["sockets", "--duration", "1s"],
    ] {
        assert_eq!(desk.run(args).status, Some(2), "{args:?}");
    }
}
