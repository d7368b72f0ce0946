//! `--format csv`, `csv-findings`, `markdown` and `junit`.

use roxmltree::{Document, Node};

use crate::capture::{connections, healthy, write_write_read};
use crate::run::Desk;

/// Rows of a table: RFC 4180, read by hand.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {
                assert_eq!(chars.next(), Some('\n'));
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(row.is_empty() && cell.is_empty() && !quoted, "the last line ends");
    rows
}

/// A column by its name.
fn column<'a>(rows: &'a [Vec<String>], name: &str) -> Vec<&'a str> {
    let at = rows[0].iter().position(|cell| cell == name).unwrap_or_else(|| panic!("no {name}"));
    rows[1..].iter().map(|row| row[at].as_str()).collect()
}

#[test]
fn a_table_has_all_connections_and_their_ledgers() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    desk.file("many.pcap", &connections(12));
    let arguments = ["slow.pcap", "many.pcap", "--format"];
    let table = rows(&desk.run(&[&arguments[..], &["csv"]].concat()).stdout);
    let report = desk.run(&[&arguments[..], &["json"]].concat()).json();
    assert_eq!(table.len(), 1 + 1 + 12);
    assert!(table.iter().all(|row| row.len() == table[0].len()));
    assert_eq!(column(&table, "capture")[0..2], ["slow.pcap", "many.pcap"]);
    assert_eq!(column(&table, "problems")[0..2], ["split-write", ""]);
    let connection = &report["captures"][0]["connections"][0];
    let number = |text: &str| text.parse::<f64>().expect("a number");
    for (line, ms) in connection["ledger_ms"].as_object().expect("a ledger") {
        let name = format!("{}_ms", line.replace('-', "_"));
        assert_eq!(number(column(&table, &name)[0]), ms.as_f64().expect("a number"), "{name}");
    }
    assert_eq!(number(column(&table, "duration_ms")[0]), connection["duration_ms"].as_f64().unwrap());
    assert_eq!(column(&table, "client")[0], "10.0.0.1:50000");
    assert_eq!(
        column(&table, "exchange_p50_ms")[0].parse::<f64>().ok(),
        connection["exchanges"]["p50_ms"].as_f64()
    );
}

#[test]
fn a_table_has_all_findings() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let table = rows(&desk.run(&["slow.pcap", "--format", "csv-findings"]).stdout);
    let report = desk.run(&["slow.pcap", "--format", "json"]).json();
    let findings = report["captures"][0]["findings"].as_array().expect("findings");
    let text = |key: &str| findings.iter().map(|finding| finding[key].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(column(&table, "rule"), text("rule"));
    assert_eq!(column(&table, "severity"), text("severity"));
    // With commas in it, so quoted.
    assert_eq!(column(&table, "summary"), text("summary"));
    let saved = findings[0]["what_if"]["saved_ms"].as_f64();
    assert!(saved.is_some() && column(&table, "what_if_saved_ms")[0].parse::<f64>().ok() == saved);
}

#[cfg(unix)]
#[test]
fn strangers_names_are_text_in_every_format() {
    let desk = Desk::new();
    let name = "=1+2 [a](http:x) <b> @c.pcap";
    desk.file(name, &write_write_read());
    for format in ["csv", "csv-findings"] {
        let table = rows(&desk.run(&["--format", format, name]).stdout);
        assert_eq!(column(&table, "capture")[0], format!("'{name}"));
    }
    let markdown = desk.run(&["--format", "markdown", name]).stdout;
    assert!(markdown.contains(&format!("`{name}`")), "{markdown}");
    let junit = desk.run(&["--format", "junit", "--fail-on", "problem", name]).stdout;
    let document = Document::parse(&junit).expect("XML");
    assert_eq!(suites(&document)[0].attribute("name"), Some(name));
}

fn suites<'a>(document: &'a Document<'a>) -> Vec<Node<'a, 'a>> {
    document.root_element().children().filter(|node| node.is_element()).collect()
}

fn elements<'a>(node: Node<'a, 'a>) -> Vec<Node<'a, 'a>> {
    node.children().filter(|node| node.is_element()).collect()
}

/// What every reader of JUnit's format asks for: elements and attributes of Jenkins' junit-10.xsd, no others, and counts
/// that are right.
#[track_caller]
fn assert_is_junit(document: &Document<'_>) {
    let has_only = |node: Node<'_, '_>, name: &str, required: &[&str], optional: &[&str]| {
        assert!(node.has_tag_name(name), "{node:?}");
        required.iter().for_each(|key| assert!(node.has_attribute(*key), "{name} without {key}"));
        for attribute in node.attributes() {
            let key = attribute.name();
            assert!(required.contains(&key) || optional.contains(&key), "{name} with {key}");
        }
    };
    has_only(document.root_element(), "testsuites", &[], &["name"]);
    for suite in elements(document.root_element()) {
        has_only(suite, "testsuite", &["name", "tests", "failures", "errors"], &["skipped", "timestamp"]);
        let cases = elements(suite);
        let count = |key| suite.attribute(key).and_then(|text| text.parse::<usize>().ok());
        assert_eq!(count("tests"), Some(cases.len()));
        for (key, element) in [("failures", "failure"), ("errors", "error")] {
            let with = |case: &&Node<'_, '_>| elements(**case).iter().any(|it| it.has_tag_name(element));
            assert_eq!(count(key), Some(cases.iter().filter(with).count()), "{key}");
        }
        for case in cases {
            has_only(case, "testcase", &["name", "classname"], &[]);
            let inside = elements(case);
            assert!(inside.len() <= 1, "readers keep one");
            inside.iter().for_each(|it| has_only(*it, it.tag_name().name(), &["message", "type"], &[]));
        }
    }
}

#[test]
fn test_results_are_what_fail_on_names() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    desk.file("well.pcap", &healthy());
    let ran = desk.run(&["--format", "junit", "--fail-on", "problem", "slow.pcap", "well.pcap", "none.pcap"]);
    assert_eq!(ran.status, Some(2), "{ran:?}");
    let document = Document::parse(&ran.stdout).expect("XML");
    assert_is_junit(&document);
    let all = suites(&document);
    let counts =
        |suite: &Node<'_, '_>| ["failures", "errors"].map(|key| suite.attribute(key).unwrap().to_owned());
    assert_eq!(all.iter().map(counts).collect::<Vec<_>>(), [["1", "0"], ["0", "0"], ["0", "1"]]);
    assert_eq!(all[0].attribute("timestamp"), Some("2023-11-14T22:13:20"));
    // Rules that were not found passed: both captures have the same cases.
    let names = |suite: Node<'_, '_>| {
        elements(suite).iter().map(|case| case.attribute("name").unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(all[0]), names(all[1]));
    let failed = |case: &Node<'_, '_>| elements(*case).iter().any(|it| it.has_tag_name("failure"));
    let failing = elements(all[0]).into_iter().find(failed).expect("a failure");
    let failure = elements(failing)[0];
    assert_eq!(failing.attribute("name"), Some("split-write"));
    assert!(failure.attribute("message").unwrap().starts_with("The program of the client"));
    let text = failure.text().unwrap();
    assert!(
        text.contains("  packet ") && text.contains("  fix: ") && text.contains("tcpwhy explain"),
        "{text}"
    );
}

#[test]
fn one_rule_is_one_case() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    for (rule, status, failures) in [("zero-window", 0, "0"), ("split-write", 1, "1")] {
        let ran = desk.run(&["--format", "junit", "--fail-on", rule, "slow.pcap"]);
        assert_eq!(ran.status, Some(status), "{ran:?}");
        let document = Document::parse(&ran.stdout).expect("XML");
        assert_is_junit(&document);
        let suite = suites(&document)[0];
        assert_eq!((suite.attribute("tests"), suite.attribute("failures")), (Some("1"), Some(failures)));
    }
    let ran = desk.run(&["--format", "junit", "slow.pcap"]);
    assert!(ran.status == Some(2) && ran.stderr.contains("--fail-on"), "{ran:?}");
}

#[test]
fn markdown_has_verdict_ledger_findings_and_fixes() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    desk.file("many.pcap", &connections(12));
    let text = desk.run(&["--format", "markdown", "slow.pcap"]).stdout;
    assert!(text.starts_with("**The client `10.0.0.1:50000` makes this connection wait "), "{text}");
    for part in [
        "### Connection 0: `10.0.0.1:50000` → `10.0.0.2:8080`, ",
        "| waiting for | time | share | |\n| --- | ---: | ---: | --- |\n| delayed-ack | ",
        "#### ✖ split-write\n",
        "| packet | time | |\n",
        "1. **Write each message at once.** ",
        "What if: **",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let two = desk.run(&["--format", "markdown", "--top", "2", "many.pcap", "slow.pcap"]).stdout;
    assert!(
        two.contains("### All 12 connections together") && two.contains("And 10 more connections."),
        "{two}"
    );
    assert!(two.contains("\n\n---\n\n**The client `10.0.0.1:50000`"), "{two}");
    assert_eq!(two.matches("### Connection ").count(), 3);
}
