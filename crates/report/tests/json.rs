//! The JSON report: its schema, its page, its layout, and what happens to hostile text and closed pipes.

mod passed_on;
mod samples;

use std::collections::BTreeSet;
use std::io::{self, Write};

use samples::Crowd;
use serde_json::Value;
use tcpwhy_diagnose::report::{Line, Source};
use tcpwhy_report::html::{Chosen, Limits, Listed};
use tcpwhy_report::json::{self, Writer};

const SCHEMA: &str = include_str!("../../../docs/report.schema.json");
const PAGE: &str = include_str!("../../../docs/report-format.md");

fn text<'a>(sources: impl IntoIterator<Item = &'a dyn Source>) -> String {
    let mut out = Vec::new();
    json::write(&mut out, sources, "0.1.0").unwrap();
    String::from_utf8(out).unwrap()
}

fn all() -> String {
    let samples = samples::all();
    text(samples.iter().map(|(_, sample)| sample as &dyn Source))
}

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn complaints(report: &Value) -> Vec<String> {
    validator().iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn reports_are_as_the_schema_says() {
    let report = serde_json::from_str(&all()).unwrap();
    assert_eq!(complaints(&report), Vec::<String>::new());
    let crowd = serde_json::from_str(&text([&Crowd { connections: 500 } as &dyn Source])).unwrap();
    assert_eq!(complaints(&crowd), Vec::<String>::new());
    assert_eq!(complaints(&serde_json::from_str(&text([])).unwrap()), Vec::<String>::new());
}

#[test]
fn the_schema_is_strict() {
    let whole: Value = serde_json::from_str(&text([&samples::nagle() as &dyn Source])).unwrap();
    let places = ["", "/captures/0", "/captures/0/connections/0", "/captures/0/connections/0/ledger_ms"];
    let more =
        ["/captures/0/findings/0", "/captures/0/findings/0/blame", "/captures/0/findings/0/evidence/0"];
    let last = ["/captures/0/findings/0/fixes/0", "/captures/0/connections/0/cadence/0"];
    for place in places.into_iter().chain(more).chain(last) {
        let keys: Vec<String> = whole.pointer(place).unwrap().as_object().unwrap().keys().cloned().collect();
        for key in keys {
            let mut less = whole.clone();
            less.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(&key);
            assert!(!complaints(&less).is_empty(), "{place} without {key} passed");
        }
        let mut more = whole.clone();
        more.pointer_mut(place).unwrap().as_object_mut().unwrap().insert("new".to_owned(), Value::Null);
        assert!(!complaints(&more).is_empty(), "{place} with another key passed");
    }
    let wrong = [
        ("/captures/0/findings/0/severity", "fatal"),
        ("/captures/0/findings/0/blame/side", "nobody"),
        ("/captures/0/findings/0/rule", "Not A Rule"),
        ("/captures/0/connections/0/vantage", "left"),
        ("/captures/0/connections/0/protocol", "sctp"),
        ("/format", "tcpwhy-report/3"),
    ];
    for (place, value) in wrong {
        let mut report = whole.clone();
        *report.pointer_mut(place).unwrap() = value.into();
        assert!(!complaints(&report).is_empty(), "{place} = {value} passed");
    }
}

#[test]
fn every_connection_has_every_line() {
    let report: Value = serde_json::from_str(&all()).unwrap();
    let connections =
        report["captures"].as_array().unwrap().iter().flat_map(|c| c["connections"].as_array().unwrap());
    let mut seen = 0;
    for connection in connections {
        let ledger = connection["ledger_ms"].as_object().unwrap();
        assert_eq!(ledger.len(), Line::ALL.len());
        let total: f64 = Line::ALL.iter().map(|line| ledger[line.name()].as_f64().unwrap()).sum();
        assert!((total - connection["duration_ms"].as_f64().unwrap()).abs() < 1e-3);
        seen += 1;
    }
    assert_eq!(seen, 49);
}

/// Every property the schema names.
fn properties(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                names.extend(properties.keys().cloned());
            }
            object.values().for_each(|value| properties(value, names));
        }
        Value::Array(values) => values.iter().for_each(|value| properties(value, names)),
        _ => {}
    }
}

#[test]
fn the_page_names_every_property_and_no_other() {
    let mut names = BTreeSet::new();
    properties(&serde_json::from_str(SCHEMA).unwrap(), &mut names);
    assert!(names.contains("base_rtt_ms") && names.contains("delayed-ack"));
    for name in &names {
        assert!(PAGE.contains(&format!("`{name}`")), "{name} is not on the page");
    }
    let fields = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    for field in fields {
        assert!(names.contains(field), "{field} is on the page and not in the schema");
    }
}

#[test]
fn the_example_on_the_page_is_a_report() {
    let example = PAGE.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let report: Value = serde_json::from_str(example).unwrap();
    assert_eq!(complaints(&report), Vec::<String>::new());
    let connection = &report["captures"][0]["connections"][0];
    let booked: f64 = connection["ledger_ms"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
    assert_eq!(booked, connection["duration_ms"].as_f64().unwrap());
}

#[test]
fn a_connection_and_a_finding_have_a_line_each() {
    let text = text([&samples::requests() as &dyn Source]);
    assert_eq!(text.lines().filter(|line| line.starts_with("{\"id\":")).count(), 40);
    assert_eq!(text.lines().filter(|line| line.starts_with("{\"rule\":")).count(), 2);
    for line in text.lines().filter(|line| line.starts_with("{\"id\":")) {
        let connection = line.trim_end_matches(',').trim_end_matches("],\"findings\":[");
        serde_json::from_str::<Value>(connection).unwrap();
    }
}

#[test]
fn captures_may_come_one_after_the_other() {
    let mut writer = Writer::begin(Vec::new(), "0.1.0").unwrap();
    writer.capture(&samples::nagle()).unwrap();
    writer.capture(&samples::upload()).unwrap();
    let bytes = writer.end().unwrap();
    let (nagle, upload) = (samples::nagle(), samples::upload());
    assert_eq!(String::from_utf8(bytes).unwrap(), text([&nagle as &dyn Source, &upload as &dyn Source]));
}

#[test]
fn hostile_text_is_escaped_and_comes_back_as_it_was() {
    let sample = samples::hostile();
    let text = text([&sample as &dyn Source]);
    let acts = |c: &char| c.is_control() && *c != '\n' || matches!(c, '\u{202e}' | '\u{2067}' | '\u{200b}');
    assert_eq!(text.chars().find(acts), None);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["captures"][0]["connections"][0]["client"], sample.connections[0].client);
    let [client, server] = ["client_program", "server_program"]
        .map(|end| report["captures"][0]["connections"][0][end]["name"].clone());
    assert_eq!((client, server), ("=\u{9b}2J</script>\n".into(), "a\u{202e}b`|".into()));
    assert_eq!(report["captures"][0]["name"], sample.capture.name);
}

#[test]
fn a_program_that_nobody_knows_is_absent() {
    let report: Value = serde_json::from_str(&text([&samples::slow_server() as &dyn Source])).unwrap();
    let connection = report["captures"][0]["connections"][0].as_object().unwrap();
    assert_eq!(connection["client_program"], serde_json::json!({ "name": "curl", "pid": 4711 }));
    assert!(!connection.contains_key("server_program"));
    let mut wrong = report.clone();
    wrong["captures"][0]["connections"][0]["client_program"] = Value::Null;
    assert!(!complaints(&wrong).is_empty(), "it is never null");
}

/// Takes some bytes, then the reader is gone.
struct Pipe(usize);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_broken_pipe_is_reported_as_one_wherever_it_breaks() {
    let sample = samples::nagle();
    for room in [0, 10, 200, 1_000] {
        let error = json::write(&mut Pipe(room), [&sample as &dyn Source], "0.1.0").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "after {room} bytes");
    }
}

#[test]
fn looks() {
    insta::assert_snapshot!("json", text([&samples::nagle() as &dyn Source]));
}

#[test]
fn a_page_lists_a_part_and_sums_the_rest() {
    let crowd = Crowd { connections: 5_000 };
    let limits = Limits::one_of(1);
    let chosen = Chosen::of(&crowd, limits);
    assert_eq!(chosen.connections, 5_000);
    assert_eq!(chosen.findings, crowd.findings().count() as u64);
    let listed: Value = serde_json::from_str(&text([&Listed::of(&crowd, &chosen) as &dyn Source])).unwrap();
    assert_eq!(complaints(&listed), Vec::<String>::new());
    let (connections, findings) = (&listed["captures"][0]["connections"], &listed["captures"][0]["findings"]);
    let (connections, findings) = (connections.as_array().unwrap(), findings.as_array().unwrap());
    assert!(connections.len() > 500 && connections.len() <= limits.connections, "{}", connections.len());
    let about_one = findings.iter().filter(|finding| !finding["connection"].is_null());
    assert!(about_one.clone().count() <= limits.findings);
    let is_listed = |finding: &Value| connections.iter().any(|one| one["id"] == finding["connection"]);
    assert!(about_one.clone().all(is_listed), "each finding's connection is there");
    // The costliest is among them, and the sums stay.
    let dearest = crowd.findings().map(|finding| finding.cost_ms.0).fold(0.0, f64::max);
    assert!(findings.iter().any(|finding| (finding["cost_ms"].as_f64().unwrap() - dearest).abs() < 1e-3));
    for line in Line::ALL {
        let of_listed: f64 =
            connections.iter().map(|one| one["ledger_ms"][line.name()].as_f64().unwrap()).sum();
        let all = of_listed + chosen.others_ledger_ms.get(line);
        assert!((all - crowd.capture().ledger_ms.get(line)).abs() < 1.0, "{}: {all}", line.name());
    }
    let small = Chosen::of(&crowd, Limits::one_of(100));
    assert!(small.listed.len() <= 20 && !small.listed.is_empty());
    // However many captures there are, they have a page's room together, and each something.
    let mut room = limits;
    let mut listed = 0;
    for _ in 0..50 {
        let chosen = Chosen::of(&crowd, limits.within(room));
        assert!(!chosen.listed.is_empty());
        (room, listed) = (room.beside(&chosen), listed + chosen.listed.len());
    }
    assert!(listed <= limits.connections + 50 * 20, "{listed}");
}
