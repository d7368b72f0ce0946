//! What fixes would have saved, quoted in the normal report.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::run::{Desk, Ran};

/// A capture of the labelled corpus.
fn labelled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/corpus/{name}.pcapng.zst"))
}

fn asked(args: &[&str], file: &Path) -> Ran {
    let mut all = args.to_vec();
    all.push(file.to_str().expect("a path"));
    let ran = Desk::new().run(&all);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    ran
}

/// Without the ends of its lines.
fn flowing(ran: &Ran) -> String {
    ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The predictions of a report, with the rules they belong to.
fn quotes(report: &Value) -> Vec<(&str, &Value)> {
    let captures = report["captures"].as_array().expect("captures").iter();
    let findings = captures.flat_map(|capture| capture["findings"].as_array().expect("findings"));
    findings.filter_map(|finding| Some((finding["rule"].as_str()?, finding.get("what_if")?))).collect()
}

#[test]
fn a_finding_says_what_its_fix_would_have_saved() {
    let text = flowing(&asked(&[], &labelled("split-request-20ms-client")));
    // The label: 1,886 of 2,514 ms are saved, and an exchange takes 20 ms then.
    let quote = "what if One write for each message on the client would have saved 1.87 s of 2.50 s (median \
                 exchange 83.9 ms → 20.1 ms), with 57 % fewer packets.";
    assert!(text.contains(quote), "{text}");
    // Once is enough.
    assert_eq!(text.matches("what if").count(), 1, "{text}");
}

#[test]
fn figures_are_those_of_whatif() {
    for (name, rule) in [
        ("split-request-20ms-client", "split-write"),
        ("merged-by-round-trip-300ms-server", "merged-updates"),
        ("small-window-20ms-client", "small-receive-window"),
        ("cork-kept-20ms-client", "cork-timeout"),
        ("connection-each-20ms-client", "handshake-per-request"),
    ] {
        let file = labelled(name);
        let report = asked(&["--format", "json"], &file).json();
        let found = quotes(&report);
        let (_, quote) =
            found.iter().find(|(of, _)| *of == rule).unwrap_or_else(|| panic!("{name}: {found:?}"));
        let whatif = asked(&["whatif", "--format", "json"], &file).json();
        let fixes = whatif["fixes"].as_array().expect("fixes");
        let same = fixes.iter().find(|fix| fix["fix"] == quote["fix"] && fix["side"] == quote["side"]);
        let same = same.unwrap_or_else(|| panic!("{name}: {quote}"));
        for field in ["saved_ms", "saved_ms_bounds"] {
            assert_eq!(quote[field], same[field], "{name}: {field}");
        }
        for field in ["total_ms", "p50_ms", "p99_ms"] {
            assert_eq!(quote["with_it"][field], same["with_it"][field], "{name}: {field}");
        }
        // What whatif says to be no price is none here.
        if whatif["has_price"] == true {
            assert_eq!(
                (&quote["with_it"], &quote["unchanged"]),
                (&same["with_it"], &whatif["unchanged"]),
                "{name}"
            );
            assert_eq!(quote["more_packets"], same["more_packets"], "{name}");
            assert_eq!(quote["more_bytes"], same["more_bytes"], "{name}");
        } else {
            assert!(
                quote["more_packets"].is_null() && quote["with_it"]["packets"].is_null(),
                "{name}: {quote}"
            );
        }
        for field in ["likeness", "kind"] {
            assert_eq!(quote[field], whatif[field], "{name}: {field}");
        }
    }
}

#[test]
fn a_poor_replay_is_not_quoted() {
    let file = labelled("late-window-20ms-offload-client");
    let text = flowing(&asked(&[], &file));
    assert!(text.contains("✖ small-receive-window") && !text.contains("what if"), "{text}");
    let report = asked(&["--format", "json", "--whatif", "always"], &file).json();
    assert!(quotes(&report).is_empty(), "{report}");
}

#[test]
fn large_files_are_read_once_unless_somebody_insists() {
    let desk = Desk::new();
    let path = desk.path().join("large.pcapng.zst");
    std::fs::copy(labelled("split-request-20ms-client"), &path).expect("a copy");
    // A frame that decoders skip (RFC 8878 3.1.2), of 33 MiB.
    let mut file = File::options().append(true).open(&path).expect("a file");
    let length: u32 = 33 << 20;
    file.write_all(&0x184d_2a50_u32.to_le_bytes()).expect("a magic number");
    file.write_all(&length.to_le_bytes()).expect("a length");
    let end = file.metadata().expect("metadata").len() + u64::from(length);
    file.set_len(end).expect("room");
    for (when, count) in [("auto", 0), ("always", 1), ("never", 0)] {
        let report = asked(&["--format", "json", "--whatif", when], &path).json();
        assert_eq!(quotes(&report).len(), count, "{when}");
        assert_eq!(report["captures"][0]["packets"], 157, "{when}");
    }
}

#[test]
fn standard_input_has_no_predictions() {
    let desk = Desk::new();
    // Not even where a file is called like it.
    std::fs::copy(labelled("split-request-20ms-client"), desk.path().join("-")).expect("a copy");
    let stdin = File::open(labelled("split-request-20ms-client")).expect("a capture");
    let mut command = desk.command();
    command.args(["--format", "json", "--whatif", "always", "-"]).stdin(Stdio::from(stdin));
    let ran = Ran::from(command.output().expect("the binary runs"));
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(quotes(&ran.json()).is_empty(), "{ran:?}");
    let file = asked(&["--format", "json", "--whatif", "never"], &labelled("split-request-20ms-client"));
    assert_eq!(ran.json()["captures"][0]["findings"], file.json()["captures"][0]["findings"]);
}

/// What tcpdump prints of a connection with thirty exchanges over 20 ms, from `start` ms on. Where requests are split, their
/// second half waits for an ACK that is held for 40 ms.
fn exchanges(start: u64, port: u16, initial: u32, is_split: bool) -> String {
    let mut text = String::new();
    let mut print = |us: u64, is_client: bool, what: &str| {
        let (client, server) = (format!("10.0.0.1.{port}"), "10.0.0.2.80".to_owned());
        let (from, to) = if is_client { (client, server) } else { (server, client) };
        let us = start * 1_000 + us;
        let (seconds, us) = (us / 1_000_000, us % 1_000_000);
        let _ = writeln!(text, "10:00:{seconds:02}.{us:06} IP {from} > {to}: {what}");
    };
    let options = "options [mss 1460,nop,nop,sackOK]";
    print(0, true, &format!("Flags [S], seq {initial}, win 64240, {options}, length 0"));
    print(
        20_000,
        false,
        &format!("Flags [S.], seq 500, ack {}, win 64240, {options}, length 0", initial + 1),
    );
    print(20_010, true, "Flags [.], ack 1, win 64240, length 0");
    let (mut now, mut sent, mut got) = (21_000, 1, 1);
    for _ in 0..30 {
        if is_split {
            print(
                now,
                true,
                &format!("Flags [P.], seq {sent}:{}, ack {got}, win 64240, length 16", sent + 16),
            );
            sent += 16;
            now += 60_000;
            print(now, false, &format!("Flags [.], ack {sent}, win 64240, length 0"));
            now += 20;
        }
        print(now, true, &format!("Flags [P.], seq {sent}:{}, ack {got}, win 64240, length 48", sent + 48));
        sent += 48;
        now += 20_000;
        print(now, false, &format!("Flags [P.], seq {got}:{}, ack {sent}, win 64240, length 64", got + 64));
        got += 64;
        now += 20;
    }
    text
}

#[test]
fn each_prediction_is_of_its_own_connection() {
    let desk = Desk::new();
    // Two captures; in the second the same two sockets meet twice.
    let text = format!(
        "One:\n\n{}\nTwo:\n\n{}{}",
        exchanges(0, 40_000, 77, false),
        exchanges(0, 40_000, 100, false),
        exchanges(3_000, 40_000, 9_000, true),
    );
    let file = desk.file("mail.txt", text.as_bytes());
    let report = asked(&["--format", "json"], &file).json();
    let [one, two] = report["captures"].as_array().expect("captures").as_slice() else { panic!("{report}") };
    assert_eq!(
        (one["connections"].as_array().map(Vec::len), quotes(&report).len()),
        (Some(1), 1),
        "{report}"
    );
    let split =
        two["findings"].as_array().and_then(|all| all.iter().find(|one| one["rule"] == "split-write"));
    let split = split.unwrap_or_else(|| panic!("{two}"));
    assert_eq!((&split["connection"], &split["what_if"]["fix"]), (&1.into(), &"one-write".into()), "{split}");
    // Thirty waits of 60 ms, but for those that a Linux that has just begun to talk does not make.
    let saved = split["what_if"]["saved_ms"].as_f64().expect("a number");
    assert!((1_600.0..1_810.0).contains(&saved), "{split}");
    let narrowed = asked(&["--format", "json", "--connection", "1"], &file);
    assert_eq!(quotes(&narrowed.json()), quotes(&report));
}
