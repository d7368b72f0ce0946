//! `tcpwhy whatif`.

use std::path::{Path, PathBuf};

use crate::run::Desk;

/// A capture of the labelled corpus.
fn labelled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/corpus/{name}.pcapng.zst"))
}

fn asked(args: &[&str], name: &str) -> crate::run::Ran {
    let file = labelled(name);
    let mut all = vec!["whatif"];
    all.extend(args);
    all.push(file.to_str().expect("a path"));
    Desk::new().run(&all)
}

#[test]
fn the_best_fix_comes_first_with_its_price() {
    let ran = asked(&[], "split-request-20ms-client");
    assert_eq!(ran.status, Some(0));
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    // The label: 1,886 of 2,514 ms are saved, and an exchange takes 20 ms then.
    assert!(
        text.contains("One write for each message on the client, 10.0.1.1:39014, would have saved 1.87 s of"),
        "{text}"
    );
    assert!(text.contains("→ 20.1 ms), with 5") && text.contains(" % fewer packets."), "{text}");
    assert!(text.contains("nodelay, client 1.87 s"), "{text}");
}

#[test]
fn json_has_the_same_figures() {
    let report =
        asked(&["--format", "json", "--fix", "nodelay,sack"], "merged-by-round-trip-300ms-server").json();
    assert_eq!(report["format"], "tcpwhy-whatif/1");
    assert_eq!((&report["refused"], &report["kind"]), (&serde_json::Value::Null, &"updates".into()));
    let fix = &report["fixes"][0];
    assert_eq!((&fix["fix"], &fix["side"]), (&"nodelay".into(), &"server".into()));
    let saved = fix["saved_ms"].as_f64().expect("a number");
    // The label says 3,211.9 ms.
    assert!((3_000.0..3_450.0).contains(&saved), "{saved}");
    assert!(fix["more_packets"].as_i64() > Some(0), "{fix}");
    let idle = report["no_difference"].as_array().expect("a list");
    assert!(idle.iter().any(|one| one["fix"] == "sack"), "{idle:?}");
}

#[test]
fn a_poor_replay_gives_no_figures() {
    let ran = asked(&[], "late-window-20ms-offload-client");
    assert_eq!(ran.status, Some(0));
    assert!(ran.stdout.contains("No figures"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("saves"), "{}", ran.stdout);
    let report = asked(&["--format", "json"], "late-window-20ms-offload-client").json();
    assert!(report["refused"].is_string() && report["unchanged"].is_null(), "{report}");
    assert_eq!(report["fixes"].as_array().map(Vec::len), Some(0));
    let ran = asked(&[], "small-window-slow-reader-20ms-client");
    assert_eq!(ran.status, Some(0));
    assert!(ran.stdout.contains("stopped"), "{}", ran.stdout);
}

#[test]
fn connections_of_one_exchange_are_played_together() {
    let ran = asked(&["--fix", "keep-alive"], "connection-each-20ms-client");
    assert!(ran.stdout.contains("and 29 more"), "{}", ran.stdout);
    assert!(ran.stdout.contains("One connection for all requests would have saved 581 ms"), "{}", ran.stdout);
}

/// In a pause of 31 years timers expire more often than anybody wants to wait for.
#[test]
fn a_question_has_a_budget() {
    let capture = "\
2001-09-09 01:46:40.000000 IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [S], seq 100, win 65535, options [mss 1460], length 0
2001-09-09 01:46:40.010000 IP 10.0.0.2.80 > 10.0.0.1.4000: Flags [S.], seq 500, ack 101, win 65535, options [mss 1460], length 0
2001-09-09 01:46:40.011000 IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [.], ack 1, win 65535, length 0
2032-09-09 01:46:40.000000 IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [P.], seq 1:51, ack 1, win 65535, length 50
";
    let desk = Desk::new();
    desk.file("years.txt", capture.as_bytes());
    let ran = desk.run(&["whatif", "years.txt"]);
    assert_eq!(ran.status, Some(0));
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("its replays took more work than they may"), "{text}");
}

#[test]
fn what_cannot_be_asked_is_explained() {
    let desk = Desk::new();
    let unknown = desk.run(&["whatif", "--fix", "faster", "x.pcap"]);
    assert_eq!(unknown.status, Some(2));
    assert!(unknown.stderr.contains("no fix is called faster"), "{}", unknown.stderr);
    let number = desk.run(&["whatif", "--fix", "sndbuf", "x.pcap"]);
    assert!(number.stderr.contains("sndbuf=N"), "{}", number.stderr);
    let stdin = desk.run(&["whatif", "-"]);
    assert_eq!(stdin.status, Some(2));
    assert!(stdin.stderr.contains("twice"), "{}", stdin.stderr);
    let gone = desk.run(&["whatif", "nowhere.pcap"]);
    assert_eq!(gone.status, Some(2));
    assert!(gone.stderr.contains("no such file"), "{}", gone.stderr);
    let ran = asked(&["--connection", "7"], "split-request-20ms-client");
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("no TCP connection 7"), "{}", ran.stderr);
}
