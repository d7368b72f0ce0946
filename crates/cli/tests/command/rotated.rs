//! Files that a recorder went through are one capture.

use std::path::Path;

use serde_json::Value;
use tcpwhy_wire::container::{self, Frame, Interface, Opened, Origin, Writer};

use crate::capture::{connections, healthy, write_write_read};
use crate::output::assert_valid;
use crate::run::{Desk, Ran};

/// The frames of a capture as so many pcapng files; in files behind the first, `later` ns later.
fn split(capture: &[u8], parts: usize, later: i64) -> Vec<Vec<u8>> {
    let Ok(Opened::Capture(mut reader)) = container::open(capture) else { panic!("a capture") };
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame() {
        frames.push((frame.time, frame.link, frame.original_len, frame.data.to_vec()));
    }
    let mut files = Vec::new();
    for (number, frames) in frames.chunks(frames.len().div_ceil(parts)).enumerate() {
        let mut file = Writer::new(Vec::new(), &Origin::default()).expect("in memory");
        file.interface(&Interface { link: frames[0].1, ..Interface::default() }).expect("in memory");
        let late = if number > 0 { later } else { 0 };
        for &(time, link, original_len, ref data) in frames {
            file.frame(&Frame { time: time + late, link, original_len, interface: 0, data }, "")
                .expect("in memory");
        }
        files.push(file.finish().expect("in memory"));
    }
    assert_eq!(files.len(), parts);
    files
}

/// Puts a capture on the desk as one file and as files with these names.
fn laid_out(capture: &[u8], names: &[&str], later: i64) -> Desk {
    let desk = Desk::new();
    desk.file("whole.pcapng", &split(capture, 1, 0)[0]);
    for (name, part) in names.iter().zip(split(capture, names.len(), later)) {
        desk.file(name, &part);
    }
    desk
}

fn report(desk: &Desk, args: &[&str]) -> Value {
    let ran = desk.run(&[&["--format", "json"], args].concat());
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let report = ran.json();
    assert_valid(&report);
    report
}

/// What a report says but for the name of its only capture, and that name and the notes.
fn but_name(mut report: Value) -> (Value, String, Vec<Value>) {
    let captures = report["captures"].as_array_mut().expect("captures");
    assert_eq!(captures.len(), 1, "{captures:?}");
    let name = captures[0]["name"].take().as_str().expect("a name").to_owned();
    let notes = captures[0]["notes"].take().as_array().expect("notes").clone();
    (report, name, notes)
}

#[track_caller]
fn assert_one(capture: &[u8], names: &[&str], args: &[&str]) -> (String, Vec<Value>) {
    let desk = laid_out(capture, names, 0);
    let (whole, ..) = but_name(report(&desk, &[args, &["whole.pcapng"]].concat()));
    let (parts, name, notes) = but_name(report(&desk, &[args, names].concat()));
    assert!(whole == parts, "{whole}\n{parts}");
    (name, notes)
}

const EDITCAP: [&str; 3] = [
    "slow_00000_20231114221320.pcapng",
    "slow_00001_20231114221320.pcapng",
    "slow_00002_20231114221321.pcapng",
];

#[test]
fn a_set_has_the_report_of_the_whole() {
    let (name, notes) = assert_one(&write_write_read(), &EDITCAP, &["--whatif", "always"]);
    assert_eq!(name, "slow_00000_20231114221320.pcapng and 2 more");
    let note = notes[0].as_str().expect("a note");
    assert!(note.starts_with("3 files were read as one capture (--separate keeps them apart)."), "{note}");
    assert!(note.contains("slow_00001_20231114221320.pcapng 30 to 58,"), "{note}");
    assert_one(&write_write_read(), &["x.pcap", "x.pcap1", "x.pcap2"], &[]);
    assert_one(&write_write_read(), &["x.pcap0", "x.pcap1", "x.pcap2"], &["--port", "8080"]);
    assert_one(&connections(30), &["x-221320.pcap", "x-221321.pcap"], &["--connection", "29"]);
}

#[test]
fn a_shell_that_sorts_by_letters_changes_nothing() {
    let mut names: Vec<String> = (0..12).map(|number| format!("x.pcap{number}")).collect();
    let desk = laid_out(&connections(50), &names.iter().map(String::as_str).collect::<Vec<_>>(), 0);
    names.sort();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (parts, name, _) = but_name(report(&desk, &names));
    assert_eq!(name, "x.pcap0 and 11 more");
    assert_eq!(parts, but_name(report(&desk, &["whole.pcapng"])).0);
}

#[test]
fn who_wants_them_apart_gets_them_apart() {
    let desk = laid_out(&write_write_read(), &EDITCAP, 0);
    let apart = report(&desk, &[&["--separate"], &EDITCAP[..]].concat());
    let names: Vec<_> =
        apart["captures"].as_array().expect("captures").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, EDITCAP);
}

/// Near misses: names of a set, and times that are not.
#[test]
fn captures_of_the_same_time_stay_apart() {
    let captures = |desk: &Desk, names: &[&str]| report(desk, names)["captures"].as_array().map(Vec::len);
    let names = ["x.pcap", "x.pcap1"];
    let desk = laid_out(&write_write_read(), &names, -300_000_000);
    assert_eq!(captures(&desk, &names), Some(2), "side by side");
    let desk = Desk::new();
    names.iter().for_each(|name| drop(desk.file(name, &healthy())));
    assert_eq!(captures(&desk, &names), Some(2), "twice the same");
    // One between them is missing.
    let names = ["x.pcap", "x.pcap2"];
    assert_eq!(captures(&laid_out(&write_write_read(), &names, 0), &names), Some(2));
    let names = ["x.pcap", "x.pcap1"];
    // A night later: one recorder that counts its files was idle, two with times in their names are two.
    let night = 8 * 3_600_000_000_000;
    assert_eq!(captures(&laid_out(&write_write_read(), &names, night), &names), Some(1));
    let names = ["test-20231114.pcap", "test-20231115.pcap"];
    assert_eq!(captures(&laid_out(&write_write_read(), &names, night), &names), Some(2));
    assert_eq!(captures(&laid_out(&write_write_read(), &names, 60_000_000_000), &names), Some(1));
}

#[test]
fn a_file_of_a_set_that_is_cut_or_empty_is_named() {
    let desk = laid_out(&write_write_read(), &EDITCAP, 0);
    let middle = std::fs::read(desk.path().join(EDITCAP[1])).expect("a file");
    desk.file(EDITCAP[1], &middle[..middle.len() - 10]);
    let (_, _, notes) = but_name(report(&desk, &EDITCAP));
    assert!(
        notes[1].as_str().is_some_and(|note| note.starts_with(&format!("{}: Cut short", EDITCAP[1]))),
        "{notes:?}"
    );
    desk.file(EDITCAP[2], &split(&healthy(), 1, 0)[0][..100]);
    let ran = desk.run(&[&["--fail-on", "zero-window"], &EDITCAP[..]].concat());
    assert_eq!(ran.status, Some(0), "the set is not empty: {ran:?}");
    let gone = desk.run(&[EDITCAP[0], "slow_00003_20231114221320.pcapng"]);
    assert!(
        gone.status == Some(2) && gone.stderr.contains("slow_00003_20231114221320.pcapng: no such file"),
        "{gone:?}"
    );
}

#[test]
fn both_hops_are_seen_in_a_set() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/relay");
    let both = std::fs::read(tests.join("nagle.pcap.zst")).expect("a capture");
    let names = ["relay.pcap", "relay.pcap1", "relay.pcap2"];
    let desk = laid_out(&both, &names, 0);
    let run = |files: &[&str]| -> Ran { desk.run(&[&["--format", "json"], files].concat()) };
    let hops = run(&names).json()["hops"]["pairs"].clone();
    assert_eq!(hops.as_array().map(Vec::len), Some(1), "{hops}");
    assert_eq!(hops[0]["findings"], run(&["whole.pcapng"]).json()["hops"]["pairs"][0]["findings"]);
}
