//! What the relay saw, for people.

use std::io;

use tcpwhy_host::relay::{Connection, End, Passed, Path, Side, Summary, Total};
use tcpwhy_report::number::{bytes, count, duration};
use tcpwhy_report::page::{Page, Painted};
use tcpwhy_report::plain::plain;

const INDENT: &str = "    ";
/// A pass of the relay longer than this is worth a word: what it does takes some 20 µs. ms.
const WORTH_A_WORD: f64 = 1.0;

/// A connection that is over: a line, and one for each direction that carried something.
pub(super) fn connection(page: &mut Page<'_>, connection: &Connection) -> io::Result<()> {
    let Connection { number, client, target, duration_ms, end, .. } = connection;
    let (painted, how) = ending(end);
    let to = target.map_or_else(|| "nobody".to_owned(), |target| target.to_string());
    let title = page.ink.bold(&format!("#{number}  {client} → {to}"));
    let sign = page.ink.verdict(painted, painted.glyph());
    page.hanging("", &format!("{title}  {}, {how} {sign}", duration(*duration_ms)))?;
    for (arrow, passed) in [("→ ", &connection.up), ("← ", &connection.down)] {
        if passed.reads > 0 {
            page.hanging(&format!("{INDENT}{arrow}"), &direction(passed))?;
        }
    }
    let paths = [("client", &connection.client_path), ("target", &connection.target_path)];
    let paths: Vec<_> =
        paths.into_iter().filter_map(|(side, path)| Some(round_trip(side, path.as_ref()?))).collect();
    if !paths.is_empty() {
        page.hanging(INDENT, &format!("Round trips: {}", paths.join("; ")))?;
    }
    Ok(())
}

fn ending(end: &End) -> (Painted, String) {
    match end {
        End::Finished => (Painted::Good, "finished by both".to_owned()),
        End::Reset { by: Side::Client } => (Painted::Unclear, "reset by the client".to_owned()),
        End::Reset { by: Side::Target } => (Painted::Unclear, "reset by the target".to_owned()),
        End::Unreached { error } => (Painted::Bad, format!("target not reached: {}", plain(error))),
        End::Stopped => (Painted::Unclear, "open when the relay was stopped".to_owned()),
    }
}

fn direction(passed: &Passed) -> String {
    let came =
        passed.segments_in.map_or_else(String::new, |segments| format!(" of {}", segments_of(segments)));
    let left = passed
        .segments_out
        .map_or_else(String::new, |segments| format!(" that left in {}", segments_of(segments)));
    let mut words = vec![format!(
        "{} in {}{came}, {}{left}",
        bytes(passed.bytes),
        times(passed.reads, "read"),
        times(passed.writes, "write")
    )];
    if let Some(merged) = passed.sent_together().filter(|merged| *merged > 0) {
        words.push(format!("at least {} left merged with others", times(merged, "write")));
    }
    if passed.reads > 1 {
        words.push(format!("longest pause {}", duration(passed.longest_gap_ms)));
    }
    if passed.blocked > 0 {
        let waited = duration(passed.blocked_ms);
        words.push(format!("waited {waited} for the receiver, {}", times(passed.blocked, "time")));
    } else if passed.longest_hold_ms >= WORTH_A_WORD {
        words.push(format!("passed on after {} at most", duration(passed.longest_hold_ms)));
    }
    if passed.bytes_written < passed.bytes {
        words.push(format!("{} not passed on", bytes(passed.bytes - passed.bytes_written)));
    }
    words.join("; ")
}

fn round_trip(side: &str, path: &Path) -> String {
    let shortest = path.min_rtt_ms.map_or_else(String::new, |ms| format!(", shortest {}", duration(ms)));
    let again = match path.retransmits {
        0 => String::new(),
        many => format!(", {} sent again", segments_of(many)),
    };
    format!("{side} {}{shortest}{again}", duration(path.rtt_ms))
}

/// All connections, at the end.
pub(super) fn summary(page: &mut Page<'_>, summary: &Summary) -> io::Result<()> {
    let all = page.ink.bold(&times(summary.connections, "connection"));
    let mut words = vec![format!("{all} in {}", duration(summary.elapsed_ms))];
    let ends = [
        (summary.finished, "finished by both"),
        (summary.reset_by_client, "reset by the client"),
        (summary.reset_by_target, "reset by the target"),
        (summary.unreached, "without a target"),
        (summary.stopped, "open at the end"),
    ];
    words.extend(ends.iter().filter(|end| end.0 > 0).map(|(many, how)| format!("{} {how}", count(*many))));
    if summary.connections > 1 {
        words.push(format!("{} at once", count(summary.most_open as u64)));
    }
    page.hanging("", &words.join(", "))?;
    for (arrow, total) in [("→ ", &summary.up), ("← ", &summary.down)] {
        if total.reads > 0 {
            page.hanging(&format!("{INDENT}{arrow}"), &of_all(total))?;
        }
    }
    Ok(())
}

fn of_all(total: &Total) -> String {
    let mut words = vec![format!(
        "{} in {}, {}",
        bytes(total.bytes),
        times(total.reads, "read"),
        times(total.writes, "write")
    )];
    if total.sent_together > 0 {
        words.push(format!("at least {} left merged with others", times(total.sent_together, "write")));
    }
    if total.blocked > 0 {
        let waited = duration(total.blocked_ms);
        words.push(format!("waited {waited} for receivers, {}", times(total.blocked, "time")));
    }
    words.join("; ")
}

fn segments_of(many: u64) -> String {
    times(many, "segment")
}

/// `1 read`, `2 reads`.
fn times(many: u64, what: &str) -> String {
    format!("{} {what}{}", count(many), if many == 1 { "" } else { "s" })
}
