//! `tcpwhy man`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::CommandFactory;

use crate::args::Cli;
use crate::output;

/// `tcpwhy man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tcpwhy man | man -l -")]
pub(crate) struct Args {
    /// The page of this command instead of the main one
    command: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut main = Cli::command();
    // Gives every command its full name, "tcpwhy explain", which is the name of its page.
    main.build();
    let command = match &args.command {
        None => main,
        Some(name) => main
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| anyhow!("no command {name}, try: tcpwhy man explain"))?,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    output::print(|out| out.write_all(&page))?;
    Ok(ExitCode::SUCCESS)
}
