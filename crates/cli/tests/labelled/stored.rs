//! The captures in tests/captures/.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tcpwhy_benches::labelled::{CASES, Truth};

use crate::expectations::EXPECTATIONS;
use crate::verdict::faults;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures")
}

#[track_caller]
fn check_stored(stem: &str) {
    let folder = folder();
    let truth = Truth::load(&folder.join(format!("{stem}.json"))).expect("a stored truth");
    let faults = faults(&truth, &folder);
    assert!(faults.is_empty(), "{}\n  {}\n", truth.story, faults.join("\n  "));
}

/// One test a stored run, named after its file.
macro_rules! stored {
    ($($name:ident: $stem:literal,)+) => {
        $(#[test]
        fn $name() {
            check_stored($stem);
        })+

        const STEMS: &[&str] = &[$($stem),+];
    };
}

stored! {
    split_request: "split-request",
    split_request_veth: "split-request-veth",
    split_request_nodelay: "split-request-nodelay",
    single_request: "single-request",
    thinking_server: "thinking-server",
    thinking_server_veth: "thinking-server-veth",
    sometimes_thinking_server: "sometimes-thinking-server",
    sometimes_thinking_server_veth: "sometimes-thinking-server-veth",
    split_response: "split-response",
    split_both: "split-both",
    cork_kept: "cork-kept",
    slow_reader: "slow-reader",
    slow_reader_veth: "slow-reader-veth",
    small_receive_buffer_veth: "small-receive-buffer-veth",
    plain_upload_veth: "plain-upload-veth",
    connection_per_request: "connection-per-request",
    connection_per_request_veth: "connection-per-request-veth",
    thinking_client: "thinking-client",
    steady_updates: "steady-updates",
    split_request_thinking_server: "split-request-thinking-server",
    single_upload: "single-upload",
}

#[test]
fn every_stored_run_has_its_test() {
    let stored: BTreeSet<String> = std::fs::read_dir(folder())
        .expect("the folder of stored captures")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    let tested: BTreeSet<String> = STEMS.iter().map(|&stem| stem.to_owned()).collect();
    assert_eq!(stored, tested);
}

#[test]
fn every_case_has_its_expectation() {
    let cases: BTreeSet<&str> = CASES.iter().map(|case| case.name).collect();
    let expected: BTreeSet<&str> = EXPECTATIONS.iter().map(|expectation| expectation.case).collect();
    assert_eq!(cases, expected);
}
