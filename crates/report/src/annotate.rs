//! A diagnosis as comments in a capture file: one on each packet that is evidence, and a summary on the file.
//!
//! What copies the packets and writes the comments is `tcpwhy_wire::container::annotate`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tcpwhy_diagnose::detectors::grouped;
use tcpwhy_diagnose::report::{Evidence, Finding, Severity, Source};

use crate::number;
use crate::page::GLUE;
use crate::plain::plain;
use crate::terminal::{self, blamed};

/// What every comment begins with: the filter `frame.comment contains "tcpwhy"` finds them.
pub const MARK: &str = "tcpwhy: ";

/// Packets of evidence kept, those of the worst findings, which take some 30 MB. Nobody reads more comments.
const MOST: usize = 100_000;
/// Comments on one packet. A packet that a dozen findings name is rare; one with a hundred is made up.
const MOST_ON_A_PACKET: usize = 32;
/// Packets of the same case that a comment refers back to.
const MOST_BEFORE: usize = 3;
/// Findings in the summary: as many as fit on a screen.
const MOST_IN_SUMMARY: usize = 20;

/// What is to be written into a capture file: each text is one line without control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comments {
    /// About the file: the verdict, then the findings, the worst first.
    pub summary: Vec<String>,
    /// About packets, by their numbers from 1.
    pub packets: BTreeMap<u64, Vec<String>>,
    /// Comments that were left out because there are too many.
    pub left_out: u64,
}

/// Which finding is worse: by severity, then cost (µs); of equals the earlier one.
type Weight = (Severity, u64, Reverse<u64>);

impl Comments {
    /// The comments for the capture that `source` is about; `version` is the program's.
    pub fn of(source: &dyn Source, version: &str) -> Self {
        let (worst, left_out, findings) = worst(source);
        let mut comments = Self { left_out, ..Self::default() };
        let verdict = terminal::verdict(source);
        comments.summary.push(line(&format!("{verdict} (tcpwhy {version})")));
        for finding in worst.values().rev().take(MOST_IN_SUMMARY) {
            comments.summary.push(line(&in_summary(finding)));
        }
        if let Some(more) = findings.checked_sub(MOST_IN_SUMMARY as u64).filter(|more| *more > 0) {
            comments.summary.push(line(&format!("and {} more findings", grouped(more))));
        }
        for finding in worst.values().rev() {
            (0..finding.evidence.len()).for_each(|at| comments.add(finding, at));
        }
        comments
    }

    /// Adds the comment on a finding's evidence number `at`.
    fn add(&mut self, finding: &Finding, at: usize) {
        let Evidence { packet, note, .. } = &finding.evidence[at];
        let text = line(&format!("{}: {note}{}", finding.rule, in_case(&finding.evidence, at)));
        let texts = self.packets.entry(*packet).or_default();
        if texts.len() >= MOST_ON_A_PACKET {
            self.left_out += 1;
        } else if !texts.contains(&text) {
            texts.push(text);
        }
    }
}

/// The worst findings, as many as have [`MOST`] packets of evidence together; how many packets the others have, and how
/// many findings there are in all.
fn worst(source: &dyn Source) -> (BTreeMap<Weight, Finding>, u64, u64) {
    let (mut kept, mut packets, mut left_out, mut count) = (BTreeMap::new(), 0, 0, 0_u64);
    for finding in source.findings() {
        let weight = (finding.severity, (finding.cost_ms.0.max(0.0) * 1e3) as u64, Reverse(count));
        count += 1;
        // Without evidence it takes room all the same.
        packets += finding.evidence.len().max(1);
        kept.insert(weight, finding);
        while packets > MOST
            && let Some((_, lightest)) = kept.pop_first()
        {
            packets -= lightest.evidence.len().max(1);
            left_out += lightest.evidence.len() as u64;
        }
    }
    (kept, left_out, count)
}

/// `nagle-delayed-ack (problem, server 10.0.0.2:80, connection 3): …`.
fn in_summary(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Problem => "problem",
        Severity::Advice => "advice",
        Severity::Note => "note",
    };
    let connection = finding.connection.map_or(String::new(), |id| format!(", connection {id}"));
    format!("{} ({severity}, {}{connection}): {}", finding.rule, blamed(&finding.blame), finding.summary)
}

/// ` (200 ms after packet 7; next is packet 9)`: where a packet stands in its case. Cases stand one behind the other, each in
/// order of its packets, and begin alike.
fn in_case(evidence: &[Evidence], at: usize) -> String {
    let is_next = |at: usize| {
        evidence[at].packet > evidence[at - 1].packet && !is_alike(&evidence[at].note, &evidence[0].note)
    };
    let first = (1..=at).rev().take_while(|at| is_next(*at)).last().map_or(at, |second| second - 1);
    let before = evidence[first..at].iter().rev().take(MOST_BEFORE).rev().map(|before| {
        let later = number::duration(evidence[at].time_ms.0 - before.time_ms.0);
        format!("{later} after packet {}", before.packet)
    });
    let mut parts = vec![before.collect::<Vec<_>>().join(", ")];
    if at + 1 < evidence.len() && is_next(at + 1) {
        parts.push(format!("next is packet {}", evidence[at + 1].packet));
    }
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Whether two notes say the same but for the numbers in them.
fn is_alike(one: &str, other: &str) -> bool {
    let words = |text: &str| text.split(|c: char| c.is_ascii_digit() || c == '.').collect::<String>();
    words(one) == words(other)
}

/// A comment: marked as ours, on one line.
fn line(text: &str) -> String {
    plain(&format!("{MARK}{}", text.replace(GLUE, " "))).into_owned()
}

#[cfg(test)]
mod tests {
    use tcpwhy_diagnose::report::Ms;

    use super::*;

    #[test]
    fn packets_of_a_case_know_each_other() {
        let shown = |packet, ms, note: &str| Evidence {
            packet,
            time_ms: Ms(ms),
            note: note.to_owned(),
            capture: None,
        };
        let evidence = [
            shown(5, 10.0, "a segment of 100 bytes leaves"),
            shown(7, 50.0, "the ACK, 40 ms later"),
            shown(8, 50.02, "the rest leaves"),
            // The next case.
            shown(15, 100.0, "a segment of 17.5 bytes leaves"),
            shown(16, 141.0, "the ACK, 41 ms later"),
            // A case that lacks its first packet stands before that in the file.
            shown(2, 3.0, "the rest leaves"),
        ];
        let told: Vec<_> = (0..6).map(|at| in_case(&evidence, at).replace(GLUE, " ")).collect();
        let expected = [
            " (next is packet 7)",
            " (40.0 ms after packet 5; next is packet 8)",
            " (40.0 ms after packet 5, 20 µs after packet 7)",
            " (next is packet 16)",
            " (41.0 ms after packet 15)",
            "",
        ];
        assert_eq!(told, expected);
    }
}
