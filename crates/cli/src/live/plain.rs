//! A line for each finding, as it appears: what is shown where no screen is.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use tcpwhy_diagnose::detectors::counted;
use tcpwhy_diagnose::report::Severity;
use tcpwhy_report::number;
use tcpwhy_report::plain::plain;

use super::Args;
use super::announce::{Announced, News};
use super::capture::Running;
use super::names::{self, Names};
use crate::args::ReportFormat;
use crate::{complaint, output};

/// Lines of one rule at a time: a server that answers each of a thousand connections late is one story.
const MOST_OF_A_RULE: u64 = 5;
/// Time between two looks.
const SECOND: Duration = Duration::from_secs(1);

/// Prints findings as they appear, until the capture ends.
pub(super) fn show(running: &Running, args: &Args) -> io::Result<()> {
    let start = Instant::now();
    let filter = if running.filter.is_empty() { String::new() } else { format!(", {}", running.filter) };
    complaint::say(&format!("listening on {}{filter}; Ctrl-C ends with the report", running.interface));
    let mut announced = Announced::default();
    let mut dropped = 0;
    while !running.wait(SECOND) {
        let Some(progress) = running.progress() else { break };
        let drops = progress.statistics.dropped;
        if drops > dropped {
            complaint::say(&format!("the kernel dropped {} packets", drops - dropped));
            dropped = drops;
        }
        if args.format != ReportFormat::Terminal {
            continue;
        }
        let mut out = output::stdout();
        let news = announced.new_in(&progress.diagnosis());
        if !news.is_empty() {
            // What a connection suffers from at once is told with its programs.
            running.names.look();
        }
        tell(&mut out, start.elapsed(), &news, &running.names)?;
        out.flush()?;
    }
    if args.format == ReportFormat::Terminal && announced.any() {
        writeln!(io::stdout())?;
    }
    Ok(())
}

/// A line for each, and of too many of one rule how many more they are.
fn tell(out: &mut impl Write, since: Duration, news: &[News], names: &Names) -> io::Result<()> {
    let mut of_rule: BTreeMap<&str, u64> = BTreeMap::new();
    for news in news {
        let told = of_rule.entry(news.finding.rule).or_default();
        *told += 1;
        if *told <= MOST_OF_A_RULE {
            writeln!(out, "{}", line(since, news, names))?;
        }
    }
    for (rule, told) in of_rule.into_iter().filter(|(_, told)| *told > MOST_OF_A_RULE) {
        let more = counted(told - MOST_OF_A_RULE, "more connection");
        writeln!(out, "{:>7}  … {rule}  on {more}", instant(since))?;
    }
    Ok(())
}

/// `12 s  ✖ nagle-delayed-ack  10.0.0.1:4711 → 10.0.0.2:80, curl (812) → –: what was found`.
fn line(since: Duration, news: &News, names: &Names) -> String {
    let News { finding, connection } = news;
    let sign = if finding.severity == Severity::Problem { '✖' } else { '▲' };
    let whose = connection.as_ref().map_or_else(
        || "the capture".to_owned(),
        |connection| {
            let programs = names::described(&names.of_connection(connection));
            let programs = programs.map_or_else(String::new, |programs| format!(", {programs}"));
            format!("{} → {}{programs}", plain(&connection.client), plain(&connection.server))
        },
    );
    format!("{:>7}  {sign} {}  {whose}: {}", instant(since), finding.rule, plain(&finding.summary))
}

/// To the second: looks are a second apart.
fn instant(since: Duration) -> String {
    number::duration(since.as_secs_f64().round() * 1e3).replace('\u{a0}', " ")
}

#[cfg(test)]
mod tests {
    use tcpwhy_diagnose::report::{Blame, Blamed, Finding, Ms};

    use super::*;

    fn news(rule: &'static str) -> News {
        let finding = Finding {
            rule,
            severity: Severity::Advice,
            connection: None,
            blame: Blame { side: Blamed::Server, address: None },
            count: 1,
            cost_ms: Ms(20.0),
            worst_ms: Ms(20.0),
            confidence: 0.9,
            summary: "Slow.".to_owned(),
            evidence: Vec::new(),
            fixes: Vec::new(),
        };
        News { finding, connection: None }
    }

    #[test]
    fn many_of_one_rule_are_counted() {
        let mut many: Vec<News> = (0..7).map(|_| news("slow-server")).collect();
        many.push(news("syn-retry"));
        let mut out = Vec::new();
        tell(&mut out, Duration::from_secs(2), &many, &Names::default()).expect("memory");
        let said = String::from_utf8(out).expect("UTF-8");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 7, "{said}");
        assert_eq!(lines[5], " 2.00 s  ▲ syn-retry  the capture: Slow.");
        assert_eq!(lines[6], " 2.00 s  … slow-server  on 2 more connections");
    }
}
