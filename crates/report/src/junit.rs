//! JUnit's XML: what CI systems show as test results. A test case is a rule, and fails where that is found.
//!
//! There is no standard; this keeps to the part that all readers share, as Jenkins' schema (`junit-10.xsd`) has it: suites
//! with counts, one `failure` a case, its text in lines. Memory is bounded by the number of rules, not of findings.

use std::io::{self, Write};

use tcpwhy_diagnose::detectors::{Check, RULES, Rule, tells};
use tcpwhy_diagnose::hops::Hops;
use tcpwhy_diagnose::report::{Evidence, Finding, Severity, Source};

use crate::number;
use crate::page::GLUE;
use crate::terminal::{blamed, figures};
use crate::xml::escaped;

/// Findings of one rule that are told in full, the costliest.
const MOST: usize = 10;
/// Packets told of each.
const MOST_EVIDENCE: usize = 12;

/// Which findings are failures.
#[derive(Clone, Debug, Default)]
pub struct Criteria {
    /// Every finding that costs time.
    pub problems: bool,
    /// The findings of these rules, whatever their severity.
    pub rules: Vec<&'static str>,
}

impl Criteria {
    fn fails(&self, finding: &Finding) -> bool {
        self.problems && finding.severity == Severity::Problem
            || self.rules.iter().any(|rule| tells(finding.rule, rule))
    }

    /// The rules that may fail, about proxies or others: they are test cases also where they pass, so that a CI system sees
    /// them come and go.
    fn cases(&self, about_proxies: bool) -> Vec<Case> {
        let rules = RULES.iter().filter(|rule| matches!(rule.check, Check::Passage(_)) == about_proxies);
        let may_fail = |rule: &Rule| {
            self.problems && rule.severity == Severity::Problem || self.rules.contains(&rule.name)
        };
        let rules = rules.filter(|rule| may_fail(rule));
        rules.map(|rule| Case { rule: rule.name, ..Case::default() }).collect()
    }
}

/// What was found of one rule.
#[derive(Default)]
struct Case {
    rule: &'static str,
    findings: u64,
    cost_ms: f64,
    /// The costliest first.
    shown: Vec<Finding>,
    /// What else shows it, without a finding.
    beside: Option<String>,
}

/// Writes test results, a suite for each capture.
pub struct Writer<W: Write> {
    out: W,
    criteria: Criteria,
}

impl<W: Write> Writer<W> {
    /// Begins the results.
    pub fn begin(mut out: W, criteria: Criteria) -> io::Result<Self> {
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tcpwhy\">")?;
        Ok(Self { out, criteria })
    }

    /// Writes the suite of the next capture. `split_writes` is what the calls of programs tell of messages in pieces, where
    /// they were recorded and tell of any: a failure of `split-write`, also without a packet.
    pub fn capture(&mut self, source: &dyn Source, split_writes: Option<String>) -> io::Result<()> {
        let mut cases = self.criteria.cases(false);
        if let Some(case) = cases.iter_mut().find(|case| case.rule == "split-write") {
            case.beside = split_writes;
        }
        for finding in source.findings().filter(|finding| self.criteria.fails(finding)) {
            take(&mut cases, finding);
        }
        let capture = source.capture();
        self.suite(&capture.name, capture.start.as_deref(), &cases)
    }

    /// Writes the suite of an input that could not be read: an error, since nobody knows what is in it.
    pub fn unread(&mut self, name: &str, why: &str) -> io::Result<()> {
        let name = escaped(name);
        writeln!(
            self.out,
            "  <testsuite name=\"{name}\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">"
        )?;
        writeln!(self.out, "    <testcase classname=\"{name}\" name=\"is read\">")?;
        writeln!(self.out, "      <error message=\"{}\" type=\"unread\"/>", escaped(why))?;
        writeln!(self.out, "    </testcase>\n  </testsuite>")
    }

    /// Ends the results and hands the output back. `hops` are the conversations that captures show on both sides of a proxy:
    /// each is a suite.
    pub fn end(mut self, hops: Option<&Hops>) -> io::Result<W> {
        for pair in hops.into_iter().flat_map(|hops| &hops.pairs) {
            let mut cases = self.criteria.cases(true);
            for finding in pair.findings.iter().filter(|finding| self.criteria.fails(finding)) {
                take(&mut cases, finding.clone());
            }
            let name = format!("{} and {}", pair.first.name, pair.second.name);
            self.suite(&name, None, &cases)?;
        }
        writeln!(self.out, "</testsuites>")?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn suite(&mut self, name: &str, start: Option<&str>, cases: &[Case]) -> io::Result<()> {
        let failures = cases.iter().filter(|case| case.fails()).count();
        let timestamp = start.and_then(timestamp).map_or(String::new(), |at| format!(" timestamp=\"{at}\""));
        let (name, tests) = (escaped(name), cases.len());
        writeln!(
            self.out,
            "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\"{timestamp}>"
        )?;
        for case in cases {
            let head = format!("    <testcase classname=\"{name}\" name=\"{}\"", escaped(case.rule));
            match case.fails() {
                false => writeln!(self.out, "{head}/>")?,
                true => {
                    writeln!(self.out, "{head}>")?;
                    case.write_failure(&mut self.out)?;
                    writeln!(self.out, "    </testcase>")?;
                }
            }
        }
        writeln!(self.out, "  </testsuite>")
    }
}

/// Adds a finding to its rule's case.
fn take(cases: &mut Vec<Case>, finding: Finding) {
    let at = cases.iter().position(|case| case.rule == finding.rule).unwrap_or_else(|| {
        // A rule whose findings are graver than itself.
        cases.push(Case { rule: finding.rule, ..Case::default() });
        cases.len() - 1
    });
    let case = &mut cases[at];
    case.findings += 1;
    case.cost_ms += finding.cost_ms.0;
    let place = case.shown.partition_point(|shown| shown.cost_ms.0 >= finding.cost_ms.0);
    if place < MOST {
        case.shown.insert(place, finding);
        case.shown.truncate(MOST);
    }
}

impl Case {
    fn fails(&self) -> bool {
        self.findings > 0 || self.beside.is_some()
    }

    fn write_failure(&self, out: &mut impl Write) -> io::Result<()> {
        let message = match (self.shown.first(), self.findings) {
            (Some(only), 1) => only.summary.clone(),
            (Some(worst), many) => {
                let cost = number::duration(self.cost_ms);
                format!("{} findings, {cost} in all. The worst: {}", number::count(many), worst.summary)
            }
            (None, _) => "Messages are written in several pieces.".to_owned(),
        };
        let message = escaped(&message.replace(GLUE, " "));
        writeln!(out, "      <failure message=\"{message}\" type=\"{}\">", escaped(self.rule))?;
        for finding in &self.shown {
            finding_lines(finding).iter().try_for_each(|line| write_line(out, line))?;
        }
        if self.findings > self.shown.len() as u64 {
            let more = number::count(self.findings - self.shown.len() as u64);
            write_line(out, &format!("And {more} more, in the JSON report."))?;
        }
        for line in self.beside.iter().flat_map(|text| text.lines().chain([""])) {
            write_line(out, line)?;
        }
        write_line(out, &format!("More: tcpwhy explain {}", self.rule))?;
        writeln!(out, "      </failure>")
    }
}

fn write_line(out: &mut impl Write, line: &str) -> io::Result<()> {
    writeln!(out, "{}", escaped(&line.replace(GLUE, " ")))
}

/// A finding in lines: whose and how much, why, the packets, what to do.
fn finding_lines(finding: &Finding) -> Vec<String> {
    let mut head = vec![blamed(&finding.blame)];
    head.extend(finding.connection.map(|id| format!("connection {id}")));
    head.extend(figures(finding));
    let mut lines = vec![head.join(" · "), format!("  {}", finding.summary)];
    for Evidence { packet, time_ms, note, .. } in finding.evidence.iter().take(MOST_EVIDENCE) {
        lines.push(format!("  packet {packet}, {}: {note}", number::moment(time_ms.0)));
    }
    lines.extend(
        finding.fixes.iter().map(|fix| format!("  fix: {}. {}", fix.title.trim_end_matches('.'), fix.how)),
    );
    lines.push(String::new());
    lines
}

/// A time as JUnit has it, to the second and without a zone; none where the capture has no date.
fn timestamp(start: &str) -> Option<String> {
    let (whole, is_dated) = (start.split('.').next()?.trim_end_matches('Z'), start.contains('T'));
    is_dated.then(|| escaped(whole))
}
