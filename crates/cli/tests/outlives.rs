//! `tcpwhy run` and programs that live longer than it, or become another user: what they were told to load stays root's.
#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// What a PID namespace takes: its own `/proc`, and that nothing of it is left.
const APART: [&str; 4] = ["--pid", "--fork", "--kill-child", "--mount-proc"];

/// Whether this is root, who may make such namespaces; else says so.
fn is_root(test: &str) -> bool {
    let tried = Command::new("unshare").args(APART).arg("true").stderr(Stdio::null()).status();
    let is_possible = tried.is_ok_and(|status| status.success())
        && fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0);
    if !is_possible {
        // Straight to standard error, which shows it; eprintln! is kept from a passing test.
        let _ = writeln!(io::stderr(), "SKIPPED {test}: only root may make a PID namespace");
    }
    is_possible
}

fn compiled(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = folder.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/outlives/{name}.c"));
    let cc = Command::new("cc").args(flags).arg(source).arg("-o").arg(&program).status();
    assert!(cc.expect("cc is there, as for every Rust build").success());
    program
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Somebody who gets the number that tcpwhy had, with a library and a memory of his own as its descriptors, has neither
/// loaded into a daemon of root's that was watched.
#[test]
fn who_gets_the_number_of_a_run_that_ended_gets_nothing_else() {
    if !is_root("who_gets_the_number_of_a_run_that_ended_gets_nothing_else") {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("its own");
    let attack = compiled(folder.path(), "attack", &[]);
    let library = compiled(folder.path(), "library", &["-shared", "-fPIC"]);
    let played = Command::new("unshare")
        .args(APART)
        .arg(&attack)
        .args(["play", env!("CARGO_BIN_EXE_tcpwhy")])
        .arg(&library)
        .current_dir(folder.path())
        .output();
    let Output { status, stdout, stderr } = played.expect("it runs");
    let played = format!("{}{}", text(&stdout), text(&stderr));
    assert!(status.success(), "{status}: {played}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert_eq!(read("loaded"), "", "the user's library was loaded");
    assert_eq!(played, "calls 0\n", "the daemon recorded into the user's memory");
    assert_eq!(read("said"), "", "the loader complains");
}

/// A program that becomes another user goes on as it would without the recorder.
#[test]
fn a_program_that_becomes_nobody_hears_nothing_of_it() {
    if !is_root("a_program_that_becomes_nobody_hears_nothing_of_it") {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder");
    let leaves = compiled(folder.path(), "leaves", &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(["run", "--no-capture", "--output"]).arg(folder.path().join("report")).arg("--").arg(leaves);
    let Output { status, stdout, stderr } = command.output().expect("the binary runs");
    assert_eq!((status.code(), text(&stderr).as_str()), (Some(0), ""));
    assert!(text(&stdout).contains("/preload-"), "it has the recorder: {}", text(&stdout));
}
