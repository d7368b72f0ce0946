//! `tcpwhy plot`.

use std::io::Write;
use std::process::Stdio;

use roxmltree::Document;

use crate::capture::{connections, write_write_read};
use crate::run::{Desk, Ran};

/// What a picture says.
fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).expect("XML");
    document.descendants().filter_map(|node| node.text()).map(str::to_owned).collect()
}

#[track_caller]
fn assert_refused(ran: &Ran, what: &str) {
    assert_eq!(ran.status, Some(2), "{ran:?}");
    assert!(ran.stderr.contains(what), "{what:?} in {ran:?}");
}

#[test]
fn a_picture_shows_the_connection_and_its_verdict() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let ran = desk.run(&["plot", "slow.pcap", "-o", "slow.svg"]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
    let svg = std::fs::read_to_string(desk.path().join("slow.svg")).expect("a picture");
    let texts = texts(&svg);
    let has = |words: &str| texts.iter().any(|text| text.contains(words));
    assert!(has("#0  ") && has("makes this connection wait"), "{texts:?}");
    assert!(has("client → server: ") && has("delayed-ack ") && has("nagle "), "{texts:?}");
    // A picture that is there already is replaced.
    assert_eq!(desk.run(&["plot", "slow.pcap", "-o", "slow.svg", "--direction", "down"]).status, Some(0));
    let down = std::fs::read_to_string(desk.path().join("slow.svg")).expect("a picture");
    assert!(down.contains("server → client: ") && !down.contains("client → server: "));
}

#[test]
fn a_png_has_the_size_that_was_asked_for() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let ran = desk.run(&["plot", "slow.pcap", "-o", "x.PNG", "--size", "640x400"]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let png = std::fs::read(desk.path().join("x.PNG")).expect("a picture");
    // Signature, then the header chunk: its length and name, width and height (PNG specification, 11.2.1).
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!((&png[16..20], &png[20..24]), (&640_u32.to_be_bytes()[..], &400_u32.to_be_bytes()[..]));
}

#[test]
fn standard_input_and_output_will_do() {
    let desk = Desk::new();
    let mut command = desk.command();
    command
        .args(["plot", "-", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(&write_write_read()).expect("it reads");
    let ran = Ran::from(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(texts(&ran.stdout).iter().any(|text| text.contains("client → server")));
}

#[test]
fn a_part_of_the_time_is_enough() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let whole = desk.run(&["plot", "slow.pcap", "-o", "-"]);
    let part = desk.run(&["plot", "slow.pcap", "-o", "-", "--from", "0ms", "--to", "30ms"]);
    assert_eq!((whole.status, part.status), (Some(0), Some(0)), "{part:?}");
    assert_ne!(whole.stdout, part.stdout);
    let late = desk.run(&["plot", "slow.pcap", "-o", "-", "--from", "1h"]);
    assert_refused(&late, "connection 0 has no packet then: it lasts from 0.000s to ");
    assert_refused(
        &desk.run(&["plot", "slow.pcap", "-o", "-", "--from", "2s", "--to", "1s"]),
        "--from is not before",
    );
    assert_refused(&desk.run(&["plot", "slow.pcap", "-o", "-", "--from", "2"]), "1.2s or 300ms");
}

#[test]
fn mistakes_are_answered_with_what_to_do() {
    let desk = Desk::new();
    desk.file("one.pcap", &write_write_read());
    desk.file("many.pcap", &connections(12));
    assert_refused(&desk.run(&["plot", "one.pcap", "-o", "x.pdf"]), "x.pdf: name the picture .svg or .png");
    assert_refused(&desk.run(&["plot", "none.pcap", "-o", "x.svg"]), "none.pcap: no such file");
    assert_refused(&desk.run(&["plot", "one.pcap", "-o", "no/where.svg"]), "cannot write no/where.svg");
    assert_refused(&desk.run(&["plot", "one.pcap", "-o", "x.svg", "--size", "9x9"]), "1200x700");
    let unknown = desk.run(&["plot", "one.pcap", "-o", "x.svg", "--connection", "3"]);
    assert_refused(&unknown, "one.pcap: no connection 3; there is only 0 (");
    let which = desk.run(&["plot", "many.pcap", "-o", "x.svg"]);
    assert_refused(&which, "many.pcap: name one with --connection; it has 0 to 11, the busiest are 0 (");
    assert!(!desk.path().join("x.svg").exists());
    assert_eq!(desk.run(&["plot", "many.pcap", "-o", "x.svg", "--connection", "11"]).status, Some(0));
}

#[test]
fn a_flow_without_sequence_numbers_is_refused() {
    let desk = Desk::new();
    let lines = "10:00:00.000000 IP 10.0.0.1.5000 > 10.0.0.2.53: UDP, length 40\n\
                 10:00:00.100000 IP 10.0.0.2.53 > 10.0.0.1.5000: UDP, length 80\n";
    desk.file("udp.txt", lines.as_bytes());
    assert_refused(&desk.run(&["plot", "udp.txt", "-o", "x.svg"]), "connection 0 is a UDP flow");
}

/// A file in xplot's language, statement by statement: what each takes, as xplot and tcptrace's own files have it. The
/// colours, the texts, and how often each statement came.
fn xplot(text: &str) -> (Vec<String>, Vec<String>, std::collections::BTreeMap<String, usize>) {
    const COLORS: [&str; 9] =
        ["white", "green", "red", "blue", "yellow", "purple", "orange", "magenta", "pink"];
    let is_time = |word: &str| {
        let parts = word.split_once('.').expect("seconds and microseconds");
        parts.1.len() == 6
            && [parts.0, parts.1].iter().all(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_point = |words: &[&str]| {
        words.chunks(2).all(|point| is_time(point[0]) && point[1].parse::<f64>().is_ok_and(f64::is_finite))
    };
    let (mut colors, mut texts) = (Vec::new(), Vec::new());
    let mut counts = std::collections::BTreeMap::new();
    let mut lines = text.lines();
    let head = lines.next().expect("the types of the axes");
    assert!(["timeval unsigned", "timeval double"].contains(&head), "{head}");
    let mut ended = false;
    while let Some(line) = lines.next() {
        assert!(!ended, "{line:?} after the end");
        let words: Vec<_> = line.split(' ').collect();
        *counts.entry(words[0].to_owned()).or_insert(0) += 1;
        match words[0] {
            "title" | "xlabel" | "ylabel" => texts.extend(lines.next().map(str::to_owned)),
            "line" => assert!(words.len() == 5 && is_point(&words[1..]), "{line}"),
            "invisible" | "dot" | "box" | "diamond" | "uarrow" | "darrow" | "utick" | "dtick" | "htick" => {
                assert!(words.len() == 3 || COLORS.contains(&words[3]), "{line}");
                assert!(is_point(&words[1..3]), "{line}");
            }
            "atext" | "btext" | "ltext" | "rtext" | "ctext" => {
                assert!(is_point(&words[1..3]), "{line}");
                texts.extend(lines.next().map(str::to_owned));
            }
            "go" => ended = true,
            color => {
                assert!(COLORS.contains(&color), "{line}");
                colors.push(color.to_owned());
            }
        }
    }
    assert!(ended, "no end");
    (colors, texts, counts)
}

#[test]
fn xplots_files_have_every_segment_and_every_wait() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let ran = desk.run(&["plot", "slow.pcap", "-o", "slow.xpl"]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
    let text = std::fs::read_to_string(desk.path().join("slow.xpl")).expect("a file");
    let (colors, texts, counts) = xplot(&text);
    assert!(texts[0].starts_with("#0  10.0.0.1:50000 -> 10.0.0.2:8080"), "{texts:?}");
    // The client sends 20 requests in two pieces.
    assert_eq!((counts["darrow"], counts["uarrow"]), (40, 40));
    assert!(colors.iter().any(|color| color == "orange") && colors.iter().any(|color| color == "green"));
    assert!(texts.iter().any(|text| text.starts_with("delayed-ack ")), "{texts:?}");
    assert!(["SYN", "FIN"].iter().all(|name| texts.iter().any(|text| text == name)), "{texts:?}");
    assert!(counts["box"] > 0, "packets that findings name");
    let down = desk.run(&["plot", "slow.pcap", "-o", "-", "--xplot", "--direction", "down"]);
    assert_eq!(xplot(&down.stdout).2["darrow"], 20);
    let part = desk.run(&["plot", "slow.pcap", "-o", "-", "--xplot", "--to", "30ms"]);
    assert_eq!(xplot(&part.stdout).2["darrow"], 1);
    assert_refused(
        &desk.run(&["plot", "slow.pcap", "-o", "x.xpl", "--direction", "both"]),
        "one direction each",
    );
}

#[test]
fn tcptraces_own_files_are_of_the_same_language() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let output = std::process::Command::new("tcptrace")
        .current_dir(desk.path())
        .args(["-n", "-S", "slow.pcap"])
        .output();
    let Ok(output) = output else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no tcptrace to compare with");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let theirs = std::fs::read(desk.path().join("a2b_tsg.xpl")).expect("its graph");
    let theirs = xplot(&String::from_utf8_lossy(&theirs)).2;
    let ours = xplot(&desk.run(&["plot", "slow.pcap", "-o", "-", "--xplot"]).stdout).2;
    // It draws an arrow at the first byte of what carries nothing, too.
    assert!(theirs["darrow"] >= ours["darrow"] && ours["darrow"] == 40, "{theirs:?} {ours:?}");
}
