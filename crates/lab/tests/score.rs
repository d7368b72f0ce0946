//! The labelled corpus: tcpwhy is as right about it as is recorded, and about fresh runs of some of its cases.

mod attempts;
mod rights;

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use attempts::one_succeeds;
use rights::able;
use tcpwhy_diagnose::report::{Connection, Exchanges, Source};
use tcpwhy_lab::capture::{Capture, Vantage};
use tcpwhy_lab::corpus::score::{Figures, Tenth, score};
use tcpwhy_lab::corpus::{self, Case, Label, Traffic};
use tcpwhy_lab::place;
use tcpwhy_lab::programs::chat::Chat;
use tcpwhy_simulate::link::Drop;

/// Set to write the figures instead of comparing them.
const UPDATE: &str = "UPDATE_SCORE";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

/// Of findings with a confidence of 0.9 and more, how many are right at least.
const SURE: f64 = 0.98;

#[test]
fn the_analysis_is_as_right_as_recorded() {
    let score = score(&folder()).expect("the stored corpus");
    let sure = score.calibration.last().and_then(Tenth::was);
    assert!(sure.is_some_and(|right| right >= SURE), "of those with a confidence of 0.9, {sure:?} are right");
    let figures = score.figures;
    let path = folder().join("score.json");
    if std::env::var_os(UPDATE).is_some() {
        let text = serde_json::to_string_pretty(&figures).expect("JSON");
        std::fs::write(&path, text + "\n").expect("the figures can be written");
        return;
    }
    let recorded = std::fs::read_to_string(&path).expect("recorded figures");
    let recorded: Figures = serde_json::from_str(&recorded).expect("figures");
    let worse = figures.worse_than(&recorded);
    assert!(
        worse.is_empty(),
        "worse than recorded (`tcpwhy lab score` lists the cases; {UPDATE}=1 records these figures):\n  {}\n",
        worse.join("\n  ")
    );
}

/// The least: the corpus is neither lopsided nor small.
#[test]
fn the_corpus_is_large_and_has_every_group() {
    let labels = corpus::load(&folder()).expect("the stored corpus");
    assert!(labels.len() >= 200, "{} captures", labels.len());
    for group in ["Single", "Compound", "LookAlike", "Clean"] {
        let of = labels.iter().filter(|label| format!("{:?}", label.group) == group).count();
        assert!(of >= 20, "{of} captures of group {group}");
    }
    for label in &labels {
        assert!(folder().join(&label.file).exists(), "{} is missing", label.file);
    }
}

/// What tcpwhy reports of the connections of one capture.
struct Reported {
    label: Label,
    connections: Vec<Connection>,
}

impl Reported {
    fn exchanges(&self) -> impl Iterator<Item = &Exchanges> {
        self.connections.iter().filter_map(|connection| connection.exchanges.as_ref())
    }
}

/// Every capture's connections; both tests below want them.
static REPORTED: LazyLock<Vec<Reported>> = LazyLock::new(|| {
    let of = |label: Label| {
        let bytes = std::fs::read(folder().join(&label.file)).expect("a stored capture");
        // Only the bytes matter to the analyser.
        let diagnosis = Capture { vantage: Vantage::Middle, bytes }.diagnose(&label.file);
        Reported { label, connections: diagnosis.connections().collect() }
    };
    corpus::load(&folder()).expect("the stored corpus").into_iter().map(of).collect()
});

/// Sums of some hundred figures of µs in ms as f64 are exact to far less than this.
const ROUNDING_MS: f64 = 0.001;

#[test]
fn every_ledger_sums_to_its_duration() {
    let mut wrong = Vec::new();
    for Reported { label, connections } in REPORTED.iter() {
        assert!(!connections.is_empty(), "{}: no connection", label.name);
        for connection in connections {
            let (booked, duration) = (connection.ledger_ms.total(), connection.duration_ms.0);
            if (booked - duration).abs() > ROUNDING_MS {
                wrong.push(format!("{}: {booked} ms are booked of {duration} ms", label.name));
            }
        }
    }
    assert!(wrong.is_empty(), "\n  {}\n", wrong.join("\n  "));
}

/// How far the time inside exchanges may be from the programs' own. Packets show neither the programs' system
/// calls nor the scheduler.
const LATENCY_TOLERANCE: f64 = 0.10;
/// How much more it may be off with each exchange, in ms: two wake-ups of a thread on a machine with other work.
const SCHEDULING_MS: f64 = 0.3;

/// The captures of clients that ask and wait for the answer before they ask again.
fn of_exchanges() -> Vec<(&'static Reported, Case, Chat)> {
    let cases: HashMap<String, Case> =
        corpus::cases().into_iter().map(|case| (case.name.clone(), case)).collect();
    let chats = REPORTED.iter().filter_map(|reported| {
        let Some(case) = cases.get(reported.label.case()).cloned() else {
            // What its programs do is no longer known. Recording the corpus takes it out.
            let _ = writeln!(std::io::stderr(), "SKIPPED {}: no case has this name", reported.label.name);
            return None;
        };
        let Traffic::Chat(chat) = case.run.traffic.clone() else { return None };
        // Of requests that are written ahead of their answers, packets do not say where one exchange ends.
        (chat.ahead == 1).then_some((reported, case, chat))
    });
    chats.collect()
}

#[test]
fn as_many_exchanges_are_reported_as_the_programs_had() {
    let mut faults = Vec::new();
    for (reported, ..) in of_exchanges() {
        let (counted, label) =
            (reported.exchanges().map(|exchanges| exchanges.count).sum::<u64>(), &reported.label);
        if counted != label.messages {
            faults.push(format!("{}: {counted} exchanges, the programs had {}", label.name, label.messages));
        }
    }
    assert!(faults.is_empty(), "\n  {}\n", faults.join("\n  "));
}

/// Whether the programs' log says how long the client waited for answers, and packets can show it. New connections
/// and the client's work are in the programs' total and in no exchange; they cannot be told apart there. What a cork
/// holds back, packets show only when it leaves.
fn is_timed(label: &Label, case: &Case, chat: &Chat) -> bool {
    let lost_syn = match &case.run.path {
        place::Path::Link(wire) => [&wire.ends.up, &wire.ends.down]
            .into_iter()
            .flat_map(|way| &way.drops)
            .any(|drop| matches!(drop, Drop::Syn(_))),
        _ => false,
    };
    label.vantage != "server"
        && !chat.connect_each
        && chat.client_think.is_zero()
        && !lost_syn
        && label.causes.iter().all(|cause| cause.cause != "cork")
}

/// On the client's host, the time inside exchanges is what the client waited for answers: all its time but for the
/// handshake.
#[test]
fn exchanges_take_as_long_as_the_programs_waited() {
    let mut faults = Vec::new();
    let all = of_exchanges();
    let timed = all.iter().filter(|(reported, case, chat)| is_timed(&reported.label, case, chat));
    for (reported, case, _) in timed {
        let label = &reported.label;
        let waited = label.total_ms - round_trip_ms(&case.run.path);
        let inside: f64 = reported.exchanges().map(|exchanges| exchanges.ledger_ms.total()).sum();
        if (inside - waited).abs() > LATENCY_TOLERANCE * waited + SCHEDULING_MS * label.messages as f64 {
            faults.push(format!(
                "{}: exchanges take {inside:.1} ms, the client waited {waited:.1} ms",
                label.name
            ));
        }
    }
    assert!(faults.is_empty(), "\n  {}\n", faults.join("\n  "));
}

/// The path's own round trip, which the handshake takes.
fn round_trip_ms(path: &place::Path) -> f64 {
    match path {
        place::Path::Link(wire) => (wire.ends.up.delay + wire.ends.down.delay).as_secs_f64() * 1e3,
        place::Path::Loopback { .. } | place::Path::TwoHops { .. } => 0.0,
    }
}

/// The classic stall, its cure, its look-alike, and a loss: they take seconds.
const LIVE: [&str; 5] = [
    "split-request-20ms",
    "split-request-loopback",
    "pieces-with-nodelay-20ms",
    "slow-server-42-loopback",
    "lost-request-twice-20ms",
];

#[test]
fn fresh_runs_are_diagnosed() {
    if !able() {
        return;
    }
    let is_live = |case: &Case| LIVE.contains(&case.name.as_str());
    let cases: Vec<Case> = corpus::cases().into_iter().filter(is_live).collect();
    assert_eq!(cases.len(), LIVE.len());
    for case in cases {
        one_succeeds(|| faults_of_a_fresh_run(&case));
    }
}

fn faults_of_a_fresh_run(case: &Case) -> Result<(), String> {
    let fresh = tempfile::tempdir().expect("a temporary folder");
    let failed = Mutex::new(None);
    let labels = corpus::build(std::slice::from_ref(case), fresh.path(), 1, &|_, error| {
        *failed.lock().unwrap() = error.map(|error| format!("{}: {error:#}", case.name));
    });
    if let Some(error) = failed.into_inner().unwrap() {
        return Err(error);
    }
    corpus::merge(labels, fresh.path()).expect("a list of cases");
    let mut faults = Vec::new();
    for verdict in &score(fresh.path()).expect("a score").verdicts {
        let name = &verdict.label.name;
        let missed = verdict.found.iter().filter(|found| found.is_missed());
        faults.extend(missed.map(|found| format!("{name}: {} was missed", found.cause.cause)));
        let wrong = verdict.blames.iter().filter(|blame| blame.is_false());
        faults.extend(wrong.map(|blame| format!("{name}: {}: {}", blame.rule, blame.summary)));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n  ")) }
}
