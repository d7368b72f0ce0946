//! The labelled corpus: tcpwhy is as right about it as is recorded, and about fresh runs of some of its cases.

use std::io::Write;
use std::path::{Path, PathBuf};

use tcpwhy_lab::corpus::score::{Figures, score};
use tcpwhy_lab::corpus::{self, Case};

/// Set to write the figures instead of comparing them.
const UPDATE: &str = "UPDATE_SCORE";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

#[test]
fn the_analysis_is_as_right_as_recorded() {
    let figures = score(&folder()).expect("the stored corpus").figures;
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
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED fresh runs of the corpus: they want root and /dev/net/tun");
        return;
    }
    let fresh = tempfile::tempdir().expect("a temporary folder");
    let is_live = |case: &Case| LIVE.contains(&case.name.as_str());
    let cases: Vec<Case> = corpus::cases().into_iter().filter(is_live).collect();
    assert_eq!(cases.len(), LIVE.len());
    let labels = corpus::build(&cases, fresh.path(), 1, &|case, error| {
        assert!(error.is_none(), "{}: {error:?}", case.name);
    });
    corpus::merge(labels, fresh.path()).expect("a list of cases");
    let score = score(fresh.path()).expect("a score");
    for verdict in &score.verdicts {
        let name = &verdict.label.name;
        for found in &verdict.found {
            assert!(!found.is_missed(), "{name}: {} was missed", found.cause.cause);
        }
        for blame in &verdict.blames {
            assert!(!blame.is_false(), "{name}: {}: {}", blame.rule, blame.summary);
        }
    }
}
