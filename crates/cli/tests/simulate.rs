//! `tcpwhy simulate`: what it prints, keeps and draws, and what it says about mistakes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn tcpwhy(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(args).stdin(std::process::Stdio::null()).output().expect("the binary runs")
}

fn stdout(args: &[&str]) -> String {
    let output = tcpwhy(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[args, &["--format", "json"]].concat())).expect("JSON")
}

/// The one line that an error is said in.
fn complaint(args: &[&str]) -> String {
    let output = tcpwhy(args);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{args:?}: {output:?}");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    said
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path.to_string_lossy().into_owned()
}

#[test]
fn without_a_name_all_names_are_listed() {
    let list = stdout(&["simulate"]);
    for name in ["dsl-1998", "dsl-1998-table", "netrek-1995", "tail-loss", "linux-2.0", "windows-10"] {
        assert!(list.contains(name), "{name}: {list}");
    }
    let scenarios = json(&["simulate"]);
    assert!(scenarios["scenarios"].as_array().is_some_and(|all| all.len() >= 6), "{scenarios}");
}

/// The story of 1998, told by the simulator's own state and, of the packets alone, by the analysis.
#[test]
fn cardwells_transfer_is_told() {
    let result = json(&["simulate", "dsl-1998"]);
    assert_eq!(result["format"], "tcpwhy-simulate/1");
    let variants = result["result"]["variants"].as_array().expect("variants");
    let ms = |variant: usize, key: &str| variants[variant][key].as_f64().expect(key);
    assert!((1_900.0..2_600.0).contains(&ms(0, "finished_ms")), "{}", variants[0]);
    assert!((4_500.0..6_500.0).contains(&ms(1, "finished_ms")), "{}", variants[1]);
    assert!(ms(1, "recovery_ms") > 2_500.0, "{}", variants[1]);
    let rules = |variant: usize| -> Vec<&str> {
        let findings = variants[variant]["findings"].as_array().expect("findings");
        findings.iter().filter_map(|finding| finding["rule"].as_str()).collect()
    };
    assert_eq!(rules(1).first(), Some(&"late-hole-ack"), "{:?}", rules(1));
    assert!(!rules(0).contains(&"late-hole-ack"), "{:?}", rules(0));
    assert_eq!(variants[1]["findings"][0]["blame"], "client");
}

#[test]
fn the_terminal_says_the_seconds_first() {
    let text = stdout(&["simulate", "dsl-1998"]);
    let verdicts: Vec<_> = text.lines().filter(|line| line.contains("of it in fast recovery")).collect();
    assert!(verdicts.len() == 2 && verdicts[0].starts_with("at once: 2."), "{text}");
    assert!(verdicts[1].starts_with("late: "), "{text}");
    let only = stdout(&["simulate", "dsl-1998", "--variant", "late"]);
    assert!(!only.contains("at once: 2") && only.contains("late: "), "{only}");
}

#[test]
fn a_table_has_every_receiver_and_every_repair() {
    let result = json(&["simulate", "dsl-1998-table"]);
    let seconds = result["result"]["seconds"].as_object().expect("rows");
    assert_eq!(seconds.len(), 6);
    for (receiver, row) in seconds {
        for repair in ["Reno", "NewReno", "SACK", "SACK+TLP"] {
            let median = row[repair]["median"].as_f64().expect("seconds");
            assert!((1.8..10.0).contains(&median), "{receiver} {repair}: {median}");
        }
    }
    // What SACK saves where both have it, and what the old receiver costs.
    let median = |row: &str, column: &str| seconds[row][column]["median"].as_f64().expect("seconds");
    assert!(median("linux-6", "SACK") < median("linux-6", "Reno") - 1.0);
    let old = "NewReno, only repairs";
    assert!(median("linux-2.0", old) > median("linux-2.1", old) + 1.0);
}

#[test]
fn kept_packets_are_captures_that_the_analysis_reads_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept");
    stdout(&["simulate", "dsl-1998", "--keep", &kept.to_string_lossy()]);
    for name in ["at-once-client", "at-once-server", "late-client", "late-server"] {
        let path = kept.join(format!("{name}.pcapng"));
        let report = json(&[&path.to_string_lossy()]);
        let connections = report["captures"][0]["connections"].as_array().expect("connections");
        assert_eq!(
            (connections.len(), &connections[0]["bytes"]["to_client"]),
            (1, &Value::from(100_000)),
            "{name}"
        );
        wireshark_accepts(&path);
    }
    let late = json(&[&kept.join("late-server.pcapng").to_string_lossy()]);
    assert!(late.to_string().contains("late-hole-ack"), "{late}");
}

/// Wireshark's opinion of a capture: nothing malformed, no wrong checksum.
fn wireshark_accepts(path: &Path) {
    let mut command = Command::new("tshark");
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-r"]).arg(path);
    command.args(["-Y", "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 || _ws.expert.severity == error"]);
    match command.output() {
        Ok(output) if output.status.success() => assert!(output.stdout.is_empty(), "{output:?}"),
        // Straight to standard error, which shows it; eprintln! is kept from a passing test.
        _ => drop(writeln!(std::io::stderr(), "SKIPPED a look at {} with tshark: not here", path.display())),
    }
}

#[test]
fn plots_are_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, start) in [("x.svg", &b"<svg"[..]), ("x.png", &b"\x89PNG"[..])] {
        let path = folder.path().join(name);
        stdout(&["simulate", "dsl-1998", "--plot", &path.to_string_lossy()]);
        let picture = std::fs::read(&path).expect("a picture");
        assert!(picture.windows(start.len()).take(200).any(|window| window == start), "{name}");
    }
    let said = complaint(&["simulate", "dsl-1998", "--plot", "x.pdf"]);
    assert!(said.contains(".svg or .png"), "{said}");
}

#[test]
fn the_files_that_come_along_are_a_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = stdout(&["simulate", "--show", "tail-loss"]);
    let own = write(folder.path(), "own.toml", &text.replace("name = \"tail-loss\"", "seed = 3"));
    let result = json(&["simulate", &own]);
    assert_eq!(result["scenario"], "own");
    assert_eq!(result["result"], json(&["simulate", "tail-loss"])["result"]);
}

#[test]
fn time_can_be_limited() {
    let output = tcpwhy(&["simulate", "dsl-1998", "--variant", "late", "--max-time", "2s"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("not over when the time was up"), "{output:?}");
}

#[test]
fn scripts_of_packetdrill_run() {
    const SCRIPT: &str = "
   0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
  +0 bind(3, ..., ...) = 0
  +0 listen(3, 1) = 0
  +0 < S 0:0(0) win 32792 <mss 1000>
  +0 > S. 0:0(0) ack 1 <...>
 +.1 < . 1:1(0) ack 1 win 32792
  +0 accept(3, ..., ...) = 4
  +0 write(4, ..., 1000) = 1000
  +0 > P. 1:1001(1000) ack 1
";
    let folder = tempfile::tempdir().expect("a folder");
    let good = write(folder.path(), "good.pkt", SCRIPT);
    assert!(stdout(&["simulate", &good]).contains("passed"));
    let bad = write(folder.path(), "bad.pkt", &SCRIPT.replace("1:1001(1000)", "1:901(900)"));
    let output = tcpwhy(&["simulate", &bad]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("failed"), "{output:?}");
    let broken = write(folder.path(), "broken.pkt", "0 socket(\n");
    let said = complaint(&["simulate", &broken]);
    assert!(said.contains("broken.pkt: line "), "{said}");
}

#[test]
fn mistakes_are_said_in_one_line_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let typo = write(folder.path(), "typo.toml", "[client]\nstak = \"linux-6\"\n");
    let hostile = write(folder.path(), "h.toml", "\u{1b}[31m = 1\n[client]\nstack = \"\u{1b}[31mred\"\n");
    for (args, said) in [
        (&["simulate", "dls-1998"][..], "is it dsl-1998?"),
        (&["simulate", "none.toml"], "none.toml: "),
        (&["simulate", &typo], "line 2: unknown field `stak`, expected"),
        (&["simulate", "dsl-1998", "--variant", "early"], "at once, late"),
        (&["simulate", "dsl-1998-table", "--keep", "x"], "--keep, --plot and --html need"),
        (&["simulate", "dsl-1998", "--max-time", "100000s"], "more than a day"),
        (&["simulate", &hostile], "line 1"),
    ] {
        let complaint = complaint(args);
        assert!(complaint.contains(said) && !complaint.contains('\u{1b}'), "{args:?}: {complaint}");
    }
}

/// File names are bytes; JSON is not.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_no_text_are_told_as_well_as_they_can() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().expect("a folder");
    let run = |args: &[&OsStr]| -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
            .arg("simulate")
            .args(args)
            .args(["--format", "json"])
            .output()
            .expect("the binary runs");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let script = folder.path().join(OsStr::from_bytes(b"a\xff.pkt"));
    std::fs::write(&script, "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n").expect("a file");
    let told = run(&[script.as_os_str()]);
    assert!(told["script"].as_str().is_some_and(|name| name.ends_with("a\u{fffd}.pkt")), "{told}");

    let kept = folder.path().join(OsStr::from_bytes(b"k\xff"));
    let told = run(&[OsStr::new("tail-loss"), OsStr::new("--keep"), kept.as_os_str()]);
    let first = &told["result"]["variants"][0]["kept"][0];
    assert!(first.as_str().is_some_and(|name| name.contains("k\u{fffd}")), "{told}");
}
