//! `tcpwhy simulate FILE.pkt`: a script of packetdrill on a simulated stack.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow, ensure};
use serde_json::json;
use tcpwhy_report::plain::plain;
use tcpwhy_simulate::script::{self, Verdict};
use tcpwhy_simulate::tcp::eras;

use super::{Args, FORMAT, Format, read};
use crate::{FOUND, output};

/// The stack of scripts that name none.
const STACK: &str = "linux-6";

/// Exit status 0 where the stack does what the script says, 1 where not.
pub(super) fn run(args: &Args, path: &Path) -> Result<ExitCode> {
    let does_nothing =
        args.keep.is_none() && args.plot.is_none() && args.seed.is_none() && args.max_time.is_none();
    ensure!(does_nothing, "--keep, --plot, --seed and --max-time are for scenarios, not for scripts");
    let script = script::parse(&read(path)?).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    let name = script.stack.as_deref().unwrap_or(STACK);
    let stack = eras::named(name).ok_or_else(|| {
        let names: Vec<_> = eras::ERAS.iter().map(|era| era.name).collect();
        anyhow!("{}: no stack is called {name}: {}", path.display(), names.join(", "))
    })?;
    let outcome = script::run(&script, &stack);
    let passed = outcome.verdict == Verdict::Passed;
    let said = outcome.to_string();
    match args.format {
        Format::Json => {
            let notes = |notes: &[script::Note]| -> Vec<_> {
                notes.iter().map(|note| json!({ "line": note.line, "text": note.text })).collect()
            };
            output::print_json(
                &json!({ "format": FORMAT, "script": path.to_string_lossy(), "stack": name, "passed": passed,
                "said": said, "ignored": notes(&outcome.ignored), "unchecked": notes(&outcome.unchecked) }),
            )
        }
        Format::Terminal | Format::Markdown => output::print(|out| {
            let lines: Vec<_> = said.lines().map(plain).collect();
            writeln!(out, "{} on {name}: {}", plain(&path.to_string_lossy()), lines.join("\n"))
        }),
    }?;
    Ok(if passed { ExitCode::SUCCESS } else { FOUND.into() })
}
