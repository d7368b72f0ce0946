//! The commands that are compared.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::run::{Run, run};

/// One command.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    /// As tables call it.
    pub name: &'static str,
    program: String,
    /// Its arguments for a capture of that name.
    arguments: fn(&str) -> Vec<String>,
    /// The Debian package, for those who lack it.
    package: Option<&'static str>,
    /// How often it runs; the fastest run counts.
    rounds: u32,
}

/// The fast commands are over in a second or two, so that a moment of other work would show; the slow ones average
/// over it themselves.
const FAST_ROUNDS: u32 = 3;

/// Reading alone: the limit of everything that reads a file.
pub(super) const READ: &str = "read only";
/// The whole analysis, printed for people.
pub(super) const TCPWHY: &str = "tcpwhy";
/// The whole analysis, as JSON.
pub(super) const TCPWHY_JSON: &str = "tcpwhy json";
/// tcptrace with round-trip times, retransmissions and windows.
pub(super) const TCPTRACE: &str = "tcptrace";
/// tshark's table of conversations.
pub(super) const TSHARK: &str = "tshark";

/// All of them; `tcpwhy` is the binary to measure.
pub(super) fn tools(tcpwhy: &Path) -> Vec<Tool> {
    let tcpwhy = tcpwhy.to_string_lossy().into_owned();
    vec![
        Tool {
            name: READ,
            // What GNU cat does (reads and writes of 128 KiB), also where `cat` is one that splices.
            program: "dd".into(),
            arguments: |file| strings(&[&format!("if={file}"), "of=/dev/null", "bs=128K", "status=none"]),
            package: None,
            rounds: FAST_ROUNDS,
        },
        Tool {
            name: TCPWHY,
            program: tcpwhy.clone(),
            arguments: |file| strings(&[file]),
            package: None,
            rounds: FAST_ROUNDS,
        },
        Tool {
            name: TCPWHY_JSON,
            program: tcpwhy,
            arguments: |file| strings(&["--format", "json", file]),
            package: None,
            rounds: FAST_ROUNDS,
        },
        Tool {
            name: TCPTRACE,
            program: "tcptrace".into(),
            arguments: |file| strings(&["-nlrW", file]),
            package: Some("tcptrace"),
            rounds: 1,
        },
        Tool {
            name: TSHARK,
            program: "tshark".into(),
            arguments: |file| strings(&["-q", "-z", "conv,tcp", "-r", file]),
            package: Some("tshark"),
            rounds: 1,
        },
    ]
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Tool {
    /// Why this command cannot run here, where it cannot.
    pub(super) fn missing(&self) -> Option<String> {
        let probe =
            Command::new(&self.program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        probe.err().map(|why| match self.package {
            Some(package) => format!("{} is missing: apt-get install {package}", self.name),
            None => format!("{} does not run: {why}", self.program),
        })
    }

    /// Its best run on `file`, which is in the page cache.
    pub(super) fn measure(&self, file: &Path) -> Result<Run> {
        let arguments = (self.arguments)(&file.to_string_lossy());
        let mut best = run(&self.program, &arguments)?;
        for _ in 1..self.rounds {
            best = best.best(run(&self.program, &arguments)?);
        }
        Ok(best)
    }
}
