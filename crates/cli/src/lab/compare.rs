//! `tcpwhy lab compare`: the simulator against this machine's kernel.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use tcpwhy_lab::comparison::{self, Comparison};
use tcpwhy_lab::lab::Progress;
use tcpwhy_lab::place;

use super::Format;
use super::watch::Watch;
use crate::{complaint, output};

/// `tcpwhy lab compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only runs with one of these texts in their names (say `split`), or of these experiments (say `idle`)
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    only: Vec<String>,
}

/// A latency that is off by more is said.
const NEAR: f64 = 0.05;

pub(super) fn run(args: &Args, format: Format, keep: Option<&Path>) -> Result<ExitCode> {
    place::enter()?;
    let is_wanted = |run: &comparison::Compared| {
        args.only.is_empty()
            || args
                .only
                .iter()
                .any(|text| run.name.contains(text.as_str()) || run.experiment == text.as_str())
    };
    let runs: Vec<_> = comparison::runs().into_iter().filter(is_wanted).collect();
    let watch = Watch::new("compare", (1, 1));
    let mut compared = Vec::new();
    watch.runs(runs.len() as u64);
    for run in &runs {
        watch.run(&run.name);
        match run.compare(keep) {
            Ok(comparison) => compared.push(comparison),
            Err(error) => complaint::say(&format!("{}: {error:#}", run.name)),
        }
        watch.done();
    }
    drop(watch);
    output::print(|out| match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &compared)?;
            out.write_all(b"\n")
        }
        Format::Terminal | Format::Markdown => write(out, &compared),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A table that reads as text and as markdown.
fn write(out: &mut dyn Write, compared: &[Comparison]) -> std::io::Result<()> {
    let near = compared.iter().filter(|run| run.errors().iter().all(|error| error.abs() <= NEAR)).count();
    writeln!(
        out,
        "{near} of {} runs: median and 99th percentile within {:.0} % of the kernel's.\n",
        compared.len(),
        NEAR * 100.0
    )?;
    writeln!(
        out,
        "| experiment | run | messages | p50 kernel | p50 simulator | off | p99 kernel | p99 simulator | off | same data segments | same ACKs |"
    )?;
    writeln!(out, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for run in compared {
        let [p50, p99] = run.errors().map(|error| format!("{:+.1} %", error * 100.0));
        writeln!(
            out,
            "| {} | {} | {} | {:.2} ms | {:.2} ms | {p50} | {:.2} ms | {:.2} ms | {p99} | {:.0} % | {:.0} % |",
            run.experiment,
            run.name,
            run.messages,
            run.p50_ms[0],
            run.p50_ms[1],
            run.p99_ms[0],
            run.p99_ms[1],
            run.same_segments * 100.0,
            run.same_acks * 100.0,
        )?;
    }
    Ok(())
}
