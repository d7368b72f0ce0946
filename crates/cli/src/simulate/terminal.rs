//! Runs as terminal text: the verdict first, then the numbers side by side, then what tcpwhy finds in the packets.

use std::io;

use anyhow::Result;
use tcpwhy_report::page::{Page, glued};
use tcpwhy_report::plain::plain;
use tcpwhy_simulate::scenario::Scenario;
use tcpwhy_simulate::world::End;

use super::account::{Account, time, trigger_name, wait_name};
use crate::output::Look;

const INDENT: &str = "  ";
/// Waits shorter than this share of the run are left out.
const WORTH_TELLING: f64 = 0.01;

pub(super) fn print(scenario: &Scenario, accounts: &[Account], look: Look) -> Result<()> {
    look.print(|page| {
        heading(page, scenario)?;
        page.blank()?;
        accounts.iter().try_for_each(|account| verdict(page, account))?;
        page.blank()?;
        page.hanging("", &page.ink.bold("By the simulator's own account"))?;
        let (columns, rows) = rows(accounts);
        page.table(INDENT, &columns, &rows)?;
        page.blank()?;
        page.hanging("", &page.ink.bold("What tcpwhy finds in the packets, captured at the sender"))?;
        accounts.iter().try_for_each(|account| finding(page, account))?;
        for path in accounts.iter().flat_map(|account| &account.kept) {
            page.hanging(&page.ink.faint("kept  "), &plain(&path.display().to_string()))?;
        }
        Ok(())
    })
}

/// The scenario's name, what it is about, and where that comes from.
pub(super) fn heading(page: &mut Page<'_>, scenario: &Scenario) -> io::Result<()> {
    page.ruled(&page.ink.bold(&plain(&scenario.name)), "")?;
    page.hanging("", &plain(&scenario.about))?;
    if scenario.source.is_empty() {
        return Ok(());
    }
    page.hanging("", &page.ink.faint(&plain(&format!("Source: {}", scenario.source))))
}

/// One variant in one sentence.
fn verdict(page: &mut Page<'_>, account: &Account) -> io::Result<()> {
    let name = page.ink.bold(&format!("{}: ", plain(&account.name)));
    page.hanging("", &format!("{name}{}", sentence(account)))
}

/// `2.19 s, 1.04 s of it in fast recovery; 11 retransmissions (fast retransmit)`.
pub(super) fn sentence(account: &Account) -> String {
    let measured = &account.measured;
    let mut text = match (measured.finished, measured.end) {
        (Some(finished), _) => glued(&time(finished)),
        (None, End::TimeUp) => "not over when the time was up".to_owned(),
        (None, End::Stuck) => "stuck: the same instant again and again".to_owned(),
        (None, End::Over) => "ended before everything had arrived".to_owned(),
    };
    if measured.recovery > 0 {
        text.push_str(&format!(", {} of it in fast recovery", glued(&time(measured.recovery))));
    }
    if measured.loss > 0 {
        text.push_str(&format!(", {} after a timeout", glued(&time(measured.loss))));
    }
    let count = account.retransmissions();
    if count > 0 {
        let reasons =
            measured.retransmissions.iter().map(|(trigger, n)| format!("{n} by {}", trigger_name(*trigger)));
        let noun = if count == 1 { "retransmission" } else { "retransmissions" };
        text.push_str(&format!("; {count} {noun}: {}", reasons.collect::<Vec<_>>().join(", ")));
    }
    if let Some((of, latencies)) = account.latencies() {
        let [p50, p99, max] = [latencies.p50, latencies.p99, latencies.max].map(|ns| glued(&time(ns)));
        text.push_str(&format!(
            "; {of} took {p50} in the median, {p99} at the 99th percentile, {max} at most"
        ));
    }
    text
}

/// The numbers, a column for each variant.
pub(super) fn rows(accounts: &[Account]) -> (Vec<String>, Vec<Vec<String>>) {
    let columns =
        std::iter::once(String::new()).chain(accounts.iter().map(|account| account.name.clone())).collect();
    let row = |name: &str, cell: &dyn Fn(&Account) -> String| {
        std::iter::once(name.to_owned()).chain(accounts.iter().map(cell)).collect::<Vec<_>>()
    };
    let mut rows = vec![
        row("all read after", &|a| a.measured.finished.map_or("-".to_owned(), time)),
        row("packets lost", &|a| {
            let lost = a.measured.lost;
            (lost.queue_full + lost.random + lost.planned).to_string()
        }),
        row("retransmissions", &|a| a.retransmissions().to_string()),
        row("in fast recovery", &|a| time(a.measured.recovery)),
        row("after a timeout", &|a| time(a.measured.loss)),
        row("ACKs held", &|a| a.measured.held_acks.count.to_string()),
        row("the longest", &|a| time(a.measured.held_acks.longest)),
    ];
    if accounts.iter().any(|account| account.latencies().is_some()) {
        let quantile = |pick: fn(&super::account::Latencies) -> u64| {
            move |a: &Account| a.latencies().map_or("-".to_owned(), |(_, latencies)| time(pick(&latencies)))
        };
        rows.push(row("latency, median", &quantile(|latencies| latencies.p50)));
        rows.push(row("latency, p99", &quantile(|latencies| latencies.p99)));
    }
    for wait in waits(accounts) {
        rows.push(row(&format!("sender waits: {}", wait_name(wait)), &|a| {
            time(a.measured.waits.get(&wait).copied().unwrap_or(0))
        }));
    }
    (columns, rows)
}

/// The waits that some run spent time on.
fn waits(accounts: &[Account]) -> Vec<tcpwhy_simulate::tcp::Wait> {
    let mut all = std::collections::BTreeSet::new();
    for account in accounts {
        let waits = &account.measured.waits;
        let sum: u64 = waits.values().sum();
        all.extend(
            waits
                .iter()
                .filter(|(_, time)| **time as f64 > WORTH_TELLING * sum as f64)
                .map(|(wait, _)| *wait),
        );
    }
    all.into_iter().collect()
}

fn finding(page: &mut Page<'_>, account: &Account) -> io::Result<()> {
    let name = plain(&account.name);
    match account.top() {
        None => page.hanging(INDENT, &format!("{}: nothing that costs time", page.ink.bold(&name))),
        Some(top) => {
            let rule = page.ink.bold(&format!("{name}: {}", top.rule));
            page.wrapped(INDENT, "    ", &format!("{rule}: {}", plain(&top.summary)))
        }
    }
}
