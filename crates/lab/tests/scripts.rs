//! The simulator's scripts for `linux-6` on this machine's kernel: what they expect must be what Linux does.

mod attempts;
mod rights;

use std::fs;
use std::path::{Path, PathBuf};

use tcpwhy_simulate::script::{self, Outcome};

fn scripts() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../simulate/tests/scripts");
    let folders = fs::read_dir(root).unwrap().map(|folder| folder.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()));
    let mut list: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|e| e == "pkt")).collect();
    list.sort();
    list
}

fn check(outcome: &Outcome) -> Result<(), String> {
    if outcome.passed() && outcome.unread.is_empty() { Ok(()) } else { Err(outcome.to_string()) }
}

#[test]
fn this_kernel_does_what_the_scripts_say() {
    if !rights::able() {
        return;
    }
    let mut count = 0;
    for file in scripts() {
        let script = script::parse(&fs::read_to_string(&file).unwrap()).unwrap();
        if script.stack.as_deref() != Some("linux-6") {
            continue;
        }
        count += 1;
        attempts::one_succeeds(|| {
            let outcome = tcpwhy_lab::script::run(&script).map_err(|error| format!("{error:#}"))?;
            check(&outcome).map_err(|why| format!("{}: {why}", file.display()))
        });
    }
    assert!(count >= 40, "only {count} scripts");
}
