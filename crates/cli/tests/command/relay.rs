//! `tcpwhy relay` as a program: connections through it, Ctrl-C, a line of JSON for each.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::run::Desk;

/// A relay that runs.
struct Relay {
    child: Child,
    lines: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Relay {
    fn start(target: SocketAddr, more: &[&str]) -> Self {
        let mut command = Desk::new().command();
        command.current_dir("/").args(["relay", "127.0.0.1:0", &target.to_string(), "--format", "json"]);
        let mut child = command
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut lines = BufReader::new(child.stdout.take().expect("standard output"));
        let first = next(&mut lines);
        assert_eq!(
            (first["event"].as_str(), first["format"].as_str()),
            (Some("listening"), Some("tcpwhy-relay/1"))
        );
        let address = first["address"].as_str().and_then(|address| address.parse().ok()).expect("an address");
        Self { child, lines, address }
    }

    fn next(&mut self) -> Value {
        next(&mut self.lines)
    }

    /// Ctrl-C; the summary, and the exit status.
    fn interrupt(mut self) -> (Value, Option<i32>) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).expect("it runs");
        let mut last = self.next();
        while last["event"] != "summary" {
            last = self.next();
        }
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).expect("text");
        assert_eq!(rest, "");
        (last["summary"].take(), self.child.wait().expect("an end").code())
    }
}

fn next(lines: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// A server that sends back what it got once that has ended.
fn echo() -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (met, has_met) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let _ = met.send(());
            let mut all = Vec::new();
            // A client that was reset has nothing to be sent.
            if stream.read_to_end(&mut all).is_ok() {
                let _ = stream.write_all(&all);
            }
        }
    });
    (address, has_met)
}

#[test]
fn each_connection_has_its_line_and_ctrl_c_brings_the_sum() {
    let (target, has_met) = echo();
    let mut relay = Relay::start(target, &[]);
    let said: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    for number in 1..=3 {
        let mut client = TcpStream::connect(relay.address).expect("the relay listens");
        client.write_all(&said).expect("room");
        client.shutdown(Shutdown::Write).expect("an end");
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).expect("an answer");
        assert!(heard == said, "{} of {} bytes", heard.len(), said.len());
        drop(client);
        let connection = relay.next()["connection"].take();
        assert_eq!((&connection["number"], &connection["up"]["bytes"]), (&number.into(), &said.len().into()));
        assert_eq!(
            (&connection["end"]["how"], &connection["down"]["bytes"]),
            (&"finished".into(), &said.len().into()),
            "{connection}"
        );
    }
    // One that is open when the relay ends is reset, so that nobody takes a part for the whole.
    let mut open = TcpStream::connect(relay.address).expect("the relay listens");
    open.write_all(b"half a ").expect("room");
    // Else the relay might end before it has accepted.
    assert_eq!(has_met.iter().take(4).count(), 4);
    let (summary, status) = relay.interrupt();
    assert_eq!(
        (status, &summary["connections"], &summary["finished"]),
        (Some(0), &4.into(), &3.into()),
        "{summary}"
    );
    assert_eq!(summary["stopped"], 1, "{summary}");
    assert!(open.read(&mut [0; 1]).is_err(), "a reset");
}

#[test]
fn a_target_that_is_not_there_is_said_and_resets_the_client() {
    let gone =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port").local_addr().expect("an address");
    let mut relay = Relay::start(gone, &["--nagle"]);
    let mut client = TcpStream::connect(relay.address).expect("the relay listens");
    assert!(client.read(&mut [0; 1]).is_err(), "a reset");
    let connection = relay.next()["connection"].take();
    assert_eq!(connection["target"], Value::Null, "{connection}");
    let (summary, status) = relay.interrupt();
    assert_eq!((status, &summary["unreached"]), (Some(0), &1.into()), "{summary}");
}

#[test]
fn what_cannot_be_listened_on_is_one_line() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let ran = Desk::new().run(&["relay", &address, "127.0.0.1:9"]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.lines().count()), (Some(2), "", 1), "{ran:?}");
    assert!(ran.stderr.contains("another program listens there"), "{ran:?}");
}
