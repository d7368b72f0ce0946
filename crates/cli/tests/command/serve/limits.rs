//! How much at once, and how it ends.

use std::io::{Read, Write};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Answer, Served, serve};
use crate::capture::connections;
use crate::run::Desk;

/// A server with so many captures that take a while each.
fn with_work(count: usize) -> Option<Served> {
    let desk = Desk::new();
    let capture = connections(20_000);
    for nth in 0..count {
        desk.file(format!("{nth}.pcap"), &capture);
    }
    serve(desk, &[])
}

fn states(served: &Served) -> Vec<String> {
    let jobs = served.get("/api/jobs").json();
    let all = jobs["jobs"].as_array().expect("a list");
    all.iter().map(|job| job["state"].as_str().expect("a state").to_owned()).collect()
}

#[test]
fn two_analyses_go_on_at_once_and_any_can_be_cancelled() {
    let Some(served) = with_work(5) else { return };
    let ids: Vec<_> = (0..5).map(|nth| served.begin(&format!("{nth}.pcap")).json()["job"].clone()).collect();
    // The same again is the same analysis.
    let again = served.begin("4.pcap").json()["job"].clone();
    assert_eq!(again, ids[4]);
    let start = Instant::now();
    let mut most = 0;
    let mut seen_waiting = false;
    while start.elapsed() < Duration::from_secs(60) {
        let states = states(&served);
        let count = |of: &str| states.iter().filter(|state| *state == of).count();
        most = most.max(count("running"));
        seen_waiting |= count("waiting") > 0;
        if count("running") == 0 && count("waiting") == 0 {
            break;
        }
        if count("running") == 2 {
            // One that runs, and one that waits.
            for id in [&ids[0], &ids[4]] {
                assert_eq!(served.ask("DELETE", &format!("/api/jobs/{id}"), b"").status, 204);
            }
        }
    }
    assert_eq!((most, seen_waiting), (2, true));
    assert_eq!(served.ended(&ids[4])["state"], "cancelled");
    assert_eq!(served.ended(&ids[2])["state"], "done");
    let reports = served.state()["reports"]["reports"].as_array().expect("a list").len();
    let done = states(&served).iter().filter(|state| *state == "done").count();
    assert_eq!(reports, done);
}

#[test]
fn progress_is_told() {
    let Some(served) = with_work(1) else { return };
    let size = std::fs::metadata(served.desk.path().join("0.pcap")).expect("a file").len();
    let id = served.begin("0.pcap").json()["job"].clone();
    let job = served.ended(&id);
    assert_eq!((job["bytes"].as_u64(), job["size"].as_u64()), (Some(size), Some(size)), "{job}");
    // Each of the connections has eight.
    assert!(job["packets"].as_u64().is_some_and(|packets| packets >= 160_000), "{job}");
}

#[test]
fn ctrl_c_stops_what_goes_on() {
    for signal in [Signal::INT, Signal::TERM] {
        let Some(served) = with_work(3) else { return };
        for nth in 0..3 {
            served.begin(&format!("{nth}.pcap"));
        }
        while !states(&served).contains(&"running".to_owned()) {
            thread::sleep(Duration::from_millis(1));
        }
        let start = Instant::now();
        let (status, desk) = served.end(signal);
        assert_eq!(status, Some(0));
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        let served = serve(desk, &[]).expect("the pages are there");
        served.report("0.pcap");
    }
}

/// Nothing that the killed server was about stands in the way of the next one.
#[test]
fn a_killed_server_leaves_a_store_that_works() {
    let Some(served) = with_work(2) else { return };
    served.report("1.pcap");
    served.begin("0.pcap");
    while !states(&served).contains(&"running".to_owned()) {
        thread::sleep(Duration::from_millis(1));
    }
    let (status, desk) = served.end(Signal::KILL);
    assert_eq!(status, None);
    let served = serve(desk, &[]).expect("the pages are there");
    assert_eq!(served.state()["reports"]["reports"].as_array().map(Vec::len), Some(1));
    assert_eq!(served.report("0.pcap"), 2);
}

/// More than there are places for anybody, as any user of the machine can open them.
const STRANGERS: usize = 45;

#[test]
fn who_never_shows_the_token_keeps_nobody_out() {
    let Some(served) = serve(Desk::new(), &[]) else { return };
    let start = Instant::now();
    let mut strangers: Vec<_> = (0..STRANGERS).map(|_| served.connect()).collect();
    assert_eq!(served.get("/api/state").status, 200);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    // The oldest had to go, the latest has its time: a browser may be slow.
    assert_eq!(strangers[0].read(&mut [0]).expect("an end"), 0);
    let latest = strangers.last_mut().expect("there are some");
    latest.write_all(&served.head("GET", "/", &[], None)).expect("it is open");
    assert_eq!(Answer::read(latest).status, 401);
}

#[test]
fn two_seconds_are_enough_to_show_the_token() {
    let Some(served) = serve(Desk::new(), &[]) else { return };
    // One that has shown it, and will ask again.
    let (mut known, mut silent, mut slow) = (served.connect(), served.connect(), served.connect());
    let cookie = [("Cookie", served.cookie.as_str())];
    let request = served.head("GET", "/api/jobs", &cookie, None);
    let request = String::from_utf8(request).expect("text").replace("Connection: close\r\n", "");
    known.write_all(request.as_bytes()).expect("room");
    let mut first = [0; 4096];
    assert!(known.read(&mut first).expect("an answer") > 0 && first.starts_with(b"HTTP/1.1 200"));
    let start = Instant::now();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n").expect("room");
    // The end of the connection is all that comes.
    assert_eq!((Answer::read(&mut silent).body, Answer::read(&mut slow).body), (Vec::new(), Vec::new()));
    let waited = start.elapsed();
    assert!(waited > Duration::from_secs(1) && waited < Duration::from_secs(5), "{waited:?}");
    known.write_all(&served.head("GET", "/api/jobs", &cookie, None)).expect("it is open");
    assert_eq!(Answer::read(&mut known).status, 200);
}

/// An analysis that gets no memory ends, and the server does not.
#[test]
fn an_analysis_that_gets_no_memory_ends_alone() {
    let desk = Desk::new();
    desk.file("large.pcap", &connections(40_000));
    let Some(served) = serve(desk, &["--memory-limit", "8MB"]) else { return };
    let job = served.ended(&served.begin("large.pcap").json()["job"]);
    assert_eq!(job["state"], "failed", "{job}");
    let why = job["error"].as_str().expect("a sentence");
    assert!(why.contains("8.00\u{a0}MB") && why.contains("--memory-limit"), "{why}");
    assert_eq!(served.get("/api/jobs").status, 200);
}

/// Connections that take more than half of an analysis's memory are closed early, whoever bounds it.
#[test]
fn connections_leave_room_for_their_report() {
    let desk = Desk::new();
    desk.file("large.pcap", &connections(40_000));
    let Some(served) = serve(desk, &["--memory-limit", "48MB"]) else { return };
    served.report("large.pcap");
    drop(served);
    let desk = Desk::new();
    desk.file("large.pcap", &connections(40_000));
    let mut command = Command::new("sh");
    command.current_dir(desk.path());
    // 48 MiB for all that is written to, as `ulimit` counts it.
    command.args(["-c", "ulimit -d 49152 && exec \"$0\" serve .", env!("CARGO_BIN_EXE_tcpwhy")]);
    let Some(served) = Served::start(desk, command) else { return };
    served.report("large.pcap");
}
