//! `tcpwhy annotate`: what Wireshark's users see, and what stays as it was.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::capture::{connections, healthy, write_write_read};
use crate::run::{Desk, Ran};

/// What tshark prints of some fields, a line for each packet; nothing where there is no tshark, which is said.
fn tshark(capture: &Path, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture).args(["-T", "fields", "-E", "aggregator=|"]);
    fields.iter().for_each(|field| _ = command.args(["-e", field]));
    let output = match command.stderr(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => {
            let _ = writeln!(io::stderr(), "SKIPPED: tshark cannot be asked: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "tshark takes it for a good file");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    Some(text.lines().map(str::to_owned).collect())
}

/// The findings that the analysis of a file comes to.
fn findings(desk: &Desk, name: &str) -> Value {
    desk.run(&["--format", "json", "--whatif", "never", name]).json()["captures"][0]["findings"].clone()
}

fn corpus(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(name)
}

#[test]
fn tshark_shows_the_comments_and_nothing_malformed() {
    let desk = Desk::new();
    let input = desk.file("slow.pcap", &write_write_read());
    let ran = desk.run(&["annotate", "slow.pcap", "-o", "marked.pcapng"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stdout.starts_with("marked.pcapng: 87 packets, "), "{ran:?}");
    let output = desk.path().join("marked.pcapng");
    assert_eq!(findings(&desk, "marked.pcapng"), findings(&desk, "slow.pcap"));
    let Some(comments) = tshark(&output, &["frame.comment", "_ws.malformed"]) else { return };
    let evidence = findings(&desk, "slow.pcap");
    let evidence: Vec<_> = evidence.as_array().expect("findings").iter().collect();
    assert!(!evidence.is_empty());
    for finding in evidence {
        for shown in finding["evidence"].as_array().expect("evidence") {
            let number = shown["packet"].as_u64().expect("a number") as usize;
            let text =
                format!("tcpwhy: {}: {}", finding["rule"].as_str().unwrap(), shown["note"].as_str().unwrap());
            assert!(comments[number - 1].contains(&text), "{text:?} in {:?}", comments[number - 1]);
        }
    }
    // No line ends with what tshark cannot read.
    assert!(comments.iter().all(|line| line.ends_with('\t')), "{comments:#?}");
    let same =
        ["frame.number", "frame.time_epoch", "frame.len", "frame.cap_len", "tcp.seq_raw", "tcp.payload"];
    assert_eq!(tshark(&output, &same), tshark(&input, &same));
}

#[test]
fn nanoseconds_interfaces_and_calls_stay() {
    let desk = Desk::new();
    let input = corpus("split-request-20ms-client.pcapng.zst");
    let path = input.to_string_lossy().into_owned();
    assert_eq!(desk.run(&["annotate", &path, "-o", "marked.pcapng"]).status, Some(0));
    assert_eq!(findings(&desk, "marked.pcapng"), findings(&desk, &path));
    // Again: what is there already is not written twice.
    assert_eq!(desk.run(&["annotate", "marked.pcapng", "-o", "again.pcapng"]).status, Some(0));
    let [once, again] =
        ["marked.pcapng", "again.pcapng"].map(|name| std::fs::read(desk.path().join(name)).unwrap());
    assert!(once == again);
    let notes = desk.run(&["--format", "json", "marked.pcapng"]).json()["captures"][0]["notes"].to_string();
    assert!(notes.contains("not repeated here") && !notes.contains("split-write: "), "{notes}");
    let same = ["frame.time_epoch", "frame.len", "frame.interface_name"];
    assert_eq!(tshark(&desk.path().join("marked.pcapng"), &same), tshark(&input, &same));
}

#[test]
fn the_summary_is_the_files_comment() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    let output = desk.command().args(["annotate", "slow.pcap", "-o", "-"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what:?} is not there"));
    // The section's comments come before the first packet's.
    let verdict = place("makes this connection wait");
    assert!(verdict < place("tcpwhy: split-write (problem, client 10.0.0.1:50000, connection 0): "));
    assert!(verdict < place("tcpwhy: split-write: the first piece"));
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn healthy_packets_get_no_comments() {
    let desk = Desk::new();
    desk.file("well.pcap", &healthy());
    let ran = desk.run(&["annotate", "well.pcap", "-o", "well.pcapng"]);
    assert!(ran.status == Some(0) && ran.stdout.contains("none of them evidence"), "{ran:?}");
}

#[test]
fn a_file_cut_short_is_copied_up_to_there() {
    let desk = Desk::new();
    let whole = write_write_read();
    desk.file("cut.pcap", &whole[..whole.len() - 30]);
    let ran = desk.run(&["annotate", "cut.pcap", "-o", "x.pcapng"]);
    assert!(ran.status == Some(0) && ran.stdout.starts_with("x.pcapng: 86 packets, "), "{ran:?}");
    assert!(ran.stderr.starts_with("tcpwhy: cut.pcap: Cut short at byte "), "{ran:?}");
    let notes = desk.run(&["--format", "json", "x.pcapng"]).json()["captures"][0]["notes"].to_string();
    assert!(!notes.contains("Cut short"), "{notes}");
}

#[test]
fn what_cannot_be_done_is_said_and_leaves_nothing() {
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    desk.file("empty.pcap", b"");
    desk.file("program", b"\x7fELF\x02\x01\x01\0\0\0\0\0");
    desk.file("other", b"precious");
    desk.file("mail.txt", b"10:00:00.000000 IP 10.0.0.1.5000 > 10.0.0.2.53: UDP, length 40\n");
    desk.file("page.html", b"<html><p>Nothing here was captured.</p></html>\n");
    for (arguments, said) in [
        (["slow.pcap", "-o", "slow.pcap"], "slow.pcap: is the input"),
        (["slow.pcap", "-o", "./slow.pcap"], "./slow.pcap: is the input"),
        (["slow.pcap", "-o", "x.pcapng.gz"], "the copy is not compressed"),
        (["slow.pcap", "-o", "no/where.pcapng"], "cannot write no/where.pcapng"),
        (["-", "-o", "x.pcapng"], "standard input cannot be read twice: save it first"),
        (["mail.txt", "-o", "other"], "mail.txt: has no packets to copy"),
        (["page.html", "-o", "other"], "page.html: neither a capture (pcap, pcapng, .gz, .zst) nor lines"),
        (["program", "-o", "other"], "program: a program, not a capture"),
        (["empty.pcap", "-o", "other"], "empty.pcap: empty"),
        (["none.pcap", "-o", "other"], "none.pcap: no such file"),
        ([".", "-o", "other"], "is a directory"),
    ] {
        let ran = desk.run(&[&["annotate"], &arguments[..]].concat());
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(said) && ran.stderr.lines().count() == 1, "{arguments:?}: {ran:?}");
    }
    assert_eq!(std::fs::read(desk.path().join("slow.pcap")).unwrap(), write_write_read());
    assert_eq!(std::fs::read(desk.path().join("other")).unwrap(), b"precious");
    assert_eq!(std::fs::read_dir(desk.path()).unwrap().count(), 6, "nothing is left over");
}

#[cfg(unix)]
#[test]
fn a_new_file_takes_the_place_of_the_old_one_and_devices_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let desk = Desk::new();
    desk.file("slow.pcap", &write_write_read());
    desk.file("old.pcapng", b"old");
    symlink("old.pcapng", desk.path().join("link.pcapng")).expect("a link");
    let linked = desk.run(&["annotate", "slow.pcap", "-o", "link.pcapng"]);
    assert_eq!(linked.status, Some(2), "{linked:?}");
    assert!(linked.stderr.contains("symbolic link") && desk.path().join("link.pcapng").is_symlink());
    assert_eq!(std::fs::read(desk.path().join("old.pcapng")).unwrap(), b"old");
    assert_eq!(desk.run(&["annotate", "slow.pcap", "-o", "old.pcapng"]).status, Some(0));
    let new = std::fs::metadata(desk.path().join("old.pcapng")).unwrap();
    let input = std::fs::metadata(desk.path().join("slow.pcap")).unwrap();
    assert!(new.len() > input.len());
    assert_eq!(new.permissions().mode(), input.permissions().mode(), "as any new file");
    let full = desk.run(&["annotate", "slow.pcap", "-o", "/dev/full"]);
    assert_eq!(full.status, Some(2), "{full:?}");
    assert!(full.stderr.contains("cannot write /dev/full: No space left"), "{full:?}");
    assert!(!std::fs::metadata("/dev/full").unwrap().is_file());
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let desk = Desk::new();
    desk.file("many.pcap", &connections(2_000));
    let mut command = desk.command();
    command.args(["annotate", "many.pcap", "-o", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().expect("it ends"));
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
}
