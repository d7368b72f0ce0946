//! Formats that people send to each other: what strangers wrote stays text in all of them, and memory is bounded.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use roxmltree::Document;
use tcpwhy_diagnose::detectors::RULES;
use tcpwhy_diagnose::report::{Finding, Ms, Severity, Source};
use tcpwhy_report::annotate::{Comments, MARK};
use tcpwhy_report::csv::{self, Table};
use tcpwhy_report::junit::{self, Criteria};
use tcpwhy_report::markdown;

use crate::samples::{self, Sample};

fn in_markdown(source: &dyn Source) -> String {
    let mut writer = markdown::Writer::begin(Vec::new(), 5);
    writer.capture(source).expect("memory takes it");
    String::from_utf8(writer.end(None).expect("memory takes it")).expect("UTF-8")
}

fn in_csv(source: &dyn Source, table: Table) -> String {
    let mut writer = csv::Writer::begin(Vec::new(), table).expect("memory takes it");
    writer.capture(source).expect("memory takes it");
    String::from_utf8(writer.end(None).expect("memory takes it")).expect("UTF-8")
}

fn in_junit(source: &dyn Source) -> String {
    let criteria = Criteria { problems: true, rules: RULES.iter().map(|rule| rule.name).collect() };
    let mut writer = junit::Writer::begin(Vec::new(), criteria).expect("memory takes it");
    writer.capture(source, Some("a.c:7 <b>\n\x1b[2J".to_owned())).expect("memory takes it");
    String::from_utf8(writer.end(None).expect("memory takes it")).expect("UTF-8")
}

/// Every text that a capture may bring along says this.
const BAIT: &str =
    "=1+1 @everyone #12 <img src=x> [a](http://b.c) www.d.e f@g.h `<b>` |x| \x1b[2J\u{202e}\n# i\n";

/// A report whose names, notes and sentences are all bait.
fn bait() -> Sample {
    let mut sample = samples::nagle();
    sample.capture.name = BAIT.to_owned();
    sample.capture.notes = vec![BAIT.to_owned()];
    for connection in &mut sample.connections {
        (connection.client, connection.server) = (BAIT.to_owned(), BAIT.to_owned());
    }
    for finding in &mut sample.findings {
        finding.summary = BAIT.to_owned();
        finding.blame.address = Some(BAIT.to_owned());
        finding.evidence.iter_mut().for_each(|shown| shown.note = BAIT.to_owned());
    }
    sample
}

fn all() -> Vec<(&'static str, Sample)> {
    samples::all().into_iter().chain([("bait", bait())]).collect()
}

#[test]
fn markdown_is_made_of_words() {
    for (name, sample) in all() {
        let markdown = in_markdown(&sample);
        let mut tables = 0;
        for event in Parser::new_ext(&markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
            match event {
                Event::Html(html) | Event::InlineHtml(html) => panic!("{name}: {html}"),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    panic!("{name}: {dest_url}")
                }
                Event::Start(Tag::Emphasis | Tag::Strikethrough | Tag::BlockQuote(_)) => {
                    panic!("{name}: {markdown}")
                }
                // GitHub and others look through the text that is not code.
                Event::Text(text) => {
                    for what in ["@", "#", "://", "www."] {
                        assert!(!text.contains(what), "{name}: {what} in {text}");
                    }
                    // As in "<1 %".
                    let mut tags = text.split('<').skip(1);
                    assert!(tags.all(|after| !after.starts_with(char::is_alphabetic)), "{name}: {text}");
                }
                Event::End(TagEnd::Table) => tables += 1,
                _ => {}
            }
        }
        assert!(tables > 0 || sample.findings.is_empty(), "{name}: {markdown}");
        assert!(!markdown.contains(|c: char| c.is_control() && c != '\n'), "{name}");
    }
}

#[test]
fn tables_hold_no_formula_and_no_control_code() {
    for (name, sample) in all() {
        for table in [Table::Connections, Table::Findings] {
            let text = in_csv(&sample, table);
            let lines = text.matches("\r\n").count();
            let rows =
                if table == Table::Findings { sample.findings.len() } else { sample.connections.len() };
            assert_eq!(lines, rows + 1, "{name}");
            let bare = text.replace("\r\n", "\n");
            assert!(!bare.contains(|c: char| c.is_control() && c != '\n'), "{name}: {bare}");
            for cell in bare.lines().skip(1).flat_map(|line| line.split(',')) {
                assert!(!cell.trim_start_matches('"').starts_with(['=', '+', '@']), "{name}: {cell}");
            }
        }
    }
    // No comma in it, but quotes are: a cell that has them is quoted, and they are doubled.
    let mut sample = samples::nagle();
    sample.connections[0].client = "a\"b".to_owned();
    assert!(in_csv(&sample, Table::Connections).contains(",\"a\"\"b\","));
}

#[test]
fn test_results_are_xml_whatever_is_in_them() {
    for (name, sample) in all() {
        let text = in_junit(&sample);
        let document = Document::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{name}");
        let failures = document.descendants().filter(|node| node.has_tag_name("failure"));
        let mut rules: Vec<_> =
            sample.findings.iter().map(|finding| finding.rule).chain(["split-write"]).collect();
        rules.sort_unstable();
        rules.dedup();
        assert_eq!(failures.count(), rules.len(), "{name}");
    }
}

#[test]
fn comments_are_lines_and_their_number_is_bounded() {
    for (name, sample) in all() {
        let comments = Comments::of(&sample, "1.2.3");
        assert!(comments.summary[0].ends_with("(tcpwhy 1.2.3)"), "{name}: {comments:?}");
        assert_eq!(comments.summary.len(), 1 + sample.findings.len(), "{name}");
        for text in comments.packets.values().flatten().chain(&comments.summary) {
            assert!(text.starts_with(MARK) && !text.contains(char::is_control), "{name}: {text}");
        }
    }
}

/// Findings without end, each with two packets of evidence; the last one is the worst.
struct Endless(u64);

impl Source for Endless {
    fn capture(&self) -> tcpwhy_diagnose::report::Capture {
        samples::nagle().capture
    }

    fn connections(&self) -> Box<dyn Iterator<Item = tcpwhy_diagnose::report::Connection> + '_> {
        Box::new(samples::nagle().connections.into_iter())
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        let model = samples::nagle().findings[0].clone();
        Box::new((0..self.0).map(move |number| {
            let mut finding = model.clone();
            (finding.severity, finding.cost_ms) = (Severity::Problem, Ms(number as f64));
            finding.connection = Some(0);
            finding.evidence.truncate(2);
            finding.evidence[0].packet = 2 * number + 1;
            finding.evidence[1].packet = 2 * number + 2;
            finding
        }))
    }
}

#[test]
fn of_too_many_findings_the_worst_are_written() {
    let comments = Comments::of(&Endless(60_000), "0");
    assert_eq!((comments.packets.len(), comments.left_out), (100_000, 20_000));
    // The first 10,000 findings are the least.
    assert_eq!(comments.packets.keys().next(), Some(&20_001));
    assert_eq!(comments.summary.len(), 1 + 20 + 1);
    assert_eq!(comments.summary[21], "tcpwhy: and 59,980 more findings");
    let texts = comments.packets.values().next().expect("a comment");
    assert!(texts[0].contains("next is packet 20002"), "{texts:?}");
}
