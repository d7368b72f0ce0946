//! From a capture to a report, and from two reports to what is different.

use std::io::Read;

use serde_json::json;

use super::serve;
use crate::capture::{healthy, write_write_read};
use crate::run::Desk;

#[test]
fn before_and_after_are_told_apart() {
    let desk = Desk::new();
    desk.file("before.pcap", &write_write_read());
    desk.file("after.pcap", &healthy());
    let Some(served) = serve(desk, &[]) else { return };
    let (before, after) = (served.report("before.pcap"), served.report("after.pcap"));
    let state = served.state();
    let [latest, first] = &state["reports"]["reports"].as_array().expect("a list")[..] else {
        panic!("{state}")
    };
    assert_eq!((&latest["capture"], &first["capture"]), (&json!("after.pcap"), &json!("before.pcap")));
    assert_eq!(latest["summary"]["rules"], json!([]));
    // The same sentence as on a terminal.
    let said = served.desk.run(&["before.pcap"]).stdout;
    let verdict = first["summary"]["verdict"].as_str().expect("a sentence");
    let bare = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    assert!(!verdict.is_empty() && bare(&said).contains(&bare(verdict)), "{verdict}\n{said}");

    let compared = served.get(&format!("/api/comparison/{before}/{after}")).json();
    let [service] = &compared["services"].as_array().expect("a list")[..] else { panic!("{compared}") };
    assert_eq!(service["matched"], "address");
    let problems = service["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|finding| finding["severity"] == "problem");
    let gone: Vec<_> =
        problems.map(|finding| (finding["rule"].as_str(), finding["change"].as_str())).collect();
    assert!(gone.contains(&(Some("split-write"), Some("gone"))), "{gone:?}");
    assert!(gone.iter().all(|(_, change)| *change == Some("gone")), "{gone:?}");
    // By the capture's own times: a request waits 41 ms for an ACK and 1.3 ms for its answer; without, 1.1 ms.
    let mean = |side: &str| service[side]["exchanges"]["mean_ms"].as_f64().expect("a mean");
    assert!((mean("before") - 42.315).abs() < 0.01 && (mean("after") - 1.1).abs() < 0.01, "{service}");
    let back = served.get(&format!("/api/comparison/{after}/{before}")).json();
    assert!(back["verdict"].as_str().is_some_and(|verdict| verdict.starts_with("New: ")), "{back}");
}

#[test]
fn a_report_is_shown_apart_from_everything_else() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let Some(served) = serve(desk, &[]) else { return };
    let report = served.report("slow.pcap");
    let plain = served.get(&format!("/reports/{report}"));
    assert_eq!(plain.status, 200, "{plain:?}");
    let policy = plain.header("content-security-policy").expect("a policy");
    assert!(policy.contains("sandbox allow-scripts") && !policy.contains("allow-same-origin"), "{policy}");
    assert!(plain.text().contains("split-write"), "{}", plain.text());
    // Compressed, it is the same.
    let headers = [("Cookie", served.cookie.as_str()), ("Accept-Encoding", "gzip, br")];
    let packed = served.send(&served.head("GET", &format!("/reports/{report}"), &headers, None));
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_end(&mut unpacked).expect("gzip");
    assert!(unpacked == plain.body && packed.body.len() < plain.body.len());

    assert_eq!(served.ask("DELETE", &format!("/api/reports/{report}"), b"").status, 204);
    assert_eq!(served.get(&format!("/reports/{report}")).status, 404);
    assert_eq!(served.ask("DELETE", &format!("/api/reports/{report}"), b"").status, 404);
    assert_eq!(served.state()["reports"], json!({ "reports": [], "more": 0 }));
}

/// What a folder's files are called, others may have decided.
#[test]
fn names_come_through_as_they_are() {
    let desk = Desk::new();
    let names = [
        "<img src=x onerror=alert(1)>.pcap",
        "a\u{202e}pacp.exe.pcap",
        "line\nfeed.pcap",
        "%2e%2e.pcap",
        "\"',&$`.pcap",
    ];
    for name in names {
        desk.file(name, &healthy());
    }
    let Some(served) = serve(desk, &[]) else { return };
    let mut listed = served.captures();
    listed.sort_unstable();
    let mut wanted = names.to_vec();
    wanted.sort_unstable();
    assert_eq!(listed, wanted);
    let report = served.report(names[0]);
    let page = served.get(&format!("/reports/{report}")).text();
    assert!(!page.contains("<img src=x"), "the name as an element");
    // A refusal does not repeat what was asked for.
    let answer = served.get("/<script>alert(1)</script>");
    assert!(!answer.text().contains("script"), "{answer:?}");
}
