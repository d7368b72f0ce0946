//! A line for each finding, as it appears: what is shown where no screen is.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use tcpwhy_diagnose::report::Severity;
use tcpwhy_report::number;
use tcpwhy_report::plain::plain;

use super::Args;
use super::announce::{Announced, News};
use super::capture::Running;
use super::names::{self, Names};
use crate::args::ReportFormat;
use crate::{complaint, output};

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
        for news in news {
            writeln!(out, "{}", line(start.elapsed(), &news, &running.names))?;
        }
        out.flush()?;
    }
    if args.format == ReportFormat::Terminal && announced.any() {
        writeln!(io::stdout())?;
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
    let since = number::duration(since.as_secs_f64().round() * 1e3).replace('\u{a0}', " ");
    format!("{since:>7}  {sign} {}  {whose}: {}", finding.rule, plain(&finding.summary))
}
