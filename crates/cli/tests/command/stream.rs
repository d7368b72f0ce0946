//! `tcpdump -w - | tcpwhy -`: a report at the end of the stream, or at Ctrl-C.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use crate::capture::{connections, write_write_read};
use crate::run::{Desk, Ran};

fn spawn(desk: &Desk) -> Child {
    desk.command()
        .args(["--format", "json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

#[test]
fn the_report_comes_at_the_end_of_the_stream() {
    let desk = Desk::new();
    let capture = write_write_read();
    // In the middle of a packet record.
    let (first, rest) = capture.split_at(capture.len() / 2 + 5);
    let mut child = spawn(&desk);
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(first).expect("a reader");
    assert!(child.try_wait().expect("a child").is_none(), "it waits for the rest");
    stdin.write_all(rest).expect("a reader");
    drop(stdin);
    let ran = Ran::from(child.wait_with_output().expect("the binary ends"));
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    let capture = &ran.json()["captures"][0];
    assert_eq!(capture["packets"], 87);
    assert_eq!(capture["notes"], serde_json::json!([]));
}

#[test]
fn text_is_read_from_standard_input_too() {
    let desk = Desk::new();
    let mut child = spawn(&desk);
    let mut stdin = child.stdin.take().expect("a pipe");
    let lines = "Look at this:\n\
        21:02:34.000000 a.1033 > b.80: P 1:101(100) ack 1 win 32120 (DF)\n\
        21:02:34.041000 b.80 > a.1033: . ack 101 win 32120 (DF)\n";
    stdin.write_all(lines.as_bytes()).expect("a reader");
    drop(stdin);
    let ran = Ran::from(child.wait_with_output().expect("the binary ends"));
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.json()["captures"][0]["packets"], 2);
}

#[cfg(unix)]
fn interrupt(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_child(child), Signal::INT).expect("a running child");
}

/// More than a pipe holds: once it is written, the child is reading and listens for Ctrl-C.
#[cfg(unix)]
fn feed(child: &mut Child) -> (std::process::ChildStdin, u64) {
    let capture = connections(1_000);
    assert!(capture.len() > 4 * (64 << 10));
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(&capture).expect("a reader");
    (stdin, 8_000)
}

#[cfg(unix)]
#[test]
fn ctrl_c_brings_the_report_though_the_stream_stays_open() {
    let desk = Desk::new();
    let mut child = spawn(&desk);
    let (stdin, packets) = feed(&mut child);
    interrupt(&child);
    // The pipe still has a writer: only the signal can end the child.
    let mut stdout = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut stdout).expect("UTF-8");
    let status = child.wait().expect("the binary ends").code();
    drop(stdin);
    assert_eq!(status, Some(0), "{stdout}");
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["captures"][0]["packets"], packets);
    let notes = report["captures"][0]["notes"].to_string();
    assert!(notes.contains("Ctrl-C"), "{notes}");
}

#[cfg(unix)]
#[test]
fn a_second_ctrl_c_quits_at_once() {
    let desk = Desk::new();
    let mut child = spawn(&desk);
    let (stdin, _) = feed(&mut child);
    // Two signals sent at once may arrive as one, so keep pressing.
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        interrupt(&child);
    };
    drop(stdin);
    assert_eq!(status.code(), Some(130));
}

/// A flood of connections fills no memory: the report comes, says what is not in it, and numbers what is as the capture does.
#[test]
fn connections_beyond_the_memory_are_closed_early() {
    let desk = Desk::new();
    desk.file("large.pcap", &connections(40_000));
    let whole = desk.run(&["--format", "json", "large.pcap"]).json();
    let bounded = desk.run(&["--memory", "8MB", "--format", "json", "large.pcap"]).json();
    let [whole, bounded] = [&whole["captures"][0], &bounded["captures"][0]];
    let connections =
        |capture: &serde_json::Value| capture["connections"].as_array().expect("a list").clone();
    let (all, kept) = (connections(whole), connections(bounded));
    assert!((1_000..20_000).contains(&kept.len()), "{}", kept.len());
    let said = format!("{} connections were forgotten", all.len() - kept.len());
    assert!(bounded["notes"][0].as_str().is_some_and(|note| note.starts_with(&said)), "{}", bounded["notes"]);
    for connection in &kept {
        let number = connection["id"].as_u64().expect("a number") as usize;
        assert_eq!(connection["client"], all[number]["client"]);
    }
    // Their time is in the sums.
    assert_eq!(bounded["packets"], whole["packets"]);
    for (line, ms) in whole["ledger_ms"].as_object().expect("an object") {
        let of = |ms: &serde_json::Value| ms.as_f64().expect("a number");
        assert!((of(ms) - of(&bounded["ledger_ms"][line])).abs() < 1e-3, "{line}: {ms}");
    }
}
