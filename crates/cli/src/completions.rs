//! `tcpwhy completions SHELL`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::output;

/// `tcpwhy completions`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tcpwhy completions bash > ~/.local/share/bash-completion/completions/tcpwhy"
)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tcpwhy", &mut script);
    output::print(|out| out.write_all(&script))?;
    Ok(ExitCode::SUCCESS)
}
