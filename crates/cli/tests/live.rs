//! `tcpwhy live` on the loopback interface of a network namespace of its own, which only root can make, with real
//! traffic.
#![cfg(target_os = "linux")]

#[path = "../../host/tests/namespace/mod.rs"]
mod namespace;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use namespace::{ip, on_own_loopback};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

fn tcpwhy(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "SUDO_UID", "SUDO_GID"] {
        command.env_remove(variable);
    }
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A capture that listens.
struct Live {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Live {
    /// Starts in the calling thread's network namespace, and waits until it listens.
    fn start(args: &[&str]) -> Self {
        Self::on("lo", args)
    }

    fn on(interface: &str, args: &[&str]) -> Self {
        let mut child = tcpwhy(&["live", "-i", interface]).args(args).spawn().expect("the binary runs");
        let stdout = BufReader::new(child.stdout.take().expect("standard output"));
        let mut stderr = BufReader::new(child.stderr.take().expect("standard error"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        assert!(line.contains(&format!("listening on {interface}")), "{line}");
        Self { child, stdout, stderr }
    }

    /// Ctrl-C, and what it printed until then.
    fn stop(self) -> String {
        self.signal(Signal::INT);
        self.end()
    }

    fn signal(&self, signal: Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).expect("a signal");
    }

    /// What it printed until it ended by itself.
    fn end(self) -> String {
        let (status, stdout, stderr) = self.everything();
        assert_eq!((status, stderr.as_str()), (Some(0), ""));
        stdout
    }

    /// Exit status, output, and what was said.
    fn everything(mut self) -> (Option<i32>, String, String) {
        let [mut stdout, mut stderr] = [const { String::new() }; 2];
        self.stdout.read_to_string(&mut stdout).expect("UTF-8");
        self.stderr.read_to_string(&mut stderr).expect("UTF-8");
        (self.child.wait().expect("an end").code(), stdout, stderr)
    }

    /// What it printed up to a line with this text, and that line.
    fn until(&mut self, text: &str) -> (String, String) {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).expect("UTF-8");
            assert!(read > 0, "no line with {text:?} in\n{all}");
            all.push_str(&line);
            if line.contains(text) {
                return (all, line);
            }
        }
    }
}

/// A connection over loopback: client and server.
fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    (client, listener.accept().expect("a connection").0)
}

/// Requests in two writes each, on a connection with Nagle's algorithm.
fn stalling_calls(calls: usize) -> SocketAddr {
    let mut left = calls;
    stalling_calls_while(|| left.checked_sub(1).inspect(|less| left = *less).is_some())
}

/// The same as long as more are wanted.
fn stalling_calls_while(mut wanted: impl FnMut() -> bool) -> SocketAddr {
    let (mut client, mut server) = connected();
    let address = server.local_addr().expect("an address");
    let serving = thread::spawn(move || {
        let mut request = [0; 200];
        while server.read_exact(&mut request).is_ok() {
            server.write_all(&[1; 50]).expect("a client");
        }
    });
    while wanted() {
        client.write_all(&[2; 100]).expect("a server");
        client.write_all(&[3; 100]).expect("a server");
        client.read_exact(&mut [0; 50]).expect("an answer");
    }
    drop(client);
    serving.join().expect("no panic in the server");
    address
}

/// So many calls, and more until that has happened; the server, and what came of it.
fn stalling_calls_until<T>(least: usize, happens: impl FnOnce() -> T) -> (SocketAddr, T) {
    let (left, has_happened) = (AtomicUsize::new(least), AtomicBool::new(false));
    thread::scope(|scope| {
        let wanted = || {
            let more = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            more.is_ok() || !has_happened.load(Ordering::Relaxed)
        };
        let calls = scope.spawn(move || stalling_calls_while(wanted));
        let happened = happens();
        has_happened.store(true, Ordering::Relaxed);
        (calls.join().expect("no panic in the client"), happened)
    })
}

/// What this process is called.
fn own_name() -> String {
    std::fs::read_to_string("/proc/self/comm").expect("a name").trim().to_owned()
}

fn rules(report: &Value) -> Vec<(String, Value, Value)> {
    let findings = report["captures"][0]["findings"].as_array().expect("findings");
    let rule = |finding: &Value| {
        let name = finding["rule"].as_str().expect("a name").to_owned();
        (name, finding["count"].clone(), finding["cost_ms"].clone())
    };
    findings.iter().map(rule).collect()
}

#[test]
fn a_stall_is_found_while_it_goes_on_and_the_file_says_the_same() {
    on_own_loopback("a_stall_is_found_while_it_goes_on_and_the_file_says_the_same", || {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("live.pcapng");
        let file = file.to_str().expect("UTF-8");
        const FOUND: &str = "✖ split-write  127.0.0.1:";
        let mut lines = Live::start(&[]);
        let report = Live::start(&["--format", "json", "--write", file]);
        // 40 ms each: the lines look each second, or later.
        let told = stalling_calls_until(60, || lines.until(FOUND));
        let (lines, report) = (told.1.0 + &lines.stop(), report.stop());
        let news = lines.lines().take_while(|line| !line.is_empty());
        assert_eq!(news.filter(|line| line.contains(FOUND)).count(), 1, "{lines}");
        assert!(lines.contains("  live on lo · live · "), "{lines}");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert!(
            rules(&report).iter().any(|(rule, count, _)| rule == "split-write" && count.as_u64() > Some(20))
        );
        let from_file = tcpwhy(&["--format", "json", file]).output().expect("the binary runs");
        let from_file: Value = serde_json::from_slice(&from_file.stdout).expect("JSON");
        assert_eq!(rules(&from_file), rules(&report));
        assert_eq!(from_file["captures"][0]["packets"], report["captures"][0]["packets"]);
        let connections = &report["captures"][0]["connections"];
        assert_eq!(&from_file["captures"][0]["connections"], connections);
        // Who was at both ends is in the file, too.
        let me = json!({ "name": own_name(), "pid": std::process::id() });
        assert_eq!((&connections[0]["client_program"], &connections[0]["server_program"]), (&me, &me));
        assert_eq!(from_file["captures"][0]["ledger_ms"], report["captures"][0]["ledger_ms"]);
    });
}

#[test]
fn a_capture_is_its_owners_alone_and_lies_where_it_is_named() {
    on_own_loopback("a_capture_is_its_owners_alone_and_lies_where_it_is_named", || {
        let folder = TempDir::new().expect("a folder");
        let written = |name: &str, options: &[&str]| {
            let mut command =
                tcpwhy(&["live", "-i", "lo", "--duration", "100ms", "--format", "json", "--write"]);
            command.arg(folder.path().join(name)).args(options).output().expect("the binary runs").status
        };
        let mode_of = |name: &str| {
            let metadata = folder.path().join(name).metadata().expect("a file");
            metadata.permissions().mode() & 0o777
        };
        assert!(written("new.pcapng", &[]).success());
        assert_eq!(mode_of("new.pcapng"), 0o600);
        assert!(written("group.pcapng", &["--mode", "0640"]).success());
        assert_eq!(mode_of("group.pcapng"), 0o640);
        std::os::unix::fs::symlink("target", folder.path().join("link")).expect("a link");
        assert_eq!(written("link", &[]).code(), Some(2));
        assert!(!folder.path().join("target").exists());
        // Whoever has made the file before could read what comes into it.
        std::fs::write(folder.path().join("theirs"), b"").expect("room");
        std::os::unix::fs::chown(folder.path().join("theirs"), Some(65_533), None).expect("root");
        assert_eq!(written("theirs", &[]).code(), Some(2));
    });
}

#[test]
fn a_page_has_the_packets_of_the_file() {
    on_own_loopback("a_page_has_the_packets_of_the_file", || {
        // A folder that nobody else may enter, as who captures becomes nobody.
        let folder = TempDir::new().expect("a folder");
        let [file, page] = ["live.pcapng", "page.html"].map(|name| folder.path().join(name));
        let mut command = tcpwhy(&["live", "-i", "lo", "--html"]);
        let mut live = command.arg(&page).arg("--write").arg(&file).spawn().expect("the binary runs");
        let stdout = BufReader::new(live.stdout.take().expect("standard output"));
        let mut stderr = BufReader::new(live.stderr.take().expect("standard error"));
        let mut said = String::new();
        stderr.read_line(&mut said).expect("a line");
        if said.contains("was built without the page") {
            let _ = writeln!(io::stderr(), "SKIPPED: {said}");
            live.wait().expect("an end");
            return;
        }
        stalling_calls(5);
        let live = Live { child: live, stdout, stderr };
        live.signal(Signal::INT);
        let (status, _, said) = live.everything();
        assert_eq!(status, Some(0), "{said}");
        assert!(said.starts_with("tcpwhy: the page is ") && said.lines().count() == 1, "{said}");
        let html = std::fs::read_to_string(&page).expect("a page");
        assert!(
            html.contains("id=\"tcpwhy-packets-0\">") && html.contains("\"no_packets\":null"),
            "no packets"
        );
    });
}

#[test]
fn packets_are_counted_once_and_the_filter_leaves_others_out() {
    on_own_loopback("packets_are_counted_once_and_the_filter_leaves_others_out", || {
        const WANTED: usize = 1_000;
        let socket = || UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (sender, wanted, other) = (socket(), socket(), socket());
        let port = wanted.local_addr().expect("an address").port().to_string();
        let all = Live::start(&["--format", "json"]);
        let any = Live::on("any", &["--format", "json"]);
        let some = Live::start(&["--format", "json", "udp", "dst", "port", &port]);
        let first = Live::start(&["--format", "json", "--count", "10"]);
        for number in 0..WANTED {
            sender.send_to(&[0; 32], wanted.local_addr().expect("an address")).expect("a sent datagram");
            if number % 2 == 0 {
                sender.send_to(&[0; 32], other.local_addr().expect("an address")).expect("a sent datagram");
            }
        }
        let packets = |report: &str| {
            let report: Value = serde_json::from_str(report).expect("JSON");
            report["captures"][0]["packets"].as_u64().expect("a number") as usize
        };
        assert_eq!(packets(&first.end()), 10);
        assert_eq!(packets(&some.stop()), WANTED);
        assert_eq!(packets(&all.stop()), WANTED + WANTED / 2);
        assert_eq!(packets(&any.stop()), WANTED + WANTED / 2);
    });
}

/// Holds a process to being nobody, with these capabilities and no others.
fn is_nobody_with(process: u32, capabilities: &str) {
    for task in std::fs::read_dir(format!("/proc/{process}/task")).expect("threads").flatten() {
        let status = std::fs::read_to_string(task.path().join("status")).expect("a status");
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).expect("a field");
            line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(field("Uid:"), "65534 65534 65534 65534");
        assert_eq!(field("Gid:"), "65534 65534 65534 65534");
        assert_eq!(field("Groups:"), "65534");
        assert_eq!((field("CapPrm:").as_str(), field("CapEff:").as_str()), (capabilities, capabilities));
        assert_eq!((field("CapInh:"), field("CapAmb:")), ("0".repeat(16), "0".repeat(16)));
        assert_eq!(field("NoNewPrivs:"), "1");
    }
}

/// Waits until a process is this user's: it may take its time to give up what it was.
fn await_user(process: u32, user: &str) {
    let begun = Instant::now();
    let is = |line: &str| line.starts_with("Uid:") && line.split_whitespace().nth(1) == Some(user);
    let status = || std::fs::read_to_string(format!("/proc/{process}/status")).expect("a status");
    while !status().lines().any(is) {
        assert!(begun.elapsed() < PATIENCE, "{}", status());
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_rights_are_given_up() {
    on_own_loopback("the_rights_are_given_up", || {
        let live = Live::start(&[]);
        let first = live.child.id();
        is_nobody_with(first, "0000000000000000");
        // The second process, once it has named a program: CAP_DAC_READ_SEARCH (2) and CAP_SYS_PTRACE (19).
        stalling_calls(40);
        let children = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
        let second = children.expect("children").trim().parse().expect("one process");
        await_user(second, "65534");
        is_nobody_with(second, "0000000000080004");
        live.stop();
        assert!(!Path::new(&format!("/proc/{second}")).exists(), "it ends with the first one");
    });
}

#[test]
fn programs_are_named_in_lines_and_in_the_report() {
    on_own_loopback("programs_are_named_in_lines_and_in_the_report", || {
        let mut live = Live::start(&[]);
        let (server, (_, news)) = stalling_calls_until(1, || live.until("split-write  127.0.0.1:"));
        let own = format!("{} ({})", own_name(), std::process::id());
        assert!(news.contains(&format!("→ {server}, {own} → {own}: ")), "{news}");
        live.signal(Signal::INT);
        live.until(&format!("→ {server} ─"));
        let (below, _) = live.until("");
        assert_eq!(below.trim(), format!("{own} → {own}"), "right below the addresses");
        live.end();
    });
}

#[test]
fn signals_that_end_it_end_it_with_the_report() {
    on_own_loopback("signals_that_end_it_end_it_with_the_report", || {
        for signal in [Signal::TERM, Signal::HUP] {
            let live = Live::start(&[]);
            stalling_calls(10);
            live.signal(signal);
            let report = live.end();
            assert!(report.contains("split-write") && report.contains("  live on lo · live · "), "{report}");
        }
    });
}

#[test]
fn what_was_in_the_ring_at_the_end_is_analysed() {
    on_own_loopback("what_was_in_the_ring_at_the_end_is_analysed", || {
        const ALL: u64 = 20_000;
        let live = Live::start(&["--format", "json"]);
        // It sleeps while they come, and finds the signal beside them.
        live.signal(Signal::STOP);
        flood(ALL);
        live.signal(Signal::TERM);
        live.signal(Signal::CONT);
        let report: Value = serde_json::from_str(&live.end()).expect("JSON");
        assert_eq!(report["captures"][0]["packets"], ALL);
    });
}

#[test]
fn what_the_kernel_dropped_is_said_at_once_and_in_the_report() {
    on_own_loopback("what_the_kernel_dropped_is_said_at_once_and_in_the_report", || {
        // More than the ring has slots: 32 MiB, 256 bytes of each packet and a header.
        const ALL: u64 = 150_000;
        let mut live = Live::start(&["--format", "json"]);
        live.signal(Signal::STOP);
        flood(ALL);
        live.signal(Signal::CONT);
        let mut said = String::new();
        live.stderr.read_line(&mut said).expect("a line");
        let report: Value = serde_json::from_str(&live.stop()).expect("JSON");
        let capture = &report["captures"][0];
        let dropped = ALL - capture["packets"].as_u64().expect("a number");
        assert!(dropped > 10_000, "{dropped}");
        let note = format!("The kernel dropped {dropped} of {ALL} packets");
        let notes = capture["notes"].as_array().expect("notes");
        assert!(notes.iter().any(|one| one.as_str().is_some_and(|one| one.starts_with(&note))), "{notes:?}");
        assert_eq!(said, format!("tcpwhy: the kernel dropped {dropped} packets\n"));
    });
}

#[test]
fn a_terminal_that_goes_ends_it_and_the_file_is_whole() {
    on_own_loopback("a_terminal_that_goes_ends_it_and_the_file_is_whole", || {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("live.pcapng");
        let file = file.to_str().expect("UTF-8");
        let (mut terminal, end) = terminal();
        let twin = || end.try_clone().expect("a descriptor");
        let mut command = tcpwhy(&["live", "-i", "lo", "--write", file]);
        let mut live = command.stdin(twin()).stdout(twin()).stderr(twin()).spawn().expect("the binary runs");
        drop((command, end));
        let mut shown = Vec::new();
        while !String::from_utf8_lossy(&shown).contains("tcpwhy live") {
            let mut some = [0; 4096];
            let read = terminal.read(&mut some).expect("a screen");
            shown.extend(&some[..read]);
        }
        stalling_calls(5);
        drop(terminal);
        // It used to read the end of its terminal again and again.
        let begin = Instant::now();
        let status = loop {
            match live.try_wait().expect("a child") {
                Some(status) => break status,
                None if begin.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(20)),
                None => {
                    live.kill().expect("a child");
                    panic!("it goes on without a terminal");
                }
            }
        };
        assert_eq!(status.code(), Some(2));
        let from_file = tcpwhy(&["--format", "json", file]).output().expect("the binary runs");
        let from_file: Value = serde_json::from_slice(&from_file.stdout).expect("JSON");
        assert!(rules(&from_file).iter().any(|(rule, ..)| rule == "split-write"), "{from_file}");
    });
}

/// A terminal of 80 × 24: what shows it, and what programs have.
fn terminal() -> (File, File) {
    // Not for children: it has to be closed everywhere.
    let shows = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&shows).expect("a terminal");
    unlockpt(&shows).expect("a terminal");
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&shows, size).expect("a size");
    let name = ptsname(&shows, Vec::new()).expect("a name");
    let mut options = File::options();
    options.read(true).write(true).custom_flags(OpenptFlags::NOCTTY.bits() as i32);
    let programs = options.open(name.to_str().expect("UTF-8")).expect("a terminal");
    (File::from(shows), programs)
}

/// Datagrams that somebody receives, so that nobody answers.
fn flood(packets: u64) {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    sender.connect(receiver.local_addr().expect("an address")).expect("a connected socket");
    for _ in 0..packets {
        sender.send(&[0; 32]).expect("a sent datagram");
    }
}

#[test]
fn a_full_disk_or_an_interface_that_goes_ends_it_with_the_report() {
    on_own_loopback("a_full_disk_or_an_interface_that_goes_ends_it_with_the_report", || {
        let full = Live::start(&["--format", "json", "--write", "/dev/full"]);
        stalling_calls(1);
        let (status, report, said) = full.everything();
        assert_eq!(status, Some(2));
        assert!(said.contains("the file cannot be written: No space left on device"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert!(report["captures"][0]["notes"].to_string().contains("No space left on device"), "{report}");

        for args in ["link add near type veth peer name far", "link set near up", "link set far up"] {
            ip(args);
        }
        let gone = Live::on("near", &["--format", "json"]);
        ip("link set near down");
        thread::sleep(Duration::from_millis(200));
        ip("link set near up");
        ip("link del near");
        let (status, report, said) = gone.everything();
        assert_eq!(status, Some(2));
        assert!(said.ends_with("the capture on near broke off: the interface is gone\n"), "{said}");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let notes = report["captures"][0]["notes"].to_string();
        // An interface is taken down to be removed: who looks in between has seen it go down twice.
        let went_down = ["The interface went down while", "The interface went down 2 times while"];
        assert!(went_down.iter().any(|note| notes.contains(note)), "{notes}");
    });
}

#[test]
fn the_file_belongs_to_who_called_sudo() {
    on_own_loopback("the_file_belongs_to_who_called_sudo", || {
        use std::os::unix::fs::MetadataExt;
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("live.pcapng");
        let ran = tcpwhy(&["live", "-i", "lo", "--duration", "100ms", "--write"])
            .arg(&file)
            .envs([("SUDO_UID", "1234"), ("SUDO_GID", "4321")])
            .output()
            .expect("the binary runs");
        assert!(ran.status.success(), "{ran:?}");
        let owner = std::fs::metadata(&file).expect("a file");
        assert_eq!((owner.uid(), owner.gid()), (1234, 4321));
    });
}

/// One line on standard error, and status 2.
fn complaint(command: &mut Command) -> String {
    let ran = command.output().expect("the binary runs");
    let stderr = String::from_utf8(ran.stderr).expect("UTF-8");
    assert_eq!((ran.status.code(), ran.stdout.len(), stderr.lines().count()), (Some(2), 0, 1), "{stderr}");
    stderr
}

#[test]
fn what_cannot_be_done_is_said_in_one_line() {
    let wrong = complaint(&mut tcpwhy(&["live", "-i", "lo", "port", "eighty-first"]));
    assert!(wrong.contains("no port is called \"eighty-first\""), "{wrong}");
    let hostile = complaint(&mut tcpwhy(&["live", "-i", "lo", "port \x1b[31m"]));
    assert!(!hostile.contains('\x1b'), "{hostile:?}");
    on_own_loopback("what_cannot_be_done_is_said_in_one_line", || {
        for name in ["nosuch0", "a-name-too-long-for-an-interface", "e\x1b[31mh"] {
            let wrong = complaint(&mut tcpwhy(&["live", "-i", name]));
            assert!(wrong.contains("there is no interface") && wrong.contains("lo, any"), "{wrong}");
            assert!(!wrong.contains('\x1b'), "{wrong:?}");
        }
        ip("link add idle type veth peer name far");
        let wrong = complaint(&mut tcpwhy(&["live", "-i", "idle"]));
        assert!(wrong.contains("interface idle is down"), "{wrong}");
        ip("link del idle");
        let wrong = complaint(&mut tcpwhy(&["live"]));
        assert!(wrong.contains("no default route"), "{wrong}");
        let nowhere = Path::new("/nowhere/at/all");
        let wrong = complaint(tcpwhy(&["live", "-i", "lo", "--write"]).arg(nowhere));
        assert!(wrong.contains("/nowhere/at/all cannot be written"), "{wrong}");
    });
}

#[test]
fn without_rights_the_command_to_run_is_said() {
    let mut command = tcpwhy(&["live", "-i", "lo"]);
    if rustix::process::getuid().is_root() {
        // The folder of the binary must be open to others, which a home is not.
        let readable =
            Command::new("test").args(["-x", env!("CARGO_BIN_EXE_tcpwhy")]).uid(65_534).gid(65_534).status();
        if !readable.is_ok_and(|status| status.success()) {
            let _ = writeln!(io::stderr(), "SKIPPED without_rights…: others may not run the binary here");
            return;
        }
        command.uid(65_534).gid(65_534);
    }
    let said = complaint(&mut command);
    assert!(said.contains("sudo tcpwhy live") && said.contains("setcap cap_net_raw+ep"), "{said}");
}
