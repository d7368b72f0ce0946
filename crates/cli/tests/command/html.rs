//! `--html`: the data in the page, read as the page's script reads it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::{Value, json};

use crate::capture::{Conversation, connections, write_write_read};
use crate::run::{Desk, Ran};

#[path = "../../../../tests/page/decode.rs"]
mod decode;
use decode::Columns;

/// What a packet takes in a page at most, bytes, with its share of what else a table has: the half million that a page has
/// where nobody asks for more make 15 MB then.
const EACH: usize = 30;

/// A page taken apart.
struct Page {
    html: String,
    report: Value,
    page: Value,
    tables: Vec<Columns>,
}

impl Page {
    fn read(path: &Path) -> Self {
        Self::of(fs::read_to_string(path).expect("a page"))
    }

    fn of(html: String) -> Self {
        let json = |id: &str| serde_json::from_str(element(&html, id).expect(id)).expect("JSON");
        let (report, page): (Value, Value) = (json("tcpwhy-report"), json("tcpwhy-page"));
        let packed = (0..).map_while(|number| element(&html, &format!("tcpwhy-packets-{number}")));
        let tables = packed.map(unpacked).collect();
        assert_eq!(complaints("report", &report), Vec::<String>::new());
        assert_eq!(complaints("page", &page), Vec::<String>::new());
        Self { html, report, page, tables }
    }

    fn capture(&self, number: usize) -> (&Value, &Value) {
        (&self.report["captures"][number], &self.page["captures"][number])
    }

    /// The table of a connection, and what is said of it.
    fn table(&self, capture: usize, connection: u64) -> Option<(&Columns, &Value)> {
        let entries = self.page["captures"][capture]["tables"].as_array().expect("tables");
        let entry = entries.iter().find(|entry| entry["connection"] == connection)?;
        Some((&self.tables[entry["table"].as_u64().expect("a number") as usize], entry))
    }
}

/// What is in the script element of that name, as a browser sees it: up to the first end of one.
fn element<'a>(html: &'a str, id: &str) -> Option<&'a str> {
    let begin = html.find(&format!(" id=\"{id}\">"))?;
    let content = &html[begin..].split_once('>')?.1;
    content.split("</script").next()
}

fn unpacked(packed: &str) -> Columns {
    let mut raw = Vec::new();
    let compressed = STANDARD.decode(packed).expect("base64");
    ZlibDecoder::new(&*compressed).read_to_end(&mut raw).expect("zlib");
    decode::columns(&raw)
}

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn complaints(schema: &str, instance: &Value) -> Vec<String> {
    let text = fs::read_to_string(project(&format!("docs/{schema}.schema.json"))).expect("a schema");
    let schema = serde_json::from_str(&text).expect("JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("a schema");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    validator.iter_errors(instance).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Makes a page of a file; `None` where this build has no page, as when cargo is run without `make viewer`.
fn page(desk: &Desk, args: &[&str]) -> Option<(Ran, Page)> {
    let ran = desk.run(&[&["--html", "page.html"], args].concat());
    is_there(&ran).then(|| {
        assert_eq!(ran.status, Some(0), "{ran:?}");
        assert!(ran.stderr.starts_with("tcpwhy: the page is ") && ran.stderr.lines().count() == 1, "{ran:?}");
        (ran, Page::read(&desk.path().join("page.html")))
    })
}

fn is_there(ran: &Ran) -> bool {
    let is_missing = ran.stderr.contains("was built without the page");
    assert!(!is_missing || ran.status == Some(2), "{ran:?}");
    if is_missing {
        std::io::stderr().write_all(b"SKIPPED: built without the page\n").expect("standard error");
    }
    !is_missing
}

fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a table says is what the report says of its connection.
#[track_caller]
fn assert_agrees(connection: &Value, (table, entry): (&Columns, &Value)) {
    let both = |object: &Value| {
        object["to_server"].as_u64().unwrap_or(0) + object["to_client"].as_u64().unwrap_or(0)
    };
    let marks = &table["marks"];
    assert_eq!(entry["packets"], both(&connection["packets"]));
    assert!(marks["time"].is_sorted() && marks["number"].is_sorted());
    if entry["every"] == 1 {
        assert_eq!(marks["what"].len() as u64, both(&connection["packets"]));
        let from_client = marks["what"].iter().filter(|what| *what & 1 == 0).count() as u64;
        assert_eq!(connection["packets"]["to_server"], from_client);
    }
    // Every interval of the ledger, and with them its lines' sums.
    let bookings = &table["bookings"];
    let lines = connection["ledger_ms"].as_object().expect("a ledger");
    let names = [
        "handshake",
        "client-app",
        "server-app",
        "idle",
        "network",
        "queueing",
        "nagle",
        "delayed-ack",
        "cwnd",
        "rwnd",
        "recovery",
        "rto",
        "transfer",
        "unexplained",
    ];
    for (number, name) in names.iter().enumerate() {
        let of_line = (0..bookings["line"].len()).filter(|row| bookings["line"][*row] == number as i64);
        let ns: i64 = of_line.map(|row| bookings["until"][row] - bookings["from"][row]).sum();
        let ms = lines[*name].as_f64().expect("ms");
        assert!((ns as f64 / 1e6 - ms).abs() < 1e-3, "{name}: {ns} ns and {ms} ms");
    }
    let exchanges = &table["exchanges"];
    let count = exchanges["start"].len();
    assert_eq!(connection["exchanges"]["count"].as_u64().unwrap_or(0), count as u64);
    let longest = (0..count).map(|row| exchanges["end"][row] - exchanges["start"][row]).max();
    if let (Some(longest), Some(max_ms)) = (longest, connection["exchanges"]["max_ms"].as_f64()) {
        assert!((longest as f64 / 1e6 - max_ms).abs() < 1e-3, "{longest} ns and {max_ms} ms");
    }
    for number in &exchanges["number"] {
        assert!(entry["every"] != 1 || marks["number"].contains(number), "no request {number}");
    }
}

#[test]
fn every_example_has_its_page() {
    let examples = fs::read_dir(project("examples")).expect("examples");
    let mut seen = 0;
    for file in examples.map(|entry| entry.expect("an entry").path()) {
        if file.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let desk = Desk::new();
        let Some((ran, page)) = page(&desk, &[file.to_str().expect("a path")]) else { return };
        let shown = flowing(&ran.stdout);
        let captures = page.report["captures"].as_array().expect("captures");
        for (number, capture) in captures.iter().enumerate() {
            let (_, extra) = page.capture(number);
            assert!(shown.contains(&flowing(extra["verdict"].as_str().expect("a verdict"))), "{shown}");
            for connection in capture["connections"].as_array().expect("connections") {
                let id = connection["id"].as_u64().expect("a number");
                assert_agrees(connection, page.table(number, id).expect("few packets are all there"));
            }
            for finding in capture["findings"].as_array().expect("findings") {
                let rule = &page.page["rules"][finding["rule"].as_str().expect("a name")];
                assert!(rule["html"].as_str().expect("HTML").contains("<h"), "{rule}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen} captures");
}

#[test]
fn real_captures_have_tables_that_agree_with_their_report() {
    for name in [
        "lost-in-download-20ms-client",
        "split-request-20ms-client",
        "delayed-ack-after-pause-20ms-client",
        "bufferbloat-20ms-client",
        "connection-each-20ms-client",
    ] {
        let file = project(&format!("tests/corpus/{name}.pcapng.zst"));
        let desk = Desk::new();
        let Some((_, page)) = page(&desk, &[file.to_str().expect("a path")]) else { return };
        let (capture, extra) = page.capture(0);
        assert_eq!(extra["no_packets"], Value::Null);
        for connection in capture["connections"].as_array().expect("connections") {
            let id = connection["id"].as_u64().expect("a number");
            let (table, entry) = page.table(0, id).expect("few packets are all there");
            assert_agrees(connection, (table, entry));
            assert_eq!((&entry["without_held"], &entry["coarse_ledger"]), (&json!(false), &json!(false)));
            let base = connection["base_rtt_ms"].as_f64().expect("a handshake");
            let round_trips = &table["round_trips"]["rtt"];
            assert!(
                !round_trips.is_empty() && round_trips.iter().all(|rtt| *rtt as f64 / 1e6 > base - 1e-3),
                "{name}"
            );
        }
    }
}

#[test]
fn evidence_of_several_connections_has_the_connection_of_each_packet() {
    let desk = Desk::new();
    let file = project("tests/corpus/connection-each-20ms-client.pcapng.zst");
    let file = file.to_str().expect("a path");
    let Some((_, all)) = page(&desk, &[file]) else { return };
    let (capture, extra) = all.capture(0);
    let findings = capture["findings"].as_array().expect("findings");
    let shared: Vec<_> = findings.iter().filter(|finding| finding["connection"].is_null()).collect();
    let mut named: Vec<_> = shared
        .iter()
        .flat_map(|finding| finding["evidence"].as_array().expect("evidence"))
        .map(|evidence| evidence["packet"].as_u64().expect("a number"))
        .collect();
    named.sort_unstable();
    named.dedup();
    let places = extra["shared_evidence"].as_array().expect("places");
    let placed: Vec<_> = places.iter().map(|place| place["packet"].as_u64().expect("a number")).collect();
    assert!(named.len() > 1);
    assert_eq!(placed, named);
    for place in places {
        let id = place["connection"].as_u64().expect("a number");
        let (table, _) = all.table(0, id).expect("its packets are there");
        assert!(table["marks"]["number"].contains(&place["packet"].as_i64().expect("a number")));
    }
    // Each connection has its own SYN there.
    let connections: BTreeSet<_> = places.iter().map(|place| place["connection"].as_u64()).collect();
    assert_eq!(connections.len(), places.len());
    let (_, none) = page(&desk, &["--html-packets", "0", file]).expect("a page");
    assert_eq!(none.capture(0).1["shared_evidence"], json!([]));
}

#[test]
fn what_fixes_would_have_saved_is_in_the_page() {
    let file = project("tests/corpus/split-request-20ms-client.pcapng.zst");
    let file = file.to_str().expect("a path");
    let desk = Desk::new();
    let Some((_, page)) = page(&desk, &[file]) else { return };
    let report = desk.run(&["--format", "json", file]).json();
    assert_eq!(page.report, report, "nothing is left out of a small capture");
    assert!(page.html.contains("\"what_if\":{"));
}

#[test]
fn fixes_in_code_are_in_the_page_for_the_rules_that_found_something() {
    let file = project("tests/corpus/split-request-20ms-client.pcapng.zst");
    let desk = Desk::new();
    let Some((_, page)) = page(&desk, &[file.to_str().expect("a path")]) else { return };
    let recipe = &page.page["rules"]["split-write"]["recipes"][0];
    assert_eq!(recipe["title"], "Write each message at once");
    let mut offered: Vec<_> = page.page["languages"].as_array().expect("languages").iter().collect();
    offered.retain(|language| recipe["code"].get(language.as_str().expect("a name")).is_some());
    assert_eq!(offered.len(), 7, "{}", page.page["languages"]);
    assert!(page.page["rules"].get("delayed-ack").is_none(), "it found nothing");
}

/// A section with a comment, an interface, and the frames of a pcap file (whose times are in µs, as here by default).
fn commented(pcap: &[u8], comment: &str) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let len = (12 + body.len()) as u32;
        [&kind.to_le_bytes()[..], &len.to_le_bytes(), body, &len.to_le_bytes()].concat()
    };
    let padded = |bytes: &[u8]| [bytes, &vec![0; bytes.len().next_multiple_of(4) - bytes.len()]].concat();
    let option = [
        &1_u16.to_le_bytes()[..],
        &(comment.len() as u16).to_le_bytes(),
        &padded(comment.as_bytes()),
        &[0; 4],
    ];
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8], &option.concat()].concat();
    let mut file = [block(0x0a0d_0d0a, &section), block(1, &[1, 0, 0, 0, 0, 0, 0, 0])].concat();
    let mut rest = &pcap[24..];
    while rest.len() >= 16 {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes"));
        let (time, len) = (u64::from(word(0)) * 1_000_000 + u64::from(word(4)), word(8) as usize);
        let head = [0, (time >> 32) as u32, time as u32, word(8), word(12)].map(u32::to_le_bytes).concat();
        file.extend(block(6, &[head, padded(&rest[16..16 + len])].concat()));
        rest = &rest[16 + len..];
    }
    file
}

/// Text that wants to be markup or script, or to be read otherwise than it is written.
const HOSTILE: &str =
    "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\u{2028}\u{202e}]]>&lt;$&";

#[test]
fn nothing_from_a_capture_ends_its_element() {
    let desk = Desk::new();
    desk.file("plain.pcap", &write_write_read());
    let Some((_, plain)) = page(&desk, &["plain.pcap"]) else { return };
    let scripts = |page: &Page| {
        let lower = page.html.to_ascii_lowercase();
        ["<script", "</script", "<!--", "<img"].map(|markup| lower.matches(markup).count())
    };
    // In a file's name and in a comment; the folder, whose name ends with <, is for the slash.
    fs::create_dir(desk.path().join("a<")).expect("a folder");
    let name = "a</script><img src=x onerror=alert(1)>\u{2028}\u{202e}.pcapng";
    desk.file(name, &commented(&write_write_read(), HOSTILE));
    let Some((_, hostile)) = page(&desk, &[name]) else { return };
    assert_eq!(scripts(&hostile), scripts(&plain));
    let (capture, _) = hostile.capture(0);
    assert_eq!(capture["name"], name, "it is what it was");
    let notes = capture["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|note| note == &format!("Comment: {HOSTILE}")), "{notes:?}");
    assert!(!hostile.html.contains(['\u{2028}', '\u{202e}']));
    // In the prose above a text's packets.
    let hosts = ["10.0.0.1.1033", "10.0.0.2.80"];
    let line = |n: u32, from: &str, to: &str, rest: &str| {
        format!("10:00:00.{n:06} IP {from} > {to}: Flags {rest}\n")
    };
    let text = [
        format!("{HOSTILE}\n\n"),
        line(0, hosts[0], hosts[1], "[S], seq 0, win 64240, length 0"),
        line(9, hosts[1], hosts[0], "[S.], seq 0, ack 1, win 64240, length 0"),
        line(99, hosts[0], hosts[1], "[.], ack 1, win 64240, length 0"),
    ];
    desk.file("mail.txt", text.concat().as_bytes());
    let Some((_, mail)) = page(&desk, &["mail.txt"]) else { return };
    assert_eq!(scripts(&mail)[0] - mail.tables.len(), scripts(&plain)[0] - plain.tables.len());
    assert_eq!(scripts(&mail)[2..], scripts(&plain)[2..]);
}

#[test]
fn a_page_that_cannot_be_written_is_one_clear_error() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let refused = |path: &str, why: &str| {
        let ran = desk.run(&["--html", path, "slow.pcap"]);
        if is_there(&ran) {
            let said = format!("tcpwhy: cannot write {path}: ");
            assert!(ran.stderr.starts_with(&said) && ran.stderr.lines().count() == 1, "{ran:?}");
            assert!(ran.status == Some(2) && ran.stderr.contains(why), "{ran:?}");
        }
        ran
    };
    // Said before anything is read.
    assert_eq!(refused("no/such/page.html", "No such file").stdout, "");
    assert_eq!(refused(".", "directory").stdout, "");
    if cfg!(target_os = "linux") {
        // The disk is full in the end.
        refused("/dev/full", "No space left");
    }
    let left: Vec<_> = fs::read_dir(desk.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["slow.pcap"], "nothing is left behind");
}

/// Two names mixed up, and the capture would be gone.
#[test]
fn only_a_page_is_replaced() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    desk.file("empty.html", b"");
    let ran = desk.run(&["--html", "slow.pcap", "slow.pcap"]);
    if !is_there(&ran) {
        return;
    }
    let said = "tcpwhy: slow.pcap is there, and is no page: write to another file, or remove it\n";
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (Some(2), "", said));
    assert_eq!(fs::read(desk.path().join("slow.pcap")).expect("the capture"), write_write_read());
    assert_eq!(desk.run(&["--html", "empty.html", "slow.pcap"]).status, Some(0));
    if cfg!(target_os = "linux") {
        let ran = desk.run(&["run", "--record", "both.html", "--html", "both.html", "--", "true"]);
        assert_eq!(ran.stderr, "tcpwhy: both.html cannot be both: give the page a name of its own\n");
        assert!(!desk.path().join("both.html").exists());
    }
}

#[test]
fn standard_output_has_the_page_alone_and_a_page_is_replaced_whole() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let ran = desk.run(&["--html", "-", "slow.pcap"]);
    if !is_there(&ran) {
        return;
    }
    assert!(
        ran.status == Some(0) && ran.stderr.is_empty() && ran.stdout.starts_with("<!doctype html>"),
        "{}",
        ran.stderr
    );
    let streamed = Page::of(ran.stdout);
    desk.file("page.html", &[b"<!DOCTYPE html>".as_slice(), &[b'x'; 3_000_000]].concat());
    let Some((_, written)) = page(&desk, &["slow.pcap"]) else { return };
    assert_eq!(written.html, streamed.html);
    // Where nothing can be read there is nothing to put into its place.
    assert_eq!(desk.run(&["--html", "page.html", "gone.pcap"]).status, Some(2));
    assert_eq!(Page::read(&desk.path().join("page.html")).html, streamed.html);
}

#[test]
fn who_has_no_packets_is_told_why() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let mut command = desk.command();
    command.args(["--html", "page.html", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // It may end before it has read all.
    let _ = child.stdin.take().expect("a pipe").write_all(&write_write_read());
    let ran = Ran::from(child.wait_with_output().expect("an end"));
    if !is_there(&ran) {
        return;
    }
    let why = |page: &Page| page.capture(0).1["no_packets"].as_str().map(str::to_owned);
    let piped = Page::read(&desk.path().join("page.html"));
    assert!(why(&piped).expect("a reason").contains("through a pipe") && piped.tables.is_empty());
    let Some((_, none)) = page(&desk, &["--html-packets", "0", "slow.pcap"]) else { return };
    assert!(why(&none).expect("a reason").contains("--html-packets 0") && none.tables.is_empty());
    assert_eq!(none.report["captures"][0]["connections"], piped.report["captures"][0]["connections"]);
}

#[test]
fn several_captures_share_a_page() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    desk.file("many.pcap", &connections(3));
    let Some((_, page)) = page(&desk, &["slow.pcap", "many.pcap", "slow.pcap"]) else { return };
    assert_eq!(page.page["captures"].as_array().map(Vec::len), Some(3));
    assert_eq!(page.tables.len(), 5);
    for (capture, connections) in [(0, 1), (1, 3), (2, 1)] {
        for id in 0..connections {
            let connection = &page.report["captures"][capture]["connections"][id as usize];
            assert_agrees(connection, page.table(capture, id).expect("a table"));
        }
    }
}

#[test]
fn a_connection_with_too_many_packets_is_thinned_but_not_near_evidence() {
    const EXCHANGES: u32 = 5_000;
    let desk = Desk::new();
    let mut conversation = Conversation::start();
    for number in 0..EXCHANGES {
        conversation.wait(500).client(100 + number % 7).wait(1_000).server(0).wait(200).server(900);
        // Few of them are slow.
        conversation.wait(if number % 1_000 == 500 { 60_000 } else { 30 });
    }
    desk.file("long.pcap", &conversation.end());
    let Some((_, all)) = page(&desk, &["long.pcap"]) else { return };
    let (whole, entry) = all.table(0, 0).expect("a table");
    assert_eq!(entry["every"], 1);
    assert_eq!(entry["without_held"], false);
    assert_agrees(&all.report["captures"][0]["connections"][0], (whole, entry));
    let packets = whole["marks"]["number"].len();
    let size = element(&all.html, "tcpwhy-packets-0").expect("a table").len();
    assert!(size < EACH * packets, "{size} bytes for {packets} packets");

    let Some((_, part)) = page(&desk, &["--html-packets", "2000", "long.pcap"]) else { return };
    let (thinned, entry) = part.table(0, 0).expect("a table");
    assert_eq!(entry["every"], packets.div_ceil(2_000));
    assert_eq!((&entry["without_held"], &entry["coarse_ledger"]), (&json!(true), &json!(true)));
    let kept = &thinned["marks"]["number"];
    let evidence: Vec<i64> = part.report["captures"][0]["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .flat_map(|finding| finding["evidence"].as_array().expect("evidence"))
        .map(|evidence| evidence["packet"].as_i64().expect("a number"))
        .collect();
    assert!(!evidence.is_empty());
    for number in evidence.iter().flat_map(|number| number - 10..=number + 10) {
        assert!(kept.contains(&number) || number < 1 || number > packets as i64, "{number} is near evidence");
    }
    // SYN, SYN-ACK and both FINs.
    for number in [1, 2, packets as i64 - 2, packets as i64 - 1] {
        assert!(kept.contains(&number), "{number} begins or ends the connection");
    }
    assert!(kept.len() < 2_000 + 100 + 33 * evidence.len(), "{}", kept.len());
    // What is there is what it is in the whole table.
    for (row, number) in kept.iter().enumerate() {
        let at = whole["marks"]["number"].binary_search(number).expect("it is one of all");
        assert!(
            decode::PARTS[0]
                .1
                .iter()
                .all(|column| thinned["marks"][*column][row] == whole["marks"][*column][at])
        );
    }
}

#[test]
fn simulated_variants_have_a_page() {
    let desk = Desk::new();
    let ran = desk.run(&["simulate", "dsl-1998", "--html", "page.html"]);
    if !is_there(&ran) {
        return;
    }
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let page = Page::read(&desk.path().join("page.html"));
    let captures = page.report["captures"].as_array().expect("captures");
    assert!(captures.len() >= 4, "{}", captures.len());
    for (number, capture) in captures.iter().enumerate() {
        let end = if number % 2 == 0 { ", at the client" } else { ", at the server" };
        assert!(capture["name"].as_str().expect("a name").ends_with(end));
        assert_agrees(&capture["connections"][0], page.table(number, 0).expect("a table"));
    }
    let left = fs::read_dir(desk.path()).expect("a folder").count();
    assert_eq!(left, 1, "captures that nobody asked to keep are gone");
}
