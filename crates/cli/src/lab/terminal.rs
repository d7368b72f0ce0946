//! Outcomes as terminal text: the claims first, then the tables they rest on, then notes.

use std::io;

use anyhow::Result;
use tcpwhy_lab::experiments::{Claim, Experiment, Outcome, Verdict};
use tcpwhy_report::page::{Page, Painted};
use tcpwhy_report::plain::plain;

use crate::output::Look;

const INDENT: &str = "  ";

/// What there is to run.
pub(super) fn list(experiments: &[Experiment], look: Look) -> Result<()> {
    look.print(|page| {
        page.hanging("", &page.ink.bold("Experiments: stories about TCP, played again on this kernel"))?;
        let width = experiments.iter().map(|experiment| experiment.name().len()).max().unwrap_or(0);
        for experiment in experiments {
            let name = page.ink.bold(&format!("{:width$}", experiment.name()));
            let seconds = page.ink.faint(&format!("{:>4} s", experiment.seconds()));
            page.hanging(&format!("{INDENT}{name} {seconds}  "), experiment.about())?;
        }
        let all: u64 = experiments.iter().map(Experiment::seconds).sum();
        page.blank()?;
        page.hanging("", &format!(
            "`tcpwhy lab NAME` runs one, with --quick in a few seconds; `tcpwhy lab all` takes about {} min.",
            all.div_ceil(60).max(1)
        ))
    })
}

/// One experiment's outcome; `follows` says whether another stands above.
pub(super) fn outcome(outcome: &Outcome, look: Look, follows: bool) -> Result<()> {
    look.print(|page| {
        if follows {
            page.blank()?;
        }
        page.ruled(&page.ink.bold(outcome.experiment), "")?;
        page.hanging("", &page.ink.faint(&plain(outcome.source)))?;
        page.blank()?;
        for one in &outcome.claims {
            claim(page, one)?;
        }
        for table in &outcome.tables {
            page.blank()?;
            page.hanging("", &page.ink.bold(&plain(&table.title)))?;
            page.table(INDENT, &table.columns, &table.rows)?;
        }
        if !outcome.notes.is_empty() {
            page.blank()?;
        }
        outcome.notes.iter().try_for_each(|note| page.hanging(&page.ink.faint("note  "), &plain(note)))
    })
}

/// A claim with the seed's figure beside ours.
fn claim(page: &mut Page<'_>, claim: &Claim) -> io::Result<()> {
    let (painted, because) = told(&claim.verdict);
    let sign = page.ink.verdict(painted, painted.glyph());
    let word = page.ink.verdict(painted, claim.word());
    page.hanging(
        &format!("{sign} "),
        &format!("{} {word}", page.ink.bold(&format!("{}:", plain(claim.claim)))),
    )?;
    if !claim.seed.is_empty() {
        page.hanging(&page.ink.faint("    seed  "), &plain(claim.seed))?;
    }
    page.hanging(&page.ink.faint("    here  "), &plain(&claim.measured))?;
    match because {
        Some(because) => page.hanging(&page.ink.faint("    why   "), &plain(because)),
        None => Ok(()),
    }
}

/// How a verdict is painted, and its reason.
fn told(verdict: &Verdict) -> (Painted, Option<&str>) {
    match verdict {
        Verdict::Holds => (Painted::Good, None),
        Verdict::NoLongerHolds(because) => (Painted::Bad, Some(because)),
        Verdict::Unknown(because) => (Painted::Unclear, Some(because)),
    }
}

/// All claims of all experiments.
pub(super) fn summary(outcomes: &[Outcome], look: Look) -> Result<()> {
    look.print(|page| {
        page.blank()?;
        page.ruled(&page.ink.bold("All claims"), "")?;
        let width = outcomes.iter().map(|outcome| outcome.experiment.len()).max().unwrap_or(0);
        for outcome in outcomes {
            for claim in &outcome.claims {
                let (painted, _) = told(&claim.verdict);
                let sign = page.ink.verdict(painted, painted.glyph());
                let word = page.ink.verdict(painted, claim.word());
                let first = format!("{sign} {:width$}  ", outcome.experiment);
                page.hanging(&first, &format!("{} {word}", plain(&format!("{}:", claim.claim))))?;
            }
        }
        page.blank()?;
        page.hanging("", &tally(outcomes))
    })
}

/// `14 claims: 9 hold, 4 do not, 1 could not be measured.`
pub(super) fn tally(outcomes: &[Outcome]) -> String {
    let claims: Vec<&Claim> = outcomes.iter().flat_map(|outcome| &outcome.claims).collect();
    let count = |wanted: fn(&Verdict) -> bool| claims.iter().filter(|claim| wanted(&claim.verdict)).count();
    let holds = count(|verdict| matches!(verdict, Verdict::Holds));
    let gone = count(|verdict| matches!(verdict, Verdict::NoLongerHolds(_)));
    let unknown = count(|verdict| matches!(verdict, Verdict::Unknown(_)));
    format!("{} claims: {holds} hold, {gone} do not, {unknown} could not be measured.", claims.len())
}
