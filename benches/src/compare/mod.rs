//! Times tcpwhy beside other tools on the generated captures, and prints the ratios.

mod goals;
mod run;
mod table;
mod tools;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use crate::manifest::{Capture, Manifest};
use goals::Goal;
pub use run::Clock;
use run::Run;
use tools::{READ, TCPTRACE, TCPWHY, TCPWHY_JSON, TSHARK, Tool, tools};

/// On a quiet machine, a tool that reads from the page cache is on a processor for at least this share of its time.
const QUIET_SHARE: f64 = 0.9;

/// What to measure, and how.
#[derive(Debug)]
pub struct Options<'a> {
    /// Folder of the captures.
    pub dir: &'a Path,
    /// The tcpwhy to measure.
    pub tcpwhy: &'a Path,
    /// Names of tools to leave out.
    pub without: &'a [String],
    /// Beginnings of the names of captures to take; all of them where there is none.
    pub only: &'a [String],
    /// What speeds are reckoned by.
    pub clock: Clock,
}

/// One capture's measurements, by tool.
struct Row {
    capture: Capture,
    runs: BTreeMap<&'static str, Run>,
    clock: Clock,
}

impl Row {
    fn run(&self, tool: &str) -> Option<&Run> {
        self.runs.get(tool)
    }

    /// How many times as fast as `tool` tcpwhy is.
    fn ratio(&self, tool: &str) -> Option<f64> {
        Some(self.seconds(tool)? / self.seconds(TCPWHY)?)
    }

    fn seconds(&self, tool: &str) -> Option<f64> {
        Some(self.run(tool)?.seconds(self.clock))
    }

    /// Whether tcpwhy had to share its processor with other work.
    fn disturbed(&self) -> bool {
        self.run(TCPWHY).is_some_and(|run| run.cpu < QUIET_SHARE * run.wall)
    }
}

/// Measures the captures with the tools, and prints the tables.
pub fn compare(options: &Options) -> Result<()> {
    let &Options { dir, tcpwhy, without, only, clock } = options;
    let manifest = Manifest::load(dir)?;
    let tools = usable(tools(tcpwhy), without);
    let mut rows = Vec::new();
    for capture in &manifest.captures {
        if capture.name == "tiny" || !wanted(&capture.name, only) {
            continue;
        }
        rows.push(measure(capture, dir, &tools, clock)?);
    }
    let tiny = manifest.named("tiny").context("no tiny capture: run `generate` again")?;
    let tcpwhy_alone: Vec<Tool> = tools.into_iter().filter(|tool| tool.name == TCPWHY).collect();
    let tiny_peak = measure(tiny, dir, &tcpwhy_alone, clock)?.run(TCPWHY).map_or(0, |run| run.peak_bytes);
    anstream::println!("MB/s (thousand packets/s), warm cache, {};", by(clock));
    anstream::println!("the best of three runs, one of tcptrace and tshark:\n");
    anstream::println!("{}", speeds(&rows));
    anstream::println!("Against the goals (in parentheses; `MISSED` where missed):\n");
    anstream::println!("{}", against_goals(&rows, tiny_peak));
    anstream::println!("Peak memory, MiB (tcpwhy on a tiny capture: {}):\n", mebibytes(tiny_peak));
    anstream::println!("{}", memory(&rows));
    if clock == Clock::Wall && rows.iter().any(Row::disturbed) {
        anstream::println!("The machine had other work to do: these speeds are too low. Try --clock cpu.");
    }
    Ok(())
}

fn by(clock: Clock) -> &'static str {
    match clock {
        Clock::Wall => "by wall time",
        Clock::Cpu => "by processor time",
    }
}

fn wanted(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|prefix| name.starts_with(prefix.as_str()))
}

/// The tools that are to run and can.
fn usable(tools: Vec<Tool>, without: &[String]) -> Vec<Tool> {
    let asked = tools.into_iter().filter(|tool| !without.iter().any(|name| name == tool.name));
    asked
        .filter(|tool| {
            let missing = tool.missing();
            if let Some(why) = &missing {
                anstream::eprintln!("left out: {why}");
            }
            missing.is_none()
        })
        .collect()
}

fn measure(capture: &Capture, dir: &Path, tools: &[Tool], clock: Clock) -> Result<Row> {
    let path = dir.join(&capture.file);
    let mut file = std::fs::File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    // Into the page cache: the disk's speed is not what is compared.
    std::io::copy(&mut file, &mut std::io::sink())?;
    let mut runs = BTreeMap::new();
    for tool in tools {
        anstream::eprintln!("{}: {} …", capture.name, tool.name);
        match tool.measure(&path) {
            Ok(run) => drop(runs.insert(tool.name, run)),
            Err(why) => anstream::eprintln!("{}: {} FAILED: {why:#}", capture.name, tool.name),
        }
    }
    Ok(Row { capture: capture.clone(), runs, clock })
}

const COLUMNS: [&str; 5] = [READ, TCPWHY, TCPWHY_JSON, TCPTRACE, TSHARK];

fn speeds(rows: &[Row]) -> String {
    let cell = |row: &Row, tool: &str| {
        row.seconds(tool).map_or_else(dash, |seconds| {
            let megabytes = row.capture.bytes as f64 / seconds / 1e6;
            let kilopackets = row.capture.packets as f64 / seconds / 1e3;
            format!("{megabytes:.0} ({kilopackets:.0})")
        })
    };
    by_tool(rows, cell)
}

fn memory(rows: &[Row]) -> String {
    by_tool(rows, |row, tool| row.run(tool).map_or_else(dash, |run| mebibytes(run.peak_bytes)))
}

fn by_tool(rows: &[Row], cell: impl Fn(&Row, &str) -> String) -> String {
    let header: Vec<&str> = ["capture"].into_iter().chain(COLUMNS).collect();
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            [row.capture.name.clone()].into_iter().chain(COLUMNS.map(|tool| cell(row, tool))).collect()
        })
        .collect();
    table::markdown(&header, &lines)
}

fn against_goals(rows: &[Row], tiny_peak: u64) -> String {
    let header =
        ["capture", "× tshark", "× tcptrace", "% of reading", "million packets/s", "bytes a connection"];
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.capture.name.clone(),
                against(goals::times_tshark(row), 1.0, 1),
                against(goals::times_tcptrace(row), 1.0, 1),
                against(goals::share_of_reading(row), 100.0, 0),
                against(goals::packets_a_second(row), 1e-6, 2),
                against(goals::bytes_a_connection(row, tiny_peak), 1.0, 0),
            ]
        })
        .collect();
    table::markdown(&header, &lines)
}

/// The figure, the goal, and whether it was missed; both times `unit`, with so many decimals.
fn against(goal: Option<Goal>, unit: f64, decimals: usize) -> String {
    let Some(goal) = goal else { return dash() };
    let measured = format!("{:.decimals$}", goal.measured * unit);
    let Some(wanted) = goal.wanted else { return measured };
    let sign = if goal.less { '≤' } else { '≥' };
    let missed = if goal.reached() { "" } else { " MISSED" };
    format!("{measured} ({sign} {}){missed}", wanted * unit)
}

fn dash() -> String {
    "–".into()
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / f64::from(1 << 20))
}
