//! How much at once, and how it ends.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Served, serve};
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
