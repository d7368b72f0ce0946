//! docs/rules/ is generated from the rules' own texts, docs/plots/ from captures of the corpus, and docs/simulator.md
//! shows what the simulator says: this fails when they are out of step, and `make docs` (`UPDATE_DOCS=1`) brings them back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const INDEX: &str = "README.md";
const GENERATED: &str =
    "<!-- Generated from crates/diagnose/src/detectors by `make docs`: change it there. -->";

/// The pages as they have to be, by file name, made of what the command itself says about its rules.
fn wanted() -> BTreeMap<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(["rules", "--format", "json"])
        .output()
        .expect("the binary runs");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut pages = BTreeMap::new();
    let mut index = format!(
        "{GENERATED}\n\n# Rules\n\nWhat tcpwhy can find. `tcpwhy explain RULE` prints the same texts.\n\n\
         | rule | severity | what it says |\n| --- | --- | --- |\n"
    );
    for rule in list["rules"].as_array().expect("rules") {
        let text = |key: &str| rule[key].as_str().expect("a string");
        let (name, severity) = (text("name"), text("severity"));
        let body = text("markdown").trim();
        pages.insert(
            format!("{name}.md"),
            format!("{GENERATED}\n\n# {name}\n\nSeverity: {severity}\n\n{body}\n"),
        );
        let summary = text("summary").replace('|', "\\|");
        let _ = writeln!(index, "| [{name}]({name}.md) | {severity} | {summary} |");
    }
    pages.insert(INDEX.to_owned(), index);
    pages
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules")
}

fn present(folder: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeMap::new() };
    entries
        .map(|entry| {
            let path = entry.expect("a readable folder").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a readable page"))
        })
        .collect()
}

#[test]
fn docs_are_in_step_with_the_rules() {
    let (folder, wanted) = (folder(), wanted());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(&folder).expect("docs/rules");
        for stale in present(&folder).keys().filter(|name| !wanted.contains_key(*name)) {
            std::fs::remove_file(folder.join(stale)).expect("a removed page");
        }
        for (name, text) in &wanted {
            std::fs::write(folder.join(name), text).expect("a written page");
        }
    }
    let present = present(&folder);
    let differs = |name: &&String| present.get(*name) != wanted.get(*name);
    let out_of_step: Vec<_> = wanted.keys().chain(present.keys()).filter(differs).collect();
    assert!(out_of_step.is_empty(), "docs/rules/ is out of step, run `make docs`: {out_of_step:?}");
}

/// Pictures in docs/plots/, and what `tcpwhy plot` is asked for.
const PICTURES: [(&str, &str, &[&str]); 2] = [
    (
        "split-request.svg",
        "split-request-20ms-client.pcapng.zst",
        &["--direction", "up", "--to", "450ms", "--size", "1000x480"],
    ),
    (
        "four-lost.svg",
        "four-lost-in-upload-20ms-client.pcapng.zst",
        &["--from", "130ms", "--to", "170ms", "--size", "1000x520"],
    ),
];

#[test]
fn pictures_are_in_step_with_the_analysis() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, capture, options) in PICTURES {
        let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
            .arg("plot")
            .arg(root.join("tests/corpus").join(capture))
            .args(["-o", "-"])
            .args(options)
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = root.join("docs/plots").join(name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &output.stdout).expect("a written picture");
        }
        let present = std::fs::read(&path).unwrap_or_default();
        assert!(present == output.stdout, "docs/plots/{name} is out of step, run `make docs`");
    }
}

/// The simulator's page with what the command says today between its marks: `<!-- tcpwhy ARGUMENTS -->`, output,
/// `<!-- end -->`.
fn with_output(page: &str) -> String {
    let mut fresh = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let _ = writeln!(fresh, "{line}");
        let Some(arguments) = line.strip_prefix("<!-- tcpwhy ").and_then(|rest| rest.strip_suffix(" -->"))
        else {
            continue;
        };
        let output = said(&arguments.split(' ').collect::<Vec<_>>());
        let is_markdown = arguments.contains("--format markdown");
        let _ = match is_markdown {
            true => writeln!(fresh, "\n{}\n", output.trim()),
            false => writeln!(fresh, "\n```text\n$ tcpwhy {arguments}\n{}\n```\n", output.trim_end()),
        };
        let end = lines.find(|line| *line == "<!-- end -->").expect("an end of the output");
        let _ = writeln!(fresh, "{end}");
    }
    fresh
}

/// What the command prints, 80 columns wide.
fn said(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(arguments).output().expect("the binary runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_simulators_page_shows_what_it_says() {
    let docs = folder().join("..");
    let (page, pictures) = (docs.join("simulator.md"), docs.join("simulator"));
    let updates = std::env::var_os("UPDATE_DOCS").is_some();
    let old = std::fs::read_to_string(&page).expect("docs/simulator.md");
    let fresh = with_output(&old);
    if updates {
        std::fs::write(&page, &fresh).expect("a written page");
    }
    assert!(updates || fresh == old, "docs/simulator.md is out of step, run `make docs`");
    for name in ["dsl-1998", "netrek-1995"] {
        let kept = pictures.join(format!("{name}.svg"));
        let scratch = tempfile::tempdir().expect("a folder");
        let drawn = scratch.path().join("x.svg");
        said(&["simulate", name, "--plot", &drawn.to_string_lossy()]);
        let drawn = std::fs::read_to_string(&drawn).expect("a picture");
        if updates {
            std::fs::write(&kept, &drawn).expect("a written picture");
        }
        let is_kept = std::fs::read_to_string(&kept).is_ok_and(|kept| kept == drawn);
        assert!(is_kept, "{} is out of step, run `make docs`", kept.display());
    }
}
