//! What tcpwhy says of the captures in examples/. The expectations were worked out by hand from the packet lines;
//! the snapshots hold the wording.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn run(name: &str, format: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .env_remove("CLICOLOR_FORCE")
        .env_remove("COLUMNS")
        .args(["--color", "never", "--format", format])
        .arg(example(name))
        .output()
        .expect("the binary that was just built runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn captures(name: &str) -> Vec<Value> {
    let report: Value = serde_json::from_str(&run(name, "json")).expect("JSON");
    report["captures"].as_array().expect("captures").clone()
}

fn findings<'a>(capture: &'a Value, rule: &str) -> Vec<&'a Value> {
    let all = capture["findings"].as_array().expect("findings");
    all.iter().filter(|finding| finding["rule"] == rule).collect()
}

fn rules<'a>(capture: &'a Value, severity: &str) -> Vec<&'a str> {
    let all = capture["findings"].as_array().expect("findings");
    all.iter()
        .filter(|finding| finding["severity"] == severity)
        .filter_map(|finding| finding["rule"].as_str())
        .collect()
}

fn ms(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Updates of 12 bytes written every 100 ms leave two at a time, each pair on the heels of an ACK 200 ms later.
fn assert_ten_updates_over_tcp(capture: &Value) {
    let connection = &capture["connections"][0];
    assert_eq!(connection["server"], "nestor:4566");
    assert_eq!(connection["vantage"], "server", "nestor reacts within the tick of its clock, ten times");
    let ledger = &connection["ledger_ms"];
    let held = ms(&ledger["nagle"]) + ms(&ledger["delayed-ack"]);
    assert!(held >= ms(&connection["duration_ms"]) / 2.0, "{ledger}");
    let merged = findings(capture, "merged-updates");
    assert_eq!(merged.len(), 1);
    assert_eq!(merged[0]["blame"]["address"], "nestor:4566");
    let summary = merged[0]["summary"].as_str().expect("a sentence");
    for figure in ["12-byte updates", "about every 200 ms", "delayed ACK, typically 200 ms"] {
        assert!(summary.contains(figure), "{summary}");
    }
    let period = summary.split("writes about every ").nth(1).and_then(|rest| rest.split(" ms").next());
    let period: f64 = period.and_then(|period| period.parse().ok()).expect("the program's period");
    assert!((90.0..=110.0).contains(&period), "{summary}");
}

/// Each update leaves when it is written; the ACKs come 160 ms later and release nothing.
fn assert_five_updates_over_tcp(capture: &Value) {
    assert_eq!(rules(capture, "problem"), [""; 0]);
    assert_eq!(rules(capture, "advice"), [""; 0]);
    assert!(rules(capture, "note").iter().all(|rule| !rule.contains("nagle")));
    assert_eq!(findings(capture, "harmless-delayed-ack").len(), 1);
    let cadence = &capture["connections"][0]["cadence"][0];
    assert!((ms(&cadence["period_ms"]) - 200.0).abs() < 5.0, "{cadence}");
}

fn assert_ten_even_updates(capture: &Value) {
    assert_eq!(rules(capture, "problem"), [""; 0]);
    let cadence = &capture["connections"][0]["cadence"][0];
    assert_eq!(cadence["from"], "server");
    assert!((ms(&cadence["per_second"]) - 10.0).abs() < 0.1, "{cadence}");
    assert!(ms(&cadence["evenness"]) > 0.95, "{cadence}");
}

#[test]
fn netrek_over_tcp_at_ten_updates_a_second_is_held_by_nagle() {
    assert_ten_updates_over_tcp(&captures("netrek-tcp-10.txt")[0]);
    insta::assert_snapshot!(run("netrek-tcp-10.txt", "terminal"));
}

#[test]
fn netrek_over_tcp_at_five_updates_a_second_is_innocent() {
    assert_five_updates_over_tcp(&captures("netrek-tcp-5.txt")[0]);
    insta::assert_snapshot!(run("netrek-tcp-5.txt", "terminal"));
}

#[test]
fn netrek_over_udp_is_even() {
    assert_ten_even_updates(&captures("netrek-udp-10.txt")[0]);
    insta::assert_snapshot!(run("netrek-udp-10.txt", "terminal"));
}

#[test]
fn netrek_with_nodelay_is_even() {
    let captures = captures("netrek-patched-10.txt");
    assert_ten_even_updates(&captures[0]);
    // 20 updates one way, and an ACK for every second of them the other.
    assert!(findings(&captures[0], "ack-chatter").is_empty());
    insta::assert_snapshot!(run("netrek-patched-10.txt", "terminal"));
}

#[test]
fn a_pasted_mail_is_four_captures() {
    let captures = captures("netrek-mail.txt");
    assert_eq!(captures.len(), 4);
    assert_ten_updates_over_tcp(&captures[0]);
    assert_five_updates_over_tcp(&captures[1]);
    assert_ten_even_updates(&captures[2]);
    assert_ten_even_updates(&captures[3]);
}

/// SYN at .105835, ACK at .113288: 7.453 ms of 33.966. Then three stops with 2,896 bytes outstanding or 424 bytes of
/// room: .113625 to .120443, .120695 to .127322, .127370 to .132814, 18.889 ms in all.
#[test]
fn the_upload_waits_for_a_window_of_two_segments() {
    let captures = captures("upload-10010.txt");
    let connection = &captures[0]["connections"][0];
    let ledger = &connection["ledger_ms"];
    assert!((7.3..=7.6).contains(&ms(&ledger["handshake"])), "{ledger}");
    assert!((ms(&ledger["rwnd"]) - 18.889).abs() < 0.01, "{ledger}");
    assert_eq!(connection["vantage"], "server");
    let window = findings(&captures[0], "small-receive-window");
    assert_eq!(window.len(), 1);
    assert_eq!(window[0]["blame"]["side"], "server");
    assert!(
        window[0]["summary"].as_str().expect("a sentence").contains("2,896 bytes, 2 segments a round trip")
    );
    assert_eq!(findings(&captures[0], "ack-chatter").len(), 1);
    assert_eq!(rules(&captures[0], "problem"), ["small-receive-window"]);
    insta::assert_snapshot!(run("upload-10010.txt", "terminal"));
}

#[test]
fn four_segments_are_too_little_to_judge() {
    let captures = captures("ecn-cwr.txt");
    assert_eq!(captures[0]["packets"], 4);
    assert_eq!(rules(&captures[0], "problem"), [""; 0]);
    let shown = run("ecn-cwr.txt", "terminal");
    assert!(shown.contains("Too little to judge"), "{shown}");
    insta::assert_snapshot!(shown);
}
