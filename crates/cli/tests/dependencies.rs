//! What the project is built from: crates of the public registry, under licences that MIT OR Apache-2.0 can ship.

use std::process::Command;

use serde_json::Value;

/// Licences whose terms a binary distribution meets by naming them.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Every crate that is built on this machine, as cargo describes it.
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--offline", "--format-version=1", "--filter-platform", &host()])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// The machine's target triple. Crates for other machines may not be at hand.
fn host() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().expect("rustc");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host line").to_owned()
}

/// Whether an SPDX expression can be met: of OR one side, of AND both; `/` is the OR of old manifests.
/// Deeper nesting than groups joined by AND is refused, for a person to read.
fn acceptable(expression: &str) -> bool {
    let group = |group: &str| {
        let group = group.trim();
        let group = group.strip_prefix('(').and_then(|group| group.strip_suffix(')')).unwrap_or(group);
        group.split(" OR ").any(|choice| choice.split(" AND ").all(|name| LICENCES.contains(&name.trim())))
    };
    let expression = expression.replace('/', " OR ");
    if expression.contains('(') { expression.split(" AND ").all(group) } else { group(&expression) }
}

#[test]
fn licences_are_compatible() {
    let foreign: Vec<_> = packages()
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(acceptable))
        .map(|package| format!("{} {}: {}", package["name"], package["version"], package["license"]))
        .collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
}

#[test]
fn every_dependency_comes_from_the_registry_or_this_tree() {
    for package in packages() {
        let source = package["source"].as_str().unwrap_or("this tree");
        let known = source == "this tree"
            || source.starts_with("registry+https://github.com/rust-lang/crates.io-index");
        assert!(known, "{} comes from {source}", package["name"]);
    }
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    assert!(acceptable("MIT OR Apache-2.0") && acceptable("MIT/Apache-2.0") && acceptable("GPL-3.0 OR MIT"));
    assert!(acceptable("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(!acceptable("GPL-3.0") && !acceptable("MIT AND GPL-3.0"));
    assert!(!acceptable("(MIT OR Apache-2.0) AND GPL-3.0") && !acceptable("MIT OR (GPL-3.0 AND MIT)"));
}
