//! Records cases and writes the corpus.

use std::collections::HashMap;
use std::path::Path as FilePath;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tcpwhy_simulate::link::{Drop, Queue, Settings};

use super::case::{Case, Cause};
use super::label::{Label, LabelledCause};
use super::measure::Base;
use super::run::Run;
use super::steady::watched;
use crate::capture::{Capture, Vantage};
use crate::place::{Path, Wire};
use crate::programs::message::Message;

/// zstd's level: the corpus is written once and stored for ever.
const LEVEL: i32 = 19;
/// Times a run is made in the hope of a steady one.
const ATTEMPTS: u32 = 5;
/// A machine that wakes its threads within this is steady: less than the shortest work of any program.
const STEADY: Duration = Duration::from_millis(4);
/// A stall of this length would be a cause of its own.
const STALL: Duration = Duration::from_millis(20);

/// What a run left behind.
#[derive(Debug)]
struct Recorded {
    messages: Vec<Message>,
    captures: Vec<Capture>,
}

/// A run that is recorded when it is first needed; whoever needs it too meanwhile waits for it.
type Slot = Arc<Mutex<Option<Arc<Recorded>>>>;

/// Records runs; equal ones once.
#[derive(Debug, Default)]
struct Recorder {
    known: Mutex<HashMap<String, Slot>>,
}

impl Recorder {
    fn recorded(&self, run: &Run) -> Result<Arc<Recorded>> {
        let slot = lock(&self.known).entry(run.key()?).or_default().clone();
        let mut slot = lock(&slot);
        if let Some(recorded) = &*slot {
            return Ok(recorded.clone());
        }
        let recorded = Arc::new(record(run)?);
        *slot = Some(recorded.clone());
        Ok(recorded)
    }

    /// Records a case with all the runs that its truth needs; the labels and captures of all vantages.
    fn case(&self, case: &Case) -> Result<Vec<(Label, Capture)>> {
        let cured = self.recorded(&case.cured())?;
        let base = Base::of(&cured.messages);
        let recorded = self.recorded(&case.run)?;
        let late = base.lateness(&recorded.messages);
        let mut costs = Vec::new();
        for cause in &case.causes {
            let without = self.recorded(&case.without(cause))?;
            let alone = self.recorded(&case.alone(cause))?;
            let saves = late - base.lateness(&without.messages);
            let costs_alone = base.lateness(&alone.messages) - base.lateness(&cured.messages);
            costs.push(cause.costs.then_some((saves, costs_alone)));
        }
        let is_kept = |capture: &&Capture| case.only_at.is_none_or(|place| place == capture.vantage);
        let labelled = recorded.captures.iter().filter(is_kept).map(|capture| {
            let name = format!("{}-{}", case.name, capture.vantage.name());
            let label = Label {
                file: format!("{name}.pcapng.zst"),
                name,
                story: case.story.clone(),
                group: case.group,
                vantage: capture.vantage.name().to_owned(),
                path: in_words(&case.run.path),
                seed: case.run.seed,
                causes: seen_at(capture.vantage, &case.causes, &costs),
                allowed: case.allowed.iter().map(|rule| (*rule).to_owned()).collect(),
                messages: recorded.messages.len() as u64,
                total_ms: ms(span(&recorded.messages)),
                late_ms: ms(late - base.lateness(&cured.messages)),
            };
            (label, capture.clone())
        });
        Ok(labelled.collect())
    }

    /// Records a case's captures into `folder` and returns their labels.
    fn write(&self, case: &Case, folder: &FilePath) -> Result<Vec<Label>> {
        let mut labels = Vec::new();
        for (label, capture) in self.case(case)? {
            let path = folder.join(&label.file);
            let packed = zstd::encode_all(capture.bytes.as_slice(), LEVEL)?;
            std::fs::write(&path, packed).with_context(|| format!("cannot write {}", path.display()))?;
            labels.push(label);
        }
        Ok(labels)
    }
}

/// Records these cases into `folder`, several at a time: most of a run is waiting. `told` hears of each case
/// when it is done, and why it failed if it did. The labels come in the order of the cases.
pub fn build(
    cases: &[Case],
    folder: &FilePath,
    at_a_time: usize,
    told: &(dyn Fn(&Case, Option<&anyhow::Error>) + Sync),
) -> Vec<Label> {
    let (recorder, next) = (Recorder::default(), AtomicUsize::new(0));
    let done: Mutex<Vec<(usize, Vec<Label>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..at_a_time.max(1) {
            scope.spawn(|| {
                while let Some((number, case)) = take(&next, cases) {
                    let written = recorder.write(case, folder);
                    told(case, written.as_ref().err());
                    lock(&done).push((number, written.unwrap_or_default()));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().flat_map(|(_, labels)| labels).collect()
}

fn take<'a>(next: &AtomicUsize, cases: &'a [Case]) -> Option<(usize, &'a Case)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    cases.get(number).map(|case| (number, case))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Repeats a run that failed, and one during which the machine stood still; of several the steadiest is taken.
fn record(run: &Run) -> Result<Recorded> {
    let mut failed = None;
    let mut best: Option<(Duration, Recorded)> = None;
    for _ in 0..ATTEMPTS {
        let (recording, stall) = watched(|| run.record());
        match recording {
            Ok(recording) if best.as_ref().is_none_or(|(least, _)| stall < *least) => {
                let recorded = Recorded { messages: recording.value, captures: recording.captures };
                best = Some((stall, recorded));
            }
            Ok(_) => {}
            Err(error) => failed = Some(error),
        }
        if best.as_ref().is_some_and(|(least, _)| *least < STEADY) {
            break;
        }
    }
    match best {
        Some((stall, recorded)) if stall < STALL => Ok(recorded),
        _ => {
            Err(failed.unwrap_or_else(|| anyhow::anyhow!("this machine is too busy: every run met a stall")))
        }
    }
}

/// The causes as they stand in the label: a trait of the capture shows only where it was made.
fn seen_at(vantage: Vantage, causes: &[Cause], costs: &[Option<(i64, i64)>]) -> Vec<LabelledCause> {
    let labelled = causes.iter().zip(costs).filter(|(cause, _)| cause.shows_at(vantage));
    labelled
        .map(|(cause, cost)| LabelledCause {
            cause: cause.name.to_owned(),
            rules: cause.rules.iter().map(|rule| (*rule).to_owned()).collect(),
            side: cause.side,
            cost_ms: cost.map(|(saves, _)| ms(saves)),
            alone_ms: cost.map(|(_, alone)| ms(alone)),
            unseen: cause.unseen_at == Some(vantage),
        })
        .collect()
}

fn span(messages: &[Message]) -> i64 {
    let first = messages.iter().map(|message| message.written).min();
    let last = messages.iter().map(|message| message.read).max();
    first.zip(last).map_or(0, |(first, last)| last - first)
}

/// ms, to the microsecond.
fn ms(nanoseconds: i64) -> f64 {
    (nanoseconds as f64 / 1e3).round() / 1e3
}

/// The path in words.
fn in_words(path: &Path) -> String {
    match path {
        Path::Loopback { mtu } => format!("loopback, MTU {mtu}"),
        Path::Link(wire) => link_in_words(wire),
        Path::TwoHops { near, far } => format!("{}; relay; {}", link_in_words(near), link_in_words(far)),
    }
}

fn link_in_words(wire: &Wire) -> String {
    let ends = &wire.ends;
    let mut words = format!(
        "round trip {}, MTU {}, offload {}",
        short(ends.up.delay + ends.down.delay),
        wire.mtu,
        if wire.offload { "on" } else { "off" }
    );
    for (name, settings) in [("up", &ends.up), ("down", &ends.down)] {
        for what in oddities(settings) {
            words.push_str(&format!("; {name}: {what}"));
        }
    }
    words
}

fn oddities(settings: &Settings) -> Vec<String> {
    let mut odd = Vec::new();
    if let Some(rate) = settings.rate {
        odd.push(format!("{} kbit/s", rate / 1000));
    }
    match settings.queue {
        Queue::Unlimited => {}
        Queue::Packets(packets) => odd.push(format!("queue of {packets} packets")),
        Queue::Bytes(bytes) => odd.push(format!("queue of {bytes} bytes")),
    }
    odd.extend(settings.drops.iter().map(|drop| match drop {
        Drop::Packet(n) => format!("loses packet {n}"),
        Drop::Data(n) => format!("loses data segment {n}"),
        Drop::Tail(n) => format!("loses the end of burst {n}"),
        Drop::Syn(n) => format!("loses SYN {n}"),
        Drop::Byte(n) => format!("loses byte {n}"),
    }));
    if settings.loss > 0.0 {
        odd.push(format!("loses {} %", settings.loss * 100.0));
    }
    if settings.jitter > Duration::ZERO {
        odd.push(format!("jitter up to {}", short(settings.jitter)));
    }
    if settings.reorder > 0.0 {
        odd.push(format!("reorders {} %", settings.reorder * 100.0));
    }
    if settings.duplicate > 0.0 {
        odd.push(format!("duplicates {} %", settings.duplicate * 100.0));
    }
    odd.extend(settings.hold_acks.map(|hold| format!("pure ACKs are held: {hold:?}")));
    odd
}

fn short(duration: Duration) -> String {
    format!("{} ms", duration.as_micros() as f64 / 1e3)
}
