//! `--watch`: many looks, and how often each socket waited in them.

mod count;

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Map, Value, json};
use tcpwhy_diagnose::sockets::Kind;
use tcpwhy_report::number::duration;
use tcpwhy_report::page::{Page, Painted};
use tcpwhy_report::plain::plain;
use tcpwhy_wire::sockets::State;

use super::live::Live;
use super::{Args, json, sentence, terminal};
use crate::args::Format;
use crate::output::{self, Stdout};
use crate::stop::Stop;
use count::{Count, Counts};

/// Sockets that an interval tells of; the sum tells of all that fit.
const MOST_AT_ONCE: usize = 10;
/// Sockets that the sum tells of.
const MOST_IN_ALL: usize = 50;
/// Between two looks there is at least this much time for everybody else.
const BREATH: Duration = Duration::from_millis(1);

pub(super) fn run(args: &Args, every: Duration) -> Result<ExitCode> {
    let stop = Stop::on_ctrl_c();
    stop.reading(true);
    let mut watch = Watch { args, every, live: Live::new(&args.pids)?, stop, begun: Instant::now() };
    watch.run()?;
    Ok(ExitCode::SUCCESS)
}

struct Watch<'a> {
    args: &'a Args,
    every: Duration,
    live: Live,
    stop: Stop,
    begun: Instant,
}

impl Watch<'_> {
    fn run(&mut self) -> Result<()> {
        let mut in_all = Counts::default();
        let mut out = output::stdout();
        for interval in 1.. {
            let until = self.every.max(BREATH).saturating_mul(interval);
            let counts =
                self.interval(self.args.duration.map_or(until, |end| end.min(until)), &mut in_all)?;
            let told = self.tell(&mut out, &counts, false);
            if told.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                return Ok(());
            }
            told.map_err(output::failed)?;
            in_all.forget_what_is_gone(&counts);
            if self.is_over() {
                break;
            }
        }
        output::unless_broken_pipe(self.tell(&mut out, &in_all, true))
    }

    fn is_over(&self) -> bool {
        let is_late = self.args.duration.is_some_and(|duration| self.begun.elapsed() >= duration);
        is_late || self.stop.requested() || self.live.is_over()
    }

    /// Looks until so long after the beginning.
    fn interval(&mut self, until: Duration, in_all: &mut Counts) -> Result<Counts> {
        let mut counts = Counts::default();
        // Who holds what is asked once an interval: it takes longer than a look.
        self.live.find_holders()?;
        loop {
            let look = Instant::now();
            let mut rows = self.live.glance()?;
            if self.args.listening {
                rows.retain(|row| row.socket.state == State::Listen);
            }
            counts.add(&rows);
            in_all.add(&rows);
            let rest = until.saturating_sub(self.begun.elapsed());
            if rest.is_zero() || self.stop.requested() {
                return Ok(counts);
            }
            thread::sleep(self.args.look_every.saturating_sub(look.elapsed()).max(BREATH).min(rest));
        }
    }

    fn tell(&self, out: &mut Stdout, counts: &Counts, in_all: bool) -> io::Result<()> {
        let elapsed = self.begun.elapsed();
        match (self.args.format, in_all) {
            (Format::Json, _) => line(out, counts, elapsed, in_all)?,
            (Format::Terminal, false) => {
                let color = output::colored(self.args.color);
                interval(&mut Page::new(out, output::columns(), color), counts, elapsed)?;
            }
            (Format::Terminal, true) => {
                let color = output::colored(self.args.color);
                sum(&mut Page::new(out, output::columns(), color), counts, elapsed)?;
            }
        }
        out.flush()
    }
}

/// `98 looks at 14 TCP sockets`
fn looks(counts: &Counts) -> String {
    let sockets = sentence::plural(counts.most as u64, "TCP socket", "TCP sockets");
    format!("{} at {sockets}", sentence::plural(counts.looks, "look", "looks"))
}

fn interval(page: &mut Page<'_>, counts: &Counts, elapsed: Duration) -> io::Result<()> {
    let suspects = counts.suspects();
    let end = if suspects.is_empty() { ": nothing suspicious." } else { ":" };
    let time = duration(elapsed.as_secs_f64() * 1e3);
    page.hanging("", &format!("{time}  {}{end}", looks(counts)))?;
    for count in suspects.iter().take(MOST_AT_ONCE) {
        page.hanging("  ", &format!("{}: {}.", named(count), often(count)))?;
    }
    and_more(page, suspects.len(), MOST_AT_ONCE)
}

fn and_more(page: &mut Page<'_>, all: usize, told: usize) -> io::Result<()> {
    match all.saturating_sub(told) {
        0 => Ok(()),
        more => {
            page.line(&format!("  And {}.", sentence::plural(more as u64, "more socket", "more sockets")))
        }
    }
}

fn named(count: &Count) -> String {
    let Some(row) = &count.last else { return String::new() };
    plain(format!("{}  {}", row.program(), row.ends()).trim_start()).into_owned()
}

/// `held by Nagle's algorithm in 61 of 98 looks, …`
fn often(count: &Count) -> String {
    let kinds = count.kinds().map(|(kind, seen)| {
        let looks = sentence::plural(count.looks, "look", "looks");
        format!("{} in {seen} of {looks}", sentence::counted(kind, 1).trim_start_matches("1 "))
    });
    kinds.collect::<Vec<_>>().join(", ")
}

fn sum(page: &mut Page<'_>, counts: &Counts, elapsed: Duration) -> io::Result<()> {
    let suspects = counts.suspects();
    page.blank()?;
    let painted = if suspects.is_empty() { Painted::Good } else { Painted::Bad };
    let sign = page.ink.verdict(painted, painted.glyph());
    let what = match suspects.len() {
        0 => "Nothing suspicious".to_owned(),
        1 => "1 socket waited".to_owned(),
        many => format!("{many} sockets waited"),
    };
    let all = format!("{} in {}.", looks(counts), duration(elapsed.as_secs_f64() * 1e3));
    page.hanging(&format!("{sign} "), &format!("{} {all}", page.ink.bold(&format!("{what}:"))))?;
    for count in suspects.iter().take(MOST_IN_ALL) {
        page.blank()?;
        page.ruled(&page.ink.bold(&named(count)), "")?;
        for (kind, seen) in count.kinds() {
            page.hanging("  ", &page.ink.bold(&share(count, kind, seen)))?;
        }
        if let Some(row) = &count.last {
            for suspicion in &row.suspicions {
                page.hanging("  ", &format!("Last seen so: {}", sentence::of(row, suspicion)))?;
            }
        }
        page.items("  ", &count.meanwhile())?;
    }
    and_more(page, suspects.len(), MOST_IN_ALL)?;
    let rows: Vec<_> = suspects.iter().filter_map(|count| count.last.as_ref()).collect();
    terminal::advice(page, &rows)
}

/// `Held by Nagle's algorithm in 612 of 1,000 looks (61 %), in up to 14 in a row.`
fn share(count: &Count, kind: Kind, seen: u64) -> String {
    let what = sentence::counted(kind, 1);
    let what = what.trim_start_matches("1 ");
    let (first, rest) = what.split_at(1.min(what.len()));
    let looks = sentence::plural(count.looks, "look", "looks");
    let percent = tcpwhy_report::number::percent(seen as f64, count.looks as f64);
    let seen = tcpwhy_report::number::count(seen);
    let longest = count.longest(kind);
    format!("{}{rest} in {seen} of {looks} ({percent}), at most {longest} in a row.", first.to_uppercase())
}

/// For programs, an object a line.
fn line(out: &mut Stdout, counts: &Counts, elapsed: Duration, in_all: bool) -> io::Result<()> {
    let figures = json!({
        "elapsed_ms": (elapsed.as_secs_f64() * 1e6).round() / 1e3,
        "looks": counts.looks,
        "in_all": in_all,
        "left_out": counts.left_out,
    });
    let suspects = counts.suspects();
    let sockets = suspects.iter().filter_map(|count| {
        let mut whole = json::socket(count.last.as_ref()?);
        let seen: Map<String, Value> =
            count.kinds().map(|(kind, seen)| (kind.name().to_owned(), seen.into())).collect();
        whole.insert("looks".to_owned(), count.looks.into());
        whole.insert("seen".to_owned(), seen.into());
        Some(whole)
    });
    json::write_watched(out, figures, sockets)
}
