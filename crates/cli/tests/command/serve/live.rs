//! Capturing from the page, on the loopback interface; only who may capture can test it.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{PATIENCE, Served, serve};
use crate::run::Desk;

/// Waits until what is told of live capturing is as wanted; that.
fn live(served: &Served, is_so: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let live = served.get("/api/jobs").json()["live"].take();
        if is_so(&live) {
            return live;
        }
        assert!(start.elapsed() < PATIENCE, "{live}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Begins to capture; whether that may be done here.
fn begin(served: &Served, filter: &str) -> bool {
    let wanted = json!({ "interface": "lo", "filter": filter }).to_string();
    assert_eq!(served.ask("POST", "/api/live", wanted.as_bytes()).status, 204);
    // The file is there once the interface is open.
    let live = live(served, |live| {
        live["error"].is_string() || live["running"]["bytes"].as_u64() > Some(0) || has_file(served)
    });
    let is_possible = live["error"].is_null();
    if !is_possible {
        let _ = writeln!(io::stderr(), "SKIPPED live in the page: {}", live["error"]);
    }
    is_possible
}

fn has_file(served: &Served) -> bool {
    super::files(served.desk.path()).iter().any(|name| name.starts_with("live-lo-"))
}

#[test]
fn a_capture_in_the_page_ends_with_its_report() {
    let Some(served) = serve(Desk::new(), &[]) else { return };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    if !begin(&served, &format!("port {}", address.port())) {
        return;
    }
    let again = served.ask("POST", "/api/live", br#"{"interface":"lo","filter":""}"#);
    assert_eq!(again.status, 409, "{again:?}");
    let start = Instant::now();
    // Until some of it has come into the file, it may not have listened yet.
    while live(&served, |_| true)["running"]["bytes"].as_u64() < Some(1_000) {
        drop(TcpStream::connect(address).expect("it listens"));
        drop(listener.accept().expect("a client"));
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(served.ask("DELETE", "/api/live", b"").status, 204);
    live(&served, |live| live["running"].is_null());
    let job = served.get("/api/jobs").json()["jobs"][0].take();
    let job = served.ended(&job["id"]);
    assert_eq!(job["state"], "done", "{job}");
    let report = served.state()["reports"]["reports"][0].take();
    assert!(report["summary"]["connections"].as_u64() > Some(0), "{report}");
    let name = report["capture"].as_str().expect("a name");
    assert!(name.starts_with("live-lo-"), "{report}");
    let metadata = served.desk.path().join(name).metadata().expect("a file");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_cannot_be_captured_is_said() {
    let Some(served) = serve(Desk::new(), &[]) else { return };
    for interface in ["nowhere", "", "../../etc", "lo; true"] {
        let wanted = json!({ "interface": interface, "filter": "" }).to_string();
        assert_eq!(served.ask("POST", "/api/live", wanted.as_bytes()).status, 400, "{interface}");
    }
    // Words of the filter are no options.
    let wanted = json!({ "interface": "lo", "filter": "--write /tmp/elsewhere" }).to_string();
    assert_eq!(served.ask("POST", "/api/live", wanted.as_bytes()).status, 204);
    let live = live(&served, |live| live["running"].is_null());
    assert!(live["error"].as_str().is_some_and(|why| why.contains("filter")), "{live}");
}

#[test]
fn a_capture_ends_with_its_server_however_that_ends() {
    for signal in [Signal::INT, Signal::KILL] {
        let Some(served) = serve(Desk::new(), &[]) else { return };
        if !begin(&served, "port 1") {
            return;
        }
        let server = served.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
        let all = std::fs::read_dir(format!("/proc/{server}/task")).expect("threads").flatten();
        let all = all.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        let child = all.chain([children]).find_map(|pids| Some(pids.split_whitespace().next()?.to_owned()));
        let child = format!("/proc/{}", child.expect("a child"));
        drop(served.end(signal));
        let start = Instant::now();
        while Path::new(&child).exists() {
            assert!(start.elapsed() < PATIENCE, "it goes on after {signal:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
