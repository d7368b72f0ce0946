//! Captures from the browser.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Answer, Served, files, serve};
use crate::capture::{healthy, write_write_read};
use crate::run::Desk;

/// The folder has the captures, the store, and nothing that was begun.
#[track_caller]
fn has_only(served: &Served, names: &[&str]) {
    let mut wanted = vec![".tcpwhy"];
    wanted.extend(names);
    let start = Instant::now();
    // The server takes away what it had written after it has said why.
    while files(served.desk.path()) != wanted && start.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(files(served.desk.path()), wanted);
}

#[test]
fn a_capture_is_taken_whole_and_none_is_overwritten() {
    let Some(served) = serve(Desk::new(), &[]) else { return };
    let capture = write_write_read();
    let taken = |name: &str| {
        let answer = served.ask("PUT", &format!("/api/captures/{name}"), &capture);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["name"].as_str().expect("a name").to_owned()
    };
    assert_eq!(taken("slow.pcap.gz"), "slow.pcap.gz");
    assert_eq!(taken("slow.pcap.gz"), "slow-2.pcap.gz");
    assert_eq!(taken("slow.pcap.gz"), "slow-3.pcap.gz");
    assert_eq!(taken("no%20ending"), "no ending");
    assert_eq!(std::fs::read(served.desk.path().join("slow-2.pcap.gz")).expect("a file"), capture);
    has_only(&served, &["no ending", "slow-2.pcap.gz", "slow-3.pcap.gz", "slow.pcap.gz"]);
}

#[test]
fn names_that_lead_out_of_the_folder_are_refused() {
    let above = Desk::new();
    above.file("secret.pcap", &healthy());
    let folder = above.path().join("captures");
    std::fs::create_dir_all(folder.join("deeper")).expect("a folder");
    std::fs::write(folder.join("deeper/in.pcap"), healthy()).expect("a file");
    std::fs::write(folder.join("here.pcap"), healthy()).expect("a file");
    symlink("../secret.pcap", folder.join("link.pcap")).expect("a link");
    symlink("..", folder.join("up.pcap")).expect("a link");
    symlink("here.pcap", folder.join("inside.pcap")).expect("a link");
    let fifo = Command::new("mkfifo").arg(folder.join("fifo.pcap")).status();
    assert!(fifo.expect("mkfifo").success());
    let mut command = above.command();
    command.args(["serve", "captures"]);
    let Some(served) = Served::start(above, command) else { return };
    assert_eq!(served.captures(), ["here.pcap"]);
    let long = "x".repeat(300);
    for name in [
        "../secret.pcap",
        "/etc/passwd",
        "..",
        ".",
        "",
        "-",
        "deeper/in.pcap",
        "deeper",
        "link.pcap",
        "up.pcap",
        "inside.pcap",
        "fifo.pcap",
        "up.pcap/secret.pcap",
        ".tcpwhy/reports.sqlite",
        "..\\secret.pcap",
        "a\0b",
        &long,
        "/proc/self/environ",
    ] {
        let begun = served.begin(name);
        assert!([400, 404].contains(&begun.status), "{name:?}: {begun:?}");
    }
    let escaped = format!("{long}.pcap");
    for name in [
        "..%2fout.pcap",
        "%2e%2e%2fout.pcap",
        "%2e%2e",
        "..%5cout.pcap",
        "%2ftmp%2fout.pcap",
        "a%00.pcap",
        ".hidden.pcap",
        "%ff.pcap",
        "deeper%2fout.pcap",
        "../out.pcap",
        "%252e%252e%252fout.pcap/..",
        escaped.as_str(),
    ] {
        let put = served.ask("PUT", &format!("/api/captures/{name}"), &healthy());
        assert!([400, 404].contains(&put.status), "{name}: {put:?}");
    }
    assert_eq!(files(served.desk.path()), ["captures", "secret.pcap"]);
    assert_eq!(files(&served.desk.path().join("captures/deeper")), ["in.pcap"]);
    for path in [
        "/../secret.pcap",
        "/reports/../../secret.pcap",
        "/captures/secret.pcap",
        "/.tcpwhy/reports.sqlite",
        "//etc/passwd",
    ] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
}

/// A link does not lead an upload elsewhere either: what is there already is left alone.
#[test]
fn an_upload_does_not_follow_links() {
    let desk = Desk::new();
    let outside = Desk::new();
    let target = outside.file("target.pcap", b"as it was");
    symlink(&target, desk.path().join("a.pcap")).expect("a link");
    let Some(served) = serve(desk, &[]) else { return };
    let answer = served.ask("PUT", "/api/captures/a.pcap", &healthy());
    assert_eq!(answer.json()["name"], "a-2.pcap", "{answer:?}");
    assert_eq!(std::fs::read(target).expect("a file"), b"as it was");
}

#[test]
fn what_is_no_capture_is_not_kept() {
    let Some(served) = serve(Desk::new(), &[]) else { return };
    for (name, body, status) in [
        ("notes.md", &b"# Notes"[..], 415),
        ("program", b"\x7fELF\x02\x01", 415),
        ("page.html", &[b'<'; 100_000], 415),
        ("notes.txt", b"nothing to see", 415),
        ("empty.pcap", b"", 422),
    ] {
        let answer = served.ask("PUT", &format!("/api/captures/{name}"), body);
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    has_only(&served, &[]);
    // What is called a capture is taken, and its analysis says what is wrong.
    assert_eq!(served.ask("PUT", "/api/captures/lie.pcap", b"not at all").status, 200);
    let job = served.ended(&served.begin("lie.pcap").json()["job"]);
    assert_eq!(job["state"], "failed", "{job}");
    assert!(job["error"].as_str().is_some_and(|why| why.starts_with("neither a capture")), "{job}");
}

#[test]
fn a_capture_beyond_the_limit_is_refused_as_soon_as_that_is_known() {
    let Some(served) = serve(Desk::new(), &["--upload-limit", "100kB"]) else { return };
    let origin = format!("http://{}", served.host);
    let own = [("Cookie", served.cookie.as_str()), ("Origin", origin.as_str())];
    // By what it says, before a byte has come.
    let answer = served.send(&served.head("PUT", "/api/captures/a.pcap", &own, Some(100_001)));
    assert_eq!((answer.status, answer.error().contains("--upload-limit")), (413, true), "{answer:?}");
    // By what comes, where nothing is said: this body never ends.
    let mut chunked = own.to_vec();
    chunked.push(("Transfer-Encoding", "chunked"));
    let mut stream = served.connect();
    stream.write_all(&served.head("PUT", "/api/captures/a.pcap", &chunked, None)).expect("room");
    let mut sent = 0;
    while sent < 50_000_000 && stream.write_all(&[b"1000\r\n", &[7; 0x1000][..], b"\r\n"].concat()).is_ok() {
        sent += 0x1000;
    }
    assert!(sent < 50_000_000, "it took all of it");
    drop(stream);
    // Just as much is taken.
    assert_eq!(served.ask("PUT", "/api/captures/b.pcap", &[7; 100_000]).status, 200);
    has_only(&served, &["b.pcap"]);
}

#[test]
fn an_upload_that_breaks_off_leaves_nothing() {
    let Some(served) = serve(Desk::new(), &[]) else { return };
    let origin = format!("http://{}", served.host);
    let own = [("Cookie", served.cookie.as_str()), ("Origin", origin.as_str())];
    let mut stream = served.connect();
    stream.write_all(&served.head("PUT", "/api/captures/a.pcap", &own, Some(1_000_000))).expect("room");
    stream.write_all(&[7; 300_000]).expect("room");
    // It is on its way when it stops.
    let start = Instant::now();
    while files(served.desk.path()).len() < 2 && start.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(served.captures(), Vec::<String>::new());
    drop(stream);
    has_only(&served, &[]);
    // More than was announced is not part of it.
    let mut longer = served.head("PUT", "/api/captures/b.pcap", &own, Some(1_000));
    longer.extend([7; 5_000]);
    assert_eq!(served.send(&longer).status, 200);
    assert_eq!(std::fs::read(served.desk.path().join("b.pcap")).expect("a file").len(), 1_000);
    has_only(&served, &["b.pcap"]);
}

/// Half a minute, most of it asleep.
#[test]
fn who_says_nothing_is_not_waited_for() {
    let Some(served) = serve(Desk::new(), &[]) else { return };
    let origin = format!("http://{}", served.host);
    let own = [("Cookie", served.cookie.as_str()), ("Origin", origin.as_str())];
    let mut silent = served.connect();
    let mut half = served.connect();
    half.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n").expect("room");
    let mut stuck = served.connect();
    stuck.write_all(&served.head("PUT", "/api/captures/a.pcap", &own, Some(1_000_000))).expect("room");
    stuck.write_all(&[7; 1_000]).expect("room");
    let start = Instant::now();
    let (silence, rest) = (Answer::read(&mut silent), Answer::read(&mut half));
    assert!(start.elapsed() < Duration::from_secs(15), "{silence:?} {rest:?}");
    let answer = Answer::read(&mut stuck);
    assert_eq!(answer.status, 408, "{answer:?}");
    assert!(start.elapsed() > Duration::from_secs(15) && start.elapsed() < Duration::from_secs(30));
    has_only(&served, &[]);
}

/// A folder on a disk of 300 KB, which only root can have.
#[test]
fn a_full_disk_is_said_and_leaves_nothing() {
    let desk = Desk::new();
    let mount = "mount -t tmpfs -o size=300k none captures && exec \"$0\" serve captures";
    std::fs::create_dir(desk.path().join("captures")).expect("a folder");
    let is_possible = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    if !is_possible.is_ok_and(|status| status.success()) {
        let _ = writeln!(std::io::stderr(), "SKIPPED a_full_disk: only root may mount a small one");
        return;
    }
    let mut command = Command::new("unshare");
    command.current_dir(desk.path()).args(["-m", "sh", "-c", mount, env!("CARGO_BIN_EXE_tcpwhy")]);
    let Some(served) = Served::start(desk, command) else { return };
    let answer = served.ask("PUT", "/api/captures/a.pcap", &[7; 400_000]);
    assert_eq!(answer.status, 507, "{answer:?}");
    assert!(answer.error().contains("full"), "{answer:?}");
    assert_eq!(served.captures(), Vec::<String>::new());
    // There is room again.
    assert_eq!(served.ask("PUT", "/api/captures/b.pcap", &healthy()).status, 200);
    assert_eq!(served.captures(), ["b.pcap"]);
}

#[test]
fn uploads_are_their_owners_alone_unless_others_are_named() {
    for (args, mode) in [(&[][..], 0o600), (&["--mode", "0640"], 0o640)] {
        let Some(served) = serve(Desk::new(), args) else { return };
        assert_eq!(served.ask("PUT", "/api/captures/a.pcap", &healthy()).status, 200);
        let metadata = std::fs::metadata(served.desk.path().join("a.pcap")).expect("a file");
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777, mode);
    }
}

/// What repaints a terminal, and what makes `exe.pcap` of `pcap.exe` for who reads it, is not kept.
#[test]
fn names_lose_what_cannot_be_seen_in_them() {
    let Some(served) = serve(Desk::new(), &[]) else { return };
    for (sent, kept) in [
        ("a%1b%5b2Jb%0a.pcap", "a[2Jb.pcap"),
        ("c%e2%80%aepacp.pcap", "cpacp.pcap"),
        ("%e2%81%a6d%e2%81%a9%c2%9b.pcap", "d.pcap"),
        ("na%c3%afve.pcap", "na\u{ef}ve.pcap"),
    ] {
        let answer = served.ask("PUT", &format!("/api/captures/{sent}"), &healthy());
        assert_eq!((answer.status, answer.json()["name"].as_str()), (200, Some(kept)), "{sent}: {answer:?}");
    }
    // Nor does a name that is none without them become a hidden file.
    for sent in ["%e2%80%ae", "%07.hidden.pcap", "%1b%1b.."] {
        assert_eq!(served.ask("PUT", &format!("/api/captures/{sent}"), &healthy()).status, 400, "{sent}");
    }
    has_only(&served, &["a[2Jb.pcap", "cpacp.pcap", "d.pcap", "na\u{ef}ve.pcap"]);
}
