//! `tcpwhy prove`: on Python programs that talk over loopback, and on connections of this very process.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tcpwhy_host::process::{Descriptor, sockets_of};
use tcpwhy_host::sockets::{describe, options};
use tcpwhy_wire::sockets::State;

use crate::run::{Desk, Ran};

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(20);
/// Runs until a machine that others use, too, is quiet enough for anything to be told.
const ATTEMPTS: usize = 4;
/// `nobody`, as on most systems; any user but root will do.
const NOBODY: u32 = 65_534;

/// A client that sends 100 bytes in so many writes and waits for the answer, again and again, and its server, which
/// delays its ACKs. Prints the process numbers of both.
const CHAT: &str = r#"
import os, socket, sys, time
pieces = int(sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0))
server = os.fork()
if server == 0:
    here, _ = listener.accept()
    while True:
        got = 0
        while got < 100:
            data = here.recv(100 - got)
            if not data:
                os._exit(0)
            got += len(data)
        here.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        here.sendall(b"ok")
there = socket.create_connection(listener.getsockname())
listener.close()
there.sendall(b"x" * 100)
there.recv(2) # So it has been accepted.
print(os.getpid(), server, flush=True)
while True:
    for piece in range(pieces):
        there.sendall(b"x" * (100 // pieces))
    there.recv(2)
    time.sleep(0.005)
"#;

/// The same, of two writes, over a new connection after every twenty requests.
const FICKLE: &str = r#"
import os, socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
server = os.fork()
if server == 0:
    while True:
        here, _ = listener.accept()
        here.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        for request in range(20):
            got = 0
            while got < 100:
                data = here.recv(100 - got)
                if not data:
                    os._exit(0)
                got += len(data)
            here.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            here.sendall(b"ok")
print(os.getpid(), server, flush=True)
while True:
    there = socket.create_connection(listener.getsockname())
    for request in range(20):
        there.sendall(b"x" * 50)
        there.sendall(b"x" * 50)
        there.recv(2)
        time.sleep(0.005)
    there.close()
"#;

/// One process with both ends of so many connections, over which nothing is said.
const SILENT: &str = r#"
import os, socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
ends = []
for connection in range(int(sys.argv[1])):
    ends.append(socket.create_connection(listener.getsockname()))
    ends.append(listener.accept()[0])
listener.close()
print(os.getpid(), os.getpid(), flush=True)
time.sleep(1000)
"#;

/// Both ends; ended when dropped.
struct Chat {
    client: Child,
    server: u32,
}

impl Chat {
    fn of(script: &str, pieces: &str, user: Option<u32>) -> Option<Self> {
        let mut python = Command::new("python3");
        python.args(["-c", script, pieces]).current_dir("/").stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(user) = user {
            python.uid(user).gid(user);
        }
        let mut client = python.spawn().ok()?;
        let mut line = String::new();
        BufReader::new(client.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let server = line.split_whitespace().nth(1).and_then(|pid| pid.parse().ok());
        if server.is_none() {
            let _ = client.wait();
        }
        Some(Self { client, server: server? })
    }

    fn pid(&self) -> u32 {
        self.client.id()
    }

    /// Whether TCP_NODELAY is on, read from the socket itself.
    fn nodelay(&self) -> bool {
        nodelay(self.pid(), State::Established)
    }

    fn await_nodelay(&self, on: bool) {
        let begun = Instant::now();
        while self.nodelay() != on {
            assert!(begun.elapsed() < PATIENCE, "never {on}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        // The server ends when nobody speaks to it any more.
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

/// TCP_NODELAY of a process's only socket in this state.
fn nodelay(pid: u32, state: State) -> bool {
    let is_it = |descriptor: &Descriptor| {
        let twin = descriptor.duplicate().ok()?;
        let found = describe(&twin).ok().flatten()?;
        (found.socket.state == state).then(|| options(&twin).ok()?.nodelay)?
    };
    let all: Vec<bool> = sockets_of(pid).expect("our own").iter().filter_map(is_it).collect();
    assert_eq!(all.len(), 1, "sockets of {pid}");
    all[0]
}

fn skipped(name: &str, why: &str) {
    let _ = writeln!(io::stderr(), "SKIPPED {name}: {why}");
}

/// A chat, where there is Python and this process may touch others.
fn chat(name: &str, pieces: &str) -> Option<Chat> {
    chat_of(CHAT, name, pieces)
}

fn chat_of(script: &str, name: &str, pieces: &str) -> Option<Chat> {
    if !rustix::process::geteuid().is_root() {
        skipped(name, "only root may touch any process, and see packets");
        return None;
    }
    let chat = Chat::of(script, pieces, None);
    if chat.is_none() {
        skipped(name, "there is no python3 that runs");
    }
    chat
}

fn prove(pid: u32, args: &[&str]) -> Ran {
    let pid = pid.to_string();
    Desk::new().run(&[&["prove", "-p", &pid][..], args].concat())
}

fn proved(pid: u32, args: &[&str]) -> Value {
    let run = || prove(pid, &[&["--format", "json"][..], args].concat());
    let (begun, mut ran) = (Instant::now(), run());
    // Between two connections of a program that opens them again and again.
    while ran.status == Some(2) && begun.elapsed() < PATIENCE {
        ran = run();
    }
    let report = ran.json();
    let has_answer = ["proved", "slower", "no-effect"].iter().any(|answer| report["verdict"] == *answer);
    let status = if has_answer { 0 } else { 3 };
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(status), ""), "{ran:?}");
    report
}

/// The same, again where a busy machine made blocks of one kind too unlike to tell anything.
fn proved_clearly(pid: u32, args: &[&str]) -> Value {
    let mut report = proved(pid, args);
    for _ in 1..ATTEMPTS {
        if report["verdict"] != "unclear" {
            break;
        }
        report = proved(pid, args);
    }
    report
}

fn measure(report: &Value, name: &str) -> Value {
    let mut measures = report["measures"].as_array().expect("a list").iter();
    measures.find(|measure| measure["measure"] == name).cloned().unwrap_or_default()
}

#[test]
fn two_writes_a_message_are_proved_to_wait_and_the_option_is_put_back() {
    let Some(chat) = chat("two_writes_a_message_are_proved_to_wait_and_the_option_is_put_back", "2") else {
        return;
    };
    let report = proved_clearly(chat.pid(), &["--block", "1s", "--seed", "7"]);
    assert_eq!(
        (&report["verdict"], &report["measure"]),
        (&"proved".into(), &"exchange".into()),
        "{report:#}"
    );
    let exchange = measure(&report, "exchange");
    let ms = |field: &str| exchange[field].as_f64().expect("a number");
    // Linux delays an ACK by 40 ms; whatever else the machine does takes its time in both.
    assert!(ms("off_ms") > 38.0 && ms("off_ms") - ms("on_ms") > 18.0 && ms("low_ms") > 18.0, "{report:#}");
    assert_eq!(
        (&report["seed"], &report["interface"], &report["end"]),
        (&7.into(), &"lo".into(), &"whole".into())
    );
    let blocks = report["blocks"].as_array().expect("a list");
    assert_eq!(blocks.iter().filter(|block| block["on"] == true).count(), 6);
    let sockets = report["sockets"].as_array().expect("a list");
    assert_eq!(sockets.len(), 1);
    assert_eq!((&sockets[0]["before"], &sockets[0]["after"]), (&false.into(), &false.into()));
    assert!(!chat.nodelay());
    every_field_is_documented(&report);
}

fn every_field_is_documented(report: &Value) {
    fn keys<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                into.push(key);
                keys(value, into);
            }),
            Value::Array(all) => all.iter().for_each(|value| keys(value, into)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    keys(report, &mut all);
    let page = include_str!("../../../../docs/prove.md");
    let missing: Vec<_> = all.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn one_write_a_message_has_nothing_to_gain() {
    let Some(chat) = chat("one_write_a_message_has_nothing_to_gain", "1") else { return };
    assert_eq!(proved_clearly(chat.pid(), &["--block", "700ms"])["verdict"], "no-effect");
}

#[test]
fn without_the_right_to_see_packets_the_send_queue_tells() {
    const NAME: &str = "without_the_right_to_see_packets_the_send_queue_tells";
    if !rustix::process::geteuid().is_root() {
        return skipped(NAME, "only root may become another user");
    }
    if std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() != "0") {
        return skipped(NAME, "kernel.yama.ptrace_scope forbids it");
    }
    let Some(chat) = Chat::of(CHAT, "2", Some(NOBODY)) else {
        return skipped(NAME, "there is no python3 that everybody may run");
    };
    // The folder of the build may be root's alone.
    let desk = Desk::new();
    std::fs::set_permissions(desk.path(), std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let binary = desk.path().join("tcpwhy");
    std::fs::copy(env!("CARGO_BIN_EXE_tcpwhy"), &binary).expect("a copy");
    let run = |pid: u32, args: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(["prove", "-p", &pid.to_string()]).args(args).current_dir("/").uid(NOBODY).gid(NOBODY);
        Ran::from(command.output().expect("the copy runs"))
    };
    let mut report = Value::Null;
    for _ in 0..ATTEMPTS {
        report = run(chat.pid(), &["--block", "1s", "--format", "json"]).json();
        if report["verdict"] != "unclear" {
            break;
        }
    }
    assert_eq!((&report["verdict"], &report["measure"]), (&"proved".into(), &"wait".into()), "{report:#}");
    assert!(report["notes"][0].as_str().is_some_and(|note| note.contains("CAP_NET_RAW")), "{report:#}");
    // Half of each message waits for the ACK of the other half: 20 ms a byte, were the delay 40 ms and nothing else.
    let wait = measure(&report, "wait");
    let ms = |field: &str| wait[field].as_f64().expect("a number");
    assert!(ms("off_ms") > 15.0 && ms("on_ms") < ms("off_ms") / 2.0, "{report:#}");
    // What TCP_QUICKACK changes does not show in the socket.
    let ran = run(chat.pid(), &["--option", "quickack"]);
    assert!(ran.status == Some(2) && ran.stderr.contains("CAP_NET_RAW"), "{ran:?}");
    // Another user's process is not touched.
    let ran = run(std::process::id(), &[]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.lines().count()), (Some(2), "", 1), "{ran:?}");
    assert!(ran.stderr.contains("CAP_SYS_PTRACE") && ran.stderr.contains("sudo"), "{ran:?}");
}

#[test]
fn quickack_cures_from_the_other_side() {
    let Some(chat) = chat("quickack_cures_from_the_other_side", "2") else { return };
    let report = proved_clearly(
        chat.server,
        &["--connection", &connection(chat.server), "--option", "quickack", "--block", "1s"],
    );
    assert_eq!(report["verdict"], "proved", "{report:#}");
}

/// The descriptor of a process's only connection.
fn connection(pid: u32) -> String {
    let is_it = |descriptor: &&Descriptor| {
        let found = descriptor.duplicate().ok().and_then(|twin| describe(twin).ok().flatten());
        found.is_some_and(|found| found.socket.state == State::Established)
    };
    let all = sockets_of(pid).expect("our own");
    all.iter().find(is_it).expect("a connection").fd.to_string()
}

#[test]
fn the_option_is_put_back_however_the_run_ends() {
    let Some(chat) = chat("the_option_is_put_back_however_the_run_ends", "2") else { return };
    let (desk, pid) = (Desk::new(), chat.pid().to_string());
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let mut proving = desk.command();
        let proving = proving.args(["prove", "-p", &pid, "--blocks", "1000", "--block", "500ms"]);
        let proving = proving.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary runs");
        chat.await_nodelay(true);
        kill_process(Pid::from_child(&proving), signal).expect("a signal sent");
        let ran = proving.wait_with_output().expect("its end");
        if signal == Signal::KILL {
            // By the second process.
            chat.await_nodelay(false);
            continue;
        }
        assert!(!chat.nodelay(), "{signal:?}");
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(
            ran.status.code() == Some(3)
                && text.contains("off before, off now")
                && text.contains("Broken off."),
            "{text}"
        );
    }
}

#[test]
fn keep_leaves_it_on_and_listener_passes_it_on() {
    let Some(chat) = chat("keep_leaves_it_on_and_listener_passes_it_on", "1") else { return };
    let listens = || nodelay(chat.server, State::Listen);
    assert!(!listens());
    let report = proved(chat.server, &["--listener", "--keep", "--block", "500ms"]);
    assert!(listens() && nodelay(chat.server, State::Established), "{report:#}");
    let sockets = report["sockets"].as_array().expect("a list");
    assert_eq!(
        (sockets.len(), &sockets[1]["peer"], &report["kept"]),
        (2, &Value::Null, &true.into()),
        "{report:#}"
    );
    assert!(sockets.iter().all(|socket| socket["before"] == false && socket["after"] == true), "{report:#}");
    assert!(!chat.nodelay(), "the other end is another socket");
}

#[test]
fn an_idle_connection_proves_nothing() {
    let Some(chat) = chat_of(SILENT, "an_idle_connection_proves_nothing", "1") else { return };
    let descriptor = connection(chat.pid());
    let ran = prove(chat.pid(), &["--connection", &descriptor, "--block", "500ms"]);
    assert!(
        ran.status == Some(3) && ran.stdout.starts_with("? Not enough traffic: 0 messages in"),
        "{ran:?}"
    );
    let told = format!("  fd {descriptor}  127.0.0.1:");
    assert!(ran.stdout.contains(&told) && ran.stdout.contains("off before, off now"), "{ran:?}");
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{ran:?}");
}

#[test]
fn what_was_not_pointed_at_is_not_touched() {
    let Some(chat) = chat_of(SILENT, "what_was_not_pointed_at_is_not_touched", "2") else { return };
    for (args, why) in [
        (&[][..], "point at one with --connection, or take --all"),
        (&["--connection", "1000000"], "no such TCP connection"),
        (&["--blocks", "4"], "prove nothing"),
        (&["--blocks", "13"], "try 14"),
        (&["--block", "100ms"], "--block"),
    ] {
        let ran = prove(chat.pid(), args);
        assert_eq!(
            (ran.status, ran.stdout.as_str(), ran.stderr.lines().count()),
            (Some(2), "", 1),
            "{ran:?}"
        );
        assert!(ran.stderr.contains(why), "{ran:?}");
    }
    // Above the kernel's largest PID.
    let ran = prove(4_194_305, &[]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(2), "tcpwhy: process 4194305: there is none\n"));
}

#[test]
fn connections_that_are_opened_meanwhile_are_switched_if_all_were_meant() {
    const NAME: &str = "connections_that_are_opened_meanwhile_are_switched_if_all_were_meant";
    let Some(chat) = chat_of(FICKLE, NAME, "2") else { return };
    let report = proved_clearly(chat.pid(), &["--all", "--block", "1500ms"]);
    let exchange = measure(&report, "exchange");
    let ms = |field: &str| exchange[field].as_f64().unwrap_or(f64::NAN);
    let gain = ms("off_ms") - ms("on_ms");
    assert!(report["verdict"] == "proved" && ms("off_ms") > 38.0 && gain > 18.0, "{report:#}");
    let sockets = report["sockets"].as_array().expect("a list");
    // With the option, one lasts for a tenth of a second.
    assert!(sockets.len() > 10, "{report:#}");
    let left_on = sockets.iter().filter(|socket| socket["after"] == true);
    assert_eq!(left_on.count(), 0, "{report:#}");
    // Only what was pointed at: that one ends soon.
    let report = proved(chat.pid(), &["--block", "1500ms"]);
    assert_eq!(report["sockets"].as_array().map(Vec::len), Some(1), "{report:#}");
    assert_eq!((&report["verdict"], &report["end"]), (&"not-enough-traffic".into(), &"closed".into()));
}

#[test]
fn one_at_a_time() {
    let Some(chat) = chat("one_at_a_time", "2") else { return };
    let desk = Desk::new();
    let mut first = desk
        .command()
        .args(["prove", "-p", &chat.pid().to_string(), "--blocks", "1000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    chat.await_nodelay(true);
    let second = prove(chat.pid(), &[]);
    let _ = kill_process(Pid::from_child(&first), Signal::TERM);
    first.wait().expect("its end");
    let why = format!("tcpwhy: another tcpwhy prove is at work on process {}\n", chat.pid());
    assert_eq!((second.status, second.stderr), (Some(2), why));
    assert!(!chat.nodelay());
}

/// Runs `tcpwhy prove` on a terminal of its own, with this answer typed.
fn answering(answer: &str, pid: u32) -> Option<String> {
    let prove = format!("{} prove -p {pid} --block 500ms --color never", env!("CARGO_BIN_EXE_tcpwhy"));
    let mut script = Command::new("script")
        .args(["-q", "-e", "-c", &prove, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    script.stdin.as_mut().expect("a pipe").write_all(answer.as_bytes()).expect("it listens");
    let output = script.wait_with_output().expect("its end");
    Some(String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"))
}

#[test]
fn on_a_terminal_it_asks_before_it_touches_several() {
    const NAME: &str = "on_a_terminal_it_asks_before_it_touches_several";
    let Some(chat) = chat_of(SILENT, NAME, "2") else { return };
    let Some(text) = answering("no\n", chat.pid()) else {
        return skipped(NAME, "there is no script command");
    };
    let question = "4 such sockets: fd 4 127.0.0.1:";
    assert!(text.contains(question) && text.contains("Switch TCP_NODELAY on all of them? [y/N] "), "{text}");
    assert!(text.contains("tcpwhy: nothing was touched\n"), "{text}");
    let text = answering("y\n", chat.pid()).expect("it was there");
    assert_eq!(text.matches(": off before, off now").count(), 4, "{text}");
}
