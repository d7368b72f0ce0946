//! Both sides of a proxy, in two captures and in one: tests/relay/README.md says how they were made, and what the programs
//! logged.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::capture::write_write_read;
use crate::output::assert_valid;
use crate::run::{Desk, Ran};

fn run(args: &[&str]) -> Ran {
    let mut command = Desk::new().command();
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/relay"));
    Ran::from(command.args(args).output().expect("the binary runs"))
}

fn hops(files: &[&str]) -> Value {
    let ran = run(&[&["--format", "json"], files].concat());
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let mut report = ran.json();
    assert_valid(&report);
    report["hops"].take()
}

/// The findings of the only pair, whose first hop is in that capture.
fn findings(files: &[&str], first: u64) -> Vec<Value> {
    let hops = hops(files);
    let pairs = hops["pairs"].as_array().expect("pairs");
    assert_eq!((pairs.len(), &pairs[0]["first"]["capture"]), (1, &first.into()), "{hops}");
    pairs[0]["findings"].as_array().expect("findings").clone()
}

const PLAIN: [&str; 2] = ["updates-plain-before.pcapng.zst", "updates-plain-behind.pcapng.zst"];
const BOTH: [&str; 2] = ["updates-both-sides-before.pcapng.zst", "updates-both-sides-behind.pcapng.zst"];
const REQUESTS: [&str; 2] = ["requests-plain-before.pcapng.zst", "requests-plain-behind.pcapng.zst"];

/// What the logs say: merged reads, updates in them, how late these were in all and at worst, ms.
struct Logged {
    merges: u64,
    updates: u64,
    late: f64,
    worst: f64,
}

/// Programs log when they are scheduled, captures when packets pass: a read may return the end of one segment's updates and
/// the beginning of the next one's, and a program may wake milliseconds later.
const OF_COUNT: u64 = 2;
const OF_TIME: f64 = 0.02;
const OF_WORST_MS: f64 = 3.0;

#[track_caller]
fn assert_as_logged(found: &[Value], logged: &Logged, by: &str) {
    let [found] = found else { panic!("{found:?}") };
    assert_eq!(
        (found["rule"].as_str(), found["blame"]["side"].as_str()),
        (Some("relay-merge"), Some("server"))
    );
    let count = found["count"].as_u64().expect("a count");
    assert!(count.abs_diff(logged.merges) <= OF_COUNT, "{count}, logged {}", logged.merges);
    let cost = found["cost_ms"].as_f64().expect("a cost");
    assert!((cost / logged.late - 1.0).abs() <= OF_TIME, "{cost}, logged {}", logged.late);
    let worst = found["worst_ms"].as_f64().expect("a cost");
    assert!((worst - logged.worst).abs() <= OF_WORST_MS, "{worst}, logged {}", logged.worst);
    let summary = found["summary"].as_str().expect("a text");
    assert!(summary.contains(by), "{summary}");
    let together = summary.split(", ").nth(2).expect("how many").split(' ').next().expect("a number");
    let together: u64 = together.parse().expect("a number");
    assert!(together.abs_diff(logged.updates) <= OF_COUNT, "{summary}, logged {}", logged.updates);
}

#[test]
fn two_captures_show_what_nagles_algorithm_merged_at_the_proxy() {
    let logged = Logged { merges: 26, updates: 53, late: 3_056.8, worst: 213.1 };
    assert_as_logged(&findings(&PLAIN, 0), &logged, "Nagle's algorithm");
    let [before, behind] = PLAIN;
    assert_as_logged(&findings(&[behind, before], 1), &logged, "Nagle's algorithm");
}

#[test]
fn one_capture_with_both_hops_is_enough() {
    let nagle = Logged { merges: 40, updates: 154, late: 1_322.6, worst: 43.6 };
    assert_as_logged(&findings(&["nagle.pcap.zst"], 0), &nagle, "Nagle's algorithm");
    let socat = Logged { merges: 39, updates: 149, late: 1_293.0, worst: 46.4 };
    assert_as_logged(&findings(&["socat.pcap.zst"], 0), &socat, "Nagle's algorithm");
    let lazy = Logged { merges: 44, updates: 200, late: 1_780.8, worst: 47.2 };
    assert_as_logged(&findings(&["lazy.pcap.zst"], 0), &lazy, "the proxy's program kept them");
}

#[test]
fn a_proxy_that_merges_nothing_has_no_finding() {
    // With the option; without it, but with nothing to merge; slow, but one by one.
    for files in [BOTH.as_slice(), &REQUESTS, &["delay.pcap.zst"]] {
        assert_eq!(findings(files, 0), Vec::<Value>::new(), "{files:?}");
    }
}

#[test]
fn how_long_a_proxy_takes_is_told_where_one_clock_saw_it() {
    // The program waits for 30 ms; the client's own bytes are passed on at once.
    let pair = hops(&["delay.pcap.zst"])["pairs"][0].take();
    let fastest = |direction: &str| pair[direction]["fastest_ms"].as_f64().expect("one clock");
    assert!((30.0..31.0).contains(&fastest("to_client")) && fastest("to_server") < 1.0, "{pair}");
    assert_eq!(hops(&PLAIN)["pairs"][0]["to_client"]["fastest_ms"], Value::Null);
}

#[test]
fn what_belongs_to_different_conversations_is_not_joined() {
    for files in [[PLAIN[0], BOTH[1]], [PLAIN[0], REQUESTS[1]], [BOTH[0], "nagle.pcap.zst"]] {
        let pairs = hops(&files)["pairs"].take();
        // The last has a conversation of its own.
        let own = usize::from(files[1] == "nagle.pcap.zst");
        assert_eq!(pairs.as_array().map(Vec::len), Some(own), "{files:?}: {pairs}");
    }
    let note = hops(&[PLAIN[0], REQUESTS[1]])["notes"][0].take();
    assert!(note.as_str().is_some_and(|note| note.contains("goes on in another capture")), "{note}");
}

#[test]
fn three_captures_and_one_of_them_twice() {
    let found = hops(&[PLAIN[0], PLAIN[0], PLAIN[1]]);
    assert_eq!(found["pairs"].as_array().map(Vec::len), Some(1), "{found}");
    assert!(found["notes"][0].as_str().is_some_and(|note| note.contains("named twice")), "{found}");
    let same = hops(&[PLAIN[0], PLAIN[0]]);
    assert_eq!(same["pairs"].as_array().map(Vec::len), Some(0), "{same}");
    // A copy is another file, with the same connection in it.
    let (desk, tests) = (Desk::new(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/relay"));
    let copy = desk.file("copy.zst", &std::fs::read(tests.join(PLAIN[0])).expect("a capture"));
    let found = hops(&[PLAIN[0], PLAIN[1], copy.to_str().expect("a plain name")]);
    assert_eq!(found["pairs"].as_array().map(Vec::len), Some(1), "{found}");
    assert!(found["notes"][0].as_str().is_some_and(|note| note.contains("same TCP connection")), "{found}");
    let games = hops(&[PLAIN[0], BOTH[0], PLAIN[1], BOTH[1]]);
    let captures = |hop: &str| -> Vec<u64> {
        games["pairs"]
            .as_array()
            .expect("pairs")
            .iter()
            .filter_map(|pair| pair[hop]["capture"].as_u64())
            .collect()
    };
    assert_eq!((captures("first"), captures("second")), (vec![0, 1], vec![2, 3]), "{games}");
}

#[test]
fn a_file_that_cannot_be_read_does_not_keep_the_others_apart() {
    let ran = run(&["--format", "json", PLAIN[0], "nowhere.pcap", PLAIN[1]]);
    assert_eq!(ran.status, Some(2), "{ran:?}");
    assert_eq!(ran.json()["hops"]["pairs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn standard_input_is_not_compared_and_that_is_said() {
    let desk = Desk::new();
    desk.file("other.pcap", &write_write_read());
    let input =
        std::fs::File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/relay").join(PLAIN[0]));
    let mut command = desk.command();
    command.args(["-", "other.pcap"]).stdin(Stdio::from(input.expect("a capture")));
    let ran = Ran::from(command.output().expect("the binary runs"));
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("standard input cannot be read a second time"), "{ran:?}");
}

#[test]
fn one_ordinary_capture_says_nothing_of_proxies() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    assert_eq!(desk.run(&["--format", "json", "slow.pcap"]).json().get("hops"), None);
}

#[test]
fn fail_on_knows_it() {
    assert_eq!(run(&[&["--fail-on", "relay-merge"], PLAIN.as_slice()].concat()).status, Some(1));
    assert_eq!(run(&[&["--fail-on", "relay-merge"], BOTH.as_slice()].concat()).status, Some(0));
}

#[test]
fn people_see_both_hops_side_by_side() {
    let ran = run(&PLAIN);
    let wanted = [
        "before  10.0.1.1:48930 → 10.0.1.2:35401",
        "behind  10.0.2.1:50944 → 10.0.2.2:40129",
        "← to the client  804 B: 60 pieces came, 33 left",
        "✖ relay-merge  server 10.0.1.2:35401",
        "before  packet ",
        "behind  packet ",
        "tcpwhy explain relay-merge",
    ];
    for wanted in wanted {
        assert!(ran.stdout.contains(wanted), "no {wanted} in {}", ran.stdout);
    }
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ran.stdout);
}
