//! The file of reports, and the command line.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;

use super::{Served, serve};
use crate::capture::{healthy, write_write_read};
use crate::run::Desk;

/// Runs the command, which is to say one sentence and end with 2.
#[track_caller]
fn refused(desk: &Desk, args: &[&str], why: &str) {
    let ran = desk.run(args);
    if ran.stderr.contains("built without the page") {
        return;
    }
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.lines().count()), (Some(2), "", 1), "{ran:?}");
    assert!(ran.stderr.contains(why), "{ran:?}");
}

#[test]
fn files_that_are_not_ours_are_left_alone() {
    let desk = Desk::new();
    refused(&desk, &["serve", "nowhere"], "there is no folder nowhere");
    let text = desk.file("text.sqlite", &b"just some text ".repeat(100));
    refused(&desk, &["serve", "text.sqlite"], "is a file");
    refused(&desk, &["serve", "--store", "text.sqlite"], "no store of reports");
    assert_eq!(fs::read(text).expect("a file"), b"just some text ".repeat(100));
    refused(&desk, &["serve", "--store", "no/folder/reports.sqlite"], "cannot be kept in");
    refused(&desk, &["serve", "--store", "."], "cannot be kept in");
    refused(&desk, &["serve", "--store", "/dev/full"], "cannot be kept in");
    let others = Connection::open(desk.path().join("others.sqlite")).expect("a database");
    others.execute_batch("CREATE TABLE notes (text TEXT)").expect("a table");
    refused(&desk, &["serve", "--store", "others.sqlite"], "database of another program");
    refused(&desk, &["serve", "--listen", "192.0.2.1:80"], "no address of this machine");
}

#[test]
fn another_versions_store_is_one_clear_sentence() {
    let desk = Desk::new();
    let Some(served) = serve(desk, &[]) else { return };
    let (_, desk) = served.end(rustix::process::Signal::INT);
    let path = desk.path().join(".tcpwhy/reports.sqlite");
    let store = Connection::open(&path).expect("a store");
    store.pragma_update(None, "user_version", 7).expect("a version");
    drop(store);
    refused(
        &desk,
        &["serve"],
        "written by another version of tcpwhy (its store is version 7, this tcpwhy knows 1)",
    );
}

#[test]
fn two_servers_share_a_store() {
    let desk = Desk::new();
    desk.file("a.pcap", &write_write_read());
    desk.file("b.pcap", &healthy());
    let Some(one) = serve(desk, &[]) else { return };
    let elsewhere = Desk::new();
    let mut command = elsewhere.command();
    command.arg("serve").arg(one.desk.path());
    let other = Served::start(elsewhere, command).expect("the pages are there");
    std::thread::scope(|scope| {
        for (served, capture) in [(&one, "a.pcap"), (&other, "b.pcap")] {
            scope.spawn(move || {
                for _ in 0..5 {
                    served.report(capture);
                }
            });
        }
    });
    for served in [&one, &other] {
        assert_eq!(served.state()["reports"]["reports"].as_array().map(Vec::len), Some(10));
    }
    // What one deletes is gone for the other.
    assert_eq!(one.ask("DELETE", "/api/reports/3", b"").status, 204);
    assert_eq!(other.get("/reports/3").status, 404);
    // Cookies know no ports: one server's is not the other's.
    assert_eq!(other.send(&other.head("GET", "/api/state", &[("Cookie", &one.cookie)], None)).status, 401);
}

/// The reports of a folder that may not be written to.
#[test]
fn a_store_elsewhere_leaves_the_folder_as_it_was() {
    let desk = Desk::new();
    desk.file("a.pcap", &healthy());
    let elsewhere = Desk::new();
    let store = elsewhere.path().join("reports.sqlite").to_string_lossy().into_owned();
    let Some(served) = serve(desk, &["--store", &store]) else { return };
    served.report("a.pcap");
    assert_eq!(super::files(served.desk.path()), ["a.pcap"]);
    assert_eq!(super::files(elsewhere.path()), ["reports.sqlite"]);
}

fn mode_of(path: &Path) -> u32 {
    path.metadata().expect("it is there").permissions().mode() & 0o777
}

/// What is in captures concerns their owner alone, also where an older version has made the folder.
#[test]
fn reports_are_their_owners_alone() {
    let desk = Desk::new();
    desk.file("a.pcap", &healthy());
    let Some(served) = serve(desk, &[]) else { return };
    served.report("a.pcap");
    let (folder, store) =
        (served.desk.path().join(".tcpwhy"), served.desk.path().join(".tcpwhy/reports.sqlite"));
    assert_eq!((mode_of(&folder), mode_of(&store)), (0o700, 0o600));
    let (_, desk) = served.end(rustix::process::Signal::INT);
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("its own");
    fs::set_permissions(&store, Permissions::from_mode(0o644)).expect("its own");
    let served = serve(desk, &["--store", "elsewhere.sqlite"]).expect("the pages are there");
    assert_eq!(mode_of(&served.desk.path().join("elsewhere.sqlite")), 0o600);
    let (_, desk) = served.end(rustix::process::Signal::INT);
    let served = serve(desk, &[]).expect("the pages are there");
    assert_eq!((mode_of(&folder), mode_of(&store)), (0o700, 0o600));
    assert_eq!(served.state()["reports"]["reports"].as_array().map(Vec::len), Some(1));
}

/// A link that lies where the store would be leads nowhere.
#[test]
fn a_store_is_not_made_where_a_link_leads() {
    let (desk, outside) = (Desk::new(), Desk::new());
    let target = outside.path().join("reports.sqlite");
    let refused = |args: &[&str]| {
        // It would serve for ever where it follows.
        let mut command = Command::new("timeout");
        command.current_dir(desk.path()).args(["5", env!("CARGO_BIN_EXE_tcpwhy"), "serve"]).args(args);
        let ended = command.output().expect("timeout is there");
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        assert!(!target.exists());
    };
    symlink(&target, desk.path().join("link.sqlite")).expect("a link");
    refused(&["--store", "link.sqlite"]);
    symlink(outside.path(), desk.path().join(".tcpwhy")).expect("a link");
    refused(&[]);
}
