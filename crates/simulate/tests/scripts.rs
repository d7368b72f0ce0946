//! Runs every script under `tests/scripts`. What they expect comes from RFCs and from what Linux really does
//! (`crates/lab/tests/scripts.rs` runs those for `linux-6` on the kernel), not from what the endpoint answers.

use std::fs;
use std::path::{Path, PathBuf};

use tcpwhy_simulate::script::{self, Outcome};
use tcpwhy_simulate::tcp::{Stack, eras};

/// Scripts that the endpoint is known to fail, with what it does otherwise. They must fail: one that passes is to be
/// taken off this list.
const KNOWN_GAPS: [(&str, &str); 1] =
    [("handshake/wrong-ack-is-reset", "the SYN is not sent again at once, but when its timer ends")];

/// The issue asks for so many; fewer means that the folder was not found.
const FEWEST: usize = 40;

fn scripts() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let folders = fs::read_dir(root).unwrap().map(|folder| folder.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()));
    let mut list: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|e| e == "pkt")).collect();
    list.sort();
    list
}

/// `nagle/msg-more`
fn name(file: &Path) -> String {
    let folder = file.parent().and_then(Path::file_name).unwrap().to_string_lossy();
    format!("{folder}/{}", file.file_stem().unwrap().to_string_lossy())
}

fn stack(name: Option<&str>) -> Stack {
    let name = name.expect("the comment '// tcpwhy: stack=NAME'");
    eras::named(name).unwrap_or_else(|| panic!("no stack {name}"))
}

fn run(file: &Path) -> Outcome {
    let script = script::parse(&fs::read_to_string(file).unwrap()).unwrap_or_else(|error| {
        panic!("{}: {error}", name(file));
    });
    script::run(&script, &stack(script.stack.as_deref()))
}

/// What a script of ours may not have: anything that was not looked at.
fn complaint(outcome: &Outcome) -> Option<String> {
    let clean = outcome.passed() && outcome.unchecked.is_empty() && outcome.unread.is_empty();
    (!clean).then(|| outcome.to_string())
}

#[test]
fn every_script_does_what_it_says() {
    let files = scripts();
    assert!(files.len() >= FEWEST, "only {} scripts", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let name = name(file);
        let gap = KNOWN_GAPS.iter().find(|(script, _)| *script == name);
        match (complaint(&run(file)), gap) {
            (Some(why), None) => wrong.push(format!("{name}: {why}")),
            (None, Some(_)) => wrong.push(format!("{name}: passes, and is listed as a known gap")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {} scripts:\n{}", wrong.len(), files.len(), wrong.join("\n"));
}

#[test]
fn known_gaps_exist() {
    let names: Vec<String> = scripts().iter().map(|file| name(file)).collect();
    for (script, _) in KNOWN_GAPS {
        assert!(names.iter().any(|name| name == script), "{script}");
    }
}
