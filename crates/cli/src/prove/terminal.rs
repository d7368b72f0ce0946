//! The outcome for people: the verdict, both settings side by side, the sockets that were switched.

use std::io;

use tcpwhy_diagnose::trial::{Block, Comparison, Measure, Verdict};
use tcpwhy_host::process::Refused;
use tcpwhy_host::switch::TcpOption;
use tcpwhy_report::number::{count, duration};
use tcpwhy_report::page::{Page, Painted};
use tcpwhy_report::plain::plain;

use super::outcome::{Account, End, Outcome};

const INDENT: &str = "  ";
/// Sockets that are told one by one.
const MOST_TOLD: usize = 20;

pub(super) fn write(page: &mut Page<'_>, outcome: &Outcome) -> io::Result<()> {
    let verdict = outcome.verdict();
    let painted = match verdict {
        Verdict::Faster | Verdict::NoEffect => Painted::Good,
        Verdict::Slower => Painted::Bad,
        Verdict::Unclear | Verdict::TooLittle => Painted::Unclear,
    };
    let (head, detail) = headline(outcome, verdict);
    let sign = page.ink.verdict(painted, painted.glyph());
    page.hanging(&format!("{sign} "), format!("{} {detail}", page.ink.bold(head)).trim_end())?;
    if let Some(sentence) = advice(outcome, verdict) {
        page.hanging(INDENT, &sentence)?;
    }
    if !outcome.pairs.is_empty() {
        table(page, outcome)?;
    }
    sockets(page, outcome)?;
    page.blank()?;
    page.hanging("", &how(outcome))?;
    outcome.notes.iter().try_for_each(|note| page.hanging("", &plain(note)))
}

fn headline(outcome: &Outcome, verdict: Verdict) -> (&'static str, String) {
    let name = outcome.option.name();
    let what = match outcome.measure() {
        Measure::Latency => "an exchange takes",
        Measure::Wait | Measure::Gap => "what the program writes waits",
    };
    let both = |comparison: &Comparison| {
        let (on, off) = (duration(comparison.on), duration(comparison.off));
        format!("{what} {on} with {name} and {off} without")
    };
    let comparison = outcome.comparison();
    match (verdict, comparison) {
        (Verdict::Faster, Some(comparison)) => ("Proved:", format!("{}.", both(&comparison))),
        (Verdict::Slower, Some(comparison)) => ("Proved to harm:", format!("{}.", both(&comparison))),
        (Verdict::NoEffect, Some(comparison)) => ("No effect:", format!("{}.", both(&comparison))),
        (Verdict::Unclear, Some(comparison)) => {
            ("Not clear:", format!("{}, but the blocks differ too much among themselves.", both(&comparison)))
        }
        _ => ("Not enough traffic:", too_little(outcome)),
    }
}

fn too_little(outcome: &Outcome) -> String {
    let needed = "5 messages in each of 12 blocks are needed";
    match outcome.end {
        End::BrokenOff => format!("the run was broken off after {}.", pairs(outcome)),
        End::Gone => format!("the connection was closed after {}.", pairs(outcome)),
        End::Whole if outcome.accounts.iter().all(|account| account.peer.is_none()) => {
            "there was no connection to measure.".to_owned()
        }
        End::Whole if had_one_each(outcome) => {
            "no connection had a second exchange, and only where one follows is known when an answer was over."
                .to_owned()
        }
        End::Whole => {
            let blocks = || outcome.blocks();
            let messages: u64 = match outcome.measure() {
                Measure::Latency => blocks().map(|block| block.exchanges).sum(),
                Measure::Wait | Measure::Gap => blocks().map(|block| block.sends).sum(),
            };
            let seconds: f64 = blocks().map(|block| block.seconds).sum();
            format!("{} in {}; {needed}.", plural(messages, "message"), duration(seconds * 1e3))
        }
    }
}

/// Whether data went both ways and no exchange could be timed.
fn had_one_each(outcome: &Outcome) -> bool {
    let sum = |of: fn(&Block) -> u64| outcome.blocks().map(of).sum::<u64>();
    outcome.measure() == Measure::Latency
        && sum(|block| block.exchanges) == 0
        && sum(|block| block.segments.unwrap_or(0)) > 0
}

/// What to do about it.
fn advice(outcome: &Outcome, verdict: Verdict) -> Option<String> {
    match verdict {
        Verdict::Faster if outcome.option == TcpOption::NoDelay => {
            let pass_on = if outcome.serves && !outcome.keep {
                " Until then, --listener --keep passes it on to what the running server accepts."
            } else {
                ""
            };
            Some(format!(
                "Write each message with one call, or set TCP_NODELAY after connect() or before listen() (tcpwhy explain \
                 split-write).{pass_on}"
            ))
        }
        Verdict::Faster => Some(
            "The kernel switches TCP_QUICKACK back by itself: set it around each read, or better cure the side that \
             writes (tcpwhy explain nagle-delayed-ack)."
                .to_owned(),
        ),
        Verdict::Unclear => Some("More blocks (--blocks 24), or longer ones (--block 5s), may tell.".to_owned()),
        Verdict::TooLittle if outcome.end == End::Whole && !had_one_each(outcome) => {
            Some("Longer blocks (--block 10s), or more to do for the program, may tell.".to_owned())
        }
        _ => None,
    }
}

/// `exchange, median      44.0 ms     84 µs   −43.9 ms   −44.0 … −43.8 ms`
fn table(page: &mut Page<'_>, outcome: &Outcome) -> io::Result<()> {
    page.blank()?;
    row(page, ["", "off", "on", "difference", "95 % interval"].map(str::to_owned))?;
    // Where the sides take turns, a gap is the other side's pause.
    let told = |measure: &Measure| *measure != Measure::Gap || !outcome.takes_turns;
    for measure in Measure::ALL.into_iter().filter(told) {
        if let Some(comparison) = measure.compare(&outcome.pairs) {
            row(page, times(measure, &comparison))?;
        }
    }
    type Figure = fn(&Block) -> Option<u64>;
    let rates: [(&str, Figure); 4] = [
        ("exchanges/s", |block| block.segments.is_some().then_some(block.exchanges)),
        ("data segments sent/s", |block| block.segments),
        ("bytes sent/s", |block| Some(block.bytes)),
        ("delayed ACKs/s ¹", |block| block.delayed_acks),
    ];
    for (name, of) in rates {
        if let (Some(off), Some(on)) = (outcome.rate(false, of), outcome.rate(true, of)) {
            row(page, [name.to_owned(), rate(off), rate(on), String::new(), String::new()])?;
        }
    }
    page.hanging("  ¹ ", "of all connections of this network namespace")
}

fn times(measure: Measure, comparison: &Comparison) -> [String; 5] {
    let name = match measure {
        Measure::Latency => "exchange, median",
        Measure::Wait => "wait before leaving",
        Measure::Gap => "between updates",
    };
    let Comparison { off, on, less, low, high, .. } = *comparison;
    let interval = format!("{} … {}", signed(-high), signed(-low));
    [name.to_owned(), duration(off), duration(on), signed(-less), interval]
}

/// With a true minus; `+` where it grows.
fn signed(ms: f64) -> String {
    let sign = if ms < 0.0 {
        "−"
    } else if ms > 0.0 {
        "+"
    } else {
        ""
    };
    format!("{sign}{}", duration(ms.abs()))
}

fn rate(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { count(value.round() as u64) }
}

fn row(page: &mut Page<'_>, [name, off, on, difference, interval]: [String; 5]) -> io::Result<()> {
    page.line(&format!("  {name:<21}{off:>9}{on:>10}{difference:>12}  {interval:>22}"))
}

fn sockets(page: &mut Page<'_>, outcome: &Outcome) -> io::Result<()> {
    page.blank()?;
    let program = plain(&outcome.program).into_owned();
    page.ruled(&page.ink.bold(&format!("{program}[{}]  {}", outcome.pid, outcome.option.name())), "")?;
    let (first, others) = outcome.accounts.split_at(outcome.accounts.len().min(MOST_TOLD));
    first.iter().try_for_each(|account| page.hanging(INDENT, &told(account)))?;
    if others.is_empty() {
        return Ok(());
    }
    let closed = others.iter().filter(|account| account.after.is_err()).count() as u64;
    let others = count(others.len() as u64);
    page.hanging(
        INDENT,
        &format!("and {others} more, {} of them closed: --format json has all", count(closed)),
    )
}

/// `fd 4  10.0.0.1:80 → 10.0.0.2:4711: off before, off now`
fn told(account: &Account) -> String {
    let Account { fd, local, peer, before, after, overruled } = account;
    let ends = peer.map_or(format!("{local} (listens)"), |peer| format!("{local} → {peer}"));
    let word = |on: bool| if on { "on" } else { "off" };
    let now = match after {
        Ok(after) => format!("{} now", word(*after)),
        Err(Refused::Gone) => "closed by the program".to_owned(),
        Err(why) => format!("not known now ({why})"),
    };
    let overruled = match overruled {
        0 => String::new(),
        times => format!("; the program itself set it {} meanwhile", plural(*times, "time")),
    };
    format!("fd {fd}  {ends}: {} before, {now}{overruled}", word(*before))
}

/// `12 of 12 blocks of 2 s in random order (--seed 4711), packets from lo.`
fn how(outcome: &Outcome) -> String {
    let done = 2 * outcome.pairs.len();
    let block = duration(outcome.block.as_secs_f64() * 1e3);
    let source =
        outcome.interface.as_ref().map_or(String::new(), |name| format!(", packets from {}", plain(name)));
    let end = match outcome.end {
        End::Whole => "",
        End::BrokenOff => " Broken off.",
        End::Gone => " The program closed the connection.",
    };
    let kept = if outcome.keep { " Left on, as --keep says." } else { "" };
    format!(
        "{done} of {} blocks of {block} in random order (--seed {}){source}.{end}{kept}",
        outcome.planned, outcome.seed
    )
}

fn pairs(outcome: &Outcome) -> String {
    format!("{} of blocks", plural(outcome.pairs.len() as u64, "pair"))
}

fn plural(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}
