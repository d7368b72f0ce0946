//! What is printed, and to whom.

use std::path::Path;
use std::process::Stdio;

use crate::capture::{SERVER_PORT, connections, healthy, write_write_read};
use crate::run::{Desk, Ran};

const ESCAPE: char = '\x1b';

#[track_caller]
pub(crate) fn assert_valid(report: &serde_json::Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    let schema = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let schema = serde_json::from_str(&schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is a JSON Schema");
    let errors: Vec<_> = validator.iter_errors(report).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn json_keeps_its_promise() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    desk.file("many.pcap", &connections(12));
    let ran = desk.run(&["--format", "json", "slow.pcap", "many.pcap"]);
    let report = ran.json();
    assert_valid(&report);
    assert_eq!(report["format"], "tcpwhy-report/2");
    // --top is for people.
    assert_eq!(report["captures"][1]["connections"].as_array().map(Vec::len), Some(12));
    let rules: Vec<_> = report["captures"][0]["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|f| f["rule"].clone())
        .collect();
    assert!(rules.contains(&"split-write".into()), "{rules:?}");
}

#[test]
fn no_file_read_is_still_a_report_for_programs() {
    let ran = Desk::new().run(&["--format", "json", "nowhere.pcap"]);
    assert_eq!(ran.status, Some(2));
    let report = ran.json();
    assert_valid(&report);
    assert_eq!(report["captures"].as_array().map(Vec::len), Some(0));
}

#[test]
fn colour_is_for_terminals_and_for_those_who_ask() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let run = |variable: Option<(&str, &str)>, args: &[&str]| {
        let mut command = desk.command();
        command.envs(variable).args(args).arg("slow.pcap");
        Ran::from(command.output().expect("the binary runs")).stdout.contains(ESCAPE)
    };
    assert!(!run(None, &[]));
    assert!(run(None, &["--color", "always"]));
    assert!(run(Some(("CLICOLOR_FORCE", "1")), &[]));
    assert!(!run(Some(("CLICOLOR_FORCE", "1")), &["--color", "never"]));
    assert!(!run(Some(("NO_COLOR", "1")), &[]));
    assert!(run(Some(("NO_COLOR", "1")), &["--color", "always"]));
}

#[test]
fn eighty_columns_are_enough() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let ran = desk.run(&["slow.pcap"]);
    for line in ran.stdout.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[cfg(unix)]
#[test]
fn hostile_file_names_do_not_reach_the_terminal() {
    let desk = Desk::new();
    let name = "a\x1b]0;owned\x07\n\u{202e}b.pcap";
    for (name, content) in [(name, write_write_read()), ("\x1b[2Jc.pcap", b"no capture".to_vec())] {
        desk.file(name, &content);
        let ran = desk.run(&[name]);
        for text in [&ran.stdout, &ran.stderr] {
            let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(obeyed), "{text:?}");
            assert!(!text.contains("\nb.pcap"), "{text:?}");
        }
    }
    let ran = desk.run(&["--\x1b[2J"]);
    assert_eq!(ran.status, Some(2));
    assert!(!ran.stderr.contains(ESCAPE), "{ran:?}");
}

#[test]
fn hosts_and_ports_narrow_down() {
    let desk = Desk::new();
    desk.file("three.pcap", &connections(3));
    let count = |args: &[&str]| {
        let mut all = vec!["--format", "json", "three.pcap"];
        all.extend(args);
        let ran = desk.run(&all);
        let count = ran.json()["captures"][0]["connections"].as_array().map(Vec::len);
        assert_eq!(ran.status, Some(if count == Some(0) { 2 } else { 0 }), "{ran:?}");
        count
    };
    assert_eq!(count(&["--port", &SERVER_PORT.to_string()]), Some(3));
    assert_eq!(count(&["--port", "20001"]), Some(1));
    assert_eq!(count(&["--port", "20001,20002"]), Some(2));
    assert_eq!(count(&["--port", "443"]), Some(0));
    assert_eq!(count(&["--host", "10.0.0.2", "--port", "20000"]), Some(1));
    assert_eq!(count(&["--host", "10.0.0.9"]), Some(0));
}

/// Two runs of tcpdump in a letter.
const LETTER: &str = "\
The first try:

21:02:34.000000 nestor.1033 > server.80: P 1:101(100) ack 1 win 32120 (DF)
21:02:34.041000 server.80 > nestor.1033: . ack 101 win 32120 (DF)
21:02:35.000000 ajax.1034 > server.80: P 1:101(100) ack 1 win 32120 (DF)
21:02:35.041000 server.80 > ajax.1034: . ack 101 win 32120 (DF)

And again on the next day:

21:02:34.000000 ajax.1035 > server.80: P 1:101(100) ack 1 win 32120 (DF)
";

#[test]
fn a_text_is_as_many_captures_as_it_has_blocks() {
    let desk = Desk::new();
    desk.file("letter.txt", LETTER.as_bytes());
    let connections = |args: &[&str]| -> Vec<(String, u64, usize)> {
        let mut all = vec!["--format", "json", "letter.txt"];
        all.extend(args);
        let report = desk.run(&all).json();
        let captures = report["captures"].as_array().expect("captures").iter();
        let count = |capture: &serde_json::Value| capture["connections"].as_array().map_or(0, Vec::len);
        captures
            .map(|capture| {
                let name = capture["name"].as_str().expect("a name").trim_end_matches(':').to_owned();
                (name, capture["packets"].as_u64().expect("a number"), count(capture))
            })
            .collect()
    };
    let named = |counts: [usize; 2]| {
        vec![
            ("The first try".to_owned(), 4, counts[0]),
            ("And again on the next day".to_owned(), 1, counts[1]),
        ]
    };
    assert_eq!(connections(&[]), named([2, 1]));
    assert_eq!(connections(&["--host", "ajax"]), named([1, 1]));
    assert_eq!(connections(&["--host", "nestor"]), named([1, 0]));
    assert_eq!(connections(&["--host", "nest"]), named([0, 0]));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let desk = Desk::new();
    desk.file("many.pcap", &connections(2_000));
    let mut child = desk
        .command()
        .args(["--format", "json", "many.pcap"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().expect("the binary ends"));
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    for args in [["slow.pcap"].as_slice(), &["--format", "json", "slow.pcap"], &["rules"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
        let ran = Ran::from(desk.command().args(args).stdout(full).output().expect("the binary runs"));
        assert_eq!(ran.status, Some(2), "{ran:?}");
        assert!(ran.stderr.starts_with("tcpwhy: the result cannot be written: "), "{ran:?}");
    }
}

#[test]
fn every_rule_can_be_listed_and_explained() {
    let desk = Desk::new();
    let rules = desk.run(&["rules", "--format", "json"]).json();
    let names: Vec<_> = rules["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|rule| rule["name"].as_str().expect("a name").to_owned())
        .collect();
    assert!(names.len() > 10, "{names:?}");
    let (listed, explained) = (desk.run(&["rules"]), desk.run(&["explain"]));
    for name in &names {
        assert!(listed.stdout.contains(name) && explained.stdout.contains(name), "{name}");
        let ran = desk.run(&["explain", name]);
        assert_eq!(ran.status, Some(0), "{ran:?}");
        assert!(ran.stdout.contains("What to do"), "{name}: {ran:?}");
    }
}

#[test]
fn completions_and_manual_come_from_the_command_line_itself() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = desk.run(&["completions", shell]);
        assert!(ran.status == Some(0) && ran.stdout.contains("fail-on"), "{shell}: {ran:?}");
    }
    let page = desk.run(&["man"]).stdout;
    assert!(page.contains(".TH tcpwhy 1") && page.contains("fail\\-on"), "{page}");
    assert!(desk.run(&["man", "explain"]).stdout.contains("tcpwhy-explain"));
    assert_eq!(desk.run(&["man", "nothing"]).status, Some(2));
}

#[test]
fn healthy_traffic_is_called_healthy() {
    let desk = Desk::new();
    desk.file("well.pcap", &healthy());
    let report = desk.run(&["--format", "json", "well.pcap"]).json();
    let findings = report["captures"][0]["findings"].as_array().expect("findings");
    assert!(findings.iter().all(|finding| finding["severity"] != "problem"), "{findings:#?}");
}
