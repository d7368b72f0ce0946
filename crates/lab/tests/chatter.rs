//! The quick forms of the experiments about programs that talk: real runs, every row, a verdict a claim.

mod attempts;
mod rights;

use clap::{Parser, Subcommand};
use tcpwhy_lab::experiments::{Experiment, Verdict};
use tcpwhy_lab::lab::{Lab, Progress};

#[derive(Parser)]
struct Command {
    #[command(subcommand)]
    experiment: Experiment,
}

struct Silent;

impl Progress for Silent {
    fn runs(&self, _: u64) {}
    fn run(&self, _: &str) {}
    fn voided(&self, _: &str) {}
}

/// One after the other: each loads all of a small machine.
#[test]
fn quick_forms_have_all_their_rows() {
    if !rights::able() {
        return;
    }
    assert!(Experiment::has_subcommand("mud"));
    let lab = Lab { quick: true, seed: 1, keep: None, progress: &Silent };
    // Name, rows of each table, claims.
    let expected: [(&str, &[usize], usize); 4] = [
        ("mud", &[5, 10], 7),
        ("gateway", &[6, 6, 12, 10, 12], 8),
        ("calls", &[17, 3], 7),
        ("upload", &[4, 20, 20], 5),
    ];
    for (name, rows, claims) in expected {
        attempts::one_succeeds(|| {
            let ran = Command::parse_from(["lab", name]).experiment.run(&lab);
            let outcome = ran.map_err(|error| format!("{name}: {error:#}"))?;
            let tables = &outcome.tables;
            assert_eq!(tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), rows, "{name}");
            for table in tables {
                assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.title);
            }
            assert_eq!(outcome.claims.len(), claims, "{name}");
            assert!(outcome.claims.iter().all(|claim| !claim.measured.is_empty()), "{name}");
            let holds = outcome.claims.iter().any(|claim| claim.verdict == Verdict::Holds);
            if holds { Ok(()) } else { Err(format!("{name}: no claim holds: {:?}", outcome.claims)) }
        });
    }
}
