//! The scenarios that come with tcpwhy, and the eras of stacks.

use anyhow::Result;
use serde_json::json;
use tcpwhy_report::page::glued;
use tcpwhy_simulate::scenario::{BUILT_IN, Scenario};
use tcpwhy_simulate::tcp::eras;

use super::{Args, FORMAT, Format};
use crate::output::{self, Look};

pub(super) fn print(args: &Args) -> Result<()> {
    let scenarios: Vec<_> = BUILT_IN.iter().filter_map(|(_, text)| Scenario::parse(text).ok()).collect();
    let names: Vec<_> = eras::ERAS.iter().map(|era| era.name).collect();
    match args.format {
        Format::Json => {
            let list: Vec<_> = scenarios
                .iter()
                .map(|one| json!({ "name": one.name, "about": one.about, "source": one.source }))
                .collect();
            output::print_json(&json!({ "format": FORMAT, "scenarios": list, "stacks": names }))
        }
        Format::Markdown => output::print(|out| {
            use std::io::Write;
            writeln!(out, "| scenario | what it shows |\n| --- | --- |")?;
            scenarios.iter().try_for_each(|one| writeln!(out, "| `{}` | {} |", one.name, one.about))
        }),
        Format::Terminal => Look::of(args.color).print(|page| {
            page.hanging("", &page.ink.bold("Scenarios: two TCPs in virtual time"))?;
            let width = scenarios.iter().map(|one| one.name.len()).max().unwrap_or(0);
            for one in &scenarios {
                let name = page.ink.bold(&format!("{:width$}", one.name));
                page.hanging(&format!("  {name}  "), &one.about)?;
            }
            page.blank()?;
            page.hanging("Stacks: ", &names.join(", "))?;
            let show = glued("`tcpwhy simulate --show NAME`");
            page.hanging(
                "",
                &format!("`tcpwhy simulate NAME` runs one; {show} prints its file, to begin your own with."),
            )
        }),
    }
}
