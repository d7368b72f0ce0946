//! 0: analysed. 1: --fail-on found it. 2: usage, or an input that cannot be read or has nothing to tell of.

use std::io::Write;

use crate::capture::{connections, datagrams, healthy, no_packets, write_write_read};
use crate::run::Desk;

#[test]
fn a_capture_that_can_be_read_is_0() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let ran = desk.run(&["slow.pcap"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stdout.contains("10.0.0.2:8080"), "{ran:?}");
}

#[test]
fn no_arguments_teach() {
    let ran = Desk::new().run(&[]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("tcpwhy slow.pcap") && ran.stderr.contains("| tcpwhy -"), "{ran:?}");
}

#[test]
fn help_is_short_or_long() {
    let desk = Desk::new();
    let (short, long) = (desk.run(&["-h"]), desk.run(&["--help"]));
    assert_eq!((short.status, long.status), (Some(0), Some(0)));
    assert!(short.stdout.lines().count() <= 40, "{}", short.stdout);
    assert!(long.stdout.contains("Exit status:") && !short.stdout.contains("Exit status:"));
}

/// Every way in which an input can be no input: the status is 2, and the line says what to do.
#[test]
fn what_cannot_be_read_is_said_in_one_line() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path().join("folder")).expect("a folder");
    desk.file("empty.pcap", b"");
    desk.file("program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
    desk.file("letter.txt", b"Dear all,\n\nthe network is slow again.\n");
    desk.file("noise", &[0xfe; 5_000]);
    for (name, said) in [
        ("nowhere.pcap", "no such file"),
        ("folder", "is a directory"),
        ("empty.pcap", "empty"),
        ("program", "a program, not a capture"),
        ("letter.txt", "neither a capture"),
        ("noise", "neither a capture"),
    ] {
        let ran = desk.run(&[name]);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{name}: {ran:?}");
        assert!(ran.stderr.starts_with(&format!("tcpwhy: {name}: ")), "{name}: {ran:?}");
        assert!(ran.stderr.contains(said), "{name}: {ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{name}: {ran:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_forbidden_file_is_said() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let path = desk.file("root.pcap", &healthy());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).expect("changed permissions");
    if std::fs::File::open(&path).is_ok() {
        // Straight to standard error, which shows it; eprintln! is kept from a passing test.
        let _ = writeln!(std::io::stderr(), "SKIPPED a_forbidden_file_is_said: root may read every file");
        return;
    }
    let ran = desk.run(&["root.pcap"]);
    assert_eq!(ran.status, Some(2), "{ran:?}");
    assert!(ran.stderr.starts_with("tcpwhy: root.pcap: permission denied"), "{ran:?}");
}

#[test]
fn one_unreadable_file_does_not_hide_the_others() {
    let desk = Desk::new();
    desk.file("a.pcap", &healthy());
    desk.file("b.pcap", &write_write_read());
    let ran = desk.run(&["--format", "json", "a.pcap", "nowhere.pcap", "b.pcap"]);
    assert_eq!(ran.status, Some(2), "{ran:?}");
    assert_eq!(ran.stderr, "tcpwhy: nowhere.pcap: no such file\n");
    let names: Vec<_> =
        ran.json()["captures"].as_array().expect("captures").iter().map(|c| c["name"].clone()).collect();
    assert_eq!(names, ["a.pcap", "b.pcap"]);
}

#[test]
fn a_file_cut_short_is_analysed_up_to_there() {
    let desk = Desk::new();
    let whole = write_write_read();
    desk.file("cut.pcap", &whole[..whole.len() - 30]);
    let ran = desk.run(&["--format", "json", "cut.pcap"]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let capture = &ran.json()["captures"][0];
    // 3 for the handshake, 20 x 4 for the requests, the last ACK, FIN and FIN; the final ACK is lost.
    assert_eq!(capture["packets"], 86);
    let notes = capture["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains("byte"))), "{notes:?}");
}

#[test]
fn fail_on_is_1_where_it_finds_its_rule() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    desk.file("well.pcap", &healthy());
    for (args, status) in [
        (["--fail-on=nagle-delayed-ack", "slow.pcap"], 1),
        (["--fail-on=zero-window,nagle-delayed-ack", "slow.pcap"], 1),
        (["--fail-on=problem", "slow.pcap"], 1),
        (["--fail-on=zero-window", "slow.pcap"], 0),
        (["--fail-on=problem", "well.pcap"], 0),
    ] {
        let ran = desk.run(&args);
        assert_eq!(ran.status, Some(status), "{args:?}: {ran:?}");
        assert!(!ran.stdout.is_empty(), "the report is printed all the same: {ran:?}");
    }
    let ran = desk.run(&["--fail-on=problem", "nowhere.pcap", "slow.pcap"]);
    assert_eq!(ran.status, Some(2), "an unreadable input weighs more: {ran:?}");
}

#[test]
fn an_unknown_rule_is_wrong_usage_and_the_nearest_is_named() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let ran = desk.run(&["--fail-on", "nagel-delayed-ack", "slow.pcap"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("nagle-delayed-ack"), "{ran:?}");
    let ran = desk.run(&["explain", "zero-windows"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("zero-window"), "{ran:?}");
}

#[test]
fn a_connection_that_is_not_there_is_said() {
    let desk = Desk::new();
    desk.file("three.pcap", &connections(3));
    let ran = desk.run(&["--connection", "1", "--format", "json", "three.pcap"]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let ids: Vec<_> = ran.json()["captures"][0]["connections"]
        .as_array()
        .expect("connections")
        .iter()
        .map(|c| c["id"].clone())
        .collect();
    assert_eq!(ids, [1]);
    let ran = desk.run(&["--connection", "3", "three.pcap"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert_eq!(ran.stderr, "tcpwhy: three.pcap: no connection 3, try 0 to 2\n");
}

/// One line with the file's name that says what to try, and status 2: with a gate and without.
#[track_caller]
fn assert_nothing(desk: &Desk, args: &[&str], name: &str, said: &str) {
    for gate in [&[][..], &["--fail-on", "problem"], &["--fail-on", "zero-window"]] {
        let ran = desk.run(&[gate, args, &[name]].concat());
        assert_eq!(ran.status, Some(2), "{gate:?} {ran:?}");
        assert!(ran.stderr.starts_with(&format!("tcpwhy: {name}: ")) && ran.stderr.contains(said), "{ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    }
}

#[test]
fn no_gate_passes_on_nothing() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    desk.file("none.pcap", &no_packets());
    // In the middle of its first packet.
    desk.file("cut.pcap", &healthy()[..50]);
    desk.file("mail.txt", b"21:02:34.000000 a.1033 > b.80: P 1:101(100) ack 1 win 32120 (DF)\n");
    assert_nothing(&desk, &[], "none.pcap", "no packet in it: tcpdump");
    assert_nothing(&desk, &["--port", "80"], "none.pcap", "no packet in it: tcpdump");
    assert_nothing(&desk, &[], "cut.pcap", "no packet in it: tcpdump");
    assert_nothing(&desk, &["--port", "81"], "slow.pcap", "nothing with port 81 among its 87 packets: ");
    assert_nothing(&desk, &["--host", "10.9.9.9,c"], "slow.pcap", "nothing with host 10.9.9.9 or c among ");
    assert_nothing(&desk, &["--port", "81", "--connection", "0"], "slow.pcap", "nothing with port 81");
    assert_nothing(&desk, &["--host", "c"], "mail.txt", "nothing with host c among its 1 packet");
}

#[test]
fn datagrams_have_a_report_but_pass_no_gate() {
    let desk = Desk::new();
    desk.file("udp.pcap", &datagrams());
    let ran = desk.run(&["udp.pcap"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    for (rule, status) in [("problem", 2), ("zero-window", 2), ("uneven-cadence", 0)] {
        let ran = desk.run(&["--fail-on", rule, "udp.pcap"]);
        assert_eq!(ran.status, Some(status), "{rule}: {ran:?}");
        assert_eq!(ran.stderr.contains("no TCP packet in it"), status == 2, "{ran:?}");
    }
}

#[test]
fn a_gate_that_judges_one_file_still_tells_of_the_empty_one() {
    let desk = Desk::new();
    desk.file("well.pcap", &healthy());
    desk.file("none.pcap", &no_packets());
    let ran = desk.run(&["--fail-on", "problem", "--format", "json", "well.pcap", "none.pcap"]);
    assert_eq!(ran.status, Some(2), "{ran:?}");
    assert_eq!(ran.json()["captures"].as_array().map(Vec::len), Some(1), "{ran:?}");
    let ran = desk.run(&["--fail-on", "problem", "--format", "junit", "well.pcap", "none.pcap"]);
    assert!(ran.stdout.contains("<error message=\"no packet in it"), "{ran:?}");
    let ran = desk.run(&["--fail-on", "problem", "--format", "junit", "--port", "81", "well.pcap"]);
    assert!(ran.status == Some(2) && !ran.stdout.contains("failures=\"0\" errors=\"0\""), "{ran:?}");
}

#[test]
fn one_capture_of_a_text_is_enough() {
    let desk = Desk::new();
    let packet = |time: &str, server: &str| {
        format!("{time} a.1033 > {server}.80: P 1:101(100) ack 1 win 32120 (DF)\n")
    };
    let text = format!("One:\n{}\nTwo:\n{}", packet("21:02:34.000000", "b"), packet("21:03:35.000000", "c"));
    desk.file("mail.txt", text.as_bytes());
    let ran = desk.run(&["--format", "junit", "--fail-on", "problem", "--host", "c", "mail.txt"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(
        ran.stdout.matches("<testsuite ").count(),
        1,
        "what was not asked for passes nothing: {ran:?}"
    );
}
