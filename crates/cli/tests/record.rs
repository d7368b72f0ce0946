//! Recordings as files: `tcpwhy run --record FILE`, opened by `tcpwhy FILE`.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a test that skips itself says so")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tcpwhy_wire::calls::{Call, Calls, Kind, Place, Recording, Socket, head};
use tcpwhy_wire::container::{Origin, Writer};
use tempfile::TempDir;

/// Runs until a busy machine lets a program do two things at once.
const ATTEMPTS: usize = 5;

/// A folder with a program in it.
struct Desk(TempDir);

/// What a command printed, and how it ended.
struct Ran {
    status: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

impl Ran {
    fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("UTF-8")
    }
}

impl Desk {
    fn new(program: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/run/{program}.c"));
        let mut cc = Command::new("cc");
        cc.args(["-g", "-O1", "-pthread", "-w", "-o", "program"]).arg(source).current_dir(folder.path());
        assert!(cc.status().expect("cc is there, as for every Rust build").success());
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn tcpwhy(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        let Output { status, stdout, stderr } = command
            .args(arguments)
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs");
        Ran { status: status.code(), stdout, stderr: String::from_utf8(stderr).expect("UTF-8") }
    }

    /// Runs the program without packets and saves it.
    fn record(&self, file: &str) -> Ran {
        self.tcpwhy(&["run", "--no-capture", "--record", file, "--", "./program", "late"])
    }
}

/// What is in a recording concerns its owner, whatever the umask says, and a link leads it nowhere.
#[test]
fn a_recording_is_its_owners_alone_and_lies_where_it_is_named() {
    let desk = Desk::new("split");
    let run = |options: &[&str]| {
        let command = ["--", "./program", "late"];
        desk.tcpwhy(&[&["run", "--no-capture"], options, &command].concat())
    };
    let mode_of = |name: &str| fs::metadata(desk.path(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!(run(&["--record", "new.pcapng"]).status, Some(0));
    fs::write(desk.path("old.pcapng"), b"old").expect("room");
    assert_eq!(run(&["--record", "old.pcapng"]).status, Some(0));
    assert_eq!((mode_of("new.pcapng"), mode_of("old.pcapng")), (0o600, 0o600));
    assert_eq!(run(&["--record", "group.pcapng", "--mode", "640"]).status, Some(0));
    assert_eq!(mode_of("group.pcapng"), 0o640);
    symlink("target", desk.path("link")).expect("a link");
    for option in ["--record", "--output", "--html"] {
        let ran = run(&[option, "link"]);
        let is_unbuilt = ran.stderr.contains("was built without the page");
        assert!(
            ran.status == Some(2) && (is_unbuilt || ran.stderr.contains("symbolic link")),
            "{}",
            ran.stderr
        );
        assert!(!desk.path("target").exists(), "{option}");
    }
    // What the system calls by links stays what it is.
    assert!(run(&["--output", "/dev/stdout"]).text().contains("split-write"));
}

#[test]
fn what_run_printed_is_printed_again_without_the_program() {
    let desk = Desk::new("split");
    let ran = desk.record("calls.pcapng");
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("split.c:"), "{}", ran.stderr);
    fs::remove_file(desk.path("program")).expect("there");
    let again = desk.tcpwhy(&["calls.pcapng"]);
    assert_eq!((again.status, again.text()), (Some(0), ran.stderr));
    let failing = desk.tcpwhy(&["--fail-on", "split-write", "calls.pcapng"]);
    assert_eq!(failing.status, Some(1));
    // Calls alone show no window.
    let blind = desk.tcpwhy(&["--fail-on", "zero-window", "calls.pcapng"]);
    assert!(blind.status == Some(2) && blind.stderr.contains("nothing to judge"), "{}", blind.stderr);
}

#[test]
fn packets_are_saved_with_the_calls() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: packets are captured as root");
        return;
    }
    let desk = Desk::new("split");
    let ran = desk.tcpwhy(&["run", "--record", "both.pcapng", "--", "./program", "other-side"]);
    let again = desk.tcpwhy(&["both.pcapng"]);
    assert!(ran.stderr.contains("Where: split.c:"), "{}", ran.stderr);
    // But for the name of the capture all is the same; the file's is shorter than what stands for it.
    let lines = |text: &str| -> Vec<_> {
        text.lines().filter(|line| !line.contains("pcapng")).map(str::to_owned).collect()
    };
    assert_eq!(lines(&again.text()), lines(&ran.stderr));
    // Of all that passed meanwhile only the program's connection is there.
    let json: Value =
        serde_json::from_slice(&desk.tcpwhy(&["--format", "json", "both.pcapng"]).stdout).unwrap();
    assert_eq!(json["captures"][0]["connections"].as_array().unwrap().len(), 1);
    let sockets = json["captures"][0]["calls"]["sockets"].as_array().unwrap();
    let server = json["captures"][0]["connections"][0]["server"].as_str();
    assert!(sockets.iter().any(|socket| socket["local"].as_str() == server));
    let narrowed = desk.tcpwhy(&["--connection", "0", "both.pcapng"]);
    assert!(narrowed.text().contains("on 2 TCP sockets"), "{}", narrowed.text());
    let none = desk.tcpwhy(&["--port", "1", "both.pcapng"]);
    assert!(none.text().contains("on 0 TCP sockets"), "{}", none.text());
    tshark_counts(&desk.path("both.pcapng"), json["captures"][0]["packets"].as_u64().unwrap());
}

fn tshark_counts(file: &Path, packets: u64) {
    let Ok(output) = Command::new("tshark").args(["-n", "-r"]).arg(file).output() else {
        println!("skipped: no tshark");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8_lossy(&output.stdout).lines().count() as u64;
    assert_eq!(lines, packets, "{}", String::from_utf8_lossy(&output.stdout));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("tshark:"));
}

#[test]
fn json_is_one_object_with_both() {
    let desk = Desk::new("split");
    let options = ["run", "--no-capture", "--format", "json", "--record", "calls.pcapng"];
    let run = || {
        let ran = desk.tcpwhy(&[&options[..], &["--", "./program", "late"]].concat());
        serde_json::from_str::<Value>(&ran.stderr).expect("one object")
    };
    let mut report = run();
    // A program that a busy machine stops for 5 ms between two writes makes two messages of one.
    for _ in 1..ATTEMPTS {
        if report["captures"][0]["calls"]["sockets"][0]["messages"] == 5 {
            break;
        }
        report = run();
    }
    assert_valid(&report);
    let calls = &report["captures"][0]["calls"];
    let socket = &calls["sockets"][0];
    assert_eq!((&calls["fix"], &calls["programs"]), (&Value::Null, &1.into()));
    // The first answer is written before TCP_NODELAY is set.
    assert_eq!((&socket["split"], &socket["messages"]), (&5.into(), &5.into()));
    assert_eq!(socket["patterns"][0]["sizes"], serde_json::json!([10, 10, 10, 10, 10, 10]));
    let write = &socket["patterns"][0]["writes"][0];
    assert_eq!((&write["call"], &write["count"]), (&"send".into(), &6.into()));
    assert_eq!(write["stack"][0]["function"], "flush_chain");
    assert_eq!(
        (&socket["nodelay"]["state"], &socket["nodelay"]["writes_before"]),
        (&"set".into(), &6.into())
    );
    let mut again: Value =
        serde_json::from_slice(&desk.tcpwhy(&["--format", "json", "calls.pcapng"]).stdout).unwrap();
    again["captures"][0]["name"] = report["captures"][0]["name"].clone();
    assert_eq!(again, report);
    let both =
        ["run", "--no-capture", "--format", "json", "--fix", "nodelay", "--compare", "--", "./program"];
    let report: Value = serde_json::from_str(&desk.tcpwhy(&both).stderr).expect("one object");
    assert_valid(&report);
    assert_eq!(report["captures"][1]["calls"]["sockets"][0]["nodelay"]["state"], "fix");
}

#[test]
fn both_runs_of_a_comparison_are_saved() {
    let desk = Desk::new("split");
    let options = ["run", "--no-capture", "--fix", "nodelay", "--compare", "--record", "two.runs.pcapng"];
    let ran = desk.tcpwhy(&[&options[..], &["--", "./program", "other-side"]].concat());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nWith it, saved as two.runs-nodelay.pcapng:\n"), "{}", ran.stderr);
    for (file, fix) in [("two.runs.pcapng", Value::Null), ("two.runs-nodelay.pcapng", "nodelay".into())] {
        let shown = desk.tcpwhy(&["--format", "json", file]);
        let report: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        assert_eq!(report["captures"][0]["calls"]["fix"], fix, "{file}");
    }
    // Both are opened before anything is run.
    fs::create_dir(desk.path("x-nodelay.pcapng")).expect("a folder");
    let options = ["run", "--fix", "nodelay", "--compare", "--record", "x.pcapng", "--", "./program"];
    let ran = desk.tcpwhy(&options);
    assert_eq!((ran.status, &ran.stdout[..]), (Some(2), &b""[..]), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot write x-nodelay.pcapng"), "{}", ran.stderr);
}

#[track_caller]
fn assert_valid(report: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(path).expect("the schema")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a JSON Schema");
    let errors: Vec<_> = validator.iter_errors(report).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn where_it_cannot_be_written_nothing_is_run() {
    let desk = Desk::new("split");
    for (file, why) in [("nowhere/calls.pcapng", "No such file"), (".", "Is a directory")] {
        let ran = desk.record(file);
        assert_eq!((ran.status, ran.text().as_str()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
}

#[test]
fn a_full_disk_is_said_after_the_report() {
    let desk = Desk::new("split");
    let ran = desk.record("/dev/full");
    assert_eq!((ran.status, ran.text().as_str()), (Some(2), "its own output\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("split-write: 5 of 5 messages"), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot write /dev/full: No space left on device"), "{}", ran.stderr);
}

#[test]
fn an_existing_file_stays_until_there_is_a_recording() {
    let desk = Desk::new("split");
    fs::write(desk.path("calls.pcapng"), vec![b'x'; 1 << 20]).expect("room");
    let ran = desk.tcpwhy(&["run", "--no-capture", "--record", "calls.pcapng", "--", "./no-such-program"]);
    assert_eq!(ran.status, Some(2));
    assert_eq!(fs::metadata(desk.path("calls.pcapng")).expect("there").len(), 1 << 20);
    assert_eq!(desk.record("calls.pcapng").status, Some(0));
    assert!(fs::metadata(desk.path("calls.pcapng")).expect("there").len() < 1 << 20);
    assert_eq!(desk.tcpwhy(&["calls.pcapng"]).status, Some(0));
}

#[test]
fn standard_output_gets_it_behind_the_command_s() {
    let desk = Desk::new("split");
    let ran = desk.record("/dev/stdout");
    let own = b"its own output\n";
    assert!(ran.stdout.starts_with(own), "{}", ran.stderr);
    let file = fs::File::create(desk.path("both")).expect("room");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(["run", "--no-capture", "--record", "/dev/stdout", "--", "./program", "late"]);
    let status = command.current_dir(desk.0.path()).stdout(file).stderr(Stdio::null()).status();
    assert!(status.expect("the binary runs").success());
    for bytes in [ran.stdout, fs::read(desk.path("both")).expect("there")] {
        assert!(bytes.starts_with(own));
        fs::write(desk.path("calls.pcapng"), &bytes[own.len()..]).expect("room");
        assert!(desk.tcpwhy(&["calls.pcapng"]).text().contains("split-write: 5 of 5 messages"));
    }
}

#[test]
fn a_killed_program_leaves_a_whole_file() {
    let desk = Desk::new("killed");
    let ran = desk.record("calls.pcapng");
    assert_eq!(ran.status, Some(128 + 9), "{}", ran.stderr);
    assert_eq!(desk.tcpwhy(&["calls.pcapng"]).text(), ran.stderr);
}

#[test]
fn recordings_may_stand_one_behind_the_other_and_end_anywhere() {
    let desk = Desk::new("split");
    desk.record("calls.pcapng");
    let one = fs::read(desk.path("calls.pcapng")).expect("there");
    fs::write(desk.path("two.pcapng"), [one.as_slice(), &one].concat()).expect("room");
    let two = desk.tcpwhy(&["two.pcapng"]);
    assert!(two.text().contains("on 4 TCP sockets in 2 programs"), "{}", two.text());
    for len in [one.len() / 4, one.len() / 2, one.len() - 3] {
        fs::write(desk.path("cut.pcapng"), &one[..len]).expect("room");
        let cut = desk.tcpwhy(&["cut.pcapng"]);
        assert_eq!(cut.status, Some(0), "{}", cut.stderr);
        assert!(cut.text().contains("Cut short at byte"), "{}", cut.text());
    }
}

/// A recording of one split message, whose every text is hostile.
fn hostile() -> Vec<u8> {
    let text = "\u{1b}[2J\r\n\u{202e}evil\u{9b}31m".to_owned();
    let place =
        Place { function: text.clone(), file: text.clone(), line: 1, module: text.clone(), script: true };
    let send = |start| Call {
        kind: Kind::Send,
        process: 1,
        thread: 1,
        start,
        took: 1,
        socket: 1,
        asked: 9,
        result: 9,
        fd: 3,
        stack: 1,
        flags: 0,
    };
    let mut recording = Recording {
        calls: vec![send(5), send(6)],
        sockets: vec![Socket {
            cookie: 1,
            local: None,
            peer: None,
            nodelay: false,
            mss: 0,
            written: u64::MAX,
        }],
        places: BTreeMap::from([(1, vec![place.clone(), place])]),
        ..Recording::default()
    };
    recording.about.fix.clone_from(&text);
    recording.about.unseen.clone_from(&text);
    recording.about.recorder.clone_from(&text);
    recording.about.no_packets = text;
    let mut writer = Writer::new(Vec::new(), &Origin::default()).unwrap();
    head(&recording).iter().for_each(|body| writer.calls(body).unwrap());
    writer.calls(&Calls::new(&recording.calls).by(i64::MAX).unwrap()).unwrap();
    writer.finish().unwrap()
}

#[test]
fn hostile_texts_do_not_reach_the_terminal() {
    let desk = Desk::new("split");
    fs::write(desk.path("evil.pcapng"), hostile()).expect("room");
    for format in ["terminal", "json"] {
        let ran = desk.tcpwhy(&["--format", format, "evil.pcapng"]);
        assert!(ran.text().contains("evil"), "{}", ran.text());
        let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!ran.text().contains(acts), "{:?}", ran.text());
    }
}
